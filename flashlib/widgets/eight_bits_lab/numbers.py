"""What EightBitsLab shows: attention played with a Recipe and exactly, and what each cause alone does to O."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flashlib import lowbit
from flashlib.lowbit import EXACT, FORMATS, Prepared, Recipe, sums
from flashlib.tiled import blocks
from flashlib.widgets.eight_bits_lab.problem import COLS, ROWS, D, problem

B_C = 128  # keys of a tile, as in the kernels
KEYS = 512  # of a product where tiles do not matter
SHOWN = B_C  # keys whose scores are drawn: those of the first tile
POINTS = 32  # of a running sum, at most
OCTAVES, PARTS = 20, 2  # of the axis of the histograms, and into how many bars each is cut
NAMES = {  # of lowbit.CAUSES
    "inputs": "Q and K",
    "S": "sums of Q K^T",
    "P": "P",
    "V": "V",
    "sums": "sums of P V",
    "O": "O",
}


class Exact(NamedTuple):
    """Attention in fp64."""

    O: np.ndarray  # (ROWS, COLS)
    S: np.ndarray  # (ROWS, N)
    weights: np.ndarray  # (ROWS, N): P / l


class Played(NamedTuple):
    """What a pass over all tiles left: of the scores that are shown, of all of P, and of the sums of O."""

    O: np.ndarray  # (ROWS, COLS)
    S: np.ndarray  # (ROWS, SHOWN)
    P: np.ndarray  # (ROWS, SHOWN), times p_times, before it is rounded
    P_q: np.ndarray  # (ROWS, SHOWN), and after
    weights: np.ndarray  # (ROWS, SHOWN): P / l
    all_P: np.ndarray  # (ROWS, N), as P
    all_P_q: np.ndarray  # (ROWS, N)
    keys: np.ndarray  # (n,): after so many keys
    running: np.ndarray  # (n, ROWS, COLS): O_acc then, in units of O
    unrounded: np.ndarray  # (n, ROWS, COLS): the same terms, added in fp64
    unit: np.ndarray  # (ROWS, COLS): what the last bit of a sum of 13 is worth at the end, in units of O; or NaN
    lost: np.ndarray  # (ROWS, COLS): how many of the last terms are smaller than that; or NaN


@lru_cache(maxsize=1)
def exactly(of: tuple, k_minus_mean: bool) -> Exact:
    """Return attention to the problem `of` (N, outliers, sharpness, mean). K's mean changes S, but not O."""
    Q, K, V = (X.astype(float) for X in problem(*of))
    if k_minus_mean:
        K -= K.mean(axis=0)
    S, weights = _weights(Q, K)
    return Exact(_summed(weights, V), S, weights)


def _weights(Q, K, product=np.matmul):
    """Return S and P / l of all keys, (ROWS, N). With more keys in a product BLAS starts threads, at a cost."""
    S = np.concatenate([product(Q, K[cols].T) for cols in blocks(len(K), KEYS)], axis=1) / math.sqrt(D)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return S, P / P.sum(axis=1, keepdims=True)


def _summed(weights, V):
    return sum(weights[:, cols] @ V[cols] for cols in blocks(len(V), KEYS))


def _in_O(steps):
    """Return what a term of each tile counts in O, (T_c, ROWS): its m was not the last one, and l comes after."""
    return np.exp([step.m - steps[-1].m for step in steps]) / steps[-1].l


@lru_cache(maxsize=1)
def prepared(of: tuple, recipe: Recipe) -> tuple[Prepared, Prepared]:
    """Return Q, K and V of a problem as a recipe has them, and the same before they are rounded."""
    return lowbit.prepared(*problem(*of), recipe), lowbit.prepared(*problem(*of), recipe._replace(qk=None, v=None))


