"""Questions are graded by value, at once; a wrong guess gets a hint, and the answer on request."""

import ast
import functools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.engine import folders, prediction  # noqa: E402
from flashlib.checks.engine.answer_types import written  # noqa: E402
from flashlib.checks.engine.grade import equal, gives_away, quoted  # noqa: E402
from flashlib.checks.engine.prediction import Question, predict, questions  # noqa: E402
from tests.checks.each_case import each_case  # noqa: E402
from tests.checks.engine import guesses  # noqa: E402


def answered(question, given, show=False):
    """Return the Verdict on values for all parts, {part: value}."""
    return (
        predict(question.name, given[""], show=show) if "" in given else predict(question.name, show=show, **given)
    )


def typed(question, value):
    """Return a field's value in the form that a call accepts."""
    choices = {str(choice): choice for choice in question.choices}
    return [choices.get(x, x) for x in value] if isinstance(value, list) else value


@functools.cache
def in_solved_notebooks():
    """Return the answers in the solved notebooks: {question: {part: value}}."""
    found = {}
    for path in (Path(__file__).parents[3] / "notebooks" / "solutions").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and source.startswith("checks.predict("):
                call = ast.parse(source).body[0].value
                name, *only = map(ast.literal_eval, call.args)
                parts = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
                found[name] = {"": only[0]} if only else parts
    return found


def to_four_digits(x):
    return float(f"{x:.4g}") if isinstance(x, float) else x


@each_case(questions().values(), lambda question: question.name)
def test_the_right_answer_is_right_and_its_reason_given(question):
    right = question.answer()
    parts = right if isinstance(right, dict) else {"": right}
    assert in_solved_notebooks()[question.name] == {part: to_four_digits(x) for part, x in parts.items()}
    verdict = answered(question, parts)
    assert verdict.outcome == "right" and verdict.sentence == question.reason
    assert eval(repr(right)) == right, "solved notebooks write it down"


@each_case(questions().values(), lambda question: question.name)
def test_the_right_answer_can_be_entered(question):
    """It is one of the choices, or finite: an answer that may be inf or nan must be a choice."""
    fields = prediction._fields(question)  # raises if it is not one of the choices
    json.dumps(fields, allow_nan=False)
    assert all(field["kind"] == "number" or not field["unit"] for field in fields)


@each_case(questions().values(), lambda question: question.name)
def test_the_verdict_on_a_typical_wrong_answer_says_what_it_overlooks(question):
    said = set()
    for field in prediction._fields(question):
        parts = {f["part"]: f["right"] for f in prediction._fields(question)}
        for value, why in field["wrong"]:
            if equal(value, field["right"], field["tolerance"]):
                continue
            given = {part: typed(question, x) for part, x in {**parts, field["part"]: value}.items()}
            for show in (False, True):
                verdict = answered(question, given, show)
                assert verdict.outcome == "wrong" and (question.reason in repr(verdict)) == show
            said |= {why} if why in verdict.sentence else set()
    assert said >= set(question.wrong.values()), "is never wrong"


@each_case(questions().values(), lambda question: question.name)
def test_a_wrong_guess_gets_the_answer_only_on_request(question):
    for field in prediction._fields(question):
        parts = {f["part"]: f["right"] for f in prediction._fields(question)}
        for value, _ in field["wrong"]:
            given = {part: typed(question, x) for part, x in {**parts, field["part"]: value}.items()}
            verdict = answered(question, given)
            said = verdict.sentence.replace(f"not {quoted(field, written(value))}", "")
            assert verdict.outcome == "right" or not gives_away(field, said), f"{field['shown']} is in: {said}"


@each_case(questions().values(), lambda question: question.name)
def test_every_question_has_a_hint_that_does_not_give_the_answer_away(question):
    assert question.hint.endswith((".", "?")) and len(question.hint) <= 160
    for field in prediction._fields(question):
        assert not gives_away(field, question.hint), f"{field['shown']} is in: {question.hint}"


