"""The exercises of chapter 11. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

from dataclasses import replace

import numpy as np

from flashlib import naive
from flashlib.checks import calculations, gradients_in_triton
from flashlib.checks.examine import Case, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.gradients import mistakes
from flashlib.checks.verdict import Verdict

SCALE = 0.375  # not 1 / sqrt(d): an answer that does not use the argument is found out
TF32 = 'tl.dot rounds fp32 to tf32, on a GPU at least: give each one input_precision="ieee"'


def _rounded(answer, verdict):
    """Return the verdict; or that a tl.dot is in tf32, which shows on a GPU only, if nothing else is known."""
    from flashlib.checks.launches import rounds_dots

    unnamed = verdict.right or " is wrong for " in verdict.sentence
    return replace(verdict, outcome="wrong", sentence=TF32) if unnamed and rounds_dots(answer) else verdict


# ---- delta


@exercise(title="A kernel for delta", minutes=10, difficulty="easy")
def delta_kernel(answer):
    from flashlib.checks.backward_tiles import deltas
    from flashlib.checks.launches import in_turn, kernel_problem
    from flashlib.checks.tiles import reads_unmasked

    if problem := kernel_problem(answer):
        return problem
    square = [_rows("one block of 16 rows", 16), _rows("two blocks", 32), _rows("a row more than a block", 17)]
    wide = [_rows("blocks of 32 rows", 75, 32), _rows("rows of 64 numbers", 21, D=64), _rows("one row", 1)]
    in_fp16 = [
        _rows("fp16 and rows of 64 numbers", 21, D=64, dtype=np.float16),
        _rows("fp16 and products beyond 65504", 21, size=400, dtype=np.float16),
    ]
    verdict = in_turn(deltas(answer), (square, wide, in_fp16), DELTA, outputs=("delta",))
    if verdict.right and reads_unmasked(answer):
        return Verdict("", "wrong", UNMASKED)
    return verdict


UNMASKED = "right, but rows past the end of O or dO are read: mask both loads with offs_m < N_q"


def _rows(words, N_q, ROWS=16, *, D=16, size=1, dtype=np.float32):
    """Return the Case of N_q rows of O and dO in blocks of ROWS rows."""
    from flashlib.checks.launches import Out

    rng = np.random.default_rng(0)
    O, dO = ((rng.normal(size=(N_q, D)) * size).astype(dtype) for _ in range(2))
    right = (O.astype(float) * dO.astype(float)).sum(axis=1)
    return Case(words, (O, dO, Out((N_q,)), ROWS), right, 1e-5)


DELTA_LINES = """
first = j * ROWS
offs = first + np.arange(ROWS)
places = offs[:, None] * D + np.arange(D)[None, :]
inside = offs[:, None] < N_q
dtype = np.float32
A = np.where(inside, np.append(O, nans)[places], 0).astype(dtype)
B = np.where(inside, np.append(dO, nans)[places], 0).astype(dtype)
product = A * B
sums = product.sum(axis=1)
delta = sums
stored = offs
both = (delta, stored)
"""


def _delta(changed, O, dO, out, ROWS):
    """Return delta, as a kernel with these lines exchanged fills it; nan where it does not."""
    N_q, D = O.shape
    found, nans = np.full(N_q, np.nan), np.full(8 * ROWS * max(D, N_q), np.nan, O.dtype)
    sizes = {"np": np, "O": O, "dO": dO, "nans": nans, "N_q": N_q, "D": D, "ROWS": ROWS, "fp16": O.dtype}
    for j in range(-(-N_q // ROWS)):
        delta, at = calculations.run(DELTA_LINES, changed, j=j, **sizes)
        kept = at < N_q
        found[at[kept]] = np.broadcast_to(delta, len(at))[kept]
    return found


DELTA = mistakes(
    _delta,
    (
        (
            "the sum is taken over axis 0, one for each column: each row has its own, axis=1",
            "sums = product.sum(axis=0)",
        ),
        ("everything in the block is summed: each row has its own sum, axis=1", "sums = product.sum()"),
        ("the mean of a row is taken: delta is its sum", "sums = product.mean(axis=1)"),
        ("O is multiplied by itself: delta has the row sums of dO * O", "product = A * A"),
        ("dO is multiplied by itself: delta has the row sums of dO * O", "product = B * B"),
        ("O is not used: delta has the row sums of dO * O", "product = B"),
        ("dO is not used: delta has the row sums of dO * O", "product = A"),
        ("dO and O are added: multiply them", "product = A + B"),
        (
            "every row is multiplied with every row: multiply o and do elementwise",
            "product = A @ B.T",
            "product = B @ A.T",
        ),
        (
            "a program computes one row: it has ROWS of them, those from tl.program_id(0) * ROWS on",
            "first = j; stored = np.where(offs == j, offs, N_q)",
        ),
        ("the largest product of a row is taken: delta is their sum", "sums = product.max(axis=1)"),
        ("delta is negative: it is the sum of dO * O itself", "delta = -sums"),
        ("a scale is applied: delta is the plain row sum", "delta = sums * D**-0.5"),
        (
            "all programs take the first rows: row numbers begin at tl.program_id(0) * ROWS",
            "first = 0",
        ),
        (
            "all programs read the first rows: row numbers begin at tl.program_id(0) * ROWS",
            "first = 0; stored = offs + j * ROWS",
        ),
        (
            "all programs write the first rows of delta: store at offs_m",
            "stored = np.where(offs < N_q, offs - first, N_q)",
            "stored = offs - first",
        ),
        (
            "program j begins at row j, not j * ROWS",
            "first = j",
            "first = j; stored = offs - j + j * ROWS",
        ),
        (
            "rows begin at r, not at r * D: offs_m[:, None] * D + offs_d[None, :]",
            "places = offs[:, None] + np.arange(D)[None, :]",
        ),
        (
            "rows begin at r * N_q, not at r * D: offs_m[:, None] * D + offs_d[None, :]",
            "places = offs[:, None] * N_q + np.arange(D)[None, :]",
        ),
        (
            "rows begin at r * ROWS, not at r * D: offs_m[:, None] * D + offs_d[None, :]",
            "places = offs[:, None] * ROWS + np.arange(D)[None, :]",
        ),
        (
            "the last row is left out: rows are inside while offs_m < N_q",
            "inside = offs[:, None] < N_q - 1; stored = np.where(offs < N_q - 1, offs, N_q)",
            "stored = np.where(offs < N_q - 1, offs, N_q)",
            "inside = offs[:, None] < N_q - 1",
        ),
        (
            "the last, shorter block is left out: mask its rows, and go on",
            "stored = np.where(first + ROWS <= N_q, offs, N_q)",
        ),
        ("delta is rounded to fp16: leave it in fp32", "delta = sums.astype(fp16)"),
        (
            "fp16 products are rounded to fp16 before the sum: convert o and do, not o * do",
            "product = (A.astype(fp16) * B.astype(fp16)).astype(np.float32)",
        ),
        (
            "fp16 is summed in fp16: convert o and do to fp32 before they are multiplied",
            "dtype = fp16",
            "dtype = fp16; sums = product.astype(np.float32).sum(axis=1).astype(fp16)",
            "dtype = fp16; sums = np.cumsum(product, axis=1, dtype=fp16)[:, -1]",
        ),
        ("nothing is stored: tl.store(delta_ptr + offs_m, ...)", "stored = np.full(ROWS, N_q)"),
        ("the sum is rounded to fp16: sum in fp32", "sums = product.sum(axis=1).astype(fp16)"),
    ),
    (),
)


# ---- dK and dV


@exercise(title="The loop for dK and dV", minutes=30, difficulty="hard")
def dkv_loop(answer):
    from flashlib.checks.backward_tiles import dkv_of
    from flashlib.checks.launches import in_turn, part_problem
    from flashlib.checks.tiles import masks_all_loads, reads_unmasked

    if problem := part_problem(answer, ("dk", "dv")):
        return problem
    square = [
        _column_block("one tile of 16 rows", 16),
        _column_block("two tiles", 32),
        _column_block("a row more than a tile", 17),
        _column_block("fewer rows than a tile", 5),
        _column_block("no rows", 0),
    ]
    wide = [_column_block("tiles of 32 rows", 75, 32), _column_block("32 keys and d = 64", 21, B_C=32, d=64)]
    large = [square[0], _column_block("scores near 900", 32, offset=900, tolerance=1e-3)]
    in_fp16 = [_column_block("inputs of fp16", 21, dtype=np.float16, tolerance=3e-3)]
    verdict = in_turn(dkv_of(answer), (square, wide, large, in_fp16), DKV, outputs=("dk", "dv"))
    verdict = _rounded(answer, verdict)
    if verdict.sentence == gradients_in_triton.READ_PAST and masks_all_loads(answer):
        return replace(verdict, sentence=MASKED_AND_READ)
    if verdict.right and reads_unmasked(answer):
        return Verdict("", "wrong", f"right, but rows past the end are read: {gradients_in_triton.MASK_ROWS}")
    return verdict


MASKED_AND_READ = (
    "rows past the end give nan, though loads are masked: take offs_m < N_q, and an other for lse that "
    "keeps exp(S - lse) finite"
)


def _problem(N_q, N_k, d, *, causal=False, offset=0):
    """Return Q, K, V, dO, lse, delta and the Grads of standard attention; without offset, scores are exact."""
    rng = np.random.default_rng(0)
    Q, K, V, dO = (rng.integers(-6, 7, (N, d)) / 4 for N in (N_q, N_k, N_k, N_q))
    if offset:
        Q[:, -1], K[:, -1] = 1, offset / SCALE
    O, lse = naive.attention(Q, K, V, scale=SCALE, causal=causal)
    grads = naive.backward(Q, K, V, O, lse, dO, scale=SCALE, causal=causal)
    return Q, K, V, dO, lse, (dO * O).sum(axis=1), grads


def _column_block(words, N_q, B_R=16, *, B_C=16, d=16, offset=0, dtype=np.float32, tolerance=1e-5):
    """Return the Case of the second column block of a head with N_q queries and three column blocks."""
    cols = slice(B_C, 2 * B_C)
    Q, K, V, dO, lse, delta, grads = _problem(N_q, 3 * B_C, d, offset=offset)
    tensors = [X.astype(dtype) for X in (K[cols], V[cols], Q, dO)]
    arguments = *tensors, lse.astype(np.float32), delta.astype(np.float32), SCALE, B_R
    return Case(words, arguments, (grads.dK[cols], grads.dV[cols]), tolerance)


DKV = mistakes(
    gradients_in_triton.dkv,
    gradients_in_triton.DKV,
    [row for row in gradients_in_triton.DKV if row[0].startswith(("dk is not multiplied", "delta is not sub"))],
)


# ---- dQ


@exercise(title="The loop for dQ", minutes=25, difficulty="medium")
def dq_loop(answer):
    from flashlib.checks.backward_tiles import dq_of
    from flashlib.checks.launches import in_turn, part_problem
    from flashlib.checks.tiles import count_masked_loads

    if problem := part_problem(answer, ("dq",)):
        return problem
    square = [
        _head("one tile", 16, 16),
        _head("two row blocks and two column blocks", 32, 32),
        _head("21 queries and 21 keys", 21, 21),
        _head("a key more than queries", 32, 33),
        _head("more keys than queries", 5, 43),
        _head("more queries than keys, so that some rows see no key", 40, 21),
        _head("so few keys that a row block sees none", 40, 10),
    ]
    wide = [_head("tiles of 32 x 16", 75, 75, 32), _head("tiles of 16 x 32, d = 64", 21, 75, 16, 32, d=64)]
    large = [square[0], _head("scores near 900", 32, 32, offset=900, tolerance=1e-3)]
    in_fp16 = [_head("inputs of fp16", 21, 21, dtype=np.float16, tolerance=3e-3)]
    verdict = in_turn(dq_of(answer), (square, wide, large, in_fp16), DQ, outputs=("dQ",))
    verdict = _rounded(answer, verdict)
    if verdict.right and count_masked_loads(answer) == 1:  # one of K and V, as rows past the end are hidden
        return Verdict("", "wrong", "right, but K or V is read past its end: mask both loads with offs_n < N_k")
    return verdict


def _head(words, N_q, N_k, B_R=16, B_C=16, *, d=16, offset=0, dtype=np.float32, tolerance=1e-5):
    """Return the Case of a head under a causal mask."""
    Q, K, V, dO, lse, delta, grads = _problem(N_q, N_k, d, causal=True, offset=offset)
    Q, K, V, dO = (X.astype(dtype) for X in (Q, K, V, dO))
    arguments = Q, dO, lse.astype(np.float32), delta.astype(np.float32), K, V, SCALE, B_R, B_C
    return Case(words, arguments, grads.dQ, tolerance)


DQ = mistakes(
    gradients_in_triton.dq,
    gradients_in_triton.DQ,
    [row for row in gradients_in_triton.DQ if row[0].startswith(("dq is not multiplied", "delta is not sub"))],
)


# ---- heads that share K and V


@exercise(title="dK of heads that share K", minutes=10, difficulty="easy")
def grouped(answer):
    cases = [
        _shared("two query heads and one head of K", 1, 2, 1),
        _shared("four query heads and two heads of K", 1, 4, 2),
        _shared("two sequences, six query heads and two heads of K", 2, 6, 2),
        _shared("two sequences, six query heads and three heads of K", 2, 6, 3),
        _shared("eight query heads and one head of K", 2, 8, 1),
        _shared("as many query heads as heads of K", 2, 3, 3),
        _shared("fp16", 1, 8, 2, dtype=np.float16),
        _shared("fp16, whose sums are beyond 65504", 1, 8, 2, size=3e4, dtype=np.float16),
    ]
    return examine(answer, cases, GROUPED)


def _shared(words, B, H_q, H_k, *, size=1.0, dtype=np.float64):
    """Return the Case of gradients of H_q heads, whose groups share one of H_k."""
    dK = (np.random.default_rng(0).normal(size=(B, H_q, 3, 5)) * size).clip(-6e4, 6e4).astype(dtype)
    right, group = np.zeros((B, H_k, 3, 5)), H_q // H_k
    for h in range(H_q):
        right[:, h // group] += dK[:, h]
    return Case(words, (dK, H_k), right, 1e-5)


GROUP_LINES = """
dtype = np.promote_types(dK.dtype, np.float32)
X = dK.astype(dtype)
B = X.shape[0]
group = X.shape[1] // H_k
heads = X.reshape(B, H_k, group, *X.shape[2:])
total = heads.sum(axis=2)
found = total
"""
ORDER = "head h of K has the query heads h * group, ..., h * group + group - 1"

GROUPED = mistakes(
    lambda changed, dK, H_k: calculations.run(GROUP_LINES, changed, np=np, dK=dK, H_k=H_k),
    (
        ("the mean of a group is taken: each query head adds its own part, so sum", "total = heads.mean(axis=2)"),
        (
            f"every H_k-th head is taken as a group: {ORDER}",
            "total = X.reshape(B, group, H_k, *X.shape[2:]).sum(axis=1)",
        ),
        ("only the first head of each group is taken: sum over all of them", "total = heads[:, :, 0]"),
        ("only the last head of each group is taken: sum over all of them", "total = heads[:, :, -1]"),
        ("the first H_k heads are taken: sum over each group", "total = X[:, :H_k]"),
        ("the largest of a group is taken: sum over it", "total = heads.max(axis=2)"),
        (
            "groups of H_k heads are summed: a group has H_q // H_k of them",
            "total = X.reshape(B, group, H_k, *X.shape[2:]).sum(axis=2)",
        ),
        (
            "the sum is over the heads of K, not over those of a group: reshape to (B, H_k, group, N_k, d)",
            "total = heads.sum(axis=1)",
        ),
        (
            "all heads are summed: only those of a group are",
            "total = X.sum(axis=1)[:, None]",
            "total = np.repeat(X.sum(axis=1)[:, None], H_k, axis=1)",
            "total = X.sum(axis=1)",
        ),
        ("the axis of the group is still there: sum without keepdims", "total = heads.sum(axis=2)[:, :, None]"),
        ("the heads of a group are not summed yet: .sum(axis=2)", "total = heads"),
        (
            "the sum is repeated for each query head: dK has H_k heads, as K",
            "total = np.repeat(heads.sum(axis=2), group, axis=1)",
        ),
        ("dK is given back as it came: sum over the heads of each group", "total = X"),
        (
            "rows and heads are mixed: dK has the shape (B, H_q, N_k, d), and reshape keeps this order",
            "total = X.reshape(B, X.shape[2], H_k, group, -1).sum(axis=3).reshape(B, H_k, *X.shape[2:])",
            "total = X.reshape(B, X.shape[2], group, H_k, -1).sum(axis=2).reshape(B, H_k, *X.shape[2:])",
        ),
        (
            "query head h reads head h // H_k of K: it is h // group, and group is H_q // H_k",
            "total = sum(np.eye(H_k)[h // H_k][None, :, None, None] * X[:, [h]] for h in range(X.shape[1]))",
        ),
        ("a running sum is made: the last one of each group is the sum", "total = heads.cumsum(axis=2)"),
        (
            "sequences are added up too: each has its own dK",
            "total = np.repeat(heads.sum(axis=2).sum(axis=0)[None], B, 0)",
        ),
        (
            "the heads of different sequences are mixed: reshape to (B, H_k, group, N_k, d), B first",
            "total = X.reshape(H_k, B, group, *X.shape[2:]).sum(axis=2).swapaxes(0, 1)",
            "total = X.reshape(group, B, H_k, *X.shape[2:]).sum(axis=0)",
        ),
        (
            "fp16 is summed in fp16: convert to fp32 first, and round once, if at all, after the sum",
            "dtype = dK.dtype",
            "found = total.astype(dK.dtype)",
        ),
    ),
    (),
)
