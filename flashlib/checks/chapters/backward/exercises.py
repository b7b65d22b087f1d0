"""The exercises of chapter 08."""

import tracemalloc
from functools import wraps

import numpy as np

from flashlib import naive
from flashlib.checks import calculations, updates
from flashlib.checks.examine import Case, Finding, attempt, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.gradients import (
    DKV,
    DQ,
    GRAD_S,
    GRAD_V,
    OF_V,
    RECOMPUTED,
    SECONDS,
    THROUGH_SOFTMAX,
    TILE,
    calculation,
    dkv,
    dq,
    mistakes,
    softmax,
)
from flashlib.checks.values import describe, describe_value
from flashlib.checks.verdict import Verdict
from flashlib.tiled import blocks

SCALE = 0.3  # not 1 / sqrt(d): an answer that does not use the argument is found out
INF = np.inf


def _lean(verdict, answer, arguments, limit, sentence):
    """Return the verdict; or, if it is right, that on what the answer holds at once: at most `limit` bytes."""
    if not verdict.right:
        return verdict
    tracemalloc.start()
    attempt(answer, *arguments)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if most <= limit:
        return verdict
    held = f"{most / 1024:.0f} KB at once; at most {limit / 1024:.0f} KB are expected"
    return Verdict("", "wrong", sentence, (("input", describe(answer, arguments)), ("held", held)))


# ---- delta

DELTA = """
dtype = np.promote_types(O.dtype, np.float32)
A = dO.astype(dtype)
B = O.astype(dtype)
product = A * B
total = product.sum(axis=1)
delta = total
"""


@exercise(title="One number for each row", minutes=5, difficulty="easy")
def delta(answer):
    rng = np.random.default_rng(0)
    cases = []
    for words, N_q, d, size, dtype in (
        ("two rows", 2, 2, 1, float),
        ("three rows of five", 3, 5, 1, float),
        ("five rows of two", 5, 2, 100, float),
        ("one row", 1, 4, 1, float),
        ("no rows", 0, 3, 1, float),
        ("inputs of fp32", 4, 3, 1, np.float32),
        ("inputs of fp16", 3, 64, 1, np.float16),
        ("inputs of fp16, whose products are beyond 65504", 2, 3, 400, np.float16),
    ):
        dO, O = ((rng.normal(size=(N_q, d)) * size).round(1).astype(dtype) for _ in range(2))
        right = (dO.astype(float) * O.astype(float)).sum(axis=1)
        cases.append(Case(words, (dO, O), right, 1e-5))
    verdict = examine(answer, cases, mistakes(calculation(DELTA, "dO", "O"), SUMS))
    sentence = "the result is right, but a matrix of N_q x N_q is made on the way: multiply dO and O elementwise"
    return _lean(verdict, answer, tuple(rng.normal(size=(2, 512, 2))), 2**19, sentence)


SUMS = (
    (
        "the sum is taken over axis 0, which is one for each column: each row has its own, axis=1",
        "total = product.sum(axis=0)",
    ),
    ("everything is summed: each row has its own sum, axis=1", "total = product.sum()"),
    ("the mean of a row is taken: delta is its sum", "total = product.mean(axis=1)"),
    ("O is not used: delta has the row sums of dO * O", "product = A"),
    ("dO is not used: delta has the row sums of dO * O", "product = B"),
    ("dO is multiplied by itself: delta has the row sums of dO * O", "product = A * A"),
    ("O is multiplied by itself: delta has the row sums of dO * O", "product = B * B"),
    ("dO and O are added: multiply them", "product = A + B"),
    (
        "dO @ O.T multiplies every row with every row: multiply elementwise, dO * O",
        *("product = A @ B.T", "product = B @ A.T", "total = A @ B.T", "total = B @ A.T"),
    ),
    ("dO * O is not summed: one number for each row, the sum along axis 1", "total = product"),
    (
        "delta has a second axis of size 1: give shape (N_q,), without keepdims",
        "delta = total[:, None]",
        "total = product.sum(axis=1, keepdims=True)",
    ),
    ("a scale is applied: delta is the plain row sum", "delta = total * O.shape[1] ** -0.5"),
    (
        "the result is rounded to fp16: convert dO and O to fp32, and leave it in fp32",
        "delta = total.astype(O.dtype)",
    ),
    (
        "fp16 is summed in fp16: convert dO and O to fp32 before they are multiplied",
        "dtype = O.dtype",
        "product = (dO * O).sum(axis=1, keepdims=True)",
        "product = np.cumsum(dO * O, axis=1, dtype=O.dtype)[:, -1:]",
    ),
    (
        "fp16 products are rounded to fp16 before the sum: convert dO and O, not dO * O",
        "product = (dO * O).astype(dtype)",
    ),
)

# ---- dV


