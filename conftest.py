"""How tests are distributed over processes (`make test`, with pytest-xdist), and which are left out."""

import gc
import os
from collections import defaultdict

import pytest

from flashlib.environment import for_notebooks
from flashlib.pictures.formats import DRAWN
from tests import tiers
from tools import cores

BROWSER = "tests/browser/"
FIRST = (
    BROWSER,
    "notebooks/",
    "tests/kernels/",
    "tests/bench/",
    "tests/checks/",
)  # the longest tests, in this order
NO_GPU = "tests for a CUDA device are left out: torch finds none. On a machine that has one, run make test-gpu"

for_notebooks(os.environ)  # their kernels inherit it


def pytest_collectstart(collector):
    """nbval compares no PNG, and is told to compare no SVG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += DRAWN


def scope(nodeid, together=False):
    """Return the name of the group of a test; a group runs in one process, one test after the other.

    A notebook has one kernel for all its cells. The tests of a file share its fixtures. The cases of a test of
    kernels or of answers may be in different groups, as there are too many for one process. together: all tests in
    the browser are one group, and start one browser and one JupyterLab.
    """
    path, _, test = nodeid.partition("::")
    if together and path.startswith(BROWSER):
        return BROWSER
    if path.startswith(("tests/kernels/", "tests/bench/")) or path.endswith(("test_answers.py", "test_alone.py")):
        function, _, case = test.partition("[")
        return f"{path}::{function}[{case.partition('-')[0]}"
    return path


def pytest_addoption(parser):
    parser.addoption("--backwards", action="store_true", help="in reverse order, for make test-all")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Disable the garbage collector during collection, and freeze what was collected.

    Later, collect less often than Python does, which takes a fortieth of the time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config, items):
    """Mark long tests, leave out those for a GPU if there is none, and put the longest first."""
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu and not _has_gpu():
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=for_gpu)
        config.stash[FOR_GPU] = len(for_gpu)
    long = tiers.long(items)
    for item in items:
        if item.nodeid in long:
            item.add_marker("long")
    if config.option.backwards:
        cells = [item for item in items if item.path.suffix == ".ipynb"]  # which stay in order
        items[:] = cells + [item for item in reversed(items) if item.path.suffix != ".ipynb"]
    items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in FIRST])


def _has_gpu():
    import torch  # here, since most tests do not need it

    return torch.cuda.is_available()


FOR_GPU = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Return the number of processes: one for each core, and one more for make test-all, whose browser tests wait.

    In make test one more would save no time, since each imports everything that the tests need.
    """
    return cores.usable() + (1 if config.option.backwards else 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scopes(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid, together=not config.option.backwards)

    config.option.loadscopereorder = False
    return Scopes(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the number of tests for a GPU that a worker left out, which is the same for all workers."""
    node.config.stash[FOR_GPU] = getattr(node, "workeroutput", {}).get("for_gpu", 0)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["for_gpu"] = session.config.stash.get(FOR_GPU, 0)


def pytest_terminal_summary(terminalreporter):
    """Say what was left out, and print the results for answers that test_answers.py recorded."""
    if number := terminalreporter.config.stash.get(FOR_GPU, 0):
        terminalreporter.line(f"{number} {NO_GPU}")
    named, accepted = defaultdict(list), defaultdict(int)
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "wrong answers named":
                named[value[0]] += value[1]
            elif key == "right answers accepted":
                accepted[value[0]] += value[1]
    if not named:
        return
    terminalreporter.section("exercises: right answers accepted, wrong answers named")
    for exercise, ids in sorted(named.items()):
        mistakes = ", ".join(dict.fromkeys(ids))
        terminalreporter.line(f"{exercise:20} {accepted[exercise]:3} {len(ids):4}  {mistakes}")
    total = sum(map(len, named.values()))
    terminalreporter.line(f"{sum(accepted.values())} right answers accepted, {total} wrong answers named")
