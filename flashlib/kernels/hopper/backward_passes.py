"""Gradients of heads of 256 numbers, for Hopper: in Gluon, two passes and seven products, by warps that have roles.

dK and dV of 64 keys take half of a multiprocessor's registers at d = 256, and dQ of 64 rows a quarter: no program
has room for `backward`'s five products with 128 keys, and with 64 it would add to dQ in HBM as often as it reads Q.
So one pass sums dK and dV, another dQ, and each computes S and dP. The same bits come every time.

**dK and dV.** A program has 64 keys of a head of K and V, and streams tiles of 64 rows of Q and dO past them, of
all query heads that read them; tile g lies in slot g % 2, in round g // 2. Each of two consumers has two products,
and the sum of one: consumer 0 computes S^T = K Q^T, P^T and dV += P^T dO; consumer 1 dP^T = V dO^T, dS^T and
dK += dS^T Q. P^T goes from one to the other through shared memory. Phases as in `forward`.

    barrier       count   who arrives, and when               who waits, for which parity   until then
    k_full        1       producer + bytes of K               consumer 0      0             nothing to multiply
    v_full        1       producer + bytes of V               consumer 1      0             nothing to multiply
    q_full[s]     1       producer + bytes of Q(g), lse       consumers       round & 1     no Q to multiply
    do_full[s]    1       producer + bytes of dO(g), delta    consumers       round & 1     no dO to multiply
    q_empty[s]    2       0: its S(g) done; 1: its dK(g)      producer        round & 1 ^1  Q(g - 2) is read
    do_empty[s]   2       0: its dV(g) done; 1: its dP(g)     producer        round & 1 ^1  dO(g - 2) is read
    p_full[s]     1       consumer 0, P(g) stored             consumer 1      round & 1     no P to multiply with

No barrier says that P(g - 2) is read before P(g) takes its slot: it needs Q(g), which came when consumer 1 was
done with Q(g - 2), later than with P(g - 2). dV goes to where K lay, which only consumer 0 reads, dK to V's.

**dQ.** A program has 128 rows of a head, each of two consumers 64: their Q and dO stay, and tiles of 64 keys
stream past, tile t in K's slot t % 2, in round t // 2. For V there is room once.

    barrier       count   who arrives, and when               who waits, for which parity   until then
    rows_full[c]  1       producer + bytes of Q, dO of c      consumer c      0             nothing to multiply
    k_full[s]     1       producer + bytes of K(t)            consumers       round & 1     no K to multiply
    k_empty[s]    2       each consumer, its dQ(t) done       producer        round & 1 ^1  K(t - 2) is read
    v_full        1       producer + bytes of V(t)            consumers       t & 1         no V to multiply
    v_empty       2       each consumer, its dP(t) done       producer        t & 1 ^1      V(t - 1) is read

**In both** a sum's product with one tile is begun together with the next tile's first product: the tensor cores
have work while the consumer learns that a product is done, and while it computes P and dS.
Sources: FlashAttention-2, Algorithm 2; FlashAttention-3 (Shah and others, 2024), section 3.1 and appendix B.1.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

TILE = gl.constexpr(64)  # rows, and keys: wgmma's m
D = gl.constexpr(256)
S_LAYOUT = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
SUM = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 16]))
OPERAND = gl.constexpr(gl.DotOperandLayout(operand_index=0, parent=SUM.value, k_width=2))
# Of the pass for dK and dV:
K_FULL, V_FULL, Q_FULL, DO_FULL = gl.constexpr(0), gl.constexpr(1), gl.constexpr(2), gl.constexpr(4)
P_FULL, Q_EMPTY, DO_EMPTY = gl.constexpr(6), gl.constexpr(8), gl.constexpr(10)
# Of the pass for dQ; its k_full and v_full as above:
ROWS_FULL, V_THERE, K_THERE = gl.constexpr(0), gl.constexpr(2), gl.constexpr(3)
V_EMPTY, K_EMPTY = gl.constexpr(5), gl.constexpr(6)


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point, as `forward.pin`. PACK: elements in 32 bits."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, D) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def operand(x):
    """Return x, in 16 bits, as the left operand of a product that is summed, in the registers in which it is."""
    return pin(gl.convert_layout(x, OPERAND, assert_trivial=True), 2)


@gluon.jit
def begin(a, b):
    """Have the tensor cores begin a b^T, of tiles of 64 rows."""
    zero = gl.zeros([TILE, TILE], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(a, b.permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def masked(S, left, CAUSAL: gl.constexpr, KEYS: gl.constexpr):
    """Return scores, -inf for keys that are not seen. KEYS: their axis, 1 unless CAUSAL.

    left: how many keys of the tile the first row sees, or, causal, each row one more than the row before it. A
    thread holds two neighbours of each eight columns, in two lines: what differs between threads is subtracted
    once, so that what is compared for each score is a constant. Pinned, or it is kept before the roles part.
    """
    split = S.reshape([TILE, TILE // 8, 4, 2])
    LAYOUT: gl.constexpr = split.type.layout
    LINE: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    EIGHT: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    PAIR: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, LAYOUT)))
    ONE: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    own = -2 * pin(gl.arange(0, 4, layout=PAIR), 1)[None, None, :, None]
    if CAUSAL:
        own = own + pin(gl.arange(0, TILE, layout=LINE), 1)[:, None, None, None]
    columns = 8 * gl.arange(0, TILE // 8, layout=EIGHT)[None, :, None, None]
    columns = columns + gl.arange(0, 2, layout=ONE)[None, None, None, :]
    if KEYS == 1:
        seen = columns < own + left
    else:
        seen = columns > own - left
    split = gl.where(seen, split, -float("inf"))
    return gl.convert_layout(split.reshape([TILE, TILE]), S_LAYOUT, assert_trivial=True)


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, rows past the end as zeros; `full` ends its phase when it is there."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def fetch_two(desc, at, slot, other_desc, other_at, other_slot, full):
    """Have the copy unit bring two tiles, for which the same barrier is waited for."""
    mbarrier.expect(full, desc.block_type.nbytes + other_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)
    tma.async_copy_global_to_shared(other_desc, other_at, full, other_slot)


@gluon.jit
def copy_out(X, to, slot, head, heads, start, N, WIDE: gl.constexpr):
    """Write a sum of 64 rows or keys, without those past N: by the copy unit, from the slot.

    WIDE: in fp32, for which the slot has no room, by its threads; four of them fill a sector of 32 bytes.
    """
    if WIDE:
        rows = (start + gl.arange(0, TILE, layout=gl.SliceLayout(1, SUM)))[:, None]
        columns = gl.arange(0, D, layout=gl.SliceLayout(0, SUM))[None, :]
        corner = to + gl.cast(head, gl.int64) * N * D
        gl.store(corner + rows * D + columns, X, mask=rows < N)
    else:
        matrix(slot).store(X.to(slot.dtype))
        fence_async_shared()  # the copy unit sees it
        gl.barrier()  # all of my warps have stored
        tma.async_copy_shared_to_global(to, [head // heads, head % heads, start, 0], slot)
        tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit
def work(sizes, CAUSAL: gl.constexpr):
    """Return what a program of the pass for dK and dV computes: causal blocks with the most rows come first.

    That is: the head of K and V, over the batch; the block of keys; the first row block that sees a key of it; the
    first whose rows see all of them.
    """
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j = gl.program_id(0) // T_c, gl.program_id(0) % T_c
    first, whole = 0, 0
    if CAUSAL:
        first = gl.maximum(j * TILE - (N_k - N_q), 0) // TILE
        whole = (gl.maximum((j + 1) * TILE - 1 - (N_k - N_q), 0) + TILE - 1) // TILE
    return head, j, first, gl.minimum(whole, T_r)


@gluon.jit
def rows_of(g, first, whole, T_r, group):
    """Return the row block of tile g, and which of the heads that read these keys has it. Whole tiles come first."""
    i = whole + g // group
    return i - (T_r - first if i >= T_r else 0), g % group


@gluon.jit
def rows_producer(memory, descs, sizes, CAUSAL: gl.constexpr):
    """Bring K and V once, and the rows' tiles whenever a slot is free; by one warp."""
    kv, q, do, rows, p, barriers = memory
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, CAUSAL)
    b, h_k = head // H_k, head % H_k
    fetch(k_desc, [b, h_k, j * TILE, 0], kv.index(0), barriers.index(K_FULL))
    for g in range(group * (T_r - first)):
        s = g & 1
        free = ((g >> 1) & 1) ^ 1
        i, member = rows_of(g, first, whole, T_r, group)
        at = [b, h_k * group + member, i * TILE, 0]
        row_at = [head * group + member, i * TILE]
        mbarrier.wait(barriers.index(Q_EMPTY + s), free)  # both are done with Q(g - 2)
        fetch_two(q_desc, at, q.index(s), lse_desc, row_at, rows.index(s), barriers.index(Q_FULL + s))
        if g == 0:
            fetch(v_desc, [b, h_k, j * TILE, 0], kv.index(1), barriers.index(V_FULL))
        mbarrier.wait(barriers.index(DO_EMPTY + s), free)  # and with dO(g - 2)
        fetch_two(do_desc, at, do.index(s), delta_desc, row_at, rows.index(2 + s), barriers.index(DO_FULL + s))


