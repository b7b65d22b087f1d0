"""Tile functions of both passes for the gradients of heads of 256 numbers: see `dkv_256` and `dq_256`."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)

TILE = gl.constexpr(64)  # rows, and keys: wgmma's m
D = gl.constexpr(256)
S_LAYOUT = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
SUM = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 16]))
OPERAND = gl.constexpr(gl.DotOperandLayout(operand_index=0, parent=SUM.value, k_width=2))


@gluon.jit
def pin(x, PACK: gl.constexpr):
    """Return x, computed at this point, as `forward.pin`. PACK: elements in 32 bits."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@gluon.jit
def matrix(slot):
    """Return a slot (1, 1, rows, D) as a matrix."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]])


@gluon.jit
def operand(x):
    """Return x, in 16 bits, as the left operand of a product that is summed, in the registers where it is."""
    return pin(gl.convert_layout(x, OPERAND, assert_trivial=True), 2)


@gluon.jit
def begin(a, b):
    """Have the tensor cores begin a b^T for tiles of 64 rows."""
    zero = gl.zeros([TILE, TILE], gl.float32, S_LAYOUT)  # never made: use_acc=False
    return warpgroup_mma(a, b.permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def masked(S, left, CAUSAL: gl.constexpr, KEYS: gl.constexpr):
    """Return scores, -inf for keys that are not seen. KEYS: their axis, 1 unless CAUSAL.

    left: how many keys of the tile the first row sees; causal: each row sees one more than the row before it. A
    thread holds two neighbours of each eight columns, in two lines: what differs between threads is subtracted
    once, so that each score is compared with a constant. Pinned: otherwise it would be kept before the roles part.
    """
    split = S.reshape([TILE, TILE // 8, 4, 2])
    LAYOUT: gl.constexpr = split.type.layout
    LINE: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    EIGHT: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    PAIR: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, LAYOUT)))
    ONE: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    own = -2 * pin(gl.arange(0, 4, layout=PAIR), 1)[None, None, :, None]
    if CAUSAL:
        own = own + pin(gl.arange(0, TILE, layout=LINE), 1)[:, None, None, None]
    columns = 8 * gl.arange(0, TILE // 8, layout=EIGHT)[None, :, None, None]
    columns = columns + gl.arange(0, 2, layout=ONE)[None, None, None, :]
    if KEYS == 1:
        seen = columns < own + left
    else:
        seen = columns > own - left
    split = gl.where(seen, split, -float("inf"))
    return gl.convert_layout(split.reshape([TILE, TILE]), S_LAYOUT, assert_trivial=True)


@gluon.jit
def fetch(desc, at, slot, full):
    """Have the copy unit bring a tile, rows past the end as zeros; `full` ends its phase when it has arrived."""
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def fetch_two(desc, at, slot, other_desc, other_at, other_slot, full):
    """Have the copy unit bring two tiles, both announced by the same barrier."""
    mbarrier.expect(full, desc.block_type.nbytes + other_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)
    tma.async_copy_global_to_shared(other_desc, other_at, full, other_slot)


@gluon.jit
def copy_out(X, to, slot, head, heads, start, N, WIDE: gl.constexpr):
    """Write a sum of 64 rows or keys, except those past N: the copy unit does so from the slot.

    WIDE: in fp32, for which the slot has no room, threads write it; four of them fill a sector of 32 bytes.
    """
    if WIDE:
        rows = (start + gl.arange(0, TILE, layout=gl.SliceLayout(1, SUM)))[:, None]
        columns = gl.arange(0, D, layout=gl.SliceLayout(0, SUM))[None, :]
        corner = to + gl.cast(head, gl.int64) * N * D
        gl.store(corner + rows * D + columns, X, mask=rows < N)
    else:
        matrix(slot).store(X.to(slot.dtype))
        fence_async_shared()  # the copy unit sees it
        gl.barrier()  # all of my warps have stored
        tma.async_copy_shared_to_global(to, [head // heads, head % heads, start, 0], slot)
        tma.store_wait(0)  # the copy unit reads my shared memory: stay until it has
