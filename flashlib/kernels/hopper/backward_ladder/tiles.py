"""What the rungs of the Hopper backward share besides their ideas: the work of programs, slots, masks, storing.

Written as in `kernels.hopper.backward`, which explains why; frozen here with the rungs.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)

KEYS = gl.constexpr(128)  # of a program
KV_FULL, K_DONE = gl.constexpr(0), gl.constexpr(1)
ROWS_FULL, DO_FULL, EMPTY, DS_FULL = gl.constexpr(2), gl.constexpr(4), gl.constexpr(6), gl.constexpr(8)
DQ_FULL, DQ_EMPTY, BARRIERS = gl.constexpr(10), gl.constexpr(12), gl.constexpr(14)


@gluon.jit
def shared(q_desc, k_desc, lse_desc, CONSUMERS: gl.constexpr):
    """Return the slots of K, V; of two Q, two dO; of two lse, two delta; of dS, a matrix for each K; and barriers.

    A rung may leave a barrier unused. A phase of the barriers of all consumers takes CONSUMERS arrivals.
    """
    KEYS_OF_ONE: gl.constexpr = k_desc.block_shape[2]
    kv = gl.allocate_shared_memory(k_desc.dtype, [2 * CONSUMERS] + k_desc.block_shape, k_desc.layout)
    qo = gl.allocate_shared_memory(q_desc.dtype, [4] + q_desc.block_shape, q_desc.layout)
    rows = gl.allocate_shared_memory(gl.float32, [4] + lse_desc.block_shape, lse_desc.layout)
    DS_TILE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 4)
    ds = gl.allocate_shared_memory(q_desc.dtype, [2 * CONSUMERS, 1, 1, KEYS_OF_ONE, 64], DS_TILE)
    barriers = gl.allocate_shared_memory(gl.int64, [BARRIERS, 1], mbarrier.MBarrierLayout())
    for b in gl.static_range(BARRIERS):
        mbarrier.init(barriers.index(b), count=CONSUMERS if b == K_DONE or (b >= EMPTY and b < DQ_FULL) else 1)
    fence_async_shared()  # the copy unit sees the barriers
    return kv, qo, rows, ds, barriers


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point: the compiler moves neither its inputs nor its users across.

    PACK: elements in 32 bits.
    """
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, columns) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def vector(slot):
    """Return a slot (1, rows) as a vector."""
    return slot.reshape([slot.type.shape[1]])


