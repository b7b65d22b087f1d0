"""FlashAttention-2, forward pass, for Hopper: in Gluon, where a program's warps have roles.

A program computes one row block of O after the other. One warp is the producer: it asks the copy unit (TMA) for
tiles of Q, K and V. Two or three groups of four warps are consumers, 64 rows each: they have the tensor cores
multiply (wgmma) and compute the softmax. What the roles tell each other goes through barriers in shared memory.

A barrier has phases. One ends when `count` arrivals and all expected bytes are there; wait(barrier, p) returns
once the last phase to end had parity p: 0 for the first, 1 for the second, 0 again. Of a new barrier, "parity 1
has ended". Rings have STAGES slots; tile g, counted over the program's whole life, lies in slot g % STAGES, in
round g // STAGES. t counts row blocks, u the turns that this consumer has taken.

    barrier      count      who arrives, and when            who waits, for which parity       until then
    q_full[c]    1          copy unit, block t is there      consumer c      t & 1             no Q to multiply
    q_empty[c]   1          consumer c, its last Q K^T done  producer        (t & 1) ^ 1       Q is read
    k_full[s]    1          copy unit, K(g) is there         consumers       round & 1         no K to multiply
    k_empty[s]   consumers  each, its Q K(g)^T done          producer        (round & 1) ^ 1   K(g-STAGES) is read
    v_full[s]    1          copy unit, V(g) is there         consumers       round & 1         no V to multiply
    v_empty[s]   consumers  each, its P V(g) done            producer        (round & 1) ^ 1   V(g-STAGES) is read
    turn[c]      1          the consumer before it, having   consumer c > 0  u & 1             it may not issue
                            issued two products              consumer 0      (u & 1) ^ 1       products

Two phases suffice: nobody arrives at a barrier for the phase after next before all who wait for this one are
through. The producer fills a slot again only when every consumer has released it, which each does after it waited
for it. All consumers of a program take the same number of turns: they walk the same tiles.

Turns (ping-pong): while one consumer's products run, another computes its softmax. And in each turn a consumer
issues the next S = Q K^T before P V of the tile before, so that its own softmax runs under that P V as well.
Source: FlashAttention-3 (Shah and others, 2024), sections 3.1 and 3.2.
"""

import math

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

from flashlib.kernels import as_autocast, check_no_gradient, on_device_of
from flashlib.kernels.hopper import launch
from flashlib.state import Attention, resolve_scale

HUGE = gl.constexpr(2.0**28)  # scores in base 2; see `softmax`
LN_2 = gl.constexpr(0.6931471805599453)


def attention(Q, K, V, *, causal=False, mask=None, scale=None) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, on a Hopper GPU.

    Q: (B, H_q, N_q, d); K, V: (B, H_k, N_k, d); all float16 or bfloat16, d 64 or 128, any N_q and N_k; the last
    axis contiguous, start and other strides multiples of 16 bytes. H_q is a multiple of H_k. O: as Q, contiguous;
    lse: (B, H_q, N_q), fp32. Rows that see no key, causal and autocast: as in `flashlib.kernels.forward`.
    Raises TypeError or ValueError for anything else, before any work.
    Source: FlashAttention-3 (Shah and others, 2024).
    """
    Q, K, V = as_autocast(Q, K, V)
    plan = launch.plan_of(_forward, Q, K, V, causal, mask)
    check_no_gradient(Q=Q, K=K, V=V)
    scale_log2e = resolve_scale(scale, Q.shape[-1]) * math.log2(math.e)
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.empty(Q.shape[:3], dtype=torch.float32, device=Q.device)
    if plan is None:  # no rows, or no keys that they could see
        return Attention(O.zero_(), lse.fill_(-math.inf))
    above = 2.0 ** math.ceil(math.log2(scale_log2e))
    with on_device_of(Q):
        plan.launch(*plan.described(Q, K, V, O), lse, scale_log2e, above)
    return Attention(O, lse)


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed here: the compiler moves nothing past this that it is made of or that is made of it.

    PACK: how many elements 32 bits hold.
    """
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def block_of(tile, T_r, section, CAUSAL: gl.constexpr):
    """Return head, counted over the batch, and number of the row block at a place in the order of all of them.

    If causal, `section` heads are worked on at a time, the longest rows first, so that short ones fill the end.
    """
    if CAUSAL:
        place = tile % (section * T_r)
        head = tile // (section * T_r) * section + place % section
        i = T_r - 1 - place // section
    else:
        head = tile // T_r
        i = tile % T_r
    return head, i


