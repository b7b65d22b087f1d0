"""Slips of a first kernel for which Triton's own error says little: what to say in its place."""

import os
import traceback

from flashlib.checks.engine import Finding

SLIPS = [  # a part of the error, and the id of the Finding
    ("object of type 'int' has no len()", "grid_not_tuple"),
    ("arange's arguments must be of type tl.constexpr", "constexpr_missing"),
    ("exceeds dtype primitive_bitwidth (1 bits)", "bool_argument"),
    ("'NoneType' object has no attribute 'to_tensor'", "not_triton"),
    ("Both operands must be same dtype", "dot_dtypes"),
    ("must have equal reduction dimensions", "dot_sizes"),  # in the interpreter
    ("are not compatible for matmul", "dot_sizes"),
]
OF_TORCH = "must be Tensor, not tensor"  # torch raises this when it is given a block


def slip_of(error: BaseException) -> Finding | None:
    """Return the Finding of a slip that an error in a launch comes from, or None."""
    said = str(error)
    if OF_TORCH in said:
        return Finding("torch_in_kernel")
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    if f"{os.sep}triton{os.sep}" not in raised_in:
        return None
    return next((Finding(id) for part, id in SLIPS if part in said), None)
