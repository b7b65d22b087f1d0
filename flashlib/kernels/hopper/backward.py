"""FlashAttention-2, backward pass, for Hopper: in Gluon, one pass and five products, with roles for warps.

A program holds 128 keys of a head of K and V: it sums their dK and dV in registers, and streams rows of Q and dO
past them, of the query heads that read these keys: all of them, or a part, whose sums `groups` then adds to those
of the other parts. A producer, one warp, requests tiles from the copy unit. Two consumers of four warps have 64
keys each. With keys as rows, S^T = K Q^T and dP^T = V dO^T become P^T and dS^T in
the very registers from which dV += P^T dO and dK += dS^T Q read them.

dQ = dS K sums over keys, so it needs the dS of both consumers. Each puts its dS^T into shared memory, and then
computes half of dQ over all 128 keys: half the columns at d = 128, half the rows at d = 64. It hands its half, in
the order of its threads, to the reducer, a warp that has the copy unit add it to sums in HBM. The finisher, two
warps, turns the sums of earlier programs into dQ: see `sums`.

Tile g, counted over the program's life, is in slot g % 2, in round g // 2. Phases as in `forward`.

    barrier       count   who arrives, and when               who waits, for which parity   until then
    kv_full       1       producer + bytes of K, V            consumers       0             nothing to multiply
    rows_full[s]  1       producer + bytes of Q(g), lse       consumers       round & 1     no Q to multiply
    do_full[s]    1       producer + bytes of dO(g), delta    consumers       round & 1     no dO to multiply
    empty[s]      2       each consumer, its dK, dV(g) done   producer        round & 1 ^1  Q, dO(g - 2) are read
    ds_full[s]    2       each consumer, its dS(g) stored     both consumers  round & 1     half of dS is missing
    dq_full[c]    1       consumer c, its half of dQ stored   reducer         g & 1         nothing to add
    dq_empty[c]   1       reducer, it has read the half       consumer c      (g & 1) ^ 1   dQ(g - 1) is read
    k_done        2       each consumer, its last dQ done     both consumers  0             K is read: room for dK
    landed[s]     1       finisher + bytes of half of sums    finisher        as rows_full  no sums to read

WIDE: dK and dV are written in fp32; consumers write them from their registers, and nobody waits for k_done.

No barrier has to make sure that dS(g - 2) is read before dS(g) takes its slot: a consumer stores dS(g) after both
stored dS(g - 1), for which it waits before its dQ(g - 1), and each did so after its products with dS(g - 2).
Sources: FlashAttention-2, Algorithm 2; FlashAttention-3 (Shah and others, 2024), section 3.1 and appendix B.1.
"""

from typing import Any

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

from flashlib.inputs import resolve_scale
from flashlib.kernels.hopper import dkv_256, dq_256, launch_256, launch_backward, sums
from flashlib.kernels.launch.inputs import check_no_gradient, uncompiled
from flashlib.private_apis.of_gluon import async_add_shared_to_global
from flashlib.types import Grads

KEYS = gl.constexpr(64)  # of a consumer: wgmma's m
HALF = sums.HALF  # elements of the half of dQ that a consumer computes
# Barriers are in one array, as are tiles of one shape: the fewer addresses a role keeps in registers, the better.
KV_FULL, K_DONE = gl.constexpr(0), gl.constexpr(1)
ROWS_FULL, DO_FULL, EMPTY, DS_FULL = gl.constexpr(2), gl.constexpr(4), gl.constexpr(6), gl.constexpr(8)
DQ_FULL, DQ_EMPTY, LANDED, BARRIERS = gl.constexpr(10), gl.constexpr(12), gl.constexpr(14), gl.constexpr(16)


