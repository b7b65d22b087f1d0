"""Answers in Gluon: their launches run in the course's interpreter, and a run that goes wrong can be played.

An answer is right if its numbers are right in two orders of events, and its commands in many others.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib import gluon
from flashlib.checks.engine import Finding, Known, Measured, Outcome, Verdict, compiling, examine
from flashlib.checks.engine.cases import line_of
from flashlib.checks.harness import roles
from flashlib.checks.harness.gluon_causes import cause, mismatched_slots, refilled_slots, slowdowns, wasted_work
from flashlib.checks.harness.kernel_globals import refused_global
from flashlib.gluon import Ran, Wrong
from flashlib.pipeline import PipelineFault, Product, Program, Report, schedules
from flashlib.private_apis import of_kernels

SEARCH = {"states": 1500, "schedules": 60}
BORDER = 1024  # elements of nan on each side of a tensor: the copy unit requires multiples of 16 bytes
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


class FailedRun(NamedTuple):
    """A run that went wrong: the number of its program in the launch, its Program, and its Report or None."""

    number: tuple
    program: Program
    report: Report | None


class Harness:
    """Turns an answer into a function of arrays, and keeps the first run that goes wrong.

    call: takes the answer and the arguments of a case, launches kernels, and returns what they computed. search:
    whether to try other orders of events; without it only the numbers of one order count. consumers: how many are
    required.
    """

    def __init__(self, call: Callable, answer: Any, *, search: bool = True, consumers: int = 0) -> None:
        self.call, self.answer, self.search, self.consumers = call, answer, search, consumers
        self.wrong: FailedRun | None = None
        self.cause = ""  # the id of its Finding
        self.arguments: tuple = ()
        self.line = ""  # a line that the compiler or the hardware would refuse
        self.rows: set[int] = set()  # of tiles
        self.__signature__ = inspect.signature(call).replace(
            parameters=list(inspect.signature(call).parameters.values())[1:]
        )

    def __call__(self, *arguments: Any) -> Measured:
        ran: list[Ran] = []
        try:
            with gluon.taken(self._see, ran, both=self.search):
                result, found = self.call(self.answer, *arguments)
        except Wrong as wrong:
            self.line = self.line or line_of(wrong)
            raise Finding(wrong.id, **wrong.fields) from wrong
        for one in ran:
            if one.fault:
                raise self._fault(one, one.fault, arguments)
        if not ran:
            raise Finding("no_launch")
        if self.consumers and len(ran[-1].said) < 2:
            raise Finding("no_roles")
        if 0 < max(map(_multiply, ran)) < self.consumers and not found:
            found = Finding("one_consumer")
        if self.consumers and not found and isinstance(result, tuple):
            given = self.__signature__.bind(*arguments).arguments
            shape = (*given["Q"].shape[:3], given["K"].shape[2]) if given["causal"] else ()
            found = next(wasted_work(ran, result, shape), None)
        if self.search and not found:
            longest = max(ran, key=lambda one: sum(map(len, one.said.values())))
            found = self._searched(longest, arguments) or next(self._without_fault(longest), None)
        return Measured(result, found)

    def _see(self, kernel, arguments, options):
        if (kernel.fn.__module__ or "").startswith("flashlib.kernels."):
            raise Finding("course_kernel", name=kernel.__name__)
        if bad := refused_global(kernel.fn):
            name, value = bad
            raise Finding("not_gluon" if callable(value) else "plain_global", name=name)
        self.rows |= {x.block_shape[-2] for x in arguments if isinstance(x, TensorDescriptor)}
        if self.search:
            compiling.note(kernel, arguments, options)

    def _searched(self, ran, arguments):
        report = schedules.check(ran.program(), **SEARCH)
        if not report.fault:
            return None
        return self._keep(FailedRun(ran.number, ran.program(), report), cause(ran, report.fault), arguments)

    def _without_fault(self, ran):
        """Yield a Finding for each thing that is wrong with a program although no fault was found in it."""
        if not self.consumers:  # then slots and barriers have our names
            yield from mismatched_slots(ran)
            yield from refilled_slots(ran)
        yield from slowdowns(ran)

    def _fault(self, ran: Ran, fault: PipelineFault, arguments: tuple) -> Finding:
        """Return the Finding about a fault; keep the shortest schedule that leads to one.

        Commands recorded only up to a fault may lead to other faults, because the commands after it are missing.
        """
        program, report = ran.program(), None
        if self.search:
            report = schedules.check(program, **SEARCH)
            if report.fault and (ran.whole or report.fault.kind == fault.kind):
                fault = report.fault
            else:
                report = None
        return self._keep(FailedRun(ran.number, program, report), cause(ran, fault), arguments)

    def _keep(self, run, found, arguments):
        if self.wrong is None:
            self.wrong, self.cause, self.arguments = run, found.id, arguments
        return found


def _multiply(ran):
    """Return how many roles issue products."""
    return sum(any(isinstance(one, Product) for one in said) for said in ran.said.values())


class PlayedLaunch(NamedTuple):
    """A run that a Verdict can play: the answer in the case that went wrong. call: a module-level function."""

    call: Callable
    arguments: tuple

    def play(self, answer: Callable) -> Any:
        from flashlib.widgets import PipelinePlayer  # here: checks do not need widgets

        harness = Harness(self.call, answer)
        with contextlib.suppress(Finding):
            harness(*self.arguments)
        if harness.wrong is None or harness.wrong.report is None:
            return None
        return PipelinePlayer(harness.wrong.program, report=harness.wrong.report)


class Variants:
    """Edits of the solution for the tiles that an answer uses. edits: {rows of its largest tile: an edit}."""

    def __init__(self, harness: Harness, edits: dict[int, str]) -> None:
        self.harness, self.edits = harness, edits

    def __iter__(self) -> Iterator[str]:
        largest = max(self.harness.rows, default=0)
        return iter([self.edits[largest]] if largest in self.edits else [])


def examine_gluon(
    call: Callable, answer: Any, stages: list, known: Known, outputs: tuple[str, ...], *,
    variants: dict | None = None, consumers: int = 0,
) -> Verdict:  # fmt: skip
    """Return the Verdict on an answer.

    call, consumers: see Harness; call is a module-level function, so that a Verdict can be pickled. variants:
    edits of the solution, see Variants.
    """
    if of_kernels.is_gluon(answer) and "NotImplementedError" in answer.fn.__code__.co_names:
        return Verdict("", Outcome.NOT_SOLVED, "")
    harness = Harness(call, answer, consumers=consumers)
    model = lambda function: _numbers(Harness(call, function, search=False))  # noqa: E731
    known = replace(known, model=model, variants=Variants(harness, variants or {}))
    verdict = examine(harness, stages, known, outputs=outputs, nan="nan, or never stored")
    if verdict.outcome == Outcome.WRONG and harness.line:
        return replace(verdict, details=(("line", harness.line), *verdict.details))
    if verdict.outcome != Outcome.WRONG or harness.wrong is None or harness.cause not in verdict.mistakes:
        return verdict
    run = harness.wrong
    details = [(label, text) for label, text in verdict.details if label == "input"]
    if any(run.number):
        details.append(("program", f"number {run.number[0]}, {run.number[1]} of the grid"))
    if run.report:
        details.append(("schedule", roles.schedule_text(run.report.actions)))
    plays = PlayedLaunch(call, harness.arguments) if run.report else None
    return replace(verdict, details=tuple(details), run=plays)


def _numbers(harness):
    """Return a function that returns only the numbers, which identify a mistake."""

    def run(*arguments):
        return harness(*arguments).result

    return run


def kernel_of(answer: Any) -> Any:
    """Return an answer that is a role or a step in Gluon; raises Finding if it is anything else."""
    if not of_kernels.is_gluon(answer):
        raise Finding("not_gluon", name=getattr(answer, "__name__", "it"))
    if bad := refused_global(answer.fn):
        raise Finding("not_gluon" if callable(bad[1]) else "plain_global", name=bad[0])
    return answer


def placed(X: np.ndarray, dtype: str, order: str = "BHNd") -> torch.Tensor:
    """Return an array as a tensor with nan around it; order: of its axes in memory, if it has four."""
    inner = torch.from_numpy(np.ascontiguousarray(X)).to(DTYPES[dtype])
    axes = ["BHNd".index(axis) for axis in order] if inner.ndim == 4 else list(range(inner.ndim))
    inner = inner.permute(axes)
    memory = torch.full((inner.numel() + 2 * BORDER,), torch.nan, dtype=inner.dtype)
    view = memory[BORDER : BORDER + inner.numel()].view(inner.shape)
    view.copy_(inner)
    return view.permute(np.argsort(axes).tolist())
