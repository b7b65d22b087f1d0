"""What a shell exports, without that under which a notebook gives other outputs."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import MutableMapping

# Pictures that are not shown, and an `assert` that is not run.
HARMFUL = "MPLBACKEND", "PYTHONOPTIMIZE"


def for_notebooks(variables: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Make the variables those of a notebook's kernel, and return them.

    Matplotlib gets a temporary folder, until Python ends, where it can write none of its own: it would say so in
    the first cell.
    """
    for name in HARMFUL:
        variables.pop(name, None)
    if not all(map(_writable, _of_matplotlib(variables))):
        variables["MPLCONFIGDIR"] = _temporary()
    return variables


def _of_matplotlib(variables):
    """Return the folder of matplotlib that is named, or on Linux those for its settings and its fonts."""
    if named := variables.get("MPLCONFIGDIR"):
        return [named]
    if not sys.platform.startswith("linux"):
        return []
    folders = {"XDG_CONFIG_HOME": ".config", "XDG_CACHE_HOME": ".cache"}
    home = os.path.expanduser("~")  # unchanged for a user without a home
    of = [variables.get(name) or os.path.join(home, usual) for name, usual in folders.items()]
    return [os.path.join(folder, "matplotlib") for folder in of]


def _writable(folder):
    if not os.path.isabs(folder):
        return False
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@functools.cache
def _temporary():
    folder = tempfile.mkdtemp(prefix="matplotlib-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
