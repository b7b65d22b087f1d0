"""How the Hopper kernels are launched: which tensors they take, their tiles, grid and descriptors."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.inputs import resolve_scale
from flashlib.kernels.launch import planning, tile_sizes, which_gpu
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_attention,
    check_no_gradient,
    check_readable,
    on_device_of,
    resolve_out_dtype,
)
from flashlib.private_apis import gpu_stand_in, of_driver
from flashlib.types import Attention

if TYPE_CHECKING:
    from flashlib.kernels.hopper.instrumented import MarkedLauncher

ROWS = 64  # for each consumer: wgmma's
DTYPES = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}
HEAD_DIMS = (64, 128, 256)
TOGETHER = 2**25  # bytes of K and V, about what the L2 cache keeps of the heads in work at a time
LOG2_E = math.log2(math.e)
SHORT = 1024  # rows; up to this, blocks of 192 leave more idle than a third consumer gains; tried at 1024 and 2048
PORTABLE = "flashlib.kernels.forward.attention"


class HopperTileSizes(NamedTuple):
    """Keys of a tile, slots of each ring, and consumers of 64 rows each."""

    B_C: int
    STAGES: int
    CONSUMERS: int


# By d. At d = 64 exponentials are the limit, and a third consumer helps.
TILES = {64: HopperTileSizes(128, 4, 3), 128: HopperTileSizes(128, 2, 2), 256: HopperTileSizes(64, 2, 2)}
LAYOUTS = {
    (dtype, rows, d): gl.NVMMASharedLayout.get_default_for([1, 1, rows, d], element)
    for dtype, element in DTYPES.items()
    for rows in (64, 128)
    for d in HEAD_DIMS
} | {  # of O in fp32
    (torch.float32, ROWS, d): gl.NVMMASharedLayout.get_default_for([1, 1, ROWS, d], gl.float32)
    for d in HEAD_DIMS
    if d < 256
}


class HopperForwardPlan(NamedTuple):
    """A call, except its tensors and its scale. launch: None if O has no elements, or there are no keys."""

    launch: planning.Launch | None
    out_dtype: torch.dtype | None


PLANS = planning.Plans()


def attention(
    kernel: "JITFunction | MarkedLauncher", Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool,
    mask: object, scale: float | None, out_dtype: torch.dtype | None = None, **constants: int | None,
) -> Attention:  # fmt: skip
    """Do the same as `forward.attention`, with this kernel. constants: of the kernel, instead of those chosen."""
    Q, K, V = as_autocast(Q, K, V)
    plan = plan_of(kernel, Q, K, V, causal, mask, out_dtype, **constants)
    check_no_gradient(Q=Q, K=K, V=V)
    return run(Q, K, V, resolve_scale(scale, Q.shape[-1]), plan)


def run(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, scale: float, plan: HopperForwardPlan) -> Attention:
    """Do what `attention` does, by its plan; nothing is checked."""
    shape = Q.shape
    O, lse = Q.new_empty(shape, dtype=plan.out_dtype), Q.new_empty(shape[:3], dtype=torch.float32)
    if plan.launch is None:
        return Attention(O.zero_(), lse.fill_(-math.inf))
    scale_log2e = scale * LOG2_E
    above = 2.0 ** math.ceil(math.log2(scale_log2e))
    with on_device_of(Q):
        plan.launch(Q, K, V, O, lse, scale_log2e, above, stream=planning.stream_of(Q))
    return Attention(O, lse)


def plan_of(
    kernel: "JITFunction | MarkedLauncher", Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool,
    mask: object, out_dtype: torch.dtype | None = None, **constants: int | None,
) -> HopperForwardPlan:  # fmt: skip
    """Return the plan for these tensors; raise what `attention` raises, except about gradients."""
    asked = kernel.__name__, causal, out_dtype, *constants, *constants.values()
    key = PLANS.key((Q, K, V), *asked) if mask is None else None
    if found := PLANS.get(key):
        return found
    check(Q, K, V, causal, mask)
    dtype_of_O(out_dtype, Q)
    launch = _launch(kernel, Q, K, V, bool(causal), out_dtype, **constants)
    return PLANS.keep(key, HopperForwardPlan(launch, out_dtype))


def check(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: object,
    head_dims: tuple[int, ...] = HEAD_DIMS, portable: str = PORTABLE,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError for what the kernels do not take. portable: what the error recommends."""
    if not which_gpu.runs_gluon():
        raise ValueError(f"there is no GPU to run this kernel, which takes a Hopper GPU: call {portable}")
    if mask is not None:
        raise ValueError(f"mask is {mask!r}; this kernel takes only causal: call {portable}")
    check_attention(Q, K, V, causal, head_dims=range(1, 257), grouped=True, differentiable=True, values=True)
    check_readable(Q=Q, K=K, V=V)
    capability = which_gpu.capability(Q.device)
    if capability != (9, 0):
        found = f"compute capability {capability}" if capability > (0, 0) else "a maker other than NVIDIA"
        raise ValueError(f"Q is on a GPU of {found}, not Hopper's (9, 0): call {portable}")
    if Q.dtype not in DTYPES:
        raise ValueError(f"Q is {Q.dtype}; this kernel takes float16 and bfloat16: call {portable}")
    if Q.shape[-1] not in head_dims or V.shape[-1] != Q.shape[-1]:
        taken = f"{', '.join(map(str, head_dims[:-1]))} or {head_dims[-1]}"
        raise ValueError(
            f"d is {Q.shape[-1]} and d_v {V.shape[-1]}; this kernel takes {taken} for both: call {portable}"
        )
    for name, X in (("Q", Q), ("K", K), ("V", V)):
        if X.numel() and not describable(X):
            raise ValueError(
                f"{name} has strides {X.stride()} and starts {X.data_ptr() % 16} bytes past a multiple of 16; the "
                "copy unit takes a contiguous last axis and multiples of 16 bytes: "
                f"use {name}.contiguous(), or call {portable}"
            )


