"""Numbers as texts: near enough, and no longer than there is room for, also where a digit is carried."""

import numpy as np

from flashlib.pictures.number_text import brief, number, short

CARRIED = np.outer(10.0 ** np.arange(-6, 7), [1, 0.9994, 0.9997, 0.99996, 0.5, 0.1234567]).ravel()


def test_a_number_is_as_exact_as_its_digits_allow_and_short_enough():
    for x in (*CARRIED, *-CARRIED):
        for write, digits, longest in ((number, 4, 9), (brief, 3, 10)):
            text = write(x)
            assert abs(float(text.replace("−", "-")) - x) <= 0.501 * 10.0 ** (1 - digits) * abs(x), text
            assert len(text.removeprefix("−")) <= longest, text
        text = short(x)
        assert len(text.removeprefix("−")) <= 4 and abs(float(text.replace("−", "-")) - x) <= max(
            0.05001, abs(x) / 2
        )


def test_integers_and_numbers_that_are_not_finite_are_written():
    assert [number(x) for x in (3, -9999, 1e4, -1.95, 1.2344e-7)] == [
        "3",
        "−9999",
        "1.000e4",
        "−1.950",
        "1.234e−7",
    ]
    for write in (number, brief, short):
        assert [write(x) for x in (np.nan, np.inf, -np.inf)] == ["NaN", "∞", "−∞"]