@lru_cache(maxsize=1)
def played(of: tuple, recipe: Recipe) -> Played:
    """Return attention to a problem as a recipe says."""
    ready = prepared(of, recipe)[0]
    O = np.empty((ROWS, COLS), np.float32)
    steps = list(lowbit.steps(ready, recipe, B_r=ROWS, B_c=B_C, O=O))
    first, last = steps[0], steps[-1]
    in_O = _in_O(steps)
    P = [np.exp(step.S_ij - step.m[:, None]) * recipe.p_times for step in steps]
    every = math.ceil(len(steps) / POINTS)
    at = [*range(every - 1, len(steps) - 1, every), len(steps) - 1]
    in_sum = in_O[at, :, None] * ready.V.scale
    return Played(
        O=lowbit.output(O, recipe),
        **{"S": first.S_ij, "P": P[0], "P_q": first.P_ij, "weights": first.P_ij * in_O[0, :, None]},
        all_P=np.concatenate(P, axis=1),
        all_P_q=np.concatenate([step.P_ij for step in steps], axis=1),
        keys=np.array([steps[k].cols.stop for k in at]),
        running=np.array([steps[k].O_acc for k in at]) * in_sum,
        unrounded=_unrounded(steps, ready.V.X_q)[at] * in_sum,
        **_lost(last, ready, recipe, in_sum[-1]),
    )


def _unrounded(steps, V_q):
    """Return O_acc after each step as it would be if the same terms were added in fp64, (T_c, ROWS, COLS)."""
    after, total = [], np.zeros(steps[0].O_acc.shape)
    for step in steps:
        total = step.alpha[:, None] * total + step.P_ij.astype(float) @ V_q[step.cols]
        after.append(total)
    return np.array(after)


def _lost(last, ready, recipe, in_sum):
    """Return the unit of the sums at their end, and how many of the last terms are smaller."""
    nothing = np.full(last.O_acc.shape, np.nan)
    if recipe.o_sums != "13 bits":
        return {"unit": nothing, "lost": nothing}
    terms = last.P_ij[:, -sums.STEP :, None] * ready.V.X_q[-sums.STEP :]  # (ROWS, STEP, COLS)
    largest = np.maximum(np.abs(last.O_acc), np.abs(terms).max(axis=1))
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1 - sums.BITS)
    return {"unit": unit * in_sum, "lost": ((terms != 0) & (np.abs(terms) < unit[:, None])).sum(axis=1)}


def causes(of: tuple, recipe: Recipe) -> list[dict]:
    """Return, for each cause, the error of O that it makes alone, as a share of O, and its part of all squares."""
    exact = exactly(of, recipe.k_minus_mean)
    errors = [_error(of, recipe, cause, exact) for cause in NAMES]
    squares = sum(error**2 for error in errors)
    return [
        {"name": name, "error": error, "part": error**2 / squares if squares else 0.0}
        for name, error in zip(NAMES.values(), errors, strict=True)
    ]


def _error(of, recipe, cause, exact):
    """Return the error of O that a cause makes alone: 0 if it does nothing, and not what fp32 rounds."""
    if all(getattr(recipe, field) == getattr(EXACT, field) for field in lowbit.CAUSES[cause]):
        return 0.0
    return lowbit.error(_alone(of, recipe, cause, exact), exact.O)


def _alone(of, recipe, cause, exact):
    """Return O if one cause is left, as `lowbit.by_cause` has it, by tiles only where they matter."""
    alone, (rounded, before) = lowbit.alone(recipe, cause), prepared(of, recipe)
    if cause == "inputs":
        return _summed(_weights(rounded.Q.X, rounded.K.X)[1], before.V.X) + before.V_mean
    if cause == "S":
        return _summed(_weights(before.Q.X, before.K.X, sums.product)[1], before.V.X) + before.V_mean
    if cause == "V":
        return _summed(exact.weights.astype(np.float32), rounded.V.X) + rounded.V_mean
    if cause == "O":
        return lowbit.output(exact.O.astype(np.float32), alone)
    O = _of_tiles(*_tiles(exact, alone), before.V.X, alone)
    return O + before.V_mean


def _of_tiles(P, in_O, V, alone):
    """Return O of the P of all tiles, where P is rounded alone, or the sums over keys are."""
    P_q = P if alone.p is None else lowbit.rounded(P, alone.p)
    l = ((P if alone.l_from == "exact" else P_q).sum(axis=-1) * in_O).sum(axis=0)[:, None]
    if alone.o_sums == "exact":
        return _summed(np.concatenate([*(P_q * in_O[..., None])], axis=1), V) / l
    V = V.reshape(len(P), B_C, COLS)
    if alone.o_sums == "two levels":
        return (sums.product(P_q, V) * in_O[..., None]).sum(axis=0) / l
    O_acc = np.zeros((ROWS, COLS), np.float32)
    # Where a tile counts nothing in the end, what went before it counts nothing too.
    alpha = np.divide(in_O[:-1], in_O[1:], where=in_O[1:] != 0, out=np.zeros_like(in_O[1:]))
    for j, (P_j, V_j) in enumerate(zip(P_q, V, strict=True)):
        O_acc = sums.product(P_j, V_j, start=alpha[j - 1][:, None] * O_acc if j else None)
    return O_acc / l


