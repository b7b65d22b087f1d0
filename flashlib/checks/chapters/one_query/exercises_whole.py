"""The last exercise: a step of decoding over a plain cache, kernels and launches. The checks import Triton."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.softmax import summarise_rows

OUTPUTS = "O", "lse"
FP16 = {"dtype": np.float16, "tolerance": 2e-3, "fine": True}  # of P and of O, which are rounded
EXACT = FP16 | {"tolerance": 3e-6}  # of lse, which is not
NEAR = 32  # rows on each side of a cache, at least, that are nan; beyond them loads return 0


def _loaded(cache, row, inside):
    """Return rows of a cache by number; 0 where `inside` is False, and where a kernel cannot load."""
    rows = cache.reshape(-1, cache.shape[-1])
    there = (row >= 0) & (row < len(rows))
    near = (row >= -len(rows) - NEAR) & (row < 2 * len(rows) + NEAR)
    beside = np.where(near, np.nan, 0).astype(cache.dtype)[:, None]
    return np.where(inside[:, None], np.where(there[:, None], rows[np.where(there, row, 0)], beside), 0)


DECODING = partial(
    update.looped,
    before=("half = V_j.dtype", update.IN_FP32),
    signature="step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, seen)",
    LN2=float(np.log(2)),
    loaded=_loaded,
)


@exercise(title="One step of decoding", minutes=25, difficulty="hard", program=DECODING, limit=15.0)
def decode_cache(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness import far_memory
    from flashlib.checks.harness.decoding import DecodingTilings, over_cache

    tiles, reaches = DecodingTilings(), []
    run, known = over_cache(answer, tiles, reaches), replace(known, variants=tiles)
    verdict = examine(run, _stages(), known, outputs=OUTPUTS, nan="nan, or never stored")
    return far_memory.noted(verdict, *reaches) if reaches else verdict


def _stages():
    """Return the Cases, the simplest first; in the first stages all rows of a cache hold numbers."""
    return [
        [
            _case("one sequence, one part", [32]),
            _case("a long sequence in two parts", [256], parts=2),
            _case("a group of 3 heads, in three parts", [320], parts=3, group=3),
            _case("two heads of K and V, of a group of 2 each", [128], H_k=2, group=2, parts=2),
            _case("two sequences of the same length", [128, 128], H_k=2, group=2, parts=2),
            _case("keys with more weight in one part than in the other", [256], parts=2, rising=True),
            _case("1024 keys in eight parts", [1024], parts=8),
            _case("scores that differ by thousands", [256], parts=3, size=2**10, group=3),
        ],
        [
            _case("a single key", [1]),
            _case("a last tile that is not full", [21]),
            _case("a cache with room for more", [64], room=40, H_k=2, parts=2),
            _case("a last tile that is not full, in two parts", [277], parts=2, group=2),
            _case("sequences of different lengths", [150, 37, 201], H_k=2, group=2, parts=2),
            _case("more parts than tiles", [41], parts=7),
            _case("a group of 20 heads", [70], group=20, parts=2),
            _case("a group of 71 heads", [70], group=71, parts=2),
            _case("133 parts", [1100], parts=133),
            _case("d = 64", [130, 5], d=64, group=2, parts=2),
            _case("scores that are all far below 0", [43], below=True),
            _case("scores of -1.7e10, all equal", [41], alike=2.0**16),
            _case("scores that are all 0", [70], parts=2, size=0),
            _case("a single key in three parts, whose score is far below 0", [1], parts=3, below=True),
            _case("a single key in three parts, whose score is -1.7e10", [1], parts=3, alike=2.0**16),
            *random_cases.cases(_any_case, 3),
        ],
        [_case("nan in rows past the lengths", [37, 150], room=25, parts=2, nan=True)],
        [
            _case("a sequence without a key, next to others", [0, 40, 5], parts=2, nan=True),
            _case("a sequence without a key, alone", [0], room=16, parts=3),
        ],
        [_case("d = 128, and numbers that fp16 cannot represent", [150], d=128, parts=2, fine=True)],
        [
            _case(
                "tensors in fp16, and sums beyond 65504", [150, 90], H_k=4, d=32, parts=2, V_size=2**15, **FP16
            ),
            _case(
                "tensors in fp16, d = 128, and V of 0", [150],
                d=128, parts=2, group=16, size=4, V_size=0, **EXACT,
            ),
        ],
    ]  # fmt: skip


def _any_case(rng):
    H_k, group, parts = (int(n) for n in rng.integers((1, 1, 1), (4, 6, 9)))
    lengths = [int(n) for n in rng.integers(0, rng.choice([20, 220]), rng.integers(1, 4))]
    words = f"{lengths} keys, {H_k} heads of K and V, groups of {group}, {parts} parts"
    room, d = int(rng.integers(1, 40)), int(rng.choice([16, 32, 64]))
    return _case(words, lengths, room=room, H_k=H_k, group=group, parts=parts, d=d, rng=rng)


def _case(
    words, lengths, *, room=0, H_k=1, group=1, parts=1, d=16, dtype=np.float32, tolerance=1e-5, size=1.0,
    V_size=1.0, fine=False, rising=False, below=False, alike=0.0, nan=False, rng=None,
):  # fmt: skip
    """Return the Case of sequences with these lengths, in a cache with `room` for more keys than the longest has.

    rising: later keys have larger scores. below: all scores are far below 0. nan: rows past the lengths are nan;
    otherwise they hold numbers like those of keys. fine, size, V_size, alike: as in `multi_head.case`.
    """
    rng = rng or np.random.default_rng(len(lengths) + sum(lengths))
    steps = 16 if not fine else 2**10 if dtype is np.float16 else 2**14
    Q, K, V = (
        rng.integers(-3 * steps // 2, 3 * steps // 2 + 1, shape) / steps
        for shape in ((len(lengths), H_k * group, d), *[(len(lengths), H_k, max(lengths) + room, d)] * 2)
    )
    Q, V = Q * size, (np.abs(V) if V_size > 1 else V) * V_size
    if below:
        Q, K = np.abs(Q) * 16 + 64, -np.abs(K) - 64
    if alike:
        Q, K = np.full_like(Q, -alike), np.full_like(K, alike)
    O, lse = np.zeros(Q.shape), np.zeros(Q.shape[:2])
    for b, n in enumerate(lengths):
        if rising:
            Q[b], K[b, :, :n] = np.abs(Q[b]) + 0.5, K[b, :, :n] + 4 * (np.arange(n) / n)[:, None]
        for h in range(H_k * group):
            S = Q[b, h] @ K[b, h // group, :n].T / np.sqrt(d)
            (O[b, h],), (lse[b, h],) = update.finished(summarise_rows(S[None], V[b, h // group, :n]))
        if nan:
            K[b, :, n:] = V[b, :, n:] = np.nan
    given = *(X.astype(dtype) for X in (Q, K, V)), np.array(lengths, np.int32), parts
    return Case(words, given, (O, lse), tolerance, (dtype, np.float32))
