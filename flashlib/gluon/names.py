"""Names for what a kernel allocates, taken from its own lines, such as `k_full`."""

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Iterable
from linecache import getlines
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from flashlib.pipeline import commands as c

OURS = str(Path(__file__).parents[1] / "kernels")


class Names:
    """Names for one program. code: of the kernel."""

    def __init__(self, code: CodeType) -> None:
        self.code, self.counts = code, dict.fromkeys(c.UNITS, 0)
        self.is_ours = code.co_filename.startswith(OURS)
        self.parts: dict[str, list[str]] = {}

    def learn(self, functions: Iterable[FunctionType]) -> None:
        """Learn names from how functions unpack tuples: `k_slots, k_full, k_empty = k` names the parts of k."""
        for code in (function.__code__ for function in functions if self._counts(function.__code__)):
            for _, target, value in _assignments(code):
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Name):
                    self.parts.setdefault(value.id, [ast.unparse(one) for one in target.elts])

    def next(self) -> str:
        """Return a name for what the current line allocates, in the kernel or in a helper that it calls."""
        frame: Any = sys._getframe(2)
        inner = ""
        while frame and frame.f_code is not self.code:
            if not inner and self._counts(frame.f_code):
                line, names = self._line(frame)
                inner = names[self._nth(line) % len(names)] if names else ""
            frame = frame.f_back
        line, names = self._line(frame) if frame else (0, [])
        nth = self._nth(line)
        if len(names) > 1 and nth < len(names):
            return self._once(names[nth])
        return self._once("_".join(filter(None, (*names[:1], inner))) or "shared")

    def _once(self, name):
        name = name.replace(".", "_")
        taken = sum(one == name or one.startswith(f"{name}#") for one in self.counts if isinstance(one, str))
        name = f"{name}#{taken}" if taken else name
        self.counts[name] = 0
        return name

    def _counts(self, code):
        """Return whether names in this function count: for a learner's kernel, those in our helpers do not."""
        return self.is_ours or not code.co_filename.startswith(OURS)

    def _nth(self, line):
        """Return how many names a line has given so far."""
        nth = self.counts[line] = self.counts.get(line, -1) + 1
        return nth

    def _line(self, frame):
        """Return a key for the statement that a frame executes, and the names that it assigns."""
        for node, target, value in _assignments(frame.f_code):
            if node.lineno <= frame.f_lineno <= node.end_lineno:
                return (frame.f_code.co_name, node.lineno), self._of(target, value)
        return (frame.f_code.co_name, frame.f_lineno), []

    def _of(self, target, value):
        if isinstance(target, ast.Tuple):
            inside = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            values = value.elts if inside else [None] * len(target.elts)
            return [name for one, x in zip(target.elts, values, strict=True) for name in self._of(one, x)]
        name = ast.unparse(target)
        if not isinstance(value, ast.Tuple):
            return [name]
        parts = self.parts.get(name, [])
        return parts if len(parts) == len(value.elts) else [name] * len(value.elts)


@functools.lru_cache(maxsize=256)
def _assignments(code):
    """Return the assignments in a function: the node, with line numbers of the file, its target and value."""
    lines = getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines)))) if lines else ast.parse("")
    except SyntaxError:
        return ()
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return tuple((one, one.targets[0], one.value) for one in ast.walk(tree) if isinstance(one, ast.Assign))
