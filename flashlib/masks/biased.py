"""Scores changed by the entries of a tensor: a learned bias by position, by distance, or by a function.

A score reads one entry of the tensor; its value does not decide which one. So the gradient of an entry is a sum
over the scores that read it, and no table of N x N numbers is needed, unless the tensor is one.

Source: Raffel and others, T5 (2020), section 2.1, "relative position embeddings"; PyTorch's FlexAttention (2024),
whose `score_mod` reads "captured buffers".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flashlib.masks.for_kernels import BiasLookup, DeviceChange
from flashlib.masks.kinds import checked_change, checked_kernel, count_arguments, like, named
from flashlib.masks.mask import Mask
from flashlib.masks.place import Place
from flashlib.types import Array, Same

FUNCTION = "S, h, r, c, t"
LOOKUP = "b, h, r, c"


class BiasChange(NamedTuple):
    """f(S, h, r, c, t) in place of S, its derivatives with respect to S and t; kernel: all three for kernels."""

    f: Callable
    slope: Callable
    by_bias: Callable
    kernel: tuple | None = None


class OfPlace:
    """A tensor that broadcasts to (B, H, N_q, N_k): a score reads the entry at its own index."""

    def __repr__(self):
        return "bias"

    def shape(self, X: Array) -> tuple[int, ...]:
        """Return the shape of a tensor with all four axes; raise ValueError if it has more."""
        if X.ndim > 4:
            raise ValueError(f"bias has shape {tuple(X.shape)}; pass one that broadcasts to (B, H, N_q, N_k)")
        return (1,) * (4 - X.ndim) + tuple(X.shape)

    def check(self, shape: tuple[int, ...], place: Place) -> None:
        """Raise ValueError unless a tensor of this shape fits these sizes."""
        for name, n, given in (("queries", shape[2], place.N_q), ("keys", shape[3], place.N_k)):
            if n not in (1, given):
                raise ValueError(
                    f"bias has {n} {name}, and there are {given}: pass a tensor that broadcasts to "
                    "(B, H, N_q, N_k)"
                )

    def index(self, place: Place, r: Same, c: Same, shape: tuple[int, ...]) -> tuple:
        """Return which entries scores at these positions read, an index for each axis."""
        at = place.b, place.h, r - place.past, c
        return tuple(0 if n == 1 else x for x, n in zip(at, shape, strict=True))

    def on_device(self, place: Place) -> tuple[str, int]:
        """Return the name of the kernels' function that finds the entry, and the number that it takes."""
        return "of_place", place.past


class OfDistance:
    """A number for each distance r - c, from 1 - N_q to N_k - 1, for all heads, (n,), or for each, (H, n)."""

    def __repr__(self):
        return "distance_bias"

    def shape(self, X: Array) -> tuple[int, ...]:
        if X.ndim not in (1, 2):
            raise ValueError(
                f"bias has shape {tuple(X.shape)}; pass (N_q + N_k - 1,), or (H, N_q + N_k - 1): a number for "
                "each distance"
            )
        return (1,) * (2 - X.ndim) + tuple(X.shape)

    def check(self, shape: tuple[int, ...], place: Place) -> None:
        expected = max(place.N_q + place.N_k - 1, 0)
        if shape[1] != expected:
            raise ValueError(
                f"bias has {shape[1]} distances, and {place.N_q} queries and {place.N_k} keys have {expected}, "
                f"from {1 - place.N_q} to {place.N_k - 1}: pass a number for each"
            )

    def index(self, place: Place, r: Same, c: Same, shape: tuple[int, ...]) -> tuple:
        return 0 if shape[0] == 1 else place.h, r - c + (place.N_q - 1)

    def on_device(self, place: Place) -> tuple[str, int]:
        return "of_distance", place.N_q - 1


class OfFunction:
    """The entry that a function selects: at(b, h, r, c), an index for each axis. kernel: its @triton.jit form."""

    def __init__(self, at: Callable, kernel: Callable | None) -> None:
        count_arguments(at, (4,), LOOKUP)
        self.at, self.kernel = at, kernel

    def __repr__(self):
        return named(self.at)

    def shape(self, X: Array) -> tuple[int, ...]:
        if not X.ndim:
            raise ValueError("bias is a single number; pass a tensor with an axis, e.g. bias[None], and at = 0")
        return tuple(X.shape)

    def check(self, shape: tuple[int, ...], place: Place) -> None:
        pass  # not known before the function is called

    def index(self, place: Place, r: Same, c: Same, shape: tuple[int, ...]) -> tuple:
        found = self.at(place.b, place.h, r, c)
        index = found if isinstance(found, tuple) else (found,)
        if len(index) != len(shape):
            raise ValueError(
                f"the function of the bias returned {len(index)} indices, and bias has the shape {shape}: return "
                "one for each axis"
            )
        for k, (x, n) in enumerate(zip(index, shape, strict=True)):
            self._check(k, x, n)
        return index

    def on_device(self, place: Place) -> tuple[Callable | None, None]:
        return self.kernel, None

    def _check(self, k, x, n):
        """Raise TypeError or ValueError unless x is whole numbers from 0 to n - 1."""
        kind = str(getattr(x, "dtype", type(x).__name__)).removeprefix("torch.")
        if not kind.startswith(("int", "uint")):
            raise TypeError(f"the function of the bias returned {kind}; it must return whole numbers: indices")
        if isinstance(x, int):
            low, high = x, x
        elif 0 in x.shape:
            return
        else:
            low, high = int(x.min()), int(x.max())
        if low < 0 or high >= n:
            raise ValueError(
                f"the function of the bias returned {low if low < 0 else high} for axis {k}, which has {n} "
                "entries: return numbers from 0 on, e.g. clipped"
            )


