"""The exercises of this chapter. Triton is imported by the checks, not here: macOS and Windows lack it."""

from collections.abc import Callable

import numpy as np

from flashlib import naive
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import gradient
from flashlib.checks.harness.strided import Out

FP16 = {"dtype": np.float16, "tolerance": 3e-3}
DQ_FP16 = FP16 | {"tolerance": 2.5e-3}  # P in 16 bits is off by 1.4 times the other one

# ---- delta


def delta_of(program: Callable) -> Callable:
    """Return a function of O, dO, an Out and ROWS that returns delta as the programs fill it, nan elsewhere."""

    def run(O, dO, out, ROWS):
        N_q, D = O.shape
        found, nans = np.full(N_q, np.nan), np.full(8 * ROWS * max(D, N_q), np.nan, O.dtype)
        for j in range(-(-N_q // ROWS)):
            delta, at = program(j, O, dO, nans, N_q, D, ROWS, O.dtype)
            kept = at < N_q
            found[at[kept]] = np.broadcast_to(delta, len(at))[kept]
        return found

    return run


@exercise(title="A kernel for delta", minutes=10, difficulty="easy", model=delta_of)
def delta_kernel(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_backward import deltas

    small = [_rows("one block of 2 rows of 2", 2, 2, 2), _rows("3 rows of 2 in blocks of 2", 3, 2, 2)]
    square = [_rows("one block of 16 rows", 16), _rows("two blocks", 32), _rows("a row more than a block", 17)]
    wide = [
        _rows("blocks of 32 rows", 75, 32),
        _rows("rows of 64 numbers", 21, D=64),
        _rows("one row", 1),
        _rows("numbers of 1e-3", 16, size=1e-3),
    ]
    in_fp16 = [
        _rows("fp16 and rows of 64 numbers", 21, D=64, dtype=np.float16),
        _rows("fp16 and products beyond 65504", 21, size=400, dtype=np.float16),
    ]
    stages = [small + square, wide + random_cases.cases(_any_rows, 2), in_fp16]
    return examine_kernel(answer, deltas, stages, known, outputs=("delta",))


def _rows(words, N_q, ROWS=16, D=16, *, size=1, dtype=np.float32):
    """Return the Case of N_q rows of O and dO in blocks of ROWS rows."""
    rng = np.random.default_rng(0)
    O, dO = ((rng.normal(size=(N_q, D)) * size).astype(dtype) for _ in range(2))
    right = (O.astype(float) * dO.astype(float)).sum(axis=1)
    return Case(words, (O, dO, Out((N_q,)), ROWS), right, 1e-5)


def _any_rows(rng):
    N_q, ROWS, D = (int(n) for n in (rng.integers(1, 100), *(2 ** rng.integers(3, 7, size=2))))
    return _rows(f"{N_q} rows of {D} in blocks of {ROWS}", N_q, ROWS, D)


# ---- the two loops


def _problem(
    N_q, N_k, d, scale, *, causal=False, last=None, apart=False, large="", alike=False, light=None,
    dtype=np.float32,
):  # fmt: skip
    """Return Q, K, V, dO, lse, delta in dtype, and the exact Grads of standard attention.

    last: the last number of each query and of each key, which makes all scores larger; apart: except in every
    second row, where it makes them far lower. large: "dQ" or "dKV", whose sums then exceed 65504. alike: rows of V
    differ little, and dP is larger than dP - delta. light: a slice of keys, and how far their scores are below the
    others, while their dP is large; without a mask, every second row has a Q of 0 and equal weights.
    """
    rng = np.random.default_rng(0)
    Q, K, V, dO = (rng.normal(size=(N, d)) for N in (N_q, N_k, N_k, N_q))
    if last:
        Q[:, -1], K[:, -1] = last
        Q[:, -1] *= np.where(apart & (np.arange(N_q) % 2 == 0), -1, 1)
    if large:
        V, dO[:, 0] = V / 64, 60000
        Q[:, 1], K[:, 1] = (0, V[:, 0] * 2**15) if large == "dQ" else (512, 0)
    if alike:
        V = 1 + V / 128
    if light:
        lights, below = light
        dO[:, 0], Q[:, -1], K[:, -1], K[lights, -1] = 60000, 6, below / 6 / scale, 0
        V *= np.isin(np.arange(N_k), np.arange(N_k)[lights])[:, None]  # dP of the others is 0, and delta is small
        Q[::2] *= causal
    Q, K, V, dO = (X.astype(dtype) for X in (Q, K, V, dO))
    exact = [X.astype(float) for X in (Q, K, V, dO)]
    O, lse = naive.attention(*exact[:3], scale=scale, causal=causal)
    delta = (exact[3] * O).sum(axis=1)
    grads = naive.backward(*exact[:3], O, lse, exact[3], scale=scale, causal=causal)
    return Q, K, V, dO, lse.astype(np.float32), delta.astype(np.float32), grads


def _scale(rng):
    """Return a random scale."""
    return int(rng.integers(1, 9)) / 16


def in_fp64(program: Callable, run: Callable | None = None) -> Callable:
    """Return run, or the program, as a function of arrays of any dtype; `rounded` rounds to the first dtype."""

    def call(*given):
        dtype = given[0].dtype
        program.__globals__["rounded"] = lambda X: np.asarray(X).astype(dtype).astype(float)
        return (run or program)(*(X.astype(float) if isinstance(X, np.ndarray) else X for X in given))

    return call


DKV = gradient.dkv_loop("dkv_loop(K_j, V_j, Q, dO, lse, delta, scale, B_r)", gradient.IN_TRITON)


@exercise(title="The loop for dK and dV", minutes=35, difficulty="medium", program=DKV, model=in_fp64)
def dkv_loop(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_backward import dkv_of

    square = [
        _column_block("one tile of 16 rows", 16),
        _column_block("two tiles", 32),
        _column_block("a row more than a tile", 17),
        _column_block("three tiles", 33),
        _column_block("fewer rows than a tile", 5),
        _column_block("no rows", 0),
    ]
    wide = [
        _column_block("tiles of 32 rows", 45, 32),
        _column_block("32 keys and d = 64", 21, B_C=32, d=64),
        *random_cases.cases(_any_column_block, 2),
    ]
    large = [
        _column_block("scores near 900", 32, last=(20, 120), tolerance=3e-3),
        _column_block("rows 1800 apart", 32, last=(20, 120), apart=True, tolerance=3e-3),
    ]
    in_fp16 = [
        _column_block("inputs in fp16", 21, **FP16),
        _column_block(
            "inputs in fp16, scores near 60, and values nearly equal",
            21,
            scale=0.27,
            last=(12, 20),
            alike=True,
            **FP16,
        ),
        _column_block("inputs in fp16 and sums beyond 65504", 80, large="dKV", **FP16),
        _column_block("inputs in fp16 and weights near 1e-8", 21, light=(slice(16, 32), 15), **FP16),
    ]
    return examine_kernel(answer, dkv_of, [square, wide, large, in_fp16], known, outputs=("dk", "dv"))


def _column_block(words, N_q, B_R=16, *, B_C=16, d=16, scale=0.375, tolerance=3e-5, **options):
    """Return the Case of the second column block of a head with N_q queries and three column blocks."""
    cols = slice(B_C, 2 * B_C)
    Q, K, V, dO, lse, delta, grads = _problem(N_q, 3 * B_C, d, scale, **options)
    arguments = K[cols], V[cols], Q, dO, lse, delta, scale, B_R
    return Case(words, arguments, (grads.dK[cols], grads.dV[cols]), tolerance)


def _any_column_block(rng):
    N_q, B_R, B_C, d = (int(n) for n in (rng.integers(1, 60), *(2 ** rng.integers(4, 6, size=3))))
    words = f"{N_q} rows in tiles of {B_R}, {B_C} keys and d = {d}"
    return _column_block(words, N_q, B_R, B_C=B_C, d=d, scale=_scale(rng))


DQ = gradient.dq_loop(
    "dq_loop(i, Q_i, dO_i, lse_i, delta_i, K, V, N_q, N_k, scale, B_r, B_c)",
    gradient.IN_TRITON,
    "row = i * B_r + np.arange(B_r)",
    "past = N_k - N_q",
    "shift = N_k - N_q",
    "last = (i + 1) * B_r",
    "end = min(last + past, N_k)",
    seen="seen = cols[None, :] <= row[:, None] + shift",
)


def dq_of_head(program: Callable) -> Callable:
    """Return a function of a head that returns dQ, computed by the program row block by row block."""

    def run(Q, dO, lse, delta, K, V, scale, B_R, B_C):
        N_q, N_k, found = len(Q), len(K), []
        for i in range(-(-N_q // B_R)):
            rows = gradient.offsets(i * B_R, B_R, N_q)
            tiles = [gradient.loaded(X, rows) for X in (Q, dO, lse, delta)]
            keys = [gradient.poisoned(X, i, N_q, B_R, B_C) for X in (K, V)]
            found.append(program(i, *tiles, *keys, N_q, N_k, scale, B_R, B_C))
        return np.concatenate(found)[:N_q]

    return in_fp64(program, run)


@exercise(title="The loop for dQ", minutes=15, difficulty="medium", program=DQ, model=dq_of_head)
def dq_loop(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_backward import dq_of

    square = [
        _head("one tile", 16, 16),
        _head("two row blocks and two column blocks", 32, 32),
        _head("21 queries and 21 keys", 21, 21),
        _head("one more key than queries", 32, 33),
        _head("32 queries and 41 keys", 32, 41),
        _head("more keys than queries", 5, 27),
    ]
    unseen = [
        _head("more queries than keys, so that some rows see no key", 40, 21),
        _head("so few keys that a row block sees none", 40, 10),
    ]
    wide = [
        _head("tiles of 32 x 16", 45, 45, 32),
        _head("tiles of 16 x 32, d = 64", 21, 37, 16, 32, d=64),
        *random_cases.cases(_any_head, 2),
    ]
    large = [
        _head("scores near 900", 32, 32, last=(120, 20), tolerance=3e-3),
        _head("rows 1800 apart, some of which see no key", 32, 21, last=(120, 20), apart=True, tolerance=3e-3),
    ]
    in_fp16 = [
        _head(
            "inputs in fp16, scores near 60, and values nearly equal",
            21,
            21,
            scale=0.27,
            last=(20, 12),
            alike=True,
            **DQ_FP16,
        ),
        _head("inputs in fp16 and sums beyond 65504", 16, 53, large="dQ", **DQ_FP16),
        _head("inputs in fp16 and weights near 1e-8", 16, 32, light=(slice(1, None), 17), **DQ_FP16),
    ]
    return examine_kernel(answer, dq_of, [square, unseen, wide, large, in_fp16], known, outputs=("dQ",))


def _head(words, N_q, N_k, B_R=16, B_C=16, *, d=16, scale=0.375, tolerance=3e-5, **options):
    """Return the Case of a head under a causal mask."""
    Q, K, V, dO, lse, delta, grads = _problem(N_q, N_k, d, scale, causal=True, **options)
    arguments = Q, dO, lse, delta, K, V, scale, B_R, B_C
    return Case(words, arguments, grads.dQ, tolerance)


def _any_head(rng):
    N_q, N_k, B_R, B_C, d = (int(n) for n in (*rng.integers((1, 8), 40), *(2 ** rng.integers(4, 6, size=3))))
    words = f"{N_q} queries and {N_k} keys in tiles of {B_R} x {B_C}, d = {d}"
    return _head(words, N_q, N_k, B_R, B_C, d=d, scale=_scale(rng))


# ---- heads that share K and V


@exercise(title="dK of heads that share K", minutes=10, difficulty="easy", optional=True)
def grouped(answer: Callable, known: Known) -> Verdict:
    plain = [
        _shared("two query heads and one head of K, a key and a number each", 1, 2, 1, N_k=1, d=1),
        _shared("two query heads and one head of K", 1, 2, 1),
        _shared("four query heads and two heads of K", 1, 4, 2),
        _shared("two sequences, six query heads and two heads of K", 2, 6, 2),
        _shared("two sequences, six query heads and three heads of K", 2, 6, 3),
        _shared("eight query heads and one head of K", 2, 8, 1),
        _shared("as many query heads as heads of K", 2, 3, 3),
        *random_cases.cases(_any_shared),
    ]
    others = [
        _shared("fp32", 2, 6, 2, dtype=np.float32),
        _shared("fp16", 1, 8, 2, dtype=np.float16),
        _shared("fp16, whose sums are beyond 65504", 1, 8, 2, size=3e4, dtype=np.float16),
    ]
    return examine(answer, [plain, others], known)


def _shared(words, B, H_q, H_k, *, N_k=3, d=5, size=1.0, dtype=np.float64):
    """Return the Case of gradients of H_q heads, of which each group shares one of H_k heads."""
    dK = (np.random.default_rng(0).normal(size=(B, H_q, N_k, d)) * size).clip(-6e4, 6e4).astype(dtype)
    right, group = np.zeros((B, H_k, N_k, d)), H_q // H_k
    for h in range(H_q):
        right[:, h // group] += dK[:, h]
    exact = dtype is np.float64
    return Case(words, (dK, H_k), right, 1e-12 if exact else 1e-5, np.promote_types(dtype, np.float32))


def _any_shared(rng):
    B, H_k, group, N_k, d = map(int, rng.integers(1, 6, size=5))
    words = f"{H_k * group} query heads and {H_k} heads of K"
    return _shared(words, B, H_k * group, H_k, N_k=N_k, d=d)
