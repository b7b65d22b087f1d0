"""Softmax of one row of scores: naive, safe and online, and the monoid behind online softmax.

Scores are NumPy arrays of shape (N,), float16, float32 or float64, and every result has that dtype, since the
point at which each dtype breaks is part of the lesson (NumPy adds fp16 numbers in fp32 and rounds the sum). Scores
of -inf get weight 0, even if all are -inf (except in `naive`), and an empty row gives an empty result. Anything
else is refused with TypeError or ValueError before any work.
"""

from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from flashlib.inputs import check_block_sizes, check_floating


class State(NamedTuple):
    """A summary of some scores of a row; `merge` combines two of them.

    m: the largest score, -inf for none; a scalar, or (...) for many rows at once.
    l: the sum of exp(x - m); shape of m.
    O_acc: the sum of exp(x - m) * v, (..., d); 0.0, or [0.0] once merged, if no values are carried along.
    """

    m: Any
    l: Any
    O_acc: Any = 0.0


IDENTITY = State(m=-np.inf, l=0.0, O_acc=0.0)


def _check_row(x, V=None):
    """Raise TypeError or ValueError unless x is a row of scores (N,) and V, if given, its values (N, d)."""
    check_floating(x=x)
    if x.ndim != 1:
        raise ValueError(f"x has shape {x.shape}; expected one row of scores, (N,)")
    if V is not None:
        check_floating(x=x, V=V)
        if V.ndim != 2 or len(V) != len(x):
            raise ValueError(f"V has shape {V.shape}; expected ({len(x)}, d), a row for each score of x")


def _takes_row(f):
    """Check the scores and block sizes before `f`, so that its body is only the algorithm."""

    @wraps(f)
    def checked(x, **block_sizes):
        _check_row(x)
        check_block_sizes(**block_sizes)
        return f(x, **{name: int(size) for name, size in block_sizes.items()})  # small NumPy integers overflow

    return checked


def _takes_row_and_values(f):
    """Check the scores and values before `f`, so that its body is only the algorithm."""

    @wraps(f)
    def checked(x, V):
        _check_row(x, V)
        return f(x, V)

    return checked


@_takes_row
def naive(x: np.ndarray) -> np.ndarray:
    """Return softmax of x by its definition, which overflows once exp(x) does. Shape (N,) to (N,)."""
    p = np.exp(x)
    return p / p.sum()


@_takes_row
def safe(x: np.ndarray) -> np.ndarray:
    """Return softmax of x, its maximum subtracted first. Shape (N,) to (N,).

    Three passes over x: for the maximum, for the sum, for the output.
    """
    m = x.max(initial=-np.inf)
    if m == -np.inf:  # nothing to attend to; -inf - (-inf) would be nan
        return np.zeros_like(x)
    p = np.exp(x - m)
    return p / p.sum()


@_takes_row
def logsumexp(x: np.ndarray) -> np.floating:
    """Return log(sum(exp(x))), a scalar; -inf for an empty row."""
    m = x.max(initial=-np.inf)
    if m == -np.inf:
        return m
    return m + np.log(np.exp(x - m).sum())


@_takes_row
def online(x: np.ndarray) -> np.ndarray:
    """Return softmax of x, taking its scores one by one. Shape (N,) to (N,).

    Two passes over x: for maximum and sum together, for the output.
    Source: Milakov & Gimelshein, Online normalizer calculation for softmax (2018), Algorithm 3.
    """
    m, l = -np.inf, 0.0
    for x_j in x:
        if x_j == -np.inf:  # weight 0; -inf - (-inf) would be nan
            continue
        m_old, m = m, max(m, x_j)
        l = l * np.exp(m_old - m) + np.exp(x_j - m)
    return np.exp(x - m) / l if l else np.zeros_like(x)


@_takes_row
def online_blocks(x: np.ndarray, *, B_c: int) -> np.ndarray:
    """Return softmax of x, taking B_c scores at a time. Shape (N,) to (N,).

    Raises TypeError or ValueError for a B_c that is not a whole number of at least 1.
    Source: FlashAttention-2, section 2.3.1 (softmax over blocks).
    """
    m, l = -np.inf, 0.0
    for start in range(0, len(x), B_c):
        x_j = x[start : start + B_c]  # (B_c,), the last one may be shorter
        if x_j.max() == -np.inf:  # weight 0; -inf - (-inf) would be nan
            continue
        m_old, m = m, max(m, x_j.max())
        l = l * np.exp(m_old - m) + np.exp(x_j - m).sum()
    return np.exp(x - m) / l if l else np.zeros_like(x)


@_takes_row_and_values
def weighted_sum(x: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return sum_j softmax(x)_j V_j in one pass, dividing once at the end. Shapes (N,), (N, d) to (d,).

    Source: the recurrence of FlashAttention-2, Algorithm 1, lines 9-12, with blocks of one.
    """
    m, l, O_acc = -np.inf, 0.0, np.zeros_like(V, shape=V.shape[1])
    for x_j, v_j in zip(x, V, strict=True):
        if x_j == -np.inf:
            continue
        m_old, m = m, max(m, x_j)
        alpha, p = np.exp(m_old - m), np.exp(x_j - m)
        l = alpha * l + p
        O_acc = alpha * O_acc + p * v_j  # (d,), unnormalised
    return O_acc / l if l else O_acc


@_takes_row_and_values
def weighted_sum_normalised(x: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return sum_j softmax(x)_j V_j in one pass, normalised after every score. Shapes (N,), (N, d) to (d,).

    Source: the recurrence of FlashAttention (2022), Algorithm 1, line 12, with blocks of one.
    """
    m, l, O = -np.inf, 0.0, np.zeros_like(V, shape=V.shape[1])
    for x_j, v_j in zip(x, V, strict=True):
        if x_j == -np.inf:
            continue
        m_old, m = m, max(m, x_j)
        alpha, p = np.exp(m_old - m), np.exp(x_j - m)
        l_old, l = l, alpha * l + p
        O = (alpha * l_old / l) * O + (p / l) * v_j  # (d,), softmax(x[:j+1]) @ V[:j+1]
    return O


def summarise(x: np.ndarray, V: np.ndarray | None = None) -> State:
    """Return the State of some scores (N,) and, if given, their values (N, d)."""
    _check_row(x, V)
    return IDENTITY if x.max(initial=-np.inf) == -np.inf else summarise_rows(x, V)


def summarise_rows(S: np.ndarray, V: np.ndarray | None = None) -> State:
    """Return the State of each row of scores (..., N) and, if given, of their values (N, d)."""
    m = S.max(axis=-1, initial=-np.inf)
    P = np.exp(S - np.where(m == -np.inf, 0, m)[..., None])  # -inf - (-inf) would be nan
    return State(m, P.sum(axis=-1), 0.0 if V is None else P @ V)


def merge(a: State, b: State) -> State:
    """Return the State of the scores of a and b together; associative, commutative, with IDENTITY.

    a.O_acc / a.l and b.O_acc / b.l are the outputs of two parts of a row, and merge(a, b) gives the whole row's.
    Source: Milakov & Gimelshein (2018), section 3.1, with the values carried along.
    """
    m = np.maximum(a.m, b.m)
    shift = np.where(m == -np.inf, 0, m)  # -inf - (-inf) would be nan
    alpha_a, alpha_b = np.exp(a.m - shift), np.exp(b.m - shift)
    l = alpha_a * a.l + alpha_b * b.l
    O_acc = alpha_a[..., None] * a.O_acc + alpha_b[..., None] * b.O_acc
    return State(m, l, O_acc)