def _tiles(exact, recipe):
    """Return P of each tile where nothing is rounded, (T_c, ROWS, B_C), times p_times, and what it counts in O.

    That is but for l: a tile's P is of the largest score so far, (T_c, ROWS).
    """
    S = np.swapaxes(exact.S.astype(np.float32).reshape(ROWS, -1, B_C), 0, 1)
    m = np.maximum.accumulate(S.max(axis=-1))
    return np.exp(S - m[..., None]) * np.float32(recipe.p_times), np.exp(m - m[-1])


def rounding(of: tuple, recipe: Recipe) -> list[dict]:
    """Return what rounding does to Q, K, V and P: a histogram of their sizes, and what is left of them."""
    now, (rounded, before) = played(of, recipe), prepared(of, recipe)
    return [
        _rounding("Q", recipe.qk, before.Q.X, rounded.Q.X, rounded.Q.scale),
        _rounding("K", recipe.qk, before.K.X, rounded.K.X, rounded.K.scale),
        _rounding("V", recipe.v, before.V.X, rounded.V.X, rounded.V.scale),
        _rounding("P", recipe.p, now.all_P, now.all_P_q, 1.0),
    ]


def _rounding(name, format, X, X_q, scale):
    """Return the histogram of |x| over the largest for which its scale has room; of 16 bits, over the largest."""
    size, bars = np.abs(X), PARTS * OCTAVES
    top = scale * FORMATS[format].largest if FORMATS[format].bits == 8 else size.max()
    octave = np.log2(np.maximum(size / top, 2.0 ** (-OCTAVES - 1 / PARTS)))
    bar = np.minimum(PARTS * octave + (bars + 1), bars).astype(np.int64)  # the first: what is below
    shares = np.bincount(bar.ravel(), minlength=bars + 1) / X.size
    return {
        **{"name": name, "format": format, "below": float(shares[0]), "bars": shares[1:].tolist()},
        **{"largest": float(size.max()), "zeros": np.count_nonzero((X_q == 0) & (X != 0)) / X.size},
        "error": float(np.linalg.norm(X_q - X) / (np.linalg.norm(X) or 1)),
    }


def grid(format: str) -> list[float]:
    """Return the positive numbers of a format, in order; none for 16 bits: they are too many."""
    if FORMATS[format].bits > 8:
        return []
    values = lowbit.numbers(format)
    return values[(values > 0) & (values <= FORMATS[format].largest)].tolist()


def worst(exact: Exact, now: Played) -> dict[str, int]:
    """Return where to look first: the weight that is off by most, where P is too, and O of the same query."""
    off = np.abs(now.weights - exact.weights[:, :SHOWN]) * (now.P_q != now.P)
    row, key = np.unravel_index(off.argmax(), off.shape)
    return {"row": int(row), "key": int(key), "column": int(np.abs(now.O - exact.O)[row].argmax())}


def read(of: tuple, recipe: Recipe) -> dict:
    """Return bytes of K and V of a head, in 16 bits and as they are, and of the scales of eight bits."""
    N, K, V = of[0], _bytes(recipe.qk), _bytes(recipe.v)
    of_K = {"tensor": 1, "block": math.ceil(N / recipe.block), "row": N}[recipe.qk_share]
    of_V = COLS if recipe.v_share == "channel" else 1
    scales = of_K * (K == 1) + of_V * (V == 1)
    return {"before": 2 * N * (D + COLS), "now": N * (D * K + COLS * V), "scales": 4 * scales}


def _bytes(format):
    return FORMATS[format].bits // 8


def pack(exact: Exact, now: Played) -> bytes:
    """Return the numbers that the page draws, in fp64."""
    scores = exact.S[:, :SHOWN], now.S, now.P, now.P_q, exact.weights[:, :SHOWN], now.weights
    sums = now.unit, now.lost, now.keys, now.running, now.unrounded
    parts = *scores, exact.O, now.O, *sums
    return np.concatenate([np.ravel(part) for part in parts]).astype("<f8").tobytes()
