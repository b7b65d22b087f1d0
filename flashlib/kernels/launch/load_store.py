"""What the attention kernels share: how tiles are loaded and stored.

A tile is some rows of one head of a tensor (B, H, N, d). It is loaded through a pointer to each element, or
through a tensor descriptor, with which one thread requests the whole tile from the TMA unit (Hopper and later).
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl


class HeadDims(NamedTuple):
    """d of Q and K and d_v of V, each also rounded up to a power of two, as a kernel takes them: constexprs."""

    d: tl.constexpr
    D: tl.constexpr
    d_v: tl.constexpr
    D_V: tl.constexpr

    @classmethod
    def of(cls, d: int, d_v: int) -> "HeadDims":
        """Return the HeadDims of two whole numbers; products take at least 16."""
        D, D_V = (max(16, triton.next_power_of_2(n)) for n in (d, d_v))
        return cls(*map(tl.constexpr, (d, D, d_v, D_V)))

    @property
    def widest(self) -> int:
        """The larger of D and D_V."""
        return max(self.D.value, self.D_V.value)


class Strides(NamedTuple):
    """Strides of batch, head and row, in elements."""

    b: Any
    h: Any
    n: Any


class Keys(NamedTuple):
    """A head of K and V that is streamed past rows: pointers or descriptors, strides, the head's number, rows."""

    K: Any
    V: Any
    strides_k: Strides
    strides_v: Strides
    h: Any
    N: Any


@triton.jit
def strides(b, h, n, UNIT: tl.constexpr):
    """Return Strides in elements; a kernel gets them in UNITs, so that the compiler knows they are aligned.

    A kernel takes each number separately: in a tuple Triton would specialize it, and compile anew for other sizes.
    """
    return Strides(b.to(tl.int64) * UNIT, h.to(tl.int64) * UNIT, n.to(tl.int64) * UNIT)


@triton.jit
def load(
    X, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, MASKED: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Return rows start to start + ROWS of head (b, h) of X, (ROWS, D); 0 past d and, if MASKED, past N."""
    if DESCRIPTORS:
        tile = X.load([b, h, start, 0]).reshape(ROWS, D)
    else:
        ptrs, inside = _tile(X, strides, b, h, start, N, d, D, ROWS)
        tile = tl.load(ptrs, mask=inside, other=0.0) if MASKED or d < D else tl.load(ptrs)
    return tile


@triton.jit
def load_k(
    keys, b, start, DIMS: tl.constexpr, ROWS: tl.constexpr, MASKED: tl.constexpr, DESCRIPTORS: tl.constexpr
):  # fmt: skip
    """Return a tile of K, (ROWS, D), see `load`."""
    return load(keys.K, keys.strides_k, b, keys.h, start, keys.N, DIMS.d, DIMS.D, ROWS, MASKED, DESCRIPTORS)


@triton.jit
def load_v(
    keys, b, start, DIMS: tl.constexpr, ROWS: tl.constexpr, MASKED: tl.constexpr, DESCRIPTORS: tl.constexpr
):  # fmt: skip
    """Return a tile of V, (ROWS, D_V), see `load`."""
    return load(keys.V, keys.strides_v, b, keys.h, start, keys.N, DIMS.d_v, DIMS.D_V, ROWS, MASKED, DESCRIPTORS)


@triton.jit
def store(X_ptr, tile, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    """Store a tile (ROWS, D) to rows start to start + ROWS of head (b, h) of X, except what is past N or d.

    Through pointers: this happens once, and a descriptor would cost the CPU more time than the GPU gains.
    """
    ptrs, inside = _tile(X_ptr, strides, b, h, start, N, d, D, ROWS)
    tl.store(ptrs, tile.to(X_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _tile(X_ptr, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    """Return the pointers to a tile, (ROWS, D), and which of them are inside."""
    offs, cols = start + tl.arange(0, ROWS), tl.arange(0, D)
    head = X_ptr + b.to(tl.int64) * strides.b + h.to(tl.int64) * strides.h
    ptrs = head + offs.to(tl.int64)[:, None] * strides.n + cols[None, :]
    inside = (offs < N)[:, None]
    if d < D:
        inside &= (cols < d)[None, :]
    return ptrs, inside


@triton.jit
def add(
    X, tile, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add a tile to the numbers that `store` would replace, atomically: programs may add to the same number."""
    if DESCRIPTORS:
        X.atomic_add([b, h, start, 0], tile.to(X.dtype).reshape(1, 1, ROWS, D))
    else:
        ptrs, inside = _tile(X, strides, b, h, start, N, d, D, ROWS)
        tl.atomic_add(ptrs, tile.to(X.dtype.element_ty), mask=inside, sem="relaxed")
