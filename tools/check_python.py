"""Exit with a sentence if this Python cannot create the course's .venv. Every Python 3 can parse this file."""

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
