"""Exit with one sentence if this Python cannot make the course's .venv. Parses on every Python 3."""

import platform
import sys

found = "Python " + platform.python_version() + " (" + sys.executable + ")"
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        found + " is too old: the course needs Python 3.11 or later. "
        "Install one and name it: make lab PYTHON=python3.12"
    )
try:
    import ensurepip  # noqa: F401
    import venv  # noqa: F401
except ImportError:
    sys.exit(
        found + " lacks the venv module: install it (Debian and Ubuntu: apt install python3-venv) "
        "and run the same make command again."
    )
