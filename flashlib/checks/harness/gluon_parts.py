"""Gluon kernels around a learner's role or step, and the functions that launch them in a check."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.checks.engine import Finding, SideFinding
from flashlib.checks.harness.gluon_launches import kernel_of, placed
from flashlib.learner.kernels.new_tensors import NewTensors

ROWS = 64
ELEMENTS = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}


def descriptor(X: torch.Tensor, rows: int) -> TensorDescriptor:
    """Return the descriptor of X, (B, H, N, d), for tiles of `rows` rows of one head."""
    block = [1, 1, rows, X.shape[3]]
    layout = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[X.dtype])
    return TensorDescriptor(X, list(X.shape), list(X.stride()), block, layout)


@gluon.jit
def ring(desc, STAGES: gl.constexpr, READERS: gl.constexpr):
    """Return slots for the tiles of a descriptor, and their barriers: full and empty."""
    slots = gl.allocate_shared_memory(desc.dtype, [STAGES] + desc.block_shape, desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
        mbarrier.init(empty.index(s), count=READERS)
    return slots, full, empty


# ---- a producer with two readers, which copy what they receive into other tensors


@gluon.jit
def reader(q, k, v, qo_desc, ko_desc, vo_desc, n, ME: gl.constexpr):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    mbarrier.wait(q_full.index(ME), 0)
    tma.async_copy_shared_to_global(qo_desc, [0, 0, 64 * ME, 0], q_slots.index(ME))
    for g in range(n):
        s = g % STAGES
        there = (g // STAGES) & 1
        mbarrier.wait(k_full.index(s), there)
        tma.async_copy_shared_to_global(ko_desc, [0, ME, g * B_C, 0], k_slots.index(s))
        tma.store_wait(0)
        mbarrier.arrive(k_empty.index(s))
        mbarrier.wait(v_full.index(s), there)
        tma.async_copy_shared_to_global(vo_desc, [0, ME, g * B_C, 0], v_slots.index(s))
        tma.store_wait(0)
        mbarrier.arrive(v_empty.index(s))
    tma.store_wait(0)


@gluon.jit
def producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n, PRODUCER: gl.constexpr):
    PRODUCER(q, k, v, q_desc, k_desc, v_desc, b, h, row, n)


@gluon.jit
def producer_kernel(
    q_desc, k_desc, v_desc, qo_desc, ko_desc, vo_desc, b, h, row, n,
    STAGES: gl.constexpr, PRODUCER: gl.constexpr,
):  # fmt: skip
    q_slots, q_full, unused = ring(q_desc, 2, 1)
    k_slots, k_full, k_empty = ring(k_desc, STAGES, 2)
    v_slots, v_full, v_empty = ring(v_desc, STAGES, 2)
    fence_async_shared()
    q, k, v = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    gl.warp_specialize([
        (reader, (q, k, v, qo_desc, ko_desc, vo_desc, n, 0)),
        (reader, (q, k, v, qo_desc, ko_desc, vo_desc, n, 1)),
        (producer, (q, k, v, q_desc, k_desc, v_desc, b, h, row, n, PRODUCER)),
    ], [4, 1], [240, 24])  # fmt: skip


def run_producer(
    answer: Any, Q: np.ndarray, K: np.ndarray, V: np.ndarray, b: int, h: int, row: int, B_c: int, stages: int
) -> tuple:
    """Run a producer; return the rows of Q, K and V that the readers received."""
    Q, K, V = (placed(X, "float16") for X in (Q, K, V))
    N_k, d = K.shape[2:]
    shapes = ((1, 1, 128, d), (1, 2, N_k, d), (1, 2, N_k, d))
    came = [torch.full(shape, torch.nan, dtype=Q.dtype) for shape in shapes]
    producer_kernel[(1,)](
        descriptor(Q, ROWS), descriptor(K, B_c), descriptor(V, B_c), descriptor(came[0], ROWS),
        *(descriptor(X, B_c) for X in came[1:]), b, h, row, -(-N_k // B_c), STAGES=stages,
        PRODUCER=kernel_of(answer), num_warps=4,
    )  # fmt: skip
    return tuple(X[0].numpy() for X in came), None


# ---- a consumer that runs a learner's step for each tile


@gluon.jit
def tile_producer(q, k, v, q_desc, k_desc, v_desc, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    mbarrier.expect(q_full.index(0), q_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(q_desc, [0, 0, 0, 0], q_full.index(0), q_slots.index(0))
    for g in range(n):
        s = g % STAGES
        free = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), free)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [0, 0, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), free)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [0, 0, g * B_C, 0], v_full.index(s), v_slots.index(s))
    for s in range(STAGES):  # wait until each slot is released, as the next row block would
        mbarrier.wait(k_empty.index((n + s) % STAGES), (((n + s) // STAGES) & 1) ^ 1)
        mbarrier.wait(v_empty.index((n + s) % STAGES), (((n + s) // STAGES) & 1) ^ 1)


@gluon.jit
def consumer(q, k, v, limits_ptr, m_ptr, l_ptr, O_ptr, scale_log2e, n, STEP: gl.constexpr):
    q_slots, q_full = q
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    rows = gl.arange(0, 64, layout=BY_ROW)
    limits = gl.load(limits_ptr + rows)
    m = gl.full([64], -float("inf"), gl.float32, BY_ROW)
    l = gl.full([64], 0.0, gl.float32, BY_ROW)
    O_acc = gl.zeros([64, D], gl.float32, O_LAYOUT)
    q_slot = q_slots.index(0).reshape([64, D])
    mbarrier.wait(q_full.index(0), 0)
    for g in range(n):
        m, l, O_acc = STEP(g, q_slot, k, v, m, l, O_acc, limits, scale_log2e)
    gl.store(m_ptr + rows, m)
    gl.store(l_ptr + rows, l)
    cols = gl.arange(0, D, layout=gl.SliceLayout(0, O_LAYOUT))
    O_rows = gl.arange(0, 64, layout=gl.SliceLayout(1, O_LAYOUT))
    gl.store(O_ptr + O_rows[:, None] * D + cols[None, :], O_acc)


@gluon.jit
def step_kernel(
    q_desc, k_desc, v_desc, limits_ptr, m_ptr, l_ptr, O_ptr, scale_log2e, n,
    STAGES: gl.constexpr, STEP: gl.constexpr,
):  # fmt: skip
    q_slots, q_full, unused = ring(q_desc, 1, 1)
    k_slots, k_full, k_empty = ring(k_desc, STAGES, 1)
    v_slots, v_full, v_empty = ring(v_desc, STAGES, 1)
    fence_async_shared()
    q, k, v = (q_slots, q_full), (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    gl.warp_specialize([
        (consumer, (q, k, v, limits_ptr, m_ptr, l_ptr, O_ptr, scale_log2e, n, STEP)),
        (tile_producer, (q, k, v, q_desc, k_desc, v_desc, n)),
    ], [1], [24])  # fmt: skip


def run_steps(
    answer: Any, Q: np.ndarray, K: np.ndarray, V: np.ndarray, limits: np.ndarray, B_c: int, stages: int, dtype: str
) -> tuple:
    """Run a step for each tile of keys; return m, l and O_acc of 64 rows."""
    q, k, v = (placed(X[None, None], dtype) for X in (Q, K, V))
    N_k, d = K.shape
    limits = torch.from_numpy(np.ascontiguousarray(limits)).int()
    m, l, O_acc = (torch.full(shape, torch.nan) for shape in ((ROWS,), (ROWS,), (ROWS, d)))
    step_kernel[(1,)](
        descriptor(q, ROWS), descriptor(k, B_c), descriptor(v, B_c), limits, m, l, O_acc,
        math.log2(math.e) / math.sqrt(d), -(-N_k // B_c), STAGES=stages, STEP=kernel_of(answer), num_warps=4,
    )  # fmt: skip
    return (m.numpy(), l.numpy(), O_acc.numpy()), None


# ---- a whole kernel with its launch


def run_attention(
    answer: Callable, Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool, dtype: str, order: str
) -> tuple:
    """Launch an answer; return O and lse, and a Finding or None.

    order: of the axes in memory: one for all, or one each for Q, K and V, separated by spaces.
    """
    orders = itertools.cycle(order.split())
    new, tensors = NewTensors(), [placed(X, dtype, one) for X, one in zip((Q, K, V), orders, strict=False)]
    before = [X.clone() for X in tensors]
    with new:
        result = answer(*tensors, causal)
    for name, X, old in zip("QKV", tensors, before, strict=True):
        if not torch.equal(X, old):
            raise Finding("input_written", name=name)
    if not isinstance(result, tuple | list) or len(result) != 2:
        return result, None
    O, lse = result
    found = None
    N_q, N_k = Q.shape[2], K.shape[2]
    if not {N_q, N_k} & {1, Q.shape[3]} and any(shape[-2:] == (N_q, N_k) for shape in new.shapes):
        found = SideFinding("matrix")
    for name, X, wanted in (("O", O, tensors[0].dtype), ("lse", lse, torch.float32)):
        if isinstance(X, torch.Tensor) and X.dtype != wanted:
            dtypes = (str(t).removeprefix("torch.") for t in (X.dtype, wanted))
            raise Finding("dtype_of", it=name, **dict(zip(("given", "expected"), dtypes, strict=True)))
    return tuple(X.float().numpy() if isinstance(X, torch.Tensor) else X for X in (O, lse)), found
