"""Run the text of a small kernel in NumPy, one program at a time: its accesses, and the values of its lines.

It knows what the kernels of kernels.py use of Triton's language, and no more. What is loaded is a block of zeros:
no offset and no mask depends on it.
"""

import ast
import functools
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from flashlib.widgets.programs_lab.accesses import BlockAccess, KernelLine, ShownProgram, ShownRun
from flashlib.widgets.programs_lab.kernels import ModelLaunch


def run(launch: ModelLaunch) -> ShownRun:
    """Return the ShownRun of all programs of a launch, the first axis of the grid running fastest."""
    x, y, z = launch.grid
    numbers = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    programs = [_RunningProgram(launch, number).done() for number in numbers]
    lines = {number: KernelLine(number, text) for number, text in enumerate(launch.text.splitlines(), 1)}
    return ShownRun(lines, launch.line, launch.grid, launch.grid, programs, launch.tensors)


class _Pointer(NamedTuple):
    name: str
    offsets: Any = 0

    def __add__(self, other):
        return _Pointer(self.name, self.offsets + other)


class _RunningProgram:
    """A program while it runs."""

    def __init__(self, launch, number):
        self.lanes, self.program = launch.lanes, ShownProgram(number, [], [])
        self.steps, self.line, self.turns = _compiled(launch.text), 0, {}
        language = SimpleNamespace(
            program_id=number.__getitem__, arange=np.arange, exp=np.exp, max=np.max, sum=np.sum
        )
        language.load, language.store = self.load, self.store
        self.names = {"tl": language, **launch.numbers, **{name: _Pointer(name) for name in launch.tensors}}

    def done(self):
        self.follow(self.steps)
        return self.program

    def follow(self, steps):
        for step in steps:
            if step.body is None:
                self.begin(step)
                exec(step.code, self.names)
                self.keep(step)
                continue
            for value in eval(step.code, self.names):
                self.begin(step)
                self.names[step.name] = value
                self.keep(step)
                self.follow(step.body)

    def begin(self, step):
        self.line = step.line
        self.turns[step.line] = self.turns.get(step.line, -1) + 1

    def keep(self, step):
        if step.name:
            self.program.values.append((step.line, self.turns[step.line], step.name, self.names[step.name]))

    def load(self, pointer, mask=True, other=0.0):  # noqa: ARG002
        return np.zeros(self.access("load", pointer, mask))

    def store(self, pointer, value, mask=True):  # noqa: ARG002
        self.access("store", pointer, mask)

    def access(self, kind, pointer, mask):
        """Note an access; return the shape of its block."""
        shape = np.shape(pointer.offsets)
        places = (eval(_expression(text), self.names) for text in self.lanes[pointer.name])
        offsets, rows, columns = (_filled(x, shape, int) for x in (pointer.offsets, *places))
        arrays = offsets, _filled(mask, shape, bool), rows, columns
        turn = self.turns[self.line]
        self.program.accesses.append(BlockAccess(pointer.name, kind, self.line, turn, shape, *arrays))
        return shape


def _filled(x, shape, dtype):
    """Return what broadcasts to a shape as one number for each place, in a row; broadcast_to takes far longer."""
    filled = np.empty(shape, dtype)
    filled[...] = x
    return filled.ravel()


class _Step(NamedTuple):
    """A line that is run, or a loop, whose code is what it goes through."""

    line: int
    code: CodeType
    name: str  # of what gets a value, or ""
    body: list | None


@functools.lru_cache(32)
def _compiled(text):
    """Return the steps of a kernel's text."""
    (function,) = ast.parse(text).body
    return [_step(node) for node in function.body]


def _step(node):
    if isinstance(node, ast.For):
        return _Step(
            node.lineno, _code(ast.Expression(node.iter), "eval"), node.target.id, list(map(_step, node.body))
        )
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return _Step(node.lineno, _code(ast.Module([node], []), "exec"), getattr(target, "id", ""), None)


def _code(tree, mode):
    return compile(ast.fix_missing_locations(tree), "<kernel>", mode)


@functools.lru_cache(32)
def _expression(text):
    return compile(text, "<lane>", "eval")
