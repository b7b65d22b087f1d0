"""Solved exercises are recorded in one small file that may be deleted, and nowhere else."""

import json
import re
import sys
from datetime import date

import pytest

pytest.importorskip("cloudpickle")
from flashlib.chapters import FROM_ZERO  # noqa: E402
from flashlib.checks import progress  # noqa: E402
from flashlib.checks.classroom.progress_table import Progress  # noqa: E402
from flashlib.checks.engine import progress_file  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.engine.verdict import Verdict  # noqa: E402

RIGHT = Verdict(next(iter(EXERCISES)), "right", "in all 3 cases")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.delenv(progress_file.VARIABLE, raising=False)
    monkeypatch.chdir(folder)
    return folder


def test_a_solved_exercise_is_kept(workspace):
    assert repr(progress()).startswith(f"0 of {len(EXERCISES)}")
    assert progress_file.record(RIGHT) == RIGHT
    assert repr(progress()).startswith(f"1 of {len(EXERCISES)}")
    assert f"✓ {RIGHT.exercise}" in repr(progress())
    assert [path.name for path in workspace.iterdir()] == ["progress.json"]


def test_it_stays_solved_when_others_are_added(workspace):
    progress_file.record(RIGHT)
    before = (workspace / "progress.json").read_text()
    progress_file.record(RIGHT)
    progress_file.record(Verdict(RIGHT.exercise, "wrong", "now it is"))
    assert (workspace / "progress.json").read_text() == before
    progress_file.record(Verdict("other", "right", ""))
    assert set(json.loads((workspace / "progress.json").read_text())["solved"]) == {RIGHT.exercise, "other"}


def test_the_date_is_that_of_the_first_right_answer(workspace, monkeypatch):
    class Calendar(date):
        now = date(2031, 1, 31)

        @classmethod
        def today(cls):
            return cls.now

    monkeypatch.setattr(progress_file, "date", Calendar)
    progress_file.record(RIGHT)
    Calendar.now = date(2031, 2, 1)
    progress_file.record(RIGHT)
    progress_file.record(Verdict("other", "right", ""))
    solved = json.loads((workspace / "progress.json").read_text())["solved"]
    assert solved == {RIGHT.exercise: "2031-01-31", "other": "2031-02-01"}


def test_the_file_may_be_deleted(workspace):
    progress_file.record(RIGHT)
    (workspace / "progress.json").unlink()
    assert repr(progress()).startswith("0 of")


def test_a_notebook_in_a_subfolder_of_the_workspace_counts(workspace, monkeypatch):
    (workspace / "mine").mkdir()
    monkeypatch.chdir(workspace / "mine")
    progress_file.record(RIGHT)
    assert (workspace / "progress.json").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"solved": 3}', "not json", "[" * 10**5, '{"solved": {}, "predicted": 3}']
)
def test_a_file_that_is_not_a_progress_file_is_left_alone(workspace, text):
    (workspace / "progress.json").write_text(text)
    verdict = progress_file.record(RIGHT)
    assert verdict.outcome == "right" and "delete it to start over" in repr(verdict)
    assert "delete it to start over" in repr(progress())
    assert (workspace / "progress.json").read_text() == text


def test_an_unwritable_file_is_reported_and_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.setenv(progress_file.VARIABLE, str(tmp_path / "nowhere" / "progress.json"))
    verdict = progress_file.record(RIGHT)
    assert verdict.outcome == "right" and "cannot be written" in repr(verdict)


def test_nothing_is_kept_elsewhere_or_if_switched_off(tmp_path, monkeypatch, workspace):
    monkeypatch.setenv(progress_file.VARIABLE, "off")
    assert progress_file.record(RIGHT) == RIGHT and not list(workspace.iterdir())
    monkeypatch.delenv(progress_file.VARIABLE)
    monkeypatch.chdir(tmp_path)
    assert progress_file.record(RIGHT) == RIGHT and not list(workspace.iterdir())
    assert "it is not kept here" in repr(progress())


def test_the_page_links_every_chapter():
    page = progress()._repr_mimebundle_()["text/html"]
    for exercise in EXERCISES.values():
        assert f'href="{exercise.chapter}.ipynb"' in page and exercise.title.replace("'", "&#x27;") in page


def test_the_route_is_shown_and_counted():
    of_route = [exercise for exercise in EXERCISES.values() if exercise.on_route]
    assert {e.chapter[:2] for e in of_route} == set(FROM_ZERO.numbers)
    done = {of_route[0].name: "2026-01-01"}
    lines = repr(Progress(done, "")).splitlines()
    assert lines[0].endswith(f"solved, 1 of {len(of_route)} on the route")
    assert [line[2:4] for line in lines[1:-1] if line.startswith("→")] == list(FROM_ZERO.numbers)
    left = {e.name for e in EXERCISES.values() if e.optional}
    assert left and set(re.findall(r"\(○ (\w+)\)", "\n".join(lines[1:]))) == left


def test_a_folder_with_its_name_does_no_harm(workspace):
    (workspace / "progress.json").mkdir()
    verdict = progress_file.record(RIGHT)
    assert verdict.outcome == "right" and "cannot be read" in repr(verdict)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a folder that is somebody's own")
def test_a_deleted_working_directory_does_no_harm(workspace):
    workspace.rmdir()
    assert progress_file.record(RIGHT) == RIGHT
