"""The kernels that ProgramsLab shows without Triton: their texts, what they are launched with, and their grids.

Each text is a kernel that Triton takes. What its mask adds is between « and », so that it can be left out.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from flashlib.widgets.programs_lab.accesses import Grid
from flashlib.widgets.programs_lab.tensors import Tensor

COLUMNS = 6  # of the matrices
ROW_BLOCK = 8  # COLUMNS, rounded up to a power of two

VECTOR = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    «mask = offs < N»
    x = tl.load(x_ptr + offs«, mask=mask»)
    y = tl.load(y_ptr + offs«, mask=mask»)
    tl.store(out_ptr + offs, x + y«, mask=mask»)
"""
TILE = """
@triton.jit
def tile_kernel(X_ptr, Y_ptr, N, D, stride_r, stride_c, out_r, out_c, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    «mask = (r[:, None] < N) & (c[None, :] < D)»
    x = tl.load(X_ptr + r[:, None] * stride_r + c[None, :] * stride_c«, mask=mask»)
    tl.store(Y_ptr + r[:, None] * out_r + c[None, :] * out_c, x«, mask=mask»)
"""
SOFTMAX = """
@triton.jit
def softmax_kernel(X_ptr, Y_ptr, D, stride_r, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    «mask = c < D»
    x = tl.load(X_ptr + row * stride_r + c«, mask=mask, other=-float("inf")»)
    p = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y_ptr + row * D + c, p / tl.sum(p, axis=0)«, mask=mask»)
"""
LOOP = """
@triton.jit
def row_sum_kernel(X_ptr, out_ptr, D, stride_r, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, D, BLOCK):
        c = start + tl.arange(0, BLOCK)
        «mask = c < D»
        x = tl.load(X_ptr + row * stride_r + c«, mask=mask, other=0.0»)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total)
"""


class ModelLaunch(NamedTuple):
    """A kernel, and what it is launched with.

    text: its lines. line: the launch, as Python. grid: the programs on each axis. tensors: those behind its
    pointers, by name. numbers: its other arguments. lanes: for each pointer, the expressions in the kernel for the
    row and the column of a place of its block.
    """

    text: str
    line: str
    grid: Grid
    tensors: dict[str, Tensor]
    numbers: dict[str, int]
    lanes: dict[str, tuple[str, str]]


def launch(setting: dict) -> ModelLaunch:
    """Return the ModelLaunch of a setting's kernel."""
    return KERNELS[setting["kernel"]].launch(setting)


def blocks(N: int, BLOCK: int) -> int:
    """Return how many blocks N elements need."""
    return -(-N // BLOCK)


def _text(template, mask):
    """Return the text of a kernel with its mask, or without."""
    if not mask:
        template = re.sub(r"\n *«[^»]*»(?=\n)|«[^»]*»", "", template)
    return re.sub("[«»]", "", template).strip("\n")


def _line(kernel, grid, *arguments, BLOCK):
    """Return a launch as Python."""
    return f"{kernel}[{grid}]({', '.join(map(str, arguments))}, BLOCK={BLOCK})"


def _vector(setting):
    N, BLOCK = setting["N"], setting["BLOCK"]
    programs = blocks(N, BLOCK)
    return ModelLaunch(
        _text(VECTOR, setting["mask"]),
        _line("add_kernel", (programs,), "x", "y", "out", N, BLOCK=BLOCK),
        (programs, 1, 1),
        {name: Tensor((N,), (1,)) for name in ("x_ptr", "y_ptr", "out_ptr")},
        {"N": N, "BLOCK": BLOCK},
        dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), ("0", "offs")),
    )


def _tile(setting):
    N, BLOCK = setting["N"], setting["BLOCK"]
    grid = blocks(N, BLOCK), blocks(COLUMNS, BLOCK)
    strides = setting["stride_r"], setting["stride_c"]
    across = setting["transposed"]
    shape, out = ((COLUMNS, N), (1, N)) if across else ((N, COLUMNS), (COLUMNS, 1))
    rows, columns = "r[:, None]", "c[None, :]"
    return ModelLaunch(
        _text(TILE, setting["mask"]),
        _line("tile_kernel", grid, "X", "Y", N, COLUMNS, *strides, *out, BLOCK=BLOCK),
        (*grid, 1),
        {"X_ptr": Tensor((N, COLUMNS), strides), "Y_ptr": Tensor(shape, (shape[1], 1))},
        {
            **{"N": N, "D": COLUMNS, "stride_r": strides[0], "stride_c": strides[1]},
            **{"out_r": out[0], "out_c": out[1], "BLOCK": BLOCK},
        },
        {"X_ptr": (rows, columns), "Y_ptr": (columns, rows) if across else (rows, columns)},
    )


def _softmax(setting):
    N, stride = setting["N"], setting["stride_r"]
    return ModelLaunch(
        _text(SOFTMAX, setting["mask"]),
        _line("softmax_kernel", (N,), "X", "Y", COLUMNS, stride, BLOCK=ROW_BLOCK),
        (N, 1, 1),
        {"X_ptr": Tensor((N, COLUMNS), (stride, 1)), "Y_ptr": Tensor((N, COLUMNS), (COLUMNS, 1))},
        {"D": COLUMNS, "stride_r": stride, "BLOCK": ROW_BLOCK},
        dict.fromkeys(("X_ptr", "Y_ptr"), ("row", "c")),
    )


def _loop(setting):
    N, stride, BLOCK = setting["N"], setting["stride_r"], setting["BLOCK"]
    return ModelLaunch(
        _text(LOOP, setting["mask"]),
        _line("row_sum_kernel", (N,), "X", "out", COLUMNS, stride, BLOCK=BLOCK),
        (N, 1, 1),
        {"X_ptr": Tensor((N, COLUMNS), (stride, 1)), "out_ptr": Tensor((N,), (1,))},
        {"D": COLUMNS, "stride_r": stride, "BLOCK": BLOCK},
        {"X_ptr": ("row", "c"), "out_ptr": ("0", "row")},
    )


class ModelKernel(NamedTuple):
    """A kernel that can be chosen: its name on the page, what it does, its settings, and its launch."""

    label: str
    title: str
    settings: tuple[str, ...]
    launch: Callable[[dict], ModelLaunch]


KERNELS = {
    "vector": ModelKernel(
        "sum of vectors", "each program adds a block of two vectors", ("N", "BLOCK", "mask"), _vector
    ),
    "tile": ModelKernel(
        "tiles of a matrix",
        "each program copies a tile of a matrix",
        ("N", "BLOCK", "stride_r", "stride_c", "mask", "transposed"),
        _tile,
    ),
    "softmax": ModelKernel(
        "softmax of rows", "each program takes a row, all at once", ("N", "stride_r", "mask"), _softmax
    ),
    "loop": ModelKernel(
        "loop over a row",
        "each program adds up a row, a block in each turn of its loop",
        ("N", "BLOCK", "stride_r", "mask"),
        _loop,
    ),
}
