"""The file of a language: which is chosen, what is listed for it, and what becomes of one that is there.

A text that is listed is whole: other languages have another order of words, so the code must not join pieces.
"""

import json
import re
import sys

import pytest

from flashlib.language import reading, texts
from tools import language

EDGE = re.compile(r"^[\s,;:)]|[\s,(]$")  # what would stand in the middle of a sentence
GLUED = re.compile(r"[A-Za-z]{2}\{\d+\}|\{\d+\}(?:\{\d+\}|[A-Za-z]{2})|[,;:]\{\d+\}")  # "row{0}": an s, or nothing
WORD = re.compile(r"[A-Za-z]{2}")
CHOSEN = {"is", "are", "was", "were", "has", "have", "do", "does", "an", "its", "their"}  # by a word beside them


def test_english_needs_no_file(monkeypatch):
    for name in ("", "en"):
        monkeypatch.setenv(texts.VARIABLE, name)
        assert texts.chosen() == ""
    assert texts.say("a row") == texts.say_value("a row") == "a row" and texts.say_value(3) == 3


def test_a_missing_language_is_reported(monkeypatch):
    monkeypatch.setenv(texts.VARIABLE, "xx")
    with pytest.raises(ValueError, match=r"FLASHLIB_LANGUAGE is 'xx', .*xx\.json is not there; there are en"):
        texts.path(texts.chosen())


def test_texts_of_all_kinds_are_listed():
    listed = set(language.listed())
    assert {"Waiting for Python, which is busy.", "a prediction", "Try again"} <= listed  # of scripts
    assert "m is wrong for {where}" in listed or any("{" in one for one in language.sentences())  # of tables
    assert any(one.startswith("K and V are both kept") for one in listed)  # of questions
    assert "play" in language.listed(words=True) and "play" not in listed


def test_a_file_is_brought_up_to_date(monkeypatch, tmp_path, capsys):
    path = tmp_path / "de.json"
    path.write_text(json.dumps({"Try again": "Noch einmal", "a text of yesterday": "von gestern"}))
    monkeypatch.setattr(sys, "argv", ["language", str(path)])
    monkeypatch.delenv(texts.VARIABLE, raising=False)
    language.main()
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["Try again"] == "Noch einmal" and made["a prediction"] == "" and "a text of yesterday" not in made
    assert "gone: 'a text of yesterday': 'von gestern'" in capsys.readouterr().out


def is_piece(text):
    """Return whether a text has to be joined to another."""
    bare = text.replace("{{", "").replace("}}", "")
    glued = " " in bare.strip() and GLUED.search(bare)  # lse{0} is a name
    return bool(WORD.search(re.sub(r"\{\d+\}", "", bare)) and (EDGE.search(bare) or glued))


def test_no_text_is_a_piece_of_a_sentence():
    found = [text for text in language.strings() if reading.is_text(text)]
    assert len(found) > 1000
    assert [text for text in found if is_piece(text)] == []


def test_no_verb_or_pronoun_is_a_value_of_a_sentence():
    """Where it depends on a number, by_number chooses among two sentences."""
    assert CHOSEN.isdisjoint(map(str.strip, language.strings()))


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
