"""Scores that read a tensor, in NumPy and torch: compared with the definition, with gradients, and refusals."""

import numpy as np
import pytest

from flashlib import masks, naive, tiled
from tests import biased, masked, oracle

SIZES = [(7, 13), (13, 7), (1, 19)]


def factors(T):
    """Return a change whose derivative with respect to an entry depends on the result of the previous change."""
    change = masks.score(
        lambda S, h, r, c, t: S * (1 + t), lambda S, h, r, c, t: 1 + t, bias=T, at=biased.of_head,
        by_bias=lambda S, h, r, c, t: S,
    )  # fmt: skip
    return masks.softcap(2.0) & change


KINDS = biased.KINDS | {
    "factors": biased.Kind(
        lambda B, H, *_: (H,), factors, lambda b, h, i, r, c, N_q: (h,),
        lambda s, t, r, c: 2.0 * np.tanh(s / 2.0) * (1 + t),
    )
}  # fmt: skip


def by_definition(kind, T, Q, K, V, dO, causal):
    """Return O, lse, the gradients and that of T for one head, in fp64, from a Kind's definition alone."""
    N_q, N_k = len(Q), len(K)
    past, windowed = N_k - N_q, kind.mask is biased.between_caps

    def score(s, r, c, T=T):
        return kind.score(s, T[kind.entry(0, 0, r - past, r, np.int64(c), N_q)], r, c)

    def sees(r, c):
        return (not causal or c <= r) and (not windowed or r - 9 <= c <= r + 3)

    O, lse, grads = masked.attention(Q, K, V, masked.Case(None, sees, score), dO=dO)
    dT = np.zeros_like(T)
    for at in np.ndindex(T.shape):  # by differences: O is smooth in each entry
        step = np.zeros_like(T)
        step[at] = 1e-5
        changed = [lambda s, r, c, T=T + n * step: score(s, r, c, T) for n in (1, -1)]
        ends = [masked.attention(Q, K, V, masked.Case(None, sees, of))[0] for of in changed]
        dT[at] = ((ends[0] - ends[1]) * dO).sum() / 2e-5
    return O, lse, grads, dT


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [(3, 5), (5, 3)], ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_equals_the_definition_and_its_gradients_are_those_of_differences(name, size, causal, rng):
    kind, (N_q, N_k) = KINDS[name], size
    Q, K, V, dO = (rng.standard_normal((n, 4)) for n in (N_q, N_k, N_k, N_q))
    T = rng.standard_normal(kind.shape(1, 1, N_q, N_k))
    O_exact, lse_exact, exact, dT_exact = by_definition(kind, T, Q, K, V, dO, causal)
    options = {"mask": kind.mask(T), "causal": causal}
    O, lse = tiled.attention(Q, K, V, B_r=2, B_c=3, **options)
    oracle.assert_close(O, O_exact, rounding=1e-12)
    oracle.assert_close(lse, lse_exact, rounding=1e-12)
    oracle.assert_close(naive.attention(Q, K, V, **options).O, O_exact, rounding=1e-12)
    oracle.assert_close(tiled.attention(Q, K, V, B_r=2, B_c=3, order="fa1", **options).O, O_exact, rounding=1e-12)
    for backward in (tiled.backward, naive.backward):
        for X, X_exact in zip(backward(Q, K, V, O, lse, dO, **options), exact, strict=True):
            oracle.assert_close(X, X_exact, rounding=1e-8)
    (dT,) = tiled.bias_gradients(Q, K, V, O, lse, dO, B_r=2, B_c=3, **options)
    oracle.assert_close(dT, dT_exact, rounding=1e-8)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_torch_and_its_autograd_agree_with_tiles(name, size, rng):
    torch, torch_ref = pytest.importorskip("torch"), pytest.importorskip("flashlib.torch_ref")
    kind, (N_q, N_k) = KINDS[name], size
    Q, K, V, dO = (rng.standard_normal((n, 4)) for n in (N_q, N_k, N_k, N_q))
    T = rng.standard_normal(kind.shape(1, 1, N_q, N_k))
    O, lse = tiled.attention(Q, K, V, mask=kind.mask(T), B_r=4, B_c=5, causal=True)
    given = tiled.bias_gradients(Q, K, V, O, lse, dO, mask=kind.mask(T), B_r=4, B_c=5, causal=True)
    leaf = torch.from_numpy(T).requires_grad_()
    tensors = (torch.from_numpy(X)[None, None] for X in (Q, K, V))
    found = torch_ref.attention(*tensors, mask=kind.mask(leaf), causal=True)
    (exact,) = torch.autograd.grad(found.O, leaf, torch.from_numpy(dO)[None, None])
    oracle.assert_close(O, found.O[0, 0].detach(), rounding=1e-12)
    oracle.assert_close(*given, exact, rounding=1e-12)


