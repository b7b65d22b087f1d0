"""Check an answer on test cases, the smallest first, and name the mistake that explains all it returned.

This runs in a process of its own (see `exercise`). A case that fails shows that an answer is wrong; `naming` finds
out which mistake it is.
"""

import copy
import linecache
import sysconfig
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from flashlib.checks.engine.mistakes import table
from flashlib.checks.engine.process import announce
from flashlib.checks.engine.values import (
    SHOWN,
    argument_names,
    as_array,
    describe,
    describe_value,
    same,
    show,
    show_apart,
    show_outputs,
)
from flashlib.checks.engine.verdict import Verdict

STDLIB = sysconfig.get_paths()["stdlib"]


class Case(NamedTuple):
    """One input and what must come out.

    words: what is special about it, to complete "wrong for ...". arguments: passed as copies. expected: a number,
    an array, or a tuple of them. tolerance: accepted error, relative to the largest expected number. dtype: what
    the results must have, a tuple if not all the same, or None for any. size: that of terms that may cancel: the
    tolerance is relative to it where no expected number is as large.
    """

    words: str
    arguments: tuple
    expected: Any
    tolerance: float = 1e-9
    dtype: Any = None
    size: float = 0.0


class Finding(Exception):
    """What a harness around an answer finds out about it: the id of a row of its table, and the row's fields."""

    def __init__(self, id, **fields):
        super().__init__(id)
        self.id, self.fields = id, fields


class Measured(NamedTuple):
    """A result, and what was found out about the way to it, a Finding, or None: said where no mistake is named."""

    result: Any
    found: Finding | None


class Raised(NamedTuple):
    """What an answer raised instead of returning; found: the Finding, if it is one."""

    error: str
    line: str = ""
    unsolved: bool = False
    found: Finding | None = None


class Problem(NamedTuple):
    """What is wrong with a result: the id of a row of the table, and the row's fields."""

    id: str
    fields: dict


@dataclass(frozen=True)
class Known:
    """What is known of an exercise: its table of mistakes, and how they are tried.

    program: the right Program, of which a mistake is an edit. variants: edits of the program that are no mistake,
    or one that is often made; mistakes are tried with each of them too. model: makes the function of a program one
    of the arguments of a case; not needed if it is one.
    """

    table: str
    program: Any = None
    variants: tuple[str, ...] = ()
    model: Any = None

    def mistakes(self):
        """Return the Mistakes of its table, in order."""
        return table(self.table).values()

    def sentence(self, id, **fields):
        """Return the sentence of a row; raises KeyError if there is no such row."""
        sentence = table(self.table)[id].sentence
        return sentence.format(**fields) if fields else sentence

    def wrong(self, id, *details, **fields) -> Verdict:
        """Return the Verdict of a row, with details and the row's fields."""
        return Verdict("", "wrong", self.sentence(id, **fields), details, mistake=id)

    def function(self, program):
        """Return the function of an edited program."""
        return self.model(program.function) if self.model else program.function


def examine(answer, cases: Sequence, known: Known, *, outputs=("result",), nan="nan") -> Verdict:
    """Return the Verdict on `answer`, a function of the arguments of each case.

    cases: Cases, or lists of them, of which the next is looked at where all before are right. outputs: names of
    what it returns, more than one for a tuple. nan: what a nan in the result is called.
    """
    from flashlib.checks.engine.naming import (
        named,  # here: it holds hypotheses against cases, as this does answers
    )

    stages = cases if cases and isinstance(cases[0], list) else [cases]
    right = []  # cases of the stages before, and what was given: a mistake must explain that too
    for stage in stages:
        given, found, changed = [], [], ()
        for case in stage:
            announce(describe(answer, case.arguments))
            arguments = [_copy(x) for x in case.arguments]
            result = attempt(answer, *arguments)
            if isinstance(result, Raised) and result.unsolved:
                return Verdict("", "not solved yet", "")
            given.append(result.result if isinstance(result, Measured) else result)
            found.append(result.found if isinstance(result, Measured) else None)
            if not isinstance(result, Raised):
                changed = changed or _changed(answer, case, arguments)
        failed = [find_problem(result, case, outputs, nan) for case, result in zip(stage, given, strict=True)]
        measured = [x and Problem(x.id, x.fields) for x in found]
        if any(failed):
            at = next(n for n, problem in enumerate(failed) if problem)
            details = _details(answer, stage[at], given[at], outputs)
            so_far = [*right, *zip(stage, given, failed, strict=True)]
            if mistake := named(known, *zip(*so_far, strict=True), outputs):
                return Verdict("", "wrong", mistake.sentence, details, mistake=mistake.id)
            problem = measured[at] or failed[at]
            return known.wrong(problem.id, *details, **problem.fields)
        if changed:
            name, *details = changed
            return known.wrong("argument_changed", *details, name=name)
        if any(measured):
            at = next(n for n, problem in enumerate(measured) if problem)
            details = ("input", describe(answer, stage[at].arguments))
            return known.wrong(measured[at].id, details, **measured[at].fields)
        right += zip(stage, given, failed, strict=True)
    return Verdict("", "right", f"in all {sum(map(len, stages))} cases")


def attempt(answer, *arguments):
    """Return answer(*arguments), or the Raised that it ended in."""
    try:
        with np.errstate(all="ignore"):
            return answer(*arguments)
    except NotImplementedError:
        return Raised("NotImplementedError", unsolved=True)
    except Finding as found:
        return Raised("", found=found)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return raised(error)


