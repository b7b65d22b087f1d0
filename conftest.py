"""How tests are shared among processes (`make test`, by pytest-xdist), and which of them a machine leaves out."""

import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

FIRST = (
    "notebooks/",
    "tests/browser/",
    "tests/kernels/",
    "tests/bench/",
    "tests/checks/",
)  # what takes longest, in this order
ONE_BROWSER = ("test_every_widget.py", "test_flash_player.py", "test_saved_page.py")
NO_GPU = "tests for a CUDA device are left out: torch finds none. On a machine that has one, run make test-gpu"


def scope(nodeid):
    """Return the name of a group of tests that run in one process, one after the other.

    A notebook has one kernel for all its cells. Tests in the browser share a JupyterLab, so there are two groups.
    The cases of a test of kernels or of answers may be apart: there are too many for one process.
    """
    path, _, test = nodeid.partition("::")
    if path.startswith("tests/browser/"):
        return "one browser" if path.endswith(ONE_BROWSER) else "another browser"
    if path.startswith(("tests/kernels/", "tests/bench/")) or path.endswith("test_answers.py"):
        function, _, case = test.partition("[")
        return f"{path}::{function}[{case.partition('-')[0]}"
    return path


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a GPU where there is none, and put first what takes longest."""
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu and not _has_gpu():
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=for_gpu)
        if hasattr(config, "workerinput"):
            Path(config.workerinput["for_gpu"]).write_text(str(len(for_gpu)))
        else:
            config.stash[FOR_GPU] = len(for_gpu)
    items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in FIRST])


def _has_gpu():
    import torch  # here: most tests do not need it

    return torch.cuda.is_available()


FOR_GPU = pytest.StashKey[int]()
FOLDER = pytest.StashKey[tempfile.TemporaryDirectory]()


def pytest_report_collectionfinish(config):
    if number := config.stash.get(FOR_GPU, 0):
        return f"{number} {NO_GPU}"


try:
    from xdist.scheduler import LoadScopeScheduling
except ImportError:  # one process
    pass
else:

    class Scopes(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    def pytest_xdist_make_scheduler(config, log):
        config.option.loadscopereorder = False
        return Scopes(config, log)

    def pytest_configure_node(node):
        """Tell a worker where to leave the number of tests that it leaves out."""
        if FOLDER not in node.config.stash:
            node.config.stash[FOLDER] = tempfile.TemporaryDirectory()
        node.workerinput["for_gpu"] = str(Path(node.config.stash[FOLDER].name) / "for_gpu")

    def pytest_unconfigure(config):
        if FOLDER in config.stash:
            config.stash[FOLDER].cleanup()

    def pytest_xdist_node_collection_finished(node):
        """Say it once, by what the first worker has left."""
        folder = node.config.stash[FOLDER]
        path = Path(folder.name) / "for_gpu"
        if path.exists() and FOR_GPU not in node.config.stash:
            node.config.stash[FOR_GPU] = int(path.read_text())
            reporter = node.config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line(f"{path.read_text()} {NO_GPU}")


def pytest_terminal_summary(terminalreporter):
    """Print the results of the answers that tests/checks/test_answers.py recorded, in any process."""
    named, accepted = defaultdict(list), defaultdict(int)
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "wrong answer named":
                named[value[0]].append(value[1])
            elif key == "right answer accepted":
                accepted[value] += 1
    if not named:
        return
    terminalreporter.section("exercises: right answers accepted, wrong answers named")
    for exercise, ids in sorted(named.items()):
        mistakes = ", ".join(dict.fromkeys(ids))
        terminalreporter.line(f"{exercise:20} {accepted[exercise]:3} {len(ids):4}  {mistakes}")
    total = sum(map(len, named.values()))
    terminalreporter.line(f"{sum(accepted.values())} right answers accepted, {total} wrong answers named")
