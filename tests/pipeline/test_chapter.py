"""The chapter on roles needs neither torch nor Triton: macOS, Windows and its page run all of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib import checks  # noqa: F401  # registers the exercises
from flashlib.chapters import named
from flashlib.checks.engine.exercises import EXERCISES
from tools import notebooks

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
WITHOUT = "torch", "triton", "transformers"
# Runs the cells of a chapter in their order, then the checks of its exercises on their solutions and on a wrong
# answer, and plays what went wrong.
CHAPTER = """
import contextlib, io, json, sys
sys.modules |= dict.fromkeys({without!r})  # None: an import of it fails
import matplotlib; matplotlib.use("agg")
from flashlib.checks.engine import exercises, solutions
chapter, names = json.load(sys.stdin)
printed, space = {{}}, {{}}
for id, source in chapter:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(source, space)
    printed[id] = out.getvalue()
verdicts = {{name: exercises.examine_answer(name, solutions.program(name).function, 1).outcome for name in names}}
faulty = space["faulty_consumer"]
wrong = exercises.examine_answer("consumer", faulty, 1)
print(json.dumps([printed, verdicts, wrong.outcome, repr(wrong.run.play(faulty))]))
"""


@pytest.fixture(scope="module")
def ran():
    """What the cells print, the verdicts on solutions, that on a wrong answer, and its player."""
    cells = [(cell.id, cell.source) for cell in chapter().cells if cell.cell_type == "code"]
    given = json.dumps([cells, [one.name for one in own_exercises()]])
    command = [sys.executable, "-c", CHAPTER.format(without=WITHOUT)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=FOLDER)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def chapter():
    return notebooks.read(FOLDER / f"{named('roles').slug}.ipynb")


def own_exercises():
    return [one for one in EXERCISES.values() if one.chapter == named("roles").slug]


def test_it_says_that_it_needs_nothing():
    assert named("roles").needs == ()


@pytest.mark.process
def test_each_cell_prints_what_is_stored(ran):
    for cell in chapter().cells:
        if cell.cell_type == "code":
            stored = "".join(one.text for one in cell.outputs if one.output_type == "stream")
            assert ran[0][cell.id] == stored, cell.id


@pytest.mark.process
def test_its_exercises_are_checked_and_played(ran):
    assert len(ran[1]) == len(own_exercises()) >= 5
    assert set(ran[1].values()) == {"right"} and ran[2] == "wrong" and ran[3].startswith("PipelinePlayer")
