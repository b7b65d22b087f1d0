"""The gradients of naive and tiled equal autograd and finite differences, and are metered like O and lse."""

import ast
import inspect

import numpy as np
import pytest

from flashlib import cost, naive, tiled
from flashlib.memory import HBM
from tests import masked, oracle

BLOCKS = [(1, 1), (3, 4), (8, 5), (16, 16), (100, 100)]


def problem(rng, N_q, N_k, d, dtype=np.float64, **options):
    """Return Q, K, V, O, lse, dO for the backward pass."""
    Q, K, V = oracle.inputs(rng, N_q, N_k, d, dtype)
    O, lse = naive.attention(Q, K, V, **options)
    return Q, K, V, O, lse, rng.standard_normal((N_q, d)).astype(dtype)


def autograd(Q, K, V, dO, *, causal=False, scale=None):
    """Return dQ, dK, dV from torch's autograd through plain attention in fp64, without rows that see nothing."""
    torch = pytest.importorskip("torch")
    Q, K, V, dO = (torch.from_numpy(X.astype(np.float64)) for X in (Q, K, V, dO))
    for X in (Q, K, V):
        X.requires_grad_()
    N_q, N_k = len(Q), len(K)
    S = Q @ K.T * (Q.shape[1] ** -0.5 if scale is None else scale)
    seen = torch.ones(N_q, N_k, dtype=torch.bool).tril(N_k - N_q if causal else N_k)
    some = seen.any(dim=1)
    P = S.masked_fill(~seen, -torch.inf)[some].softmax(dim=1)
    (P @ V * dO[some]).sum().backward()
    return tuple(X.grad.numpy() for X in (Q, K, V))


def all_ways(*arguments, **options):
    """Yield (name, Grads) of naive.backward and of tiled.backward for all BLOCKS."""
    yield "naive", naive.backward(*arguments, **options)
    for B_r, B_c in BLOCKS:
        yield f"tiled, {B_r} x {B_c}", tiled.backward(*arguments, B_r=B_r, B_c=B_c, **options)


@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_equal_autograd_for_all_block_sizes(N_q, N_k, causal, scale, rng):
    options = {"causal": causal, "scale": scale}
    arrays = problem(rng, N_q, N_k, 5, **options)
    exact = autograd(*arrays[:3], arrays[-1], **options)
    for way, grads in all_ways(*arrays, **options):
        for name, given, expected in zip(grads._fields, grads, exact, strict=True):
            oracle.assert_close(given, expected, rounding=1e-10, what=f"{name}, {way}")


@pytest.mark.parametrize("causal", [False, True])
def test_equal_finite_differences(causal, rng):
    Q, K, V, O, lse, dO = problem(rng, 7, 9, 3, causal=causal)
    grads = tiled.backward(Q, K, V, O, lse, dO, B_r=4, B_c=2, causal=causal)

    def loss():
        return (naive.attention(Q, K, V, causal=causal).O * dO).sum()

    for X, dX in zip((Q, K, V), grads, strict=True):
        for at in np.ndindex(X.shape):
            value, h = X[at], 1e-5
            X[at] = value + h
            above = loss()
            X[at] = value - h
            below = loss()
            X[at] = value
            assert abs((above - below) / (2 * h) - dX[at]) < 1e-8


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_error_is_at_most_twice_that_of_storing_P_and_dS(dtype, causal, rng):
    arrays = problem(rng, 53, 71, 16, dtype, causal=causal)
    exact = autograd(*arrays[:3], arrays[-1], causal=causal)
    plain = naive.backward(*arrays, causal=causal)
    given = tiled.backward(*arrays, B_r=16, B_c=11, causal=causal)
    for name, X, expected, by_storing in zip(given._fields, given, exact, plain, strict=True):
        assert X.dtype == dtype
        oracle.assert_close(X, expected, plain=by_storing, rounding=float(np.finfo(dtype).eps), what=name)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", masked.KINDS)
