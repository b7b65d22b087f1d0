"""Rung 2: one warp, the producer, brings the tiles; eight warps, the consumer, multiply, compute and add.

As in the forward: the reader of a slot signals when it is free, and the warp that requests tiles does nothing
else. And products begin before the previous one has ended: dP runs under the exponentials, dV under the arithmetic
of dS, and dK while dS goes through shared memory. A consumer's threads need 128 registers for dK and dV alone, so
the producer gives up those that it does not need.

    barrier       count  who arrives, and when                 who waits, for which parity
    kv_full       1      producer + bytes of K, V              consumer   0: one block of keys, one phase
    rows_full[s]  1      producer + bytes of Q(g), lse         consumer   round & 1, round = g // 2
    do_full[s]    1      producer + bytes of dO(g), delta      consumer   round & 1
    empty[s]      1      consumer, its dK, dV(g) are done      producer   (round & 1) ^ 1: Q, dO(g - 2) are read
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

from flashlib.kernels.hopper.backward_ladder import finish, launch, tiles
from flashlib.types import Grads


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, *,
    dlse: torch.Tensor | None = None, causal: bool = False, scale: float | None = None,
) -> Grads:  # fmt: skip
    """Return Grads(dQ, dK, dV); see `backward_ladder.launch`."""
    rung = _with_producer, finish.from_rows
    return launch(*rung, Q, K, V, O, lse, dO, dlse=dlse, causal=causal, scale=scale, keys=128)


@gluon.jit
def producer(memory, descs, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring K and V once, and the rows' tiles whenever a slot is free."""
    kv, qo, rows, ds, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    head, j, first, whole = tiles.work(sizes, B_R, CAUSAL)
    tiles.fetch_keys(memory, descs, sizes, B_R, CAUSAL)
    for g in range(group * (T_r - first)):
        mbarrier.wait(barriers.index(tiles.EMPTY + (g & 1)), ((g >> 1) & 1) ^ 1)  # Q and dO of g - 2 are read
        tiles.fetch_rows(g, memory, descs, sizes, B_R, CAUSAL)


@gluon.jit
def step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL: gl.constexpr, MASKED: gl.constexpr):
    """Begin S and dP; P under dP, then dV; dS under dV, then dK; signal that the slots are free; dQ."""
    kv, qo, rows, ds, barriers = memory
    D: gl.constexpr = dK.type.shape[1]
    SUM: gl.constexpr = dK.type.layout
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, 64, 16])
    DQ_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 2], [16, 64, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(0, S_LAYOUT)
    k, v = tiles.matrix(kv.index(0)), tiles.matrix(kv.index(1))
    s = g & 1
    there = (g >> 1) & 1
    q, do, dS_slot = tiles.matrix(qo.index(s)), tiles.matrix(qo.index(2 + s)), tiles.matrix(ds.index(s))
    mbarrier.wait(barriers.index(tiles.ROWS_FULL + s), there)  # Q(g) and lse are there
    S_begun = tiles.begin(k, q, S_LAYOUT)
    mbarrier.wait(barriers.index(tiles.DO_FULL + s), there)  # dO(g) and delta are there
    dP_begun = tiles.begin(v, do, S_LAYOUT)
    lse = tiles.vector(rows.index(s)).load(BY_ROW)
    S = tiles.seen(warpgroup_mma_wait(1, deps=(S_begun,)), g, cut, CAUSAL, MASKED)
    P = gl.exp2(S * scale_log2e - lse[None, :])
    dV_begun = warpgroup_mma(tiles.operand(P.to(qo.dtype), SUM), do, dV, is_async=True)
    delta = tiles.vector(rows.index(2 + s)).load(BY_ROW)
    dP = warpgroup_mma_wait(1, deps=(dP_begun,))
    dS = (P * (dP - delta[None, :])).to(qo.dtype)
    dS_slot.store(dS)
    fence_async_shared()  # the tensor cores see what was stored
    dK_begun = warpgroup_mma(tiles.operand(dS, SUM), q, dK, is_async=True)
    dV, dK = warpgroup_mma_wait(0, deps=(dV_begun, dK_begun))
    mbarrier.arrive(barriers.index(tiles.EMPTY + s))
    gl.barrier()  # all warps have stored dS(g)
    zero = gl.zeros([64, D], gl.float32, DQ_LAYOUT)
    dQ_begun = warpgroup_mma(dS_slot.permute((1, 0)), k, zero, use_acc=False, is_async=True)
    tiles.add_rows(warpgroup_mma_wait(0, deps=(dQ_begun,)), sums, 0)
    return dK, dV


@gluon.jit
def consumer(
    memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes, B_R: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    """Sum dK and dV of all keys over the rows that see them, and add to dQ on the way."""
    kv, qo, rows, ds, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    D: gl.constexpr = qo.type.shape[4]
    SUM: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, D, 16])
    head, j, first, whole = tiles.work(sizes, B_R, CAUSAL)
    n_whole, n, cut = tiles.limits(j * tiles.KEYS, first, whole, sizes, B_R, CAUSAL)
    dK = gl.zeros([tiles.KEYS, D], gl.float32, SUM)
    dV = gl.zeros([tiles.KEYS, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(tiles.KV_FULL), 0)  # K and V are there
    for g in range(0 if CAUSAL else n_whole):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL, False)
    for g in range(0 if CAUSAL else n_whole, n):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL, True)
    gl.barrier()  # all warps are past the products that read K and V
    at = [head // H_k, head % H_k, j * tiles.KEYS, 0]
    tiles.store(dV, kv.index(1), dv_desc, at)
    tiles.store(dK * scale, kv.index(0), dk_desc, at)
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _with_producer(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_desc, dv_desc, dq_ptr, scale_log2e, scale,
    H_k, group, N_q, N_k, T_r, T_c, B_R: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    memory = tiles.shared(q_desc, k_desc, lse_desc, 1)
    descs = q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc
    sizes = H_k, group, N_q, N_k, T_r, T_c
    # Warps and registers of all roles but the first, which gets what is left.
    gl.warp_specialize([
        (consumer, (memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes, B_R, CAUSAL)),
        (producer, (memory, descs, sizes, B_R, CAUSAL)),
    ], [1], [24])  # fmt: skip
