"""Sums of dQ in a ring of buffers: programs of a unit add to one, programs of a later unit turn it into dQ.

A unit is a head of K and V with heads of Q that read it, all or a part. Its T_c programs each add to all its
sums, in the order of the consumers' registers. Each unit has two counts: of its programs that have finished
adding, and of programs of a later unit that have turned their share into dQ.

    who                          does what                          waits until
    reducer, in unit u           adds to buffer u % ring            unit u - ring has left it
    finisher, in unit u + lag    writes dQ of u; zeros over sums    all programs of u have added
    `finish`, the last launch    writes dQ of the last units        the programs have ended

So sums are read soon after they were added to, when they are still in the L2 cache, and few need zeros from HBM.

No program waits for a later one, and GPUs start programs in the order of their numbers, so every wait ends. CUDA
does not promise this order. On a GPU with a different one a call could hang, when waiting programs fill it, but
never return wrong sums; `test_ten_thousand_launches_end` would notice. To take numbers from a counter instead cost
1 to 5 % of the speed on an H200.

The copy unit adds, threads count and write zeros: `fence_async` is used wherever one must see the other's writes.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

HALF = gl.constexpr(64 * 64)  # elements of the half of a tile of dQ that a consumer computes
LINES = gl.constexpr(128)  # of 128 bytes, the copy unit's layout of half a tile: neighbours are in different banks
# Of 32 rows and columns of dQ, by two warps: a thread has eight columns of two rows.
PART = gl.constexpr(
    gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [8, 0]], [[1, 0], [2, 0], [4, 0], [0, 8], [0, 16]], [[16, 0]], [], [32, 32]
    )
)


@gluon.jit
def unit_of(T_c, last):
    """Return the unit and the block of keys of this program.

    Units follow one another, but the `last` ones take turns, block by block: causal, the blocks with the most rows
    come first, and the programs that start last are the shortest of several units.
    """
    unit, j = gl.program_id(0) // T_c, gl.program_id(0) % T_c
    if last != 1:
        first = gl.num_programs(0) // T_c - last
        if unit >= first:
            i = gl.program_id(0) - first * T_c
            unit, j = first + i % last, i // last
    return unit, j


@gluon.jit
def wait_for(count_ptr, n):
    """Wait until n programs have counted themselves; then see everything they wrote before."""
    while (
        gl.inline_asm_elementwise(
            "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", [gl.cast(count_ptr, gl.int64)], dtype=gl.int32,
            is_pure=False, pack=1,
        )
        < n
    ):  # fmt: skip
        pass


@gluon.jit
def count(count_ptr):
    """Count this program, for those that wait for the writes of this role's warps."""
    gl.barrier()  # all warps have written
    gl.atomic_add(count_ptr, 1, sem="release")


@gluon.jit
def fence_async():
    """Order accesses to HBM by threads and by the copy unit, so that each sees the other's writes."""
    gl.inline_asm_elementwise(
        "fence.proxy.async; mov.b32 $0, 0;", "=r", [], dtype=gl.int32, is_pure=False, pack=1
    )  # fmt: skip


@gluon.jit
def all_added():
    """Wait until the copy unit has finished all additions that this warp requested."""
    gl.inline_asm_elementwise(
        "cp.async.bulk.wait_group 0; mov.b32 $0, 0;", "=r", [], dtype=gl.int32, is_pure=False, pack=1
    )  # fmt: skip
    fence_async()


@gluon.jit
def place(unit, half, ring, halves):
    """Return the index in the buffers of a half tile; a unit counts halves over the tiles of all its heads."""
    return unit % ring * halves + half


