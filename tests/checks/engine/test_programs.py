"""Programs, their edits, and the tables of mistakes."""

import pytest

pytest.importorskip("cloudpickle")
import numpy as np  # noqa: E402

from flashlib.checks.engine import mistakes  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.engine.program import Program  # noqa: E402

STEP = Program(
    "def step(m, x):\n    larger = np.maximum(m, x)\n    alpha = np.exp(m - larger)\n    return alpha", {"np": np}
)


def test_a_line_takes_the_place_of_the_one_that_assigns_the_same_name():
    assert STEP.function(1.0, 1.0) == 1
    assert STEP.edited("alpha = 3").function(1.0, 2.0) == 3
    assert STEP.edited("larger = x; return larger").function(5.0, 2.0) == 2


def test_text_is_exchanged_where_it_stands_once():
    assert STEP.edited("m - larger -> larger - m").function(1.0, 2.0) == np.exp(1)
    for change in ("m -> x", "lower -> x", "beta = 3", "for x in m:"):
        with pytest.raises(ValueError, match="once|replace one line"):
            STEP.edited(change)


def test_other_terms_hold_for_the_program_and_for_its_edits():
    base_2 = STEP.in_terms({"np.exp(": "np.exp2("})
    assert base_2.function(1.0, 2.0) == 0.5
    assert base_2.edited("alpha = np.exp(larger - m)").function(1.0, 2.0) == 2


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a text as a file of tables, and adds these to those found."""

    def read(text, found, **options):
        (file := tmp_path / "mistakes.txt").write_text(text)
        mistakes.read(file, found, **options)
        return found

    return read


def test_a_table_is_read(read):
    found = {"any": {}}
    read("$WHY = so\n[a]\n# a comment\none*: first: $WHY\n    x = 1\n    y -> z\n[b]\nuse a\none: other\n", found)
    assert found["a"]["one"] == mistakes.Mistake("one", "first: so", ("x = 1", "y -> z"), True)
    assert found["b"]["one"] == mistakes.Mistake("one", "other", ("x = 1", "y -> z"), False)
    read("[c]\nuse a\none: third\n    x = 2\n[d]\nuse a\ndrop one\n", found)
    assert found["c"]["one"].ways == ("x = 2",) and not found["d"]
    for odd in ("nothing", "[a]"):
        with pytest.raises(ValueError, match="line 1"):
            read(odd, found)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.name)
def test_every_way_to_make_a_mistake_can_be_made(exercise):
    """Else a hypothesis would raise, and explain an answer that raises."""
    for mistake in exercise.known.mistakes():
        assert mistake.sentence == mistake.sentence.strip() and not mistake.sentence.endswith(".")
        for way in mistake.ways:
            compile(exercise.known.program.edited(way).source, way, "exec")
