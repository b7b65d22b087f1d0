"""The options that the functions of flash_attn have in common: checked, and converted for our kernels."""

import functools
from numbers import Integral, Real
from typing import Any, NamedTuple

import torch

from flashlib import masks
from flashlib.inputs import check_causal
from flashlib.kernels import varlen
from flashlib.kernels.launch.cache_layout import check_tensor

Results = torch.Tensor | tuple[torch.Tensor, ...]  # out, or a tuple of out and other requested results
LEAST_D = 16  # of our kernels


class Options(NamedTuple):
    """Options of a call. window: keys on either side, None for all; local: whether it has one; cap: None or c."""

    p: float
    scale: float
    causal: bool
    window: tuple[int | None, int | None]
    cap: float | None
    slopes: torch.Tensor | None
    deterministic: bool
    probabilities: bool

    @property
    def local(self) -> bool:
        return self.window != (None, None)

    @property
    def mask(self) -> masks.Mask | None:
        """The mask of window and soft cap, without causal."""
        return _mask(self.window, self.cap)


def options_of(
    q: torch.Tensor, dropout_p: Any, softmax_scale: Any, causal: Any, window_size: Any, softcap: Any,
    alibi_slopes: Any, deterministic: Any, return_attn_probs: Any,
) -> Options:  # fmt: skip
    """Return the options of a call; raise TypeError or ValueError for invalid ones. q: (..., d)."""
    if not isinstance(q, torch.Tensor) or not q.ndim:
        raise TypeError(f"q is of type {type(q).__name__}; pass a torch tensor")
    exact = torch.are_deterministic_algorithms_enabled()
    given = q.shape[-1], exact, dropout_p, causal, softcap, deterministic, return_attn_probs
    sides = window_size if type(window_size) is tuple else ()
    plain = len(sides) == 2 and type(sides[0]) is type(sides[1]) is int  # a tensor may change
    try:
        options = _known(*given, *sides) if plain else _checked(*given, window_size)  # a check takes 10 us
    except TypeError:  # not hashable, or wrong
        options = _checked(*given, window_size)
    if softmax_scale is None and alibi_slopes is None:
        return options
    scale = options.scale if softmax_scale is None else softmax_scale
    return options._replace(scale=scale, slopes=alibi_slopes)


def _checked(d, exact, dropout_p, causal, softcap, deterministic, return_attn_probs, *sides):
    check_causal(causal)
    varlen.check_dropout(dropout_p)
    check_bools(deterministic=deterministic, return_attn_probs=return_attn_probs)
    if isinstance(softcap, bool) or not isinstance(softcap, Real) or softcap != softcap:
        raise TypeError(f"softcap is {softcap!r}; pass a number, 0.0 for none")
    cap = float(softcap) if float(softcap) > 0 else None
    window = _window(sides if len(sides) == 2 else sides[0])
    return Options(dropout_p, d**-0.5, bool(causal), window, cap, None, deterministic or exact, return_attn_probs)


_known = functools.lru_cache(maxsize=256, typed=True)(_checked)


def check_bools(**values: Any) -> None:
    """Raise TypeError unless all of these are True or False."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}; pass True or False")


def check_slopes(slopes: torch.Tensor | None, B: int, H: int, q: torch.Tensor) -> None:
    """Raise TypeError or ValueError unless slopes are (H,) or (B, H) in float32, on the device of q."""
    if slopes is not None:
        of_each = isinstance(slopes, torch.Tensor) and slopes.ndim == 2
        shape = (B, H) if of_each else (H,)
        check_tensor("alibi_slopes", slopes, shape, "(nheads,) or (B, nheads)", torch.float32, q=q)


def _window(window_size) -> tuple[int | None, int | None]:
    """Return left and right, None for all. In flash_attn that is -1, and they may be tensors on the CPU."""
    try:
        left, right = window_size
    except (TypeError, ValueError):
        raise TypeError(f"window_size is {window_size!r}; pass (left, right), -1 for no bound") from None
    return _side("left", left), _side("right", right)


def _side(name, n):
    if isinstance(n, torch.Tensor) and n.ndim == 0 and n.dtype in (torch.int32, torch.int64):
        n = int(n)
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise TypeError(f"window_size has {n!r} on the {name}; pass a whole number, -1 for no bound")
    return None if n < 0 else int(n)


@functools.lru_cache(maxsize=256)  # plans are cached by mask: equal numbers must give the same mask
def _mask(window, cap):
    hide = None if window == (None, None) else masks.window(*window)
    if cap is None:
        return hide
    return masks.softcap(cap) if hide is None else masks.softcap(cap) & hide


def unpacked(name: str, X: torch.Tensor, n: int, axis: int, axes: str) -> tuple[torch.Tensor, ...]:
    """Return the n tensors of a packed one; raise TypeError or ValueError unless that axis has n entries."""
    if not isinstance(X, torch.Tensor) or X.ndim != axis + 3 or X.shape[axis] != n:
        given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
        raise ValueError(f"{name} is {given}; pass {axes}")
    return X.unbind(axis)


def widened(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return tensors whose last axis is long enough for the kernels; additional columns of 0 change no product."""
    if all(X.shape[-1] >= LEAST_D for X in tensors):
        return tensors
    return tuple(
        torch.nn.functional.pad(X, (0, LEAST_D - X.shape[-1])) if 0 < X.shape[-1] < LEAST_D else X for X in tensors
    )


def lse_of_package(lse: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp in flash_attn's convention: inf, not -inf, for a row that sees no key."""
    return torch.where(lse == -torch.inf, torch.inf, lse)


def seed_for(options: Options, q: torch.Tensor) -> torch.Tensor | None:
    """Return a seed for dropout from torch's generator of the device, without waiting for the GPU."""
    return torch.randint(2**62, (), device=q.device) if options.p else None
