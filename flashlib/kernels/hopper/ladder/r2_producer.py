"""Rung 2: one warp, the producer, brings the tiles; eight warps, the consumer, multiply and compute.

The producer waits until a slot is free and requests the next tile at once, whatever the consumer is doing. So each
must signal the other: a ring of slots has barriers for "full" and for "empty".

    barrier      count  who arrives, and when           who waits, for which parity
    q_full       1      producer + bytes of Q           consumer   0: one row block, one phase
    k_full[s]    1      producer + bytes of K(g)        consumer   round & 1, round = g // STAGES
    v_full[s]    1      producer + bytes of V(g)        consumer   round & 1
    k_empty[s]   1      consumer, Q K(g)^T is done      producer   (round & 1) ^ 1: K(g - STAGES) is read
    v_empty[s]   1      consumer, P V(g) is done        producer   (round & 1) ^ 1: V(g - STAGES) is read

P V of a tile and S of the next are issued together: the softmax between them is the only time in which the tensor
cores wait.
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
    return launch(_with_producer, Q, K, V, causal=causal, scale=scale, rows=128)


@gluon.jit
def producer(rings, q_desc, k_desc, v_desc, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring Q, and K and V tile by tile, whenever a slot is free."""
    H, group, N_q, N_k, T_r = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
    tiles.fetch(q_desc, [head // H, head % H, i * B_R, 0], q_slots.index(0), q_full.index(0))
    for g in range(n):
        s = g % STAGES
        free = ((g // STAGES) & 1) ^ 1
        at = [head // H, head % H // group, (n - 1 - g) * B_C, 0]
        mbarrier.wait(k_empty.index(s), free)  # the consumer is done with K(g - STAGES)
        tiles.fetch(k_desc, at, k_slots.index(s), k_full.index(s))
        mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES)
        tiles.fetch(v_desc, at, v_slots.index(s), v_full.index(s))


@gluon.jit
def step(state, g, n, limits, q, k_ring, v_ring, scales, MASKED: gl.constexpr):
    """Issue P V of the tile before and S of tile g, wait for both, and compute the softmax."""
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    O_acc, P, m, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    s = g % STAGES
    before = (g - 1) % STAGES
    mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)  # V(g - 1) is there
    O_acc = O_acc * tiles.by_row(alpha, O_acc)
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(before)), O_acc, is_async=True)
    S_begun = tiles.scores(q, k_slots.index(s), S_LAYOUT)  # K(g) was waited for a step ago
    O_acc, S = warpgroup_mma_wait(0, deps=(O_begun, S_begun))
    mbarrier.arrive(k_empty.index(s))
    mbarrier.arrive(v_empty.index(before))
    gl.barrier()  # the compiler wants one between an arrive and a wait: here, not in the middle of the softmax
    if MASKED:
        S = tiles.masked(S, (n - 1 - g) * B_C, limits)
    P, m, shift, alpha = tiles.softmax(S, m, shift, scales)
    l = l * tiles.by_row(alpha, l) + tiles.partial_sums(P)
    mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g + 1 < n)  # K of the next step
    return O_acc, tiles.operand(P, k_slots.dtype, O_LAYOUT), m, shift, alpha, l


@gluon.jit
def consumer(rings, o_slots, o_desc, lse_ptr, scales, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Compute the row block: O and lse."""
    H, group, N_q, N_k, T_r = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [B_R // 16, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [B_R // 16, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
    limits, cut = tiles.limits_of(i * B_R, n, N_q, N_k, B_R, B_C, BY_ROW, CAUSAL)
    q = tiles.matrix(q_slots.index(0))

    mbarrier.wait(q_full.index(0), 0)  # Q is there
    mbarrier.wait(k_full.index(0), 0)  # and the first K
    S = warpgroup_mma_wait(0, deps=(tiles.scores(q, k_slots.index(0), S_LAYOUT),))
    mbarrier.arrive(k_empty.index(0))
    m = gl.full([B_R], -float("inf"), gl.float32, BY_ROW)
    P, m, shift, alpha = tiles.softmax(tiles.masked(S, (n - 1) * B_C, limits), m, m, scales)
    P_low = tiles.operand(P, k_slots.dtype, O_LAYOUT)
    state = gl.zeros([B_R, D], gl.float32, O_LAYOUT), P_low, m, shift, alpha, tiles.partial_sums(P)
    mbarrier.wait(k_full.index(1 % STAGES), (1 // STAGES) & 1, pred=n > 1)  # K of the next step
    for g in range(1, cut):
        state = step(state, g, n, limits, q, k_ring, v_ring, scales, True)
    for g in range(cut, n):
        state = step(state, g, n, limits, q, k_ring, v_ring, scales, False)

    O_acc, P, m, shift, alpha, l = state
    last = (n - 1) % STAGES
    mbarrier.wait(v_full.index(last), ((n - 1) // STAGES) & 1)  # the last V
    O_acc = O_acc * tiles.by_row(alpha, O_acc)
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(last)), O_acc, is_async=True)
    divisor = tiles.store_lse(lse_ptr, head, i * B_R, N_q, m, l, scales)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(last))
    tiles.store_output(O_acc, divisor, o_slots.index(0), o_desc, [head // H, head % H, i * B_R, 0])
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r"])
def _with_producer(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r,
    B_R: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = tiles.slots(q_desc, 1), tiles.barriers(1, 1)
    k_slots, k_full = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1)
    v_slots, v_full = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1)
    o_slots = tiles.slots(o_desc, 1)
    k_empty, v_empty = tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    scales = scale_log2e, scale_above
    sizes = H, group, N_q, N_k, T_r
    gl.warp_specialize([
        (consumer, (rings, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL)),
        (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
    ], [1])  # fmt: skip
