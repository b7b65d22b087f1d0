"""The last exercise of chapter 10: a whole kernel with its launch. Triton is imported by the checks, not here."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.engine import Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import heads, update
from flashlib.softmax import summarise_rows

OUTPUTS = "O", "lse"


def _padded(X, B_c):
    """Return the rows of a head as tiles of B_c rows hold them: zeros after the last."""
    return np.pad(X, ((0, -len(X) % B_c), (0, 0)))


ATTENTION = partial(
    update.looped,
    signature="step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, r, c, past, causal)",
    before=(update.IN_FP32, "seen = (c <= r + past) | (not causal)"),
    padded=_padded,
    **heads.READ,
)


@exercise(
    title="The whole kernel",
    minutes=60,
    difficulty="hard",
    program=ATTENTION,
    variants=("B_c = 32", "B_c = 64", "B_c = 128"),
    limit=15.0,
)
def attention(answer: Callable, known: Known) -> Verdict:
    stages = [
        [
            _attended("blocks that are all full, without a mask", (1, 1, 128, 128, 16)),
            _attended("blocks that are all full, under the causal mask", (1, 1, 128, 128, 16), True),
        ],
        [
            _attended("one query and one key", (1, 1, 1, 1, 16)),
            _attended("a last block that is not full, without a mask", (1, 1, 21, 37, 16)),
            _attended("a last block that is not full, under the causal mask", (1, 1, 21, 21, 16), True),
            _attended("fewer queries than keys, under the causal mask", (1, 1, 5, 37, 16), True),
            _attended("two sequences of two heads", (2, 2, 5, 7, 16)),
            _attended("d = 64 and large scores", (1, 1, 5, 150, 64), size=64),
            _attended("scores of millions, in some rows all below 0", (1, 1, 16, 16, 16), True, size=2**22),
            *random_cases.cases(_any_attended, 3),
        ],
        [_attended("more queries than keys, under the causal mask", (1, 1, 70, 5, 16), True)],
        [
            _attended("two heads that are stored as (B, N, H, d)", (1, 2, 5, 7, 16), stored=("BNHd",) * 3),
            _attended("K and V, each stored in its own way", (1, 2, 5, 7, 16), stored=("BHNd", "BNHd", "BHdN")),
        ],
        [_attended("tensors in fp16", (1, 1, 5, 21, 16), dtype=np.float16, tolerance=2e-3)],
        [_attended("d = 128", (1, 1, 5, 21, 128), True)],
    ]
    return examine(heads.streaming(answer), stages, known, outputs=OUTPUTS, nan="nan, or never stored")


def _attended(words, shape, causal=False, **options):
    """Return the Case of Q, K and V of a shape (B, H, N_q, N_k, d)."""
    return heads.case(words, shape, _exact, causal, **options)


def _any_attended(rng):
    B, H, N_q, N_k = map(int, (*rng.integers(1, 3, 2), *rng.integers(1, 100, 2)))
    shape, causal = (B, H, N_q, max(N_q, N_k), int(rng.choice([16, 32, 64]))), bool(rng.integers(2))
    mask = "with the causal mask" if causal else "without a mask"
    return _attended(f"a shape (B, H, N_q, N_k, d) of {shape}, {mask}", shape, causal, rng=rng)


def _exact(Q, K, V, causal):
    """Return O and lse of one head, all keys at once."""
    S = Q @ K.T / np.sqrt(Q.shape[1])
    seen = np.tri(*S.shape, len(K) - len(Q), dtype=bool) | (not causal)
    return update.finished(summarise_rows(np.where(seen, S, -np.inf), V))
