"""Learners' notebooks, run by nbval, with the outputs of the course as the expected ones: hooks of pytest."""

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, find_metadata_tags

from flashlib.chapters import NOTEBOOKS
from flashlib.checks.classroom import course
from flashlib.pictures.formats import DRAWN

REMARKS = pytest.StashKey[dict[str, list[str]]]()  # {notebook: sentences}
COMPARED = pytest.StashKey[dict[str, int]]()  # {notebook: how many of its cells are compared}
FAILED = pytest.StashKey[bool]()  # whether a run fails because nothing was compared
SENT: dict[pytest.StashKey, str] = {REMARKS: "remarks", COMPARED: "compared"}  # by a process of pytest-xdist
NOTHING = (
    "Nothing was compared, so this run fails: no notebook here has an unchanged cell of the course that can be "
    "compared on this machine. Give a folder with copies of chapters, as make lab makes them."
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore hidden files, and files that are not notebooks."""
    is_notebook = collection_path.suffix == ".ipynb" and not collection_path.name.startswith(".")
    return True if collection_path.is_file() and not is_notebook else None


def pytest_collect_file(file_path: Path, parent: Any) -> "LearnerNotebook":
    return LearnerNotebook.from_parent(parent, path=file_path)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report what was compared in each notebook and what was not."""
    terminalreporter.section("compared with the course")
    for notebook, said in terminalreporter.config.stash.get(REMARKS, {}).items():
        terminalreporter.line(f"{notebook}: {said[0]}")
        for sentence in said[1:]:
            terminalreporter.line(f"    {sentence}")
    if terminalreporter.config.stash.get(FAILED, False):
        terminalreporter.line(NOTHING)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """With pytest-xdist, take the remarks from any process that collected tests; all collect the same."""
    sent = getattr(node, "workeroutput", {})
    for key, name in SENT.items():
        node.config.stash.setdefault(key, {}).update(sent.get(name, {}))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that has compared nothing: in CI it would look like a success."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput.update({name: config.stash.get(key, {}) for key, name in SENT.items()})
    elif exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not config.option.collectonly:
        config.stash[FAILED] = not any(config.stash.get(COMPARED, {}).values())
        if config.stash[FAILED]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


class LearnerNotebook(IPyNbFile):
    """A learner's notebook."""

    def collect(self) -> Iterator["LearnerCell"]:
        """Yield the code cells, or none if its chapters cannot run on this machine."""
        self.skip_compare += DRAWN
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # for example about cells without an id
                items = list(super().collect())
        except Exception as error:
            what = str(error).partition("\n")[0][:200]
            raise self.CollectError(f"it is not a notebook that can be read ({what})") from error
        restored = course.restore_ids(self.nb)
        parts = course.parts(self.nb)
        slugs = {part.slug for part in parts}
        obstacles = list(dict.fromkeys(o for c in NOTEBOOKS if c.slug in slugs for o in c.obstacles(more=True)))
        said = self.config.stash.setdefault(REMARKS, {})
        said[self.nodeid] = [f"not run: {o}" for o in obstacles] or course.remarks(self.nb, parts)
        if restored and not obstacles:
            said[self.nodeid].append(
                f"found by their sources, as their ids are not the course's: {restored} cells"
            )
        compared = self.config.stash.setdefault(COMPARED, {})
        compared[self.nodeid] = 0
        for item in [] if obstacles else items:
            options = _expect(item.cell, item.options, parts)
            compared[self.nodeid] += options["check"]
            yield LearnerCell.from_parent(
                self, name=item.name, cell_num=item.cell_num, cell=item.cell, options=options
            )


def _expect(cell, options, parts):
    """Give a cell in memory the outputs that it should have; return nbval's options for it."""
    cell.outputs, cell.execution_count = [], None
    if course.kind(cell, parts) != course.CellKind.COMPARED:
        return options | {"check": False}
    original = course.home(cell, parts).cells[cell.id]
    cell.outputs, cell.execution_count = copy.deepcopy(original.outputs), original.execution_count
    return defaultdict(bool, {"check": True} | dict(find_metadata_tags(original.metadata)))


class LearnerCell(IPyNbCell):
    """A code cell in a learner's notebook."""

    def compare_outputs(self, test: list, ref: list, skip_compare: Any = None) -> bool:
        """Return whether the outputs are the course's; an exercise may be right or not solved yet."""
        test, ref = course.passing(test), course.passing(ref)
        if super().compare_outputs(test, ref, skip_compare):
            return True
        self.comparison_traceback[:0] = [
            *("expected, as the course stores it:", *map(_indented, ref)),
            *("got:", *map(_indented, test)),
            "in nbval's words:",
        ]
        return False


def _indented(output):
    return "\n".join(f"    {line}" for line in course.text(output).splitlines())
