"""Errors of an eight-bit attention, and where they come from: each cause alone, compared with fp64."""

from typing import Any

import numpy as np

from flashlib import masks
from flashlib.inputs import check_floating
from flashlib.lowbit.attention import attention
from flashlib.lowbit.recipe import CAUSES, EXACT, Recipe, alone


def exact(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> np.ndarray:
    """Return O in fp64, with nothing rounded. Arguments: as in `attention`."""
    check_floating(Q=Q, K=K, V=V)
    Q, K, V = (X.astype(np.float64, copy=False) for X in (Q, K, V))
    return attention(Q, K, V, EXACT, causal=causal, mask=mask, scale=scale).O


def error(O: np.ndarray, O_exact: np.ndarray) -> float:
    """Return the root mean square of O - O_exact, relative to that of O_exact; 0 for equal arrays."""
    check_floating(O=O)
    check_floating(O_exact=O_exact)
    if O.shape != O_exact.shape:
        raise ValueError(f"O has shape {O.shape} and O_exact {O_exact.shape}; they must be equal")
    if not O.size or np.array_equal(O, O_exact):
        return 0.0
    difference = np.asarray(O, np.float64) - O_exact
    return float(np.sqrt((difference**2).mean() / (np.asarray(O_exact, np.float64) ** 2).mean()))


def by_cause(
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
    O_exact: np.ndarray | None = None,
) -> dict[str, float]:
    """Return {cause: the error of O if nothing else is rounded}, for each of CAUSES, and for "all" together.

    Squares of independent errors add up, so `sum(e**2)` over the causes is about the square of "all". O_exact: the
    result of `exact`; computed if None. The other arguments: as in `attention`.
    """
    options: dict[str, Any] = {"causal": causal, "mask": mask, "scale": scale}
    if O_exact is None:
        O_exact = exact(Q, K, V, **options)
    recipes = {cause: alone(recipe, cause) for cause in CAUSES} | {"all": recipe}
    options |= {"B_r": B_r, "B_c": B_c}
    return {name: error(attention(Q, K, V, one, **options).O, O_exact) for name, one in recipes.items()}
