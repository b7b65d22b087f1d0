"""Attention rounded by a Recipe and exact, for EightBitsLab, and what each cause alone does to O."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flashlib import lowbit
from flashlib.lowbit import EXACT, FORMATS, PreparedInputs, Recipe, sums
from flashlib.lowbit.attention import scores
from flashlib.tiled import blocks
from flashlib.widgets.eight_bits_lab import tiles
from flashlib.widgets.eight_bits_lab.problem import COLS, ROWS, D, problem
from flashlib.widgets.eight_bits_lab.tiles import B_C, TilePass

KEYS = 512  # keys of a product where tiles do not matter
KEYS_SUMMED = 1024  # keys of a product in 13 bits, whose terms fit in a cache
SHOWN = B_C  # keys whose scores are drawn: the first tile
POINTS = 32  # of a running sum, at most
OCTAVES, PARTS = 20, 2  # of the axis of the histograms, and the bars of each


class Exact(NamedTuple):
    """Attention in fp64."""

    O: np.ndarray  # (ROWS, COLS)
    S: np.ndarray  # (ROWS, N)
    weights: np.ndarray  # (ROWS, N): P / l


class AttentionNumbers(NamedTuple):
    """The results of a pass over all tiles: the scores that are shown, all of P, and the sums of O."""

    O: np.ndarray  # (ROWS, COLS)
    S: np.ndarray  # (ROWS, SHOWN)
    P: np.ndarray  # (ROWS, SHOWN), times p_times, before it is rounded
    P_q: np.ndarray  # (ROWS, SHOWN), and after
    weights: np.ndarray  # (ROWS, SHOWN): P / l
    all_P: np.ndarray  # (T_c, ROWS, B_C), as P
    all_P_q: np.ndarray  # (T_c, ROWS, B_C)
    keys: np.ndarray  # (n,): keys summed by then
    running: np.ndarray  # (n, ROWS, COLS): O_acc then, in units of O
    unrounded: np.ndarray  # (n, ROWS, COLS): the same terms, added in fp64
    unit: np.ndarray  # (ROWS, COLS): the unit of the last bit of a 13-bit sum at the end, in units of O; or NaN
    lost: np.ndarray  # (ROWS, COLS): how many of the last terms are smaller than this unit; or NaN


@lru_cache(maxsize=1)
def exact_attention(of: tuple, k_minus_mean: bool) -> Exact:
    """Return attention for the problem `of` (N, outliers, sharpness, mean). K's mean changes S, but not O."""
    Q, K, V = (X.astype(float) for X in problem(*of))
    if k_minus_mean:
        K -= K.mean(axis=0)
    S = _products(Q, K)
    weights = _weights(S)
    return Exact(_summed(weights, V), S, weights)


def _products(Q, K):
    """Return S for all keys, (ROWS, N). With more keys in a product BLAS would start threads, at a cost."""
    return np.concatenate([Q @ K[cols].T for cols in blocks(len(K), KEYS)], axis=1) / math.sqrt(D)


def _weights(S):
    """Return P / l."""
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def _summed(weights, V):
    return sum(weights[:, cols] @ V[cols] for cols in blocks(len(V), KEYS))


@lru_cache(maxsize=1)
def rounded_inputs(of: tuple, recipe: Recipe) -> tuple[PreparedInputs, PreparedInputs]:
    """Return Q, K and V of a problem as rounded by a recipe, and the same before rounding."""
    return lowbit.prepared(*problem(*of), recipe), lowbit.prepared(*problem(*of), recipe._replace(qk=None, v=None))


@lru_cache(maxsize=1)
def passes(of: tuple, recipe: Recipe) -> list[TilePass]:
    """Return two passes over all tiles: with the whole recipe, and with only its sums of P V, on exact scores."""
    ready, before = rounded_inputs(of, recipe)
    of_sums, S = lowbit.alone(recipe, "sums"), exact_attention(of, recipe.k_minus_mean).S.astype(np.float32)
    both = tiles.tiles(_scores(ready, recipe), recipe), tiles.tiles(S, of_sums)
    return tiles.passed(both, (ready.V.X_q, before.V.X), recipe)


