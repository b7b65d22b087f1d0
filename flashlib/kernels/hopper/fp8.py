"""Attention in eight bits for Hopper, in Gluon: Q, K, P and V in e4m3, or Q and K in int8; O in bf16.

Roles, rings and barriers are those of `forward`, whose docstring explains how to read the table. Eight bits change
three things: products take half the time; they keep 13 bits of a sum; and V must be transposed.

    barrier      count      who arrives, and when            who waits, for which parity       until then
    q_full[c]    1          producer + bytes of Q, block t   consumer c      t & 1             no Q to multiply
    q_empty[c]   1          consumer c, its last Q K^T done  producer        (t & 1) ^ 1       Q is read
    k_full[s]    1          producer + bytes of K(g)         consumers       round & 1         no K to multiply
    k_empty[s]   consumers  each, its Q K(g)^T done          producer        (round & 1) ^ 1   K(g-STAGES) is read
    v_full[s]    1          producer + bytes of V(g)         consumers       round & 1         no V to multiply
    v_empty[s]   consumers  each, its P V(g) done            producer        (round & 1) ^ 1   V(g-STAGES) is read
    turn[c]      1          the consumer before it, having   consumer c > 0  u & 1             it may not issue
                            issued two products              consumer 0      (u & 1) ^ 1       products

**A step.** P of the previous tile is computed from its scores; S of this tile and P V of the previous one are
issued; under that P V the maxima of S are found. So scores are carried from step to step, in fp32, and P is made
and used within one step: a tile in eight bits that crosses the loop's edge takes a register for each byte.

**Turns** (ping-pong), if TURNS: u counts them, one for each step. Otherwise products run in the order in which
they come.

**Two-level sums.** The tensor cores truncate their terms to 13 bits below the largest of 32 products and the sum
so far: with many keys of similar values, the sum ends up too small. So each tile's P V begins at zero, and is
added to O in fp32, with the multiply-add that rescales O anyway. V without its mean, which is added at the end,
keeps the sums small, and then one sum is nearly as good, unless the mean changes along the keys: see "drifting
means" in `bench.fp8`. At d = 256 there are no registers for both, and there is only one sum.

**V is transposed**, since wgmma reads both factors in eight bits along the keys, and its keys are permuted, so
that P V can read P in the thread that computed S: see `fp8_tiles.operand`.

**P times 256** uses the numbers of e4m3 down to 2^-17 of the largest weight; l sums P before it is rounded.
Source: FlashAttention-3 (Shah and others, 2024), section 3.3; two-level sums: DeepSeek-V3 (2024), section 3.3.2.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma_wait,
)

from flashlib.kernels.hopper import fp8_tiles, launch_fp8
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: None = None,
    scale: float | None = None, qk: str = "e4m3", rotated: bool = True, centred: bool = True,
) -> Attention:  # fmt: skip
    """Return O, in bfloat16, and lse, computed from Q, K and V in eight bits, on a Hopper GPU.

    Q (B, H, N_q, d), K and V (B, H_k, N_k, d): float16 or bfloat16, finite, d = d_v 64, 128 or 256; the last axis
    contiguous, start and other strides multiples of 16 bytes. mask: None. qk: "e4m3", or "int8" for Q and K, which
    is more precise. rotated, centred: see `flashlib.kernels.quantise`; False leaves an idea out, to see its gain.
    Scores up to about 2^20: above that, those close to the largest of a row suffer from rounding.
    Raises TypeError or ValueError for others, at once.
    """
    return launch_fp8.attention(_attention, Q, K, V, causal, mask, scale, qk, rotated, centred)


@gluon.jit
def place_of(t):
    """Return the place of this program's block t in the order of row blocks.

    Programs take one wave of blocks from left to right, the next from right to left: if blocks become shorter, no
    program gets the longest of each wave.
    """
    last = gl.num_programs(0) - 1
    return t * gl.num_programs(0) + gl.program_id(0) + t % 2 * (last - 2 * gl.program_id(0))


@gluon.jit
def blocks_of(n_tiles):
    """Return how many row blocks this program computes."""
    full = n_tiles // gl.num_programs(0)
    return full + 1 if place_of(full) < n_tiles else full


@gluon.jit
def block_of(t, T_r, section, CAUSAL: gl.constexpr):
    """Return head, over the batch, and number of row block t; causal: longest first in each `section` of heads."""
    place = place_of(t)
    if CAUSAL:
        inside = place % (section * T_r)
        return place // (section * T_r) * section + inside % section, T_r - 1 - inside // section
    else:
        return place // T_r, place % T_r


@gluon.jit
def tiles_of(i, N_q, N_k, B_R: gl.constexpr, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    """Return how many tiles of keys the rows of block i see together, at least 1; they begin with the last one."""
    end = gl.minimum((i + 1) * B_R + N_k - N_q, N_k) if CAUSAL else N_k
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, zeros past the end; `full` ends its phase when it has arrived."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def producer(rings, q_desc, k_desc, v_desc, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring Q, and K and V tile by tile, whenever a slot is free; one warp does this, and little else."""
    H, group, N_q, N_k, T_r, section, n_tiles = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    CONSUMERS: gl.constexpr = q_slots.type.shape[0]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    g = 0
    for t in range(blocks_of(n_tiles)):
        head, i = block_of(t, T_r, section, CAUSAL)
        n = tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        for c in gl.static_range(CONSUMERS):
            mbarrier.wait(q_empty.index(c), (t & 1) ^ 1)  # its products with the block before are done
            fetch(q_desc, [head // H, head % H, i * B_R + c * ROWS, 0], q_slots.index(c), q_full.index(c))
        for j in range(n):
            s = g % STAGES
            free = ((g // STAGES) & 1) ^ 1
            first = (n - 1 - j) * B_C
            mbarrier.wait(k_empty.index(s), free)  # every consumer is done with K(g - STAGES)
            fetch(k_desc, [head // H, head % H // group, first, 0], k_slots.index(s), k_full.index(s))
            mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES), which takes until a turn later
            fetch(v_desc, [head // H, head % H // group, 0, first], v_slots.index(s), v_full.index(s))
            g += 1


@gluon.jit
def step(
    state, g, t, last, mask, q_slot, k_ring, v_ring, turn, factor,
    ME: gl.constexpr, CAUSAL: gl.constexpr, TWO_LEVEL: gl.constexpr, TURNS: gl.constexpr,
):  # fmt: skip
    """Compute P of the previous tile; issue S of tile g and that P V; find the shifts of S under that P V.

    mask: first key of tile g, whether the mask cuts the tile, and each row's limit, see `masked`.
    """
    start, cut, limits = mask
    q, q_free = q_slot
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    S, O_acc, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    CONSUMERS: gl.constexpr = turn.type.shape[0]
    S_LAYOUT: gl.constexpr = shift.type.layout.parent
    UNDER: gl.constexpr = q.type.shape[1] < 256 and CONSUMERS == 2  # otherwise registers do not suffice
    s = g % STAGES
    before = (g - 1) % STAGES
    u = g - t - 1  # turns before this one: a block's first tile takes none
    P, l = fp8_tiles.weights(S, shift, alpha, l, factor, O_acc.type.layout)
    O_acc = fp8_tiles.rescaled(O_acc, alpha, TWO_LEVEL)
    mbarrier.wait(k_full.index(s), (g // STAGES) & 1)  # K(g) is there; V(g - 1) was waited for
    if TURNS:
        mbarrier.wait(turn.index(ME), (u & 1) ^ (1 if ME == 0 else 0))  # the others' products are ahead of mine
    S_begun = fp8_tiles.scores(q, k_slots.index(s), S_LAYOUT)
    O_begun = fp8_tiles.output(P, v_slots.index(before), O_acc, TWO_LEVEL)
    if TURNS:
        mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))

    S = fp8_tiles.as_scores(warpgroup_mma_wait(1, deps=(S_begun,)))  # S is done; P V may still run
    mbarrier.arrive(k_empty.index(s))
    mbarrier.arrive(q_free, pred=g == last)
    gl.barrier()  # between an arrive and a wait the compiler wants one
    if not UNDER:
        O_acc = fp8_tiles.added(O_acc, warpgroup_mma_wait(0, deps=(O_begun,)), alpha, TWO_LEVEL)
    if CAUSAL:
        if cut:
            S = fp8_tiles.masked(S, start, limits)
    new, alpha_of_new = fp8_tiles.shifts(S, shift, factor)
    # V(g), for the next turn. Waiting here also keeps the compiler from moving the wait below up to S.
    mbarrier.wait(v_full.index(s), (g // STAGES) & 1)
    if UNDER:
        O_acc = fp8_tiles.added(O_acc, warpgroup_mma_wait(0, deps=(O_begun,)), alpha, TWO_LEVEL)
    mbarrier.arrive(v_empty.index(before))
    return S, O_acc, new, alpha_of_new, l


@gluon.jit
def consumer(
    rings, turn, o_slots, o_desc, lse_ptr, scales, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, TWO_LEVEL: gl.constexpr, TURNS: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Compute 64 rows of each row block, O and lse."""
    H, group, N_q, N_k, T_r, section, n_tiles = sizes
    scale_log2e, q_scale_ptr, q_taken_ptr, k_scale_ptr, v_scale_ptr, v_mean_ptr = scales
    q_ring, k_ring, v_ring = rings
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    B_C: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 32])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 32])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    q_slot = q_slots.index(ME).reshape([ROWS, D]), q_empty.index(ME)
    o = o_slots.index(ME)
    g = 0
    for t in range(blocks_of(n_tiles)):
        head, i = block_of(t, T_r, section, CAUSAL)
        n = tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        of_kv = head // H * (H // group) + head % H // group
        start = i * B_R + ME * ROWS
        rows = start + gl.arange(0, ROWS, layout=BY_ROW)
        factor = gl.load(q_scale_ptr + head * N_q + rows, mask=rows < N_q, other=1.0)
        factor = factor * (gl.load(k_scale_ptr + of_kv) * scale_log2e)
        if CAUSAL:
            limits = gl.minimum(rows + 1 + N_k - N_q, N_k)
            whole = gl.maximum(gl.minimum(start + 1 + N_k - N_q, N_k), 0) // B_C  # tiles without a mask
        else:  # pinned: comparisons with it are the same for every block, and would be kept in registers
            limits = fp8_tiles.pin(gl.full([ROWS], N_k, gl.int32, BY_ROW))
            whole = n
        last = g + n - 1

        mbarrier.wait(q_full.index(ME), t & 1)  # Q is there
        mbarrier.wait(k_full.index(g % STAGES), (g // STAGES) & 1)  # and the first K
        S_begun = fp8_tiles.scores(q_slot[0], k_slots.index(g % STAGES), S_LAYOUT)
        S = fp8_tiles.masked(fp8_tiles.as_scores(warpgroup_mma_wait(0, deps=(S_begun,))), (n - 1) * B_C, limits)
        mbarrier.arrive(k_empty.index(g % STAGES))
        mbarrier.arrive(q_slot[1], pred=n == 1)  # otherwise in a turn
        shift, alpha = fp8_tiles.shifts(S, gl.full([ROWS], -float("inf"), gl.float32, BY_ROW), factor)
        l = fp8_tiles.partial_sums(gl.zeros([ROWS, B_C], gl.float32, S_LAYOUT))
        mbarrier.wait(v_full.index(g % STAGES), (g // STAGES) & 1)  # the first V, for the next turn
        state = S, gl.zeros([ROWS, D], gl.float32, O_LAYOUT), shift, alpha, l

        for j in range(1, n):
            mask = (n - 1 - j) * B_C, j < n - whole, limits
            state = step(
                state, g + j, t, last, mask, q_slot, k_ring, v_ring, turn, factor, ME, CAUSAL, TWO_LEVEL, TURNS
            )

        S, O_acc, shift, alpha, l = state
        P, l = fp8_tiles.weights(S, shift, alpha, l, factor, O_LAYOUT)
        O_acc = fp8_tiles.rescaled(O_acc, alpha, TWO_LEVEL)
        O_begun = fp8_tiles.output(P, v_slots.index(last % STAGES), O_acc, TWO_LEVEL)
        l = gl.convert_layout(gl.sum(l, 1), BY_ROW, assert_trivial=True)
        unseen = l == 0.0  # rows that saw no key: O = 0, lse = -inf
        divisor = gl.where(unseen, 1.0, l)
        if k_slots.dtype == gl.int8:
            shift = shift - fp8_tiles.MAGIC_NUMBER * factor
        rows = start + fp8_tiles.pin(gl.arange(0, ROWS, layout=BY_ROW))  # pinned: otherwise kept over the loop
        fp8_tiles.store_lse(
            lse_ptr, q_taken_ptr, head * N_q + rows, rows < N_q, shift + gl.log2(divisor), scale_log2e
        )
        columns = gl.arange(0, D, layout=gl.SliceLayout(0, O_LAYOUT))
        mean = gl.load(v_mean_ptr + of_kv * D + columns)[None, :]
        O_acc = fp8_tiles.added(O_acc, warpgroup_mma_wait(0, deps=(O_begun,)), alpha, TWO_LEVEL)
        mbarrier.arrive(v_empty.index(last % STAGES))
        O = O_acc * fp8_tiles.by_row(gl.load(v_scale_ptr + of_kv) / divisor, O_acc)
        O = O + mean * fp8_tiles.by_row(gl.where(unseen, 0.0, 1.0), O)

        tma.store_wait(0)  # the copy unit has read my last O
        gl.barrier()  # for all of my warps, each of which requested a part
        o.reshape([ROWS, D]).store(O.to(o_slots.dtype))
        fence_async_shared()  # the copy unit sees what was stored
        tma.async_copy_shared_to_global(o_desc, [head // H, head % H, start, 0], o)  # rows past N_q are left out
        g += n
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit
def ring(desc, SLOTS: gl.constexpr, READERS: gl.constexpr):
    """Return slots for tiles of a descriptor, and their barriers: full and empty."""
    slots = gl.allocate_shared_memory(desc.dtype, [SLOTS] + desc.block_shape, desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(SLOTS):
        mbarrier.init(full.index(s), count=1)
        mbarrier.init(empty.index(s), count=READERS)
    return slots, full, empty


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r", "section", "n_tiles"])
def _attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e,
    q_scale_ptr, q_taken_ptr, k_scale_ptr, v_scale_ptr, v_mean_ptr,
    H, group, N_q, N_k, T_r, section, n_tiles,
    B_R: gl.constexpr, CONSUMERS: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
    TWO_LEVEL: gl.constexpr, TURNS: gl.constexpr,
):  # fmt: skip
    q_ring = ring(q_desc, CONSUMERS, 1)
    k_ring = ring(k_desc, STAGES, CONSUMERS)
    v_ring = ring(v_desc, STAGES, CONSUMERS)
    o_slots = gl.allocate_shared_memory(o_desc.dtype, [CONSUMERS] + o_desc.block_shape, o_desc.layout)
    turn = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(CONSUMERS):
        mbarrier.init(turn.index(c), count=1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = q_ring, k_ring, v_ring
    scales = scale_log2e, q_scale_ptr, q_taken_ptr, k_scale_ptr, v_scale_ptr, v_mean_ptr
    sizes = H, group, N_q, N_k, T_r, section, n_tiles
    # Written out, since constexprs in a tuple with a name are no longer constexprs. Last: warps and registers of
    # all roles except the first, which gets the rest.
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TWO_LEVEL, TURNS, 0)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TWO_LEVEL, TURNS, 1)),
            (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
        ], [4, 1], [240, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TWO_LEVEL, TURNS, 0)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TWO_LEVEL, TURNS, 1)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TWO_LEVEL, TURNS, 2)),
            (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
        ], [4, 4, 1], [160, 160, 24])  # fmt: skip