@uncompiled
def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    *, dlse: torch.Tensor | None = None, delta: torch.Tensor | None = None, causal: bool = False,
    mask: None = None, scale: float | None = None, out_dtype: torch.dtype | None = None,
) -> Grads:  # fmt: skip
    """Return the same as `flashlib.kernels.backward.backward`, on a Hopper GPU, for some of its inputs.

    Q, K and V: float16 or bfloat16, d = d_v 64, 128 or 256; the last axis contiguous, start and other strides
    multiples of 16 bytes. mask: None. Raises TypeError or ValueError for others, at once. dQ is summed in any
    order; at d = 256, which has two passes, `dkv_256` and `dq_256`, always in the same order. Groups of more than
    `groups.HEADS[d]` heads need memory for dK and dV of each part, in fp32.
    Parts of rows and keys, delta and out_dtype: as there.
    """
    plan = plan_of(Q, K, V, O, lse, dO, dlse, causal, mask, delta, out_dtype)
    check_no_gradient(Q=Q, K=K, V=V)
    return run(Q, K, V, O, lse, dO, dlse, resolve_scale(scale, Q.shape[-1]), plan, delta)


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, mask: object = None, delta: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:  # fmt: skip
    """Return the plan for these tensors; raise what `backward` raises, except about gradients."""
    options = Q, K, V, O, lse, dO, dlse, delta, causal, mask, out_dtype
    if isinstance(Q, torch.Tensor) and Q.shape[-1:] == (256,):
        return launch_256.plan_of(dkv_256._dkv, dq_256._dq, *options)
    return launch_backward.plan_of(_backward, sums.finish, *options)


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, scale: float, plan: Any, delta: torch.Tensor | None = None,
) -> Grads:  # fmt: skip
    """Do what `backward` does, by its plan; nothing is checked."""
    by = launch_256 if isinstance(plan, launch_256.HopperBackward256Plan) else launch_backward
    return by.run(Q, K, V, O, lse, dO, dlse, scale, plan, delta)


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point, as `forward.pin`. PACK: elements in 32 bits."""
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
def work(sizes, last, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Return the work of a program; causal blocks with the most rows come first.

    The work is a unit of `sums`; a block of keys; the first row block that sees a key of it; the first row block
    whose rows see all of them.
    """
    H_k, group, N_q, N_k, T_r, T_c = sizes
    unit, j = sums.unit_of(T_c, last)
    first, whole = 0, 0
    if CAUSAL:
        first = gl.maximum(j * 2 * KEYS - (N_k - N_q), 0) // B_R
        whole = (gl.maximum((j + 1) * 2 * KEYS - 1 - (N_k - N_q), 0) + B_R - 1) // B_R
    if (j + 1) * 2 * KEYS > N_k:
        whole = T_r  # no row sees past the end of K
    return unit, j, first, gl.minimum(whole, T_r)


@gluon.jit
def rows_of(g, first, whole, T_r, group):
    """Return the row block of tile g, and its head among those that read these keys.

    Whole tiles come first, since the compiler finds registers for the first of two loops more easily.
    """
    i = whole + g // group
    return i - (T_r - first if i >= T_r else 0), g % group


