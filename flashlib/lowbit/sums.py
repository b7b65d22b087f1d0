"""How Hopper's tensor cores add products of eight-bit numbers: a model, and its repair.

In each step, 32 terms and the sum so far are truncated, toward zero, to multiples of 2^(e - 13), where e is the
exponent of the largest of them, and then added. So a sum of n equal terms loses a bit of each term whenever it
doubles, always toward zero, and stops growing when a term is smaller than the unit. Two levels repair this: only
the few terms of one tile are added this way, and the sums of tiles are added in fp32.

The model matches an H200: see the tests.
"""

from collections.abc import Iterator

import numpy as np

from flashlib.inputs import check_block_sizes, check_counts, check_floating

BITS = 13  # below the exponent of the largest term
STEP = 32  # terms that are added at once: the depth of an instruction on one-byte numbers
ROWS = 64  # computed at once: so many fit in a cache


def add(terms: np.ndarray, *, bits: int = BITS) -> np.ndarray:
    """Return the sum of the terms of one step, over the first axis; the sum so far is one of them.

    terms: (k, ...), floating. The sum itself is not truncated; the next step does that.
    """
    check_floating(terms=terms)
    check_counts(bits=bits)
    return _add(terms.copy(), bits)


def running(terms: np.ndarray, *, bits: int = BITS, step: int = STEP) -> Iterator[np.ndarray]:
    """Yield the sum of terms (n, ...), over the first axis, after each step of `step` terms."""
    check_floating(terms=terms)
    check_counts(bits=bits)
    check_block_sizes(step=step)
    return _running(terms, bits, step)


def product(
    A: np.ndarray, B: np.ndarray, *, start: np.ndarray | None = None, bits: int = BITS, step: int = STEP
) -> np.ndarray:
    """Return start + A B in fp32, added this way. A: (..., M, n); B: (..., n, d); start: (..., M, d), 0 if None.

    Nothing else is rounded if A and B hold numbers of eight bits: their products and sums of 33 terms fit in fp32.
    """
    check_floating(A=A, B=B)
    check_counts(bits=bits)
    check_block_sizes(step=step)
    heads = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    total = np.zeros((*heads, A.shape[-2], B.shape[-1]), np.float32)
    if start is not None:
        total += start
    A = np.swapaxes(A, -1, -2).astype(np.float32, order="C")  # (..., n, M)
    B = B.astype(np.float32, order="C")  # (..., n, d)
    for row in range(0, total.shape[-2], ROWS):
        rows = slice(row, row + ROWS)
        total[..., rows, :] = _rows(A[..., rows], B, total[..., rows, :], bits, step)
    return total


def _rows(A, B, total, bits, step):
    """Return total + A^T B."""
    room = np.empty((step + 1, *total.shape), np.float32)
    for at in range(0, B.shape[-2], step):
        terms = slice(at, at + step)
        n = len(range(B.shape[-2])[terms])
        np.einsum("...ni,...nj->n...ij", A[..., terms, :], B[..., terms, :], out=room[:n])
        room[n] = total
        total = _add(room[: n + 1], bits)
    return total


def _running(terms, bits, step):
    total = np.zeros_like(terms, shape=(1, *terms.shape[1:]))
    for at in range(0, len(terms), step):
        total = _add(np.concatenate([total, terms[at : at + step]]), bits)[None]
        yield total[0]


def _add(terms, bits):
    """Return the sum over the first axis, in multiples of 2^(e - bits); overwrites `terms`."""
    largest = np.maximum(np.maximum.reduce(terms, initial=0), -np.minimum.reduce(terms, initial=0))
    exponent = np.frexp(largest)[1] - (1 + bits)  # largest = 1.f * 2^(exponent + bits)
    unit = np.ldexp(np.ones((), terms.dtype), np.maximum(exponent, np.finfo(terms.dtype).minexp))
    terms *= 1 / unit  # exact, as units are powers of two, and quicker than dividing
    return np.add.reduce(np.trunc(terms, out=terms)) * unit