@exercise(title="The gradient of V", minutes=5, difficulty="easy")
def grad_V(answer):
    rng = np.random.default_rng(1)
    cases = []
    for words, N_q, N_k, d, hidden, dtype in (
        ("two queries and two keys", 2, 2, 2, 0, float),
        ("two queries and three keys", 2, 3, 2, 0, float),
        ("five queries and three keys", 5, 3, 4, 0, float),
        ("as many queries as keys and columns", 4, 4, 4, 0, float),
        ("one query", 1, 4, 3, 0, float),
        ("one key", 4, 1, 3, 0, float),
        ("two queries that see no key, so that their rows of P are 0", 5, 3, 2, 2, float),
        ("no queries", 0, 3, 2, 0, float),
        ("inputs of fp32", 3, 5, 4, 0, np.float32),
    ):
        P, dO = softmax(rng.normal(size=(N_q, N_k)) * 2), rng.normal(size=(N_q, d)).round(1)
        P[:hidden] = 0
        right = np.array([[(P[:, c] * dO[:, e]).sum() for e in range(d)] for c in range(N_k)])
        exact = dtype is float
        cases.append(Case(words, (P.astype(dtype), dO.astype(dtype)), right, 1e-9 if exact else 1e-5))
    return examine(answer, cases, mistakes(calculation(GRAD_V, "P", "dO"), OF_V))


# ---- dS


@exercise(title="Back through the softmax", minutes=15, difficulty="medium")
def grad_S(answer):
    rng = np.random.default_rng(2)
    cases = []
    for words, N_q, N_k, hidden, size, dtype in (
        ("one query and two keys", 1, 2, 0, 1, float),
        ("two queries and two keys", 2, 2, 0, 1, float),
        ("two queries and five keys", 2, 5, 0, 1, float),
        ("five queries and three keys", 5, 3, 0, 100, float),
        ("as many queries as keys", 4, 4, 0, 1, float),
        ("one key, which always has the weight 1", 3, 1, 0, 1, float),
        ("two queries that see no key, so that their rows of P are 0", 5, 3, 2, 1, float),
        ("no queries", 0, 3, 0, 1, float),
        ("inputs of fp32", 3, 4, 0, 1, np.float32),
    ):
        P, dP = softmax(rng.normal(size=(N_q, N_k)) * 2), (rng.normal(size=(N_q, N_k)) * size).round(1) + size
        P[:hidden] = 0
        rows = [(np.diag(p) - np.outer(p, p)) @ dp for p, dp in zip(P, dP, strict=True)]
        right = np.array(rows).reshape(N_q, N_k) if N_k > 1 else np.zeros((N_q, 1))
        exact = dtype is float
        cases.append(Case(words, (P.astype(dtype), dP.astype(dtype)), right, 1e-9 if exact else 1e-5))
    verdict = examine(answer, cases, mistakes(calculation(GRAD_S, "P", "dP"), THROUGH_SOFTMAX))
    sentence = "dS is right, but J is formed, N_k x N_k numbers for a row: P * (dP - delta) needs one for a row"
    large = softmax(rng.normal(size=(4, 256))), rng.normal(size=(4, 256))
    return _lean(verdict, answer, large, 2**18, sentence)


# ---- a tile of P; and what follows it in the loops below


@exercise(title="A tile of P from lse", minutes=10, difficulty="medium")
def recompute_P(answer):
    rng = np.random.default_rng(3)
    cases = []
    for words, B_r, N_k, B_c, d, offset, hidden, dtype in (
        ("2 rows and 2 of 4 keys", 2, 4, 2, 2, 0, 0, float),
        ("3 rows and 2 of 5 keys", 3, 5, 2, 4, 0, 0, float),
        ("2 rows and 4 of 7 keys", 2, 7, 4, 3, 0, 0, float),
        ("1 row and all of its 3 keys", 1, 3, 3, 2, 0, 0, float),
        ("scores near 900", 3, 5, 3, 2, 900, 0, float),
        ("scores near -900", 3, 5, 3, 2, -900, 0, float),
        ("3 rows, of which one sees no key", 3, 5, 2, 2, 0, 1, float),
        ("2 rows that see no key", 2, 4, 2, 2, 0, 2, float),
        ("inputs of fp32", 4, 6, 4, 3, 0, 0, np.float32),
    ):
        Q_i, K = (rng.normal(size=(N, d)).round(1) for N in (B_r, N_k))
        if offset:
            Q_i[:, -1], K[:, -1] = 1, offset / SCALE
        S = Q_i @ K.T * SCALE
        S[:hidden] = -INF
        m, l, _ = updates.state(S, K)
        arguments = [X.astype(dtype) for X in (Q_i, K[-B_c:], m + np.log(np.where(l == 0, 1, l)))]
        cases.append(Case(words, (*arguments, SCALE), softmax(S)[:, -B_c:], 1e-9 if dtype is float else 1e-5))
    wrong = calculation(TILE, "Q_i", "K_j", "lse_i", "scale")
    return examine(answer, cases, mistakes(wrong, RECOMPUTED))


