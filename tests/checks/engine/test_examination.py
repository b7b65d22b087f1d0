"""What a check says about answers that are wrong in ways that no exercise anticipates."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.engine import Case, Finding, Known, Measured, ProgramText, examine, mistake_tables  # noqa: E402
from flashlib.checks.engine.equality import same  # noqa: E402
from flashlib.checks.engine.value_text import show  # noqa: E402

x = np.array([1.0, 2.0, 4.0])
CASES = [Case("one number", (x[:1],), 1.0), Case("three numbers", (x,), 7.0)]
SUM = ProgramText("def my_sum(x):\n    X = 1 * x\n    total = X.sum()\n    return total", {})
TABLE = """
[sum]
mean*: the mean is taken: take the sum
    total = X.mean()
cubed: the numbers are cubed
    X = x**3
narrow: the numbers are rounded to fp16
    X = x.astype("float16")
doubled: {name} is read {times} times
outside: memory of others is read
[total]
unsummed: the numbers are not summed
    part = x
other_unsummed: other numbers are not summed
    part = 2 * x
"""
KNOWN = Known("sum", SUM)


@pytest.fixture(autouse=True)
def table(monkeypatch, tmp_path):
    found = dict(mistake_tables.tables())
    (file := tmp_path / "mistakes.txt").write_text(TABLE)
    mistake_tables.read(file, found)
    monkeypatch.setattr(mistake_tables, "tables", lambda: found)


def said(answer, cases=CASES, **options):
    return examine(answer, cases, KNOWN, **options)


class Odd:
    def __repr__(self):
        raise ValueError("no text")


def interrupt():
    raise KeyboardInterrupt


def test_right():
    assert said(lambda x: x.sum()).outcome == "right"


def test_a_mistake_is_named_with_the_smallest_input_that_shows_it():
    verdict = said(lambda x: sum(x) / len(x))
    assert (verdict.mistake, verdict.sentence) == ("mean", "the mean is taken: take the sum")
    assert dict(verdict.details) == {"input": "x = [1. 2. 4.]", "expected": "7.", "given": "2.3333"}


@pytest.mark.parametrize("factor, mistake", [(1, "unsummed"), (2, "other_unsummed"), (3, "value")])
def test_a_sum_in_place_that_numpy_refuses_is_the_mistake_that_changes_its_shape(factor, mistake):
    program = ProgramText("def my_total(x):\n    part = x.sum(keepdims=True)\n    return 0 * x[:1] + part", {})

    def in_place(x):
        total = 0 * x[:1]
        total += factor * x
        return total

    cases = [Case("one number", (x[:1],), x[:1]), Case("three numbers", (x,), np.array([7.0]))]
    verdict = examine(in_place, cases, Known("total", program))
    assert verdict.outcome == "wrong" and verdict.mistake == mistake


def test_no_case_is_run_after_one_in_which_a_harness_ended_the_answer():
    seen = []

    def answer(x):
        seen.append(x)
        raise Finding("outside")

    assert said(answer).mistake == "outside" and len(seen) == 1


def test_a_mistake_must_explain_every_case():
    verdict = said(lambda x: x.mean() if len(x) > 1 else 5.0)
    assert (verdict.mistake, verdict.sentence) == ("value", "the result is wrong for one number")


def test_two_mistakes_at_once_are_both_named():
    verdict = said(lambda x: (x**3).mean())
    assert verdict.mistakes == ("mean", "cubed") and verdict.data["mistake"] == "mean and cubed"
    assert verdict.sentence == "the mean is taken: take the sum; and the numbers are cubed"


def test_a_guard_that_our_model_of_a_mistake_lacks_does_not_hide_it():
    cases = [*CASES, Case("no numbers", (x[:0],), 0.0)]  # whose mean is nan
    assert said(lambda x: x.mean() if len(x) else 0.0, cases).mistake == "mean"


def test_no_guard_is_assumed_where_memory_outside_was_read():
    """Values from there may be nan, and nearly every mistake that gives nan would explain them."""
    cases = [*CASES, Case("no numbers", (x[:0],), 0.0)]
    answer = lambda x: Measured(x.mean() if len(x) else 0.0, Finding("outside"))  # noqa: E731
    assert said(answer, cases).mistake == "outside"


def test_a_mistake_is_named_before_later_stages_run():
    stages = [CASES, [Case("no numbers", (x[:0],), 0.0)]]
    assert said(lambda x: x.mean() if len(x) else 1 / 0, stages).mistake == "mean"
    assert said(lambda x: x.sum() if len(x) else 1.0, stages).sentence == "the result is wrong for no numbers"
    assert said(lambda x: x.sum(), stages).sentence == "in all 3 cases"


def test_how_a_right_result_was_computed_is_judged_after_it():
    found = Finding("doubled", name="x", times=2)
    assert said(lambda x: Measured(x.sum(), found)).sentence == "x is read 2 times"
    assert said(lambda x: Measured(x.mean(), found)).mistake == "mean"
    assert said(lambda x: Measured(x.sum(), None)).right


def test_a_dtype_may_be_required():
    cases = [Case("fp32", (x.astype(np.float32),), 7.0, 1e-5, np.float32)]
    assert said(lambda x: x.sum(), cases).right
    verdict = said(lambda x: float(x.sum()), cases)
    assert verdict.mistake == "dtype" and "float32" in verdict.sentence
    for dtype, mistake in ((np.float16, "narrow"), (np.float32, "dtype")):
        assert said(lambda x: dtype(x.sum()), [Case("", (x,), 7.0, dtype=float)]).mistake == mistake  # noqa: B023


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (lambda x: None, "returns nothing; is a return missing?"),
        (lambda x: "7", "the result is a str; expected the number 1."),
        (lambda x: x, "the result has shape (1,); expected ()"),
        (lambda x: np.nan, "the result is wrong (nan) for one number"),
        (lambda x: np.inf, "the result is wrong for one number"),
        (lambda x, y: x, "raises TypeError"),
        (lambda x: {}["a"], "raises KeyError: 'a'"),
        (lambda x: exit(), "raises SystemExit"),
        (lambda x: interrupt(), "raises KeyboardInterrupt"),
        (lambda x: Odd(), "the result is an Odd; expected the number 1."),
        (lambda x: np.broadcast_to(1.0, (10**6, 10**6)), "the result has shape (1000000, 1000000); expected ()"),
    ],
)
def test_any_result_or_exception_is_reported(answer, sentence):
    verdict = said(answer)
    assert verdict.outcome == "wrong"
    assert verdict.sentence.startswith(sentence)


def test_a_result_that_is_not_a_number_must_be_explained_in_every_case():
    """A guard may hide the nan of a mistake where an answer is right, but it cannot repair a wrong set."""
    known = Known("sum", ProgramText("def my_sum(x):\n    X = 1 * x\n    return set(X)", {}))
    cases = [Case("two", (x[:2],), {1.0, 2.0}), Case("three", (x,), {1.0, 2.0, 4.0})]
    answer = lambda x: set(x) if len(x) < 3 else {1.0, 8.0, 64.0}  # noqa: E731
    assert examine(answer, cases, known).mistake == "value"  # and not "cubed", which is wrong for two


def test_not_solved_yet():
    def stub(x):
        raise NotImplementedError

    assert said(stub).outcome == "not solved yet"


def test_a_changed_argument_is_reported_and_the_next_case_is_not_affected():
    def sorts(x):
        x.sort()
        return x.sum()

    cases = [Case("sorted", (x,), 7.0), Case("unsorted", (x[::-1].copy(),), 7.0)]
    verdict = said(sorts, cases)
    assert verdict.sentence == "the result is right, but its argument x is changed: make a copy"
    assert dict(verdict.details) == {"before": "[4. 2. 1.]", "after": "[1. 2. 4.]"}
    assert np.array_equal(x, [1, 2, 4])


def test_arguments_are_surrounded_by_nan():
    neighbours = []
    said(lambda x: neighbours.append(x.base) or x.sum())
    assert all(np.isnan(base[0]) and np.isnan(base[-1]) for base in neighbours)


def test_several_outputs_are_distinguished():
    cases = [Case("one number", (2.0,), (2.0, np.ones(2)))]
    assert said(lambda x: (x, np.ones(2)), cases, outputs=("m", "l")).outcome == "right"
    assert said(lambda x: (x, np.zeros(2)), cases, outputs=("m", "l")).sentence == "l is wrong for one number"
    assert "expected the 2 values m, l" in said(lambda x: x, cases, outputs=("m", "l")).sentence


def test_same_is_strict_about_nan_infinities_and_shapes():
    assert same([1.0, np.inf], [1.0, np.inf], 0) and same(np.nan, np.nan, 1)
    assert not same(np.nan, 1.0, 1e9) and not same(np.inf, -np.inf, 1) and not same(1e300, np.inf, 1)
    assert not same(np.ones(2), np.ones((1, 2)), 1) and not same(1.001, 1.0, 1e-4)


def test_differing_results_are_shown_with_enough_digits():
    verdict = said(lambda x: 7.000001, CASES[1:])
    shown = dict(verdict.details)
    assert shown["expected"] != shown["given"]


def test_of_a_large_array_the_first_difference_is_shown():
    right = np.arange(100.0)
    wrong = right.copy()
    wrong[7] += 0.5e-2  # within the tolerance
    wrong[42] = -1
    verdict = said(lambda x: wrong, [Case("a row", (1,), right, 1e-5, size=1000)])
    assert ("first at", "result[42]: expected 42., given -1.") in verdict.details
    assert len(show(right)) < 80


@pytest.mark.parametrize(
    ("answer", "id", "tolerance"),
    [
        (lambda x: np.exp(x.astype(np.float32)).astype(float), "inexact", 1e-10),
        (lambda x: np.where(x < -5, 0, np.exp(x)), "inexact", 1e-10),
        (lambda x: np.exp(x.astype(np.float32)), "dtype", 1e-10),
        (lambda x: np.exp(x) * 1.01, "value", 1e-10),
        (lambda x: np.exp(x) if len(x) > 1 else 0 * x, "value", 1e-10),
        (lambda x: np.exp(x) * 1.0015, "inexact", 1e-4),
        (lambda x: np.exp(x) * 1.0015, "value", 1e-3),  # as coarse as a few digits
    ],
)
def test_results_that_are_right_to_a_few_digits_are_not_called_wrong(answer, id, tolerance):
    rows = (np.array([0.3]), np.array([0.1, -7.0]))
    cases = [Case(f"{len(x)} numbers", (x,), np.exp(x), tolerance, float) for x in rows]
    verdict = examine(answer, cases, Known("any"))
    assert (verdict.outcome, verdict.mistake) == ("wrong", id)
