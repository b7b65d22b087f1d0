"""Compare learners' notebooks with the outputs that the course stores: a pytest plugin based on nbval.

    python -m pytest -p flashlib.checks.compare FOLDER

Run it from anywhere, on a folder anywhere. Every notebook is run from top to bottom. An unchanged cell of the
course must show the output that it has in the course. An exercise passes if it is right or not solved yet.
Questions, cells that the learner changed and the learner's own cells are run, but not compared. A run that has not
compared any cell fails. As always with nbval, a cell that raises fails, unless it is tagged `raises-exception`,
and the pixels of pictures are not compared. Neither are the sizes of pictures, and settings of matplotlib and
IPython in the home folder are ignored. Other options of nbval are accepted, such as --nbval-cell-timeout.
Notebooks and progress do not change. This runs the code in the notebooks: run it where you would open them.
"""

import os
import shutil
import tempfile

import pytest

from flashlib.checks.classroom import course
from flashlib.checks.engine import progress_file

OPTIONS = (
    "--nbval-current-env",
    f"--nbval-sanitize-with={course.SANITIZE}",
    "--nbval-cell-timeout=120",
    "--continue-on-collection-errors",  # a file that cannot be read fails only itself
)
FOR_KERNELS = {
    progress_file.VARIABLE: "off",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MATPLOTLIBRC": os.devnull,  # the learner's may set a different size, or cause warnings
}


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Set the options of nbval; do not run any conftest.py, or leave a cache in the learner's folder."""
    args[:0] = OPTIONS
    early_config.known_args_namespace.noconftest = True
    for name in ("stepwise", "cacheprovider"):
        early_config.pluginmanager.set_blocked(name)


def pytest_configure(config: pytest.Config) -> None:
    config.option.nbval = False  # otherwise nbval would collect each notebook too
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"  # with pytest-xdist: the cells of a notebook share a kernel
    try:
        course.chapters()
    except FileNotFoundError as error:
        raise pytest.UsageError(str(error)) from None
    from flashlib.checks.classroom import compared  # here: it imports nbval, a plugin that pytest must load first

    config.pluginmanager.register(compared)
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    settings = tempfile.mkdtemp(prefix="ipython-")  # the learner's profile may set another format for pictures
    config.add_cleanup(lambda: shutil.rmtree(settings, ignore_errors=True))
    for name, value in {**FOR_KERNELS, "IPYTHONDIR": settings}.items():
        patch.setenv(name, value)