def _problem(rng, N_q, N_k, d, offset=0):
    """Return Q, K, V, dO, lse, delta and the Grads of standard attention."""
    Q, K, V, dO = (rng.normal(size=(N, d)).round(1) for N in (N_q, N_k, N_k, N_q))
    if offset:
        Q[:, -1], K[:, -1] = 1, offset / SCALE
    O, lse = naive.attention(Q, K, V, scale=SCALE)
    return Q, K, V, dO, lse, (dO * O).sum(axis=1), naive.backward(Q, K, V, O, lse, dO, scale=SCALE)


# ---- dQ of a row block


@exercise(title="dQ of one row block", minutes=20, difficulty="medium")
def dq_rows(answer):
    rng = np.random.default_rng(4)
    cases = []
    for words, B_r, N_k, d, B_c, offset in (
        ("2 rows and 2 keys, one block", 2, 2, 2, 2, 0),
        ("2 rows and 4 keys in blocks of 2", 2, 4, 2, 2, 0),
        ("3 rows and 5 keys in blocks of 2", 3, 5, 2, 2, 0),
        ("2 rows and 7 keys in blocks of 3", 2, 7, 4, 3, 0),
        ("4 rows and 3 keys in blocks of 8", 4, 3, 3, 8, 0),
        ("3 rows and 4 keys in blocks of 1", 3, 4, 2, 1, 0),
        ("scores near 900", 3, 5, 3, 2, 900),
        ("scores near -900", 3, 5, 3, 2, -900),
    ):
        Q, K, V, dO, lse, delta, grads = _problem(rng, B_r, N_k, d, offset)
        cases.append(Case(words, (Q, dO, lse, delta, K, V, B_c, SCALE), grads.dQ, 1e-6 if offset else 1e-9))
    verdict = examine(answer, cases, mistakes(dq, DQ, (DQ[0], *SECONDS)))
    Q, K, V, dO, lse, delta, _ = _problem(rng, 32, 1024, 2)
    sentence = "dQ_i is right, but a matrix of B_r x N_k is held: go over the keys in blocks of B_c"
    return _lean(verdict, answer, (Q, dO, lse, delta, K, V, 8, SCALE), 2**17, sentence)


# ---- dK and dV of a column block


@exercise(title="dK and dV of one column block", minutes=25, difficulty="hard")
def dkv_columns(answer):
    rng = np.random.default_rng(5)
    cases = []
    for words, N_q, N_k, B_c, d, B_r, offset in (
        ("2 rows and 2 of 4 keys, one block", 2, 4, 2, 2, 2, 0),
        ("4 rows in blocks of 2 and 2 of 4 keys", 4, 4, 2, 2, 2, 0),
        ("5 rows in blocks of 2 and 3 of 4 keys", 5, 4, 3, 2, 2, 0),
        ("7 rows in blocks of 3 and 2 of 9 keys", 7, 9, 2, 4, 3, 0),
        ("3 rows in blocks of 8 and all of 4 keys", 3, 4, 4, 3, 8, 0),
        ("4 rows in blocks of 1 and 1 of 3 keys", 4, 3, 1, 2, 1, 0),
        ("scores near 900", 5, 5, 3, 3, 2, 900),
        ("scores near -900", 5, 5, 3, 3, 2, -900),
    ):
        Q, K, V, dO, lse, delta, grads = _problem(rng, N_q, N_k, d, offset)
        right = grads.dK[-B_c:], grads.dV[-B_c:]
        cases.append(
            Case(words, (K[-B_c:], V[-B_c:], Q, dO, lse, delta, B_r, SCALE), right, 1e-6 if offset else 1e-9)
        )
    verdict = examine(answer, cases, mistakes(dkv, DKV, (*DKV[:2], *SECONDS)), outputs=("dK_j", "dV_j"))
    Q, K, V, dO, lse, delta, _ = _problem(rng, 1024, 32, 2)
    sentence = "dK_j and dV_j are right, but a matrix of N_q x B_c is held: go over the rows in blocks of B_r"
    return _lean(verdict, answer, (K, V, Q, dO, lse, delta, 8, SCALE), 2**17, sentence)


# ---- row blocks under a causal mask

ROWS = """
past = N_k - N_q
key = j * B_c
row = max(0, key - past)
first = row // B_r
T_r = -(-N_q // B_r)
found = list(range(first, T_r))
"""


