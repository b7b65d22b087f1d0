"""A text is whole: words have another order in another language, so the code must not join pieces of sentences."""

import re

import pytest

from flashlib.language import reading
from tools import language

EDGE = re.compile(r"^[\s,;:)]|[\s,(]$")  # what would stand in the middle of a sentence
GLUED = re.compile(r"[A-Za-z]{2}\{\d+\}|\{\d+\}(?:\{\d+\}|[A-Za-z]{2})|[,;:]\{\d+\}")  # "row{0}": an s, or nothing
WORD = re.compile(r"[A-Za-z]{2}")
MAY = {
    *(" per byte", " per second"),  # units, as they may be typed
    *(", but ", ", but {0}", "not {0}{1}{2}", "; did you mean {0}?", "there is no question {0}{1}"),  # of cards
    *(" of {0}", "A card asks for your prediction{0}.", "Hint: ", "Why: "),
}


def is_piece(text):
    """Return whether a text has to be joined to another."""
    bare = text.replace("{{", "").replace("}}", "")
    glued = " " in bare.strip() and GLUED.search(bare)  # lse{0} is a name
    return bool(WORD.search(re.sub(r"\{\d+\}", "", bare)) and (EDGE.search(bare) or glued))


def test_no_text_is_a_piece_of_a_sentence():
    texts = [text for text in language.strings() if reading.is_text(text)]
    assert len(texts) > 1000
    assert [text for text in texts if is_piece(text) and text not in MAY] == []


@pytest.mark.parametrize(
    "text",
    [" and ", ", the largest so far", "Relative error of ", "; {0} marked", "{0} merge{1}", "merged as a tree,",
     "Waiting for Python{0}.", "dashed: before{0}", "Now: {0}{1}", ": too much"],
)  # fmt: skip
def test_pieces_are_found(text):
    assert is_piece(text)


@pytest.mark.parametrize("text", ["row {0} of {1}", "lse{0}", "at {0}.", "{0} KB, all of it", "n = {0}; {1} rows"])
def test_whole_texts_are_not(text):
    assert not is_piece(text)
