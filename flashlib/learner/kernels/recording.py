"""What is recorded of kernels: their loads and stores, and what their variables held after each turn of a loop."""

from typing import NamedTuple

import numpy as np


class Argument(NamedTuple):
    """A tensor that a kernel was given: its name there, its strides in elements, its numbers before the launch."""

    name: str
    strides: tuple[int, ...]
    numbers: np.ndarray


class RecordedLaunch(NamedTuple):
    """A kernel that was launched, by name, with the tensors and the numbers that it was given."""

    kernel: str
    tensors: tuple[Argument, ...]
    numbers: dict[str, float]


class RecordedProgram(NamedTuple):
    """A program that ran: the number of its launch, and its place in the grid."""

    launch: int
    at: tuple[int, int, int]


class MemoryAccess(NamedTuple):
    """A load, a store or an atomic operation of a program.

    program: its number. function, line: where it stands. pointer: the name of the tensor, among the arguments of
    the launch, "" if there is none. offsets: in elements, counted from the pointer. mask: which lanes take part.
    outside: which of these are beside the elements of the tensor. masked: whether a mask was given.
    """

    program: int
    function: str
    line: int
    pointer: str
    is_store: bool
    offsets: np.ndarray
    mask: np.ndarray
    outside: np.ndarray
    masked: bool


class Loop(NamedTuple):
    """A loop of a kernel or of a function that it calls: the function's name, and the line."""

    function: str
    line: int


class LoopTurn(NamedTuple):
    """A turn of a loop of a program, at its end.

    number: how many turns this loop had before, in this program. inside: the loops around it, the outermost first.
    names: {variable: its numbers}. carried: the variables that the next turn reads before it sets them. products:
    the sizes (M, K, N) of each tl.dot of this turn, and not of a loop inside it. accesses: the first of its
    accesses, and the end.
    """

    program: int
    loop: Loop
    number: int
    inside: tuple[Loop, ...]
    names: dict[str, np.ndarray]
    carried: tuple[str, ...]
    products: tuple[tuple[int, int, int], ...]
    accesses: tuple[int, int]


class Recording(NamedTuple):
    """What kernels did, in order.

    results: the tensors that were returned, each with the name of the argument that it is in the last launch, or
    "". error: what was raised, or "". sources: {function: its text} of the kernels and what they called.
    """

    launches: list[RecordedLaunch]
    programs: list[RecordedProgram]
    accesses: list[MemoryAccess]
    turns: list[LoopTurn]
    results: tuple[tuple[str, np.ndarray], ...]
    error: str
    sources: dict[str, str]
