"""Sums of dQ in a ring of buffers: programs of a unit add to one, programs of a later unit make dQ of it.

A unit is a head of K and V with the heads of Q that read it; its T_c programs, one after the other in the grid,
each add to all its sums. For each unit there is a count of the programs that have added, and of those that have
read what others added. Sums that are made into dQ while others are added to stay in the L2 cache: HBM never sees
them, nor zeros for them, but for those of the first units.

    unit's programs    do what                                             once
    u                  add, in the order of the consumers' registers       what the buffer had is read, u - ring
    u + lag            write dQ, and zeros in place of the sums: `finisher` all programs of u have added
    (the last units')  write dQ: `_finish`, a launch of its own            the programs have ended

Nobody waits for a later program, and a GPU starts programs in their order: so what is waited for comes. lag and
ring are such that it mostly has come: see `launch_backward`.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import async_copy

HALF = gl.constexpr(64 * 64)  # elements of half of a tile of dQ, what a consumer computes of it
# Sums of half a tile: eight columns of all 64 rows, and so on. Neighbours of a number lie in other banks.
LANDING = gl.constexpr(gl.SwizzledSharedLayout(4, 1, 8, [1, 0]))
# Of eight rows and 64 columns: a thread has eight columns of two rows, eight threads all of a row.
PART = gl.constexpr(
    gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [4, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [], [], [8, 64]
    )
)
FLAT = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))


@gluon.jit
def wait_for(count_ptr, n):
    """Wait until n programs have counted themselves, and see what they wrote before."""
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
    """Count this program, for whoever waits for what this role's warps wrote."""
    gl.barrier()  # all of them have
    gl.atomic_add(count_ptr, 1, sem="release")


@gluon.jit
def of_half(sums_ptr, unit, half, ring, halves):
    """Return where the sums of half a tile are; halves are counted over the tiles of all heads of a unit."""
    return sums_ptr + (gl.cast(unit % ring, gl.int64) * halves + half) * HALF


@gluon.jit
def lanes(half_ptr):
    """Return pointers to half a tile, (8, 512), each thread's; a thread copies and clears the same numbers."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [1, 1], [1, 0])
    eights = gl.arange(0, 8, layout=gl.SliceLayout(1, LAYOUT))
    return half_ptr + eights[:, None] * 512 + gl.arange(0, 512, layout=gl.SliceLayout(0, LAYOUT))[None, :]


@gluon.jit
def write_part(part, row, dq_ptr, rows_left, scale, D: gl.constexpr):
    """Write eight rows of 64 columns of dQ, row to row + 3 and from row + 8 on, from their sums, (8, 64).

    That undoes what `hand_over` did to their order: sixteen sums are eight columns of row r and of r + 8.
    """
    x = part.load(gl.BlockedLayout([1, 16], [8, 4], [1, 1], [0, 1])) * scale
    x = x.reshape([8, 4, 4, 2, 2]).permute([3, 1, 0, 2, 4]).reshape([8, 64])
    x = gl.convert_layout(x, PART, assert_trivial=True)
    rows = gl.arange(0, 8, layout=gl.SliceLayout(1, PART))
    rows = (row + rows // 4 * 8 + rows % 4)[:, None]
    columns = gl.arange(0, 64, layout=gl.SliceLayout(0, PART))[None, :]
    gl.store(dq_ptr + rows * D + columns, x.to(dq_ptr.dtype.element_ty), mask=(rows < rows_left) & (columns < D))


@gluon.jit
def write_half(slot, dq_ptr, unit, half, scale, sizes, D: gl.constexpr):
    """Write 64 rows and columns of dQ from their sums; by one warp."""
    H_k, group, N_q, N_k, T_r, T_c = sizes
    tile = half // 2
    row, column = tile % T_r * (2 * HALF // D), half % 2 * 64
    if D == 64:
        row, column = row + column, 0
    corner = dq_ptr + (gl.cast(unit * group + tile // T_r, gl.int64) * N_q + row) * D + column
    for part in gl.static_range(8):
        start = part // 2 * 16 + part % 2 * 4
        write_part(slot.slice(part * 64, 64, dim=1), start, corner, N_q - row, scale, D)


@gluon.jit
def finisher(dq, landing, scale, sizes, D: gl.constexpr, CAUSAL: gl.constexpr):
    """Write the program's share of dQ of the unit that began `lag` units before, and zeros in place of the sums."""
    sums_ptr, dq_ptr, counts_ptr, lag, ring = dq
    H_k, group, N_q, N_k, T_r, T_c = sizes
    unit, j = gl.program_id(0) // T_c - lag, gl.program_id(0) % T_c
    halves = 2 * group * T_r
    share = (halves + T_c - 1) // T_c
    if CAUSAL:
        share *= 2  # programs of the first half have more rows, and so more time
    first, end = j * share, gl.minimum((j + 1) * share, halves)
    if unit >= 0:
        wait_for(counts_ptr + unit * 2, T_c)
        for half in range(first - 1, end):
            if half + 1 < end:  # its sums are on the way while those before are written
                at = lanes(of_half(sums_ptr, unit, half + 1, ring, halves))
                async_copy.async_copy_global_to_shared(landing.index((half + 1) % 2), at, cache_modifier=".cg")
            async_copy.commit_group()
            async_copy.wait_group(1)
            if half >= first:
                at = lanes(of_half(sums_ptr, unit, half, ring, halves))
                gl.store(at, gl.zeros(at.shape, gl.float32, at.type.layout))
                write_half(landing.index(half % 2), dq_ptr, unit, half, scale, sizes, D)
        count(counts_ptr + unit * 2 + 1)


@gluon.jit(do_not_specialize=["H_k", "group", "N_q", "N_k", "T_r", "T_c", "lag", "ring", "first"])
def finish(
    sums_ptr, dq_ptr, counts_ptr, scale, H_k, group, N_q, N_k, T_r, T_c, lag, ring, first, D: gl.constexpr,
):  # fmt: skip
    """Write dQ of the last units, from `first` on, half a tile a program."""
    slot = gl.allocate_shared_memory(gl.float32, [8, 512], LANDING)
    halves = 2 * group * T_r
    unit, half = first + gl.program_id(0) // halves, gl.program_id(0) % halves
    at = lanes(of_half(sums_ptr, unit, half, ring, halves))
    async_copy.async_copy_global_to_shared(slot, at, cache_modifier=".cg")
    async_copy.commit_group()
    async_copy.wait_group(0)
    write_half(slot, dq_ptr, unit, half, scale, (H_k, group, N_q, N_k, T_r, T_c), D)
