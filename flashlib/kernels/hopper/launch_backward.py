"""How the Hopper backward is launched: what it takes, its tiles and parts, and the kernels of a call."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from triton import JITFunction
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.kernels import backward as portable
from flashlib.kernels.hopper import groups, launch
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import (
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
# Keys that a row sees on average, by d: with fewer the portable passes are faster; see `bench.choice`.
SEEN = {64: 128, 128: 32, 256: 32}
NUMBERS = gl.NVMMASharedLayout(0, 32, 2)  # of a tile of lse or delta
LINES = gl.NVMMASharedLayout(128, 32, 2)  # of half a tile of sums


class HopperBackwardPlan(NamedTuple):
    """A call, except its tensors and its scale.

    prepare: None if there is nothing to sum. add: of dK and dV of the parts of a group; None if each group is
    whole. partial: the shape of dK of the parts. rows: the shape of lse2 and delta. sums: how many sums of dQ
    exist at a time. counts: of programs. ready: whether the kernels take O and dO as they are. out_dtype: of the
    gradients. alike: whether they have the strides of Q, K and V.
    """

    prepare: planning.Launch | None = None
    main: Any = None  # a Launch, like finish, wherever prepare is one
    finish: Any = None
    add: planning.Launch | None = None
    partial: tuple = ()
    rows: tuple = ()
    sums: int = 0
    counts: int = 0
    ready: bool = False
    out_dtype: torch.dtype | None = None
    alike: bool = False


PLANS = planning.Plans()


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, scale: float, plan: HopperBackwardPlan, delta: torch.Tensor | None = None,
) -> Grads:  # fmt: skip
    """Do what `backward.backward` does, by its plan; nothing is checked."""
    if plan.prepare is None:
        return zeros(Q, K, V, plan.out_dtype)
    O, dO, summed = (dO if O is None else O, dO, dO) if plan.ready else of_rows(O, dO)
    dQ, dK, dV = outputs(Q, K, V, plan)
    with on_device_of(Q):
        stream = planning.stream_of(Q)
        lse2, delta = portable.prepared(plan.prepare, O, summed, lse, dlse, plan.rows, delta, stream)
        sums = torch.zeros(plan.sums + plan.counts, dtype=torch.float32, device=Q.device)
        counts = sums[plan.sums :].view(torch.int32)
        partial = [K.new_empty(plan.partial, dtype=torch.float32) for _ in "KV"] if plan.add else (dK, dV)
        scales = scale * launch.LOG2_E, scale
        plan.main(Q, K, V, dO, lse2, delta, *partial, sums, sums, dQ, counts, *scales, stream=stream)
        plan.finish(sums, dQ, scale, stream=stream)
        if plan.add:
            plan.add(*partial, dK, dV, stream=stream)
    return Grads(dQ, dK, dV)


def zeros(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, out_dtype: torch.dtype | None) -> Grads:
    """Return gradients of 0, for no rows, or no keys that they could see."""
    return Grads(*(torch.zeros(X.shape, dtype=out_dtype or X.dtype, device=X.device) for X in (Q, K, V)))


def outputs(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, plan: Any) -> tuple[torch.Tensor, ...]:
    """Return memory for dQ, dK and dV."""
    if plan.alike:  # sooner, for the CPU
        return torch.empty_like(Q), torch.empty_like(K), torch.empty_like(V)
    return tuple(X.new_empty(X.shape, dtype=plan.out_dtype) for X in (Q, K, V))


def of_rows(O: torch.Tensor | None, dO: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return O, dO, and a second dO for the kernel in Triton that sums dO * O, which may be interpreted.

    O is None if delta is given: it is not read then.
    """
    dO = dO if launch.describable(dO) else dO.contiguous()  # the dO of a sum has strides of 0
    summed = kernel_input(dO)
    return summed if O is None else kernel_input(O), dO, summed


def numbers(shape: tuple[int, int, int], B_R: int) -> Callable[[torch.Tensor], TensorDescriptor]:
    """Return a function that returns the descriptor of lse2 or delta, (B, H, N), for tiles of B_R rows."""
    B, H, N = shape
    return launch.described_as([B * H, N], [N, 1], [1, B_R], NUMBERS)


def plan_of(
    main: JITFunction, finish: JITFunction, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor,
    O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor, dlse: torch.Tensor | None,
    delta: torch.Tensor | None, causal: bool, mask: object, out_dtype: torch.dtype | None,
) -> HopperBackwardPlan:  # fmt: skip
    """Return the plan for these tensors; raise what `backward.backward` raises, except about gradients."""
    tensors = Q, K, V, O, lse, dO, dlse, delta
    key = PLANS.key(tensors, main.__name__, causal, out_dtype) if mask is None else None
    if found := PLANS.get(key):
        return found
    check(Q, K, V, O, lse, dO, dlse, causal, mask, delta, HEAD_DIMS)
    wide = resolve_out_dtype(out_dtype, Q.dtype) == torch.float32
    plan = _plan(main, finish, Q, K, V, O, dO, bool(causal), wide)
    return PLANS.keep(key, plan._replace(out_dtype=out_dtype, alike=are_alike(Q, K, V, out_dtype)))


def are_alike(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, out_dtype: torch.dtype | None) -> bool:
    """Return whether gradients have the dtype and the strides of Q, K and V."""
    return out_dtype in (None, Q.dtype) and planning.have_plain_strides(Q, K, V)


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
    return not why_not(Q, K, V, causal)


def why_not(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> str:
    """Return why the kernel does not take these tensors, or is not faster; "" if it does and is."""
    N_q, N_k = Q.shape[2], K.shape[2]
    if reason := launch.why_not(Q, K, V):
        return reason
    seen, least = N_k - min(N_q, N_k) / 2 if causal else N_k, SEEN[Q.shape[-1]]
    if seen < least:
        return f"a row sees {seen:g} keys on average, and with fewer than {least} the portable passes are faster"
    return ""


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
        return HopperBackwardPlan()
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
    lines = launch.described_as([sums // 32, 32], [32, 1], [128, 32], LINES)
    describe = [launch.describer(*X) for X in ((Q, B_R), (K, KEYS), (V, KEYS), (do, B_R))]
    describe += *[numbers(rows, B_R)] * 2, *(None if wide else launch.describer(X, KEYS) for X in (dK, dV)), lines
    return HopperBackwardPlan(
        portable.prepare_launch(o, summed, problem),
        planning.Launch(main, T_c * units, (*sizes, mixed, parts), constants, {"num_warps": 4}, describe),
        planning.Launch(
            finish, 2 * last * tiles, (*sizes[:-2], ring, units - last), {"D": d}, {"num_warps": 2}, [lines]
        ),
        groups.add_launch(B * H_k, parts, N_k * d) if parts > 1 else None,
        (B, H_k, parts, N_k, d),
        rows,
        sums,
        2 * units,
        summed is do is dO and (O is None or o is O),
    )
