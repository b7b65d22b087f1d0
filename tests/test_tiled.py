"""FlashAttention equals the oracle, for any blocks, in both orders, and its steps are as documented."""

import numpy as np
import pytest

from flashlib import cost, naive, tiled
from tests import oracle

ORDERS = ["fa1", "fa2"]
BLOCKS = [(1, 1), (3, 4), (8, 5), (16, 16), (100, 100)]


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("largest_score", [None, 1e4])
def test_equals_fp64_for_all_block_sizes(N_q, N_k, order, causal, largest_score, rng):
    Q, K, V = oracle.inputs(rng, N_q, N_k, 5, largest_score=largest_score)
    O, lse = oracle.attention(Q, K, V, causal=causal)
    rounding = 16 * np.finfo(float).eps * (largest_score or 10)
    for B_r, B_c in BLOCKS:
        given = tiled.attention(Q, K, V, B_r=B_r, B_c=B_c, order=order, causal=causal)
        where = f"B_r = {B_r}, B_c = {B_c}"
        oracle.assert_close(given.O, O, rounding=rounding, what=f"O, {where}")
        oracle.assert_close(given.lse, lse, rounding=rounding, what=f"lse, {where}")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype, eps", [(np.float16, 2.0**-11), (np.float32, 2.0**-24)])
@pytest.mark.parametrize("causal", [False, True])
def test_error_is_at_most_twice_that_of_standard_attention(order, dtype, eps, causal, rng):
    Q, K, V = oracle.inputs(rng, 53, 71, 16, dtype)
    O, lse = oracle.attention(Q, K, V, causal=causal)
    plain = naive.attention(Q, K, V, causal=causal)
    given = tiled.attention(Q, K, V, B_r=8, B_c=5, order=order, causal=causal)
    assert given.O.dtype == dtype and given.lse.dtype == np.float32
    stores = 15 if order == "fa1" else 1  # fa1 rounds O to its dtype after every column block
    oracle.assert_close(given.O, O, plain=plain.O, rounding=stores * eps * np.abs(O).max(), what="O")
    plain_fp32 = naive.attention(*(X.astype(np.float32) for X in (Q, K, V)), causal=causal)  # as lse is
    oracle.assert_close(given.lse, lse, plain=plain_fp32.lse, rounding=2.0**-23 * 4, what="lse")


@pytest.mark.parametrize("order", ORDERS)
def test_scale_is_applied(order, rng):
    Q, K, V = oracle.inputs(rng, 7, 13, 5)
    O, lse = oracle.attention(Q, K, V, scale=0.3)
    given = tiled.attention(Q, K, V, B_r=3, B_c=4, order=order, scale=0.3)
    oracle.assert_close(given.O, O, rounding=1e-14, what="O")
    oracle.assert_close(given.lse, lse, rounding=1e-14, what="lse")


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_holds_what_sram_bytes_says(order, rng):
    Q, K, V = oracle.inputs(rng, 16, 15, 4, np.float32)  # fp32, where SRAM holds no wider numbers
    for s in tiled.steps(Q, K, V, B_r=8, B_c=5, order=order):
        held = (Q[s.rows], K[s.cols], V[s.cols], s.S_ij, s.O_acc, s.m, s.l)
        assert sum(X.nbytes for X in held) == cost.sram_bytes(8, 5, 4, "float32")


@pytest.mark.parametrize("order", ORDERS)
def test_every_element_of_the_outputs_is_written(order, rng):
    for N_q, N_k in oracle.SIZES:
        Q, K, V = oracle.inputs(rng, N_q, N_k, 5)
        O, lse = np.full((N_q, 5), np.nan), np.full(N_q, np.nan)
        for _ in tiled.steps(Q, K, V, B_r=3, B_c=4, order=order, causal=True, O=O, lse=lse):
            pass
        assert not np.isnan(O).any() and not np.isnan(lse).any()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_inputs_are_not_changed(order, causal, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 5)
    copies = [X.copy() for X in (Q, K, V)]
    tiled.attention(Q, K, V, B_r=4, B_c=3, order=order, causal=causal)
    for X, copy in zip((Q, K, V), copies, strict=True):
        np.testing.assert_array_equal(X, copy)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
def test_the_state_after_c_keys_is_that_of_attention_to_c_keys(order, causal, N_q, N_k, rng):
    Q, K, V = oracle.inputs(rng, N_q, N_k, 5)
    for step in tiled.steps(Q, K, V, B_r=3, B_c=4, order=order, causal=causal):
        c = step.cols.stop
        seen = np.arange(c) <= np.arange(N_q)[step.rows, None] + N_k - N_q if causal else np.ones((1, c), bool)
        S = np.where(seen, Q[step.rows] @ K[:c].T / np.sqrt(5), -np.inf)
        m = S.max(axis=1)
        P = np.exp(S - np.where(m == -np.inf, 0, m)[:, None])
        for name, expected in (("m", m), ("l", P.sum(axis=1)), ("O_acc", P @ V[:c])):
            what = f"{name} after tile ({step.i}, {step.j})"
            oracle.assert_close(getattr(step, name), expected, rounding=1e-12, what=what)