class Biased(Mask):
    """All scores are seen, and changed by entries of `bias`, an array or a torch tensor: see `masks.score`.

    at: OfPlace, OfDistance or OfFunction. change: None for S + t.
    """

    changes_scores = biased = True

    def __init__(self, bias: Any, at: OfPlace | OfDistance | OfFunction, change: BiasChange | None = None) -> None:
        bias = _checked_bias(bias)
        self.biases, self.at, self.change = (bias,), at, change
        self.shape = at.shape(bias)
        if isinstance(at, OfPlace):
            self.batches, self.heads = (n if n > 1 else None for n in self.shape[:2])
        elif isinstance(at, OfDistance):
            self.heads = self.shape[0] if self.shape[0] > 1 else None

    def __repr__(self):
        return f"{self.at!r}(<{tuple(self.biases[0].shape)}>)"

    @property
    def known_by(self) -> tuple | None:
        return None if self.change or isinstance(self.at, OfFunction) else (type(self.at), self.shape)

    def check(self, place: Place) -> None:
        self.at.check(self.shape, place)

    def device_change(self, place: Place, H: int) -> DeviceChange:
        at, own = self.at.on_device(place)
        functions = ("plus", "alike", "alike") if self.change is None else self.change.kernel
        if at is None or functions is None:
            raise ValueError(
                "the score function that reads a tensor has no kernel: pass @triton.jit functions as kernel=, at "
                "to masks.bias, or (f, slope, by_bias, at) to masks.score"
            )
        f, slope, by_bias = functions
        by_row = isinstance(self.at, OfPlace) and self.shape[2] > 1
        lookup = BiasLookup(at, own, self.biases[0], self.shape, by_bias, by_row, place, self.at.index)
        return DeviceChange(f, slope, lookup=lookup)

    def score(self, S: Same, place: Place, r: Same, c: Same) -> Same:
        t = self._read(S, place, r, c)
        if self.change is None:
            return S + t
        return checked_change("function of the score", self.change.f(S, place.h, r, c, t), S)

    def slope(self, S: Same, place: Place, r: Same, c: Same) -> Same | float | None:
        if self.change is None:
            return None
        found = self.change.slope(S, place.h, r, c, self._read(S, place, r, c))
        return checked_change("slope of the score", found, S, (int, float))

    def bias_terms(self, S: Same, place: Place, r: Same, c: Same) -> tuple:
        index = self.at.index(place, r, c, self.shape)
        if self.change is None:
            return ((index, 1.0),)
        found = self.change.by_bias(S, place.h, r, c, self._read(S, place, r, c))
        return ((index, checked_change("derivative by the bias", found, S, (int, float))),)

    def _read(self, S, place, r, c):
        """Return the entries that these scores read, in the dtype of S."""
        bias = _in_kind_of(S, self.biases[0]).reshape(self.shape)
        entries = bias[self.at.index(place, r, c, self.shape)]
        return entries.astype(S.dtype) if isinstance(S, np.ndarray) else entries.to(S.dtype)


def change_of(f: Callable, slope: Callable, by_bias: Callable | None, kernel: Any) -> tuple[BiasChange, Any]:
    """Return a BiasChange and the kernel of `at`; raise TypeError for functions of other arguments."""
    if by_bias is None:
        raise TypeError("by_bias is None; pass the derivative of f by the entry t, of (S, h, r, c, t)")
    for g in (f, slope, by_bias):
        count_arguments(g, (5,), FUNCTION)
    if kernel is None:
        return BiasChange(f, slope, by_bias), None
    if not isinstance(kernel, tuple | list) or len(kernel) not in (3, 4):
        raise TypeError(
            f"kernel is {kernel!r}; pass @triton.jit functions, (f, slope, by_bias), and at as the fourth if it "
            "is given"
        )
    for of in kernel[:3]:
        checked_kernel(of, FUNCTION)
    return BiasChange(f, slope, by_bias, tuple(kernel[:3])), (*kernel, None)[3]


def lookup(at: Callable | None, kernel: Callable | None) -> OfPlace | OfFunction:
    """Return how entries are found; raise TypeError for functions of other arguments."""
    if kernel is not None:
        checked_kernel(kernel, LOOKUP)
    if at is None:
        if kernel is not None:
            raise TypeError("a kernel for at is given, and at is None; pass both, or neither")
        return OfPlace()
    return OfFunction(at, kernel)


def _checked_bias(bias):
    """Return an array or tensor itself, so that later changes take effect; raise TypeError for anything else."""
    if not hasattr(bias, "detach"):
        try:
            bias = np.asarray(bias)
        except (TypeError, ValueError) as error:
            raise TypeError(f"bias is {bias!r:.60}; pass an array or a tensor of floats: {error}") from None
        floating = bias.dtype.kind == "f"
    else:
        floating = bias.is_floating_point()
    if not floating:
        raise TypeError(f"bias has dtype {bias.dtype}; pass floating-point numbers, e.g. in float32")
    return bias


def _in_kind_of(S, bias):
    """Return a bias in the library of S; raise TypeError for a tensor if NumPy computes."""
    if isinstance(bias, np.ndarray):
        return like(bias, S)
    if isinstance(S, np.ndarray):
        check_of_numpy((bias,))
    if bias.device != S.device:
        raise ValueError(f"bias is on {bias.device} and the scores on {S.device}; move them to one device")
    return bias


def check_of_numpy(biases: tuple) -> None:
    """Raise TypeError unless all biases are arrays."""
    if any(not isinstance(bias, np.ndarray) for bias in biases):
        raise TypeError("bias is a torch tensor, and NumPy computes: pass bias.detach().cpu().numpy()")
