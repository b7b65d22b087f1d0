"""Wrong answers that are edits of right ones are read as described in `tests.checks.answers`."""

import pytest

pytest.importorskip("cloudpickle")

from flashlib.checks.engine import solutions  # noqa: E402
from tests.checks import answers  # noqa: E402


@pytest.fixture
def edits(tmp_path):
    """Return a function that reads a text as a file of edits."""

    def read(text):
        (path := tmp_path / "edits.txt").write_text(text)
        return list(answers.edits(path))

    return read


def test_an_edit_is_of_the_solution_or_of_the_right_answer_with_these_words(edits):
    words, program = next((a.words, a.program) for a in answers._written("right*.py") if a.exercise == "longest")
    text = "[loop]\nid: first\n    return -> return 1 +\n[longest]\nuse loop\n"
    of_solution, of_other = edits(f"{text}[longest: {words}]\nid: second\n    return -> return 2 +\n")
    assert of_solution.source == solutions.program("longest").source.replace("return", "return 1 +")
    assert of_other[:3] == ("longest", "id", "second") and of_other.origin == "edit"
    assert of_other.source == program.source.replace("return", "return 2 +")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[longest]\nid: words\n    nowhere -> x\n", "\\[longest\\], id: words: 'nowhere' occurs 0 times"),
        ("[longest]\nid: words\n    e -> x\n", "id: words: 'e' occurs .* times, not once"),
        ("[longest]\nid: words\n", "id: words: an edit belongs below it"),
        ("[long]\nid: words\n    x -> y\n", "there is no exercise 'long'; there are .*, longest, "),
        ("[longest: no such]\nid: words\n    x -> y\n", "0 right answers .*; there are\n\\[longest: "),
        ("[sink: a sigmoid]\nid: words\n    x -> y\n", "2 right answers"),
    ],
)
def test_an_error_names_the_file_and_the_row(edits, text, said):
    with pytest.raises(ValueError, match=f"(?s)edits.txt, .*{said}"):
        edits(text)
