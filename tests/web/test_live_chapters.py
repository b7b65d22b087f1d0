"""Which cells run on a page, and that they print what is stored in any order: backwards, at random, twice."""

import json
import os
import random
import subprocess
import sys

import pytest

pytest.importorskip("traitlets")

from flashlib.chapters import NOTEBOOKS  # noqa: E402
from tests.web import live_chapters  # noqa: E402
from web.live import cells, parts  # noqa: E402

LEAST = 37  # exercises that can be solved on a page
# Hides the packages that a page lacks.
LACKS = """
import sys
class Finder:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *more):
        lacks = name.split(".")[0] in ("torch", "triton", "transformers", "ipywidgets")
        return None if lacks else self.finder.find_spec(name, *more)
sys.meta_path[:] = map(Finder, sys.meta_path)
"""
# The kernel with its stand-ins, in a new Python process: each question is a line, and so is each answer.
KERNEL = f"""{LACKS}
import json
from web.live.inside import kernel
out = sys.stdout
page = kernel.begin(sys.stdin.readline(), lambda *event: None)
for line in sys.stdin:
    print(page.ask(line)[0], file=out, flush=True)
"""
# The verdicts on the solutions of the exercises that are named.
VERDICTS = f"""{LACKS}
import json
from flashlib import checks
from flashlib.checks.engine import exercises, solutions
names = json.loads(sys.stdin.read())
found = [exercises.examine_answer(name, solutions.program(name).function, 1).outcome for name in names]
print(json.dumps([*map(str, found)]))
"""


def orders(ids):
    """Return the ids backwards, at random, and each twice."""
    rng = random.Random(0)
    return [*ids[::-1], *rng.sample(ids, len(ids)), *(id for id in ids for _ in range(2))]


def printed(outputs):
    return "".join(one["text"] for one in outputs if one["kind"] == "out").strip()


def run(code, given):
    """Run code in a new Python process, with this as its input; return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True,
        cwd=parts.ROOT / "notebooks", env={**os.environ, "PYTHONPATH": str(parts.ROOT)},
    )  # fmt: skip
    assert not ran.returncode, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def solvable():
    """The exercises that can be solved on the page of each chapter that is live: {name: [exercise]}."""
    running = {one.name: live_chapters.runs_in(live_chapters.read(one)) for one in NOTEBOOKS}
    return {name: [*filter(None, map(cells.exercise_of, found))] for name, found in running.items() if found}


def test_no_chapter_is_live_no_longer_and_no_exercise_is_lost(solvable):
    assert {name: len(exercises) for name, exercises in solvable.items()} == live_chapters.EXERCISES
    assert sum(live_chapters.EXERCISES.values()) >= LEAST


@pytest.mark.process
def test_what_can_be_solved_on_a_page_is_checked_without_what_it_lacks(solvable):
    names = [name for exercises in solvable.values() for name in exercises]
    verdicts = json.loads(run(VERDICTS, json.dumps(names)))
    assert {name: said for name, said in zip(names, verdicts, strict=True) if said != "right"} == {}


@pytest.mark.process
@pytest.mark.parametrize("chapter", live_chapters.LIVE, ids=lambda one: one.name)
def test_a_cell_prints_its_stored_output_whatever_ran_before(chapter):
    nb = live_chapters.read(chapter)
    told = cells.of_chapter(nb.cells)
    stored = {cell.id: cell for cell in nb.cells}
    asked = [one["id"] for one in told if not one["missing"] and "checks." not in stored[one["id"]].source]
    questions = [
        {"do": "run", "cell": id, "sources": {c: stored[c].source for c in stored}} for id in orders(asked)
    ]
    lines = [json.dumps(told), *map(json.dumps, questions)]
    answers = run(KERNEL, "\n".join(lines) + "\n")
    for question, line in zip(questions, answers.splitlines(), strict=True):
        answer, cell = json.loads(line), stored[question["cell"]]
        assert not any(one["raised"] for one in answer["first"]), answer
        texts = [o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout"]
        if not live_chapters.says_what_is_here(cell):
            assert printed(answer["outputs"]) == "".join(texts).strip(), cell.id
