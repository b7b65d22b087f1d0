"""Rotary embedding: position m rotates each pair of numbers in q and in k by an angle proportional to m.

Rotations by m and by n cancel except for their difference: (R_m q) . (R_n k) = q . (R_{n - m} k). So a score
depends on the distance between query and key, and a key that was rotated once stays valid in a cache, whatever
follows.

Source: Su and others, RoFormer (2021). Pairs are (x[k], x[k + d_rot / 2]), the halves of GPT-NeoX, and of
`rotate_half` in transformers; the paper pairs neighbours, (x[2k], x[2k + 1]), which is a different order of
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from flashlib.inputs import check_counts, check_floating, check_tensors
from flashlib.types import Array, Same

if TYPE_CHECKING:
    import torch


def angles(N: int, d: int, base: float = 10000.0, device: str | torch.device | None = None) -> tuple[Array, Array]:
    """Return cos and sin of m * base^(-2k / d), position m from 0 to N - 1, pair k from 0 to d / 2 - 1.

    cos, sin: (N, d / 2), fp32, rounded once from fp64: NumPy arrays, or torch tensors on `device` if one is given.
    d: even, the number of columns that are rotated. base: a positive number.
    Raises TypeError or ValueError for anything else.
    """
    check_counts(N=N)
    check_counts(at_least=2, d=d)
    if d % 2:
        raise ValueError(f"d is {d}; columns are rotated in pairs: pass an even number")
    if isinstance(base, bool) or not isinstance(base, Real) or not 0 < base < math.inf:
        raise ValueError(f"base is {base!r}; pass a positive number, as a rule 10000")
    turns = np.arange(N)[:, None] * float(base) ** (-2.0 / d * np.arange(d // 2))  # (N, d / 2)
    pair = np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)
    if device is None:
        return pair
    import torch

    return tuple(torch.from_numpy(X).to(device) for X in pair)


def rotate(X: Same, cos: Same, sin: Same) -> Same:
    """Return X with each row rotated by the angles of its position.

    X: (..., N, d), a NumPy array or a torch tensor of any floating dtype, which the result has too. cos, sin:
    (..., N, d_rot / 2), the rows of `angles` for the positions of X, e.g. cos[positions]; axes before the last two
    are broadcast to those of X. With d_rot < d the first d_rot columns are rotated and the others are unchanged.
    Computed in fp32, or in fp64 if X or cos is fp64. Raises TypeError or ValueError for anything else.
    """
    _check(X, cos, sin)
    columns = cos.shape[-1]
    joined: Callable
    cast: Callable
    if isinstance(X, np.ndarray):
        wide = np.result_type(X, cos, np.float32)
        joined, cast = np.concatenate, np.ndarray.astype
        first, second, rest = np.split(X, (columns, 2 * columns), -1)
    else:
        import torch  # already loaded, since X is a tensor

        wide = torch.promote_types(torch.promote_types(X.dtype, cos.dtype), torch.float32)
        joined, cast = torch.cat, torch.Tensor.to
        first, second, rest = X.split((columns, columns, X.shape[-1] - 2 * columns), -1)  # a single gradient
    first, second = cast(first, wide), cast(second, wide)
    left, right = first * cos - second * sin, second * cos + first * sin
    return joined([cast(left, X.dtype), cast(right, X.dtype), rest], -1)


def _check(X, cos, sin):
    """Raise TypeError or ValueError unless the arguments fit together."""
    if isinstance(X, np.ndarray):
        check_floating(X=X)
        check_floating(cos=cos, sin=sin)
    else:
        import torch

        floating = torch.float16, torch.bfloat16, torch.float32, torch.float64
        check_tensors(floating, X=X)
        check_tensors(floating, cos=cos, sin=sin)
        if cos.device != X.device:
            raise ValueError(f"cos is on {cos.device} and X on {X.device}; move them to one device")
    shapes = f"X has shape {tuple(X.shape)}, cos {tuple(cos.shape)} and sin {tuple(sin.shape)}"
    if X.ndim < 2 or cos.ndim < 2 or cos.shape != sin.shape:
        raise ValueError(f"{shapes}; pass X (..., N, d) and both of one shape (..., N, d_rot / 2)")
    if cos.shape[-2] != X.shape[-2]:
        raise ValueError(
            f"{shapes}; they have a row for each of the {X.shape[-2]} positions of X, e.g. cos[positions], or "
            "cos[:N] for the first"
        )
    if 2 * cos.shape[-1] > X.shape[-1]:
        raise ValueError(f"{shapes}; with d = {X.shape[-1]} they have at most {X.shape[-1] // 2} columns")
    before, of_X = cos.shape[:-2], X.shape[:-2]
    pairs = zip(reversed(before), reversed(of_X), strict=False)
    if len(before) > len(of_X) or any(n not in (1, n_X) for n, n_X in pairs):
        raise ValueError(f"{shapes}; the axes before the last two must be those of X, or 1, or left out")