QUESTIONS = {
    "tiles": Question("tiles", lambda: 10, "because.", "count them.", wrong={6: "those are the skipped ones"}),
    "length": Question("length", lambda: 2.5, "because.", tolerance=0.01, unit="GB"),
    "shape": Question("shape", lambda: (2, 3), "because."),
    "rows": Question("rows", lambda: {1, 2}, "because.", choices=(0, 1, 2)),
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


@pytest.mark.parametrize(
    "name, odd, said",
    [
        ("tiles", "10", "'10' is not a number: write one such as 12, 0.5 or 1e-3, without quotes."),
        ("tiles", True, "True is not a number"),
        ("tiles", (1, 2), "(1, 2) is not a number"),
        (
            "length",
            "2.5 GB",
            "'2.5 GB' is not a number: write one such as 12, 0.5 or 1e-3, without quotes; it is in GB.",
        ),
        ("shape", 6, "6 is not 2 numbers: write them as a tuple, such as (1, 2)"),
        ("shape", {2, 3}, "{2, 3} is not 2 numbers"),
        ("shape", (2, "3"), "(2, '3') is not 2 numbers"),
        ("rows", 1, "1 is not a set of some of 0, 1, 2: write them in braces, such as {0}"),
        ("rows", {1, 7}, "{1, 7} is not a set of some of 0, 1, 2"),
        ("rows", "1, 2", "'1, 2' is not a set of some of 0, 1, 2"),
        ("which", "k", "'k' is none of 'm', 'l': write one of them, in quotes"),
        ("which", 3, "3 is none of 'm', 'l'"),
        ("nan", 1, "1 is neither True nor False: write one of the two, without quotes"),
        ("nan", "True", "'True' is neither True nor False"),
    ],
)
def test_an_answer_of_another_type_gets_an_error_that_says_which_is_meant(some, name, odd, said):
    verdict = predict(name, odd)
    assert verdict.outcome == "not answered yet" and verdict.sentence.startswith(said)
    assert "because" not in repr(verdict), "a slip of form does not give the answer away"


def test_a_near_guess_has_its_own_sentence(some):
    assert predict("length", 2.4).sentence == "not 2.4 (near: less than 10 % too small)."
    assert predict("length", 2.6, show=True).sentence == "not 2.6, but 2.5 (near: less than 10 % too large)."
    assert predict("length", 5).sentence == "not 5."


@pytest.mark.parametrize("right", [-2.5, 2.5, 1.073741824, 64])
@pytest.mark.parametrize("tolerance", [0.0, 0.001, 0.05])
def test_only_what_an_exact_factor_makes_right_is_right_but_for_the_unit(some, monkeypatch, right, tolerance):
    monkeypatch.setitem(QUESTIONS, "x", Question("x", lambda: right, "because.", tolerance=tolerance, unit="GB"))
    for factor in (8, 100, 1000, 1024, 1 / 1024, 1e-3):
        assert "right but for the unit" in predict("x", right * factor).sentence
        for off in (1.09, 0.91):  # as in 954 times
            assert "unit" not in predict("x", right * factor * off).sentence, f"{off} of {factor} times"
    monkeypatch.setitem(QUESTIONS, "x", Question("x", lambda: right, "because.", tolerance=tolerance))
    assert "unit" not in predict("x", right * 1000).sentence, "it has no unit"


def test_what_is_overlooked(some):
    assert predict("tiles", 6).sentence == "not 6 (those are the skipped ones)."
    assert predict("tiles", 7).sentence == "not 7."
    assert predict("tiles", 6, show=True).sentence == "not 6, but 10 (those are the skipped ones)."


@pytest.mark.parametrize("says", ["it is 3", "3.", "it is 3, or", "(3)", "3 is less than 3.5"])
@pytest.mark.parametrize("does_not", ["3.5", "13", "0.3", "3^2", "x3", "-3", "2^3", "30", ""])
def test_a_sentence_gives_away_a_number_that_stands_alone_in_it(says, does_not):
    assert gives_away({"shown": "3"}, says) and not gives_away({"shown": "3"}, f"it is {does_not}")


def test_a_choice_may_be_words_so_it_is_quoted(some):
    assert predict("which", "m").sentence == "not “m”."
    assert predict("which", "m", show=True).sentence == "not “m”, but “l”."
    assert predict("which", show=True).sentence == "the answer is “l”"
    assert predict("rows", set()).sentence == "not set()."


def test_a_wrong_guess_gets_its_hint_and_the_way_to_the_answer(some):
    verdict = predict("tiles", 7)
    assert "count them." in repr(verdict) and "because" not in repr(verdict)
    assert "checks.predict('tiles', show=True)" in repr(verdict)
    for shown in (predict("tiles", 7, show=True), predict("tiles", show=True), predict("tiles", ..., show=True)):
        assert "10" in repr(shown) and "because." in repr(shown) and "count them." not in repr(shown)
    assert "fp16: 12; fp32: 89" in repr(predict("two", show=True))


def test_a_call_grades_the_value_of_what_is_typed(monkeypatch):
    monkeypatch.setattr(prediction, "questions", lambda: guesses.QUESTIONS)
    failed = []
    for name, text, value, outcome in guesses.ROWS:
        verdict = predict(name, value)  # if a text is not understood, `value` is the page's error message
        if verdict.outcome != ("not answered yet" if outcome == "open" else outcome):
            failed.append(f"{name}, {text!r}: {verdict}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize(
    "name, value, outcome",
    [
        *(("set", x, "right") for x in ({-800, 800}, (-800, 800), [800, -800, 800], np.array([-800.0, 800.0]))),
        *(("set", x, "wrong") for x in (set(), {800}, np.array([0.5]))),
        *(("pairs", x, "right") for x in ([(1, 0), (2, 0)], {(2, 0), (1, 0)}, np.array([[1, 0], [2, 0]]))),
        *(("pairs", x, "wrong") for x in ({(1, 0)}, set())),
        *(("pairs", x, "not answered yet") for x in ((1, 0), {(5, 5)}, [[[1, 0]]], [{}])),
        *(
            ("count", x, "right")
            for x in (1000.0, np.int16(1000), np.float32(1000), np.array(1000), Fraction(1000))
        ),
        *(("count", x, "wrong") for x in (1.0, -math.inf, math.nan, 10**30, np.int8(5))),
        *(("count", x, "not answered yet") for x in (None, 1 + 2j, (1, 2), True, {1: 2}, 10**400, print)),
        *(("shape", x, "right") for x in ((5, 7), [5.0, 7.0], np.array([5, 7]))),
        *(("shape", x, "not answered yet") for x in ({5, 7}, 57, ((5, 7), (5, 7)))),
        *(("bool", x, "right") for x in (True, np.bool_(True))),
    ],
)
def test_a_value_of_another_type_that_means_the_same_is_taken(monkeypatch, name, value, outcome):
    monkeypatch.setattr(prediction, "questions", lambda: guesses.QUESTIONS)
    assert predict(name, value).outcome == outcome
    assert predict(name, 10**5000).outcome == "not answered yet", "Python has no text for it"


def test_parts(some):
    assert predict("two", fp16=12, fp32=89).outcome == "right"
    assert predict("two", fp16=..., fp32=...).outcome == "not answered yet"
    assert predict("two", fp16=12, fp32=...).sentence == "right so far; left: fp32."
    assert predict("two", fp16=12, fp32="x").outcome == "not answered yet"
    assert "no part 'fp8'" in predict("two", fp8=1).sentence
    assert predict("two", 12).sentence == "it has several parts: checks.predict('two', fp16=..., fp32=...)"


def test_the_reason_waits_for_all_parts(some):
    verdict = predict("two", fp16=11, fp32=...)
    assert verdict.outcome == "not answered yet" and verdict.sentence == "fp16: not 11. Left: fp32."
    assert "because" not in repr(verdict) and "because" not in repr(predict("two", fp16=11, fp32=..., show=True))
    assert "because" in repr(predict("two", fp16=11, fp32=88, show=True))


def test_what_is_overlooked_in_one_part(some):
    QUESTIONS["two"].wrong[("fp32", 12)] = "that is fp16"
    assert predict("two", fp16=12, fp32=12).sentence == "fp32: not 12 (that is fp16)."
    assert "that is fp16" not in predict("two", fp16=13, fp32=89).sentence


def test_an_unknown_question_does_not_raise(some):
    assert predict("tile", 3).sentence == "there is no question 'tile'; did you mean 'tiles'?"


def test_an_answer_that_cannot_be_compared_does_not_raise(some):
    for name in QUESTIONS:
        for odd in (np.ones(2), object(), None, "", (1, "a"), {1: 2}, np.float32(10)):
            assert predict(name, odd).outcome in ("wrong", "right", "not answered yet", "not checked")


def test_names_are_unique():
    asked = [question.name for module in folders.modules("questions*.py") for question in module.QUESTIONS]
    assert len(asked) == len(set(asked)) == len(questions())