def dtype_of_O(out_dtype: torch.dtype | None, Q: torch.Tensor) -> torch.dtype:
    """Return the dtype of O; raise TypeError or ValueError for one that the kernel does not write."""
    found = resolve_out_dtype(out_dtype, Q.dtype)
    if found == torch.float32 and Q.shape[-1] == 256:
        raise ValueError(
            "out_dtype is torch.float32 and d 256; O is put where Q was, and in fp32 it does not fit there: "
            f"call {PORTABLE}"
        )
    return found


def suits(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, out_dtype: torch.dtype | None = None) -> bool:
    """Return whether the forward takes these tensors, which were checked, without a mask other than causal."""
    return not why_not(Q, K, V, out_dtype)


def why_not(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, out_dtype: torch.dtype | None = None) -> str:
    """Return why the forward does not take these tensors, which were checked; "" if it does."""
    d, d_v = Q.shape[-1], V.shape[-1]
    if not is_hopper(Q.device):
        return "the kernels do not run on a Hopper GPU"
    if Q.dtype not in DTYPES:
        return f"Q is {Q.dtype}, and the Hopper kernels take float16 and bfloat16"
    if d not in HEAD_DIMS or d_v != d:
        return f"d is {d} and d_v {d_v}, and the Hopper kernels take {', '.join(map(str, HEAD_DIMS))} for both"
    if d == 256 and out_dtype == torch.float32:
        return "O is in float32, and the Hopper kernel stores it up to d = 128"
    if not all(not X.numel() or describable(X) for X in (Q, K, V)):
        return "the copy unit cannot address these strides: see .contiguous()"
    return ""


def is_hopper(device: torch.device) -> bool:
    """Return whether kernels on this device are compiled for a Hopper GPU."""
    there = device.type == "cuda" or gpu_stand_in.stand_in() is not None
    return which_gpu.runs_gluon() and there and which_gpu.capability(device) == (9, 0)


def describable(X: torch.Tensor) -> bool:
    """Return whether the copy unit can address X, (B, H, N, d)."""
    *strides, last = X.stride()
    unit = 16 // X.element_size()
    aligned = all(n < 2 or stride > 0 and not stride % unit for stride, n in zip(strides, X.shape, strict=False))
    return aligned and last == 1 and X.data_ptr() % 16 == 0 and not X.is_neg()


def _launch(kernel, Q, K, V, causal, out_dtype, **instead):
    """Return the launch of a call; None if O has no elements, or there are no keys."""
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    if not Q.numel() or not N_k:
        return None
    tiles = tiles_of(d, N_q)
    B_R = ROWS * tiles.CONSUMERS
    T_r = -(-N_q // B_R)
    n_tiles = T_r * B * H
    sizes = H, H // H_k, N_q, N_k, T_r, section(B * H, N_k * d * Q.element_size() * 2 // (H // H_k)), n_tiles
    constants = {"B_R": B_R, "CONSUMERS": tiles.CONSUMERS, "STAGES": tiles.STAGES, "CAUSAL": causal}
    constants["TAU"] = None if d == 64 and N_k <= SHORT else 0  # in few tiles most warps have a new maximum
    constants["TURNS"] = not (d == 256 and causal)  # there 1.02 to 1.05 times as fast without
    constants |= instead
    grid = min(n_tiles, tile_sizes.room(Q.device).multiprocessors or n_tiles)  # a program computes several blocks
    O = torch.empty(Q.shape, dtype=out_dtype or Q.dtype, device="meta")
    describe = [describer(*X) for X in ((Q, ROWS), (K, tiles.B_C), (V, tiles.B_C), (O, ROWS))]
    return planning.Launch(kernel, grid, sizes, constants, {"num_warps": 4}, describe)


def tiles_of(d: int, N_q: int) -> HopperTileSizes:
    """Return the tiles for N_q rows of d numbers."""
    return TILES[d]._replace(CONSUMERS=2) if N_q <= SHORT else TILES[d]


def section(heads: int, size: int) -> int:
    """Return how many heads to work on at a time, a divisor: their K and V, `size` bytes each, stay in L2."""
    most = max(1, TOGETHER // size)
    return max(n for n in range(1, heads + 1) if heads % n == 0 and n <= most)


_Descriptor = of_driver.unchecked(TensorDescriptor)  # a plan has already made Triton's checks


def describer(X: torch.Tensor, rows: int) -> Callable[[torch.Tensor], TensorDescriptor]:
    """Return a function of tensors like X, (B, H, N, d), that returns their descriptor for tiles of `rows` rows.

    Axes of size 1 may have any stride.
    """
    strides = [stride if size > 1 else X.shape[3] for stride, size in zip(X.stride(), X.shape, strict=True)]
    strides[3] = 1
    return described_as(X.shape, strides, [1, 1, rows, X.shape[3]], LAYOUTS[X.dtype, rows, X.shape[3]])


def described_as(*fields: object) -> Callable[[torch.Tensor], TensorDescriptor]:
    """Return a function that returns the descriptor of a tensor with these fields, in Gluon's order."""
    return lambda X: _Descriptor(X, *fields)


def describe(X: torch.Tensor, rows: int) -> TensorDescriptor:
    """Return the descriptor of X, (B, H, N, d), for tiles of `rows` rows."""
    return describer(X, rows)(X)