@gluon.jit
def bring(sums_desc, half, slot, landed):
    """Have the copy unit bring the sums of half a tile."""
    mbarrier.expect(landed, sums_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(sums_desc, [half * LINES, 0], landed, slot)


@gluon.jit
def clear(sums_ptr, half):
    """Replace the sums of half a tile by zeros, for the next unit that adds to the buffer."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [32], [2], [0])
    at = sums_ptr + gl.cast(half, gl.int64) * HALF + gl.arange(0, HALF, layout=LAYOUT)
    gl.store(at, gl.zeros([HALF], gl.float32, LAYOUT))


@gluon.jit
def write_part(part, row, column, dq_ptr, rows_left, scale, D: gl.constexpr):
    """Write 32 rows and columns of dQ from their sums, (4, 8, 32): undo what `hand_over` did to their order.

    Sixteen sums are eight columns of two rows; 8 of these follow each other in a warp of a consumer.
    """
    x = part.load(gl.BlockedLayout([1, 1, 16], [4, 4, 2], [1, 2, 1], [2, 1, 0])) * scale
    x = x.reshape([4, 2, 8, 4, 2, 2]).permute([1, 4, 2, 0, 3, 5]).reshape([32, 32])
    x = gl.convert_layout(x, PART, assert_trivial=True)
    rows = (row + gl.arange(0, 32, layout=gl.SliceLayout(1, PART)))[:, None]
    columns = column + gl.arange(0, 32, layout=gl.SliceLayout(0, PART))[None, :]
    gl.store(dq_ptr + rows * D + columns, x.to(dq_ptr.dtype.element_ty), mask=(rows < rows_left) & (columns < D))


@gluon.jit
def write_half(slot, dq_ptr, unit, half, scale, sizes, D: gl.constexpr):
    """Write 64 rows and columns of dQ from their sums; two warps do this."""
    H_k, group, N_q, N_k, T_r, T_c = sizes
    tile = half // 2
    row, column = tile % T_r * (2 * HALF // D), half % 2 * 64
    if D == 64:
        row, column = row + column, 0
    corner = dq_ptr + (gl.cast(unit * group + tile // T_r, gl.int64) * N_q + row) * D + column
    for c in gl.static_range(0, 8, 4):
        for w in gl.static_range(0, 4, 2):
            part = slot.reshape([8, 16, 32]).slice(c, 4).slice(w * 4, 8, dim=1)
            write_part(part, w * 16, c * 8, corner, N_q - row, scale, D)


@gluon.jit
def finisher(
    sums_desc, sums_ptr, dq_ptr, counts_ptr, landing, barriers, scale, sizes, turns,
    D: gl.constexpr, LANDED: gl.constexpr,
):  # fmt: skip
    """Write the program's share of dQ of the unit that began `lag` units before, and zeros over the sums."""
    lag, ring, last = turns
    H_k, group, N_q, N_k, T_r, T_c = sizes
    unit, j = unit_of(T_c, last)
    unit -= lag
    halves = 2 * group * T_r
    share = (halves + T_c - 1) // T_c
    first, n = j * share, gl.minimum(share, halves - j * share)
    if unit >= 0:
        wait_for(counts_ptr + unit * 2, T_c)
        fence_async()
        start = place(unit, first, ring, halves)
        if n > 0:
            bring(sums_desc, start, landing.index(0), barriers.index(LANDED))
        for at in range(n):
            if at + 1 < n:  # its sums are on their way while these are written
                gl.barrier()  # both warps have read the slot
                s = (at + 1) & 1
                bring(sums_desc, start + at + 1, landing.index(s), barriers.index(LANDED + s))
            mbarrier.wait(barriers.index(LANDED + (at & 1)), (at >> 1) & 1)
            clear(sums_ptr, start + at)
            write_half(landing.index(at & 1), dq_ptr, unit, first + at, scale, sizes, D)
        fence_async()
        count(counts_ptr + unit * 2 + 1)


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c", "ring", "first"])
def finish(
    sums_desc, dq_ptr, scale, H_k, group, N_q, N_k, T_r, T_c, ring, first, D: gl.constexpr,
):  # fmt: skip
    """Write dQ of the last units, from `first` on, half a tile per program."""
    landing = gl.allocate_shared_memory(gl.float32, [1] + sums_desc.block_shape, sums_desc.layout)
    landed = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    mbarrier.init(landed.index(0), count=1)
    fence_async_shared()
    gl.barrier()  # before a thread waits there
    halves = 2 * group * T_r
    unit, half = first + gl.program_id(0) // halves, gl.program_id(0) % halves
    bring(sums_desc, place(unit, half, ring, halves), landing.index(0), landed.index(0))
    mbarrier.wait(landed.index(0), 0)
    write_half(landing.index(0), dq_ptr, unit, half, scale, (H_k, group, N_q, N_k, T_r, T_c), D)
