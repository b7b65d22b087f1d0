"""The environment of a shell without the variables that would change a notebook's outputs."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import MutableMapping

# The first would hide pictures, the second skip `assert`.
HARMFUL = "MPLBACKEND", "PYTHONOPTIMIZE"


def for_notebooks(variables: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Change the variables to those of a notebook's kernel, and return them.

    Matplotlib gets a temporary folder, until Python ends, if it cannot write to its own: otherwise it would warn
    of that in the first cell.
    """
    for name in HARMFUL:
        variables.pop(name, None)
    if not all(map(_writable, _of_matplotlib(variables))):
        variables["MPLCONFIGDIR"] = _temporary()
    return variables


def _of_matplotlib(variables):
    """Return the folder set for matplotlib or, on Linux, its default folders for settings and fonts."""
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
