"""Decoding in one kernel: the program that writes the last State of some rows merges them all.

`decode` merges in a second kernel. Here programs count how many are done, with an atomic addition, and the last
one goes on. That saves a launch; but one program then merges all rows of its head, one after the other, while the
second kernel has a program for each row. `bench.decode` times both.
"""

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.inputs import resolve_scale
from flashlib.kernels import decode
from flashlib.kernels.decode_passes import SIZES, Sequences, _join, _partial, _task
from flashlib.kernels.forward import LOG2_E
from flashlib.kernels.launch import planning
from flashlib.kernels.launch.inputs import DTYPES, check_no_gradient, on_device_of
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor | None = None,
    table: torch.Tensor | None = None, *, causal: bool = False, scale: float | None = None,
    parts: int | None = None,
) -> Attention:  # fmt: skip
    """Return what `decode.attention` returns, for a cache of 16 or 32 bits and at least one row of Q.

    The count of programs is kept from call to call, so calls of the same sizes must not run at the same time.
    """
    if not Q.numel() or K.dtype not in DTYPES:
        raise ValueError(
            f"Q has shape {tuple(Q.shape)} and K dtype {K.dtype}; pass at least one query, and a cache of 16 or "
            "32 bits, or call decode.attention"
        )
    cache = decode.CacheTensors(K, V, lengths, table, None, None)
    plan = _in_one(decode.plan_of(Q, cache, causal, None, None, 0, parts), Q.device)
    check_no_gradient(Q=Q, K=K, V=V)
    q, (k, v, lengths, table, _, _) = decode.as_read(Q, cache)
    B, H, N_q, d = Q.shape
    scale_log2e = resolve_scale(scale, d) * LOG2_E.value
    o = torch.empty((B, H, N_q, v.shape[3]), dtype=q.dtype, device=q.device)
    lse = q.new_empty((B, H, N_q), dtype=torch.float32)
    states = q.new_empty(plan.states, dtype=torch.float32)
    with on_device_of(q):
        plan.launch(q, k, v, None, None, lengths, table, states, o, lse, plan.counts, scale_log2e)
    return Attention(o.to(Q.dtype), lse)


class AblatedDecodePlan(NamedTuple):
    """states: as in `decode.DecodePlan`; counts: how many programs are done, all 0 between calls."""

    states: int
    launch: planning.Launch
    counts: torch.Tensor


@functools.lru_cache(maxsize=64)
def _in_one(plan, device) -> AblatedDecodePlan:
    partial = plan.partial
    counts = torch.zeros(partial.grid[0], dtype=torch.int32, device=device)  # at least one for each block of rows
    D_V = partial.constants["DIMS"].D_V.value
    own = {"COLS": D_V, "JOINED": 64 if D_V <= 128 else 32, "EARLY": False}  # no kernel follows
    config = {name: value for name, value in partial.config.items() if name != "launch_pdl"}
    launch = planning.Launch(_partial_and_merge, partial.grid[0], partial.sizes, partial.constants | own, config)
    return AblatedDecodePlan(plan.states, launch, counts)


@triton.jit(do_not_specialize=SIZES)
def _partial_and_merge(
    Q_ptr, K_ptr, V_ptr, K_scale_ptr, V_scale_ptr, Lengths_ptr, Table_ptr, States_ptr,
    O_ptr, Lse_ptr, Counts_ptr, scale_log2e,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, s_b, s_h,
    table_b, B, H_k, group, N_q, capacity, shared, left, right, parts, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, B_P: tl.constexpr, MASK: tl.constexpr,
    TREE: tl.constexpr, PAGE: tl.constexpr, COMPUTE: tl.constexpr, UNIT: tl.constexpr,
    PAIRS: tl.constexpr, EARLY: tl.constexpr, FINISH: tl.constexpr, COLS: tl.constexpr,
    JOINED: tl.constexpr,
):  # fmt: skip
    _partial(
        Q_ptr, K_ptr, V_ptr, K_scale_ptr, V_scale_ptr, Lengths_ptr, Table_ptr, States_ptr,
        None, O_ptr, Lse_ptr, scale_log2e, q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, s_b, s_h,
        table_b, B, H_k, group, N_q, capacity, shared, left, right, parts, mask_args,
        DIMS, B_R, B_C, B_P, MASK, TREE, PAGE, COMPUTE, UNIT, PAIRS, EARLY, FINISH,
    )  # fmt: skip
    R = group * N_q
    T_r = tl.cdiv(R, B_R)
    block, h_k, part = tl.program_id(0) % T_r, tl.program_id(0) // T_r % H_k, tl.program_id(0) // T_r // H_k
    sequences = Sequences(Lengths_ptr, B, N_q, capacity, shared, left, parts)
    b, first, n, _, _, _ = _task(sequences, part, B_C, B_P)
    if n > 1:
        tl.debug_barrier()  # all warps have stored
        count = Counts_ptr + (b * H_k + h_k) * T_r + block
        if tl.atomic_add(count, 1, sem="acq_rel") == n - 1:
            tl.debug_barrier()
            for row in range(block * B_R, tl.minimum((block + 1) * B_R, R)):
                i, h = row % N_q, h_k * group + row // N_q
                o = O_ptr + ((b.to(tl.int64) * H_k * group + h) * N_q + i) * DIMS.d_v
                _join(
                    States_ptr, None, None, None, o, Lse_ptr, scale_log2e, b, h, i, B, H_k * group,
                    N_q, first, first + n, 0, DIMS.d_v, COLS, JOINED,
                )  # fmt: skip
            tl.store(count, 0)
