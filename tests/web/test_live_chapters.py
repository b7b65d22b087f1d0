"""Which cells run on a page, and that they print what is stored in any order: backwards, at random, twice."""

import json
import random

import pytest

pytest.importorskip("traitlets")

from flashlib.chapters import NOTEBOOKS, named  # noqa: E402
from tests.required import missing  # noqa: E402
from tests.web import live_chapters, page_python  # noqa: E402
from web.live import cells, parts  # noqa: E402

LEAST = 110  # exercises that can be solved on a page
# The verdicts on the solutions of the exercises that are named.
VERDICTS = """
from web.live.inside import stand_ins
stand_ins.install()
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


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A function that returns the folder with the packages of a page; kernels: of a chapter with kernels."""
    made = {}

    def of(kernels):
        if kernels and (lost := parts.no_kernels()):
            missing(lost)
        if kernels not in made:
            made[kernels] = page_python.unpacked(tmp_path_factory.mktemp("page"), kernels)
        return made[kernels]

    return of


@pytest.fixture(scope="module")
def solvable():
    """The exercises that can be solved on the page of each chapter that is live: {name: [exercise]}."""
    running = {one.name: live_chapters.runs_in(one) for one in NOTEBOOKS}
    return {name: [*filter(None, map(cells.exercise_of, found))] for name, found in running.items() if found}


def test_no_chapter_is_live_no_longer_and_no_exercise_is_lost(solvable):
    assert {name: len(exercises) for name, exercises in solvable.items()} == live_chapters.EXERCISES
    assert sum(live_chapters.EXERCISES.values()) >= LEAST


def test_all_of_roles_runs_on_its_page():
    told, kernels = live_chapters.told_of(named("roles"))
    assert not kernels and len(told) > 30 and [one["id"] for one in told if one["missing"]] == []


@pytest.mark.process
@pytest.mark.parametrize("kernels", [False, True])
def test_what_can_be_solved_on_a_page_is_checked_without_what_it_lacks(solvable, packages, kernels):
    chapters = [one for one in live_chapters.LIVE if live_chapters.told_of(one)[1] == kernels]
    names = [name for one in chapters for name in solvable[one.name]]
    verdicts = json.loads(page_python.run(packages(kernels), VERDICTS, json.dumps(names)))
    assert {name: said for name, said in zip(names, verdicts, strict=True) if said != "right"} == {}


@pytest.mark.process
@pytest.mark.parametrize("chapter", live_chapters.LIVE, ids=lambda one: one.name)
def test_a_cell_prints_its_stored_output_whatever_ran_before(packages, chapter):
    told, kernels = live_chapters.told_of(chapter)
    stored = {cell.id: cell for cell in live_chapters.read(chapter).cells}
    asked = [one["id"] for one in told if not one["missing"] and "checks." not in stored[one["id"]].source]
    sources = {id: cell.source for id, cell in stored.items()}
    questions = [{"do": "run", "cell": id, "sources": sources} for id in orders(asked)]
    answers = page_python.answers(packages(kernels), told, questions)
    for question, answer in zip(questions, answers, strict=True):
        live_chapters.compare(answer, stored[question["cell"]])