def _scores(ready, recipe):
    """Return all scores under a recipe, (ROWS, N)."""
    cols = B_C if recipe.s_sums == "exact" else KEYS_SUMMED  # bit for bit what BLAS computes for a tile
    parts = [scores(ready, recipe, slice(0, ROWS), part, D**-0.5) for part in blocks(len(ready.K.X_q), cols)]
    return np.concatenate(parts, axis=1)


@lru_cache(maxsize=1)
def attention(of: tuple, recipe: Recipe) -> AttentionNumbers:
    """Return attention for a problem under a recipe."""
    ready, now = rounded_inputs(of, recipe)[0], passes(of, recipe)[0]
    P, P_q, in_O = now.tiles.P, now.tiles.P_q, now.tiles.in_O
    every = math.ceil(len(P) / POINTS)
    at = [*range(every - 1, len(P) - 1, every), len(P) - 1]
    in_sum = in_O[at, :, None] * ready.V.scale
    return AttentionNumbers(
        O=lowbit.output(now.output * ready.V.scale + ready.V_mean, recipe),
        **{"S": now.tiles.S[0], "P": P[0], "P_q": P_q[0], "weights": P_q[0] * in_O[0, :, None]},
        **{"all_P": P, "all_P_q": P_q},
        keys=B_C * (np.array(at) + 1),
        running=now.O_acc[at] * in_sum,
        unrounded=_unrounded(now.tiles, ready.V.X_q)[at] * in_sum,
        **_lost(now, ready, recipe, in_sum[-1]),
    )


def _unrounded(of, V_q):
    """Return O_acc after each tile with the same terms added in fp64, (T_c, ROWS, COLS)."""
    terms = of.P_q.astype(float) @ V_q.reshape(-1, B_C, COLS)
    after, total = [], 0
    for alpha, term in zip(of.alpha, terms, strict=True):
        total = alpha[:, None] * total + term
        after.append(total)
    return np.array(after)


def _lost(now, ready, recipe, in_sum):
    """Return the unit of the sums at the end, and how many of the last terms are smaller."""
    nothing = np.full((ROWS, COLS), np.nan)
    if recipe.o_sums != "13 bits":
        return {"unit": nothing, "lost": nothing}
    terms = now.tiles.P_q[-1][:, -sums.STEP :, None] * ready.V.X_q[-sums.STEP :]  # (ROWS, STEP, COLS)
    largest = np.maximum(np.abs(now.O_acc[-1]), np.abs(terms).max(axis=1))
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1 - sums.BITS)
    return {"unit": unit * in_sum, "lost": ((terms != 0) & (np.abs(terms) < unit[:, None])).sum(axis=1)}


def causes(of: tuple, recipe: Recipe) -> list[dict]:
    """Return, for each cause, the error of O that it makes alone, as a share of O, and its part of the squares."""
    exact = exact_attention(of, recipe.k_minus_mean)
    errors = [_error(of, recipe, cause, exact) for cause in lowbit.CAUSE_NAMES]
    squares = sum(error**2 for error in errors)
    return [
        {"name": name, "error": error, "part": error**2 / squares if squares else 0.0}
        for name, error in zip(lowbit.CAUSE_NAMES.values(), errors, strict=True)
    ]


def _error(of, recipe, cause, exact):
    """Return the error of O that a cause makes alone: 0 if it has no effect, rather than the rounding of fp32."""
    if all(getattr(recipe, field) == getattr(EXACT, field) for field in lowbit.CAUSES[cause]):
        return 0.0
    return lowbit.error(_alone(of, recipe, cause, exact), exact.O)


