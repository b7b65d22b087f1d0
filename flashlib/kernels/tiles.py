"""What the attention kernels share: how tiles are loaded and stored, and how a launch is prepared.

A tile is some rows of one head of a tensor (B, H, N, d). It goes through a pointer to each element, or through a
tensor descriptor, with which one thread asks the TMA unit for all of it (Hopper and later).
"""

import contextlib

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from flashlib.kernels import INTERPRETED, check_kernel_blocks, check_powers_of_two
from flashlib.state import check_counts


def launch_options(B_r, B_c, num_warps, num_stages) -> dict:
    """Return what is not None, named as in a Config; raise TypeError or ValueError for what no kernel takes."""

    def given(**options):
        return {name: value for name, value in options.items() if value is not None}

    check_kernel_blocks(**given(B_r=B_r, B_c=B_c))
    check_powers_of_two(1, 16, **given(num_warps=num_warps))
    check_counts(at_least=1, **given(num_stages=num_stages))
    options = given(B_R=B_r, B_C=B_c, num_warps=num_warps, num_stages=num_stages)
    return {name: int(value) for name, value in options.items()}  # Triton takes no NumPy integer


@contextlib.contextmanager
def told_what_fits(config):
    """Say which options are too large where Triton says which resource."""
    try:
        yield
    except triton.OutOfResources as error:
        options = ", ".join(f"{name}={value}" for name, value in config.items())
        raise ValueError(
            f"{options} take {error.required} of {error.name}, and this GPU has {error.limit}: "
            "pass smaller B_r or B_c, or fewer num_stages"
        ) from None


def resolve_descriptors(descriptors, *tensors) -> bool:
    """Return whether to use descriptors: as asked, or where they pay; raise if asked for and impossible."""
    if descriptors is not None and not isinstance(descriptors, bool):
        raise TypeError(f"descriptors is {descriptors!r}; pass True or False, or None to choose")
    if any(X.numel() == 0 for X in tensors):  # nothing to load, and TMA describes no empty tensor
        return False
    possible = all(map(_describable, tensors))
    if descriptors is None:
        # not in fp32, where they spill registers
        return possible and tensors[0].dtype != torch.float32 and _has_tma(tensors[0].device)
    if descriptors and not possible:
        raise ValueError(
            "descriptors=True takes tensors that start at a multiple of 16 bytes and have rows and strides of "
            f"multiples of 16 bytes; given are the shapes {[tuple(X.shape) for X in tensors]} and strides "
            f"{[X.stride() for X in tensors]}: use .contiguous(), or pad d"
        )
    return descriptors


def describe(X, rows, D):
    """Return the descriptor of X for tiles of `rows` rows."""
    return TensorDescriptor(X, X.shape, X.stride(), [1, 1, rows, D])  # columns past d are read as 0, not stored


def _describable(X) -> bool:
    """Return whether TMA can address X, and a contiguous O: base, rows and strides are multiples of 16 bytes."""
    strides = [stride * X.element_size() for stride in (*X.stride()[:3], X.shape[-1])]
    return X.data_ptr() % 16 == 0 and all(s > 0 and s % 16 == 0 for s in strides)


def _has_tma(device) -> bool:
    return not INTERPRETED and torch.cuda.get_device_capability(device) >= (9, 0)


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
def store(
    X, tile, strides, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Store a tile (ROWS, D) to rows start to start + ROWS of head (b, h) of X, what is past N and d left out."""
    if DESCRIPTORS:
        X.store([b, h, start, 0], tile.to(X.dtype).reshape(1, 1, ROWS, D))
    else:
        ptrs, inside = _tile(X, strides, b, h, start, N, d, D, ROWS)
        tl.store(ptrs, tile.to(X.dtype.element_ty), mask=inside)


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
    """As `store`, but add the tile to what is there, atomically: programs may add to one number at a time."""
    if DESCRIPTORS:
        X.atomic_add([b, h, start, 0], tile.to(X.dtype).reshape(1, 1, ROWS, D))
    else:
        ptrs, inside = _tile(X, strides, b, h, start, N, d, D, ROWS)
        tl.atomic_add(ptrs, tile.to(X.dtype.element_ty), mask=inside, sem="relaxed")
