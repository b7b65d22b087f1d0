"""Turn a function that launches a Triton kernel into a plain function, so that `examine` can run it on cases.

Inputs become tensors on the device with nan around them, and outputs tensors filled with nan: reading too far
gives nan, elements that are not written stay nan, and writing outside an output is detected. `watch` sees the
rest.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import re
import types
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch

from flashlib.checks.engine import Finding, Known, Measured, Outcome, Verdict, examine
from flashlib.checks.engine.value_text import argument_names
from flashlib.checks.harness import undefined
from flashlib.checks.harness.kernel_globals import refused_global
from flashlib.checks.harness.launch_slips import slip_of
from flashlib.checks.harness.strided import Out, Strided, extent, strides_of
from flashlib.checks.harness.watch import Watch, watched
from flashlib.kernels import DEVICE, INTERPRETED
from flashlib.learner.kernels.recorder import cause_of, is_without_grid
from flashlib.private_apis import of_kernels, of_watching

LONG = 260 if INTERPRETED else 5000  # elements: more than one block, or than any block if none can be watched
BORDER = 512  # elements
UNTOUCHED = 1e38  # around an output
NO_NUMBER = -(2**31)  # around whole numbers
UNWRITTEN = 0x7FC0DEAD  # in an output: the bits of a nan that arithmetic does not produce


def launched(
    answer: Callable, way: Callable[..., Finding | None] = lambda watch, *arguments: None,
    note: Callable[[Watch], object] = lambda watch: None,
    programs: Callable[..., int] | None = None,
) -> Callable:  # fmt: skip
    """Return answer as a function of arrays, Strideds, Outs and numbers; it returns the filled outputs, Measured.

    A single output is returned as it is, several as a tuple; without an Out, the answer's result. float16 stays
    float16, whole numbers become int32, others float32. way: takes the Watch and the arguments, and returns
    another Finding or None. note: gets the Watch after each launch. programs: how many the arguments need, to tell
    whether extra programs write past an end. Raises Finding if the launch writes outside of the outputs.
    """

    @wraps(answer)
    def run(*arguments):
        if of_kernels.is_kernel(answer):
            raise Finding("kernel_passed")
        placed = _placed(answer, arguments)
        tensors = {name: p.tensor for name, p in placed.items() if p.memory is not None}
        with watched(**tensors) as watch:
            try:
                result = unwrapped(answer, *(p.tensor for p in placed.values()))
            except Exception as error:
                raise slip_of(error) or error from None
        note(watch)
        outputs = _checked(placed, programs and watch.sees and watch.programs > programs(*arguments))
        found = _found(watch, outputs, any(0 in X.shape for X in tensors.values())) or way(watch, *arguments)
        filled = tuple(p.tensor.cpu().numpy() for p in outputs.values())
        if watch.undefined and not found:
            result = undefined.copied(result)
            found = undefined.depends(watch, (filled, result), lambda: _again(answer, arguments))
        if filled:
            return Measured(filled[0] if len(filled) == 1 else filled, found)
        return Measured(result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result, found)

    return run


def _placed(answer, arguments):
    """Return {name: argument as the launch receives it}."""
    names = argument_names(answer, arguments)
    return {name: _Placed(x) for name, x in zip(names, arguments, strict=True)}


def _checked(placed, too_many=False):
    """Return the outputs among the placed arguments; raises Finding if anything else was written to.

    too_many: whether more programs ran than the arguments need.
    """
    for name, p in placed.items():
        try:
            p.check_outside(name)
        except Finding:
            if too_many:
                raise Finding("too_many_programs", name=name) from None
            raise
    for name, p in placed.items():
        p.check_changed(name)
    return {name: p for name, p in placed.items() if p.is_output}


def _again(answer, arguments):
    """Launch again; return the filled outputs and the answer's result."""
    placed = _placed(answer, arguments)
    result = unwrapped(answer, *(p.tensor for p in placed.values()))
    return tuple(p.tensor.cpu().numpy() for p in _checked(placed).values()), result


def _found(watch, outputs, empty):
    """Return a Finding about what was launched, loaded and not written, or None.

    empty: whether a tensor is empty, so that there may be nothing to launch.
    """
    if watch.ours:
        return Finding("course_kernel", name=watch.ours)
    missing = {name: int(p.unwritten().sum()) for name, p in outputs.items()}
    for name, n in missing.items():
        if n and n == outputs[name].tensor.numel():
            found = Finding("not_written", name=name)
            if watch.launches and not watch.elsewhere:
                return found  # other elements may be right: a known mistake may explain it
            raise found
    if not watch.launches and not empty:
        raise Finding("no_kernel")
    if watch.refused:
        return _of_global(*watch.refused)
    if watch.outside:
        return Finding("stored_outside" if watch.stored else outside_id(watch), name=watch.outside)
    if watch.tf32:
        return Finding("tf32")
    for name, n in missing.items():
        if n:
            return Finding("partly_written", name=name, n=n, size=outputs[name].tensor.numel())
    return None


