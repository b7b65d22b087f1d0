"""A sink is one more key, with a score and no value, forward and backward, and its gradient is exact."""

import numpy as np
import pytest

from flashlib import masks, naive, sink, softmax, tiled
from tests import masked, oracle

SIZES = masked.SIZES
SINKS = [-3.0, 0.0, 1.7, 40.0]


def problem(rng, N_q, N_k, d=3, d_v=4):
    return tuple(rng.standard_normal(shape) for shape in ((N_q, d), (N_k, d), (N_k, d_v), (N_q, d_v)))


def with_a_key_more(Q, K, V, at, mask=None):
    """Return naive attention with an additional first key: its score is `at` in every row, its value is 0."""
    N_q, N_k = len(Q), len(K)
    score = masks.score(lambda S, h, r, c: np.where(c == 0, at, S), lambda S, h, r, c: 1.0 * (c > 0))
    inner = masks.Mask() if mask is None else mask
    shifted = masks.from_function(lambda r, c: (c == 0) | inner.sees(masks.Place(N_q, N_k), r - 1, c - 1))
    K, V = (np.concatenate([np.zeros((1, X.shape[1])), X]) for X in (K, V))
    return naive.attention(Q, K, V, mask=score & shifted)


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("at", SINKS)
@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(2, 1)], ids=["no mask", "causal", "window"])
def test_it_is_one_more_key_with_this_score_and_no_value(N_q, N_k, at, mask, rng):
    Q, K, V, _ = problem(rng, N_q, N_k)
    expected = with_a_key_more(Q, K, V, at, mask)
    for order in ("fa1", "fa2"):
        given = sink.add(tiled.attention(Q, K, V, B_r=3, B_c=2, order=order, mask=mask), at)
        oracle.assert_close(given.O, expected.O, rounding=1e-13, what="O")
        oracle.assert_close(given.lse, expected.lse, rounding=1e-13, what="lse")


def test_it_is_a_merged_state(rng):
    Q, K, V, _ = problem(rng, 5, 7)
    last = list(tiled.steps(Q, K, V, B_r=5, B_c=3))[-1]
    merged = softmax.merge(
        softmax.State(last.m, last.l, last.O_acc), softmax.State(0.6 + 0 * last.m, 1 + 0 * last.l, 0 * last.O_acc)
    )
    given = sink.add(naive.attention(Q, K, V), 0.6)
    np.testing.assert_allclose(given.O, merged.O_acc / merged.l[:, None], atol=1e-14)
    np.testing.assert_allclose(given.lse, merged.m + np.log(merged.l), atol=1e-14)


def test_a_row_that_sees_no_key_has_O_0_and_the_sink_as_lse(rng):
    Q, K, V, dO = problem(rng, 7, 3)
    before = naive.attention(Q, K, V, causal=True)
    given = sink.add(before, -1.25)
    assert not given.O[:4].any() and (given.lse[:4] == -1.25).all() and np.isfinite(given.O).all()
    nothing = sink.add(before, -np.inf)  # no sink at all
    assert np.array_equal(nothing.O, before.O) and np.array_equal(nothing.lse, before.lse)
    assert sink.gradient(nothing, -np.inf, dO) == 0


def differences(f, X, h=1e-5):
    """Return the central differences of f() with respect to each number of X."""
    slopes = np.empty_like(X)
    for at in np.ndindex(X.shape):
        value = X[at]
        X[at] = value + h
        above = f()
        X[at] = value - h
        slopes[at] = (above - f()) / (2 * h)
        X[at] = value
    return slopes