@pytest.mark.parametrize("which", ["torch", "NumPy"])
def test_a_part_reads_the_entries_of_the_whole_and_shares_of_gradients_add_up(which, rng):
    N, rows, keys = 24, (range(3, 9), range(15, 21)), range(1, 24, 2)
    T = rng.standard_normal(2 * N - 1)
    mask = masks.distance_bias(T) & masks.causal()
    part = masks.placed(mask, N, N, rows, keys)
    r, c = (np.concatenate([np.arange(x.start, x.stop, x.step) for x in runs]) for runs in (rows, (keys,)))
    S, place = rng.standard_normal((N, N)), masks.Place(len(r), len(c))
    own = np.ix_(r, c)
    at = np.ogrid[: len(r), : len(c)]
    positions = at[0] + place.past, at[1]
    if which == "torch":
        torch = pytest.importorskip("torch")
        given = part.score(torch.from_numpy(S[own]), place, *map(torch.from_numpy, positions)).numpy()
    else:
        given = part.score(S[own], place, *positions)
    np.testing.assert_allclose(given, (S + T[np.subtract.outer(np.arange(N), np.arange(N)) + N - 1])[own])
    Q, K, V, dO = (rng.standard_normal((N, 4)) for _ in range(4))
    O, lse = tiled.attention(Q, K, V, mask=mask)
    whole = tiled.bias_gradients(Q, K, V, O, lse, dO, mask=mask)[0]
    halves = [
        tiled.bias_gradients(Q, X, Y, O, lse, dO, mask=masks.placed(mask, N, N, range(N), cols))[0]
        for cols, X, Y in ((range(s, N, 2), K[s::2], V[s::2]) for s in (0, 1))
    ]
    np.testing.assert_allclose(sum(halves), whole, atol=1e-12)


def test_changes_of_an_array_take_effect_and_dtypes_stay(rng):
    Q, K, V, dO = (rng.standard_normal((9, 4)).astype(np.float32) for _ in range(4))
    T = np.zeros((9, 9), np.float16)
    mask = masks.bias(T)
    assert np.array_equal(tiled.attention(Q, K, V, mask=mask).O, tiled.attention(Q, K, V).O)
    T[:, 3:] = -np.inf
    O, lse = tiled.attention(Q, K, V, mask=mask)
    oracle.assert_close(O, tiled.attention(Q, K[:3], V[:3]).O, rounding=1e-6)
    (dT,) = tiled.bias_gradients(Q, K, V, O, lse, dO, mask=mask)
    assert dT.dtype == np.float16 and not dT[:, 3:].any() and dT[:, :3].any()
    assert tiled.bias_gradients(Q, K, V, O, lse, dO, mask=masks.causal()) == ()
    options = {"mask": masks.bias(rng.standard_normal((1, 9))), "B_r": 2, "B_c": 4}  # of each key, in fp64
    given = Q, K, V, *tiled.attention(Q, K, V, **options), dO
    dS = np.zeros((9, 9))
    for step in tiled.backward_steps(*given, wrt="q", **options):
        dS[step.rows, step.cols] = step.dS_ij
    (dT,) = tiled.bias_gradients(*given, **options)
    assert dT.dtype == np.float64
    np.testing.assert_allclose(dT[0], dS.sum(0), rtol=1e-12, atol=1e-12)


def test_the_buckets_of_t5(rng):
    """A weight for each bucket and head, spread over distances: autograd adds up the gradients of a bucket."""
    torch, torch_ref = pytest.importorskip("torch"), pytest.importorskip("flashlib.torch_ref")
    assert biased.bucket(np.array([-9, 0, 1, 2, 3, 4, 9, 19, 20, 500])).tolist() == [0, 0, 1, 2, 3, 3, 4, 5, 5, 5]
    N_q, N_k, H = 11, 17, 2
    Q, K, V = (torch.from_numpy(rng.standard_normal((1, H, n, 4))) for n in (N_q, N_k, N_k))
    weight = torch.from_numpy(rng.standard_normal((6, H))).requires_grad_()
    spread = weight[torch.from_numpy(biased.bucket(np.arange(1 - N_q, N_k)))].T
    r, c = np.arange(N_q)[:, None] + N_k - N_q, np.arange(N_k)
    table = weight[torch.from_numpy(biased.bucket(r - c))].permute(2, 0, 1)[None]  # what T5's layer computes
    grads = []
    for mask in (masks.distance_bias(spread), masks.bias(table)):
        O = torch_ref.attention(Q, K, V, mask=mask, causal=True, scale=1.0).O
        grads.append((O, torch.autograd.grad(O.square().sum(), weight)[0]))
    for X, Y in zip(*grads, strict=True):
        torch.testing.assert_close(X, Y)


