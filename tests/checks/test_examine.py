"""What a check says of answers that are wrong in ways that no exercise foresees."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.examine import Case, Mistake, examine, same  # noqa: E402
from flashlib.checks.values import show  # noqa: E402

x = np.array([1.0, 2.0, 4.0])
CASES = [Case("one number", (x[:1],), 1.0), Case("three numbers", (x,), 7.0)]
MISTAKES = [Mistake("the mean is taken: take the sum", lambda x: x.mean())]


def said(answer, cases=CASES, **options):
    return examine(answer, cases, MISTAKES, **options)


def test_right():
    assert said(lambda x: x.sum()).outcome == "right"


def test_a_mistake_is_named_with_the_smallest_input_that_shows_it():
    verdict = said(lambda x: sum(x) / len(x))
    assert verdict.sentence == "the mean is taken: take the sum"
    assert dict(verdict.details) == {"input": "x = [1. 2. 4.]", "expected": "7.", "given": "2.3333"}


def test_a_mistake_must_explain_every_case():
    verdict = said(lambda x: x.mean() if len(x) > 1 else 5.0)
    assert verdict.sentence == "wrong for one number"


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (lambda x: None, "returns nothing; is a return missing?"),
        (lambda x: "7", "the result is a str; expected the number 1."),
        (lambda x: x, "the result has shape (1,); expected ()"),
        (lambda x: np.nan, "wrong (nan) for one number"),
        (lambda x: np.inf, "wrong for one number"),
        (lambda x, y: x, "raises TypeError"),
        (lambda x: {}["a"], "raises KeyError: 'a'"),
        (lambda x: exit(), "raises SystemExit"),
    ],
)
def test_whatever_it_returns_or_raises_is_told(answer, sentence):
    verdict = said(answer)
    assert verdict.outcome == "wrong"
    assert verdict.sentence.startswith(sentence)


def test_not_solved_yet():
    def stub(x):
        raise NotImplementedError

    assert said(stub).outcome == "not solved yet"


def test_an_argument_that_is_changed_is_told_and_the_next_case_is_not_harmed():
    def sorts(x):
        x.sort()
        return x.sum()

    cases = [Case("sorted", (x,), 7.0), Case("unsorted", (x[::-1].copy(),), 7.0)]
    verdict = said(sorts, cases)
    assert verdict.sentence == "the result is right, but its argument x is changed: make a copy"
    assert dict(verdict.details) == {"before": "[4. 2. 1.]", "after": "[1. 2. 4.]"}
    assert np.array_equal(x, [1, 2, 4])


def test_arguments_lie_between_nan():
    neighbours = []
    said(lambda x: neighbours.append(x.base) or x.sum())
    assert all(np.isnan(base[0]) and np.isnan(base[-1]) for base in neighbours)


def test_several_outputs_are_told_apart():
    cases = [Case("one number", (2.0,), (2.0, np.ones(2)))]
    assert said(lambda x: (x, np.ones(2)), cases, outputs=("m", "l")).outcome == "right"
    assert said(lambda x: (x, np.zeros(2)), cases, outputs=("m", "l")).sentence == "l is wrong for one number"
    assert "expected the 2 values m, l" in said(lambda x: x, cases, outputs=("m", "l")).sentence


def test_same_is_strict_about_nan_infinities_and_shapes():
    assert same([1.0, np.inf], [1.0, np.inf], 0) and same(np.nan, np.nan, 1)
    assert not same(np.nan, 1.0, 1e9) and not same(np.inf, -np.inf, 1) and not same(1e300, np.inf, 1)
    assert not same(np.ones(2), np.ones((1, 2)), 1) and not same(1.001, 1.0, 1e-4)


def test_a_large_array_is_told_by_its_first_difference():
    right = np.arange(100.0)
    wrong = right.copy()
    wrong[42] = -1
    verdict = said(lambda x: wrong, [Case("a row", (1,), right)])
    assert ("first at", "result[42]: expected 42., given -1.") in verdict.details
    assert len(show(right)) < 80
