"""How the Hopper backward is launched: what it takes, its tiles and parts, and the kernels of a call."""

import math
from typing import NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon import language as gl

from flashlib.inputs import resolve_scale
from flashlib.kernels import backward as portable
from flashlib.kernels.hopper import groups, launch
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import (
    check_no_gradient,
    check_readable,
    kernel_input,
    on_device_of,
    resolve_out_dtype,
)
from flashlib.types import Grads

PORTABLE = "flashlib.kernels.backward.backward"
KEYS = 64  # for each of two consumers
ROWS = {64: 128, 128: 64}  # of a tile of Q and dO, by d: a consumer computes 64 x 64 numbers of dQ
HEAD_DIMS = *ROWS, 256  # for which `launch_256` has two passes
LAG = 2  # multiprocessors' worth of programs, from those that add to sums of dQ to those that write dQ
SEEN = 1024  # keys that a row sees on average: with fewer the portable passes are faster, tried on an H100
NUMBERS = gl.NVMMASharedLayout(0, 32, 2)  # of a tile of lse or delta
LINES = gl.NVMMASharedLayout(128, 32, 2)  # of half a tile of sums


class HopperBackwardPlan(NamedTuple):
    """A call, except its tensors and its scale.

    add: of dK and dV of the parts of a group; None if each group is whole. partial: the shape of dK of the parts.
    rows: the shape of lse2 and delta. sums: how many sums of dQ exist at a time. counts: of programs. fields: the
    rest of the descriptors of Q, K, V, dO, lse2, delta, dK, dV and the sums; None for a pointer. ready: whether
    the kernels take O and dO as they are.
    """

    prepare: planning.Launch
    main: planning.Launch
    finish: planning.Launch
    add: planning.Launch | None
    partial: tuple
    rows: tuple
    sums: int
    counts: int
    fields: tuple
    ready: bool


PLANS = planning.Plans()


def backward(
    main: JITFunction, finish: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor,
    O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor, dlse: torch.Tensor | None, causal: bool,
    mask: object, scale: float | None, delta: torch.Tensor | None, out_dtype: torch.dtype | None,
) -> Grads:  # fmt: skip
    """Do the same as `backward.backward`, with these kernels."""
    plan = plan_of(main, finish, Q, K, V, O, lse, dO, dlse, delta, causal, mask, out_dtype)
    check_no_gradient(Q=Q, K=K, V=V)
    scale = resolve_scale(scale, Q.shape[-1])
    contiguous: dict = {"memory_format": torch.contiguous_format, "dtype": out_dtype or Q.dtype}
    if plan is None:  # no rows, or no keys that they could see
        return Grads(*(torch.zeros_like(X, **contiguous) for X in (Q, K, V)))
    O, dO, summed = (dO if O is None else O, dO, dO) if plan.ready else of_rows(O, dO)
    dQ, dK, dV = (torch.empty_like(X, **contiguous) for X in (Q, K, V))
    with on_device_of(Q):
        stream = planning.stream_of(Q)
        lse2, delta = portable.prepared(plan.prepare, O, summed, lse, dlse, plan.rows, delta, stream)
        sums = torch.zeros(plan.sums + plan.counts, dtype=torch.float32, device=Q.device)
        counts = sums[plan.sums :].view(torch.int32)
        partial = [K.new_empty(plan.partial, dtype=torch.float32) for _ in "KV"] if plan.add else (dK, dV)
        tensors = Q, K, V, dO, lse2, delta, *partial, sums
        descs = list(map(launch.described, tensors, plan.fields))
        plan.main(*descs, sums, dQ, counts, scale * math.log2(math.e), scale, stream=stream)
        plan.finish(descs[-1], dQ, scale, stream=stream)
        if plan.add:
            plan.add(*partial, dK, dV, stream=stream)
    return Grads(dQ, dK, dV)


