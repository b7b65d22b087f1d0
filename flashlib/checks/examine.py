"""Hold an answer against cases, the smallest first, and name the mistake that explains all it returned.

This runs in a process of its own (see `exercise`). A case that fails shows that an answer is wrong. Which mistake
it is, is found by hypothesis: each known mistake is a function too, and it is named if it gives what the answer
gave in every case, the right ones included (but see `name_mistake`).
"""

import linecache
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from flashlib.checks.process import announce
from flashlib.checks.values import SHOWN, argument_names, as_numbers, describe, describe_value, show, show_outputs
from flashlib.checks.verdict import Verdict


class Case(NamedTuple):
    """One input and what must come out.

    words: what is special about it, to complete "wrong for ...". arguments: passed as copies. expected: a number,
    an array, or a tuple of them. tolerance: accepted error, relative to the largest expected number.
    """

    words: str
    arguments: tuple
    expected: Any
    tolerance: float = 1e-9


class Mistake(NamedTuple):
    """A known mistake: the sentence that names it, and a function that makes it."""

    sentence: str
    wrong: Callable


class Finding(Exception):
    """What a harness around an answer finds out about it, a sentence."""


class Raised(NamedTuple):
    """What an answer raised instead of returning."""

    error: str
    line: str = ""
    unsolved: bool = False
    sentence: str = ""


def examine(answer, cases: Sequence[Case], mistakes: Sequence[Mistake] = (), *, outputs=("result",), nan="nan"):
    """Return the Verdict on `answer`, a function of the arguments of each case.

    outputs: names of what it returns, more than one for a tuple. nan: what a nan in the result is called.
    """
    given, changed = [], {}
    for case in cases:
        announce(describe(answer, case.arguments))
        arguments = [_copy(x) for x in case.arguments]
        result = attempt(answer, *arguments)
        if isinstance(result, Raised) and result.unsolved:
            return Verdict("", "not solved yet", "")
        given.append(result)
        if not isinstance(result, Raised) and not changed:
            changed = _changed(answer, case, arguments)
    failures = [
        (case, result, problem)
        for case, result in zip(cases, given, strict=True)
        if (problem := find_problem(result, case, outputs, nan))
    ]
    if failures:
        case, result, problem = failures[0]
        sentence = name_mistake(mistakes, cases, given, outputs) or problem
        return Verdict("", "wrong", sentence, _details(answer, case, result, outputs))
    if changed:
        return Verdict("", "wrong", **changed)
    return Verdict("", "right", f"in all {len(cases)} cases")


def attempt(answer, *arguments):
    """Return answer(*arguments), or the Raised that it ended in."""
    try:
        with np.errstate(all="ignore"):
            return answer(*arguments)
    except NotImplementedError:
        return Raised("NotImplementedError", unsolved=True)
    except Finding as found:
        return Raised("", sentence=str(found))
    except (Exception, SystemExit) as error:
        return raised(error)


def raised(error) -> Raised:
    """Return the Raised of an exception, with the learner's own line that led to it."""
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "flashlib" not in frame.filename and "site-packages" not in frame.filename:
            line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip() or line
    name, said = type(error).__name__, str(error).strip().splitlines()
    if not said:
        return Raised(name, line)
    if said[0].startswith("CUDA error"):
        return Raised(said[0], line, sentence=f"the GPU ended it, as for memory that is not its own ({said[0]})")
    return Raised(f"{name}: {said[-1] if 'Compilation' in name else said[0]}", line)  # Triton's starts with code


def find_problem(result, case, outputs, nan="nan"):
    """Return what is wrong with a result, to be said where no mistake is recognised, or ""."""
    if isinstance(result, Raised):
        if result.sentence:
            return result.sentence
        at = f", in the line `{result.line}`" if result.line else ""
        return f"raises {result.error}{at}"
    if result is None:
        return "returns nothing; is a return missing?"
    if len(outputs) > 1 and not (isinstance(result, tuple | list) and len(result) == len(outputs)):
        return f"returns {describe_value(result)}; expected the {len(outputs)} values {', '.join(outputs)}"
    expected = _parts(case.expected, outputs)
    for name, x, right in zip(outputs, _parts(result, outputs), expected, strict=True):
        it = "the result" if name == "result" else name
        if not isinstance(right, np.ndarray | float | int | np.generic | bool):
            if not (type(x) is type(right) and x == right):
                return f"wrong for {case.words}"
            continue
        try:
            x = as_numbers(x)
        except (TypeError, ValueError):
            return f"{it} is {describe_value(x)}; expected {describe_value(right)}"
        if x.shape != np.shape(right):
            return f"{it} has shape {x.shape}; expected {np.shape(right)}"
        if not same(x, right, case.tolerance):
            what = f"wrong ({nan})" if np.isnan(x).any() else "wrong"
            return f"{it} is {what} for {case.words}" if len(outputs) > 1 else f"{what} for {case.words}"
    return ""


