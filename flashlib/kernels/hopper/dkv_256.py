"""Gradients of heads of 256 numbers for Hopper, the pass for dK and dV: in Gluon, with roles for warps.

At d = 256, dK and dV of 64 keys take half of a multiprocessor's registers, and with only 64 keys a program with
five products, as in `backward`, would add to dQ in HBM as often as it reads Q. So there are two passes, this and
`dq_256`; each computes S and dP, and the result has the same bits every time.

A program has 64 keys of a head of K and V, and streams tiles of 64 rows of Q and dO past them, of all query heads
that read them; tile g is in slot g % 2, in round g // 2. Each of two consumers has two products, one of which it
sums: consumer 0 computes S^T = K Q^T, P^T and dV += P^T dO; consumer 1 dP^T = V dO^T, dS^T and dK += dS^T Q. P^T
goes from one to the other through shared memory. Phases as in `forward`.

    barrier       count   who arrives, and when               who waits, for which parity   until then
    k_full        1       producer + bytes of K               consumer 0      0             nothing to multiply
    v_full        1       producer + bytes of V               consumer 1      0             nothing to multiply
    q_full[s]     1       producer + bytes of Q(g), lse       consumers       round & 1     no Q to multiply
    do_full[s]    1       producer + bytes of dO(g), delta    consumers       round & 1     no dO to multiply
    p_full[s]     1       consumer 0, P(g) stored             consumer 1      round & 1     no P to multiply with
    q_empty[s]    2       0: its S(g) done; 1: its dK(g)      producer        round & 1 ^1  Q(g - 2) is read
    do_empty[s]   2       0: its dV(g) done; 1: its dP(g)     producer        round & 1 ^1  dO(g - 2) is read

A sum's product for one tile begins together with the next tile's first product, so that the tensor cores have work
while a consumer waits to learn that a product is done. Consumer 0 computes P under the sum's product. Consumer 1
does not compute dS like that: it waits for P first, and dK's product would occupy Q's slot all the while; that was
6 to 12 % slower.

No barrier has to make sure that P(g - 2) is read before P(g) takes its slot: P(g) needs Q(g), which came
when consumer 1 was done with Q(g - 2), and it was done with P(g - 2) before. dV goes into the slot of K, which
only consumer 0 reads, dK into that of V. WIDE: both are returned in fp32; threads write them.
Sources: FlashAttention-2, Algorithm 2; FlashAttention-3 (Shah and others, 2024), section 3.1 and appendix B.1.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from flashlib.kernels.hopper import tiles_256 as tiles

TILE = tiles.TILE
# Barriers are in one array, as are tiles of one shape: the fewer addresses a role keeps in registers, the better.
K_FULL, V_FULL, Q_FULL, DO_FULL = gl.constexpr(0), gl.constexpr(1), gl.constexpr(2), gl.constexpr(4)
P_FULL, Q_EMPTY, DO_EMPTY = gl.constexpr(6), gl.constexpr(8), gl.constexpr(10)


@gluon.jit
def work(sizes, CAUSAL: gl.constexpr):
    """Return the work of a program of the pass for dK and dV; causal blocks with the most rows come first.

    The work is a head of K and V, over the batch; a block of keys; the first row block that sees a key of it; the
    first row block whose rows see all of them.
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
    """Return the row block of tile g, and its head; whole tiles come first."""
    i = whole + g // group
    return i - (T_r - first if i >= T_r else 0), g % group


@gluon.jit
def producer(memory, descs, sizes, CAUSAL: gl.constexpr):
    """Bring K and V once, and the rows' tiles whenever a slot is free; one warp does this."""
    kv, q, do, rows, p, barriers = memory
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, CAUSAL)
    b, h_k = head // H_k, head % H_k
    tiles.fetch(k_desc, [b, h_k, j * TILE, 0], kv.index(0), barriers.index(K_FULL))
    for g in range(group * (T_r - first)):
        s = g & 1
        free = ((g >> 1) & 1) ^ 1
        i, member = rows_of(g, first, whole, T_r, group)
        at = [b, h_k * group + member, i * TILE, 0]
        row_at = [head * group + member, i * TILE]
        mbarrier.wait(barriers.index(Q_EMPTY + s), free)  # both are done with Q(g - 2)
        tiles.fetch_two(q_desc, at, q.index(s), lse_desc, row_at, rows.index(s), barriers.index(Q_FULL + s))
        if g == 0:
            tiles.fetch(v_desc, [b, h_k, j * TILE, 0], kv.index(1), barriers.index(V_FULL))
        mbarrier.wait(barriers.index(DO_EMPTY + s), free)  # and with dO(g - 2)
        tiles.fetch_two(
            do_desc, at, do.index(s), delta_desc, row_at, rows.index(2 + s), barriers.index(DO_FULL + s)
        )


@gluon.jit
def numbers(rows, s):
    """Return a number for each row of a tile, lse or delta: a row is a column of S^T."""
    return rows.index(s).reshape([TILE]).load(gl.SliceLayout(0, tiles.S_LAYOUT))[None, :]


