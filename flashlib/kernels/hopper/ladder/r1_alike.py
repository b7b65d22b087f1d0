"""Rung 1: eight warps, all alike, request tiles from the copy unit, have them multiplied and compute the softmax.

They wait for each product at once and do nothing else meanwhile: tensor cores and exponentials take turns. Only
copies run at the same time, as far ahead as there are slots. A slot is free when all warps are past the products
that read it, which a barrier of the whole program ensures: there is no other role to notify.

    barrier      count  who arrives, and when           who waits, for which parity
    q_full       1      who asks for it + bytes of Q    all warps      0: one row block, one phase
    k_full[s]    1      the same + bytes of K(g)        all warps      round & 1, round = g // STAGES
    v_full[s]    1      the same + bytes of V(g)        all warps      round & 1

The thread that requests a copy arrives, once, with `expect`, which says how many bytes must come. The copy unit
counts them off.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from flashlib.kernels.hopper.ladder import launch, tiles
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> Attention:
    """Return Attention(O, lse); see `ladder.launch`."""
    return launch(_alike, Q, K, V, causal=causal, scale=scale, rows=128)


@gluon.jit
def fetch_both(g, n, at, k_desc, v_desc, k_ring, v_ring):
    """Request K and V of tile g of n."""
    k_slots, k_full = k_ring
    v_slots, v_full = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    batch, head = at
    place = [batch, head, (n - 1 - g) * B_C, 0]
    tiles.fetch(k_desc, place, k_slots.index(g % STAGES), k_full.index(g % STAGES))
    tiles.fetch(v_desc, place, v_slots.index(g % STAGES), v_full.index(g % STAGES))


@gluon.jit
def step(state, g, n, limits, at, q, k_desc, v_desc, k_ring, v_ring, scales, MASKED: gl.constexpr):
    """S = Q K^T, then P, then O += P V, then the tile STAGES ahead: one after the other."""
    k_slots, k_full = k_ring
    v_slots, v_full = v_ring
    O_acc, m, shift, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    s = g % STAGES
    mbarrier.wait(k_full.index(s), (g // STAGES) & 1)  # K(g) is there
    S = warpgroup_mma_wait(0, deps=(tiles.scores(q, k_slots.index(s), S_LAYOUT),))
    if MASKED:
        S = tiles.masked(S, (n - 1 - g) * B_C, limits)
    P, m, shift, alpha = tiles.softmax(S, m, shift, scales)
    l = l * tiles.by_row(alpha, l) + tiles.partial_sums(P)
    mbarrier.wait(v_full.index(s), (g // STAGES) & 1)  # V(g) is there
    O_acc = O_acc * tiles.by_row(alpha, O_acc)
    P = tiles.operand(P, k_slots.dtype, O_acc.type.layout)
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(s)), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    gl.barrier()  # all warps are past the products that read slot s
    if g + STAGES < n:
        fetch_both(g + STAGES, n, at, k_desc, v_desc, k_ring, v_ring)
    return O_acc, m, shift, l


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r"])
def _alike(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r,
    B_R: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    B_C: gl.constexpr = k_desc.block_shape[2]
    D: gl.constexpr = q_desc.block_shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [B_R // 16, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [B_R // 16, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    q_slots, q_full = tiles.slots(q_desc, 1), tiles.barriers(1, 1)
    k_ring = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1)
    v_ring = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1)
    o_slots = tiles.slots(o_desc, 1)
    fence_async_shared()  # the copy unit sees the barriers
    gl.barrier()
    scales = scale_log2e, scale_above

    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
    at = head // H, head % H // group
    tiles.fetch(q_desc, [head // H, head % H, i * B_R, 0], q_slots.index(0), q_full.index(0))
    for g in range(gl.minimum(n, STAGES)):  # as far ahead as there are slots
        fetch_both(g, n, at, k_desc, v_desc, k_ring, v_ring)
    limits, cut = tiles.limits_of(i * B_R, n, N_q, N_k, B_R, B_C, BY_ROW, CAUSAL)
    m = gl.full([B_R], -float("inf"), gl.float32, BY_ROW)
    l = tiles.partial_sums(gl.zeros([B_R, B_C], gl.float32, S_LAYOUT))  # nothing yet, in the layout of sums
    state = gl.zeros([B_R, D], gl.float32, O_LAYOUT), m, m, l
    mbarrier.wait(q_full.index(0), 0)  # Q is there
    q = tiles.matrix(q_slots.index(0))
    for g in range(cut):
        state = step(state, g, n, limits, at, q, k_desc, v_desc, k_ring, v_ring, scales, True)
    for g in range(cut, n):
        state = step(state, g, n, limits, at, q, k_desc, v_desc, k_ring, v_ring, scales, False)
    O_acc, m, shift, l = state
    divisor = tiles.store_lse(lse_ptr, head, i * B_R, N_q, m, l, scales)
    tiles.store_output(O_acc, divisor, o_slots.index(0), o_desc, [head // H, head % H, i * B_R, 0])
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has
