"""Turn the sums into dQ: times the scale, rounded, and reordered if they have the order of registers."""

import triton
import triton.language as tl

TILE = tl.constexpr(64 * 128)


@triton.jit
def from_rows(sums, dQ, scale, N_q, T_r):
    """Write 64 rows of dQ, (B, H, N_q, 128), whose sums are stored row by row."""
    tile = tl.program_id(0).to(tl.int64)
    rows, columns = tl.arange(0, 64), tl.arange(0, 128)
    x = tl.load(sums + tile * TILE + rows[:, None] * 128 + columns[None, :]) * scale
    rows += tile % T_r * 64
    at = dQ + (tile // T_r * N_q + rows)[:, None] * 128 + columns[None, :]
    tl.store(at, x.to(dQ.dtype.element_ty), mask=rows[:, None] < N_q)


@triton.jit
def from_registers(sums, dQ, scale, N_q, T_r):
    """The same if the sums of each half of the columns have the order of r5_in_order's registers."""
    tile = tl.program_id(0).to(tl.int64)
    x = tl.load(sums + tile * TILE + tl.arange(0, TILE)) * scale
    x = tl.reshape(x, [2, 8, 4, 8, 4, 2, 2])  # half; columns by eights; rows by warp; row; columns by two; +8 rows
    x = tl.reshape(tl.permute(x, [2, 5, 3, 0, 1, 4, 6]), [64, 128])
    rows, columns = tile % T_r * 64 + tl.arange(0, 64), tl.arange(0, 128)
    at = dQ + (tile // T_r * N_q + rows)[:, None] * 128 + columns[None, :]
    tl.store(at, x.to(dQ.dtype.element_ty), mask=rows[:, None] < N_q)
