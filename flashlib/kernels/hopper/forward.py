"""The forward pass for Hopper: in Gluon, where a program's warps have roles.

A program computes one row block of O after the other. One warp, the producer, requests tiles of Q, K and V from
the copy unit (TMA). Two or three groups of four warps, the consumers, have the tensor cores multiply (wgmma) and
compute the softmax, for 64 rows each. They communicate through barriers in shared memory.

A barrier has phases. A phase ends when `count` arrivals and all expected bytes have come; wait(barrier, p) returns
once the last phase to end had parity p: 0 for the first, 1 for the second, 0 again. For a new barrier, "parity 1
has ended". Rings have STAGES slots; tile g, counted over the program's whole life, is in slot g % STAGES, in round
g // STAGES. t counts row blocks, u turns: each tile of a block except the first takes one.

    barrier      count      who arrives, and when            who waits, for which parity       until then
    q_full[c]    1          producer + bytes of Q, block t   consumer c      t & 1             no Q to multiply
    q_empty[c]   1          consumer c, its last Q K^T done; producer        (t & 1) ^ 1       Q is read
                            one tile, or d = 256: O stored
    k_full[s]    1          producer + bytes of K(g)         consumers       round & 1         no K to multiply
    k_empty[s]   consumers  each, its Q K(g)^T done          producer        (round & 1) ^ 1   K(g-STAGES) is read
    v_full[s]    1          producer + bytes of V(g)         consumers       round & 1         no V to multiply
    v_empty[s]   consumers  each, its P V(g) done            producer        (round & 1) ^ 1   V(g-STAGES) is read
    turn[c]      1          the consumer before it, having   consumer c > 0  u & 1             it may not issue
                            issued two products              consumer 0      (u & 1) ^ 1       products

"+ bytes": the producer arrives when it requests a copy, with `expect`, which also says how many bytes must come.
The copy unit does not arrive: it counts the bytes off.

Two phases suffice, since no phase ends before everyone who waits for the previous one has passed: the producer
refills a slot when every consumer has released it, and each consumer does so only after waiting for the slot.

Turns (ping-pong): while one consumer's products run, another computes its softmax. All walk over the same tiles,
so they take equally many turns. In a turn a consumer issues S = Q K^T, then P V of the previous tile, under which
S becomes P. At d = 256 with a causal mask the two take no turns, which is faster there.
Source: FlashAttention-3 (Shah and others, 2024), sections 3.1 and 3.2.
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

from flashlib.kernels.hopper import launch, votes
from flashlib.types import Attention

HUGE = gl.constexpr(2.0**28)  # scores in base 2; see `softmax`


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: None = None,
    scale: float | None = None, out_dtype: torch.dtype | None = None,
) -> Attention:  # fmt: skip
    """Return the same as `flashlib.kernels.forward.attention`, on a Hopper GPU, for some of its inputs.

    Q, K and V: float16 or bfloat16, d = d_v 64, 128 or 256; the last axis contiguous, start and other strides
    multiples of 16 bytes; scores up to 1e38. mask: None. out_dtype: as there, torch.float32 up to d = 128.
    Raises TypeError or ValueError for others, at once.
    """
    return launch.attention(_forward, Q, K, V, causal, mask, scale, out_dtype)


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: object = None,
    out_dtype: torch.dtype | None = None,
) -> launch.HopperForwardPlan:  # fmt: skip
    """Return the plan for these tensors, for `launch.run`; raise what `attention` raises, except on gradients."""
    return launch.plan_of(_forward, Q, K, V, causal, mask, out_dtype)


run = launch.run


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point: the compiler moves neither its inputs nor its users across.

    PACK: elements in 32 bits.
    """
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def block_of(tile, T_r, section, CAUSAL: gl.constexpr):
    """Return head, over the batch, and number of a row block.

    Causal blocks differ in length. In each `section` of heads the longest come first, in waves of one block per
    program. Every other whole wave is reversed, the last of them included: a program with the longest block of a
    wave gets the shortest of the next, so that all end at nearly the same time.
    """
    if CAUSAL:
        programs = gl.num_programs(0)
        place = tile % (section * T_r)
        wave = place // programs
        if (section * T_r // programs - wave) % 2 == 1:
            place = (2 * wave + 1) * programs - 1 - place
        return tile // (section * T_r) * section + place % section, T_r - 1 - place // section
    else:
        return tile // T_r, tile % T_r


@gluon.jit
def first_row(i, T_r, N_q, B_R: gl.constexpr):
    """Return the first row of block i. The last block ends with the last row, as it may have the most keys.

    So it is whole. If rows do not divide, blocks 0 and 1 share some rows, and store the same for them.
    """
    return gl.maximum(N_q - (T_r - i) * B_R, 0)


@gluon.jit
def tiles_of(first, N_q, N_k, B_R: gl.constexpr, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    """Return how many tiles of keys the rows of a block see together, at least 1; they begin with the last one."""
    end = gl.minimum(first + B_R + N_k - N_q, N_k) if CAUSAL else N_k
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, rows past the end as zeros; `full` ends its phase when it has arrived."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def producer(rings, q_desc, k_desc, v_desc, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring Q, and K and V tile by tile, whenever a slot is free; one warp does this, and little else.

    Slots become free in this order: K's, Q's, V's. So a block's first K is on its way before Q may come.
    """
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
    t = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        first = first_row(i, T_r, N_q, B_R)
        n = tiles_of(first, N_q, N_k, B_R, B_C, CAUSAL)
        for j in range(n):
            s = g % STAGES
            free = ((g // STAGES) & 1) ^ 1
            at = [head // H, head % H // group, (n - 1 - j) * B_C, 0]
            mbarrier.wait(k_empty.index(s), free)  # every consumer is done with K(g - STAGES)
            fetch(k_desc, at, k_slots.index(s), k_full.index(s))
            if j == 0:
                for c in gl.static_range(CONSUMERS):
                    mbarrier.wait(q_empty.index(c), (t & 1) ^ 1)  # its products with the block before are done
                    fetch(q_desc, [head // H, head % H, first + c * ROWS, 0], q_slots.index(c), q_full.index(c))
            mbarrier.wait(v_empty.index(s), free)  # and with V(g - STAGES), which takes until a turn later
            fetch(v_desc, at, v_slots.index(s), v_full.index(s))
            g += 1
        t += 1


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, D) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def masked(S, seen, CAUSAL: gl.constexpr):
    """Return scores, -inf where a row does not see the key. The first row sees `seen` keys; causal: each one more.

    A thread holds two neighbours of each eight keys. Their offset is subtracted once, so that each score is
    compared with a constant. Pinned: otherwise everything that differs between threads would be computed, and
    kept, before the roles part.
    """
    split = S.reshape([S.type.shape[0], S.type.shape[1] // 8, 4, 2])
    LAYOUT: gl.constexpr = split.type.layout
    ROW: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    EIGHT: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    PAIR: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, LAYOUT)))
    ONE: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    left = seen - 2 * pin(gl.arange(0, 4, layout=PAIR), 1)[None, None, :, None]
    if CAUSAL:
        left = left + pin(gl.arange(0, S.type.shape[0], layout=ROW), 1)[:, None, None, None]
    eights = 8 * gl.arange(0, S.type.shape[1] // 8, layout=EIGHT)[None, :, None, None]
    keys = eights + gl.arange(0, 2, layout=ONE)[None, None, None, :]
    split = gl.where(keys < left, split, -float("inf"))
    return gl.convert_layout(split.reshape(S.type.shape), S.type.layout, assert_trivial=True)


@gluon.jit
def eights(x):
    """Return x, (rows, n, 8), as n tiles (rows, 8); all numbers stay in their registers."""
    if x.type.shape[1] == 1:
        return (x.reshape([x.type.shape[0], 8]),)
    else:
        left, right = gl.split(x.reshape([x.type.shape[0], 2, x.type.shape[1] // 2, 8]).permute((0, 2, 3, 1)))
        return eights(left) + eights(right)


@gluon.jit
def row_maxima(S):
    """Return the largest score of each row."""
    N: gl.constexpr = S.type.shape[1] // 8
    found = votes.largest(eights(S.reshape([S.type.shape[0], N, 8])), N)
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S.type.layout)
    return gl.convert_layout(gl.max(found, 1), BY_ROW, assert_trivial=True)


@gluon.jit
def steepness(m, scales):
    """Return the factor of scores in rows with the maximum m, see `softmax`."""
    size = m * scales[0]
    return gl.where(gl.maximum(size, -size) > HUGE, scales[1], scales[0])


@gluon.jit
def softmax(S, m, shift, scales, largest=None, TAU: gl.constexpr = 0):
    """Return P = 2^(S * factor - shift), the new m and shift, and alpha, which rescales earlier sums to them.

    largest: the largest score of each row, if it is known. m: the largest so far, or, with TAU > 0, an earlier one
    that it exceeds by at most TAU in base 2.
    One fused multiply-add computes S * factor - shift, rounded once. shift = m * factor was rounded before, so all
    P of a row carry the same 2^r, which cancels in O and lse; |r| is at most 8 for scores below HUGE. Above that,
    any steeper factor gives the same P, as distinct scores are 2^16 apart; a power of two makes r = 0.
    """
    largest = gl.maximum(m, gl.max(S, 1) if largest is None else largest)
    if TAU:
        m = gl.where((largest - m) * scales[0] > TAU, largest, m)
    else:
        m = largest
    factor = steepness(m, scales)
    new = pin(m * factor, 1)  # rounded, also where it is subtracted below
    used = gl.maximum(new, -3.0e38)  # rows that have seen nothing yet: -inf - (-inf) would be nan
    alpha = gl.exp2(shift - used)
    P = gl.exp2(S * factor[:, None] - used[:, None])
    return P, m, new, alpha


@gluon.jit
def partial_sums(P):
    """Return partial sums over P's columns, (rows, 8): those of one thread, so that threads exchange nothing."""
    return gl.sum(P.reshape([P.type.shape[0], P.type.shape[1] // 8, 8]), 1)


@gluon.jit
def by_row(x, like):
    """Return x, a number for each row, to be multiplied with `like`."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout), assert_trivial=True)[:, None]


@gluon.jit
def rescaled(O_acc, alpha, TAU: gl.constexpr):
    """Return O_acc times alpha. Unless TAU is None, a warp multiplies only if m has changed in one of its rows."""
    alpha = by_row(alpha, O_acc)
    if TAU is None:
        return O_acc * alpha
    else:
        return votes.multiplied(O_acc, alpha)


@gluon.jit
def operand(P, dtype: gl.constexpr, O_LAYOUT: gl.constexpr):
    """Return P as the left operand of P V, in the registers where it is."""
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
    state, g, t, last, seen, q_slot, k_ring, v_ring, turn, scales, ME: gl.constexpr, CAUSAL: gl.constexpr,
    TURNS: gl.constexpr, TAU: gl.constexpr,
):  # fmt: skip
    """Take a turn: issue S of tile g and P V of the previous one, and compute the softmax of S under that P V."""
    q, q_free = q_slot
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    O_acc, P, m, shift, alpha, l = state
    STAGES: gl.constexpr = k_slots.type.shape[0]
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    CONSUMERS: gl.constexpr = turn.type.shape[0]
    TIGHT: gl.constexpr = CONSUMERS == 3  # no registers for two P
    LATE: gl.constexpr = TIGHT and TAU is None  # nor to keep alpha
    B_C: gl.constexpr = k_slots.type.shape[3]
    s = g % STAGES
    before = (g - 1) % STAGES
    u = g - t - 1  # turns before this one: a block's first tile takes none
    if TURNS:  # the others' products are ahead of mine
        mbarrier.wait(turn.index(ME), (u & 1) ^ (1 if ME == 0 else 0))
    S_begun = scores(q, k_slots.index(s), S_LAYOUT)  # K(g) was waited for a turn ago
    mbarrier.wait(v_full.index(before), ((g - 1) // STAGES) & 1)  # V(g - 1) is there
    if not LATE:
        O_acc = rescaled(O_acc, pin(alpha, 1), TAU)  # under Q K^T
    O_begun = warpgroup_mma(P, matrix(v_slots.index(before)), O_acc, is_async=True)
    if TURNS:
        mbarrier.arrive(turn.index((ME + 1) % CONSUMERS))

    S = warpgroup_mma_wait(1, deps=(S_begun,))  # S is done; P V may still run
    mbarrier.arrive(k_empty.index(s))
    if q.type.shape[1] < 256:  # otherwise O goes there
        mbarrier.arrive(q_free, pred=g == last)
    gl.barrier()  # between an arrive and a wait the compiler wants one: here, not in the middle of the softmax
    if CAUSAL:
        left = seen - (last - g) * B_C
        if left < B_C:  # the mask cuts the tile
            S = masked(S, left, True)
    if TIGHT and CAUSAL:  # nor, with what the mask needs, for a shift
        shift = pin(m * steepness(m, scales), 1)  # the same as before
    P, m, shift, alpha = softmax(S, m, shift, scales, row_maxima(S), TAU)
    l = l * by_row(alpha, l) + partial_sums(P)
    if not TIGHT:
        P = operand(P, k_slots.dtype, O_LAYOUT)  # under P V
    # K(g + 1), for the next turn. Waiting here also keeps the compiler from moving the wait below up to S.
    mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(before))
    if LATE:
        O_acc = rescaled(O_acc, alpha, TAU)
    if TIGHT:
        P = operand(P, k_slots.dtype, O_LAYOUT)
    return O_acc, P, m, shift, alpha, l


@gluon.jit
def consumer(
    rings, turn, o_slots, o_desc, lse_ptr, scales, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, TURNS: gl.constexpr, TAU: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Compute 64 rows of each row block, O and lse."""
    H, group, N_q, N_k, T_r, section, n_tiles = sizes
    q_ring, k_ring, v_ring = rings
    q_slots, q_full, q_empty = q_ring
    k_slots, k_full, k_empty = k_ring
    v_slots, v_full, v_empty = v_ring
    CONSUMERS: gl.constexpr = q_slots.type.shape[0]
    STAGES: gl.constexpr = k_slots.type.shape[0]
    ROWS: gl.constexpr = q_slots.type.shape[3]
    D: gl.constexpr = q_slots.type.shape[4]
    B_C: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    q_slot = matrix(q_slots.index(ME)), q_empty.index(ME)
    o = o_slots.index(ME)
    g = 0
    t = 0
    for tile in range(gl.program_id(0), n_tiles, gl.num_programs(0)):
        head, i = block_of(tile, T_r, section, CAUSAL)
        first = first_row(i, T_r, N_q, B_R)
        n = tiles_of(first, N_q, N_k, B_R, B_C, CAUSAL)
        start = first + ME * ROWS
        seen = start + 1 + N_k - N_q if CAUSAL else N_k  # keys that its first row sees
        last = g + n - 1

        mbarrier.wait(q_full.index(ME), t & 1)  # Q is there
        mbarrier.wait(k_full.index(g % STAGES), (g // STAGES) & 1)  # and the first K
        S_begun = scores(q_slot[0], k_slots.index(g % STAGES), S_LAYOUT)
        S = masked(warpgroup_mma_wait(0, deps=(S_begun,)), seen - (n - 1) * B_C, CAUSAL)
        mbarrier.arrive(k_empty.index(g % STAGES))
        m = gl.full([ROWS], -float("inf"), gl.float32, BY_ROW)
        P, m, shift, alpha = softmax(S, m, m, scales)
        l = partial_sums(P)
        state = gl.zeros([ROWS, D], gl.float32, O_LAYOUT), operand(P, k_slots.dtype, O_LAYOUT), m, shift, alpha, l
        mbarrier.wait(k_full.index((g + 1) % STAGES), ((g + 1) // STAGES) & 1, pred=g < last)  # K of the next turn

        for j in range(g + 1, last + 1):
            state = step(state, j, t, last, seen, q_slot, k_ring, v_ring, turn, scales, ME, CAUSAL, TURNS, TAU)

        O_acc, P, m, shift, alpha, l = state
        mbarrier.wait(v_full.index(last % STAGES), (last // STAGES) & 1)  # the last V
        if CONSUMERS == 2 or TAU is not None:
            O_acc = rescaled(O_acc, pin(alpha, 1), TAU)
        O_begun = warpgroup_mma(P, matrix(v_slots.index(last % STAGES)), O_acc, is_async=True)
        l = gl.convert_layout(gl.sum(l, 1), BY_ROW, assert_trivial=True)
        divisor = gl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
        lse = (m * scales[0] + gl.log2(divisor)) * 0.6931471805599453  # log(2)
        rows = start + gl.arange(0, ROWS, layout=BY_ROW)
        gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
        O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
        mbarrier.arrive(v_empty.index(last % STAGES))
        O = O_acc * by_row(1.0 / divisor, O_acc)

        tma.store_wait(0)  # the copy unit has read my last O
        gl.barrier()  # for all of my warps, each of which requested a part
        matrix(o).store(O.to(o_slots.dtype))
        fence_async_shared()  # the copy unit sees what was stored
        tma.async_copy_shared_to_global(o_desc, [head // H, head % H, start, 0], o)  # rows past N_q are left out
        if D == 256:
            tma.store_wait(0)  # O is in the slot of Q: release it only now
        mbarrier.arrive(q_slot[1], pred=(n == 1) | (D == 256))
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
    TURNS: gl.constexpr, TAU: gl.constexpr,
):  # fmt: skip
    gl.static_assert(STAGES >= 2)  # K(g + 1) is waited for before V(g - 1) is released
    q_ring = ring(q_desc, CONSUMERS, 1)
    k_ring = ring(k_desc, STAGES, CONSUMERS)
    v_ring = ring(v_desc, STAGES, CONSUMERS)
    if o_desc.block_shape[3] == 256:  # no room for both
        o_slots = q_ring[0]
    else:
        o_slots = gl.allocate_shared_memory(o_desc.dtype, [CONSUMERS] + o_desc.block_shape, o_desc.layout)
    turn = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(CONSUMERS):
        mbarrier.init(turn.index(c), count=1)
    fence_async_shared()  # the copy unit sees the barriers
    rings = q_ring, k_ring, v_ring
    scales = scale_log2e, scale_above
    sizes = H, group, N_q, N_k, T_r, section, n_tiles
    # Written out, since constexprs in a tuple with a name are no longer constexprs. Last: warps and registers of
    # all roles except the first, which gets the rest.
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TURNS, TAU, 0)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TURNS, TAU, 1)),
            (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
        ], [4, 1], [240, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TURNS, TAU, 0)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TURNS, TAU, 1)),
            (consumer, (rings, turn, o_slots, o_desc, lse_ptr, scales, sizes, B_R, CAUSAL, TURNS, TAU, 2)),
            (producer, (rings, q_desc, k_desc, v_desc, sizes, B_R, CAUSAL)),
        ], [4, 4, 1], [160, 160, 24])  # fmt: skip
