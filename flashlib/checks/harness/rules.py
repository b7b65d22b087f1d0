"""Functions that an exercise passes to a kernel: one text, for both Triton and NumPy."""

# ruff: noqa: I001  flashlib.kernels before triton
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from flashlib.checks.engine import Finding, ProgramText

AS_NUMPY = SimpleNamespace(
    abs=np.abs, exp=np.exp, exp2=np.exp2, where=np.where, maximum=np.maximum, minimum=np.minimum
)


PARAMETERS = {"SEEN": "b, h, r, c", "SCORE": "S, b, h, r, c"}


@dataclass(frozen=True)
class Rule:
    """A function of a score or of a position: its name, one of PARAMETERS, and an expression in Triton's terms.

    Calling it computes with NumPy. Operands of % must not be negative: there the two differ.
    """

    name: str
    text: str

    def __call__(self, *arguments: Any) -> Any:
        return _in_numpy(self)(*arguments)

    def __repr__(self) -> str:
        return self.text

    @property
    def kernel(self) -> Any:
        """The function for a kernel to call, decorated with @triton.jit; the same object each time."""
        return _in_triton(self)


def seen(text: str) -> Rule:
    """Return the Rule for which scores are visible."""
    return Rule("SEEN", text)


def score(text: str) -> Rule:
    """Return the Rule that changes scores."""
    return Rule("SCORE", text)


@contextmanager
def called() -> Iterator[None]:
    """Turn an exception in this context into a Finding if it says that a rule is called with wrong arguments."""
    try:
        yield
    except Exception as error:  # the compiler's errors are of other types, with Python's text in them
        if found := re.search(r"\b(SEEN|SCORE)\(\) (?:missing|takes|got)", str(error)):
            raise Finding("called_otherwise", name=found[1], parameters=PARAMETERS[found[1]]) from error
        raise


@cache
def _in_numpy(rule: Rule) -> Callable:
    return eval(f"lambda {PARAMETERS[rule.name]}: {rule.text}", {"tl": AS_NUMPY})


@cache
def _in_triton(rule: Rule) -> Any:
    import flashlib.kernels  # noqa: F401  before triton
    import triton
    import triton.language as tl

    text = f"@triton.jit\ndef {rule.name}({PARAMETERS[rule.name]}):\n    return {rule.text}"
    return ProgramText(text, {"triton": triton, "tl": tl}).function
