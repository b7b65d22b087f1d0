"""Whether an object is a kernel of Triton or Gluon, or a part of their language."""

from types import FunctionType
from typing import Any

import triton.language as tl


def is_gluon(kernel: Any) -> bool:
    """Return whether a kernel is in Gluon."""
    return type(kernel).__name__ == "GluonJITFunction"


def is_kernel(x: object) -> bool:
    """Return whether x is a kernel of Triton, compiled or interpreted."""
    return type(x).__name__ in ("JITFunction", "InterpretedFunction")


def function_of(x: Any) -> FunctionType | None:
    """Return the Python function of a kernel of Triton or Gluon, None for anything but a kernel."""
    return x.fn if is_kernel(x) or is_gluon(x) else None


def is_constant(x: object) -> bool:
    """Return whether x is a constant of a kernel."""
    return isinstance(x, tl.constexpr)


def is_language(x: object) -> bool:
    """Return whether x is marked as a part of Triton's language."""
    return getattr(x, "__triton_builtin__", False) or getattr(x, "__triton_aggregate__", False)
