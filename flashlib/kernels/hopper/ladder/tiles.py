"""What the Hopper rungs share besides their ideas: slots, masks, the softmax, storing O and lse.

Written as in `kernels.hopper.forward`, which explains why; frozen here with the rungs.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)

HUGE = gl.constexpr(2.0**28)  # scores in base 2; see `softmax`


@gluon.jit
def slots(desc, SLOTS: gl.constexpr):
    """Return room in shared memory for tiles of a descriptor."""
    return gl.allocate_shared_memory(desc.dtype, [SLOTS] + desc.block_shape, desc.layout)


@gluon.jit
def barriers(SLOTS: gl.constexpr, COUNT: gl.constexpr):
    """Return barriers, a phase of which takes COUNT arrivals."""
    found = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(SLOTS):
        mbarrier.init(found.index(s), count=COUNT)
    return found


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, rows past the end as zeros; `full` ends its phase when it is there."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, D) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def tiles_of(i, N_q, N_k, B_R: gl.constexpr, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    """Return how many tiles of keys the rows of block i see together, at least 1: they walk from the last one."""
    end = gl.minimum((i + 1) * B_R + N_k - N_q, N_k) if CAUSAL else N_k
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def limits_of(
    start, n, N_q, N_k, ROWS: gl.constexpr, B_C: gl.constexpr, BY_ROW: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    """Return the first key that each row from `start` on does not see, and how many of n tiles need the mask."""
    rows = start + gl.arange(0, ROWS, layout=BY_ROW)
    if CAUSAL:
        limits = gl.minimum(rows + 1 + N_k - N_q, N_k)
        whole = gl.maximum(gl.minimum(start + 1 + N_k - N_q, N_k), 0) // B_C
        return limits, gl.maximum(n - whole, 1)
    else:  # pinned, or comparisons with it are made once and kept in registers
        return pin(gl.full([ROWS], N_k, gl.int32, BY_ROW), 1), 1


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point: the compiler moves neither its inputs nor its users across.

    PACK: elements in 32 bits.
    """
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def scores(q, slot, S_LAYOUT: gl.constexpr):
    """Have the tensor cores begin S = Q K^T."""
    ROWS: gl.constexpr = q.type.shape[0]
    B_C: gl.constexpr = slot.type.shape[2]
    zero = gl.zeros([ROWS, B_C], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(q, matrix(slot).permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def masked(S, start, limits):
    """Return scores of keys `start` and on, -inf from each row's limit on."""
    S_LAYOUT: gl.constexpr = S.type.layout
    cols = start + gl.arange(0, S.type.shape[1], layout=gl.SliceLayout(0, S_LAYOUT))
    return gl.where(cols[None, :] < limits[:, None], S, -float("inf"))


@gluon.jit
def softmax(S, m, shift, scales):
    """Return P = 2^(S * factor - shift), the new m and shift, and alpha, which brings what was summed to them."""
    scale_log2e, scale_above = scales
    m = gl.maximum(m, gl.max(S, 1))
    size = m * scale_log2e
    factor = gl.where(gl.maximum(size, -size) > HUGE, scale_above, scale_log2e)
    new = pin(m * factor, 1)
    used = gl.maximum(new, -3.0e38)  # a row that saw nothing yet: -inf - (-inf) would be nan
    return gl.exp2(S * factor[:, None] - used[:, None]), m, new, gl.exp2(shift - used)


@gluon.jit
def partial_sums(P):
    """Return sums of P's columns, (rows, 8): those that one thread holds, so that no thread asks another."""
    return gl.sum(P.reshape([P.type.shape[0], P.type.shape[1] // 8, 8]), 1)


@gluon.jit
def by_row(x, like):
    """Return x, a number for each row, to be multiplied with `like`."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout), assert_trivial=True)[:, None]


@gluon.jit
def operand(P, dtype: gl.constexpr, O_LAYOUT: gl.constexpr):
    """Return P as the left operand of P V, in the registers in which it is."""
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    return pin(gl.convert_layout(P.to(dtype), P_LAYOUT, assert_trivial=True), 2)


@gluon.jit
def store_lse(lse_ptr, head, start, N_q, m, l, scales):
    """Store lse of rows from `start` on; return the divisor of O_acc."""
    BY_ROW: gl.constexpr = m.type.layout
    ROWS: gl.constexpr = m.type.shape[0]
    rows = start + gl.arange(0, ROWS, layout=BY_ROW)
    l = gl.convert_layout(gl.sum(l, 1), BY_ROW, assert_trivial=True)
    divisor = gl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    lse = (m * scales[0] + gl.log2(divisor)) * 0.6931471805599453  # log(2)
    gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
    return divisor


@gluon.jit
def store_output(O_acc, divisor, o_slot, o_desc, at):
    """Divide, and have the copy unit store O, except rows past the end."""
    tma.store_wait(0)  # it has read the previous O
    gl.barrier()  # for all warps, each of which requested a part
    O = O_acc * by_row(1.0 / divisor, O_acc)
    matrix(o_slot).store(O.to(o_slot.dtype))
    fence_async_shared()  # the copy unit sees what was stored
    tma.async_copy_shared_to_global(o_desc, at, o_slot)
