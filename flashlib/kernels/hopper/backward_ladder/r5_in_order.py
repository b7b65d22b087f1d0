"""Rung 5: the sums of dQ are in HBM in the order of the registers, so that four numbers are added at a time.

A row of dQ is spread over the threads of a warp in pairs: rung 4 adds two numbers per instruction. But nobody
reads the sums before the last pass, which converts them to bf16 anyway. So each thread adds its own numbers, four
side by side, and a warp 512 contiguous bytes: half as many instructions for as many bytes. A thread that adds must
wait until its instruction is accepted, which is where the time goes.

Roles and barriers are as in rung 4.
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
    rung = _in_order, finish.from_registers
    return launch(*rung, Q, K, V, O, lse, dO, dlse=dlse, causal=causal, scale=scale)


@gluon.jit
def add_half(dQ, sums):
    """Add half of dQ in the order of registers: each thread adds its own numbers, four at a time, side by side.

    A product gives a thread two neighbours in a row, and two more eight rows below. For the sums it does not
    matter where each number is, as long as all programs agree; `finish.from_registers` puts them into order.
    """
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    x = dQ.reshape([4, 2, 8, 8, 4, 2]).permute([3, 0, 2, 4, 1, 5]).reshape([64 * 64])
    x = gl.convert_layout(x, LAYOUT, assert_trivial=True)  # no number moves
    gl.atomic_add(sums + gl.arange(0, 64 * 64, layout=LAYOUT), x, sem="relaxed")


@gluon.jit
def step(
    dK, dV, g, memory, sums, cut, scale_log2e, ME: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Do the same as rung 4, but add dQ in the order of registers."""
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
    mbarrier.arrive(barriers.index(tiles.DS_FULL + s))
    dK_begun = warpgroup_mma(tiles.operand(dS, SUM), q, dK, is_async=True)
    dV, dK = warpgroup_mma_wait(0, deps=(dV_begun, dK_begun))
    mbarrier.arrive(barriers.index(tiles.EMPTY + s))
    mbarrier.wait(barriers.index(tiles.DS_FULL + s), there)  # dS(g) of all 128 keys is there
    dQ = warpgroup_mma_wait(0, deps=(half_of_dq(kv, ds, s, ME, S_LAYOUT),))
    add_half(dQ, sums + ME * 64 * 64)
    return dK, dV


@gluon.jit
def half_of_dq(kv, ds, s, ME: gl.constexpr, DQ_LAYOUT: gl.constexpr):
    """Have the tensor cores begin my half of dQ's columns, over the keys of both consumers."""
    acc = gl.zeros([64, 64], gl.float32, DQ_LAYOUT)
    for c in gl.static_range(2):
        columns = tiles.matrix(kv.index(c)).slice(ME * 64, 64, dim=1)
        dS = tiles.matrix(ds.index(s * 2 + c))
        acc = warpgroup_mma(dS.permute((1, 0)), columns, acc, use_acc=c > 0, is_async=True)
    return acc


@gluon.jit
def consumer(
    memory, dk_desc, dv_desc, dq_ptr, scale_log2e, scale, sizes,
    B_R: gl.constexpr, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dK and dV of 64 keys over the rows that see them, and add to half of dQ on the way."""
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
    mbarrier.arrive(barriers.index(tiles.K_DONE))
    at = [head // H_k, head % H_k, start, 0]
    tiles.store(dV, kv.index(2 + ME), dv_desc, at)  # in the slot of V, which nobody else reads
    mbarrier.wait(barriers.index(tiles.K_DONE), 0)  # the other is past its last product with my K
    tiles.store(dK * scale, kv.index(ME), dk_desc, at)
    tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c"])
def _in_order(
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