def of_rows(O: torch.Tensor | None, dO: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return O, dO, and a second dO for the kernel in Triton that sums dO * O, which may be interpreted.

    O is None if delta is given: it is not read then.
    """
    dO = dO if launch.describable(dO) else dO.contiguous()  # the dO of a sum has strides of 0
    summed = kernel_input(dO)
    return summed if O is None else kernel_input(O), dO, summed


def numbers(shape: tuple[int, int, int], B_R: int) -> tuple:
    """Return the rest of the descriptor of lse2 or delta, (B, H, N), for tiles of B_R rows."""
    B, H, N = shape
    return [B * H, N], [N, 1], [1, B_R], NUMBERS


def plan_of(
    main: JITFunction, finish: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor,
    O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor, dlse: torch.Tensor | None,
    delta: torch.Tensor | None, causal: bool, mask: object, out_dtype: torch.dtype | None,
) -> HopperBackwardPlan | None:  # fmt: skip
    """Return the plan for these tensors, None if there is nothing to sum; raise if refused."""
    tensors = Q, K, V, O, lse, dO, dlse, delta
    key = PLANS.key(tensors, main.__name__, causal, out_dtype) if mask is None else None
    if key is not None and key in PLANS:
        return PLANS[key]
    check(Q, K, V, O, lse, dO, dlse, causal, mask, delta, HEAD_DIMS)
    wide = resolve_out_dtype(out_dtype, Q.dtype) == torch.float32
    return PLANS.keep(key, _plan(main, finish, Q, K, V, O, dO, bool(causal), wide))


def check(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, mask: object, delta: torch.Tensor | None = None,
    head_dims: tuple[int, ...] = tuple(ROWS),
) -> None:  # fmt: skip
    """Raise TypeError or ValueError for what the kernel does not take; the error names a module that does."""
    launch.check(Q, K, V, causal, mask, head_dims=head_dims, portable=PORTABLE)
    portable.check_saved(Q, V, O, dO, lse, dlse, delta)
    check_readable(O=O, lse=lse, dO=dO, dlse=dlse, delta=delta)


def suits(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> bool:
    """Return whether the kernel takes these tensors and is faster than the portable passes."""
    N_q, N_k, d = Q.shape[2], K.shape[2], Q.shape[-1]
    if d not in HEAD_DIMS or (N_k - min(N_q, N_k) / 2 if causal else N_k) < SEEN:
        return False
    return launch.suits(Q, K, V)


def turns(T_c: int, multiprocessors: int) -> tuple[int, int]:
    """Return lag and ring of `sums`, in units of T_c programs.

    A multiprocessor runs one program at a time: a program that began LAG times as many programs ago has most
    likely ended. With a larger LAG, sums would outgrow the L2 cache; 1.25 to 2 make no difference, tried on an
    H200.
    """
    lag = max(1, -(-int(LAG * multiprocessors) // T_c))
    return lag, 2 * lag


def last_in_turns(T_c: int, units: int, lag: int, ring: int, multiprocessors: int) -> int:
    """Return how many units `sums.unit_of` mixes at the end: as many as fill the GPU.

    At most `lag`, and `ring - lag`: else a program would wait in `sums` for a later one.
    """
    return max(1, min(units, lag, ring - lag, multiprocessors // T_c))


def _plan(main, finish, Q, K, V, O, dO, causal, wide):
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    if not Q.numel() or not N_k:
        return None
    B_R = ROWS[d]
    T_r, T_c = -(-N_q // B_R), -(-N_k // (2 * KEYS))
    problem = portable.BackwardInputs.of(Q, K, causal, False)
    multiprocessors = tile_sizes.room(Q.device).multiprocessors
    parts = groups.parts_of(H // H_k, d)
    heads, units = H // H_k // parts, B * H_k * parts
    lag, ring = turns(T_c, multiprocessors)
    mixed = last_in_turns(T_c, units, lag, ring, multiprocessors)
    sizes = H_k * parts, heads, N_q, N_k, T_r, T_c, lag, ring
    wide = wide or parts > 1
    constants, tiles, last = {"B_R": B_R, "D": d, "CAUSAL": causal, "WIDE": wide}, heads * T_r, min(lag, units)
    sums = min(ring, units) * tiles * B_R * d
    o, do, summed = of_rows(O, dO)
    dK, dV = (torch.empty(X.shape, dtype=X.dtype, device="meta") for X in (K, V))
    rows = B, H, problem.N_padded
    fields = [launch.descriptor_fields(*X) for X in ((Q, B_R), (K, KEYS), (V, KEYS), (do, B_R))]
    fields += *[numbers(rows, B_R)] * 2, *(None if wide else launch.descriptor_fields(X, KEYS) for X in (dK, dV))
    fields.append(([sums // 32, 32], [32, 1], [128, 32], LINES))
    return HopperBackwardPlan(
        portable.prepare_launch(o, summed, problem),
        planning.Launch(main, T_c * units, (*sizes, mixed, parts), constants, {"num_warps": 4}),
        planning.Launch(finish, 2 * last * tiles, (*sizes[:-2], ring, units - last), {"D": d}, {"num_warps": 2}),
        groups.add_launch(B * H_k, parts, N_k * d) if parts > 1 else None,
        (B, H_k, parts, N_k, d),
        rows,
        sums,
        2 * units,
        tuple(fields),
        summed is do is dO and (O is None or o is O),
    )