@gluon.jit
def tiles_of(i, N_q, N_k, B_R: gl.constexpr, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    """Return how many tiles of keys the rows of block i see together, at least 1: they walk from the last one."""
    end = N_k
    if CAUSAL:
        end = gl.minimum((i + 1) * B_R + N_k - N_q, N_k)
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, rows past the end as zeros; `full` ends its phase when it is there."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def producer(
    q_ring, k_ring, v_ring, q_desc, k_desc, v_desc, H, group, N_q, N_k, T_r, section, n_tiles,
    B_R: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    """Bring Q, and K and V tile by tile, whenever a slot is free; by one warp, which has little else to do."""
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    CONSUMERS: gl.constexpr = q_slots.type.shape[0]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    g = 0
    t = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        n = tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        for c in gl.static_range(CONSUMERS):
            mbarrier.wait(q_empty.index(c), (t & 1) ^ 1)  # its products with the block before are done
            fetch(q_desc, [head // H, head % H, i * B_R + c * ROWS, 0], q_slots.index(c), q_full.index(c))
        for j in range(n):
            s = g % STAGES
            free = ((g // STAGES) & 1) ^ 1
            at = [head // H, head % H // group, (n - 1 - j) * B_C, 0]
            mbarrier.wait(k_empty.index(s), free)  # every consumer is done with K(g - STAGES)
            fetch(k_desc, at, k_slots.index(s), k_full.index(s))
            mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES), which takes until a turn later
            fetch(v_desc, at, v_slots.index(s), v_full.index(s))
            g += 1
        t += 1


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, D) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def masked(S, start, limits):
    """Return scores of keys `start` and on, -inf from each row's limit on: the first key that it does not see."""
    S_LAYOUT: gl.constexpr = S.type.layout
    cols = start + gl.arange(0, S.type.shape[1], layout=gl.SliceLayout(0, S_LAYOUT))
    return gl.where(cols[None, :] < limits[:, None], S, -float("inf"))


@gluon.jit
def softmax(S, m, shift, scale_log2e, scale_above, MASKED: gl.constexpr):
    """Return P = 2^(S * factor - shift), the new m and shift, and alpha, which brings what was summed to them.

    One fused multiply-add makes S * factor - shift, rounded once. shift = m * factor was rounded before, so all
    P of a row carry the same 2^r, which cancels in O and lse; |r| is at most 8 for scores below HUGE. Above,
    distinct scores are 2^16 apart in P, and any steeper factor gives the same P; a power of two makes r = 0.
    """
    m = gl.maximum(m, gl.max(S, 1))
    size = m * scale_log2e
    factor = gl.where(gl.maximum(size, -size) > HUGE, scale_above, scale_log2e)
    new = pin(m * factor, 1)  # rounded, also where it is subtracted below
    used = new
    if MASKED:
        used = gl.where(m == -float("inf"), 0.0, new)  # rows that saw nothing: -inf - (-inf) would be nan
    alpha = gl.exp2(shift - used)
    P = gl.exp2(S * factor[:, None] - used[:, None])
    return P, m, new, alpha


@gluon.jit
def partial_sums(P):
    """Return sums of P's columns, (rows, 8): those that one thread holds, so that no thread asks another."""
    return gl.sum(P.reshape([P.type.shape[0], P.type.shape[1] // 8, 8]), 1)


@gluon.jit
def by_row(x, like):
    """Return x, a number for each row, to be multiplied with `like`."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout), assert_trivial=True)[:, None]


@gluon.jit
def operand(P, dtype: gl.constexpr, O_LAYOUT: gl.constexpr):
    """Return P as the left operand of P V, in the registers in which it is."""
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    return pin(gl.convert_layout(P.to(dtype), P_LAYOUT, assert_trivial=True), 2)


@gluon.jit
def scores(q, slot, S_LAYOUT: gl.constexpr):
    """Have the tensor cores begin S = Q K^T."""
    ROWS: gl.constexpr = q.type.shape[0]
    B_C: gl.constexpr = slot.type.shape[2]
    zero = gl.zeros([ROWS, B_C], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(q, matrix(slot).permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def step(
    state, g, u, last, start, limits, q, k_ring, v_ring, turn, scale_log2e, scale_above,
    ME: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Take a turn: issue S of tile g and P V of the one before, and compute the softmax of S under that P V."""
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    O_acc, P, m, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    CONSUMERS: gl.constexpr = turn.type.shape[0]
    FIRST: gl.constexpr = 1 if ME == 0 else 0
    s = g % STAGES
    before = (g - 1) % STAGES

    mbarrier.wait(turn.index(ME), (u & 1) ^ FIRST)  # the other consumers' products are ahead of mine
    S_begun = scores(q, k_slots.index(s), S_LAYOUT)  # K(g) was waited for a turn ago
    mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)  # V(g - 1) is there
    O_acc = O_acc * by_row(pin(alpha, 1), O_acc)  # under Q K^T
    O_begun = warpgroup_mma(P, matrix(v_slots.index(before)), O_acc, is_async=True)
    mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))

    S = warpgroup_mma_wait(1, deps=(S_begun,))  # S is done; P V may still run
    mbarrier.arrive(k_empty.index(s))
    gl.barrier()  # between an arrive and a wait the compiler wants one: here, not in the middle of the softmax
    if MASKED:
        S = masked(S, start, limits)
    P, m, shift, alpha = softmax(S, m, shift, scale_log2e, scale_above, MASKED)
    l = l * by_row(alpha, l) + partial_sums(P)
    if CONSUMERS == 2:
        P = operand(P, k_slots.dtype, O_LAYOUT)  # under P V
    # K(g + 1), for the next turn. Waiting here also keeps the compiler from moving the wait below up to S.
    mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(before))
    if CONSUMERS == 3:
        P = operand(P, k_slots.dtype, O_LAYOUT)  # three have no registers for two P at a time
    return O_acc, P, m, shift, alpha, l


@gluon.jit
def consumer(
    q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
    H, N_q, N_k, T_r, section, n_tiles, B_R: gl.constexpr, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Compute 64 rows of each row block, O and lse."""
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    STAGES: gl.constexpr = k_slots.type.shape[0]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    B_C: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, B_C, 16]
    )
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16]
    )
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    q = matrix(q_slots.index(ME))
    o = o_slots.index(ME)
    g = 0
    t = 0
    u = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        n = tiles_of(i, N_q, N_k, B_R, B_C, CAUSAL)
        start = i * B_R + ME * ROWS
        rows = start + gl.arange(0, ROWS, layout=BY_ROW)
        limits = gl.full([ROWS], N_k, gl.int32, BY_ROW)
        whole = 0
        if CAUSAL:
            limits = gl.minimum(rows + 1 + N_k - N_q, N_k)
            whole = gl.maximum(gl.minimum(start + 1 + N_k - N_q, N_k), 0) // B_C  # tiles without a mask
        last = g + n - 1

        mbarrier.wait(q_full.index(ME), t & 1)  # Q is there
        mbarrier.wait(k_full.index(g % STAGES), (g // STAGES) & 1)  # and the first K
        S_begun = scores(q, k_slots.index(g % STAGES), S_LAYOUT)
        S = masked(warpgroup_mma_wait(0, deps=(S_begun,)), (n - 1) * B_C, limits)
        mbarrier.arrive(k_empty.index(g % STAGES))
        m = gl.full([ROWS], -float("inf"), gl.float32, BY_ROW)
        P, m, shift, alpha = softmax(S, m, m, scale_log2e, scale_above, True)
        l = partial_sums(P)
        state = gl.zeros([ROWS, D], gl.float32, O_LAYOUT), operand(P, k_slots.dtype, O_LAYOUT), m, shift, alpha, l
        mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)  # K of the next turn

        if CAUSAL:
            for j in range(1, n - whole):  # tiles that the mask cuts
                state = step(
                    state, g + j, u, last, (n - 1 - j) * B_C, limits, q, k_ring, v_ring, turn, scale_log2e,
                    scale_above, ME, True,
                )  # fmt: skip
                u += 1
        for j in range(gl.maximum(n - whole, 1) if CAUSAL else 1, n):
            state = step(
                state, g + j, u, last, 0, limits, q, k_ring, v_ring, turn, scale_log2e, scale_above, ME, False
            )
            u += 1

        O_acc, P, m, shift, alpha, l = state
        mbarrier.wait(v_full.index(last % STAGES), (last // STAGES) & 1)  # the last V
        O_acc = O_acc * by_row(pin(alpha, 1), O_acc)
        O_begun = warpgroup_mma(P, matrix(v_slots.index(last % STAGES)), O_acc, is_async=True)
        mbarrier.arrive(q_empty.index(ME))
        l = gl.convert_layout(gl.sum(l, 1), BY_ROW, assert_trivial=True)
        divisor = gl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
        gl.store(lse_ptr + head * N_q + rows, (m * scale_log2e + gl.log2(divisor)) * LN_2, mask=rows < N_q)
        O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
        mbarrier.arrive(v_empty.index(last % STAGES))
        O = O_acc * by_row(1.0 / divisor, O_acc)

        tma.store_wait(0)  # the copy unit has read my last O
        gl.barrier()  # for all of my warps, of which each asked for a part
        matrix(o).store(O.to(o_slots.dtype))
        fence_async_shared()  # the copy unit sees what was stored
        tma.async_copy_shared_to_global(o_desc, [head // H, head % H, start, 0], o)  # rows past N_q are left out
        g += n
        t += 1
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
def _forward(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, scale_above, H, group, N_q, N_k, T_r, section, n_tiles,
    B_R: gl.constexpr, CONSUMERS: gl.constexpr, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_ring = ring(q_desc, CONSUMERS, 1)
    k_ring = ring(k_desc, STAGES, CONSUMERS)
    v_ring = ring(v_desc, STAGES, CONSUMERS)
    o_slots = gl.allocate_shared_memory(o_desc.dtype, [CONSUMERS] + o_desc.block_shape, o_desc.layout)
    turn = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(CONSUMERS):
        mbarrier.init(turn.index(c), count=1)
    fence_async_shared()  # the copy unit sees the barriers
    # Written out, since constants in a tuple that has a name are none any more.
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
                        H, N_q, N_k, T_r, section, n_tiles, B_R, CAUSAL, 0)),
            (consumer, (q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
                        H, N_q, N_k, T_r, section, n_tiles, B_R, CAUSAL, 1)),
            (producer, (q_ring, k_ring, v_ring, q_desc, k_desc, v_desc, H, group, N_q, N_k, T_r, section, n_tiles,
                        B_R, CAUSAL)),
        ], [4, 1], [240, 24])  # fmt: skip
    else:
        gl.static_assert(CONSUMERS == 3)
        gl.warp_specialize([
            (consumer, (q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
                        H, N_q, N_k, T_r, section, n_tiles, B_R, CAUSAL, 0)),
            (consumer, (q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
                        H, N_q, N_k, T_r, section, n_tiles, B_R, CAUSAL, 1)),
            (consumer, (q_ring, k_ring, v_ring, turn, o_slots, o_desc, lse_ptr, scale_log2e, scale_above,
                        H, N_q, N_k, T_r, section, n_tiles, B_R, CAUSAL, 2)),
            (producer, (q_ring, k_ring, v_ring, q_desc, k_desc, v_desc, H, group, N_q, N_k, T_r, section, n_tiles,
                        B_R, CAUSAL)),
        ], [4, 4, 1], [160, 160, 24])  # fmt: skip