@pytest.mark.parametrize(
    "mask",
    [None, masks.causal(), masks.window(2, 1) & masks.softcap(1.0)],
    ids=["no mask", "causal", "capped window"],
)
@pytest.mark.parametrize("N_q, N_k", [(5, 8), (8, 5), (1, 1)])
def test_gradients_with_its_O_and_lse_are_exact(N_q, N_k, mask, rng):
    Q, K, V, dO = problem(rng, N_q, N_k)
    at, mask = np.array(0.4), {"mask": mask}

    def loss():
        return (sink.add(naive.attention(Q, K, V, **mask), at).O * dO).sum()

    given = sink.add(tiled.attention(Q, K, V, **mask), at)
    exact = [differences(loss, X) for X in (Q, K, V)]
    for grads in (
        naive.backward(Q, K, V, *given, dO, **mask),
        tiled.backward(Q, K, V, *given, dO, B_r=2, B_c=3, **mask),
    ):
        for name, X, expected in zip(grads._fields, grads, exact, strict=True):
            oracle.assert_close(X, expected, rounding=1e-8, what=name)
    oracle.assert_close(sink.gradient(given, at, dO), differences(loss, at), rounding=1e-8, what="dsink")


@pytest.mark.parametrize("sinks", [0.7, np.array([-1.0, 0.5, 2.0])], ids=["a number", "one a head"])
def test_torch_and_numpy_agree_and_autograd_too(sinks, rng):
    torch = pytest.importorskip("torch")
    from flashlib import torch_ref

    Q, K, V, dO = (torch.from_numpy(rng.standard_normal((2, 3, n, 4))) for n in (7, 5, 5, 7))
    learned = torch.tensor(sinks, dtype=torch.float64, requires_grad=True)
    for X in (Q, K, V):
        X.requires_grad_()
    given = sink.add(torch_ref.attention(Q, K, V, causal=True), learned)
    (given.O * dO).sum().backward()
    assert all(torch.isfinite(X.grad).all() for X in (Q, K, V))
    mine = sink.gradient(given, learned.detach(), dO)
    assert mine.shape == learned.shape
    torch.testing.assert_close(mine, learned.grad)
    for b, h in np.ndindex(2, 3):
        one = [X[b, h].detach().numpy() for X in (Q, K, V)]
        at = float(np.broadcast_to(sinks, 3)[h])
        head = sink.add(naive.attention(*one, causal=True), at)
        np.testing.assert_allclose(given.O[b, h].detach(), head.O, atol=1e-13)
        np.testing.assert_allclose(given.lse[b, h].detach(), head.lse, atol=1e-13)
        grads = tiled.backward(*one, *head, dO[b, h].numpy(), causal=True)
        for X, dX in zip((Q, K, V), grads, strict=True):
            np.testing.assert_allclose(X.grad[b, h], dX, atol=1e-12)
    plain = sink.add(tuple(X.detach().numpy() for X in torch_ref.attention(Q, K, V, causal=True)), sinks)
    np.testing.assert_allclose(plain.O, given.O.detach(), atol=1e-14)
    np.testing.assert_allclose(sink.gradient(plain, sinks, dO.numpy()), mine.detach(), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_dtypes_are_kept(dtype, rng):
    Q, K, V, dO = (X.astype(dtype) for X in problem(rng, 5, 7))
    O, lse = given = sink.add(naive.attention(Q, K, V), 1.0)
    assert O.dtype == dtype and lse.dtype == np.float32 and sink.gradient(given, 1.0, dO).dtype == np.float32
    wide = sink.gradient([X.astype(np.float64) for X in given], 1.0, dO.astype(np.float64))
    np.testing.assert_allclose(sink.gradient(given, 1.0, dO), wide, rtol=1e-5)  # summed in the dtype of lse
    exact = sink.add(naive.attention(*(X.astype(np.float64) for X in (Q, K, V))), 1.0)
    assert oracle.worst(O, exact.O) < 4 * np.finfo(dtype).eps


def test_sinks_of_a_wrong_shape_are_refused(rng):
    Q, K, V, dO = problem(rng, 5, 7)
    one = naive.attention(Q, K, V)
    many = np.ones((2, 3, 5, 4)), np.ones((2, 3, 5))
    for attention, bad in ((one, [1.0, 2.0]), (many, [1.0, 2.0]), (many, np.ones((2, 3)))):
        for call in (lambda: sink.add(attention, bad), lambda: sink.gradient(attention, bad, dO)):  # noqa: B023
            with pytest.raises(ValueError, match="sink has shape .*; pass a number, or for lse of"):
                call()
