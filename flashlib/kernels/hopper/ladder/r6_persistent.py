"""Rung 6: a program for each multiprocessor, which computes one row block after the other; causal, longest first.

So barriers and shared memory are set up once, the producer brings the next block's tiles while consumers store O,
and rings continue where they were: g counts tiles over the program's whole life, and so do the phases. Q of the
next block may come only when Q of this one has been read, for which there is one more barrier than in rung 5:

    barrier      count  who arrives, and when               who waits, for which parity
    q_full[c]    1      producer + bytes of Q of block t    consumer c      t & 1
    q_empty[c]   1      consumer c, its last Q K^T is done  producer        (t & 1) ^ 1
    turn[c]      1      as in rung 3                        as in rung 3, of u = g - t - 1 turns before

Causal blocks differ in length. For these each program computes one block, and the longest start first: the GPU
gives the next block to the first multiprocessor that is free, and short ones at the end leave few idle for long.
Heads are processed in sections whose K and V stay in the L2 cache.
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
    return launch(
        _persistent, Q, K, V, causal=causal, scale=scale, rows=64, consumers=2, moved=True, persistent=not causal
    )


@gluon.jit
def block_of(tile, T_r, section, CAUSAL: gl.constexpr):
    """Return head, over the batch, and number of a row block; causal: per `section` of heads, longest first."""
    if CAUSAL:
        place = tile % (section * T_r)
        return tile // (section * T_r) * section + place % section, T_r - 1 - place // section
    else:
        return tile // T_r, tile % T_r


@gluon.jit
def producer(rings, q_desc, k_desc, v_desc, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring Q, and K and V tile by tile, whenever a slot is free, for one row block after the other."""
    H, group, N_q, N_k, T_r, section, n_tiles = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    ROWS: gl.constexpr = q_slots.type.shape[3]
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    g = 0
    t = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        for c in gl.static_range(2):
            mbarrier.wait(q_empty.index(c), (t & 1) ^ 1)  # its products with the block before are done
            tiles.fetch(q_desc, [head // H, head % H, i * B_R + c * ROWS, 0], q_slots.index(c), q_full.index(c))
        for j in range(n):
            s = g % STAGES
            free = ((g // STAGES) & 1) ^ 1
            at = [head // H, head % H // group, (n - 1 - j) * B_C, 0]
            mbarrier.wait(k_empty.index(s), free)  # both consumers are done with K(g - STAGES)
            tiles.fetch(k_desc, at, k_slots.index(s), k_full.index(s))
            mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES)
            tiles.fetch(v_desc, at, v_slots.index(s), v_full.index(s))
            g += 1
        t += 1


@gluon.jit
def step(
    state, g, u, last, limits, q_slot, k_ring, v_ring, turn, scales, ME: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Take turn u: S of tile g and P V of the previous one, under which the softmax of S runs."""
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    q, q_free = q_slot
    O_acc, P, m, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    s = g % STAGES
    before = (g - 1) % STAGES
    mbarrier.wait(turn.index(ME), (u & 1) ^ (1 if ME == 0 else 0))  # the other's products are ahead of mine
    S_begun = tiles.scores(q, k_slots.index(s), S_LAYOUT)  # K(g) was waited for a turn ago
    mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)  # V(g - 1) is there
    O_acc = O_acc * tiles.by_row(tiles.pin(alpha, 1), O_acc)  # under Q K^T
    O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(before)), O_acc, is_async=True)
    mbarrier.arrive(turn.index(1 - ME))
    S = warpgroup_mma_wait(1, deps=(S_begun,))  # S is done; P V may still run
    mbarrier.arrive(k_empty.index(s))
    mbarrier.arrive(q_free, pred=g == last)
    gl.barrier()  # the compiler wants one between an arrive and a wait: here, not in the middle of the softmax
    if MASKED:
        S = tiles.masked(S, (last - g) * B_C, limits)
    P, m, shift, alpha = tiles.softmax(S, m, shift, scales)
    l = l * tiles.by_row(alpha, l) + tiles.partial_sums(P)
    P = tiles.operand(P, k_slots.dtype, O_LAYOUT)  # under P V
    # K of the next turn. Waiting here also keeps the compiler from moving the wait below up to S.
    mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(before))
    return O_acc, P, m, shift, alpha, l


@gluon.jit
def consumer(
    rings, turn, o_slots, o_desc, lse_ptr, scales, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Compute 64 rows of each row block: O and lse."""
    H, group, N_q, N_k, T_r, section, n_tiles = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    q_slot = tiles.matrix(q_slots.index(ME)), q_empty.index(ME)
    g = 0
    t = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        n = tiles.tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        start = i * B_R + ME * ROWS
        limits, cut = tiles.limits_of(start, n, N_q, N_k, ROWS, B_C, BY_ROW, CAUSAL)
        last = g + n - 1

        mbarrier.wait(q_full.index(ME), t & 1)  # Q is there
        mbarrier.wait(k_full.index(g % STAGES), (g // STAGES) & 1)  # and the first K
        S = warpgroup_mma_wait(0, deps=(tiles.scores(q_slot[0], k_slots.index(g % STAGES), S_LAYOUT),))
        mbarrier.arrive(k_empty.index(g % STAGES))
        m = gl.full([ROWS], -float("inf"), gl.float32, BY_ROW)
        P, m, shift, alpha = tiles.softmax(tiles.masked(S, (n - 1) * B_C, limits), m, m, scales)
        P_low = tiles.operand(P, k_slots.dtype, O_LAYOUT)
        state = gl.zeros([ROWS, D], gl.float32, O_LAYOUT), P_low, m, shift, alpha, tiles.partial_sums(P)
        mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)  # K of the next turn
        u = g - t - 1  # the first tile of a block takes no turn
        for j in range(1, cut):
            state = step(state, g + j, u + j, last, limits, q_slot, k_ring, v_ring, turn, scales, ME, True)
        for j in range(cut, n):
            state = step(state, g + j, u + j, last, limits, q_slot, k_ring, v_ring, turn, scales, ME, False)

        O_acc, P, m, shift, alpha, l = state
        mbarrier.wait(v_full.index(last % STAGES), (last // STAGES) & 1)  # the last V
        O_acc = O_acc * tiles.by_row(alpha, O_acc)
        O_begun = warpgroup_mma(P, tiles.matrix(v_slots.index(last % STAGES)), O_acc, is_async=True)
        divisor = tiles.store_lse(lse_ptr, head, start, N_q, m, l, scales)
        O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
        mbarrier.arrive(v_empty.index(last % STAGES))
        tiles.store_output(O_acc, divisor, o_slots.index(ME), o_desc, [head // H, head % H, start, 0])
        mbarrier.arrive(q_slot[1], pred=n == 1)  # no step has freed Q's slot
        g += n
        t += 1
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r", "section", "n_tiles"])
def _persistent(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r, section, n_tiles,
    B_R: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots, k_full = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1)
    v_slots, v_full = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1)
    o_slots = tiles.slots(o_desc, 2)
    k_empty, v_empty = tiles.barriers(STAGES, 2), tiles.barriers(STAGES, 2)
    turn, q_empty = tiles.barriers(2, 1), tiles.barriers(2, 1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = (q_slots, q_full, q_empty), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    scales = scale_log2e, scale_above
    sizes = H, group, N_q, N_k, T_r, section, n_tiles
    # Warps and registers of all roles but the first, which gets what is left.
    gl.warp_specialize([
        (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 0)),
        (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, 1)),
        (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
