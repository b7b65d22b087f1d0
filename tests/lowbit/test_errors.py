"""Bounds on the errors of O for each cause and idea: the course's claims hold for these tensors."""

import numpy as np
import pytest

from flashlib import lowbit, masks
from flashlib.lowbit import CAREFUL, EXACT, INT8, OUTPUT_TOO, PLAIN
from tests import oracle

QK, V_ALONE, P = (EXACT._replace(**{name: "e4m3"}) for name in ("qk", "v", "p"))
I8 = EXACT._replace(qk="int8")


def tensors(kind, N=512, heads=2, d=64):
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((heads, N, d)) for _ in range(3))
    if kind == "outliers":  # one number of a thousand is ten times larger
        Q, K, V = (np.where(rng.random(X.shape) < 1e-3, 10 * X, X) for X in (Q, K, V))
    if kind == "bias":  # of each channel
        K = K + 4 * rng.standard_normal((heads, 1, d))
        V = V + rng.standard_normal((heads, 1, d))
    if "sharp" in kind:
        Q = 2 * Q
    if "positive" in kind:
        V = np.abs(V) + 1
    return Q, K, V


@pytest.fixture(scope="module")
def error():
    """Return a function from a kind of tensors and a recipe to the error of O; each is computed once."""
    known = {}

    def of(kind, recipe, **sizes):
        key = kind, recipe, *sizes.items()
        if key not in known:
            Q, *KV = tensors(kind, **sizes)
            given = Q[:, :512], *KV  # rows enough, of all keys
            exact = known.setdefault((kind, *sizes.items()), lowbit.exact(*given))
            known[key] = lowbit.error(lowbit.attention(*given, recipe).O, exact)
        return known[key]

    return of


@pytest.mark.parametrize(
    "kind, recipe, low, high",
    [
        ("plain", QK, 0.034, 0.043),
        ("outliers", QK, 0.05, 0.11),
        ("plain", V_ALONE, 0.024, 0.029),
        ("outliers", V_ALONE, 0.024, 0.029),
        ("plain", P, 0.018, 0.028),
        ("plain", I8, 0.012, 0.018),
        ("outliers", I8, 0.05, 0.11),
        ("plain", EXACT._replace(o="bf16"), 0.001, 0.002),
        ("plain", EXACT._replace(qk="bf16", p="fp16", v="bf16", o="bf16"), 0.001, 0.005),
        ("plain", EXACT._replace(o="e4m3"), 0.024, 0.029),
        ("plain", CAREFUL, 0.03, 0.056),
        ("outliers", CAREFUL, 0.03, 0.066),
        ("plain", INT8, 0.03, 0.040),
        ("outliers", INT8, 0.02, 0.040),
    ],
)
def test_the_error_of_each_is_within_its_bounds(kind, recipe, low, high, error):
    assert low < error(kind, recipe) < high


def test_rotation_helps_where_there_are_outliers_and_costs_nothing_elsewhere(error):
    turned = QK._replace(rotate=True)
    assert error("outliers", turned) < 0.75 * error("outliers", QK)
    assert error("plain", turned) < 1.1 * error("plain", QK)
    assert error("outliers", I8._replace(rotate=True)) < 0.3 * error("outliers", I8)


def test_a_finer_scale_gains_much_in_int8_and_little_in_e4m3(error):
    row = {"qk_share": "row"}
    assert error("plain", QK._replace(**row)) > 0.9 * error("plain", QK)
    assert error("plain", I8._replace(**row)) < 0.75 * error("plain", I8)
    assert error("outliers", I8._replace(**row)) < 0.4 * error("outliers", I8)
    turned = QK._replace(rotate=True)
    assert abs(error("outliers", turned._replace(**row)) / error("outliers", turned) - 1) < 0.15


def test_subtracting_means_helps_where_channels_have_one(error):
    for recipe in (QK, I8):
        assert error("bias", recipe._replace(k_minus_mean=True)) < 0.6 * error("bias", recipe)
    assert error("bias", V_ALONE._replace(v_minus_mean=True)) < 0.8 * error("bias", V_ALONE)
    assert 0.9 < error("plain", QK._replace(k_minus_mean=True)) / error("plain", QK) < 1.1


