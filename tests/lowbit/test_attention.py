"""Attention with a recipe: exact without rounding, and the loop uses numbers of the format."""

import numpy as np
import pytest

from flashlib import lowbit, masks, tiled
from flashlib.lowbit import CAREFUL, EXACT, INT8, OUTPUT_TOO, PLAIN, sums
from tests import oracle

RECIPES = {"EXACT": EXACT, "PLAIN": PLAIN, "CAREFUL": CAREFUL, "INT8": INT8, "OUTPUT_TOO": OUTPUT_TOO}
IDEAS = [{"rotate": True}, {"k_minus_mean": True}, {"v_minus_mean": True}, {"p_times": 3.0}, {"l_from": "rounded"}]


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("ideas", [{}, *IDEAS])
def test_without_rounding_it_is_attention(N_q, N_k, causal, ideas, rng):
    """Each idea by itself changes nothing in exact arithmetic."""
    Q, K, V = oracle.inputs(rng, N_q, N_k, 8)
    O, lse = oracle.attention(Q, K, V, causal=causal)
    given = lowbit.attention(Q, K, V, EXACT._replace(**ideas), B_r=5, B_c=4, causal=causal)
    oracle.assert_close(given.O, O, rounding=1e-13, what="O")
    if "k_minus_mean" not in ideas:  # which adds the same to all scores of a row, and so to its lse
        oracle.assert_close(given.lse, lse, rounding=1e-13, what="lse")


@pytest.mark.parametrize("largest_score", [1e4, 1e30])
def test_large_scores_do_not_overflow(largest_score, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8, largest_score=largest_score)
    given = lowbit.attention(Q, K, V, EXACT, B_r=5, B_c=4)
    oracle.assert_close(given.O, oracle.attention(Q, K, V)[0], rounding=1e-10)
    for recipe in RECIPES.values():
        assert np.isfinite(lowbit.attention(Q, K, V, recipe, B_r=5, B_c=4).O).all()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_a_recipe_is_near_attention_at_all_sizes(recipe, N_q, N_k, causal, rng):
    Q, K, V = oracle.inputs(rng, N_q, N_k, 8)
    O, lse = oracle.attention(Q, K, V, causal=causal)
    given = lowbit.attention(Q, K, V, recipe, B_r=5, B_c=4, causal=causal)
    step = np.abs(V).max(initial=0) / 8  # three bits of mantissa, several times
    oracle.assert_close(given.O, O, rounding=2 * step)
    np.testing.assert_array_equal(given.lse == -np.inf, lse == -np.inf)


def test_masks_are_those_of_tiled(rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8)
    for mask in (masks.window(3, 2), masks.prefix(4), masks.softcap(2.0) & masks.causal()):
        expected = tiled.attention(Q, K, V, B_r=5, B_c=4, mask=mask, scale=0.3)
        given = lowbit.attention(Q, K, V, EXACT, B_r=5, B_c=4, mask=mask, scale=0.3)
        oracle.assert_close(given.O, expected.O, rounding=1e-13)
        oracle.assert_close(given.lse, expected.lse, rounding=1e-13)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_heads_are_independent_attentions(recipe, rng):
    Q, K, V = (rng.standard_normal((2, n, 8)) for n in (13, 17, 17))
    recipe = recipe._replace(qk_share="head", v_share="head", o=None)
    many = lowbit.attention(Q, K, V, recipe, B_r=5, B_c=4, causal=True)
    for h in range(2):
        one = lowbit.attention(Q[h], K[h], V[h], recipe, B_r=5, B_c=4, causal=True)
        oracle.assert_close(many.O[h], one.O, rounding=1e-13)
        oracle.assert_close(many.lse[h], one.lse, rounding=1e-13)


def test_scales_are_shared_within_groups_and_a_tensors_scale_by_all_heads(rng):
    Q, K, V = (rng.standard_normal((2, n, 8)) for n in (13, 17, 17))
    recipe = PLAIN._replace(qk_share="tensor")
    assert lowbit.prepared(Q, K, V, recipe).Q.scale == np.abs(Q).max() / 448
    recipe = recipe._replace(qk_share="block", qk="int8", s_sums="exact", v_share="channel", block=3)
    recipe = recipe._replace(power_of_two=True)
    ways = (("int8", "block"), ("int8", "block"), ("e4m3", "channel"))
    for X, given, (format, share) in zip((Q, K, V), lowbit.prepared(Q, K, V, recipe), ways, strict=False):
        expected = lowbit.quantised(X, format, share=share, block=3, power_of_two=True)
        assert all(map(np.array_equal, given, expected))
    V[0] *= 1e-3
    O, rounded_too = (lowbit.attention(Q, K, V, EXACT._replace(o=o)).O for o in (None, "e4m3"))
    scale = np.abs(O).max() / 448
    np.testing.assert_allclose(rounded_too, scale * lowbit.rounded(O / scale, "e4m3"), rtol=1e-12)