def _alone(of, recipe, cause, exact):
    """Return O with only one cause of error, as in `lowbit.by_cause`, tile by tile only where tiles matter."""
    alone, (rounded, before) = lowbit.alone(recipe, cause), rounded_inputs(of, recipe)
    if cause == "inputs":
        return _summed(_weights(_products(rounded.Q.X, rounded.K.X)), before.V.X) + before.V_mean
    if cause == "S":
        return _summed(_weights(_scores(before, alone)), before.V.X) + before.V_mean
    if cause == "V":
        return _summed(exact.weights.astype(np.float32), rounded.V.X) + rounded.V_mean
    if cause == "O":
        return lowbit.output(exact.O.astype(np.float32), alone)
    if cause == "sums":
        return passes(of, recipe)[1].output + before.V_mean
    P = tiles.tiles(exact.S.astype(np.float32), alone)
    return _summed(np.concatenate([*(P.P_q * P.in_O[..., None])], axis=1), before.V.X) + before.V_mean


def rounding(of: tuple, recipe: Recipe) -> list[dict]:
    """Return what rounding does to Q, K, V and P: a histogram of their sizes, and their errors."""
    now, (rounded, before) = attention(of, recipe), rounded_inputs(of, recipe)
    return [
        _rounding("Q", recipe.qk, before.Q.X, rounded.Q.X, rounded.Q.scale),
        _rounding("K", recipe.qk, before.K.X, rounded.K.X, rounded.K.scale),
        _rounding("V", recipe.v, before.V.X, rounded.V.X, rounded.V.scale),
        _rounding("P", recipe.p, now.all_P, now.all_P_q, 1.0),
    ]


def _rounding(name, format, X, X_q, scale):
    """Return the histogram of |x| over the largest number its scale allows; in 16 bits, over the largest |x|."""
    size, bars = np.abs(X), PARTS * OCTAVES
    top = scale * FORMATS[format].largest if FORMATS[format].bits == 8 else size.max()
    octave = np.log2(np.maximum(size / top, 2.0 ** (-OCTAVES - 1 / PARTS)))
    bar = np.minimum(PARTS * octave + (bars + 1), bars).astype(np.int64)  # the first: all smaller numbers
    shares = np.bincount(bar.ravel(), minlength=bars + 1) / X.size
    return {
        **{"name": name, "format": format, "below": float(shares[0]), "bars": shares[1:].tolist()},
        **{"largest": float(size.max()), "zeros": np.count_nonzero((X_q == 0) & (X != 0)) / X.size},
        "error": float(np.linalg.norm(X_q - X) / (np.linalg.norm(X) or 1)),
    }


def grid(format: str) -> list[float]:
    """Return the positive numbers of a format, in order; none for 16 bits, which has too many."""
    if FORMATS[format].bits > 8:
        return []
    values = lowbit.numbers(format)
    return values[(values > 0) & (values <= FORMATS[format].largest)].tolist()


def opening_place(exact: Exact, now: AttentionNumbers) -> dict[str, int]:
    """Return where to look first: the weight with the largest error whose P was rounded, and O of its query."""
    off = np.abs(now.weights - exact.weights[:, :SHOWN]) * (now.P_q != now.P)
    row, key = np.unravel_index(off.argmax(), off.shape)
    return {"row": int(row), "key": int(key), "column": int(np.abs(now.O - exact.O)[row].argmax())}


def bytes_read(of: tuple, recipe: Recipe) -> dict:
    """Return the bytes of a head's K and V, in 16 bits and in their formats, and of the scales of eight bits."""
    N, K, V = of[0], _bytes(recipe.qk), _bytes(recipe.v)
    of_K = {"tensor": 1, "block": math.ceil(N / recipe.block), "row": N}[recipe.qk_share]
    of_V = COLS if recipe.v_share == "channel" else 1
    scales = of_K * (K == 1) + of_V * (V == 1)
    return {"before": 2 * N * (D + COLS), "now": N * (D * K + COLS * V), "scales": 4 * scales}


def _bytes(format):
    return FORMATS[format].bits // 8


def pack(exact: Exact, now: AttentionNumbers) -> bytes:
    """Return the numbers that the page draws, in fp64."""
    scores = exact.S[:, :SHOWN], now.S, now.P, now.P_q, exact.weights[:, :SHOWN], now.weights
    sums = now.unit, now.lost, now.keys, now.running, now.unrounded
    parts = *scores, exact.O, now.O, *sums
    return np.concatenate([np.ravel(part) for part in parts]).astype("<f8").tobytes()
