"""The exercises on loops over blocks."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib import naive
from flashlib.checks.chapters.backward.exercises import KB, drawn_scale, lean
from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.engine.value_text import describe_value
from flashlib.checks.harness import gradient, sizes
from flashlib.checks.harness.metered import MeteredArray
from flashlib.tiled import blocks

FAR = np.array([0.0, -19.0, 0.0, -19.0])  # added to the scores of four keys
MANY = 256  # rows: too many to be loaded at once


def in_blocks(answer: Callable, names: dict[int, str], at: int, limit: int) -> Callable:
    """Return `lean` answer with some arguments, {position: name}, in slow memory if they have many rows.

    at: the position of the block size, which limits how many rows may be loaded at once.
    """

    @wraps(answer)
    def run(*arguments):
        placed = [MeteredArray(x) if n in names and len(x) >= MANY else x for n, x in enumerate(arguments)]
        result, found = lean(answer, limit)(*placed)
        for n, name in names.items():
            if placed[n] is arguments[n]:
                continue
            loads, size, block = placed[n].loads, arguments[n].size, arguments[at] * arguments[n].shape[1]
            if loads.most > block and not (found and loads.most == size):
                found = Finding("loaded_at_once", name=name)
            elif loads.most <= block and loads.held > max(4 * block, size // 2):
                found = Finding("all_kept", name=name)
        return Measured(result, found)

    return run


# ---- the two loops


def _problem(rng, N_q, N_k, d, offset, scale, apart):
    """Return Q, K, V, dO, lse, delta and the Grads of standard attention.

    offset: of all scores, or one for each key; apart: only of the last row's scores, and far less for the others.
    """
    Q, K, V, dO = (rng.normal(size=(N, d)).round(1) for N in (N_q, N_k, N_k, N_q))
    if np.any(offset):
        Q[:, -1], K[:, -1] = np.linspace(-1, 1, N_q) if apart else 1, np.divide(offset, scale)
    O, lse = naive.attention(Q, K, V, scale=scale)
    return Q, K, V, dO, lse, (dO * O).sum(axis=1), naive.backward(Q, K, V, O, lse, dO, scale=scale)


def _size(dO, V, scale):
    """Return the size of dP and delta, which cancel where all values are equal."""
    return np.abs(dO).max() * np.abs(V).max() * scale


DQ = gradient.dq_loop("my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale)", gradient.IN_NUMPY, "end = len(K)")


@exercise(title="dQ of one row block", minutes=15, difficulty="medium", optional=True, program=DQ)
def dq_rows(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(4)
    plain = [
        _row_block(rng, "1 row and 2 keys in blocks of 1", 1, 2, 1, 1),
        _row_block(rng, "2 rows and 2 keys, one block", 2, 2, 2, 2),
        _row_block(rng, "2 rows and 4 keys in blocks of 2", 2, 4, 2, 2),
        _row_block(rng, "3 rows and 5 keys in blocks of 2", 3, 5, 2, 2),
        _row_block(rng, "2 rows and 7 keys in blocks of 3", 2, 7, 4, 3),
        _row_block(rng, "4 rows and 3 keys in blocks of 8", 4, 3, 3, 8),
        _row_block(rng, "3 rows and 4 keys in blocks of 1", 3, 4, 2, 1),
        _row_block(rng, "2 rows and 3 keys in blocks of 2, scale 0.5", 2, 3, 2, 2, scale=0.5),
        *random_cases.cases(_any_row_block),
    ]
    large = [
        _row_block(rng, "scores near 900", 3, 5, 3, 2, 900),
        _row_block(rng, "scores near -900", 3, 5, 3, 2, -900),
        _row_block(rng, "rows 1800 apart", 3, 5, 3, 2, 1800, apart=True),
        _row_block(rng, "two keys 19 below the others", 2, 4, 2, 2, FAR)._replace(tolerance=1e-12),
    ]
    many = [_row_block(rng, "64 rows and 512 keys in blocks of 8", 64, 512, 2, 8)]
    return examine(in_blocks(answer, {4: "K", 5: "V"}, 6, 64 * KB), [plain, large, many], known)


def _row_block(rng, words, B_r, N_k, d, B_c, offset=0, scale=0.375, apart=False):
    Q, K, V, dO, lse, delta, grads = _problem(rng, B_r, N_k, d, offset, scale, apart)
    arguments, size = (Q, dO, lse, delta, K, V, B_c, scale), _size(dO, V, scale)
    return Case(words, arguments, grads.dQ, 1e-6 if np.any(offset) else 1e-9, size=size)


def _any_row_block(rng):
    B_r, N_k, d, B_c = map(int, rng.integers((1, 2, 1, 2), (9, 50, 9, 30)))
    return _row_block(
        rng, f"{B_r} rows and {N_k} keys in blocks of {B_c}", B_r, N_k, d, B_c, scale=drawn_scale(rng)
    )


DKV = gradient.dkv_loop("my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale)", gradient.IN_NUMPY)


@exercise(title="dK and dV of one column block", minutes=30, difficulty="medium", program=DKV)
def dkv_columns(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(5)
    plain = [
        _column_block(rng, "2 rows in blocks of 1, and the last of 2 keys", 2, 2, 1, 1, 1),
        _column_block(rng, "2 rows in one block, and the last 2 of 4 keys", 2, 4, 2, 2, 2),
        _column_block(rng, "4 rows in blocks of 2, and the last 2 of 4 keys", 4, 4, 2, 2, 2),
        _column_block(rng, "5 rows in blocks of 2, and the last 3 of 4 keys", 5, 4, 3, 2, 2),
        _column_block(rng, "7 rows in blocks of 3, and the last 2 of 9 keys", 7, 9, 2, 4, 3),
        _column_block(rng, "3 rows in blocks of 8, and all of 4 keys", 3, 4, 4, 3, 8),
        _column_block(rng, "4 rows in blocks of 1, and the last of 3 keys", 4, 3, 1, 2, 1),
        _column_block(rng, "3 rows in blocks of 2, and the last of 2 keys, scale 0.5", 3, 2, 1, 2, 2, scale=0.5),
        *random_cases.cases(_any_column_block),
    ]
    large = [
        _column_block(rng, "scores near 900", 5, 5, 3, 3, 2, 900),
        _column_block(rng, "scores near -900", 5, 5, 3, 3, 2, -900),
        _column_block(rng, "rows 1800 apart", 5, 5, 3, 3, 2, 1800, apart=True),
        _column_block(rng, "two keys 19 below the others", 4, 4, 3, 2, 2, FAR)._replace(tolerance=1e-12),
    ]
    many = [_column_block(rng, "512 rows in blocks of 8, and the last 64 of 65 keys", 512, 65, 64, 2, 8)]
    read = in_blocks(answer, {2: "Q", 3: "dO"}, 6, 64 * KB)
    return examine(read, [plain, large, many], known, outputs=("dK_j", "dV_j"))


def _column_block(rng, words, N_q, N_k, B_c, d, B_r, offset=0, scale=0.375, apart=False):
    """Return the Case of the last B_c of N_k keys."""
    Q, K, V, dO, lse, delta, grads = _problem(rng, N_q, N_k, d, offset, scale, apart)
    arguments = K[-B_c:], V[-B_c:], Q, dO, lse, delta, B_r, scale
    right, tolerance = (grads.dK[-B_c:], grads.dV[-B_c:]), 1e-6 if np.any(offset) else 1e-9
    return Case(words, arguments, right, tolerance, size=_size(dO, V, scale))


def _any_column_block(rng):
    N_q, B_c, others, d, B_r = map(int, rng.integers((2, 1, 1, 1, 1), (50, 9, 9, 9, 30)))
    words = f"{N_q} rows in blocks of {B_r} and {B_c} of {B_c + others} keys"
    return _column_block(rng, words, N_q, B_c + others, B_c, d, B_r, scale=drawn_scale(rng))


# ---- row blocks under a causal mask


@exercise(title="Which row blocks a column block visits", minutes=20, difficulty="medium")
def row_blocks(answer: Callable, known: Known) -> Verdict:
    fixed = """
        0 1 1 1 1, 1 2 2 1 1, 0 3 3 1 1, 1 4 4 2 2, 1 7 7 2 2, 1 8 8 4 2, 1 6 6 2 3, 0 2 5 1 2, 1 2 5 1 2,
        2 5 12 2 5, 0 5 2 2 1, 1 12 5 5 2, 3 40 64 8 16, 7 100 90 16 12, 0 20001 2 20000 1, 1 2 4 3 2, 0 0 4 2 2
    """

    def right(j, N_q, N_k, B_r, B_c):
        seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool)[:, j * B_c : (j + 1) * B_c]
        return [i for i, rows in enumerate(blocks(N_q, B_r)) if seen[rows].any()]

    def draw(rng):
        N_q, N_k, B_r, B_c = rng.integers(1, (60, 60, 20, 20))
        return rng.integers(0, -(-N_k // B_c)), N_q, N_k, B_r, B_c

    return examine(_numbers(answer, right), sizes.cases(right, fixed, draw, count=8), known)


def _numbers(answer, right):
    """Return answer with its result converted to a sorted list of int; raises Finding if that is not possible.

    right: returns the expected result; floats are reported if they are right.
    """

    @wraps(answer)
    def run(*sizes):
        found = answer(*sizes)
        if found is None:
            return None
        try:
            numbers = list(found)
            if all(i == int(i) for i in numbers):
                floats = any(isinstance(i, float | np.floating) for i in numbers) and sorted(numbers) == right(
                    *sizes
                )
                return Measured(sorted(map(int, numbers)), Finding("float") if floats else None)
        except (TypeError, ValueError):
            pass
        raise Finding("no_list", given=describe_value(found))

    return run
