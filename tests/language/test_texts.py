"""The file of a language: which is chosen, what is listed for it, and what becomes of one that is there."""

import json
import sys

import pytest

from flashlib.language import texts
from tools import language


def test_english_needs_no_file(monkeypatch):
    for name in ("", "en"):
        monkeypatch.setenv(texts.VARIABLE, name)
        assert texts.chosen() == ""
    assert texts.say("a row") == texts.say_value("a row") == "a row" and texts.say_value(3) == 3


def test_a_language_that_is_not_there_is_said(monkeypatch):
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