@gluon.jit
def work(sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Return the work of a program; causal blocks with the most rows come first.

    The work is a head of K and V, over the batch; a block of keys; the first row block that sees a key of it; the
    first row block whose rows see all of them.
    """
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j = gl.program_id(0) // T_c, gl.program_id(0) % T_c
    first, whole = 0, 0
    if CAUSAL:
        first = gl.maximum(j * KEYS - (N_k - N_q), 0) // B_R
        whole = (gl.maximum((j + 1) * KEYS - 1 - (N_k - N_q), 0) + B_R - 1) // B_R
    if (j + 1) * KEYS > N_k:
        whole = T_r  # no row sees what is past the end of K
    return head, j, first, gl.minimum(whole, T_r)


@gluon.jit
def rows_of(g, first, whole, T_r, group):
    """Return the row block of tile g, whole ones first, and its head among those that read these keys."""
    i = whole + g // group
    return i - (T_r - first if i >= T_r else 0), g % group


@gluon.jit
def fetch(tile_desc, at, slot, row_desc, row_at, row_slot, full):
    """Have the copy unit bring a tile of Q or dO and a number for each of its rows; past the end come zeros."""
    mbarrier.expect(full, tile_desc.block_type.nbytes + row_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(tile_desc, at, full, slot)
    tma.async_copy_global_to_shared(row_desc, row_at, full, row_slot)


@gluon.jit
def fetch_rows(g, memory, descs, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Request Q, dO, lse and delta of tile g."""
    kv, qo, rows, ds, barriers = memory
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, B_R, CAUSAL)
    i, member = rows_of(g, first, whole, T_r, group)
    s = g & 1
    at = [head // H_k, head % H_k * group + member, i * B_R, 0]
    row_at = [head * group + member, i * B_R]
    fetch(q_desc, at, qo.index(s), lse_desc, row_at, rows.index(s), barriers.index(ROWS_FULL + s))
    fetch(do_desc, at, qo.index(2 + s), delta_desc, row_at, rows.index(2 + s), barriers.index(DO_FULL + s))


@gluon.jit
def fetch_keys(memory, descs, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Request K and V of each consumer, whose keys follow those of the previous one."""
    kv, qo, rows, ds, barriers = memory
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, B_R, CAUSAL)
    CONSUMERS: gl.constexpr = kv.type.shape[0] // 2
    full = barriers.index(KV_FULL)
    mbarrier.expect(full, 2 * CONSUMERS * k_desc.block_type.nbytes)
    for c in gl.static_range(CONSUMERS):
        at = [head // H_k, head % H_k, j * KEYS + c * k_desc.block_shape[2], 0]
        tma.async_copy_global_to_shared(k_desc, at, full, kv.index(c))
        tma.async_copy_global_to_shared(v_desc, at, full, kv.index(CONSUMERS + c))


@gluon.jit
def begin(k, q, S_LAYOUT: gl.constexpr):
    """Have the tensor cores begin K Q^T or V dO^T, (keys, 64 rows)."""
    N: gl.constexpr = k.type.shape[0]
    zero = gl.zeros([N, 64], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(k, q.permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def operand(x, ACC: gl.constexpr):
    """Return x as the left operand of a product summed in layout ACC, in the registers where it is."""
    LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=ACC, k_width=2)
    return pin(gl.convert_layout(x, LAYOUT, assert_trivial=True), 2)


@gluon.jit
def limits(start, first, whole, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Return how many tiles need no mask, how many there are, and what `seen` needs.

    That is: tiles without a mask; heads that read these keys; how far `start`, a consumer's first key, is past the
    first row's own, or past the end.
    """
    H_k, group, N_q, N_k, T_r, T_c = sizes
    n_whole, n = group * (T_r - whole), group * (T_r - first)
    past = start - first * B_R - (N_k - N_q) if CAUSAL else start - N_k
    return n_whole, n, (n_whole, group, past)


@gluon.jit
def seen(S, g, cut, CAUSAL: gl.constexpr, MASKED: gl.constexpr):
    """Return S^T of tile g, -inf where a row does not see a key."""
    if MASKED:
        if not CAUSAL:
            S = masked(S, g, cut, CAUSAL)
        elif g >= cut[0]:
            S = masked(S, g, cut, CAUSAL)
    return S


@gluon.jit
def masked(S, g, cut, CAUSAL: gl.constexpr):
    n_whole, group, past = cut
    N: gl.constexpr = S.type.shape[0]
    if CAUSAL:  # in eights of rows: every thread has some of each, so that their numbers are constants
        eights = S.reshape([N, 8, 8])
        LAYOUT: gl.constexpr = eights.type.layout
        past = past - (g - n_whole) // group * 64
        keys = past + gl.arange(0, N, layout=gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
        eight = 8 * gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
        rest = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
        shown = pin(keys[:, None, None] - rest[None, None, :], 1) <= eight[None, :, None]
        eights = gl.where(shown, eights, -float("inf"))
        return gl.convert_layout(eights.reshape([N, 64]), S.type.layout, assert_trivial=True)
    else:
        keys = past + gl.arange(0, N, layout=gl.SliceLayout(1, S.type.layout))
        return gl.where((keys < 0)[:, None], S, -float("inf"))


@gluon.jit
def sums_of(g, dq_ptr, sizes, B_R: gl.constexpr, D: gl.constexpr, CAUSAL: gl.constexpr):
    """Return where the sums of dQ of tile g begin in HBM."""
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, B_R, CAUSAL)
    i, member = rows_of(g, first, whole, T_r, group)
    return dq_ptr + (gl.cast(head * group + member, gl.int64) * T_r + i) * (B_R * D)


@gluon.jit
def add_rows(dQ, sums, column):
    """Add dQ, 64 rows, to the sums in HBM, which are stored row by row, from a column on."""
    LAYOUT: gl.constexpr = dQ.type.layout
    WIDTH: gl.constexpr = dQ.type.shape[1]
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, LAYOUT))
    columns = column + gl.arange(0, WIDTH, layout=gl.SliceLayout(0, LAYOUT))
    gl.atomic_add(sums + (rows[:, None] * 128 + columns[None, :]), dQ, sem="relaxed")


@gluon.jit
def store(X, slot, desc, at):
    """Have the copy unit store dK or dV from a slot that is no longer read, except keys past the end."""
    matrix(slot).store(X.to(slot.dtype))
    fence_async_shared()  # the copy unit sees what was stored
    gl.barrier()  # all of my warps have stored
    tma.async_copy_shared_to_global(desc, at, slot)