def raised(error) -> Raised:
    """Return the Raised of an exception, with the learner's own line that led to it."""
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not any(part in frame.filename for part in ("flashlib", "site-packages", STDLIB)):
            line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip() or line
    try:
        name, said = type(error).__name__, str(error).strip().splitlines()
    except Exception:  # an exception of the learner's own whose text raises
        name, said = type(error).__name__, []
    if not said:
        return Raised(name, line)
    if said[0].startswith("CUDA error"):
        return Raised(said[0], line, found=Finding("device_error", error=said[0]))
    return Raised(f"{name}: {said[-1] if 'Compilation' in name else said[0]}", line)  # Triton's starts with code


def find_problem(result, case, outputs=("result",), nan="nan") -> Problem | None:
    """Return what is wrong with a result, to be said where no mistake is recognised, or None."""
    if isinstance(result, Raised):
        if result.found:
            return Problem(result.found.id, result.found.fields)
        at = f", in the line `{result.line}`" if result.line else ""
        return Problem("raises", {"error": result.error, "at": at})
    if result is None:
        return Problem("nothing_returned", {})
    if len(outputs) > 1 and not (isinstance(result, tuple | list) and len(result) == len(outputs)):
        given = describe_value(result)
        return Problem("outputs", {"given": given, "n": len(outputs), "names": ", ".join(outputs)})
    dtypes = case.dtype if isinstance(case.dtype, tuple) else (case.dtype,) * len(outputs)
    expected = parts(case.expected, outputs)
    for name, x, right, dtype in zip(outputs, parts(result, outputs), expected, dtypes, strict=True):
        if problem := _problem_of_part(name, x, right, dtype, case, nan):
            return problem
    return None


def _problem_of_part(name, x, right, dtype, case, nan):
    it = "the result" if name == "result" else name
    if not isinstance(right, np.ndarray | float | int | np.generic | bool):
        equal = type(x) is type(right) and x == right
        return None if equal else Problem("value", {"it": it, "what": "wrong", "words": case.words})
    try:
        numbers = as_array(x)
    except (TypeError, ValueError):
        return Problem("kind", {"it": it, "given": describe_value(x), "expected": describe_value(right)})
    if numbers.shape != np.shape(right):
        return Problem("shape", {"it": it, "given": numbers.shape, "expected": np.shape(right)})
    if not same(numbers, right, case.tolerance, case.size):
        what = f"wrong ({nan})" if np.isnan(numbers).any() else "wrong"
        return Problem("value", {"it": it, "what": what, "words": case.words})
    if dtype is not None and (given := str(getattr(x, "dtype", type(x).__name__))) != np.dtype(dtype).name:
        return Problem("dtype", {"it": it, "given": given, "expected": np.dtype(dtype).name})
    return None


def parts(result, outputs):
    """Return the outputs of a result, as many as they have names."""
    return result if len(outputs) > 1 else (result,)


def _copy(x):
    """Return a copy of a list, or of an array, inside a border of nan, so that its neighbours are no numbers."""
    if isinstance(x, list):
        return copy.deepcopy(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):  # a State
        return type(x)(*map(_copy, x)) if type(x).__name__ == "State" else x
    if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype.kind != "f":
        return x.copy() if isinstance(x, np.ndarray) else x
    bordered = np.full([n + 2 for n in x.shape], np.nan, x.dtype)
    inside = bordered[(slice(1, -1),) * x.ndim]
    inside[...] = x
    return inside.view(type(x)) if type(x) is not np.ndarray else inside


def _changed(answer, case, arguments):
    """Return the name of an argument that the answer changed, and details of it, or ()."""
    for name, before, after in zip(argument_names(answer, case.arguments), case.arguments, arguments, strict=True):
        if isinstance(before, np.ndarray) and before.tobytes() != after.tobytes():
            return name, ("before", show(before)), ("after", show(after))
        if isinstance(before, list) and before != after:
            return name, ("before", show(before)), ("after", show(after))
    return ()


def _details(answer, case, result, outputs):
    found = [("input", describe(answer, case.arguments))]
    if isinstance(result, Raised):
        found.append(("expected", show_outputs(case.expected, outputs)))
        return (*found, ("raised", result.error)) if result.error else tuple(found)
    expected, given = show_apart(case.expected, result, outputs)
    found += [("expected", expected), ("given", given)]
    if at := _first_difference(result, case, outputs):
        found.append(("first at", at))
    return tuple(found)


def _first_difference(result, case, outputs):
    """Return where a large array first differs from what is expected, as text, or ""."""
    try:
        given = [as_array(x) for x in parts(result, outputs)]
        expected = [as_array(x) for x in parts(case.expected, outputs)]
    except (TypeError, ValueError):
        return ""
    for name, x, right in zip(outputs, given, expected, strict=False):
        if x.shape != right.shape or x.size <= SHOWN:
            continue
        size = max(np.abs(right[np.isfinite(right)]).max(initial=0), case.size, 1e-300)
        with np.errstate(all="ignore"):
            apart = np.abs(x.astype(np.float64) - right)  # bool has no difference
            wrong = ~((x == right) | (apart <= case.tolerance * size))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            index = ", ".join(map(str, at))
            return f"{name}[{index}]: expected {show(right[at])}, given {show(x[at])}"
    return ""