@gluon.jit
def weights(S, lse, g, memory, cut, scale_log2e, CAUSAL: gl.constexpr):
    """Hand P^T of tile g over to consumer 1; return it as an operand. Q has been read, to compute S."""
    kv, q, do, rows, p, barriers = memory
    s = g & 1
    mbarrier.arrive(barriers.index(Q_EMPTY + s))
    if CAUSAL:
        n_whole, group, left = cut
        if g >= n_whole:
            S = tiles.masked(S, left + (g - n_whole) // group * TILE, True, 0)
    P = gl.exp2(S * scale_log2e - lse).to(p.dtype)
    tiles.matrix(p.index(s)).store(P)
    mbarrier.arrive(barriers.index(P_FULL + s))
    return tiles.operand(P)


@gluon.jit
def sum_dV(memory, n, cut, scale_log2e, CAUSAL: gl.constexpr):
    """Return dV of the program's keys, and hand P of each tile to the consumer that sums dK."""
    kv, q, do, rows, p, barriers = memory
    k = tiles.matrix(kv.index(0))
    dV = gl.zeros([TILE, tiles.D], gl.float32, tiles.SUM)
    mbarrier.wait(barriers.index(K_FULL), 0)
    mbarrier.wait(barriers.index(Q_FULL), 0)
    S = warpgroup_mma_wait(0, deps=(tiles.begin(k, tiles.matrix(q.index(0))),))
    P = weights(S, numbers(rows, 0), 0, memory, cut, scale_log2e, CAUSAL)
    for g in range(1, n):
        s, before = g & 1, (g - 1) & 1
        mbarrier.wait(barriers.index(DO_FULL + before), ((g - 1) >> 1) & 1)
        mbarrier.wait(barriers.index(Q_FULL + s), (g >> 1) & 1)
        S_begun = tiles.begin(k, tiles.matrix(q.index(s)))
        dV_begun = warpgroup_mma(P, tiles.matrix(do.index(before)), dV, is_async=True)
        lse = numbers(rows, s)
        S = warpgroup_mma_wait(1, deps=(S_begun,))
        P = weights(S, lse, g, memory, cut, scale_log2e, CAUSAL)
        dV = warpgroup_mma_wait(0, deps=(dV_begun,))
        mbarrier.arrive(barriers.index(DO_EMPTY + before))
    mbarrier.wait(barriers.index(DO_FULL + ((n - 1) & 1)), ((n - 1) >> 1) & 1)
    return warpgroup_mma_wait(0, deps=(warpgroup_mma(P, tiles.matrix(do.index((n - 1) & 1)), dV, is_async=True),))


@gluon.jit
def slopes(dP, delta, g, memory):
    """Return dS^T of tile g as an operand, using the P^T of consumer 0. dO has been read, to compute dP."""
    kv, q, do, rows, p, barriers = memory
    s = g & 1
    mbarrier.arrive(barriers.index(DO_EMPTY + s))
    mbarrier.wait(barriers.index(P_FULL + s), (g >> 1) & 1)
    P = tiles.matrix(p.index(s)).load(tiles.S_LAYOUT)
    return tiles.operand((P.to(gl.float32) * (dP - delta)).to(p.dtype))


@gluon.jit
def sum_dK(memory, n):
    """Return dK of the program's keys, without scale."""
    kv, q, do, rows, p, barriers = memory
    v = tiles.matrix(kv.index(1))
    dK = gl.zeros([TILE, tiles.D], gl.float32, tiles.SUM)
    mbarrier.wait(barriers.index(V_FULL), 0)
    mbarrier.wait(barriers.index(DO_FULL), 0)
    dP = warpgroup_mma_wait(0, deps=(tiles.begin(v, tiles.matrix(do.index(0))),))
    dS = slopes(dP, numbers(rows, 2), 0, memory)
    for g in range(1, n):
        s, before = g & 1, (g - 1) & 1
        mbarrier.wait(barriers.index(Q_FULL + before), ((g - 1) >> 1) & 1)
        dK_begun = warpgroup_mma(dS, tiles.matrix(q.index(before)), dK, is_async=True)
        mbarrier.wait(barriers.index(DO_FULL + s), (g >> 1) & 1)
        dP_begun = tiles.begin(v, tiles.matrix(do.index(s)))
        delta = numbers(rows, 2 + s)
        dK = warpgroup_mma_wait(1, deps=(dK_begun,))
        mbarrier.arrive(barriers.index(Q_EMPTY + before))
        dP = warpgroup_mma_wait(0, deps=(dP_begun,))
        dS = slopes(dP, delta, g, memory)
    mbarrier.wait(barriers.index(Q_FULL + ((n - 1) & 1)), ((n - 1) >> 1) & 1)
    return warpgroup_mma_wait(0, deps=(warpgroup_mma(dS, tiles.matrix(q.index((n - 1) & 1)), dK, is_async=True),))


@gluon.jit
def consumer(
    memory, dk_to, dv_to, scale_log2e, scale, sizes,
    CAUSAL: gl.constexpr, WIDE: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dV (the first consumer) or dK (the second) of 64 keys over all rows that see them."""
    kv, q, do, rows, p, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = work(sizes, CAUSAL)
    n = group * (T_r - first)
    if ME == 0:
        cut = group * (T_r - whole), group, first * TILE + 1 + N_k - N_q - j * TILE
        dV = sum_dV(memory, n, cut, scale_log2e, CAUSAL)
        tiles.copy_out(dV, dv_to, kv.index(0), head, H_k, j * TILE, N_k, WIDE)
    else:
        dK = sum_dK(memory, n) * scale
        tiles.copy_out(dK, dk_to, kv.index(1), head, H_k, j * TILE, N_k, WIDE)


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _dkv(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_to, dv_to, scale_log2e, scale,
    H_k, group, N_q, N_k, T_r, T_c, CAUSAL: gl.constexpr, WIDE: gl.constexpr,
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
        (consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, CAUSAL, WIDE, 0)),
        (consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, CAUSAL, WIDE, 1)),
        (producer, (memory, descs, sizes, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
