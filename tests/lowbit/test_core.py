"""A TensorCore rounds what it multiplies, one cause of error at a time; trials are what a plain one fails."""

import numpy as np
import pytest

from flashlib import lowbit
from flashlib.lowbit import sums


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    return 30 * rng.normal(size=(5, 64)), 30 * rng.normal(size=(70, 64)), rng.normal(size=(70, 64))


def test_without_causes_nothing_is_rounded(inputs):
    Q, K, V = inputs
    core = lowbit.TensorCore(())
    for format in ("e4m3", "int8"):
        np.testing.assert_array_equal(core.scores(Q, K, format), Q @ K.T)
    np.testing.assert_allclose(core.values(Q @ K.T, V, start=Q), Q + Q @ K.T @ V)
    np.testing.assert_array_equal(core.stored(Q, "e4m3"), Q)


def test_each_cause_rounds_one_thing(inputs):
    Q, K, V = inputs
    Q8, K8, V8 = (lowbit.rounded(X, "e4m3") for X in inputs)
    P = Q[:, :1] + np.zeros((5, 70))
    P8 = lowbit.rounded(P, "e4m3")
    np.testing.assert_array_equal(lowbit.TensorCore({"inputs"}).scores(Q, K, "e4m3"), Q8 @ K8.T)
    np.testing.assert_array_equal(lowbit.TensorCore({"S"}).scores(Q8, K8, "e4m3"), sums.product(Q8, K8.T))
    np.testing.assert_array_equal(lowbit.TensorCore({"P"}).values(P, V), P8 @ V)
    np.testing.assert_array_equal(lowbit.TensorCore({"V"}).values(P, V), P @ V8)
    np.testing.assert_array_equal(lowbit.TensorCore({"sums"}).values(P8, V8), sums.product(P8, V8))
    np.testing.assert_array_equal(lowbit.TensorCore({"O"}).stored(V, "bf16"), lowbit.rounded(V, "bf16"))


def test_sums_of_whole_numbers_are_exact(inputs):
    Q, K, _ = (lowbit.rounded(X, "int8") for X in inputs)
    np.testing.assert_array_equal(lowbit.TensorCore().scores(Q, K, "int8"), Q @ K.T)


def test_it_counts_products_and_what_saturates(inputs):
    Q, K, V = inputs
    core = lowbit.TensorCore()
    core.scores(Q / 1000, K, "int8")
    core.scores(Q / 1000, K * 100, "int8")
    core.values(np.ones((5, 70)), V)
    assert core.multiplied == {"scores": 2 * 5 * 70 * 64, "values": 5 * 70 * 64}
    assert core.saturated["Q"] == core.saturated["P"] == core.saturated["V"] == 0 < core.saturated["K"] < 1
    assert core.formats == {"int8"}


def test_what_it_does_not_know_is_refused(inputs):
    Q, K, _ = inputs
    with pytest.raises(ValueError, match="accepted are 'inputs'"):
        lowbit.TensorCore({"weights"})
    with pytest.raises(ValueError, match="multiplies 'e4m3'"):
        lowbit.TensorCore().scores(Q, K, "bf16")


def test_plain_eight_bits_fail_each_trial_and_careful_ones_pass():
    plain, careful = lowbit.OUTPUT_TOO._replace(p_times=1.0), lowbit.INT8
    for words, *given, bound in lowbit.trials():
        exact = lowbit.exact(*given)
        errors = [lowbit.error(lowbit.attention(*given, recipe).O, exact) for recipe in (plain, careful)]
        assert errors[0] > 2 * bound > bound > errors[1], words
