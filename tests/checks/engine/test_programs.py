"""Programs, their edits, and the tables of mistakes."""

import pytest

pytest.importorskip("cloudpickle")
import numpy as np  # noqa: E402

from flashlib.checks.engine import mistake_tables  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.engine.program import ProgramText  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402

STEP = ProgramText(
    "def step(m, x):\n    larger = np.maximum(m, x)\n    alpha = np.exp(m - larger)\n    return alpha", {"np": np}
)


def test_a_line_replaces_the_one_that_assigns_the_same_name():
    assert STEP.function(1.0, 1.0) == 1
    assert STEP.edited("alpha = 3").function(1.0, 2.0) == 3
    assert STEP.edited("larger = x; return larger").function(5.0, 2.0) == 2


def test_a_text_that_occurs_once_is_replaced():
    assert STEP.edited("m - larger -> larger - m").function(1.0, 2.0) == np.exp(1)
    for change in ("m -> x", "lower -> x", "beta = 3", "for x in m:"):
        with pytest.raises(ValueError, match="once|replace one line"):
            STEP.edited(change)


def test_a_text_that_begins_or_ends_with_a_blank_is_in_backticks():
    assert STEP.edited("`m - ` ->").function(1.0, 2.0) == np.exp(2)
    both = "` - larger` -> ` - larger + 1`; return alpha -> return 2 * alpha"
    assert STEP.edited(both).function(1.0, 1.0) == 2 * np.e
    assert STEP.edited("return alpha ->").function(1.0, 1.0) is None
    with pytest.raises(ValueError, match="' alpha' occurs 2 times"):
        STEP.edited("` alpha` -> beta")


def test_other_terms_apply_to_the_program_and_to_its_edits():
    base_2 = STEP.in_terms({"np.exp(": "np.exp2("})
    assert base_2.function(1.0, 2.0) == 0.5
    assert base_2.edited("alpha = np.exp(larger - m)").function(1.0, 2.0) == 2


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a text as a file of tables, and adds them to those found."""

    def read(text, found, **options):
        (file := tmp_path / "mistakes.txt").write_text(text)
        mistake_tables.read(file, found, **options)
        return found

    return read


def test_a_table_is_read(read):
    found = {"any": {}}
    read("$WHY = so\n[a]\n# a comment\none*: first: $WHY\n    x = 1\n    y -> z\n[b]\nuse a\none: other\n", found)
    assert found["a"]["one"] == mistake_tables.Mistake("one", "first: so", ("x = 1", "y -> z"), True)
    assert found["b"]["one"] == mistake_tables.Mistake("one", "other", ("x = 1", "y -> z"), False)
    read("[c]\nuse a\none: third\n    x = 2\n[d]\nuse a\ndrop one\n", found)
    assert found["c"]["one"].ways == ("x = 2",) and not found["d"]
    for odd in ("nothing", "[a]"):
        with pytest.raises(ValueError, match="line 1"):
            read(odd, found)


def test_further_indented_lines_continue_the_line_above(read):
    found = read("[a]\none: first\n    x -> for n in y:\n            z\n\n    v = {1|2}\n", {})
    assert found["a"]["one"].ways == (r"x -> for n in y:\n        z", "v = 1", "v = 2")
    found = read("[a]\none: first\n    x -> for n in y:\n            z;\n        v = 1;\n        w -> 2\n", {})
    assert found["a"]["one"].ways == (r"x -> for n in y:\n        z; v = 1; w -> 2",)


def test_a_table_may_begin_with_its_program(read):
    found = read("[a]\n    def f(x):\n        return x\nuse b\n", read("[b]\none: first\n", {}))
    assert (
        found["a"].program == "def f(x):\n    return x\n"
        and found["b"].program == ""
        and list(found["a"]) == ["one"]
    )


def test_an_id_may_come_again_where_ways_are_joined_and_each_keeps_its_words(read):
    text = "[a]\none: first\n    x = 1\none: second\n    x = 2\none: first\n    x = 3\n"
    assert read(text, {})["a"]["one"].ways == ("x = 3",)
    rows = [(row.id, row.sentence, row.ways) for row in read(text, {}, joined=True)["a"].values()]
    assert rows == [("one", "first", ("x = 1", "x = 3")), ("one", "second", ("x = 2",))]


@pytest.mark.parametrize(
    "text, said",
    [
        ("one: first", "a row belongs in a table"),
        ("[a]\nOne more", "a row is `id: sentence`"),
        ("[a]\none: first\n     x -> y", "in backticks"),
        ("[a]\nuse a\n[b]\nuse c", "there is no table c above; there are a, b"),
        ("[a]\none: first\ndrop two", "there is no row two above to drop; there are one"),
        ("[a]\none: first\n[b]\none: first\nuse a", "one would overwrite the rows above"),
        ("[a]\none: first\n[a]", "there are two tables a"),
    ],
)
def test_an_error_names_the_file_and_the_line(read, text, said):
    with pytest.raises(ValueError) as error:
        read(text, {})
    number = len(text.splitlines())
    assert f"mistakes.txt, line {number}: " in str(error.value) and said in str(error.value)


def test_errors_in_our_own_tables_name_the_path_in_the_repository(monkeypatch):
    path = mistake_tables.CHECKS / "shared" / "any.txt"
    with pytest.raises(ValueError, match="^flashlib/checks/shared/any.txt, line 3: there are two tables any"):
        mistake_tables.read(path, {"any": {}})


def test_blanks_at_the_end_of_a_line_are_not_needed():
    for path in mistake_tables.CHECKS.rglob("*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line != line.rstrip()] == [], path


@each_case(EXERCISES.values(), lambda exercise: exercise.name)
def test_every_way_to_make_a_mistake_can_be_made(exercise):
    """Otherwise a hypothesis would raise, and explain an answer that raises."""
    for mistake in exercise.known.mistakes():
        assert mistake.sentence == mistake.sentence.strip() and not mistake.sentence.endswith(".")
        for way in mistake.ways:
            compile(exercise.known.program.edited(way).source, way, "exec")
