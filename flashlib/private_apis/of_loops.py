"""Private parts of Triton's interpreter where the loops of a kernel are watched, and the line that runs.

The interpreter rewrites the syntax tree of a kernel, and of each function that it calls, before it first runs. A
call at the start and one at the end of each turn of a loop are added to that.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from unittest import mock

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

BEGUN, ENDED = "_turn_begun", "_turn_ended"  # attributes of what the rewritten kernels have at hand anyway


class LoopWatch(Protocol):
    """What is told of each turn of a loop of a kernel, or of a function that it calls: `learner.kernels.Recorder`.

    function, line: of the loop. names: what is in the function's variables then, as arrays. carried: those of them
    that a turn reads before it sets them, which is what one turn leaves to the next.
    """

    def turn_begun(self, function: str, line: int) -> None: ...
    def turn_ended(
        self, function: str, line: int, names: dict[str, np.ndarray], carried: tuple[str, ...]
    ) -> None: ...


@contextmanager
def turns_seen(watch: LoopWatch) -> Iterator[None]:
    """Tell of each turn of a loop of the kernels that are launched while this lasts."""

    def begun():
        frame = sys._getframe(1)
        if not _is_triton(frame):
            watch.turn_begun(frame.f_code.co_name, frame.f_lineno)

    def ended(names, carried):
        frame = sys._getframe(1)
        if not _is_triton(frame):
            watch.turn_ended(frame.f_code.co_name, frame.f_lineno, _arrays(names), carried)

    rewriter, semantic = interpreter.FunctionRewriter, interpreter.interpreter_semantic
    with (
        mock.patch.object(rewriter, "ast_transformer", _telling(type(rewriter.ast_transformer))),
        mock.patch.dict(interpreter.InterpretedFunction.rewritten_fn, clear=True),  # those tell nothing
        mock.patch.object(semantic, BEGUN, begun, create=True),
        mock.patch.object(semantic, ENDED, ended, create=True),
    ):
        yield


def sources() -> dict[str, str]:
    """Return {function: its text} of the kernels that have run, and of the functions that they called."""
    found = {}
    for function in interpreter.InterpretedFunction.rewritten_fn:
        if not function.__module__.startswith("triton."):
            with suppress(OSError, TypeError):  # typed into a shell
                found[function.__name__] = inspect.getsource(function)
    return found


def running_line() -> tuple[str, int]:
    """Return the name of the kernel, or of the function that it calls, that runs now, and its line."""
    kernels = {function.__code__ for function in interpreter.InterpretedFunction.rewritten_fn.values()}
    frame: Any = sys._getframe(1)
    while frame and (frame.f_code not in kernels or _is_triton(frame)):
        frame = frame.f_back
    return (frame.f_code.co_name, frame.f_lineno) if frame else ("", 0)


def _is_triton(frame):
    """Return whether a frame is that of Triton's own functions, such as `tl.sort`."""
    return frame.f_globals.get("__name__", "").startswith("triton.")


def _arrays(names):
    """Return the numbers in variables, as arrays: tiles, numbers of a kernel and of Python; no pointers."""
    found = {}
    for name, value in names.items():
        value = getattr(value, "value", value)  # of a constexpr
        if isinstance(value, tl.tensor):
            if not value.dtype.is_ptr() and isinstance(data := getattr(value.handle, "data", None), np.ndarray):
                if value.dtype.is_bf16():
                    data = (data.astype(np.uint32) << 16).view(np.float32)
                found[name] = np.array(data).reshape([n.value for n in value.shape])
        elif isinstance(value, bool | int | float):
            found[name] = np.array(value)
    return found


def _telling(base):
    """Return a transformer of syntax trees that does what an instance of `base` does, and adds the calls."""

    class Telling(base):
        def visit_For(self, node):
            return self._loop(node)

        def visit_While(self, node):
            return self._loop(node)

        def _loop(self, node):
            carried = _carried(node)
            self.generic_visit(node)
            node.body.insert(0, _call(f"{BEGUN}()", node))
            node.body.append(_call(f"{ENDED}(locals(), {carried!r})", node))
            return node

    return Telling()


def _call(call, loop):
    """Return the statement that makes a call, on the line of its loop."""
    statement = ast.parse(f"interpreter_semantic.{call}").body[0]
    for node in ast.walk(statement):
        ast.copy_location(node, loop)
        node.end_lineno, node.end_col_offset = loop.lineno, loop.col_offset  # a call is where its name ends
    return statement


def _carried(loop):
    """Return the names that a turn of a loop reads before it sets them, and sets, in the order of the text."""
    read, assigned = set(), {}

    def visit(node):
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign | ast.For):
            first = node.iter if isinstance(node, ast.For) else node.value
            for child in [first, *(child for child in ast.iter_child_nodes(node) if child is not first)]:
                visit(child)
        elif isinstance(node, ast.AugAssign):
            visit(node.value)
            for name in [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]:
                if name not in assigned:
                    read.add(name)
                assigned[name] = True
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                assigned[node.id] = True
            elif node.id not in assigned:
                read.add(node.id)
        elif node is not None:
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in loop.body:
        visit(statement)
    return tuple(name for name in assigned if name in read)
