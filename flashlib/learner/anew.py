"""The course's modules loaded anew, for a check that shares its process with the answers checked before it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

ROOTS = ("flashlib", "cloudpickle")  # cloudpickle knows classes of a cell again, with what their methods use


@contextmanager
def modules() -> Iterator[None]:
    """Within it, imports load the modules of ROOTS anew; after it, those from before are back.

    An answer may replace the `__code__` of a function of flashlib, or an entry of a table. A comparison of modules
    does not find all of that; modules that have just been loaded have none of it.
    """
    before = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    _drop()
    try:
        yield
    finally:
        _drop()
        sys.modules.update(before)


def _is_ours(name):
    return name.partition(".")[0] in ROOTS


def _drop():
    for name in filter(_is_ours, list(sys.modules)):
        del sys.modules[name]
