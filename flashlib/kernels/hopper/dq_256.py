"""Gradients of heads of 256 numbers for Hopper, the pass for dQ: in Gluon, with roles for warps.

`dkv_256` explains why there are two passes. Here a program has 128 rows of a head, 64 for each of two consumers:
their Q and dO stay, and tiles of 64 keys stream past, from the last on. Tile t of K is in slot t % 2, in round
t // 2; V has only one slot. Scores have rows as rows: dS, in the registers where it was computed, is the left
operand of dQ += dS K. Phases as in `forward`.

    barrier       count   who arrives, and when               who waits, for which parity   until then
    rows_full[c]  1       producer + bytes of Q, dO of c      consumer c      0             nothing to multiply
    k_full[s]     1       producer + bytes of K(t)            consumers       round & 1     no K to multiply
    v_full        1       producer + bytes of V(t)            consumers       t & 1         no V to multiply
    k_empty[s]    2       each consumer, its dQ(t) done       producer        round & 1 ^1  K(t - 2) is read
    v_empty       2       each consumer, its dP(t) done       producer        t & 1 ^1      V(t - 1) is read

dQ's product for one tile begins together with S and dP of the next: the tensor cores have work while a consumer
waits to learn that it is done. dQ goes into the slot of the rows' Q; WIDE, threads write it in fp32.
Source: FlashAttention-2, Algorithm 2, with the loops the other way round.
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
ROWS_FULL, K_FULL, V_FULL = gl.constexpr(0), gl.constexpr(2), gl.constexpr(4)
K_EMPTY, V_EMPTY = gl.constexpr(5), gl.constexpr(7)


@gluon.jit
def block_of(sizes, CAUSAL: gl.constexpr):
    """Return the work of a program of the pass for dQ; causal blocks with the most keys come first.

    The work is a head, over the batch; the first row; how many tiles of keys its rows see together, at least 1.
    """
    H, group, N_q, N_k, T_r = sizes
    head, i = gl.program_id(0) // T_r, gl.program_id(0) % T_r
    end = N_k
    if CAUSAL:
        i = T_r - 1 - i
        end = gl.minimum((i + 1) * 2 * TILE + N_k - N_q, N_k)
    return head, i * 2 * TILE, gl.maximum((end + TILE - 1) // TILE, 1)


@gluon.jit
def producer(memory, descs, sizes, CAUSAL: gl.constexpr):
    """Bring the rows' Q and dO once, and tiles of K and V whenever a slot is free; one warp does this."""
    rows, keys, barriers = memory
    q_desc, k_desc, v_desc, do_desc = descs
    H, group, N_q, N_k, T_r = sizes
    head, first, n = block_of(sizes, CAUSAL)
    b, h = head // H, head % H
    for t in range(n):
        s = t & 1
        at = [b, h // group, (n - 1 - t) * TILE, 0]
        mbarrier.wait(barriers.index(K_EMPTY + s), ((t >> 1) & 1) ^ 1)  # both are done with K(t - 2)
        tiles.fetch(k_desc, at, keys.index(s), barriers.index(K_FULL + s))
        if t == 0:
            for c in gl.static_range(2):
                at_rows = [b, h, first + c * TILE, 0]
                full = barriers.index(ROWS_FULL + c)
                tiles.fetch_two(q_desc, at_rows, rows.index(c), do_desc, at_rows, rows.index(2 + c), full)
        mbarrier.wait(barriers.index(V_EMPTY), (t & 1) ^ 1)  # and with V(t - 1)
        tiles.fetch(v_desc, at, keys.index(2), barriers.index(V_FULL))


@gluon.jit
def slopes_of_rows(
    S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, dtype: gl.constexpr,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Return dS as an operand. left: as in `masked`."""
    S = warpgroup_mma_wait(1, deps=(S_begun,))
    if MASKED:
        S = tiles.masked(S, left, CAUSAL, 1)
    P = gl.exp2(S * scale_log2e - lse)
    dP = warpgroup_mma_wait(0, deps=(dP_begun,))
    mbarrier.arrive(barriers.index(V_EMPTY))
    return tiles.operand((P * (dP - delta)).to(dtype))


@gluon.jit
def step(
    dQ, dS, t, lse, delta, left, memory, scale_log2e,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Add the contribution of the previous tile to dQ; return dQ and dS of this tile."""
    rows, keys, barriers = memory
    s, before = t & 1, (t - 1) & 1
    zero = t >> 24  # not known to the compiler, which would keep 48 addresses of Q, dO and V, and spill others
    dQ_begun = warpgroup_mma(dS, tiles.matrix(keys.index(before)), dQ, is_async=True)
    mbarrier.wait(barriers.index(K_FULL + s), (t >> 1) & 1)
    S_begun = tiles.begin(tiles.matrix(rows.index(ME + zero)), tiles.matrix(keys.index(s)))
    mbarrier.wait(barriers.index(V_FULL), t & 1)
    dP_begun = tiles.begin(tiles.matrix(rows.index(2 + ME + zero)), tiles.matrix(keys.index(2 + zero)))
    dQ = warpgroup_mma_wait(2, deps=(dQ_begun,))
    mbarrier.arrive(barriers.index(K_EMPTY + before))
    return dQ, slopes_of_rows(
        S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, keys.dtype, CAUSAL, MASKED
    )  # fmt: skip


@gluon.jit
def consumer(
    memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded,
    CAUSAL: gl.constexpr, WIDE: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dQ of 64 rows over all keys that they see."""
    rows, keys, barriers = memory
    H, group, N_q, N_k, T_r = sizes
    head, first, n = block_of(sizes, CAUSAL)
    start = first + ME * TILE
    number = head * N_padded + start + gl.arange(0, TILE, layout=gl.SliceLayout(1, tiles.S_LAYOUT))
    lse, delta = gl.load(lse_ptr + number)[:, None], gl.load(delta_ptr + number)[:, None]
    dQ = gl.zeros([TILE, tiles.D], gl.float32, tiles.SUM)
    left = (start + 1 + N_k - N_q if CAUSAL else N_k) - (n - 1) * TILE
    mbarrier.wait(barriers.index(ROWS_FULL + ME), 0)
    mbarrier.wait(barriers.index(K_FULL), 0)
    zero = n >> 24
    S_begun = tiles.begin(tiles.matrix(rows.index(ME + zero)), tiles.matrix(keys.index(zero)))
    mbarrier.wait(barriers.index(V_FULL), 0)
    dP_begun = tiles.begin(tiles.matrix(rows.index(2 + ME + zero)), tiles.matrix(keys.index(2 + zero)))
    dS = slopes_of_rows(S_begun, dP_begun, lse, delta, left, barriers, scale_log2e, keys.dtype, CAUSAL, True)
    cut = 1  # tiles that some row does not see completely
    if CAUSAL:
        cut = gl.minimum(n, gl.maximum(1, n - gl.maximum(first + 1 + N_k - N_q, 0) // TILE))
        for t in range(1, cut):
            left += TILE
            dQ, dS = step(dQ, dS, t, lse, delta, left, memory, scale_log2e, CAUSAL, True, ME)
    for t in range(cut, n):
        dQ, dS = step(dQ, dS, t, lse, delta, 0, memory, scale_log2e, CAUSAL, False, ME)
    dQ_begun = warpgroup_mma(dS, tiles.matrix(keys.index((n - 1) & 1)), dQ, is_async=True)
    dQ = warpgroup_mma_wait(0, deps=(dQ_begun,)) * scale
    tiles.copy_out(dQ, dq_to, rows.index(ME), head, H, start, N_q, WIDE)


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
        mbarrier.init(barriers.index(b), count=2 if b >= K_EMPTY else 1)
    fence_async_shared()  # the copy unit sees the barriers
    memory = rows, keys, barriers
    sizes = H, group, N_q, N_k, T_r
    descs = q_desc, k_desc, v_desc, do_desc
    gl.warp_specialize([
        (consumer, (memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded, CAUSAL, WIDE, 0)),
        (consumer, (memory, dq_to, lse_ptr, delta_ptr, scale_log2e, scale, sizes, N_padded, CAUSAL, WIDE, 1)),
        (producer, (memory, descs, sizes, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
