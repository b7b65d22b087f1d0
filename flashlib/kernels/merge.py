"""Merge O and lse for two sets of keys into those for both: the monoid of Online softmax as a kernel.

A ring merges after each hop. In plain torch that takes four passes over O; here it takes one: O and O_j are read
once, and O is written once, the last time in 16 bits too.
"""

import torch
import triton
import triton.language as tl

from flashlib.inputs import check_tensors
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import (
    DTYPES,
    check_device,
    check_no_gradient,
    check_readable,
    kernel_dtype,
    on_device_of,
    uncompiled,
)
from flashlib.kernels.launch.load_store import load, store, strides
from flashlib.kernels.launch.planning import Launch

ROWS = 16


@uncompiled
def merge(
    O: torch.Tensor, lse: torch.Tensor, O_j: torch.Tensor, lse_j: torch.Tensor, out: torch.Tensor | None = None
) -> None:
    """Merge O_j and lse_j into O and lse, in place: they become the output for both sets of keys.

    O, O_j: (B, H, N, d), fp32; lse, lse_j: (B, H, N), fp32; any strides, if the last axis of O, O_j and out is
    contiguous, so that parts of rows are merged in place. Rows that see none of a set's keys have lse = -inf for
    it. out: None, or (B, H, N, d), of any dtype of `forward.attention`: O is rounded and written there, and O
    itself is left undefined, as it is no longer needed.
    Raises TypeError or ValueError for anything else, before any work.
    Source: FlashAttention's rescaling of partial results; Milakov & Gimelshein (2018), for the sum.
    """
    if out is not None and isinstance(out, torch.Tensor) and kernel_dtype(out.dtype) != out.dtype:
        merge(O, lse, O_j, lse_j)  # the interpreter does not round to bf16 as a GPU does
        out.copy_(O)
        return
    key = PLANS.key((O, lse, O_j, lse_j, out))
    launch = PLANS.get(key) or PLANS.keep(key, _plan(O, lse, O_j, lse_j, out))
    check_no_gradient(O=O, lse=lse, O_j=O_j, lse_j=lse_j)
    if O.numel():
        with on_device_of(O):
            launch(O, lse, O_j, lse_j, O if out is None else out)


PLANS = planning.Plans()  # the Launch of each


def _plan(O, lse, O_j, lse_j, out):
    """Return the Launch of `merge`; raise what it raises, except about gradients."""
    tensors = {"O": O, "lse": lse, "O_j": O_j, "lse_j": lse_j}
    check_tensors((torch.float32,), **tensors)
    if out is not None:
        check_tensors(DTYPES, out=out)
        tensors["out"] = out
    check_device(**tensors)
    check_readable(**tensors)
    _check_shapes(O, tensors)
    (B, H, N, d), to = O.shape, O if out is None else out
    unit, of_tiles = planning.in_units(O, O_j, to)
    sizes = *of_tiles, *lse.stride(), *lse_j.stride(), H, N
    constants = {"d": d, "D": triton.next_power_of_2(d), "ROWS": ROWS, "UNIT": unit}
    return Launch(_merge, triton.cdiv(N, ROWS) * B * H, sizes, constants, {})


def _check_shapes(O, tensors):
    """Raise ValueError unless all have the shape of O, or its first three axes, and are on its device."""
    if O.ndim != 4:
        raise ValueError(f"O has shape {tuple(O.shape)}; expected 4 axes (B, H, N, d)")
    for name, X in tensors.items():
        expected = O.shape[:3] if name.startswith("lse") else O.shape
        if X.shape != expected:
            raise ValueError(
                f"{name} has shape {tuple(X.shape)} and O {tuple(O.shape)}; O_j and out have its shape, and "
                "lse and lse_j its first three axes"
            )
        if X.device != O.device:
            raise ValueError(f"{name} is on {X.device} and O on {O.device}; move them to one device")
        if X.ndim == 4 and X.stride(3) != 1 and X.shape[3] > 1:
            raise ValueError(f"{name} has strides {X.stride()}; its last axis must be contiguous")


@triton.jit(
    do_not_specialize=[
        "o_b", "o_h", "o_n", "oj_b", "oj_h", "oj_n", "to_b", "to_h", "to_n", "l_b", "l_h", "l_n", "lj_b", "lj_h",
        "lj_n", "H", "N",
    ]
)  # fmt: skip
def _merge(
    O, Lse, O_j, Lse_j, To, o_b, o_h, o_n, oj_b, oj_h, oj_n, to_b, to_h, to_n, l_b, l_h, l_n, lj_b, lj_h, lj_n,
    H, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    T = tl.cdiv(N, ROWS)
    i, b, h = tl.program_id(0) % T, tl.program_id(0) // T // H, tl.program_id(0) // T % H
    offs_m = i * ROWS + tl.arange(0, ROWS)
    at = strides(l_b, l_h, l_n, 1)
    at_j = strides(lj_b, lj_h, lj_n, 1)
    lse_ptrs = Lse + b * at.b + h * at.h + offs_m * at.n
    lse_j_ptrs = Lse_j + b * at_j.b + h * at_j.h + offs_m * at_j.n
    lse = tl.load(lse_ptrs, mask=offs_m < N, other=-float("inf"))
    lse_j = tl.load(lse_j_ptrs, mask=offs_m < N, other=-float("inf"))
    m = tl.maximum(lse, lse_j)
    shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
    l, l_j = tl.exp(lse - shift), tl.exp(lse_j - shift)
    total = l + l_j
    divisor = tl.where(total == 0.0, 1.0, total)
    start = i * ROWS
    o = load(O, strides(o_b, o_h, o_n, UNIT), b, h, start, N, d, D, ROWS, True, False)
    o_j = load(O_j, strides(oj_b, oj_h, oj_n, UNIT), b, h, start, N, d, D, ROWS, True, False)
    o = o * (l / divisor)[:, None] + o_j * (l_j / divisor)[:, None]
    store(To, o, strides(to_b, to_h, to_n, UNIT), b, h, start, N, d, D, ROWS)
    tl.store(lse_ptrs, m + tl.log(divisor), mask=offs_m < N)
