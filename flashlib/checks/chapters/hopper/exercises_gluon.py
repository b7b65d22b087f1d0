"""The exercises in Gluon. Triton is imported by the checks, not here."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases, solutions
from flashlib.checks.harness import multi_head, update
from flashlib.softmax import summarise_rows

LOG2E = np.log2(np.e)
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.2e-2}  # of O: P and O are rounded
EXACT = 1e-5  # of results that are summed in fp32


def _numbers(rng, *shape):
    """Return numbers that both fp16 and bf16 represent exactly."""
    return rng.integers(-24, 25, shape) / 16


# ---- a producer


@exercise(
    title="A producer in Gluon", minutes=20, difficulty="medium", program=solutions.program("gluon_producer"),
    limit=15.0,
)  # fmt: skip
def gluon_producer(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import gluon_launches, gluon_parts

    stages = [
        [
            _produced("a tile in each slot", (1, 2, 128, 128), 0, 0, 0, 64, 2),
            _produced("more tiles than slots", (1, 1, 128, 320), 0, 0, 0, 64, 2),
        ],
        [
            _produced("the third head of the second sequence", (2, 3, 128, 192), 1, 2, 0, 64, 2),
            _produced("the second row block of a head", (2, 2, 300, 130), 0, 1, 128, 64, 2),
            _produced("last blocks that are not full", (1, 2, 150, 333), 0, 1, 128, 128, 2),
            _produced("one slot", (1, 1, 64, 200), 0, 0, 0, 64, 1),
            _produced("three slots", (1, 1, 64, 500), 0, 0, 0, 64, 3),
            *random_cases.cases(_any_produced, 2),
        ],
    ]
    return gluon_launches.examine_gluon(gluon_parts.run_producer, answer, stages, known, ("Q", "K", "V"))


def _produced(words, shape, b, h, row, B_c, stages, rng=None, d=64):
    """Return the Case of Q, K and V with shape (B, H, N_q, N_k)."""
    rng = rng or np.random.default_rng(0)
    B, H, N_q, N_k = shape
    Q, K, V = (_numbers(rng, B, H, N, d).astype(np.float32) for N in (N_q, N_k, N_k))
    rows = np.zeros((1, 128, d), np.float32)
    rows[0, : N_q - row] = Q[b, h, row : row + 128]
    both = [np.stack([X[b, h]] * 2).astype(np.float16) for X in (K, V)]
    return Case(words, (Q, K, V, b, h, row, B_c, stages), (rows.astype(np.float16), *both), 0.0)


def _any_produced(rng):
    B, H, N_q, N_k = map(int, rng.integers((1, 1, 1, 1), (3, 4, 300, 400)))
    b, h, row = int(rng.integers(B)), int(rng.integers(H)), 128 * int(rng.integers(-(-N_q // 128)))
    B_c, stages = int(rng.choice([64, 128])), int(rng.integers(1, 4))
    words = f"{B} x {H} heads of {N_q} rows and {N_k} keys, head ({b}, {h}), row {row}, {stages} slots"
    return _produced(words, (B, H, N_q, N_k), b, h, row, B_c, stages, rng)


# ---- a consumer's step


@exercise(
    title="A consumer's step in Gluon", minutes=45, difficulty="hard",
    program=solutions.program("consumer_step"), limit=20.0,
)  # fmt: skip
def consumer_step(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import gluon_launches, gluon_parts

    stages = [
        [
            _stepped("one tile, all keys seen", 64, 64, 64),
            _stepped("more tiles than slots", 320, 64, 64),
        ],
        [
            _stepped("a last tile that is not full", 150, 64, 128),
            _stepped("a causal mask", 192, 64, 64, causal=True),
            _stepped("rows that see no key", 70, 64, 64, causal=True, past=-40),
            _stepped("d = 128", 200, 128, 64),
            _stepped("a maximum that grows from tile to tile", 320, 64, 64, growing=True),
            _stepped("tiles of 128 keys at d = 64", 300, 64, 128, causal=True, stages=3),
            *random_cases.cases(_any_stepped, 2),
        ],
        [_stepped("bf16", 150, 64, 64, dtype="bfloat16")],
        [_stepped("scores in the thousands", 150, 64, 64, size=64)],
        [
            _stepped("V of 0, so that only m and l matter", 80, 64, 64, V_size=0, tolerance=EXACT),
            _stepped("scores that are all 0", 80, 64, 64, size=0),
            _stepped("scores of -1.2e10, all equal", 80, 64, 64, alike=2.0**15),
        ],
    ]
    return gluon_launches.examine_gluon(gluon_parts.run_steps, answer, stages, known, ("m", "l", "O_acc"))


def _stepped(words, N_k, d, B_c, *, causal=False, past=None, growing=False, stages=2, dtype="float16", size=1.0,
             V_size=1.0, alike=0.0, tolerance=None, rng=None):  # fmt: skip
    rng = rng or np.random.default_rng(0)
    Q, K, V = (_numbers(rng, N, d) for N in (64, N_k, N_k))
    Q, V = Q * size, V * V_size
    if alike:
        Q, K = np.full_like(Q, alike), np.full_like(K, -alike)
    if growing:
        K = np.ceil(np.arange(1, N_k + 1) / 64)[:, None] * np.sign(Q.mean()) * np.abs(K) / 4
        Q = np.abs(Q) * np.sign(K.mean())
    limits = np.full(64, N_k, np.int32)
    if causal:
        limits = np.clip(np.arange(64) + 1 + (N_k - 64 if past is None else past), 0, N_k).astype(np.int32)
    expected = _state(Q, K, V, limits)
    given = (Q.astype(np.float32), K.astype(np.float32), V.astype(np.float32), limits, B_c, stages, dtype)
    return Case(words, given, expected, tolerance or TOLERANCE[dtype])


def _state(Q, K, V, limits):
    S = Q @ K.T / np.sqrt(Q.shape[1]) * LOG2E
    S = np.where(np.arange(len(K)) < limits[:, None], S, -np.inf)
    m = S.max(axis=1)
    P = np.exp2(S - np.where(np.isinf(m), 0, m)[:, None])
    return m, P.sum(axis=1), P @ V


def _any_stepped(rng):
    N_k, d, B_c = int(rng.integers(1, 400)), int(rng.choice([64, 128])), int(rng.choice([64, 128]))
    causal = bool(rng.integers(2))
    words = f"{N_k} keys, d = {d}, tiles of {B_c}, {'causal' if causal else 'no mask'}"
    return _stepped(words, N_k, d, B_c, causal=causal, rng=rng)


# ---- a whole kernel


@exercise(
    title="FlashAttention for Hopper", minutes=75, difficulty="hard",
    program=solutions.program("hopper_attention"), limit=30.0,
)  # fmt: skip
def hopper_attention(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import gluon_launches, gluon_parts

    stages = [
        [
            _attended("blocks that are all full, without a mask", (1, 1, 128, 128, 64)),
            _attended("two row blocks, and more tiles than slots", (1, 1, 256, 640, 64)),
        ],
        [
            _attended("blocks that are all full, under the causal mask", (1, 1, 256, 256, 64), True),
            _attended("last blocks that are not full, without a mask", (1, 1, 150, 333, 64)),
            _attended("fewer queries than keys, under the causal mask", (1, 1, 77, 200, 64), True),
            _attended("many more keys than queries, under the causal mask", (1, 1, 100, 290, 64), True),
            _attended("one more key than queries, under the causal mask", (1, 1, 128, 129, 64), True),
            _attended("two sequences of three heads", (2, 3, 70, 90, 64)),
            _attended("d = 128", (1, 1, 130, 200, 128), True),
            _attended("one query and one key", (1, 1, 1, 1, 64)),
            *random_cases.cases(_any_attended, 2),
        ],
        [_attended("more queries than keys, under the causal mask", (1, 1, 300, 70, 64), True)],
        [_attended("bf16", (1, 2, 100, 150, 128), True, dtype="bfloat16")],
        [
            _attended("two sequences stored as (B, N, H, d)", (2, 2, 70, 90, 64), order="BNHd"),
            _attended("tensors stored as (B, H, d, N)", (1, 2, 80, 96, 64), order="BHdN"),
            _attended("only K and V stored as (B, H, d, N)", (1, 1, 70, 90, 64), order="BHNd BHdN BHdN"),
        ],
        [_attended("scores in the thousands", (1, 1, 100, 150, 64), size=64)],
        [
            _attended("scores that are all 0", (1, 1, 5, 150, 64), size=0),
            _attended("scores of -8.6e9, all equal", (1, 1, 5, 150, 64), alike=2.0**15),
        ],
        [_attended("V of 0, so that only lse matters", (1, 1, 100, 150, 64), True, V_size=0, tolerance=EXACT)],
    ]
    variants = {64: "(K, 128), (V, 128) -> (K, 64), (V, 64)"}
    return gluon_launches.examine_gluon(
        gluon_parts.run_attention, answer, stages, known, ("O", "lse"), variants=variants, consumers=2
    )


def _attended(words, shape, causal=False, *, dtype="float16", order="BHNd", tolerance=None, **options):
    """Return the Case of Q, K and V with shape (B, H, N_q, N_k, d)."""
    one = multi_head.case(words, shape, _exact, causal, tolerance=tolerance or TOLERANCE[dtype], **options)
    return one._replace(arguments=(*one.arguments, dtype, order), dtype=None)


def _exact(Q, K, V, causal):
    """Return O and lse of one head, computed from all keys at once."""
    S = Q @ K.T / np.sqrt(Q.shape[1])
    seen = np.tri(*S.shape, len(K) - len(Q), dtype=bool) | (not causal)
    return update.finished(summarise_rows(np.where(seen, S, -np.inf), V))


def _any_attended(rng):
    B, H, N_q, more = map(int, (*rng.integers(1, 3, 2), rng.integers(1, 200), rng.integers(0, 100)))
    shape, causal = (B, H, N_q, N_q + more, int(rng.choice([64, 128]))), bool(rng.integers(2))
    mask = "with the causal mask" if causal else "without a mask"
    return _attended(f"a shape (B, H, N_q, N_k, d) of {shape}, {mask}", shape, causal, rng=rng)
