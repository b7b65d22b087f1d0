"""Solutions of the exercises in Gluon."""

# ruff: noqa: I001
import math

import flashlib.kernels  # noqa: F401  before triton
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.kernels.hopper.ladder import tiles

ELEMENTS = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}


def by_head(X, rows):
    """The descriptor of X, (B, H, N, d), with tiles of so many rows of one head."""
    block = [1, 1, rows, X.shape[3]]
    layout = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[X.dtype])
    return TensorDescriptor(X, list(X.shape), list(X.stride()), block, layout)


# exercise: gluon_producer
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    for g in range(n):
        s = g % STAGES
        free = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), free)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), free)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * B_C, 0], v_full.index(s), v_slots.index(s))


# exercise: consumer_step
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    there = (g // STAGES) & 1

    mbarrier.wait(k_full.index(s), there)
    K_T = k_slots.index(s).reshape([B_C, D]).permute((1, 0))
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    S_begun = warpgroup_mma(q, K_T, zero, use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S_begun,))
    mbarrier.arrive(k_empty.index(s))

    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    seen = cols[None, :] < limits[:, None]
    S = gl.where(seen, S * scale_log2e, -float("inf"))
    m_old = m
    m = gl.maximum(m_old, gl.max(S, 1))
    shift = gl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
    alpha = gl.exp2(m_old - shift)
    P = gl.exp2(S - shift[:, None])
    l = alpha * l + gl.sum(P, 1)

    mbarrier.wait(v_full.index(s), there)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT))[:, None]
    P_low = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT)
    V = v_slots.index(s).reshape([B_C, D])
    O_begun = warpgroup_mma(P_low, V, O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(s))
    return m, l, O_acc


# exercise: hopper_attention, with gluon_producer and consumer_step
@gluon.jit
def attention_consumer(
    q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = q
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    start = row + 64 * ME
    rows = start + gl.arange(0, 64, layout=BY_ROW)

    limits = gl.full([64], N_k, gl.int32, BY_ROW)
    if CAUSAL:
        limits = gl.minimum(rows + 1 + N_k - N_q, N_k)  # the first key that each row does not see
    m = gl.full([64], -float("inf"), gl.float32, BY_ROW)
    l = gl.full([64], 0.0, gl.float32, BY_ROW)
    O_acc = gl.zeros([64, D], gl.float32, O_LAYOUT)
    q_slot = q_slots.index(ME).reshape([64, D])
    mbarrier.wait(q_full.index(ME), 0)
    for g in range(n):
        m, l, O_acc = my_consumer_step(g, q_slot, k, v, m, l, O_acc, limits, scale_log2e)

    divisor = gl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    head = b * gl.num_programs(1) + h  # counted over all sequences
    gl.store(lse_ptr + head * N_q + rows, (m + gl.log2(divisor)) * 0.6931471805599453, mask=rows < N_q)
    O = O_acc / gl.convert_layout(divisor, gl.SliceLayout(1, O_LAYOUT))[:, None]
    q_slot.store(O.to(q_slots.dtype))  # nobody reads Q any more
    fence_async_shared()  # the copy unit sees what was stored
    tma.async_copy_shared_to_global(o_desc, [b, h, start, 0], q_slots.index(ME))  # without rows past N_q
    tma.store_wait(0)


@gluon.jit
def hopper_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, N_q, N_k, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    B_C: gl.constexpr = k_desc.block_shape[2]
    b, h = gl.program_id(2), gl.program_id(1)
    row = gl.program_id(0) * 128

    q_slots, q_full = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots, k_full, k_empty = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    v_slots, v_full, v_empty = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    fence_async_shared()  # the copy unit sees the barriers
    end = gl.minimum(row + 128 + N_k - N_q, N_k) if CAUSAL else N_k  # no row sees a key from here on
    n = gl.maximum((end + B_C - 1) // B_C, 0)
    q, k, v = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    gl.warp_specialize([
        (attention_consumer, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 0)),
        (attention_consumer, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 1)),
        (my_gluon_producer, (q, k, v, q_desc, k_desc, v_desc, b, h, row, n)),
    ], [4, 1], [240, 24])  # fmt: skip


def my_hopper_attention(Q, K, V, causal):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    grid = (triton.cdiv(N_q, 128), H, B)
    scale_log2e = math.log2(math.e) / math.sqrt(d)
    described = [by_head(X, rows) for X, rows in ((Q, 64), (K, 128), (V, 128), (O, 64))]
    hopper_kernel[grid](*described, lse, scale_log2e, N_q, N_k, STAGES=2, CAUSAL=causal, num_warps=4)
    return O, lse
