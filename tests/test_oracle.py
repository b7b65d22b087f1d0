"""What the oracle accepts."""

import numpy as np
import pytest

from tests import oracle


def test_an_error_may_be_twice_that_of_a_plain_implementation():
    exact = np.zeros(3)
    oracle.assert_close(exact + 2e-3, exact, plain=exact + 1e-3, rounding=0)
    with pytest.raises(AssertionError, match="error 0.003"):
        oracle.assert_close(exact + 3e-3, exact, plain=exact + 1e-3, rounding=0)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_inf_and_nan_are_refused_even_where_the_plain_implementation_has_them(wrong):
    exact = np.zeros(3)
    plain = np.array([wrong, 0, 0])
    with pytest.raises(AssertionError, match="result: error"):
        oracle.assert_close(plain, exact, plain=plain, rounding=1e-3)


def test_an_infinity_that_is_exact_is_accepted():
    exact = np.array([1.0, -np.inf])
    oracle.assert_close(exact, exact, rounding=0)
