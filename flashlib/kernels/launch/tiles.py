"""What the attention kernels share: how tiles are loaded and stored.

A tile is some rows of one head of a tensor (B, H, N, d). It goes through a pointer to each element, or through a
tensor descriptor, with which one thread asks the TMA unit for all of it (Hopper and later).
"""

import triton
import triton.language as tl


@triton.jit
def strides(b, h, n, UNIT: tl.constexpr):
    """Return strides of batch, head and row in elements; they come in units that the compiler takes as aligned."""
    return b.to(tl.int64) * UNIT, h.to(tl.int64) * UNIT, n.to(tl.int64) * UNIT


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
def store(X_ptr, tile, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    """Store a tile (ROWS, D) to rows start to start + ROWS of head (b, h) of X, what is past N and d left out.

    Through pointers: it is done once, and a descriptor would take the CPU longer than the GPU gains.
    """
    ptrs, inside = _tile(X_ptr, strides, b, h, start, N, d, D, ROWS)
    tl.store(ptrs, tile.to(X_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _tile(X_ptr, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    """Return the pointers to a tile, (ROWS, D), and which of them lie inside."""
    offs, cols = start + tl.arange(0, ROWS), tl.arange(0, D)
    head = X_ptr + b.to(tl.int64) * strides[0] + h.to(tl.int64) * strides[1]
    ptrs = head + offs.to(tl.int64)[:, None] * strides[2] + cols[None, :]
    inside = (offs < N)[:, None]
    if d < D:
        inside &= (cols < d)[None, :]
    return ptrs, inside


@triton.jit
def add(
    X, tile, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add a tile to what `store` would replace, atomically: programs may add to one number at a time."""
    if DESCRIPTORS:
        X.atomic_add([b, h, start, 0], tile.to(X.dtype).reshape(1, 1, ROWS, D))
    else:
        ptrs, inside = _tile(X, strides, b, h, start, N, d, D, ROWS)
        tl.atomic_add(ptrs, tile.to(X.dtype.element_ty), mask=inside, sem="relaxed")
