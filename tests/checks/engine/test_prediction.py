"""Questions are graded by value, at once, with the reason."""

import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.engine import folders, prediction  # noqa: E402
from flashlib.checks.engine.prediction import Question, predict, questions  # noqa: E402


@pytest.mark.parametrize("question", questions().values(), ids=lambda q: q.name)
def test_the_right_answer_is_right_and_its_reason_given(question):
    right = question.answer()
    verdict = predict(question.name, **right) if isinstance(right, dict) else predict(question.name, right)
    assert verdict.outcome == "right" and verdict.sentence == question.reason
    assert eval(repr(right)) == right, "solved notebooks write it down"


@pytest.mark.parametrize("question", questions().values(), ids=lambda q: q.name)
def test_a_typical_wrong_answer_is_told_what_it_overlooks(question):
    right = question.answer()
    parts = right if isinstance(right, dict) else {"": right}
    for value, why in question.wrong.items():
        said = []
        for part, expected in parts.items():
            of_part = isinstance(value, tuple) and value[0] in parts
            x = value[1] if of_part else value
            if of_part and value[0] != part:
                continue
            if prediction._wrong_kind(question, x, expected) or prediction._equal(x, expected, 0):
                continue
            verdict = predict(question.name, **{**parts, part: x}) if part else predict(question.name, x)
            said += [verdict] if why in repr(verdict) else []
            assert verdict.outcome == "wrong" and question.reason in repr(verdict)
        assert said, f"{value!r} is never wrong"


@pytest.mark.parametrize("question", questions().values(), ids=lambda q: q.name)
def test_choices_hold_the_right_answer(question):
    right = question.answer()
    for value in right.values() if isinstance(right, dict) else [right]:
        assert not isinstance(value, str) or value in question.choices
        assert prediction._wrong_kind(question, value, value) == ""


QUESTIONS = {
    "tiles": Question("tiles", lambda: 10, "because.", wrong={6: "those are the skipped ones"}),
    "length": Question("length", lambda: 2.5, "because.", tolerance=0.01),
    "shape": Question("shape", lambda: (2, 3), "because."),
    "rows": Question("rows", lambda: {1, 2}, "because."),
    "which": Question("which", lambda: "l", "because.", choices=("m", "l")),
    "nan": Question("nan", lambda: True, "because."),
    "two": Question("two", lambda: {"fp16": 12, "fp32": 89}, "because."),
}


@pytest.fixture
def some(monkeypatch):
    monkeypatch.setattr(prediction, "questions", lambda: QUESTIONS)


@pytest.mark.parametrize(
    "name, right, wrong",
    [
        ("tiles", [10, 10.0], [6, 11, float("nan"), float("inf")]),
        ("length", [2.5, 2.51], [2.6, -2.5]),
        ("shape", [(2, 3), [2, 3]], [(3, 2)]),
        ("rows", [{1, 2}, [2, 1]], [{1}]),
        ("which", ["l"], ["m"]),
        ("nan", [True], [False]),
    ],
)
def test_values(some, name, right, wrong):
    assert all(predict(name, x).outcome == "right" for x in right)
    assert all(predict(name, x).outcome == "wrong" for x in wrong)
    assert predict(name, ...).outcome == "not answered yet"


@pytest.mark.parametrize("name, odd", [("tiles", "10"), ("tiles", True), ("shape", 6), ("which", "k"), ("nan", 1)])
def test_an_answer_of_another_kind_is_told_which_is_meant(some, name, odd):
    verdict = predict(name, odd)
    assert verdict.outcome == "not answered yet" and repr(odd) in verdict.sentence
    assert "because" not in repr(verdict), "a slip of form does not give the answer away"


def test_a_number_may_stand_for_the_choice_that_is_written_so(some, monkeypatch):
    choices = ("0", "1", "inf", "-inf", "nan")
    monkeypatch.setitem(QUESTIONS, "value", Question("value", lambda: "nan", "because.", choices=choices))
    assert predict("value", float("nan")).outcome == "right"
    for wrong in (0, 0.0, -float("inf"), float("inf"), 1):
        assert predict("value", wrong).outcome == "wrong"
    assert predict("value", 3).outcome == "not answered yet"
    monkeypatch.setitem(QUESTIONS, "number", Question("number", lambda: float("nan"), "because."))
    assert predict("number", float("nan")).outcome == "right" and predict("number", 0).outcome == "wrong"


def test_a_near_guess_has_a_sentence_of_its_own(some):
    assert predict("length", 2.4).sentence == "not 2.4, but 2.5 (near: 4.0% too little)."
    assert "right but for the unit" in predict("length", 2.5e9).sentence
    assert predict("length", 5).sentence == "not 5, but 2.5."


def test_what_is_overlooked(some):
    assert predict("tiles", 6).sentence == "not 6, but 10 (those are the skipped ones)."
    assert predict("tiles", 7).sentence == "not 7, but 10."


def test_parts(some):
    assert predict("two", fp16=12, fp32=89).outcome == "right"
    assert predict("two", fp16=..., fp32=...).outcome == "not answered yet"
    assert predict("two", fp16=12, fp32=...).sentence == "right so far; left: fp32"
    assert predict("two", fp16=12, fp32="x").outcome == "not answered yet"
    assert "no part 'fp8'" in predict("two", fp8=1).sentence
    assert predict("two", 12).sentence == "it has several parts: checks.predict('two', fp16=..., fp32=...)"


def test_the_reason_waits_for_all_parts(some):
    verdict = predict("two", fp16=11, fp32=...)
    assert verdict.outcome == "not answered yet" and verdict.sentence == "fp16: not 11, but 12; left: fp32"
    assert "because" not in repr(verdict) and "because" in repr(predict("two", fp16=11, fp32=88))


def test_what_is_overlooked_in_one_part(some):
    QUESTIONS["two"].wrong[("fp32", 12)] = "that is fp16"
    assert predict("two", fp16=12, fp32=12).sentence == "fp32: not 12, but 89 (that is fp16)."
    assert "that is fp16" not in predict("two", fp16=13, fp32=89).sentence


def test_an_unknown_question_is_no_error(some):
    assert predict("tile", 3).sentence == "there is no question 'tile'; did you mean 'tiles'?"


def test_an_answer_that_cannot_be_compared_is_no_error(some):
    import numpy as np

    for name in QUESTIONS:
        for odd in (np.ones(2), object(), None, "", (1, "a"), {1: 2}, np.float32(10)):
            assert predict(name, odd).outcome in ("wrong", "right", "not answered yet", "not checked")


def test_names_are_unique():
    asked = [question.name for module in folders.modules("questions.py") for question in module.QUESTIONS]
    assert len(asked) == len(set(asked)) == len(questions())
