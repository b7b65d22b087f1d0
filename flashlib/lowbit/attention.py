"""Attention with eight-bit numbers, on the tiles of FlashAttention: the loop of `tiled`, with a Recipe.

A GPU uses two kernels, and here there are two functions: `prepared` is the pass that quantises, `steps` is the
attention on its result. What a recipe does not round is computed in fp32, or in fp64 for fp64 inputs.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashlib import masks
from flashlib.inputs import check_block_sizes, check_floating, check_shapes, resolve_scale
from flashlib.lowbit import sums
from flashlib.lowbit.formats import FORMATS, rounded
from flashlib.lowbit.recipe import Recipe, check_recipe
from flashlib.lowbit.rotation import rotated
from flashlib.lowbit.scales import Quantised, quantised
from flashlib.tiled import blocks
from flashlib.types import Attention, Step


class PreparedInputs(NamedTuple):
    """The inputs of an eight-bit attention: Q, K and V with their scales, and the mean subtracted from V."""

    Q: Quantised
    K: Quantised
    V: Quantised
    V_mean: np.ndarray  # (..., 1, d_v), 0 if it was not subtracted


def attention(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    recipe: Recipe,
    *,
    B_r: int = 128,
    B_c: int = 128,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Attention:
    """Return O and lse of an attention that rounds according to a recipe.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); or (H, ...) each, all of one floating dtype. O: (..., N_q, d_v),
    numbers of the recipe's format; lse: (..., N_q). Both fp32, or fp64 for fp64 inputs. For the other arguments
    and errors, see `prepared` and `steps`.
    """
    ready = prepared(Q, K, V, recipe)
    O, lse = _outputs(ready)
    trace = steps(ready, recipe, B_r=B_r, B_c=B_c, causal=causal, mask=mask, scale=scale, O=O, lse=lse)
    deque(trace, maxlen=0)  # run to the end, keep nothing
    return Attention(output(O, recipe), lse)


def prepared(Q: np.ndarray, K: np.ndarray, V: np.ndarray, recipe: Recipe) -> PreparedInputs:
    """Return Q, K and V without their means, rotated, scaled and rounded, according to the recipe.

    Raises TypeError or ValueError for arguments other than those of `attention`; for a rotation, d must be a power
    of two.
    """
    check_floating(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(H, N, d)" if Q.ndim == 3 else "(N, d)", values=True)
    check_recipe(recipe)
    Q, K, V = (X.astype(np.promote_types(X.dtype, np.float32), copy=False) for X in (Q, K, V))
    V_mean = np.zeros_like(V, shape=V.shape[:-2] + (1, V.shape[-1]))
    if recipe.v_minus_mean and V.size:
        V_mean = V.mean(axis=-2, keepdims=True)
    if recipe.k_minus_mean and K.size:
        K = K - K.mean(axis=-2, keepdims=True)
    if recipe.rotate:
        Q, K = rotated(Q), rotated(K)
    how = {"block": recipe.block, "power_of_two": recipe.power_of_two}
    Q_q, K_q = (_in_format(X, recipe.qk, share=recipe.qk_share, **how) for X in (Q, K))
    return PreparedInputs(Q_q, K_q, _in_format(V - V_mean, recipe.v, share=recipe.v_share, **how), V_mean)


def steps(
    ready: PreparedInputs,
    recipe: Recipe,
    *,
    B_r: int = 128,
    B_c: int = 128,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    O: np.ndarray | None = None,
    lse: np.ndarray | None = None,
) -> Iterator[Step]:
    """Return a generator of the Steps, one for each computed tile of S; axes before the last two are heads.

    ready: what `prepared` returned for the same recipe.
    In a Step, P_ij are numbers of the recipe's format: P times p_times, rounded. l and O_acc are p_times larger
    than in `tiled` too, and O_acc is in units of V's scale and without V's mean.
    O, lse: (..., N_q, d_v) and (..., N_q), written as the generator runs; allocated if None. O is not yet rounded:
    see `output`.
    B_r, B_c, causal, mask, scale: as in `flashlib.tiled.steps`. With "two levels" sums, a level is B_c keys.
    Raises TypeError or ValueError, before any work, for arguments other than these.
    """
    check_recipe(recipe)
    check_block_sizes(B_r=B_r, B_c=B_c)
    Q_q, K_q = ready.Q.X_q, ready.K.X_q
    mask = masks.resolve(mask, causal, Q_q.shape[-2], K_q.shape[-2])
    scale = resolve_scale(scale, Q_q.shape[-1])
    O_new, lse_new = _outputs(ready)
    O, lse = O_new if O is None else O, lse_new if lse is None else lse
    return _steps(ready, recipe, B_r, B_c, mask, scale, O, lse)


def _steps(ready, recipe, B_r, B_c, mask, scale, O, lse):
    """FlashAttention-2, Algorithm 1, as in `tiled`: the row block stays, K and V stream past it."""
    for i, rows in enumerate(blocks(O.shape[-2], B_r)):
        m, l = np.full_like(lse[..., rows], -np.inf), np.zeros_like(lse[..., rows])  # (..., B_r)
        O_acc = np.zeros_like(O[..., rows, :])  # (..., B_r, d_v)
        for j, cols in enumerate(blocks(ready.K.X_q.shape[-2], B_c)):
            if mask.hidden(rows, cols):
                continue
            S_ij = mask.scores(scores(ready, recipe, rows, cols, scale), rows, cols)  # (..., B_r, B_c)
            m_old, l_old, O_acc_old = m, l, O_acc
            m = np.maximum(m_old, S_ij.max(axis=-1))
            shift = np.where(m == -np.inf, 0, m)  # -inf - (-inf) would be nan
            alpha = np.exp(m_old - shift)
            P = np.exp(S_ij - shift[..., None]) * recipe.p_times  # (..., B_r, B_c)
            P_ij = P if recipe.p is None else rounded(P, recipe.p)
            l = alpha * l_old + (P if recipe.l_from == "exact" else P_ij).sum(axis=-1)
            O_acc = added(alpha[..., None] * O_acc_old, P_ij, ready.V.X_q[..., cols, :], recipe)
            yield Step(i, j, m, l, O_acc, rows, cols, S_ij, P_ij, m_old, alpha, l_old, O_acc_old)
        unseen = (l == 0)[..., None]  # a row that saw no key: O = 0, lse = -inf
        divisor = np.where(l == 0, recipe.p_times, l)
        O[..., rows, :] = O_acc / divisor[..., None] * ready.V.scale + np.where(unseen, 0, ready.V_mean)
        lse[..., rows] = m + np.log(divisor / recipe.p_times)


def scores(ready: PreparedInputs, recipe: Recipe, rows: slice, cols: slice, scale: float) -> np.ndarray:
    """Return a tile of Q K^T in the units of scores: the scales come after the sum."""
    (Q_q, q_scale), (K_q, k_scale) = ready.Q, ready.K
    Q_i, K_j = Q_q[..., rows, :], np.swapaxes(K_q[..., cols, :], -1, -2)
    S = Q_i @ K_j if recipe.s_sums == "exact" else sums.product(Q_i, K_j)
    return S * (scale * _of(q_scale, rows)) * np.swapaxes(_of(k_scale, cols), -1, -2)


def _of(scale, rows):
    """Return the scales of some rows; a scale that all rows share is theirs too."""
    return scale[..., rows, :] if scale.shape[-2] > 1 else scale


def added(O_acc: np.ndarray, P_ij: np.ndarray, V_j: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Return O_acc + P_ij V_j, summed according to the recipe."""
    if recipe.o_sums == "exact":
        return O_acc + P_ij @ V_j
    if recipe.o_sums == "13 bits":
        return sums.product(P_ij, V_j, start=O_acc).astype(O_acc.dtype, copy=False)
    return O_acc + sums.product(P_ij, V_j)  # the sum of each tile begins at 0


def output(O: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Return O in the recipe's format for it: eight bits with a scale for the tensor, 16 bits without."""
    if recipe.o is None:
        return O
    return rounded(O, recipe.o) if FORMATS[recipe.o].bits > 8 else quantised(O, recipe.o, share="tensor").X


def _in_format(X, format, **how):
    """Return X in a format, with its scales, which are 1 if the range suffices without; for None, X itself."""
    if format and FORMATS[format].bits == 8:
        return quantised(X, format, **how)
    return Quantised(rounded(X, format) if format else X, np.ones_like(X, shape=(1,) * X.ndim))


def _outputs(ready):
    """Return empty arrays for O and lse."""
    Q_q = ready.Q.X_q
    O = np.empty_like(Q_q, shape=Q_q.shape[:-1] + ready.V.X_q.shape[-1:])
    return O, np.empty_like(Q_q, shape=Q_q.shape[:-1])
