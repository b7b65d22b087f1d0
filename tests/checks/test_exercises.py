"""Exercises, questions and notebooks match."""

import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
from flashlib import checks  # noqa: E402
from flashlib.chapters import NOTEBOOKS as REGISTERED  # noqa: E402
from flashlib.checks.engine import folders, solutions  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES, examine_answer  # noqa: E402
from flashlib.checks.engine.prediction import questions  # noqa: E402
from flashlib.checks.engine.verdict import Outcome  # noqa: E402
from tests.checks import answers, test_answers  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402
from tools import minutes, notebooks, solved  # noqa: E402

TODO = re.compile(r"\bTODO\b")  # the word: letters of a picture may spell it
ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = {path.stem: notebooks.read(path) for path in notebooks.chapters(ROOT / "notebooks")}
KINDS = ("easy", "medium", "hard")


def cells(chapter, tag):
    return [cell for cell in CHAPTERS[chapter].cells if tag in notebooks.tags(cell)]


def test_there_are_enough():
    assert len(EXERCISES) >= 20
    assert [e.chapter for e in EXERCISES.values()] == sorted(e.chapter for e in EXERCISES.values())


@each_case(EXERCISES.values(), lambda exercise: exercise.name)
def test_an_exercise_has_a_text_a_stub_and_a_check(exercise):
    (text,) = cells(exercise.chapter, f"exercise:{exercise.name}")
    (stub,) = cells(exercise.chapter, f"stub:{exercise.name}")
    assert f"\n{exercise.heading}\n" in f"\n{text.source}"
    assert exercise.difficulty in KINDS and 1 <= exercise.minutes <= 75
    hints = re.findall("<summary>(Hint.*?)</summary>", text.source)
    assert 1 <= len(hints) <= 3 and len({*hints}) == len(hints), "each hint has a different name"
    assert f"def my_{exercise.name}(" in stub.source and "NotImplementedError" in stub.source
    order = [cell.id for cell in CHAPTERS[exercise.chapter].cells]
    after = CHAPTERS[exercise.chapter].cells[order.index(stub.id) + 1 :]
    call = f"checks.{exercise.name}(my_{exercise.name})"
    assert any(cell.source == call for cell in after), f"a cell with {call} and nothing else"
    assert order.index(text.id) < order.index(stub.id)


@each_case(test_answers.EXERCISES, lambda exercise: exercise.name)
def test_an_answer_that_was_only_begun_is_not_solved_yet(exercise):
    if exercise.triton:
        import flashlib.kernels  # noqa: F401  before Triton
    (stub,) = cells(exercise.chapter, f"stub:{exercise.name}")
    begun = stub.source.replace("raise NotImplementedError", "begun = 1; raise NotImplementedError")
    answer = solutions.build(exercise.name, begun)
    assert examine_answer(exercise.name, answer, 1).outcome == Outcome.NOT_SOLVED


@pytest.mark.parametrize("chapter", REGISTERED, ids=lambda c: c.slug)
def test_an_exercise_in_an_optional_section_is_registered_as_such(chapter):
    said = {}
    for cell, text, is_optional in minutes.sections(CHAPTERS[chapter.slug]):
        if minutes.EXERCISE.search(text):
            (name,) = (tag.partition(":")[2] for tag in notebooks.tags(cell) if tag.startswith("exercise:"))
            said[name] = is_optional
    registered = {name: e.optional for name, e in EXERCISES.items() if e.chapter == chapter.slug}
    assert said == registered, "optional=True"


def test_no_tag_without_an_exercise():
    tags = [tag for nb in CHAPTERS.values() for cell in nb.cells for tag in notebooks.tags(cell)]
    for kind in ("exercise", "stub"):
        named = [tag.partition(":")[2] for tag in tags if tag.startswith(f"{kind}:")]
        assert sorted(named) == sorted(EXERCISES)


def test_every_exercise_has_a_solution_and_no_other():
    assert sorted(solutions.names()) == sorted(EXERCISES)


def test_a_folder_of_a_chapter_is_registered_and_a_package():
    # Not what an older version left.
    inside = [path for path in folders.FOLDER.iterdir() if any(path.glob("*.py"))]
    unknown = {path.name for path in inside} - {chapter.name for chapter in REGISTERED}
    assert not unknown, f"register {unknown} in flashlib/chapters.py, or their exercises are not found"
    bare = [path.name for path in inside if not (path / "__init__.py").exists()]
    assert not bare, f"{bare} have no __init__.py, so a wheel would lack them"


def test_nothing_is_left_to_fill_in():
    """`tools.new_exercise` marks everything that must be replaced with TODO."""
    inside = (path for folder in (folders.FOLDER, answers.FOLDER) for path in folder.rglob("*.*"))
    paths = [*(path for path in inside if path.suffix in (".py", ".txt")), *(ROOT / "notebooks").glob("*.ipynb")]
    left = [path.relative_to(ROOT).as_posix() for path in paths if TODO.search(path.read_text(encoding="utf-8"))]
    assert not left, f"fill in what says TODO in {', '.join(left)}"


def test_an_exercise_without_a_solution_is_named():
    with pytest.raises(KeyError, match="the exercise none has no solution: write it below a line `# exercise"):
        solutions.program("none")


def test_the_name_of_an_exercise_does_not_hide_a_module():
    modules = {path.stem for path in (ROOT / "flashlib" / "checks").iterdir()}
    assert not modules & set(EXERCISES)
    assert all(getattr(checks, name) is exercise for name, exercise in EXERCISES.items())


def test_every_question_is_asked_once_and_unanswered():
    sources = [cell.source for nb in CHAPTERS.values() for cell in nb.cells if cell.cell_type == "code"]
    asked = [name for source in sources for name in re.findall(r'^checks\.predict\("(\w+)"\)$', source)]
    assert sorted(asked) == sorted(questions())
    assert sum("checks.predict(" in source for source in sources) == len(asked)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_question_is_marked(chapter):
    """The text above a card contains the question, in the same section as the card."""
    text = ""
    for cell in CHAPTERS[chapter].cells:
        if cell.source.startswith("checks.predict("):
            section = re.split(r"(?m)^#+ ", text)[-1]
            assert "**Predict.**" in section, f"mark the question of {cell.source} with **Predict.**"
        elif cell.cell_type == "markdown":
            text = cell.source


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_folded_solutions_and_the_solved_notebook_are_up_to_date(chapter):
    nb = CHAPTERS[chapter]
    how = f"run: make notebooks CHAPTER={chapter[:2]}"
    assert [c.source for c in solved.with_solutions(nb).cells] == [c.source for c in nb.cells], how
    path = ROOT / "notebooks" / notebooks.SOLVED / f"{chapter}.ipynb"
    assert path.exists() == solved.asks(nb), how
    if path.exists():
        stored = [c.source for c in notebooks.read(path).cells]
        assert stored == [c.source for c in solved.solved(nb).cells], how


@pytest.mark.parametrize("path", notebooks.find(ROOT / "notebooks" / notebooks.SOLVED), ids=lambda p: p.stem)
def test_in_a_solved_notebook_everything_is_right(path):
    outcomes = [
        output.data[checks.engine.verdict.MIME]["outcome"]
        for cell in notebooks.read(path).cells
        for output in cell.get("outputs", [])
        if checks.engine.verdict.MIME in output.get("data", {})
    ]
    assert outcomes and set(outcomes) == {"right"}
