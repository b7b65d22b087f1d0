"""Rung 1: eight warps, all alike, request tiles from the copy unit, have five products computed, add dQ to HBM.

New compared with the forward's first rung: a program keeps 128 keys and walks over the rows, since dK and dV sum
over rows. Scores are transposed, keys as rows: P^T and dS^T are in registers as the products for dV and dK need
their left operand. dQ = dS K needs dS not transposed, so dS^T goes through shared memory, from which the tensor
cores read it transposed. Warps wait at once for each product and for each addition to dQ in HBM, to which all
programs of a head add.

    barrier       count  who arrives, and when                 who waits, for which parity
    kv_full       1      who asks for it + bytes of K, V       all warps     0: one block of keys, one phase
    rows_full[s]  1      the same + bytes of Q(g), lse         all warps     round & 1, round = g // 2
    do_full[s]    1      the same + bytes of dO(g), delta      all warps     round & 1
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
    rung = _alike, finish.from_rows
    return launch(*rung, Q, K, V, O, lse, dO, dlse=dlse, causal=causal, scale=scale, keys=128)


@gluon.jit
def step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL: gl.constexpr, MASKED: gl.constexpr):
    """S and P, then dV, then dP and dS, then dK, then dQ: one after the other."""
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
    S = warpgroup_mma_wait(0, deps=(tiles.begin(k, q, S_LAYOUT),))
    S = tiles.seen(S, g, cut, CAUSAL, MASKED)
    P = gl.exp2(S * scale_log2e - tiles.vector(rows.index(s)).load(BY_ROW)[None, :])
    mbarrier.wait(barriers.index(tiles.DO_FULL + s), there)  # dO(g) and delta are there
    P_low = tiles.operand(P.to(qo.dtype), SUM)
    dV = warpgroup_mma_wait(0, deps=(warpgroup_mma(P_low, do, dV, is_async=True),))
    dP = warpgroup_mma_wait(0, deps=(tiles.begin(v, do, S_LAYOUT),))
    dS = (P * (dP - tiles.vector(rows.index(2 + s)).load(BY_ROW)[None, :])).to(qo.dtype)
    dS_slot.store(dS)
    fence_async_shared()  # the tensor cores see what was stored
    dK = warpgroup_mma_wait(0, deps=(warpgroup_mma(tiles.operand(dS, SUM), q, dK, is_async=True),))
    gl.barrier()  # all warps have stored dS(g), and are past the products that read slots s of Q and dO
    zero = gl.zeros([64, D], gl.float32, DQ_LAYOUT)
    dQ_begun = warpgroup_mma(dS_slot.permute((1, 0)), k, zero, use_acc=False, is_async=True)
    tiles.add_rows(warpgroup_mma_wait(0, deps=(dQ_begun,)), sums, 0)
    return dK, dV


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _alike(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_desc, dv_desc, dq_ptr, scale_log2e, scale,
    H_k, group, N_q, N_k, T_r, T_c, B_R: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    D: gl.constexpr = q_desc.block_shape[3]
    SUM: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, D, 16])
    memory = tiles.shared(q_desc, k_desc, lse_desc, 1)
    kv, qo, rows, ds, barriers = memory
    gl.barrier()  # all warps see the barriers
    descs = q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc
    sizes = H_k, group, N_q, N_k, T_r, T_c
    head, j, first, whole = tiles.work(sizes, B_R, CAUSAL)
    n_whole, n, cut = tiles.limits(j * tiles.KEYS, first, whole, sizes, B_R, CAUSAL)
    tiles.fetch_keys(memory, descs, sizes, B_R, CAUSAL)
    for g in range(gl.minimum(n, 2)):  # as far ahead as there are slots
        tiles.fetch_rows(g, memory, descs, sizes, B_R, CAUSAL)
    dK = gl.zeros([tiles.KEYS, D], gl.float32, SUM)
    dV = gl.zeros([tiles.KEYS, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(tiles.KV_FULL), 0)  # K and V are there
    for g in range(0 if CAUSAL else n_whole):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL, False)
        if g + 2 < n:
            tiles.fetch_rows(g + 2, memory, descs, sizes, B_R, CAUSAL)
    for g in range(0 if CAUSAL else n_whole, n):
        sums = tiles.sums_of(g, dq_ptr, sizes, B_R, D, CAUSAL)
        dK, dV = step(dK, dV, g, memory, sums, cut, scale_log2e, CAUSAL, True)
        if g + 2 < n:
            tiles.fetch_rows(g + 2, memory, descs, sizes, B_R, CAUSAL)
    gl.barrier()  # all warps are past the products that read K and V
    at = [head // H_k, head % H_k, j * tiles.KEYS, 0]
    tiles.store(dV, kv.index(1), dv_desc, at)
    tiles.store(dK * scale, kv.index(0), dk_desc, at)
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has
