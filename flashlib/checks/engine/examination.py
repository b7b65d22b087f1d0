"""Check an answer on test cases, the smallest first, and name the mistake that explains all of its results.

This runs in a separate process (see `exercises`). A case that fails shows that an answer is wrong; `diagnosis`
finds out why.
"""

from collections.abc import Callable, Sequence

import numpy as np

from flashlib.checks.engine.cases import (
    UNSOLVED,
    Finding,
    Measured,
    Raised,
    SideFinding,
    Tried,
    attempt,
    find_problem,
    outputs_of,
)
from flashlib.checks.engine.changed_arguments import changed_argument, copied
from flashlib.checks.engine.compiling import only_fixed
from flashlib.checks.engine.diagnosis import diagnose, is_found
from flashlib.checks.engine.equality import as_array
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.value_text import (
    SHOWN,
    describe,
    distinct_texts,
    show,
    show_both,
    show_outputs,
)
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner.process import announce

LINES = 30  # of a verdict, including its sentence
FEW_DIGITS = 2e-3  # the largest relative error of numbers rounded to fp16


def examine(
    answer: Callable, cases: Sequence, known: Known, *, outputs: Sequence[str] = ("result",), nan: str = "nan"
) -> Verdict:
    """Return the Verdict on `answer`, a function of the arguments of each case.

    cases: Cases, or lists of them; a list is checked only if the answer is right in all lists before it. outputs:
    the names of the results, more than one for a tuple. nan: what to call a nan in the result.
    """
    stages = cases if cases and isinstance(cases[0], list) else [cases]
    right = []  # from the stages before: a mistake must explain them too
    for stage in stages:
        tried, changed = [], ()
        for case in stage:
            announce(describe, answer, case.arguments)
            only_fixed(case)
            arguments = [copied(x) for x in case.arguments]
            result = attempt(answer, *arguments)
            if result is UNSOLVED:
                return Verdict("", Outcome.NOT_SOLVED, "")
            result, measured = result if isinstance(result, Measured) else (result, None)
            tried.append(Tried(case, result, find_problem(result, case, outputs, nan), measured))
            if not isinstance(result, Finding):
                changed = changed or changed_argument(answer, case, arguments)
            if is_found(tried[-1]):  # then no known mistake is tried, and the rest of the stage adds nothing
                break
        for wrong in tried:
            if wrong.problem:
                measured = None if isinstance(wrong.measured, SideFinding) else wrong.measured
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
    """Return a Finding if every wrong result is right to a few digits, perhaps due to its dtype; else None."""
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


def _short(details):
    """Return details(most) in few lines; `most` limits how many numbers of an array are shown."""
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
    expected, given = show_both(case.expected, result, outputs, most)
    found += [("expected", expected), ("given", given)]
    if at := _first_difference(result, case, outputs, most):
        found.append(("first at", at))
    return found


def _first_difference(result, case, outputs, most):
    """Return where an array of more than `most` numbers first differs from the expected one, as text, or ""."""
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
            apart = np.abs(x.astype(np.float64) - right)  # bools cannot be subtracted
            wrong = ~((x == right) | (apart <= case.tolerance * size))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            index = ", ".join(map(str, at))
            expected, given = distinct_texts(show, right[at], x[at])
            return f"{name}[{index}]: expected {expected}, given {given}"
    return ""
