"""Rung 3: two consumers of four warps, each with 64 keys, which do not wait for each other.

In rung 2 all eight warps begin their products together, and all compute exponentials together. Here each group
goes at its own pace: while one computes, the other may have the tensor cores. They do not take turns, as the
forward's consumers do: five products for two stretches of arithmetic leave fewer gaps to fill. A consumer's dS^T
covers its own 64 keys, and so does the dQ that it adds: all 64 rows and 128 columns of it. So every number of dQ
is added to twice as often as in rung 2, which makes this rung the slower one: rung 4 adds less.

    barrier       count  who arrives, and when                 who waits, for which parity
    kv_full       1      producer + bytes of K, V              consumers   0
    rows_full[s]  1      producer + bytes of Q(g), lse         consumers   round & 1, round = g // 2
    do_full[s]    1      producer + bytes of dO(g), delta      consumers   round & 1
    empty[s]      2      each consumer, its dK, dV(g) done     producer    (round & 1) ^ 1: Q, dO(g - 2) are read

The producer is rung 2's, whose code it runs.
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

from flashlib.kernels.hopper.backward_ladder import finish, launch, r2_producer, tiles
from flashlib.types import Grads


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, *,
    dlse: torch.Tensor | None = None, causal: bool = False, scale: float | None = None,
) -> Grads:  # fmt: skip
    """Return Grads(dQ, dK, dV); see `backward_ladder.launch`."""
    rung = _two_consumers, finish.from_rows
    return launch(*rung, Q, K, V, O, lse, dO, dlse=dlse, causal=causal, scale=scale)


@gluon.jit
def step(
    dK, dV, g, memory, sums, cut, scale_log2e, ME: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Do the same as rung 2, for 64 keys: the whole dQ of these keys is added."""
    kv, qo, rows, ds, barriers = memory
    SUM: gl.constexpr = dK.type.layout
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(0, S_LAYOUT)
    k, v = tiles.matrix(kv.index(ME)), tiles.matrix(kv.index(2 + ME))
    s = g & 1
    there = (g >> 1) & 1
    q, do, dS_slot = tiles.matrix(qo.index(s)), tiles.matrix(qo.index(2 + s)), tiles.matrix(ds.index(s * 2 + ME))
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
    gl.barrier()  # my four warps have stored dS(g)
    D: gl.constexpr = dK.type.shape[1]
    zero = gl.zeros([64, D], gl.float32, SUM)
    dQ_begun = warpgroup_mma(dS_slot.permute((1, 0)), k, zero, use_acc=False, is_async=True)
    tiles.add_rows(warpgroup_mma_wait(0, deps=(dQ_begun,)), sums, 0)
    return dK, dV


@gluon.jit
def consumer(
    memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dK and dV of 64 keys over the rows that see them, and add to dQ on the way."""
    kv, qo, rows, ds, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    D: gl.constexpr = qo.type.shape[4]
    SUM: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    head, j, first, whole = tiles.work(sizes, B_R, CAUSAL)
    start = j * tiles.KEYS + ME * 64
    n_whole, n, cut = tiles.limits(start, first, whole, sizes, B_R, CAUSAL)
    dK = gl.zeros([64, D], gl.float32, SUM)
    dV = gl.zeros([64, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(tiles.KV_FULL), 0)  # K and V are there
    for g in range(0 if CAUSAL else n_whole):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, ME, CAUSAL, False)
    for g in range(0 if CAUSAL else n_whole, n):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, ME, CAUSAL, True)
    at = [head // H_k, head % H_k, start, 0]
    tiles.store(dV, kv.index(2 + ME), dv_desc, at)
    tiles.store(dK * scale, kv.index(ME), dk_desc, at)
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _two_consumers(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_desc, dv_desc, dq_ptr, scale_log2e, scale,
    H_k, group, N_q, N_k, T_r, T_c, B_R: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    memory = tiles.shared(q_desc, k_desc, lse_desc, 2)
    descs = q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc
    sizes = H_k, group, N_q, N_k, T_r, T_c
    gl.warp_specialize([
        (consumer, (memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes, B_R, CAUSAL, 0)),
        (consumer, (memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes, B_R, CAUSAL, 1)),
        (r2_producer.producer, (memory, descs, sizes, B_R, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip
