"""How a verdict is shown."""

from flashlib.checks.engine import verdict
from flashlib.checks.engine.verdict import MIME, STYLES, Outcome, Verdict

WRONG = Verdict("merge", "wrong", "l < 0", (("input", "a = 1\nb = 2"), ("given", "<nan>")), printed="here\n")


def test_text():
    assert repr(Verdict("merge", "right", "in all 3 cases")) == "right: in all 3 cases"
    assert repr(Verdict("merge", "not solved yet", "")) == "not solved yet"
    assert repr(WRONG).splitlines() == [
        "wrong: l < 0",
        "  input: a = 1",
        "         b = 2",
        "  given: <nan>",
        "  it printed:",
        "    here",
    ]


def test_labels_are_aligned_by_their_width(monkeypatch):
    texts = {"input": "输入", "given": "你的", "wrong": "错误", "{0}:": "{0}：", "{0}: {1}": "{0}：{1}"}
    monkeypatch.setattr(verdict, "say", lambda text: texts.get(text, text))
    assert repr(WRONG).splitlines()[:4] == ["错误：l < 0", "  输入： a = 1", "         b = 2", "  你的： <nan>"]
    assert "<b>错误：</b>" in WRONG._repr_mimebundle_()["text/html"]


def test_page_and_data():
    bundle = WRONG._repr_mimebundle_()
    assert bundle["text/plain"] == repr(WRONG)
    assert "<b>Wrong:</b> l &lt; 0" in bundle["text/html"] and "&lt;nan&gt;" in bundle["text/html"]
    assert bundle[MIME] == {"exercise": "merge", "outcome": "wrong", "sentence": "l < 0"}


def test_every_outcome_has_a_look():
    assert set(STYLES) == set(Outcome)
    assert len({mark for _, mark in STYLES.values()}) >= 4, "told apart without colours"


def test_only_a_run_can_be_played():
    assert WRONG.play() is WRONG
