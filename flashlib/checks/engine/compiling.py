"""Compile answers that are right in Triton's interpreter, which does not need a GPU.

The process that runs the answer notes its launches in the cases that are the same in every check. The notebook's
process then compiles them, outside of the answer's time limit.
"""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional

from flashlib.checks.engine import random_cases, waiting
from flashlib.checks.engine.cases import Case
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.verdict import Verdict
from flashlib.learner import starting
from flashlib.learner.error_text import cut, error_text

if TYPE_CHECKING:
    from flashlib.kernels.compiler.launch_log import LaunchLog

_noted: Optional["LaunchLog"] = None
_explained = False  # whether a verdict has said why nothing is compiled: one is enough


@contextlib.contextmanager
def noting() -> Iterator[None]:
    """Note launches within this context if Triton interprets them, and launches in Gluon always, see `note`.

    Where no process can start, nothing compiles them.
    """
    global _noted
    if "flashlib.kernels" not in sys.modules or not starting.is_possible():
        yield
        return
    from flashlib.kernels.compiler import launch_log  # here: Triton may be missing

    interpreted = sys.modules["flashlib.kernels"].INTERPRETED
    try:
        noted = launch_log.logged_launches() if interpreted else contextlib.nullcontext(launch_log.LaunchLog())
        with noted as _noted:
            yield
    finally:
        _noted = None


def note(kernel: Any, arguments: tuple, options: dict) -> None:
    """Note a launch in Gluon, which a harness interprets."""
    if _noted:
        _noted.note(kernel, arguments, options)


def only_fixed(case: Case) -> None:
    """Note the launches of a case unless it is drawn at random: its sizes differ from check to check."""
    if _noted:
        _noted.noting = not random_cases.is_drawn(case)


def with_launches(verdict: Verdict) -> Verdict:
    """Return the verdict; if the answer is right, add the noted launches, to be compiled."""
    if not (_noted and verdict.right):
        return verdict
    try:
        return replace(verdict, launches=_noted.sent())
    except Exception as error:  # whatever the learner's globals raise when they are inspected
        return replace(verdict, launches=error_text(error))


def compiled(verdict: Verdict) -> Verdict:
    """Compile the launches of an answer and return the verdict: wrong if the compiler refuses one."""
    if not verdict.launches:
        return verdict
    from flashlib.kernels.compiler import learner_kernels  # here: Triton may be missing

    sent, verdict = verdict.launches, replace(verdict, launches=None)
    if isinstance(sent, str):
        return _not_compiled(verdict, sent)
    try:
        with waiting.told(waiting.COMPILING):
            refused = learner_kernels.refusal(sent)
    except Exception as error:  # a check never raises
        return _not_compiled(verdict, cut(str(error)))
    if refused is None:
        return verdict
    details = [(f"line {refused.number}", refused.line)] if refused.line else []
    details += [("launch", refused.launch)] if refused.launch else []
    details += [("compiled for", f"sm_{refused.capability}")]
    fields = {"it": "this line" if refused.line else "a launch", "because": refused.because}
    wrong = Known("kernels").wrong("refused", *details, **fields)
    return replace(wrong, exercise=verdict.exercise, printed=verdict.printed)


def _not_compiled(verdict, why):
    global _explained
    first, _explained = not _explained, True
    return verdict.with_details(("not compiled", why)) if first else verdict