SHARP = {"N": 2048, "heads": 1}


def test_P_times_256_is_better_than_times_1_on_sharp_scores(error):
    once = P._replace(p_times=1.0)
    assert error("sharp", P, **SHARP) < 0.85 * error("sharp", once, **SHARP)
    assert error("sharp positive", P, **SHARP) < 0.2 * error("sharp positive", once, **SHARP)
    assert 0.95 < error("plain", once) / error("plain", P) < 1.05


def test_l_of_rounded_P_is_best_with_256_and_bad_with_1(error):
    after = {"l_from": "rounded"}
    assert error("positive", P._replace(**after)) < 0.5 * error("positive", P)
    assert error("sharp", P._replace(p_times=1.0, **after), **SHARP) > 2 * error("sharp", P, **SHARP)


def test_sums_cost_a_quarter_of_positive_values_at_16384_keys_and_two_levels_repair_it():
    Q, K, V = tensors("positive", N=16384, heads=1)
    Q = Q[:, :16]
    exact = lowbit.exact(Q, K, V)
    one = lowbit.attention(Q, K, V, lowbit.alone(PLAIN, "sums")).O
    two = lowbit.attention(Q, K, V, lowbit.alone(PLAIN._replace(o_sums="two levels"), "sums")).O
    without = lowbit.attention(Q, K, V, lowbit.alone(PLAIN._replace(v_minus_mean=True), "sums")).O
    assert -0.28 < (one / exact - 1).mean() < -0.20
    assert abs((two / exact - 1).mean()) < 0.005
    assert abs((without / exact - 1).mean()) < 0.005


def test_careful_beats_rounding_the_output_too(error):
    assert error("outliers", CAREFUL) < 0.75 * error("outliers", OUTPUT_TOO)
    assert error("plain", CAREFUL) < error("plain", OUTPUT_TOO)


@pytest.mark.parametrize("recipe", [PLAIN, CAREFUL, INT8, OUTPUT_TOO])
def test_squares_of_the_causes_add_up_to_the_square_of_all(recipe):
    Q, K, V = tensors("plain", N=256)
    parts = lowbit.by_cause(Q, K, V, recipe)
    whole = parts.pop("all")
    assert parts.keys() == lowbit.CAUSES.keys()
    assert abs(np.sqrt(sum(e**2 for e in parts.values())) / whole - 1) < 0.1


def test_a_cause_is_measured_with_the_given_tiles_mask_and_scale(rng):
    tensors, tiles = oracle.inputs(rng, 13, 17, 8), {"B_r": 3, "B_c": 5}
    for asked in ({}, {"causal": True, "mask": masks.window(4, 9), "scale": 0.9}):
        errors = lowbit.by_cause(*tensors, PLAIN, **tiles, **asked)
        whole, exact = lowbit.attention(*tensors, PLAIN, **tiles, **asked).O, lowbit.exact(*tensors, **asked)
        assert errors["all"] == lowbit.error(whole, exact) < 0.2
        assert errors == lowbit.by_cause(*tensors, PLAIN, **tiles, **asked, O_exact=exact)


def test_a_cause_that_a_recipe_does_not_have_is_0():
    Q, K, V = oracle.inputs(np.random.default_rng(0), 13, 17, 8)
    assert set(lowbit.by_cause(Q, K, V, EXACT).values()) == {0.0}
    assert lowbit.by_cause(Q, K, V, INT8)["S"] < 1e-14


def test_exact_is_the_oracle_and_error_is_the_ratio_of_roots(rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8, np.float32)
    O, _ = oracle.attention(Q, K, V, causal=True)
    oracle.assert_close(lowbit.exact(Q, K, V, causal=True), O, rounding=1e-13)
    assert abs(lowbit.error(1.5 * O, O) - 0.5) < 1e-12
    assert lowbit.error(O, O) == 0.0 and np.isnan(lowbit.error(np.full_like(O, np.nan), O))
    with pytest.raises(ValueError, match="shape"):
        lowbit.error(O, O[1:])
