"""Each file of tests passes alone, in a process that ran no other: one case of each test that is not long.

Tests that ask the compiler are left out, since they run it in a different process.

Notebooks have separate kernels anyway. The files of tests/browser are left out too: they share one JupyterLab,
which takes longest to start.
"""

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from flashlib.learner import process as processes

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
FILES = [name for name in FILES if not name.startswith("tests/browser/") and name != "tests/test_alone.py"]
NO_TESTS = pytest.ExitCode.NO_TESTS_COLLECTED  # where all are long
TIME_LIMIT = 300  # seconds


class OneCase:
    """A plugin that keeps one case of each test."""

    def pytest_collection_modifyitems(self, items):
        items[:] = {item.nodeid.partition("[")[0]: item for item in reversed(items)}.values()


def run(name, said):
    """Run one file, write pytest's output to the file `said`, and exit with pytest's status."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    options = "-q", "-m", "not long and not compiles", "-p", "no:cacheprovider"
    sys.exit(pytest.main([*options, name], plugins=[OneCase()]))


@pytest.fixture(scope="module")
def fresh():
    """Return a context whose processes are forks of one that has imported other packages, but not ours."""
    if "forkserver" not in multiprocessing.get_all_start_methods() or not processes.sockets_fit():
        pytest.skip("files are run alone where a process can fork, and a socket has a folder with a short path")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "numpy", "torch", "nbformat", "matplotlib.figure"])
    return context


@pytest.mark.process
@pytest.mark.parametrize("name", FILES)
def test_a_file_passes_alone(name, fresh, tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("PYTEST_")]:
        monkeypatch.delenv(variable)
    said = tmp_path / "said"
    process = fresh.Process(target=run, args=(name, str(said)))
    process.start()
    process.join(TIME_LIMIT)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode in (0, NO_TESTS), said.read_text(errors="replace")
