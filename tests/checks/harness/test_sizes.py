"""Answers that must return whole numbers: how truth values and floats instead of them are reported."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
from flashlib.checks.engine import Finding, Known  # noqa: E402
from flashlib.checks.harness import sizes  # noqa: E402

CASES = sizes.cases(lambda n: (n // 2, n % 2), "0, 1, 2, 3, 4, 5")
ONLY_FLOATS, BOTH = Known("block_order"), Known("ring_phase")  # tables with sentences for these


def said(answer, known, **options):
    verdict = sizes.examine_whole(answer, CASES, known, ("half", "odd"), **options)
    return verdict.mistake or verdict.outcome


@pytest.mark.parametrize("known", [ONLY_FLOATS, BOTH], ids=lambda known: known.table)
def test_floats_of_the_right_values_are_found(known):
    assert said(lambda n: (n // 2, n % 2), known) == "right"
    assert said(lambda n: (np.int64(n // 2), np.uint8(n % 2)), known) == "right"
    assert said(lambda n: (float(n // 2), n % 2), known) == "float"
    assert said(lambda n: (np.floor(n / 2), n % 2), known) == "float"


def test_truth_values_are_found_where_requested():
    assert said(lambda n: (n // 2, n % 2 == 1), BOTH, bools=True) == "bool"
    assert said(lambda n: (n // 2, n % 2 == 1), ONLY_FLOATS) == "right"


def test_an_array_of_whole_numbers_is_accepted():
    assert said(lambda n: np.array([n // 2, n % 2]), ONLY_FLOATS) == "right"
    assert said(lambda n: np.array([n / 2 // 1, n % 2]), ONLY_FLOATS) == "float"


@pytest.mark.parametrize(
    "answer, mistake",
    [
        (lambda n: n, None),
        (lambda n: min(n, 6), "ends_early"),
        (lambda n: n if n <= 6 else 7, "ends_early"),
        (lambda n: n if n <= 6 else None, "ends_early"),
        (lambda n: n if n <= 50 else 0, "ends_early"),
        (lambda n: n if n <= 6 else 5, "value"),
        (lambda n: n if n <= 6 else n - 1, "value"),
        (lambda n: n if n > 3 else 3, "value"),
    ],
)
def test_a_search_that_ends_too_early_is_distinguished_from_a_wrong_one(answer, mistake):
    def right(n):
        return n

    cases, large = sizes.cases(right, "1, 2, 6, 8, 9"), sizes.cases(right, "100")
    assert (sizes.examine_search(answer, right, cases, large, Known("break_even")).mistake or None) == mistake


@pytest.mark.parametrize(
    "through",
    [
        lambda n: max(k for k in range(n) if k < 3),
        lambda n: int(np.arange(n).max()),
        lambda n: len(list(range(n))),
        lambda n: np.ones((n, n)),
    ],
)
def test_huge_sizes_must_not_be_counted_through(through):
    assert sizes.in_closed_form(lambda n: -(-n // 7))(10**15) == 142857142857143
    with pytest.raises(Finding, match="not_closed"):
        sizes.in_closed_form(through)(10**15)