@gluon.jit
def numbers(rows, s):
    """Return the number of each row of a tile, lse or delta: a row is a column of S^T."""
    return rows.index(s).reshape([TILE]).load(gl.SliceLayout(0, S_LAYOUT))[None, :]


@gluon.jit
def weights(S, lse, g, memory, cut, scale_log2e, CAUSAL: gl.constexpr):
    """Hand P^T of tile g over to consumer 1; return it as an operand. Q is read; S is from it."""
    kv, q, do, rows, p, barriers = memory
    s = g & 1
    mbarrier.arrive(barriers.index(Q_EMPTY + s))
    if CAUSAL:
        n_whole, group, left = cut
        if g >= n_whole:
            S = masked(S, left + (g - n_whole) // group * TILE, True, 0)
    P = gl.exp2(S * scale_log2e - lse).to(p.dtype)
    matrix(p.index(s)).store(P)
    mbarrier.arrive(barriers.index(P_FULL + s))
    return operand(P)


@gluon.jit
def sum_dV(memory, n, cut, scale_log2e, CAUSAL: gl.constexpr, OVER: gl.constexpr):
    """Return dV of the program's keys, and hand P of each tile to who sums dK."""
    kv, q, do, rows, p, barriers = memory
    k = matrix(kv.index(0))
    dV = gl.zeros([TILE, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(K_FULL), 0)
    mbarrier.wait(barriers.index(Q_FULL), 0)
    S = warpgroup_mma_wait(0, deps=(begin(k, matrix(q.index(0))),))
    P = weights(S, numbers(rows, 0), 0, memory, cut, scale_log2e, CAUSAL)
    for g in range(1, n):
        s, before = g & 1, (g - 1) & 1
        mbarrier.wait(barriers.index(DO_FULL + before), ((g - 1) >> 1) & 1)
        mbarrier.wait(barriers.index(Q_FULL + s), (g >> 1) & 1)
        if OVER:
            S_begun = begin(k, matrix(q.index(s)))
            dV_begun = warpgroup_mma(P, matrix(do.index(before)), dV, is_async=True)
            lse = numbers(rows, s)
            S = warpgroup_mma_wait(1, deps=(S_begun,))
            P = weights(S, lse, g, memory, cut, scale_log2e, CAUSAL)
            dV = warpgroup_mma_wait(0, deps=(dV_begun,))
            mbarrier.arrive(barriers.index(DO_EMPTY + before))
        else:
            dV_begun = warpgroup_mma(P, matrix(do.index(before)), dV, is_async=True)
            S_begun = begin(k, matrix(q.index(s)))
            lse = numbers(rows, s)
            dV = warpgroup_mma_wait(1, deps=(dV_begun,))
            mbarrier.arrive(barriers.index(DO_EMPTY + before))
            S = warpgroup_mma_wait(0, deps=(S_begun,))
            P = weights(S, lse, g, memory, cut, scale_log2e, CAUSAL)
    mbarrier.wait(barriers.index(DO_FULL + ((n - 1) & 1)), ((n - 1) >> 1) & 1)
    return warpgroup_mma_wait(0, deps=(warpgroup_mma(P, matrix(do.index((n - 1) & 1)), dV, is_async=True),))


@gluon.jit
def slopes(dP, delta, g, memory):
    """Return dS^T of tile g as an operand, with the P^T that consumer 0 stored. dO is read; dP is from it."""
    kv, q, do, rows, p, barriers = memory
    s = g & 1
    mbarrier.arrive(barriers.index(DO_EMPTY + s))
    mbarrier.wait(barriers.index(P_FULL + s), (g >> 1) & 1)
    P = matrix(p.index(s)).load(S_LAYOUT)
    return operand((P.to(gl.float32) * (dP - delta)).to(p.dtype))


@gluon.jit
def sum_dK(memory, n, OVER: gl.constexpr):
    """Return dK of the program's keys, without scale."""
    kv, q, do, rows, p, barriers = memory
    v = matrix(kv.index(1))
    dK = gl.zeros([TILE, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(V_FULL), 0)
    mbarrier.wait(barriers.index(DO_FULL), 0)
    dP = warpgroup_mma_wait(0, deps=(begin(v, matrix(do.index(0))),))
    dS = slopes(dP, numbers(rows, 2), 0, memory)
    for g in range(1, n):
        s, before = g & 1, (g - 1) & 1
        mbarrier.wait(barriers.index(Q_FULL + before), ((g - 1) >> 1) & 1)
        if OVER:
            mbarrier.wait(barriers.index(DO_FULL + s), (g >> 1) & 1)
            dP_begun = begin(v, matrix(do.index(s)))
            dK_begun = warpgroup_mma(dS, matrix(q.index(before)), dK, is_async=True)
            delta = numbers(rows, 2 + s)
            dP = warpgroup_mma_wait(1, deps=(dP_begun,))
            dS = slopes(dP, delta, g, memory)
            dK = warpgroup_mma_wait(0, deps=(dK_begun,))
            mbarrier.arrive(barriers.index(Q_EMPTY + before))
        else:
            dK_begun = warpgroup_mma(dS, matrix(q.index(before)), dK, is_async=True)
            mbarrier.wait(barriers.index(DO_FULL + s), (g >> 1) & 1)
            dP_begun = begin(v, matrix(do.index(s)))
            delta = numbers(rows, 2 + s)
            dK = warpgroup_mma_wait(1, deps=(dK_begun,))
            mbarrier.arrive(barriers.index(Q_EMPTY + before))
            dP = warpgroup_mma_wait(0, deps=(dP_begun,))
            dS = slopes(dP, delta, g, memory)
    mbarrier.wait(barriers.index(Q_FULL + ((n - 1) & 1)), ((n - 1) >> 1) & 1)
    return warpgroup_mma_wait(0, deps=(warpgroup_mma(dS, matrix(q.index((n - 1) & 1)), dK, is_async=True),))


@gluon.jit
def keys_consumer(
    memory, dk_to, dv_to, scale_log2e, scale, sizes,
    CAUSAL: gl.constexpr, WIDE: gl.constexpr, OVER: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dV, the first, or dK, the second, of 64 keys over all rows that see them."""
    kv, q, do, rows, p, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, CAUSAL)
    n = group * (T_r - first)
    if ME == 0:
        cut = group * (T_r - whole), group, first * TILE + 1 + N_k - N_q - j * TILE
        dV = sum_dV(memory, n, cut, scale_log2e, CAUSAL, OVER)
        copy_out(dV, dv_to, kv.index(0), head, H_k, j * TILE, N_k, WIDE)
    else:
        dK = sum_dK(memory, n, OVER) * scale
        copy_out(dK, dk_to, kv.index(1), head, H_k, j * TILE, N_k, WIDE)


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _dkv(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_to, dv_to, scale_log2e, scale,
    H_k, group, N_q, N_k, T_r, T_c, CAUSAL: gl.constexpr, WIDE: gl.constexpr, OVER: gl.constexpr,
):  # fmt: skip
    # dk_to, dv_to: descriptors of dK and dV; WIDE, pointers to them in fp32.
    kv = gl.allocate_shared_memory(k_desc.dtype, [2] + k_desc.block_shape, k_desc.layout)
    q = gl.allocate_shared_memory(q_desc.dtype, [2] + q_desc.block_shape, q_desc.layout)
    do = gl.allocate_shared_memory(q_desc.dtype, [2] + q_desc.block_shape, q_desc.layout)
    rows = gl.allocate_shared_memory(gl.float32, [4] + lse_desc.block_shape, lse_desc.layout)
    P_TILE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 4)
    p = gl.allocate_shared_memory(q_desc.dtype, [2, 1, 1, TILE, TILE], P_TILE)
    barriers = gl.allocate_shared_memory(gl.int64, [12, 1], mbarrier.MBarrierLayout())
    for b in gl.static_range(12):
        mbarrier.init(barriers.index(b), count=2 if b >= Q_EMPTY else 1)
    fence_async_shared()  # the copy unit sees the barriers
    memory = kv, q, do, rows, p, barriers
    descs = q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc
    sizes = H_k, group, N_q, N_k, T_r, T_c
    gl.warp_specialize([
        (keys_consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, CAUSAL, WIDE, OVER, 0)),
        (keys_consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, CAUSAL, WIDE, OVER, 1)),
        (rows_producer, (memory, descs, sizes, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip


@gluon.jit
def block_of(sizes, CAUSAL: gl.constexpr):
    """Return what a program of the pass for dQ computes: causal blocks with the most keys come first.

    That is: the head, over the batch; the first row; how many tiles of keys its rows see together, at least 1.
    """
    H, group, N_q, N_k, T_r = sizes
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    end = N_k
    if CAUSAL:
        i = T_r - 1 - i
        end = gl.minimum((i + 1) * 2 * TILE + N_k - N_q, N_k)
    return head, i * 2 * TILE, gl.maximum((end + TILE - 1) // TILE, 1)


@gluon.jit
def keys_producer(memory, descs, sizes, CAUSAL: gl.constexpr):
    """Bring the rows' Q and dO once, and tiles of K and V, from the last on, whenever a slot is free; by one warp."""
    rows, keys, barriers = memory
    q_desc, k_desc, v_desc, do_desc = descs
    H, group, N_q, N_k, T_r = sizes
    head, first, n = block_of(sizes, CAUSAL)
    b, h = head // H, head % H
    for t in range(n):
        s = t & 1
        at = [b, h // group, (n - 1 - t) * TILE, 0]
        mbarrier.wait(barriers.index(K_EMPTY + s), ((t >> 1) & 1) ^ 1)  # both are done with K(t - 2)
        fetch(k_desc, at, keys.index(s), barriers.index(K_THERE + s))
        if t == 0:
            for c in gl.static_range(2):
                at_rows = [b, h, first + c * TILE, 0]
                fetch_two(q_desc, at_rows, rows.index(c), do_desc, at_rows, rows.index(2 + c), barriers.index(ROWS_FULL + c))
        mbarrier.wait(barriers.index(V_EMPTY), (t & 1) ^ 1)  # and with V(t - 1)
        fetch(v_desc, at, keys.index(2), barriers.index(V_THERE))


@gluon.jit
def slopes_of_rows(
    S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, dtype: gl.constexpr,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Return dS as an operand. left: as in `masked`."""
    S = warpgroup_mma_wait(1, deps=(S_begun,))
    if MASKED:
        S = masked(S, left, CAUSAL, 1)
    P = gl.exp2(S * scale_log2e - lse)
    dP = warpgroup_mma_wait(0, deps=(dP_begun,))
    mbarrier.arrive(barriers.index(V_EMPTY))
    return operand((P * (dP - delta)).to(dtype))


@gluon.jit
def step(
    dQ, dS, t, lse, delta, left, memory, scale_log2e,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Add what the tile before contributes to dQ; return it and dS of this one."""
    rows, keys, barriers = memory
    s, before = t & 1, (t - 1) & 1
    zero = t >> 24  # not known to the compiler, which would keep 48 addresses of Q, dO and V, and spill others
    dQ_begun = warpgroup_mma(dS, matrix(keys.index(before)), dQ, is_async=True)
    mbarrier.wait(barriers.index(K_THERE + s), (t >> 1) & 1)
    S_begun = begin(matrix(rows.index(ME + zero)), matrix(keys.index(s)))
    mbarrier.wait(barriers.index(V_THERE), t & 1)
    dP_begun = begin(matrix(rows.index(2 + ME + zero)), matrix(keys.index(2 + zero)))
    dQ = warpgroup_mma_wait(2, deps=(dQ_begun,))
    mbarrier.arrive(barriers.index(K_EMPTY + before))
    return dQ, slopes_of_rows(
        S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, keys.dtype, CAUSAL, MASKED
    )  # fmt: skip


@gluon.jit
def rows_consumer(
    memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded,
    CAUSAL: gl.constexpr, WIDE: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dQ of 64 rows over all keys that they see."""
    rows, keys, barriers = memory
    H, group, N_q, N_k, T_r = sizes
    head, first, n = block_of(sizes, CAUSAL)
    start = first + ME * TILE
    number = head * N_padded + start + gl.arange(0, TILE, layout=gl.SliceLayout(1, S_LAYOUT))
    lse, delta = gl.load(lse_ptr + number)[:, None], gl.load(delta_ptr + number)[:, None]
    dQ = gl.zeros([TILE, D], gl.float32, SUM)
    left = (start + 1 + N_k - N_q if CAUSAL else N_k) - (n - 1) * TILE
    mbarrier.wait(barriers.index(ROWS_FULL + ME), 0)
    mbarrier.wait(barriers.index(K_THERE), 0)
    zero = n >> 24
    S_begun = begin(matrix(rows.index(ME + zero)), matrix(keys.index(zero)))
    mbarrier.wait(barriers.index(V_THERE), 0)
    dP_begun = begin(matrix(rows.index(2 + ME + zero)), matrix(keys.index(2 + zero)))
    dS = slopes_of_rows(S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, keys.dtype, CAUSAL, True)
    cut = 1  # tiles that a row does not see whole
    if CAUSAL:
        cut = gl.minimum(n, gl.maximum(1, n - gl.maximum(first + 1 + N_k - N_q, 0) // TILE))
        for t in range(1, cut):
            left += TILE
            dQ, dS = step(dQ, dS, t, lse, delta, left, memory, scale_log2e, CAUSAL, True, ME)
    for t in range(cut, n):
        dQ, dS = step(dQ, dS, t, lse, delta, 0, memory, scale_log2e, CAUSAL, False, ME)
    dQ_begun = warpgroup_mma(dS, matrix(keys.index((n - 1) & 1)), dQ, is_async=True)
    dQ = warpgroup_mma_wait(0, deps=(dQ_begun,)) * scale
    copy_out(dQ, dq_to, rows.index(ME), head, H, start, N_q, WIDE)


@gluon.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r", "N_padded"])
def _dq(
    q_desc, k_desc, v_desc, do_desc, lse_ptr, delta_ptr, dq_to, scale_log2e, scale,
    H, group, N_q, N_k, T_r, N_padded, CAUSAL: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    # dq_to: a descriptor of dQ; WIDE, a pointer to it in fp32.
    rows = gl.allocate_shared_memory(q_desc.dtype, [4] + q_desc.block_shape, q_desc.layout)  # Q, then dO
    keys = gl.allocate_shared_memory(k_desc.dtype, [3] + k_desc.block_shape, k_desc.layout)  # K, then V
    barriers = gl.allocate_shared_memory(gl.int64, [8, 1], mbarrier.MBarrierLayout())
    for b in gl.static_range(8):
        mbarrier.init(barriers.index(b), count=2 if b >= V_EMPTY else 1)
    fence_async_shared()  # the copy unit sees the barriers
    memory = rows, keys, barriers
    sizes = H, group, N_q, N_k, T_r
    descs = q_desc, k_desc, v_desc, do_desc
    gl.warp_specialize([
        (rows_consumer, (memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded, CAUSAL, WIDE, 0)),
        (rows_consumer, (memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded, CAUSAL, WIDE, 1)),
        (keys_producer, (memory, descs, sizes, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