def G(S, h, r, c):
    return S


def G5(S, h, r, c, t):
    return S


T = np.zeros((2, 8, 8))
Q8 = np.zeros((8, 4))
REFUSED = [
    (lambda: masks.bias([[0, 1]]), TypeError, "bias has dtype int64; pass floating-point numbers"),
    (lambda: masks.bias([[0.0], []]), TypeError, "bias is ..0.0., ...; pass an array or a tensor of floats"),
    (lambda: masks.bias(np.zeros((1,) * 5)), ValueError, "pass one that broadcasts to .B, H, N_q, N_k."),
    (lambda: masks.bias(T, lambda r, c: c), TypeError, "accepted are .b, h, r, c."),
    (lambda: masks.bias(T, kernel=G), TypeError, "kernel is .*; pass a @triton.jit function of .b, h, r, c."),
    (lambda: masks.bias(1.0, lambda b, h, r, c: 0), ValueError, "bias is a single number; pass a tensor with"),
    (lambda: masks.distance_bias(T), ValueError, "bias has shape .2, 8, 8.; pass .N_q . N_k - 1,., or"),
    (lambda: masks.distance_bias(T[0, 0]).on(4, 4), ValueError, "bias has 8 distances, .* have 7, from -3 to 3"),
    (lambda: masks.bias(T[0]).on(8, 7), ValueError, "bias has 8 keys, and there are 7"),
    (lambda: masks.bias(T).on(8, 8), ValueError, "the mask is made for 2 heads, .* pass the part"),
    (lambda: masks.score(G5, G5, bias=T), TypeError, "by_bias is None; pass the derivative of f by the entry t"),
    (lambda: masks.score(G, G, bias=T, by_bias=G5), TypeError, "accepted are .S, h, r, c, t."),
    (lambda: masks.score(G, G, at=G), TypeError, "bias is None, and at is given"),
    (lambda: masks.score(G, G, by_bias=G5), TypeError, "bias is None, and by_bias is given"),
    (lambda: masks.score(G5, G5, bias=T, by_bias=G5, kernel=(G, G)), TypeError, "pass @triton.jit functions"),
    (lambda: masks.bias(T) | masks.causal(), ValueError, "biased changes scores, and a union does not say"),
    (lambda: _attention(lambda b, h, r, c: (h, c)), ValueError, "returned 2 indices, and bias has the shape"),
    (lambda: _attention(lambda b, h, r, c: (h, r, c + 1)), ValueError, "returned 8 for axis 2, which has 8"),
    (lambda: _attention(lambda b, h, r, c: (h, r - 1, c)), ValueError, "returned -1 for axis 1"),
    (lambda: _attention(lambda b, h, r, c: (h, r, c / 2)), TypeError, "returned float64; it must return whole"),
]  # fmt: skip


def _attention(at):
    return tiled.attention(Q8, Q8, Q8, mask=masks.bias(T, at))


@pytest.mark.parametrize("call, error, words", REFUSED)
def test_a_bias_that_does_not_fit_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_numpy_takes_arrays_and_torch_both(rng):
    torch, torch_ref = pytest.importorskip("torch"), pytest.importorskip("flashlib.torch_ref")
    with pytest.raises(TypeError, match="bias is a torch tensor, and NumPy computes: pass bias.detach"):
        tiled.steps(Q8, Q8, Q8, mask=masks.bias(torch.zeros(8, 8)))
    X = torch.zeros(1, 2, 8, 4, device="cpu")
    torch_ref.attention(X, X, X, mask=masks.bias(T))
    with pytest.raises(ValueError, match="bias is on meta and the scores on cpu; move them"):
        torch_ref.attention(X, X, X, mask=masks.bias(torch.zeros(8, 8, device="meta")))
    assert repr(masks.bias(T)) == "bias(<(2, 8, 8)>)"
    assert repr(masks.distance_bias(T[0, 0]) & masks.causal()) == "distance_bias(<(8,)>) & causal()"