def test_metered_bytes_equal_the_closed_forms(causal, kind, rng):
    for _ in range(6):
        N_q, N_k, d, B_r, B_c = case = tuple(int(n) for n in rng.integers([0, 0, 1, 1, 1], [20, 20, 6, 9, 9]))
        dtype = str(rng.choice(["float16", "float32", "float64"]))
        mask = {"causal": causal, "mask": masked.draw(kind, rng, N_q, N_k).mask}
        arrays = problem(rng, N_q, N_k, d, dtype, **mask)
        tiles = {"B_r": B_r, "B_c": B_c, **mask}
        for backward, options, expected in [
            (naive.backward, mask, cost.standard_backward_traffic(N_q, N_k, d, dtype=dtype)),
            (tiled.backward, tiles, cost.fa2_backward_traffic(N_q, N_k, d, **tiles, dtype=dtype)),
        ]:
            placed = HBM.put(*arrays)
            metered = backward(*placed, **options)
            assert placed[0].traffic == expected, (backward, case, dtype)
            for X, plain in zip(metered, backward(*arrays, **options), strict=True):
                np.testing.assert_array_equal(X.view(np.ndarray), plain)


@pytest.mark.parametrize("wrt", ["kv", "q"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_step_is_what_its_fields_say(wrt, causal, rng):
    Q, K, V, O, lse, dO = problem(rng, 13, 17, 5, causal=causal)
    delta, scale = (dO * O).sum(axis=1), 5**-0.5
    for s in tiled.backward_steps(Q, K, V, O, lse, dO, wrt=wrt, B_r=4, B_c=3, causal=causal):
        assert (s.rows.start, s.cols.start) == (4 * s.i, 3 * s.j)
        seen = tiled.is_visible(s.rows, s.cols, 4) if causal else np.ones(s.P_ij.shape, bool)
        P = np.where(seen, np.exp(Q[s.rows] @ K[s.cols].T * scale - lse[s.rows, None]), 0)
        np.testing.assert_allclose(s.P_ij, P, atol=1e-14)
        np.testing.assert_allclose(s.dP_ij, dO[s.rows] @ V[s.cols].T, atol=1e-14)
        np.testing.assert_allclose(s.dS_ij, P * (s.dP_ij - delta[s.rows, None]), atol=1e-13)
        assert [X is None for X in (s.dQ_i, s.dK_j, s.dV_j)] == [wrt == "kv", wrt == "q", wrt == "q"]


@pytest.mark.parametrize("wrt", ["kv", "q"])
def test_steps_are_snapshots_and_write_all_they_are_given(wrt, rng):
    Q, K, V, O, lse, dO = arrays = problem(rng, 13, 17, 5, causal=True)
    given = {
        "kv": {"dK": np.full_like(K, np.nan), "dV": np.full_like(V, np.nan)},
        "q": {"dQ": np.full_like(Q, np.nan)},
    }
    kept, copied = [], []
    for step in tiled.backward_steps(*arrays, wrt=wrt, B_r=4, B_c=3, causal=True, **given[wrt]):
        kept.append(step)
        copied.append([np.copy(x) for x in step if isinstance(x, np.ndarray)])
    for step, copies in zip(kept, copied, strict=True):
        for x, copy in zip((x for x in step if isinstance(x, np.ndarray)), copies, strict=True):
            np.testing.assert_array_equal(x, copy)
    exact = naive.backward(*arrays, causal=True)
    for name, X in given[wrt].items():
        oracle.assert_close(X, getattr(exact, name), rounding=1e-12, what=name)


@pytest.mark.parametrize("wrt", ["kv", "q"])
@pytest.mark.parametrize("N_q, N_k", oracle.SIZES)
def test_the_passes_compute_the_tiles_of_the_forward_pass(wrt, N_q, N_k, rng):
    arrays = problem(rng, N_q, N_k, 2, causal=True)
    tiles = {"B_r": 3, "B_c": 4, "causal": True}
    forward = [(s.i, s.j) for s in tiled.steps(*arrays[:3], **tiles)]
    backward = [(s.i, s.j) for s in tiled.backward_steps(*arrays, wrt=wrt, **tiles)]
    assert sorted(backward) == forward
    assert backward == (forward if wrt == "q" else sorted(forward, key=lambda tile: tile[::-1]))


def test_rows_of_dS_sum_to_zero(rng):
    """A softmax does not change if a number is added to all scores of a row."""
    arrays = problem(rng, 13, 17, 5)
    (step,) = tiled.backward_steps(*arrays, wrt="q", B_r=13, B_c=17)
    assert np.abs(step.dS_ij.sum(axis=1)).max() < 1e-14


def test_the_inputs_are_not_changed(rng):
    arrays = problem(rng, 13, 17, 5, causal=True)
    copies = [X.copy() for X in arrays]
    for _ in all_ways(*arrays, causal=True):
        pass
    for X, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(X, copy)


def test_nan_is_not_hidden(rng):
    Q, K, V, O, lse, dO = problem(rng, 7, 13, 5)
    dO[3, 2] = np.nan
    for way, grads in all_ways(Q, K, V, O, lse, dO):
        assert all(np.isnan(X).any() for X in grads), way


@pytest.mark.parametrize("backward", [naive.backward, tiled.backward, tiled.backward_steps])
def test_bad_input_is_refused(backward, rng):
    Q, K, V, O, lse, dO = problem(rng, 7, 9, 5)
    options = {"wrt": "q"} if backward is tiled.backward_steps else {}
    for arguments, more, error, words in [
        ((Q, K, V, O[:3], lse, dO), {}, ValueError, r"O has shape \(3, 5\) and Q \(7, 5\); they must be equal"),
        ((Q, K, V, O, lse, dO[:, :2]), {}, ValueError, r"dO has shape \(7, 2\) and Q \(7, 5\)"),
        ((Q, K, V, O, lse[:6], dO), {}, ValueError, r"lse has shape \(6,\) and dtype float64; expected \(7,\)"),
        ((Q, K, V, O, lse.astype("f4"), dO), {}, ValueError, "dtype float32; expected .* float64: pass the lse"),
        ((Q, K, V, O.astype("f4"), lse, dO), {}, TypeError, "O has dtype float32 and Q has float64"),
        ((Q, K, V.tolist(), O, lse, dO), {}, TypeError, "V is of type list; pass a plain NumPy array"),
        ((Q, K, V, O, lse, dO), {"causal": 1}, TypeError, "causal is 1; pass True or False"),
        ((Q, K, V, O, lse, dO), {"scale": 0}, ValueError, "scale is 0; pass a positive number"),
    ]:
        with pytest.raises(error, match=words):
            backward(*arguments, **options, **more)


def test_bad_tilings_and_outputs_are_refused(rng):
    arrays = problem(rng, 7, 9, 5)
    with pytest.raises(ValueError, match="wrt is 'k'; accepted are"):
        tiled.backward_steps(*arrays, wrt="k")
    with pytest.raises(ValueError, match="B_c is 0"):
        tiled.backward(*arrays, B_c=0)
    with pytest.raises(ValueError, match=r"dK has shape \(7, 5\) and dtype float64; expected \(9, 5\)"):
        tiled.backward_steps(*arrays, wrt="kv", dK=np.empty((7, 5)))


@pytest.mark.parametrize("core", [tiled.dkv_steps, tiled.dq_steps])
def test_a_generator_is_read_in_one_go(core):
    body = ast.parse(inspect.getsource(core)).body[0]
    assert body.end_lineno - body.lineno + 1 - 1 <= 25  # without the docstring


def test_flops_are_two_and_a_half_times_the_forwards():
    for causal in (False, True):
        forward = cost.flops(1024, 2048, 64, causal=causal)
        assert cost.backward_flops(1024, 2048, 64, causal=causal) == 2.5 * forward
