"""Check an answer on test cases, the smallest first, and name the mistake that explains all it returned.

This runs in a process of its own (see `exercises`). A case that fails shows that an answer is wrong; `diagnosis`
finds out which mistake it is.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np

from flashlib.checks.engine.cases import (
    UNSOLVED,
    Beside,
    Finding,
    Measured,
    Raised,
    Tried,
    attempt,
    find_problem,
    outputs_of,
)
from flashlib.checks.engine.compiling import only_fixed
from flashlib.checks.engine.diagnosis import diagnose, is_found
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.values import (
    SHOWN,
    argument_names,
    as_array,
    describe,
    show,
    show_apart,
    show_outputs,
    told_apart,
)
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner.process import announce
from flashlib.softmax import State

LINES = 30  # of a verdict, with its sentence
FEW_DIGITS = 2e-3  # relative error of numbers that fp16 has rounded, or less


def examine(
    answer: Callable, cases: Sequence, known: Known, *, outputs: Sequence[str] = ("result",), nan: str = "nan"
) -> Verdict:
    """Return the Verdict on `answer`, a function of the arguments of each case.

    cases: Cases, or lists of them, of which the next is looked at where all before are right. outputs: names of
    what it returns, more than one for a tuple. nan: what a nan in the result is called.
    """
    stages = cases if cases and isinstance(cases[0], list) else [cases]
    right = []  # of the stages before: a mistake must explain them too
    for stage in stages:
        tried, changed = [], ()
        for case in stage:
            announce(describe, answer, case.arguments)
            only_fixed(case)
            arguments = [_copy(x) for x in case.arguments]
            result = attempt(answer, *arguments)
            if result is UNSOLVED:
                return Verdict("", Outcome.NOT_SOLVED, "")
            result, measured = result if isinstance(result, Measured) else (result, None)
            tried.append(Tried(case, result, find_problem(result, case, outputs, nan), measured))
            if not isinstance(result, Finding):
                changed = changed or _changed(answer, case, arguments)
            if is_found(tried[-1]):  # then no known mistake is looked for, and the rest of a stage says no more
                break
        for wrong in tried:
            if wrong.problem:
                measured = None if isinstance(wrong.measured, Beside) else wrong.measured
                found = measured or _inexact(tried, outputs) or wrong.problem
                verdict = diagnose(known, [*right, *tried], outputs) or known.verdict(found)
                return verdict.with_details(*_short(lambda most: _details(answer, wrong, outputs, most)))  # noqa: B023
        if changed:
            name, *details = changed
            return known.wrong("argument_changed", *details, name=name)
        for one in tried:
            if one.measured:
                input = _short(lambda most: [("input", describe(answer, one.case.arguments, most))])  # noqa: B023
                return known.verdict(one.measured, *input)
        right += tried
    return Verdict("", Outcome.RIGHT, f"in all {len(right)} cases")


def _inexact(tried, outputs):
    """Return the Finding that every wrong result is right to a few digits, perhaps by its dtype, or None."""
    found = None
    for case, result, problem, _ in tried:
        if problem is None:
            continue
        floats = all(_is_float(x) for x in outputs_of(case.expected, outputs))
        coarser = case._replace(tolerance=FEW_DIGITS)
        if problem.id != "value" or not floats or not 0 < case.tolerance <= FEW_DIGITS / 10:
            return None
        rest = find_problem(result, coarser, outputs)
        if rest and rest.id != "dtype":
            return None
        found = found or rest or Finding("inexact")
    return found


def _is_float(x):
    return isinstance(x, float | np.ndarray | np.generic) and np.asarray(x).dtype.kind == "f"


def _copy(x):
    """Return a copy of a list, or of an array inside a border of nan, so that its neighbours are not numbers."""
    if isinstance(x, list):
        return copy.deepcopy(x)
    if isinstance(x, State):
        return State(*map(_copy, x))
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


def _short(details):
    """Return details(most), where `most` is how many numbers of an array are shown at most, in few lines."""
    for most in (SHOWN, 12, 8, 4):
        found = details(most)
        if sum(len(text.splitlines()) for _, text in found) < LINES:
            break
    return found


def _details(answer, tried, outputs, most):
    case, result, *_ = tried
    found = [("input", describe(answer, case.arguments, most))]
    if isinstance(result, Finding):
        found.append(("expected", show_outputs(case.expected, outputs, most=most)))
        return [*found, ("raised", result.fields["error"])] if isinstance(result, Raised) else found
    expected, given = show_apart(case.expected, result, outputs, most)
    found += [("expected", expected), ("given", given)]
    if at := _first_difference(result, case, outputs, most):
        found.append(("first at", at))
    return found


def _first_difference(result, case, outputs, most):
    """Return where an array of more than `most` numbers first differs from what is expected, as text, or ""."""
    try:
        given = [as_array(x) for x in outputs_of(result, outputs)]
        expected = [as_array(x) for x in outputs_of(case.expected, outputs)]
    except (TypeError, ValueError):
        return ""
    for name, x, right in zip(outputs, given, expected, strict=False):
        if x.shape != right.shape or x.size <= most:
            continue
        size = max(np.abs(right[np.isfinite(right)]).max(initial=0), case.size, 1e-300)
        with np.errstate(all="ignore"):
            apart = np.abs(x.astype(np.float64) - right)  # bool has no difference
            wrong = ~((x == right) | (apart <= case.tolerance * size))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            index = ", ".join(map(str, at))
            expected, given = told_apart(show, right[at], x[at])
            return f"{name}[{index}]: expected {expected}, given {given}"
    return ""
