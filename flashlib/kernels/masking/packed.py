"""What each row of packed sequences sees, found where the offsets lie: nothing waits for the GPU."""

import functools

import torch
import triton
import triton.language as tl

from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import device_side, host_side
from flashlib.kernels.masking.device_side import MaskArgs, Masking, Variant

ROWS = 256  # for each program


MASKING = Masking(tl.constexpr(False), Variant(device_side.loaded, (), ()))  # what kernels are compiled for


def mask_args(cu_q: torch.Tensor, cu_k: torch.Tensor, causal: bool, asked: host_side.Asked) -> MaskArgs:
    """Return the mask's numbers for a pass; asked: as in `host_side.of`, with one batch that holds all sequences.

    cu_q, cu_k: (B + 1,), contiguous, of one integer dtype or two, on the device of `asked`.
    """
    own, other = (cu_k, cu_q) if asked.transposed else (cu_q, cu_k)
    T, T_other = (asked.N_k, asked.N_q) if asked.transposed else (asked.N_q, asked.N_k)
    first, end = (torch.empty(1, T, dtype=torch.int32, device=asked.device) for _ in range(2))
    if T:
        with on_device_of(first):
            _launch(T, T_other, len(own) - 1, causal, asked.transposed, *map(_kind, (own, other)))(
                first, end, own, other
            )
    found = host_side.intervals(first, end, asked)
    return MaskArgs(found.order, found.numbers)


def _kind(cu):
    """Return what compiled code depends on in a tensor: a Launch is for one kind of each."""
    return cu.dtype, cu.device, cu.data_ptr() % 16


@functools.lru_cache(maxsize=256)
def _launch(T, T_other, B, causal, transposed, *_kinds):
    sizes = B, T, T_other, B.bit_length() + 1
    constants = {"CAUSAL": causal, "TRANSPOSED": transposed, "ROWS": ROWS}
    return planning.Launch(_bounds, triton.cdiv(T, ROWS), sizes, constants, {"num_warps": 4})


@triton.jit
def _bounds(
    First_ptr, End_ptr, Own_ptr, Other_ptr, B, T, T_other, halvings,
    CAUSAL: tl.constexpr, TRANSPOSED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the first key that each row sees and the one after the last, or for each key the rows, if TRANSPOSED.

    Own: the offsets of these T tokens, Other: of what they see. Row r of a sequence of n_q rows and n_k keys sees,
    if causal, its keys up to r + n_k - n_q. No offset leads out of a tensor.
    """
    x = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    low = tl.zeros((ROWS,), tl.int32)  # the last sequence that begins at x or before it
    high = tl.zeros((ROWS,), tl.int32) + B
    for _ in range(halvings):
        middle = (low + high) // 2
        before = (tl.load(Own_ptr + middle) <= x) & (middle < B)
        low, high = tl.where(before, middle, low), tl.where(before, high, middle)
    own, own_end = tl.load(Own_ptr + low), tl.load(Own_ptr + low + 1)
    first, end = tl.load(Other_ptr + low), tl.load(Other_ptr + low + 1)
    if CAUSAL:
        longer = (end - first) - (own_end - own)  # by so many the other side exceeds this one
        if TRANSPOSED:
            first = tl.maximum(first, tl.minimum(first + (x - own) + longer, end))
        else:
            end = tl.minimum(end, first + (x - own) + longer + 1)
    first = tl.minimum(tl.maximum(first, 0), T_other)
    end = tl.minimum(tl.maximum(end, first), T_other)
    tl.store(First_ptr + x, first.to(tl.int32), mask=x < T)
    tl.store(End_ptr + x, end.to(tl.int32), mask=x < T)
