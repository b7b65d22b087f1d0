"""Make a plain function of one that launches a Triton kernel, so that `examine` can hold it against cases.

Inputs become tensors on the device with nan around them, outputs tensors filled with nan: what reads too far comes
out as nan, what is not written stays nan, and what is written outside an output is found.
"""

import inspect
from functools import wraps
from typing import NamedTuple

import numpy as np
import torch

from flashlib.checks.examine import Finding
from flashlib.kernels import DEVICE

BORDER = 512  # elements


class Out(NamedTuple):
    """Stands for an output of this shape, float32, which the launch is given to fill."""

    shape: tuple

    def __repr__(self):
        return f"a tensor of shape {self.shape}, to be filled"


def launched(answer):
    """Return answer as a function of NumPy arrays, Outs and numbers that returns the filled outputs.

    One output is returned as it is, several as a tuple. Raises Finding if the launch wrote where it may not.
    """

    @wraps(answer)
    def run(*arguments):
        placed = [_Placed(x) for x in arguments]
        answer(*(p.tensor for p in placed))
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        names = list(inspect.signature(answer).parameters)
        for name, p in zip(names, placed, strict=False):
            if p.touched_outside():
                raise Finding(f"something is written outside {name}: mask the store")
        for name, p in zip(names, placed, strict=False):
            if p.is_changed():
                raise Finding(f"the input {name} is written to")
        filled = tuple(p.tensor.cpu().numpy() for p in placed if p.is_output)
        return filled[0] if len(filled) == 1 else filled

    return run


class _Placed:
    """An argument as the launch gets it."""

    def __init__(self, x):
        self.is_output = isinstance(x, Out)
        self.memory = None
        self.tensor = x
        if self.is_output or isinstance(x, np.ndarray):
            shape = x.shape
            size = int(np.prod(shape))
            self.memory = torch.full((size + 2 * BORDER,), torch.nan, device=DEVICE)
            self.tensor = self.memory[BORDER : BORDER + size].view(shape)
            if not self.is_output:
                self.tensor.copy_(torch.from_numpy(np.ascontiguousarray(x)))
                self.before = self.tensor.clone()

    def touched_outside(self):
        if self.memory is None:
            return False
        return not bool(self.memory[:BORDER].isnan().all() and self.memory[-BORDER:].isnan().all())

    def is_changed(self):
        if self.memory is None or self.is_output:
            return False
        return not torch.equal(self.tensor.nan_to_num(), self.before.nan_to_num())
