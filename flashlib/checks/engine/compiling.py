"""An answer that is right in Triton's interpreter is compiled too, which needs no GPU.

The process that runs the answer notes what it launches in the cases that are the same at each check. That of the
notebook then asks the compiler, outside of the answer's time.
"""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional

from flashlib.checks.engine import random_cases
from flashlib.checks.engine.cases import Case
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.verdict import Verdict
from flashlib.learner.error_text import cut, error_text

if TYPE_CHECKING:
    from flashlib.kernels.compiler.launch_log import LaunchLog

_noted: Optional["LaunchLog"] = None
_said = False  # why nothing is compiled: it is said once


@contextlib.contextmanager
def noting() -> Iterator[None]:
    """Note what is launched while this lasts, if Triton interprets; launches in Gluon always, see `note`."""
    global _noted
    if "flashlib.kernels" not in sys.modules:
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
    """Note a launch in Gluon, which a harness interprets itself."""
    if _noted:
        _noted.note(kernel, arguments, options)


def only_fixed(case: Case) -> None:
    """Note further launches only if they are not of a case that is drawn: its sizes are others at each check."""
    if _noted:
        _noted.noting = not random_cases.is_drawn(case)


def with_launches(verdict: Verdict) -> Verdict:
    """Return the verdict on a right answer with what was noted, to be compiled."""
    if not (_noted and verdict.right):
        return verdict
    try:
        return replace(verdict, launches=_noted.sent())
    except Exception as error:  # whatever a global of the learner's raises when it is looked at
        return replace(verdict, launches=error_text(error))


def compiled(verdict: Verdict) -> Verdict:
    """Return the verdict on an answer once its launches are compiled: wrong, if the compiler refuses one."""
    if not verdict.launches:
        return verdict
    from flashlib.kernels.compiler import learner_kernels  # here: Triton may be missing

    sent, verdict = verdict.launches, replace(verdict, launches=None)
    if isinstance(sent, str):
        return _not_compiled(verdict, sent)
    try:
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
    global _said
    first, _said = not _said, True
    return verdict.with_details(("not compiled", why)) if first else verdict
