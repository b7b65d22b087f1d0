"""The whole backward pass: three kernels and their launch. Triton is imported by the check, not here."""

from collections.abc import Callable

import numpy as np

from flashlib import naive
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import multi_head

OUTPUTS = "dQ", "dK", "dV"
FP16 = {"dtype": np.float16, "tolerance": 4e-3}


@exercise(title="The whole backward pass", minutes=60, difficulty="hard", limit=15.0)
def backward_pass(answer: Callable, known: Known) -> Verdict:
    stages = [
        [
            _whole("sizes that are multiples of a tile, without a mask", (1, 1, 64, 64, 16)),
            _whole("sizes that are multiples of a tile, under the causal mask", (1, 1, 64, 64, 16), True),
        ],
        [
            _whole("one query and two keys", (1, 1, 1, 2, 16)),
            _whole("last tiles that are not full, without a mask", (1, 1, 21, 37, 16)),
            _whole("fewer queries than keys, under the causal mask", (1, 1, 5, 75, 16), True),
            _whole("one more key than queries, under the causal mask", (1, 1, 64, 65, 16), True),
            _whole("two sequences of three heads", (2, 3, 12, 14, 16)),
            _whole("d = 128", (1, 1, 33, 50, 128), True),
            *random_cases.cases(_any_whole, 3),
        ],
        [_whole("more queries than keys, under the causal mask", (1, 1, 140, 5, 16), True)],
        [
            _whole("scores near 900", (1, 1, 32, 37, 16), True, last=(40, 90), tolerance=3e-3),
            _whole("scores near -200 and 37 keys, without a mask", (1, 1, 21, 37, 16), below=200, tolerance=3e-3),
            _whole(
                "scores near -200 and 37 keys, under the causal mask",
                (1, 1, 21, 37, 16),
                True,
                below=200,
                tolerance=3e-3,
            ),
        ],
        [
            _whole("tensors in fp16", (1, 2, 21, 37, 32), True, **FP16),
            _whole("fp16, scores near -20 and 37 keys, without a mask", (1, 1, 21, 37, 32), below=20, **FP16),
            _whole("fp16, products of dO and O beyond 65504", (1, 1, 21, 37, 32), large=256, **FP16),
            _whole("fp16, scores near 60 and weights near 1e-8", (1, 1, 21, 37, 32), light=True, **FP16),
        ],
    ]
    run = multi_head.streaming(answer, only_O=False)
    return examine(run, stages, known, outputs=OUTPUTS, nan="nan, or never stored")


def _whole(
    words, shape, causal=False, *, last=None, below=0, large=0, light=False, dtype=np.float32, tolerance=3e-5,
    rng=None,
):  # fmt: skip
    """Return the Case of heads with shape (B, H, N_q, N_k, d).

    last: the last number of each query and of each key, which makes all scores larger. below: how far below 0 the
    scores are. large: the first number of each row of dO and V; the others vary more then, too.
    light: every second key has a weight near 1e-8 and a large V; the other keys have scores near 60, and a V of 0.
    """
    rng = rng or np.random.default_rng(0)
    B, H, N_q, N_k, d = shape
    Q, K, V, dO = (rng.normal(size=(B, H, N, d)) for N in (N_q, N_k, N_k, N_q))
    if last:
        Q[..., -1], K[..., -1] = last
    shift = np.sqrt(below / np.sqrt(d))
    Q, K = Q + shift, K - shift
    if large:
        V, dO = 4 * V, 8 * dO
        V[..., 0] = dO[..., 0] = large
    if light:
        Q[..., -1], K[..., -1] = 6, np.where(np.arange(N_k) % 2, 60, 45) / 6 * np.sqrt(d)
        V *= np.where(np.arange(N_k) % 2, 0, 2**13)[:, None]
    Q, K, V, dO = (X.astype(dtype) for X in (Q, K, V, dO))
    O, lse, grads = np.empty_like(Q), np.empty((B, H, N_q), np.float32), [np.empty_like(X) for X in (Q, K, V)]
    for head in np.ndindex(B, H):
        q, k, v, do = (X[head].astype(float) for X in (Q, K, V, dO))
        o, exact_lse = naive.attention(q, k, v, causal=causal)
        O[head], lse[head] = o, exact_lse
        for X, exact in zip(grads, naive.backward(q, k, v, o, exact_lse, do, causal=causal), strict=True):
            X[head] = exact
    return Case(words, (Q, K, V, O, lse, dO, causal), tuple(grads), tolerance, (dtype,) * 3)


def _any_whole(rng):
    B, H, N_q, N_k = map(int, (*rng.integers(1, 3, 2), *rng.integers(1, 70, 2)))
    shape, causal = (B, H, N_q, max(N_q, N_k, 2), int(rng.choice([16, 32]))), bool(rng.integers(2))
    mask = "with the causal mask" if causal else "without a mask"
    return _whole(f"a shape (B, H, N_q, N_k, d) of {shape}, {mask}", shape, causal, rng=rng)
