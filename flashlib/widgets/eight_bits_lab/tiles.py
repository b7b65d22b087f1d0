"""Passes over the keys of EightBitsLab: those of `lowbit.steps`, but tile by tile only where it matters.

Each line of `steps` is computed here for all tiles at once, since NumPy takes as long for one tile as for all.
Only m, l and O_acc are carried from step to step. The results are the same bit for bit, as the tests check.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flashlib import lowbit
from flashlib.lowbit import Recipe
from flashlib.lowbit.attention import added
from flashlib.widgets.eight_bits_lab.problem import COLS, ROWS

B_C = 128  # keys of a tile, as in the kernels


class TileSteps(NamedTuple):
    """The Steps of a row block, without O_acc."""

    S: np.ndarray  # (T_c, ROWS, B_C)
    P: np.ndarray  # (T_c, ROWS, B_C), times p_times, before it is rounded
    P_q: np.ndarray  # (T_c, ROWS, B_C), and after
    m: np.ndarray  # (T_c, ROWS)
    alpha: np.ndarray  # (T_c, ROWS)
    l: np.ndarray  # (ROWS,), at the end

    @property
    def in_O(self) -> np.ndarray:
        """The weight of each tile's terms in O, (T_c, ROWS): exp(its m - the last m) / l."""
        return np.exp(self.m - self.m[-1]) / self.l


class TilePass(NamedTuple):
    """TileSteps, and the sums of P V."""

    tiles: TileSteps
    O_acc: np.ndarray  # (T_c, ROWS, COLS), after each tile

    @property
    def output(self) -> np.ndarray:
        """O, (ROWS, COLS), in units of V's scale, without V's mean, and not rounded."""
        return self.O_acc[-1] / self.tiles.l[:, None]


def tiles(S: np.ndarray, recipe: Recipe) -> TileSteps:
    """Return the TileSteps of scores (ROWS, N)."""
    S = np.ascontiguousarray(np.swapaxes(S.reshape(ROWS, -1, B_C), 0, 1))
    m = np.maximum.accumulate(S.max(axis=-1))
    alpha = np.exp(np.concatenate([np.full_like(m, -np.inf, shape=(1, ROWS)), m[:-1]]) - m)
    P = np.exp(S - m[..., None]) * recipe.p_times
    P_q = P if recipe.p is None else lowbit.rounded(P, recipe.p)
    l = np.zeros_like(m[0])
    for alpha_j, sum_j in zip(alpha, (P if recipe.l_from == "exact" else P_q).sum(axis=-1), strict=True):
        l = alpha_j * l + sum_j
    return TileSteps(S, P, P_q, m, alpha, l)


def passed(passes: Sequence[TileSteps], values: Sequence[np.ndarray], recipe: Recipe) -> list[TilePass]:
    """Return a TilePass for each of several TileSteps with the sums of a recipe: together they hardly take longer.

    values: V of each, (N, COLS).
    """
    P = np.stack([one.P_q for one in passes], axis=1)  # (T_c, passes, ROWS, B_C)
    alpha = np.stack([one.alpha for one in passes], axis=1)[..., None]
    V = np.stack([one.reshape(-1, B_C, COLS) for one in values], axis=1)
    O_acc, after = np.zeros((len(passes), ROWS, COLS), np.float32), []
    for alpha_j, P_j, V_j in zip(alpha, P, V, strict=True):
        O_acc = added(alpha_j * O_acc, P_j, V_j, recipe)
        after.append(O_acc)
    return list(map(TilePass, passes, np.stack(after, axis=1)))
