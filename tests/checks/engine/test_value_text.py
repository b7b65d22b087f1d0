"""Values as text: whole numbers have no point, and the text of a long array gives its shape."""

from fractions import Fraction

import numpy as np
import pytest

from flashlib.checks.engine.value_text import show, show_both


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.int64(3), "3"), (np.int64(10**15 + 1), "1000000000000001"), (np.array([2, 4]), "[2 4]"),
        (np.array([[0, 1], [2, 3]], np.uint8), "[[0 1] [2 3]]"), ([(0, 0, 2), (0, 2, 4)], "[[0 0 2] [0 2 4]]"),
        (np.arange(40).reshape(5, 8), "shape (5, 8), [0 1 2 3 ...]"), (np.bool_(True), "True"),
    ],
)  # fmt: skip
def test_whole_numbers_are_shown_as_whole_numbers(x, text):
    assert show(x) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (3.0, "3."), (np.float32(3), "3."), (np.array([2.0, 4.0]), "[2. 4.]"), ([2, 4.0], "[2. 4.]"),
        (np.arange(30.0), "shape (30,), [0. 1. 2. 3. ...]"), ([Fraction(1, 2), Fraction(3)], "[0.5 3. ]"),
    ],
)  # fmt: skip
def test_floats_keep_their_point(x, text):
    assert show(x) == text


def test_tensors_are_shown_as_arrays():
    torch = pytest.importorskip("torch")
    assert show(torch.tensor([2, 4])) == "[2 4]" and show(torch.tensor([2.0, 4.0])) == "[2. 4.]"


def test_dtypes_are_shown_only_where_nothing_else_differs():
    X = np.arange(100.0)
    expected, given = show_both(X, X.astype(np.float32), ["result"])
    assert expected.endswith(", float64") and given.endswith(", float32")
    Y = np.where(X > 50, np.nan, X).astype(np.float32)  # it differs in numbers that are not shown
    assert not any("float" in text for text in show_both(X, Y, ["result"]))
    assert not any("float" in text for text in show_both((X, X), (X, Y), ["O", "lse"]))
