"""What the programs of a kernel did: their loads and stores, place by place."""

from typing import NamedTuple

import numpy as np

from flashlib.widgets.programs_lab.tensors import Tensor

Grid = tuple[int, int, int]


class BlockAccess(NamedTuple):
    """A load or a store: at which offsets from a pointer, in elements, and which of them the mask lets through.

    line: its key in the `lines` of the ShownRun. turn: how often this program ran the line before. shape: that of
    the block. The arrays have one number for each of its places, in a row. rows, columns: where in the matrix of
    the pointer the kernel means a place to be; None if it does not say.
    """

    pointer: str
    kind: str  # "load" or "store"
    line: int
    turn: int
    shape: tuple[int, ...]
    offsets: np.ndarray
    mask: np.ndarray
    rows: np.ndarray | None = None
    columns: np.ndarray | None = None


class ShownProgram(NamedTuple):
    """A program by its number on each axis of the grid, what it did, and the values of its lines.

    values: (line, turn, name, value).
    """

    number: Grid
    accesses: list[BlockAccess]
    values: list[tuple[int, int, str, object]]


class KernelLine(NamedTuple):
    """A line of a kernel: its number, as an editor shows it, and its text."""

    number: int
    text: str


class ShownRun(NamedTuple):
    """Programs of a kernel that ran.

    lines: those of the kernel that are shown. launch: how it was launched, as Python. grid: the programs on each
    axis. shown: those of them that ran, from the first on. tensors: those behind the pointers, by name.
    """

    lines: dict[int, KernelLine]
    launch: str
    grid: Grid
    shown: Grid
    programs: list[ShownProgram]
    tensors: dict[str, Tensor]