@pytest.mark.parametrize("share", ["none", "tensor", "head", "block", "row"])
@pytest.mark.parametrize("format", ["e4m3", "int8"])
def test_scores_are_those_of_the_quantised_tensors(share, format, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8)
    Q, K = 20 * Q, K[::-1] * np.linspace(1, 20, 17)[:, None]
    recipe = EXACT._replace(qk=format, qk_share=share, block=3)
    ready = lowbit.prepared(Q, K, V, recipe)
    S = ready.Q.X @ ready.K.X.T / np.sqrt(8)
    for s in lowbit.steps(ready, recipe, B_r=5, B_c=4):
        np.testing.assert_allclose(s.S_ij, S[s.rows, s.cols], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("o_sums", ["exact", "13 bits", "two levels"])
@pytest.mark.parametrize("l_from", ["exact", "rounded"])
def test_a_step_is_what_its_fields_say(o_sums, l_from, rng):
    Q, K, V = oracle.inputs(rng, 13, 170, 8)
    recipe = PLAIN._replace(o_sums=o_sums, l_from=l_from, p_times=448.0)
    ready = lowbit.prepared(Q, K, V, recipe)
    V_q = ready.V.X_q
    for s in lowbit.steps(ready, recipe, B_r=5, B_c=40, causal=True):
        P = np.exp(s.S_ij - s.m[:, None]) * 448
        np.testing.assert_array_equal(s.P_ij, lowbit.rounded(P, "e4m3"))
        np.testing.assert_allclose(
            s.l, s.alpha * s.l_old + (P if l_from == "exact" else s.P_ij).sum(1), rtol=1e-13
        )
        kept = s.alpha[:, None] * s.O_acc_old
        if o_sums == "exact":
            expected = kept + s.P_ij @ V_q[s.cols]
        elif o_sums == "13 bits":
            expected = sums.product(s.P_ij, V_q[s.cols], start=kept)
        else:
            expected = kept + sums.product(s.P_ij, V_q[s.cols])
        np.testing.assert_allclose(s.O_acc, expected, rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize("recipe", [PLAIN, INT8], ids=["PLAIN", "INT8"])
def test_operands_of_products_are_numbers_of_the_format(recipe, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8)
    ready = lowbit.prepared(Q, K, V, recipe)
    for X, format in ((ready.Q, recipe.qk), (ready.K, recipe.qk), (ready.V, recipe.v)):
        assert np.isin(X.X_q, lowbit.numbers(format)).all()
    O = lowbit.attention(Q, K, V, recipe).O
    np.testing.assert_array_equal(O, lowbit.rounded(O, "bf16"))
    assert all(np.isin(s.P_ij, lowbit.numbers("e4m3")).all() for s in lowbit.steps(ready, recipe))


def test_softmax_does_not_see_the_mean_of_K(rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 8)
    one, other = (lowbit.attention(Q, K + c, V, CAREFUL).O for c in (0.0, 1000 * rng.standard_normal(8)))
    oracle.assert_close(other, one, rounding=1e-2)


def test_dtypes_are_kept_and_inputs_are_not_changed(rng):
    for dtype, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        given = [X.astype(dtype) for X in oracle.inputs(rng, 13, 17, 8)]
        copies = [X.copy() for X in given]
        for recipe in RECIPES.values():
            out = lowbit.attention(*given, recipe)
            assert out.O.dtype == out.lse.dtype == expected
        for X, copy in zip(given, copies, strict=True):
            np.testing.assert_array_equal(X, copy)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("where", [0, 1, 2])
def test_nan_is_not_hidden(recipe, where, rng):
    given = oracle.inputs(rng, 8, 12, 8)
    given[where][5, 0] = np.nan
    assert np.isnan(lowbit.attention(*given, recipe, B_r=3, B_c=4).O).any()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"qk": "fp4"}, "'e4m3'"),
        ({"v_share": "row"}, "'channel'"),
        ({"qk_share": "channel"}, "'block'"),
        ({"o_sums": "14 bits"}, "'two levels'"),
        ({"l_from": "P"}, "'rounded'"),
        ({"qk": "int8"}, "s_sums='exact'"),
        ({"p_times": 449.0}, "at most 448"),
        ({"p_times": 0.0}, "p_times is 0.0"),
        ({"p": "int8", "p_times": 256.0}, "at most 127"),
        ({"block": 0}, "block is 0"),
    ],
)
def test_impossible_recipes_are_refused(change, words, rng):
    with pytest.raises(ValueError, match=words):
        lowbit.attention(*oracle.inputs(rng, 3, 4, 8), PLAIN._replace(**change))


def test_other_arguments_are_refused(rng):
    Q, K, V = oracle.inputs(rng, 3, 4, 6)
    with pytest.raises(ValueError, match="power of two"):
        lowbit.attention(Q, K, V, CAREFUL)
    with pytest.raises(TypeError, match="lowbit.Recipe"):
        lowbit.attention(Q, K, V, "CAREFUL")
    with pytest.raises(TypeError, match="True or False"):
        lowbit.attention(Q, K, V, PLAIN._replace(rotate=1))
    with pytest.raises(ValueError, match=r"\(H, N, d\)"):
        lowbit.attention(Q[None], K, V, PLAIN)
    with pytest.raises(ValueError, match="cause"):
        lowbit.alone(PLAIN, "Q")