@pytest.mark.parametrize("order", ORDERS)
def test_the_fields_of_a_step_describe_it(order, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 5)
    for s in tiled.steps(Q, K, V, B_r=4, B_c=3, order=order, causal=True):
        assert (s.rows.start, s.cols.start) == (4 * s.i, 3 * s.j)
        shift = np.where(s.m == -np.inf, 0, s.m)
        np.testing.assert_allclose(s.P_ij, np.exp(s.S_ij - shift[:, None]), rtol=1e-15)
        np.testing.assert_allclose(s.alpha, np.exp(s.m_old - shift), rtol=1e-15)
        np.testing.assert_allclose(s.l, s.alpha * s.l_old + s.P_ij.sum(axis=1), rtol=1e-15)
        np.testing.assert_allclose(s.O_acc, s.alpha[:, None] * s.O_acc_old + s.P_ij @ V[s.cols], atol=1e-14)
        assert (s.m >= s.m_old).all() and (s.alpha <= 1).all()


@pytest.mark.parametrize("order", ORDERS)
def test_rows_of_P_sum_to_one(order, rng):
    Q, K, _ = oracle.inputs(rng, 13, 17, 17)
    P = tiled.attention(Q, K, np.eye(17), B_r=4, B_c=3, order=order, causal=True).O  # O = P V = P
    assert (P >= 0).all() and np.abs(P.sum(axis=1) - 1).max() < 1e-14


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("causal", [False, True])
def test_steps_are_snapshots(order, causal, rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 5)
    kept, copied = [], []
    for step in tiled.steps(Q, K, V, B_r=4, B_c=3, order=order, causal=causal):
        kept.append(step)
        copied.append([np.copy(x) for x in step if isinstance(x, np.ndarray)])
    for step, copies in zip(kept, copied, strict=True):
        for x, copy in zip((x for x in step if isinstance(x, np.ndarray)), copies, strict=True):
            np.testing.assert_array_equal(x, copy)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
def test_only_tiles_that_some_row_sees_are_computed(order, N_q, N_k, rng):
    Q, K, V = oracle.inputs(rng, N_q, N_k, 2)
    r, c = np.ogrid[:N_q, :N_k]
    visible = c <= r + N_k - N_q
    for B_r, B_c in BLOCKS:
        computed = [(s.i, s.j) for s in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c, order=order, causal=True)]
        tiles = [(i, j) for i in range(-(-N_q // B_r)) for j in range(-(-N_k // B_c))]
        seen = [t for t in tiles if visible[t[0] * B_r :, t[1] * B_c :][:B_r, :B_c].any()]
        assert sorted(computed) == seen
        per_row = cost.tiles_per_row_block(N_q, N_k, B_r=B_r, B_c=B_c, causal=True)
        assert sum(per_row) == len(seen)


def test_the_orders_visit_the_same_tiles_in_their_own_order(rng):
    Q, K, V = oracle.inputs(rng, 13, 17, 5)
    visits = {order: [(s.i, s.j) for s in tiled.steps(Q, K, V, B_r=4, B_c=3, order=order)] for order in ORDERS}
    assert visits["fa2"] == sorted(visits["fa2"])  # row by row
    assert visits["fa1"] == sorted(visits["fa1"], key=lambda tile: tile[::-1])  # column by column
    assert set(visits["fa1"]) == set(visits["fa2"])


def test_fa2_writes_a_row_block_once_and_fa1_every_time(rng):
    Q, K, V = oracle.inputs(rng, 8, 12, 5)
    for order, unwritten in (("fa2", [True] * 3 + [False] * 3), ("fa1", [False] * 6)):
        O = np.full_like(Q, np.nan)
        trace = tiled.steps(Q, K, V, B_r=4, B_c=4, order=order, O=O)
        assert [bool(np.isnan(O[:4]).any()) for _ in trace] == unwritten


def test_nan_is_not_hidden(rng):
    Q, K, V = oracle.inputs(rng, 8, 12, 5)
    K[5, 0] = np.nan
    for order in ORDERS:
        assert np.isnan(tiled.attention(Q, K, V, B_r=3, B_c=4, order=order).O).all()


def test_a_tile_is_hidden_if_no_row_sees_a_key(rng):
    for _ in range(300):
        r, c, n_r, n_c, past = (int(n) for n in rng.integers([0, 0, 1, 1, -9], [20, 20, 7, 7, 9]))
        rows, cols = slice(r, r + n_r), slice(c, c + n_c)
        visible = tiled.is_visible(rows, cols, past)
        assert tiled.is_hidden(rows, cols, past) == (not visible.any())
