"""Start new processes without running a script or a cell again."""

import contextlib
import sys
import types
from collections.abc import Iterator


def is_possible() -> bool:
    """Return whether a process can be started, which is impossible in a web page."""
    return sys.platform != "emscripten"


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """Hide `__main__` from multiprocessing, which would run its file again in the new process.

    A script must not run twice, and Triton's interpreter leaves the name of one of its files in a notebook's
    `__main__`.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