@gluon.jit
def fetch(tile_desc, at, slot, row_desc, row_at, row_slot, full):
    """Have the copy unit bring a tile of Q or dO and a number for each of its rows; past the end come zeros."""
    mbarrier.expect(full, tile_desc.block_type.nbytes + row_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(tile_desc, at, full, slot)
    tma.async_copy_global_to_shared(row_desc, row_at, full, row_slot)


@gluon.jit
def producer(memory, descs, sizes, parts, last, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Bring K and V once, and the rows' tiles whenever a slot is free; one warp does this."""
    kv, qo, rows, ds, dq, barriers = memory
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    H_k, group, N_q, N_k, T_r, T_c = sizes
    unit, j, first, whole = work(sizes, last, B_R, CAUSAL)
    b, own = unit // H_k, unit % H_k
    full = barriers.index(KV_FULL)
    mbarrier.expect(full, 4 * k_desc.block_type.nbytes)
    for c in gl.static_range(2):
        at = [b, own // parts, (j * 2 + c) * KEYS, 0]
        tma.async_copy_global_to_shared(k_desc, at, full, kv.index(c))
        tma.async_copy_global_to_shared(v_desc, at, full, kv.index(2 + c))
    for g in range(group * (T_r - first)):
        s = g & 1
        i, member = rows_of(g, first, whole, T_r, group)
        mbarrier.wait(barriers.index(EMPTY + s), ((g >> 1) & 1) ^ 1)  # both are done with Q and dO of g - 2
        at = [b, own * group + member, i * B_R, 0]
        row_at = [unit * group + member, i * B_R]
        fetch(q_desc, at, qo.index(s), lse_desc, row_at, rows.index(s), barriers.index(ROWS_FULL + s))
        fetch(do_desc, at, qo.index(2 + s), delta_desc, row_at, rows.index(2 + s), barriers.index(DO_FULL + s))


@gluon.jit
def reducer(memory, sums_desc, counts_ptr, sizes, turns, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Have the copy unit add the consumers' halves of dQ to the unit's sums, which have the same order."""
    kv, qo, rows, ds, dq, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    lag, ring, last = turns
    unit, j, first, whole = work(sizes, last, B_R, CAUSAL)
    if unit >= ring:  # before, the buffer had the sums of another unit
        sums.wait_for(counts_ptr + (unit - ring) * 2 + 1, T_c)
        sums.fence_async()
    for g in range(group * (T_r - first)):
        i, member = rows_of(g, first, whole, T_r, group)
        half = sums.place(unit, 2 * (member * T_r + i), ring, 2 * group * T_r)
        for c in gl.static_range(2):
            mbarrier.wait(barriers.index(DQ_FULL + c), g & 1)
            async_add_shared_to_global(sums_desc, [(half + c) * sums.LINES, 0], dq.index(c))
            tma.store_wait(0)  # it has read the half
            mbarrier.arrive(barriers.index(DQ_EMPTY + c))
    sums.all_added()
    sums.count(counts_ptr + unit * 2)


@gluon.jit
def operand(x, ACC: gl.constexpr):
    """Return x as the left operand of a product summed in layout ACC, in the registers where it is."""
    LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=ACC, k_width=2)
    return pin(gl.convert_layout(x, LAYOUT, assert_trivial=True), 2)


@gluon.jit
def begin(k, q, S_LAYOUT: gl.constexpr):
    """Have the tensor cores begin K Q^T or V dO^T, (64 keys, 64 rows)."""
    zero = gl.zeros([64, 64], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(k, q.permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def begin_dq(kv, ds, s, ME: gl.constexpr, DQ_LAYOUT: gl.constexpr):
    """Have the tensor cores begin my half of dQ, over the keys of both consumers."""
    acc = gl.zeros([64, 64], gl.float32, DQ_LAYOUT)
    for c in gl.static_range(2):
        k = matrix(kv.index(c))
        if k.type.shape[1] == 64:  # my rows, all columns
            dS = matrix(ds.index(s * 4 + c * 2 + ME))
        else:  # all rows, my columns
            dS = matrix(ds.index(s * 2 + c))
            k = k.slice(ME * 64, 64, dim=1)
        acc = warpgroup_mma(dS.permute((1, 0)), k, acc, use_acc=c > 0, is_async=True)
    return acc


@gluon.jit
def hand_over(dQ, dq, barriers, g, ME: gl.constexpr):
    """Give my half of dQ(g) to the reducer: each thread stores its own numbers, four at a time, side by side."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    x = dQ.reshape([4, 2, 8, 8, 4, 2]).permute([3, 0, 2, 4, 1, 5]).reshape([HALF])
    x = gl.convert_layout(x, LAYOUT, assert_trivial=True)
    mbarrier.wait(barriers.index(DQ_EMPTY + ME), (g & 1) ^ 1)
    LINES: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    dq.index(ME).store(gl.convert_layout(x.reshape([sums.LINES, 32]), LINES, assert_trivial=True))
    fence_async_shared()  # the copy unit sees it
    mbarrier.arrive(barriers.index(DQ_FULL + ME))


@gluon.jit
def masked(S, g, row, cut, B_R: gl.constexpr, CAUSAL: gl.constexpr):
    """Return S^T of 64 rows of tile g, from row `row` on, -inf for keys past the end or, causal, the row's own.

    cut: whole tiles, heads that read these keys, how far the first key is past the first row's own, or the end.
    """
    n_whole, group, past = cut
    if CAUSAL:  # in eights of rows: every thread has some of each, so that their numbers are constants
        eights = S.reshape([64, 8, 8])
        LAYOUT: gl.constexpr = eights.type.layout
        past = past - (g - n_whole) // group * B_R - row
        keys = past + gl.arange(0, 64, layout=gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
        eight = 8 * gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
        rest = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
        seen = pin(keys[:, None, None] - rest[None, None, :], 1) <= eight[None, :, None]
        eights = gl.where(seen, eights, -float("inf"))
        return gl.convert_layout(eights.reshape([64, 64]), S.type.layout, assert_trivial=True)
    else:
        keys = past + gl.arange(0, 64, layout=gl.SliceLayout(1, S.type.layout))
        return gl.where((keys < 0)[:, None], S, -float("inf"))


@gluon.jit
def step(
    dK, dV, g, k, v, memory, cut, scale_log2e, ME: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Add the contribution of 64 rows to dK and dV, d = 128, and compute half of dQ's columns."""
    kv, qo, rows, ds, dq, barriers = memory
    SUM: gl.constexpr = dK.type.layout
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(0, S_LAYOUT)
    s = g & 1
    there = (g >> 1) & 1
    q, do = matrix(qo.index(s)), matrix(qo.index(2 + s))
    mbarrier.wait(barriers.index(ROWS_FULL + s), there)
    S_begun = begin(k, q, S_LAYOUT)
    mbarrier.wait(barriers.index(DO_FULL + s), there)
    dP_begun = begin(v, do, S_LAYOUT)
    lse = vector(rows.index(s)).load(BY_ROW)
    S = warpgroup_mma_wait(1, deps=(S_begun,))
    if MASKED:
        if not CAUSAL:
            S = masked(S, g, 0, cut, 64, CAUSAL)
        elif g >= cut[0]:
            S = masked(S, g, 0, cut, 64, CAUSAL)
    P = gl.exp2(S * scale_log2e - lse[None, :])
    dV_begun = warpgroup_mma(operand(P.to(qo.dtype), SUM), do, dV, is_async=True)
    delta = vector(rows.index(2 + s)).load(BY_ROW)
    dP = warpgroup_mma_wait(1, deps=(dP_begun,))
    dS = (P * (dP - delta[None, :])).to(qo.dtype)
    matrix(ds.index(s * 2 + ME)).store(dS)
    fence_async_shared()  # the tensor cores see what was stored
    mbarrier.arrive(barriers.index(DS_FULL + s))
    dK_begun = warpgroup_mma(operand(dS, SUM), q, dK, is_async=True)
    dV, dK = warpgroup_mma_wait(0, deps=(dV_begun, dK_begun))
    mbarrier.arrive(barriers.index(EMPTY + s))
    mbarrier.wait(barriers.index(DS_FULL + s), there)
    dQ = warpgroup_mma_wait(0, deps=(begin_dq(kv, ds, s, ME, S_LAYOUT),))
    hand_over(dQ, dq, barriers, g, ME)
    return dK, dV


@gluon.jit
def step_of_halves(
    dK, dV, g, k, v, memory, cut, scale_log2e, ME: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Do the same as `step` with 128 rows, at d = 64: products of one half run under the softmax of the other."""
    kv, qo, rows, ds, dq, barriers = memory
    SUM: gl.constexpr = dK.type.layout
    BY_ROW: gl.constexpr = gl.SliceLayout(0, SUM)  # S's layout too: 64 rows, and d = 64
    s = g & 1
    there = (g >> 1) & 1
    q, do = matrix(qo.index(s)), matrix(qo.index(2 + s))
    q0, q1, do0, do1 = q.slice(0, 64), q.slice(64, 64), do.slice(0, 64), do.slice(64, 64)
    lse_slot, delta_slot = vector(rows.index(s)), vector(rows.index(2 + s))
    mbarrier.wait(barriers.index(ROWS_FULL + s), there)
    S0_begun = begin(k, q0, SUM)
    mbarrier.wait(barriers.index(DO_FULL + s), there)
    dP0_begun = begin(v, do0, SUM)
    S1_begun = begin(k, q1, SUM)
    lse = lse_slot.slice(0, 64).load(BY_ROW)
    S = warpgroup_mma_wait(2, deps=(S0_begun,))
    if MASKED:
        S = masked(S, g, 0, cut, 128, CAUSAL)
    P = gl.exp2(S * scale_log2e - lse[None, :])
    dV_begun = warpgroup_mma(operand(P.to(qo.dtype), SUM), do0, dV, is_async=True)
    delta = delta_slot.slice(0, 64).load(BY_ROW)
    dP = warpgroup_mma_wait(2, deps=(dP0_begun,))
    dS = (P * (dP - delta[None, :])).to(qo.dtype)
    matrix(ds.index(s * 4 + ME * 2)).store(dS)
    dP1_begun = begin(v, do1, SUM)
    dK_begun = warpgroup_mma(operand(dS, SUM), q0, dK, is_async=True)

    lse = lse_slot.slice(64, 64).load(BY_ROW)
    S = warpgroup_mma_wait(3, deps=(S1_begun,))
    if MASKED:
        S = masked(S, g, 64, cut, 128, CAUSAL)
    P = gl.exp2(S * scale_log2e - lse[None, :])
    dV_begun = warpgroup_mma(operand(P.to(qo.dtype), SUM), do1, dV_begun, is_async=True)
    delta = delta_slot.slice(64, 64).load(BY_ROW)
    dP = warpgroup_mma_wait(2, deps=(dP1_begun,))
    dS = (P * (dP - delta[None, :])).to(qo.dtype)
    matrix(ds.index(s * 4 + ME * 2 + 1)).store(dS)
    fence_async_shared()  # the tensor cores see what was stored
    mbarrier.arrive(barriers.index(DS_FULL + s))
    dK_begun = warpgroup_mma(operand(dS, SUM), q1, dK_begun, is_async=True)
    mbarrier.wait(barriers.index(DS_FULL + s), there)
    dQ_begun = begin_dq(kv, ds, s, ME, SUM)
    dV, dK = warpgroup_mma_wait(2, deps=(dV_begun, dK_begun))
    mbarrier.arrive(barriers.index(EMPTY + s))
    dQ = warpgroup_mma_wait(0, deps=(dQ_begun,))
    hand_over(dQ, dq, barriers, g, ME)
    return dK, dV


@gluon.jit
def copy_out(X, slot, desc, at):
    """Put dK or dV of 64 keys into a slot, and have the copy unit write it; keys past N_k are left out."""
    matrix(slot).store(X.to(slot.dtype))
    fence_async_shared()
    gl.barrier()  # all of my warps have stored
    tma.async_copy_shared_to_global(desc, at, slot)


@gluon.jit
def write(X, ptr, unit, start, N_k):
    """Write dK or dV of 64 keys in fp32, for which no slot has room; four threads fill a sector of 32 bytes."""
    LAYOUT: gl.constexpr = X.type.layout
    keys = (start + gl.arange(0, 64, layout=gl.SliceLayout(1, LAYOUT)))[:, None]
    columns = gl.arange(0, X.type.shape[1], layout=gl.SliceLayout(0, LAYOUT))[None, :]
    corner = ptr + gl.cast(unit, gl.int64) * N_k * X.type.shape[1]
    gl.store(corner + keys * X.type.shape[1] + columns, X, mask=keys < N_k)


@gluon.jit
def consumer(
    memory, dk_to, dv_to, scale_log2e, scale, sizes, last,
    B_R: gl.constexpr, D: gl.constexpr, CAUSAL: gl.constexpr, WIDE: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    """Sum dK and dV of 64 keys over all rows that see them, and compute halves of dQ on the way."""
    kv, qo, rows, ds, dq, barriers = memory
    H_k, group, N_q, N_k, T_r, T_c = sizes
    unit, j, first, whole = work(sizes, last, B_R, CAUSAL)
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    SUM: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    start = (j * 2 + ME) * KEYS
    k, v = matrix(kv.index(ME)), matrix(kv.index(2 + ME))
    dK = gl.zeros([KEYS, D], gl.float32, SUM)
    dV = gl.zeros([KEYS, D], gl.float32, SUM)
    mbarrier.wait(barriers.index(KV_FULL), 0)
    if D == 64:  # registers are free, and with them the products read half as much from shared memory
        OPERAND: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=S_LAYOUT, k_width=2)
        k, v = k.load(OPERAND), v.load(OPERAND)
    take: gl.constexpr = step_of_halves if D == 64 else step
    n_whole, n = group * (T_r - whole), group * (T_r - first)
    cut = n_whole, group, start - first * B_R - (N_k - N_q) if CAUSAL else start - N_k
    ONE_LOOP: gl.constexpr = CAUSAL and D == 128  # for a second loop, the compiler would spill registers
    if not ONE_LOOP:
        for g in range(n_whole):
            dK, dV = take(dK, dV, g, k, v, memory, cut, scale_log2e, ME, CAUSAL, False)
    for g in range(0 if ONE_LOOP else n_whole, n):
        dK, dV = take(dK, dV, g, k, v, memory, cut, scale_log2e, ME, CAUSAL, True)

    if WIDE:
        write(dV, dv_to, unit, start, N_k)
        write(dK * scale, dk_to, unit, start, N_k)
    else:
        at = [unit // H_k, unit % H_k, start, 0]
        mbarrier.arrive(barriers.index(K_DONE))
        copy_out(dV, kv.index(2 + ME), dv_to, at)  # in the slot of V, which nobody else reads
        mbarrier.wait(barriers.index(K_DONE), 0)
        copy_out(dK * scale, kv.index(ME), dk_to, at)
        tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c", "lag", "ring"])
def _backward(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dk_to, dv_to, sums_desc, sums_ptr, dq_ptr,
    counts_ptr, scale_log2e, scale, H_k, group, N_q, N_k, T_r, T_c, lag, ring, last, parts,
    B_R: gl.constexpr, D: gl.constexpr, CAUSAL: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    # dk_to, dv_to: descriptors of dK and dV; WIDE, pointers to them in fp32. H_k, group: heads of K, each counted
    # `parts` times, and heads of Q that read each. last, parts: where they are 1, the compiler knows it.
    gl.static_assert(B_R * D == 2 * HALF)
    DS_TILE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 4)
    kv = gl.allocate_shared_memory(k_desc.dtype, [4] + k_desc.block_shape, k_desc.layout)
    qo = gl.allocate_shared_memory(q_desc.dtype, [4] + q_desc.block_shape, q_desc.layout)
    rows = gl.allocate_shared_memory(gl.float32, [4] + lse_desc.block_shape, lse_desc.layout)
    ds = gl.allocate_shared_memory(q_desc.dtype, [4 * (B_R // 64), 1, 1, 64, 64], DS_TILE)
    dq = gl.allocate_shared_memory(gl.float32, [2] + sums_desc.block_shape, sums_desc.layout)
    landing = gl.allocate_shared_memory(gl.float32, [2] + sums_desc.block_shape, sums_desc.layout)
    barriers = gl.allocate_shared_memory(gl.int64, [BARRIERS, 1], mbarrier.MBarrierLayout())
    for b in gl.static_range(BARRIERS):
        mbarrier.init(barriers.index(b), count=2 if b == K_DONE or (b >= EMPTY and b < DQ_FULL) else 1)
    fence_async_shared()  # the copy unit sees the barriers
    memory, turns = (kv, qo, rows, ds, dq, barriers), (lag, ring, last)
    descs = q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc
    sizes = H_k, group, N_q, N_k, T_r, T_c
    finished = sums_desc, sums_ptr, dq_ptr, counts_ptr, landing, barriers, scale, sizes, turns, D, LANDED
    gl.warp_specialize([
        (consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, last, B_R, D, CAUSAL, WIDE, 0)),
        (consumer, (memory, dk_to, dv_to, scale_log2e, scale, sizes, last, B_R, D, CAUSAL, WIDE, 1)),
        (producer, (memory, descs, sizes, parts, last, B_R, CAUSAL)),
        (reducer, (memory, sums_desc, counts_ptr, sizes, turns, B_R, CAUSAL)),
        (sums.finisher, finished),
    ], [4, 1, 1, 2], [240, 24, 24, 24])  # fmt: skip
