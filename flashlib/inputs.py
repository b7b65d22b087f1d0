"""Checks of a function's arguments, with errors that say what was given and what is accepted."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from flashlib.types import Array

if TYPE_CHECKING:
    import torch

FLOATING = tuple(map(np.dtype, ("float16", "float32", "float64")))


def check_floating(**arrays: np.ndarray) -> None:
    """Raise TypeError unless every array is a NumPy array, all of one floating dtype."""
    first_name, first = next(iter(arrays.items()))
    for name, X in arrays.items():
        if not isinstance(X, np.ndarray) or isinstance(X, np.matrix | np.ma.MaskedArray):
            kind = type(X).__name__
            raise TypeError(f"{name} is of type {kind}; pass a plain NumPy array, e.g. np.array({name})")
        if X.dtype not in FLOATING:
            raise TypeError(
                f"{name} has dtype {X.dtype}; accepted are float16, float32 and float64, "
                f"e.g. {name}.astype('float32')"
            )
        if X.dtype != first.dtype:
            raise TypeError(
                f"{name} has dtype {X.dtype} and {first_name} has {first.dtype}; convert them to one dtype"
            )


def check_tensors(dtypes: tuple[torch.dtype, ...], **tensors: torch.Tensor) -> None:
    """Raise TypeError or ValueError unless all are torch tensors of one accepted dtype, on one device."""
    import torch  # only here: the NumPy half of the course runs without it

    first_name, first = next(iter(tensors.items()))
    for name, X in tensors.items():
        if not isinstance(X, torch.Tensor):
            kind = type(X).__name__
            raise TypeError(f"{name} is of type {kind}; pass a torch tensor, e.g. torch.as_tensor({name})")
        if X.is_nested:
            raise TypeError(
                f"{name} is a nested tensor; pass a dense one, e.g. {name}.to_padded_tensor(0.0), or sequences of "
                "several lengths one after the other to flashlib.kernels.varlen.attention"
            )
        if isinstance(X, torch.masked.MaskedTensor):
            raise TypeError(f"{name} is a masked tensor; pass a plain one, e.g. {name}.to_tensor(0.0), and a mask")
        if X.layout != torch.strided:
            raise TypeError(f"{name} has layout {X.layout}; pass a dense tensor, e.g. {name}.to_dense()")
        if X.dtype not in dtypes:
            raise TypeError(f"{name} has dtype {X.dtype}; accepted are {', '.join(map(str, dtypes))}")
        if X.dtype != first.dtype:
            raise TypeError(
                f"{name} has dtype {X.dtype} and {first_name} has {first.dtype}; convert them to one dtype"
            )
        if X.device != first.device:
            raise ValueError(
                f"{name} is on {X.device} and {first_name} on {first.device}; move them to one device"
            )


def check_shapes(Q: Array, K: Array, V: Array, axes: str, *, grouped: bool = False, values: bool = False) -> None:
    """Raise ValueError unless Q, K, V fit together, `axes` naming the axes of each, e.g. "(B, H, N, d)".

    grouped: whether Q may have more heads than K and V, a multiple of theirs. values: whether the last axis of V,
    d_v, may differ from that of K.
    """
    n_axes = axes.count(",") + 1
    for name, X in (("Q", Q), ("K", K), ("V", V)):
        if X.ndim != n_axes:
            raise ValueError(f"{name} has shape {tuple(X.shape)}; expected {n_axes} axes {axes}")
    if values and (tuple(V.shape[:-1]) != tuple(K.shape[:-1]) or V.shape[-1] == 0):
        raise ValueError(
            f"K has shape {tuple(K.shape)} and V {tuple(V.shape)}; they must be equal but for the last axis, "
            "which is at least 1"
        )
    if not values and tuple(V.shape) != tuple(K.shape):
        raise ValueError(f"K has shape {tuple(K.shape)} and V {tuple(V.shape)}; they must be equal")
    if grouped and Q.shape[0] == K.shape[0] and Q.shape[1] != K.shape[1]:
        H_q, H_k = Q.shape[1], K.shape[1]
        if H_k == 0 or H_q % H_k:
            raise ValueError(f"Q has {H_q} heads and K and V have {H_k}; H_q must be a multiple of H_k")
    elif tuple(Q.shape[:-2]) != tuple(K.shape[:-2]):
        raise ValueError(
            f"Q has shape {tuple(Q.shape)} and K {tuple(K.shape)}; all axes before the last two must be equal"
        )
    if Q.shape[-1] != K.shape[-1] or Q.shape[-1] == 0:
        raise ValueError(
            f"Q has shape {tuple(Q.shape)} and K {tuple(K.shape)}; the last axis, d, must be equal and at least 1"
        )


def check_gradient_inputs(
    Q: Array, O: Array | None, lse: Array, dO: Array, lse_dtype: np.dtype | torch.dtype, *, V: Array | None = None
) -> None:
    """Raise ValueError unless O and dO are (..., N_q, d_v), and lse (..., N_q), of dtype lse_dtype.

    V: if its last axis, d_v, may differ from that of Q; None: d_v is d, and O and dO have the shape of Q.
    O: None if it is not needed.
    """
    V = Q if V is None else V
    d_v = V.shape[-1]
    for name, X in (("O", O), ("dO", dO)):
        if X is None:
            continue
        if d_v == Q.shape[-1] and tuple(X.shape) != tuple(Q.shape):
            raise ValueError(f"{name} has shape {tuple(X.shape)} and Q {tuple(Q.shape)}; they must be equal")
        if tuple(X.shape) != (*Q.shape[:-1], d_v):
            raise ValueError(
                f"{name} has shape {tuple(X.shape)}, Q {tuple(Q.shape)} and V {tuple(V.shape)}; {name} must have "
                "the rows of Q and the last axis of V"
            )
    if tuple(lse.shape) != tuple(Q.shape[:-1]) or lse.dtype != lse_dtype:
        raise ValueError(
            f"lse has shape {tuple(lse.shape)} and dtype {lse.dtype}; expected {tuple(Q.shape[:-1])} and "
            f"{lse_dtype}: pass the lse that attention(Q, K, V) returned"
        )


def check_counts(*, at_least: int = 0, **counts: int) -> None:
    """Raise TypeError or ValueError unless every count is a whole number of `at_least` or more."""
    for name, count in counts.items():
        if type(count) is int and count >= at_least:  # nearly always; the rest takes longer
            continue
        if isinstance(count, bool) or not isinstance(count, Integral):
            raise TypeError(f"{name} is {count!r}; accepted are whole numbers of at least {at_least}")
        if count < at_least:
            raise ValueError(f"{name} is {count}; accepted are whole numbers of at least {at_least}")


def check_block_sizes(**sizes: int) -> None:
    """Raise TypeError or ValueError unless every block size is a whole number of at least 1."""
    check_counts(at_least=1, **sizes)


def check_causal(causal: bool) -> None:
    """Raise TypeError unless `causal` is True or False."""
    if not isinstance(causal, bool | np.bool_):
        raise TypeError(f"causal is {causal!r}; pass True or False")


SCALES = (1e-30, 1e30)  # beyond, products with a score leave the range of fp32


def resolve_scale(scale: float | None, d: int) -> float:
    """Return `scale` as a float, 1 / sqrt(d) for None; raise unless it is a positive number within SCALES."""
    if scale is None:
        return 1 / math.sqrt(d)
    if isinstance(scale, bool) or not isinstance(scale, float | Real):  # float first: the test for Real is slow
        raise TypeError(f"scale is {scale!r}; pass a positive number, or None for 1 / sqrt(d)")
    if not SCALES[0] <= scale <= SCALES[1]:  # false for nan too
        raise ValueError(
            f"scale is {scale}; pass a positive number from {SCALES[0]:g} to {SCALES[1]:g}, "
            "or None for 1 / sqrt(d)"
        )
    return float(scale)
