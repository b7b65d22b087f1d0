"""The cases of an exercise, the results of an answer in them, and what is wrong with the results."""

import linecache
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from flashlib.checks.engine.equality import as_array, same
from flashlib.checks.engine.value_text import describe_value
from flashlib.learner.error_text import LONGEST, cut

STDLIB = sysconfig.get_paths()["stdlib"]


class Case(NamedTuple):
    """One input and the expected result.

    words: what is special about it, to complete "wrong for ...". arguments: passed as copies. expected: a number,
    an array, or a tuple of them. tolerance: accepted error, relative to the largest expected number. dtype: the
    required dtype of the results, a tuple if they differ, or None for any. size: the size of terms that may
    cancel; the tolerance is relative to it where no expected number is as large.
    """

    words: str
    arguments: tuple
    expected: Any
    tolerance: float = 1e-9
    dtype: Any = None
    size: float = 0.0


class Finding(Exception):
    """What is wrong with an answer: the id of a row of its table, and the row's fields. A harness may raise it."""

    def __init__(self, id: str, **fields: Any) -> None:
        super().__init__(id)
        self.id, self.fields = id, fields


class SideFinding(Finding):
    """A Finding about how a result was computed, reported only if the result is right; its sentence says so."""


class Raised(Finding):
    """The Finding that an answer raised an exception. kind: the name of its class."""

    def __init__(self, kind: str, error: str, line: str) -> None:
        super().__init__("raises", error=f"{error}, in the line `{line}`" if line else error)
        self.kind = kind


UNSOLVED = Finding("unsolved")  # for a stub


class Measured(NamedTuple):
    """A result, and a Finding about how it was computed, or None; it is reported if no mistake is named."""

    result: Any
    found: Finding | None


class Tried(NamedTuple):
    """A case, the answer's result, what is wrong with it, and a Finding about how it was computed."""

    case: Case
    result: Any
    problem: Finding | None
    measured: Finding | None = None


def attempt(answer: Callable, *arguments: object) -> Any:
    """Return answer(*arguments), or the Finding that it raised or that describes its exception."""
    try:
        with np.errstate(all="ignore"):
            return answer(*arguments)
    except NotImplementedError:
        return UNSOLVED
    except Finding as found:
        return found
    except BaseException as error:  # of any kind: an exception of the answer is not a mistake of the course
        return raised(error)


def raised(error: BaseException) -> Finding:
    """Return the Finding of an exception, with the learner's own line that led to it."""
    line = line_of(error)
    kind = cut(type(error).__name__, 100)
    try:
        said = str(error).strip()
    except BaseException:  # the learner's own exception, whose __str__ raises
        said = ""
    if not said:
        return Raised(kind, kind, line)
    first = cut(said[: 2 * LONGEST].splitlines()[0])
    if first.startswith("CUDA error"):
        return Finding("device_error", error=first)
    if "Compilation" in kind:  # Triton's text starts with code
        first = cut(said[-2 * LONGEST :].splitlines()[-1])
    return Raised(kind, f"{kind}: {first}", line)


def line_of(error: BaseException) -> str:
    """Return the learner's own line that led to an exception, or ""."""
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not any(part in frame.filename for part in ("flashlib", "site-packages", STDLIB)):
            line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip() or line
    return cut(line)


def inspected(answer: Callable, look: Callable[..., Finding | None]) -> Callable:
    """Return a function that returns a Measured: the answer's result, and what look(result, *arguments) finds.

    look: returns a Finding or None. It is not called for a result of None, which is reported in any case.
    """

    @wraps(answer)
    def run(*arguments):
        result = answer(*arguments)
        return Measured(result, None if result is None else look(result, *arguments))

    return run


def find_problem(
    result: object, case: Case, outputs: Sequence[str] = ("result",), nan: str = "nan"
) -> Finding | None:
    """Return what is wrong with a result, for the verdict if no mistake is recognised; None if it is right."""
    if isinstance(result, Finding):
        return result
    if result is None:
        return Finding("nothing_returned")
    if len(outputs) > 1 and not (isinstance(result, tuple | list) and len(result) == len(outputs)):
        return Finding("outputs", given=describe_value(result), n=len(outputs), names=", ".join(outputs))
    dtypes = case.dtype if isinstance(case.dtype, tuple) else (case.dtype,) * len(outputs)
    expected = outputs_of(case.expected, outputs)
    for name, x, right, dtype in zip(outputs, outputs_of(result, outputs), expected, dtypes, strict=True):
        if problem := _problem_of_output(name, x, right, dtype, case, nan):
            return problem
    return None


def _problem_of_output(name, x, right, dtype, case, nan):
    it = "the result" if name == "result" else name
    if not isinstance(right, np.ndarray | float | int | np.generic | bool):
        equal = type(x) is type(right) and x == right
        return None if equal else Finding("value", it=it, what="wrong", words=case.words)
    try:
        numbers = as_array(x)
    except (TypeError, ValueError):
        return Finding("kind", it=it, given=describe_value(x), expected=describe_value(right))
    if numbers.shape != np.shape(right):
        return Finding("shape", it=it, given=numbers.shape, expected=np.shape(right))
    if not same(numbers, right, case.tolerance, case.size):
        what = f"wrong ({nan})" if np.isnan(numbers).any() else "wrong"
        return Finding("value", it=it, what=what, words=case.words)
    if dtype is not None and (given := str(getattr(x, "dtype", type(x).__name__))) != np.dtype(dtype).name:
        return Finding("dtype", it=it, given=given, expected=np.dtype(dtype).name)
    return None


def outputs_of(result: Any, outputs: Sequence[str]) -> Any:
    """Return the outputs of a result, one for each name."""
    return result if len(outputs) > 1 else (result,)
