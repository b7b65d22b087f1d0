"""How the Hopper kernels are launched: which tensors they take, their tiles, grid and descriptors."""

import math
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
    """A launch, and for Q, K, V and O the rest of their descriptors."""

    launch: planning.Launch
    fields: tuple


PLANS = planning.Plans()


def attention(
    kernel: "JITFunction | MarkedLauncher", Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool,
    mask: object, scale: float | None, out_dtype: torch.dtype | None = None,
) -> Attention:  # fmt: skip
    """Do the same as `forward.attention`, with this kernel."""
    Q, K, V = as_autocast(Q, K, V)
    plan = plan_of(kernel, Q, K, V, causal, mask, out_dtype)
    check_no_gradient(Q=Q, K=K, V=V)
    scale_log2e = resolve_scale(scale, Q.shape[-1]) * math.log2(math.e)
    shape = Q.shape
    O, lse = Q.new_empty(shape, dtype=out_dtype), Q.new_empty(shape[:3], dtype=torch.float32)
    if plan is None:  # no rows, or no keys that they could see
        return Attention(O.zero_(), lse.fill_(-math.inf))
    above = 2.0 ** math.ceil(math.log2(scale_log2e))
    with on_device_of(Q):
        plan.launch(*map(described, (Q, K, V, O), plan.fields), lse, scale_log2e, above)
    return Attention(O, lse)


def plan_of(
    kernel: "JITFunction | MarkedLauncher", Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool,
    mask: object, out_dtype: torch.dtype | None = None,
) -> HopperForwardPlan | None:  # fmt: skip
    """Return the plan for these tensors, None if O has no elements or there are no keys; raise if refused."""
    key = PLANS.key((Q, K, V), kernel.__name__, causal, out_dtype) if mask is None else None
    if key is not None and key in PLANS:
        return PLANS[key]
    check(Q, K, V, causal, mask)
    dtype_of_O(out_dtype, Q)
    return PLANS.keep(key, _plan(kernel, Q, K, V, bool(causal), out_dtype))


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
    d = Q.shape[-1]
    if Q.dtype not in DTYPES or d not in HEAD_DIMS or V.shape[-1] != d:
        return False
    if d == 256 and out_dtype == torch.float32:
        return False
    return is_hopper(Q.device) and all(not X.numel() or describable(X) for X in (Q, K, V))


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


def _plan(kernel, Q, K, V, causal, out_dtype=None):
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    if not Q.numel() or not N_k:
        return None
    tiles = tiles_of(d, N_q)
    B_R = ROWS * tiles.CONSUMERS
    T_r = -(-N_q // B_R)
    n_tiles = T_r * B * H
    sizes = H, H // H_k, N_q, N_k, T_r, section(B * H, N_k * d * Q.element_size() * 2 // (H // H_k)), n_tiles
    constants = {"B_R": B_R, "CONSUMERS": tiles.CONSUMERS, "STAGES": tiles.STAGES, "CAUSAL": causal}
    grid = min(n_tiles, tile_sizes.room(Q.device).multiprocessors or n_tiles)  # a program computes several blocks
    O = torch.empty(Q.shape, dtype=out_dtype or Q.dtype, device="meta")
    rows = (Q, ROWS), (K, tiles.B_C), (V, tiles.B_C), (O, ROWS)
    launch = planning.Launch(kernel, grid, sizes, constants, {"num_warps": 4})
    return HopperForwardPlan(launch, tuple(descriptor_fields(*X) for X in rows))


def tiles_of(d: int, N_q: int) -> HopperTileSizes:
    """Return the tiles for N_q rows of d numbers."""
    return TILES[d]._replace(CONSUMERS=2) if N_q <= SHORT else TILES[d]


def section(heads: int, size: int) -> int:
    """Return how many heads to work on at a time, a divisor: their K and V, `size` bytes each, stay in L2."""
    most = max(1, TOGETHER // size)
    return max(n for n in range(1, heads + 1) if heads % n == 0 and n <= most)


_Descriptor = of_driver.unchecked(TensorDescriptor)  # a plan has already made Triton's checks


def descriptor_fields(X: torch.Tensor, rows: int) -> tuple:
    """Return the rest of the descriptor of X, (B, H, N, d), besides X; axes of size 1 may have any stride."""
    strides = [stride if size > 1 else X.shape[3] for stride, size in zip(X.stride(), X.shape, strict=True)]
    strides[3] = 1
    return X.shape, strides, [1, 1, rows, X.shape[3]], LAYOUTS[X.dtype, rows, X.shape[3]]


def described(X: torch.Tensor, fields: tuple | None) -> TensorDescriptor | torch.Tensor:
    """Return the descriptor of X with these `descriptor_fields`; X itself if they are None."""
    return X if fields is None else _Descriptor(X, *fields)


def describe(X: torch.Tensor, rows: int) -> TensorDescriptor:
    """Return the descriptor of X, (B, H, N, d), for tiles of `rows` rows."""
    return _Descriptor(X, *descriptor_fields(X, rows))
