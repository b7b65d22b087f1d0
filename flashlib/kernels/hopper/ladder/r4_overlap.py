"""Rung 4: the next product runs under this softmax.

In a turn a consumer issues S of tile g first, then P V of the previous tile. It waits only for S: while P V runs,
it turns S into P for the next turn's P V. So the tensor cores have work from this consumer too while it computes,
and S and P are in registers at the same time.
Source: FlashAttention-3 (Shah and others, 2024), section 3.2.

Barriers, and who waits for what, are as in rung 3; but a consumer releases V(g - 1) later: after the softmax of
tile g, when it has waited for P V.
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
    return launch(_overlapped, Q, K, V, causal=causal, scale=scale, rows=64, consumers=2)


@gluon.jit
def producer(rings, q_desc, k_desc, v_desc, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring Q, and K and V tile by tile, whenever a slot is free."""
    H, group, N_q, N_k, T_r = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    ROWS: gl.constexpr = q_slots.type.shape[3]
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
    for c in gl.static_range(2):
        tiles.fetch(q_desc, [head // H, head % H, i * B_R + c * ROWS, 0], q_slots.index(c), q_full.index(c))
    for g in range(n):
        s = g % STAGES
        free = ((g // STAGES) & 1) ^ 1
        at = [head // H, head % H // group, (n - 1 - g) * B_C, 0]
        mbarrier.wait(k_empty.index(s), free)  # both consumers are done with K(g - STAGES)
        tiles.fetch(k_desc, at, k_slots.index(s), k_full.index(s))
        mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES)
        tiles.fetch(v_desc, at, v_slots.index(s), v_full.index(s))


@gluon.jit
def step(state, g, n, limits, q, k_ring, v_ring, turn, scales, ME: gl.constexpr, MASKED: gl.constexpr):
    """Take a turn: S of tile g and P V of the one before, under which the softmax of S runs."""
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    O_acc, P, m, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    s = g % STAGES
    before = (g - 1) % STAGES
    mbarrier.wait(turn.index(ME), ((g - 1) & 1) ^ (1 if ME == 0 else 0))  # the other's products are ahead of mine
    S_begun = tiles.scores(q, k_slots.index(s), S_LAYOUT)  # K(g) was waited for a turn ago
    mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)  # V(g - 1) is there
    O_acc = O_acc * tiles.by_row(tiles.pin(alpha, 1), O_acc)  # under Q K^T
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(before)), O_acc, is_async=True)
    mbarrier.arrive(turn.index(1 - ME))
    S = warpgroup_mma_wait(1, deps=(S_begun,))  # S is done; P V may still run
    mbarrier.arrive(k_empty.index(s))
    gl.barrier()  # the compiler wants one between an arrive and a wait: here, not in the middle of the softmax
    if MASKED:
        S = tiles.masked(S, (n - 1 - g) * B_C, limits)
    P, m, shift, alpha = tiles.softmax(S, m, shift, scales)
    l = l * tiles.by_row(alpha, l) + tiles.partial_sums(P)
    P = tiles.operand(P, k_slots.dtype, O_LAYOUT)  # under P V
    # K of the next turn. Waiting here also keeps the compiler from moving the wait below up to S.
    mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g + 1 < n)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(before))
    return O_acc, P, m, shift, alpha, l


@gluon.jit
def consumer(
    rings, turn, o_slots, o_desc, lse_ptr, scales, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Compute 64 rows of the row block: O and lse."""
    H, group, N_q, N_k, T_r = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
    start = i * B_R + ME * ROWS
    limits, cut = tiles.limits_of(start, n, N_q, N_k, ROWS, B_C, BY_ROW, CAUSAL)
    q = tiles.matrix(q_slots.index(ME))

    mbarrier.wait(q_full.index(ME), 0)  # Q is there
    mbarrier.wait(k_full.index(0), 0)  # and the first K
    S = warpgroup_mma_wait(0, deps=(tiles.scores(q, k_slots.index(0), S_LAYOUT),))
    mbarrier.arrive(k_empty.index(0))
    m = gl.full([ROWS], -float("inf"), gl.float32, BY_ROW)
    P, m, shift, alpha = tiles.softmax(tiles.masked(S, (n - 1) * B_C, limits), m, m, scales)
    P_low = tiles.operand(P, k_slots.dtype, O_LAYOUT)
    state = gl.zeros([ROWS, D], gl.float32, O_LAYOUT), P_low, m, shift, alpha, tiles.partial_sums(P)
    mbarrier.wait(k_full.index(1 % STAGES), (1 // STAGES) & 1, pred=n > 1)  # K of the next turn
    for g in range(1, cut):
        state = step(state, g, n, limits, q, k_ring, v_ring, turn, scales, ME, True)
    for g in range(cut, n):
        state = step(state, g, n, limits, q, k_ring, v_ring, turn, scales, ME, False)

    O_acc, P, m, shift, alpha, l = state
    last = (n - 1) % STAGES
    mbarrier.wait(v_full.index(last), ((n - 1) // STAGES) & 1)  # the last V
    O_acc = O_acc * tiles.by_row(alpha, O_acc)
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(last)), O_acc, is_async=True)
    divisor = tiles.store_lse(lse_ptr, head, start, N_q, m, l, scales)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(last))
    tiles.store_output(O_acc, divisor, o_slots.index(ME), o_desc, [head // H, head % H, start, 0])
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r"])
def _overlapped(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r,
    B_R: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots, k_full = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1)
    v_slots, v_full = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1)
    o_slots = tiles.slots(o_desc, 2)
    k_empty, v_empty = tiles.barriers(STAGES, 2), tiles.barriers(STAGES, 2)
    turn = tiles.barriers(2, 1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    scales = scale_log2e, scale_above
    sizes = H, group, N_q, N_k, T_r
    gl.warp_specialize([
        (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 0)),
        (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 1)),
        (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
    ], [4, 1])  # fmt: skip
