"""The last exercise: a whole kernel with its launch. Triton is imported by the checks, not here."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from flashlib.checks.engine import Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import multi_head, update
from flashlib.softmax import summarise_rows

OUTPUTS = "O", "lse"
FP16 = {"dtype": np.float16, "tolerance": 2e-3, "fine": True}  # of P and of O, which are rounded
EXACT = FP16 | {"tolerance": 3e-6}  # of lse, which is not


ATTENTION = partial(
    update.looped,
    signature="step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, r, c, past, causal, N_k, r_0, c_0)",
    before=("half = V_j.dtype", update.IN_FP32, "seen = ((c <= r + past) | (not causal)) & (c < N_k)"),
    LN2=float(np.log(2)),
    **multi_head.READ,
)


@exercise(
    title="The whole kernel",
    minutes=60,
    difficulty="hard",
    program=ATTENTION,
    limit=15.0,
)
def attention(answer: Callable, known: Known) -> Verdict:
    tiles = multi_head.AttentionTilings()
    stages = [
        [
            _attended("blocks that are all full, without a mask", (1, 1, 128, 128, 16)),
            _attended("blocks that are all full, under the causal mask", (1, 1, 128, 128, 16), True),
        ],
        [
            _attended("one query and one key", (1, 1, 1, 1, 16)),
            _attended("a last block that is not full, without a mask", (1, 1, 21, 37, 16)),
            _attended("fewer queries than keys, under the causal mask", (1, 1, 5, 37, 16), True),
            _attended("a key more than queries, under the causal mask", (1, 1, 128, 129, 16), True),
            _attended("two sequences of three heads", (2, 3, 5, 7, 16)),
            _attended("d = 64 and large scores", (1, 1, 5, 150, 64), size=64),
            _attended("scores in the millions, all below 0 in some rows", (1, 1, 16, 16, 16), True, size=2**22),
            _attended("scores of -1.7e10, all equal", (1, 1, 5, 21, 16), alike=2.0**16),
            _attended("scores of 0", (1, 1, 5, 150, 16), size=0),
            *random_cases.cases(_any_attended, 3),
        ],
        [_attended("more queries than keys, under the causal mask", (1, 1, 70, 5, 16), True)],
        [_attended("Q, K and V, each in a different order", (1, 2, 5, 7, 16), stored=multi_head.APART)],
        [_attended("d = 128, and numbers that fp16 cannot represent", (1, 1, 5, 21, 128), True, fine=True)],
        [
            _attended("tensors in fp16, and sums beyond 65504", (1, 1, 5, 150, 32), V_size=2**15, **FP16),
            _attended("tensors in fp16, d = 128, and V of 0", (1, 1, 16, 150, 128), size=4, V_size=0, **EXACT),
        ],
    ]
    known = replace(known, variants=tiles)
    return examine(
        multi_head.streaming(answer, tiles=tiles), stages, known, outputs=OUTPUTS, nan="nan, or never stored"
    )


def _attended(words, shape, causal=False, **options):
    """Return the Case of Q, K and V with shape (B, H, N_q, N_k, d)."""
    return multi_head.case(words, shape, _exact, causal, **options)


def _any_attended(rng):
    B, H, N_q, N_k = map(int, (*rng.integers(1, 3, 2), *rng.integers(1, 100, 2)))
    shape, causal = (B, H, N_q, max(N_q, N_k), int(rng.choice([16, 32, 64]))), bool(rng.integers(2))
    mask = "with the causal mask" if causal else "without a mask"
    return _attended(f"a shape (B, H, N_q, N_k, d) of {shape}, {mask}", shape, causal, rng=rng)


def _exact(Q, K, V, causal):
    """Return O and lse of one head, computed from all keys at once."""
    S = Q @ K.T / np.sqrt(Q.shape[1])
    seen = np.tri(*S.shape, len(K) - len(Q), dtype=bool) | (not causal)
    return update.finished(summarise_rows(np.where(seen, S, -np.inf), V))