def same(given, expected, tolerance):
    """Return whether two results are equal to the tolerance; nan equals nan here, and infinities must be equal."""
    try:
        x, y = as_numbers(given), as_numbers(expected)
    except (TypeError, ValueError):
        return type(given) is type(expected) and given == expected
    if x.shape != y.shape:
        return False
    finite = np.isfinite(y)
    size = max(np.abs(y[finite]).max(initial=0), 1e-300)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= tolerance * size
    return bool(np.where(finite, close, (x == y) | (np.isnan(x) & np.isnan(y))).all())


def name_mistake(mistakes, cases, given, outputs=("result",)):
    """Return the sentence of the first mistake that gives what was given, or "".

    In every case; or else in every case that failed, and in the others unless it gives no numbers there: an answer
    may have, beside the mistake, a guard that our model of the mistake lacks. Cases that failed come first, since
    most mistakes do not explain the first of them, and need not be tried on another.
    """
    failed = [bool(find_problem(result, case, outputs)) for case, result in zip(cases, given, strict=True)]
    order = sorted(range(len(cases)), key=lambda k: not failed[k])
    guess = cache(lambda n, k: _guess(mistakes[n], cases[k]))
    for guarded in (False, True):
        for n, mistake in enumerate(mistakes):
            if all(_explains(guess(n, k), given[k], cases[k], failed[k], guarded, outputs) for k in order):
                return mistake.sentence
    return ""


def _explains(guess, result, case, failed, guarded, outputs):
    """Return whether what a mistake gives in a case explains what was given."""
    if failed:
        return _same_outcome(guess, result, case) and bool(find_problem(guess, case, outputs))
    return _same_outcome(guess, result, case) or (guarded and not _has_numbers(guess))


def _guess(mistake, case):
    return attempt(mistake.wrong, *(_copy(x) for x in case.arguments))


def _has_numbers(guess):
    """Return whether a mistake gives numbers, all of them finite."""
    try:
        return all(np.isfinite(as_numbers(x)).all() for x in (guess if isinstance(guess, tuple) else (guess,)))
    except (TypeError, ValueError):
        return False


def _same_outcome(guess, result, case):
    """Return whether a mistake gives in a case what was given; to 1e-6 or as the case has it, 0 too."""
    tolerance = max(1e-6, case.tolerance) if case.tolerance else 0.0
    if isinstance(guess, Raised) or isinstance(result, Raised):
        both = isinstance(guess, Raised) and isinstance(result, Raised)
        return both and not result.sentence and guess.error.split(":")[0] == result.error.split(":")[0]
    if isinstance(case.expected, tuple):
        if not (isinstance(result, tuple | list) and len(result) == len(guess)):
            return False
        return all(same(x, y, tolerance) for x, y in zip(result, guess, strict=True))
    return same(result, guess, tolerance)


def _parts(result, outputs):
    return result if len(outputs) > 1 else (result,)


def _copy(x):
    """Return a copy of an array, inside a border of nan, so that its neighbours in memory are no numbers."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):  # a State
        return type(x)(*map(_copy, x)) if type(x).__name__ == "State" else x
    if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype.kind != "f":
        return x.copy() if isinstance(x, np.ndarray) else x
    bordered = np.full([n + 2 for n in x.shape], np.nan, x.dtype)
    inside = bordered[(slice(1, -1),) * x.ndim]
    inside[...] = x
    return inside.view(type(x)) if type(x) is not np.ndarray else inside


def _changed(answer, case, arguments):
    """Return the sentence and details of a Verdict if the answer changed an argument, or {}."""
    for name, before, after in zip(argument_names(answer, case.arguments), case.arguments, arguments, strict=True):
        if isinstance(before, np.ndarray) and before.tobytes() != after.tobytes():
            sentence = f"the result is right, but its argument {name} is changed: make a copy"
            return {"sentence": sentence, "details": (("before", show(before)), ("after", show(after)))}
    return {}


def _details(answer, case, result, outputs):
    found = [("input", describe(answer, case.arguments)), ("expected", show_outputs(case.expected, outputs))]
    if isinstance(result, Raised):
        return (*found, ("raised", result.error)) if result.error else tuple(found)
    found.append(("given", show_outputs(result, outputs)))
    if at := _first_difference(result, case, outputs):
        found.append(("first at", at))
    return tuple(found)


def _first_difference(result, case, outputs):
    """Return where a large array first differs from what is expected, as text, or ""."""
    try:
        given = [as_numbers(x) for x in _parts(result, outputs)]
        expected = [as_numbers(x) for x in _parts(case.expected, outputs)]
    except (TypeError, ValueError):
        return ""
    for name, x, right in zip(outputs, given, expected, strict=False):
        if x.shape != right.shape or x.size <= SHOWN:
            continue
        size = max(np.abs(right[np.isfinite(right)]).max(initial=0), 1e-300)
        with np.errstate(all="ignore"):
            wrong = ~((x == right) | (np.abs(x - right) <= case.tolerance * size))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            index = ", ".join(map(str, at))
            return f"{name}[{index}]: expected {show(right[at])}, given {show(x[at])}"
    return ""