@exercise(title="Which row blocks a column block visits", minutes=15, difficulty="medium")
def row_blocks(answer):
    sizes = (
        (1, 2, 2, 1, 1),
        (0, 3, 3, 1, 1),
        (1, 4, 4, 2, 2),
        (1, 7, 7, 2, 2),
        (1, 8, 8, 4, 2),
        (1, 6, 6, 2, 3),
        (0, 2, 5, 1, 2),
        (1, 2, 5, 1, 2),
        (2, 5, 12, 2, 5),
        (0, 5, 2, 2, 1),
        (1, 12, 5, 5, 2),
        (3, 40, 64, 8, 16),
        (7, 100, 90, 16, 12),
        (0, 0, 4, 2, 2),
    )
    cases = calculations.cases("j N_q N_k B_r B_c", _visited, sizes)
    wrong = calculation(ROWS, "j", "N_q", "N_k", "B_r", "B_c")
    return examine(_returns_numbers(answer), cases, mistakes(wrong, UNDER_MASK))


def _visited(j, N_q, N_k, B_r, B_c):
    """Return the row blocks of which some score in column block j is seen, found by looking at each."""
    seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool)[:, j * B_c : (j + 1) * B_c]
    return [i for i, rows in enumerate(blocks(N_q, B_r)) if seen[rows].any()]


def _returns_numbers(answer):
    """Return answer with what it returns made a sorted list of int; raises Finding if it holds others."""

    @wraps(answer)
    def run(*sizes):
        found = answer(*sizes)
        if found is None:
            return None
        try:
            numbers = list(found)
            if all(i == int(i) for i in numbers):
                return sorted(map(int, numbers))
        except (TypeError, ValueError):
            pass
        raise Finding(f"returns {describe_value(found)}; return a list or a range of the numbers i")

    return run


UNDER_MASK = (
    ("the mask is aligned top left: row r sees keys up to r + N_k - N_q", "past = 0"),
    ("the shift has the wrong sign: row r sees keys up to r + N_k - N_q", "past = N_q - N_k"),
    (
        "all row blocks are visited: rows before the first that sees key j * B_c see nothing of block j",
        "first = 0",
    ),
    (
        "those up to the diagonal are visited, as in the forward pass: the rows from it on see block j",
        "found = list(range(min(T_r, first + 1)))",
        "found = list(range(min(T_r, (min(key + B_c, N_k) - 1 - past) // B_r + 1)))",
    ),
    ("the blocks that are skipped are returned: return the others", "found = list(range(first))"),
    ("the first row is taken for the first block: that is row // B_r", "first = row"),
    (
        "a block is listed once for each of its rows: list it once",
        "found = [i // B_r for i in range(row, N_q)]",
    ),
    (
        "those are the column blocks that row block j visits, as in the forward pass: i and j are exchanged",
        "found = list(range(min(-(-N_k // B_c), max(0, (min((j + 1) * B_r, N_q) - 1 + past) // B_c + 1))))",
    ),
    (
        "row blocks that the mask cuts are left out: round the first row down to its block, row // B_r",
        "first = -(-row // B_r)",
    ),
    (
        "rows that see only some of block j are left out: ask for its first key, j * B_c, not its last",
        "key = min((j + 1) * B_c, N_k) - 1",
        "key = (j + 1) * B_c - 1",
    ),
    ("the first row is below 0 where row 0 sees key j * B_c already: max(0, ...)", "row = key - past"),
    ("off by one: row r sees key r + N_k - N_q itself", "row = max(0, key - past + 1)"),
    (
        "off by one, too early: the first row that sees key c is c - (N_k - N_q)",
        "row = max(0, key - past - 1)",
        "first = max(0, row // B_r - 1)",
    ),
    ("off by one, too late: the block that holds the first row is visited", "first = row // B_r + 1"),
    (
        "B_r and B_c are exchanged: block j begins at key j * B_c, and a row block has B_r rows",
        "key = j * B_r; first = row // B_c; T_r = -(-N_q // B_c)",
        "key = j * B_r; first = row // B_c",
        "key = j * B_r",
        "first = row // B_c",
        "T_r = -(-N_q // B_c)",
    ),
    ("the last, shorter row block is left out: there are ceil(N_q / B_r)", "T_r = N_q // B_r"),
    (
        "a row block too many: there are ceil(N_q / B_r), which is -(-N_q // B_r)",
        "T_r = N_q // B_r + 1",
        "T_r = -(-N_q // B_r) + 1",
    ),
    ("the last row block is left out: range ends before its second argument", "T_r = -(-N_q // B_r) - 1"),
    ("row blocks are counted in N_k: they cut the N_q rows of Q", "T_r = -(-N_k // B_r)", "T_r = -(-N_k // B_c)"),
    ("rows are returned: return the numbers of their blocks", "found = list(range(row, N_q))"),
    ("block numbers are compared, i >= j: rows and keys count, in blocks of B_r and B_c", "first = j"),
)