def outside_id(watch: Watch) -> str:
    """Return the id of a load outside of a tensor's elements: its mask is missing or wrong."""
    return "outside_masked" if watch.behind_mask else "outside"


def unwrapped(f: Callable, *arguments: object) -> Any:
    """Return f(*arguments) once the device is done; instead of an error of Triton's, raise its cause."""
    try:
        with of_watching.conditions_refused(_tile_in_if):
            result = f(*arguments)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return result
    except Exception as error:
        cause = cause_of(error)
        if is_without_grid(cause):
            raise Finding("no_grid") from None
        raise cause from None


def _tile_in_if(line):
    joined = re.search(r"[&|]", line) and not re.search(r"\b(if|while|and|or|not)\b", line)
    raise Finding("chained_comparison" if joined else "tile_in_if")


def _dtype(given):
    """Return the dtype on the device for an array's dtype."""
    return torch.int32 if given.kind in "iu" else torch.float16 if given == np.float16 else torch.float32


class _Placed:
    """An argument as the launch receives it."""

    def __init__(self, x):
        self.is_output = isinstance(x, Out)
        self.memory, self.tensor = None, x
        if not isinstance(x, Out | Strided | np.ndarray):
            return
        self.extent = extent(x)
        self.border = BORDER + self.extent
        dtype = torch.float32 if self.is_output else _dtype(np.asarray(x).dtype)
        self.around = UNTOUCHED if self.is_output else torch.nan if dtype.is_floating_point else NO_NUMBER
        size = self.extent + 2 * self.border
        self.memory = torch.full((size,), self.around, dtype=dtype, device=DEVICE)
        self.place = x.shape, strides_of(x), self.border
        self.tensor = self.memory.as_strided(*self.place)
        self.own = torch.zeros_like(self.memory, dtype=torch.bool)
        self.own.as_strided(*self.place).fill_(True)
        if self.is_output:
            self._bits().fill_(UNWRITTEN)
        else:
            self.tensor.copy_(torch.from_numpy(np.ascontiguousarray(np.asarray(x))))
            self.before = self.tensor.clone()

    def _bits(self):
        return self.memory.view(torch.int32).as_strided(*self.place)

    def unwritten(self):
        """Return which elements of an output were not written."""
        return self._bits() == UNWRITTEN

    def check_outside(self, name):
        """Raise Finding if something was written next to it."""
        if self.memory is None:
            return
        as_it_was = self.memory.isnan() if np.isnan(self.around) else self.memory == self.around
        at = (~as_it_was & ~self.own).nonzero().flatten() - self.border
        if not len(at):
            return
        if self.is_output and self.tensor.isnan().any():
            raise Finding("output_strides", name=name)
        past = int((at >= self.extent).sum())
        if past == len(at):
            raise Finding("one_past_end" if past == 1 else "past_end", name=name, n=past)
        inside = (at >= 0).all()
        raise Finding(
            ("between" if self.tensor.ndim > 1 else "between_elements") if inside else "written_outside", name=name
        )

    def check_changed(self, name):
        """Raise Finding if it is an input and was written to."""
        if self.memory is not None and not self.is_output:
            if not torch.equal(self.tensor.nan_to_num(), self.before.nan_to_num()):
                raise Finding("input_written", name=name)


def examine_kernel(
    answer: Any, launch: Callable[[Callable], Callable], cases: Sequence, known: Known, **options: Any
) -> Verdict:
    """Return the Verdict on a kernel, a stub, or an answer that is not a kernel.

    launch: turns a kernel into a function of the arguments of a case. options: see `examine`.
    """
    kernels = Known("kernels")
    if not of_kernels.is_kernel(answer):
        return kernels.wrong("plain_function", name=getattr(answer, "__name__", "it"))
    if "NotImplementedError" in answer.fn.__code__.co_names:  # the compiler does not support exceptions
        return Verdict("", Outcome.NOT_SOLVED, "")
    if found := refused_global(answer.fn):
        return kernels.verdict(_of_global(*found))
    return examine(launch(answer), cases, known, **options)


def _of_global(name, value):
    """Return the Finding about a global that the compiler refuses."""
    return Finding("plain_function" if isinstance(value, types.FunctionType) else "plain_global", name=name)
