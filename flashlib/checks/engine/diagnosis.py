"""Name the mistake that explains the results of an answer.

Each known mistake is a hypothesis and a program: it is named if its results are the answer's in every case,
including those in which the answer is right (but see `_Hypothesis.explains`). Cases that failed are tried first,
the smallest before the others: most mistakes do not explain it, and need not be tried on another.
"""

import time
from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from flashlib.checks.engine.cases import Finding, Raised, Tried, attempt, find_problem
from flashlib.checks.engine.equality import as_numbers, same
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.program import ProgramText, heads
from flashlib.checks.engine.verdict import Outcome, Verdict

REFUSED_IN_PLACE = "non-broadcastable output operand"  # NumPy's words where `x += y` would change the shape of x
TIME_LIMIT = 2.5  # seconds of computing, after which no pairs of mistakes are tried: a check has few more


def diagnose(known: Known, tried: Sequence[Tried], outputs: Sequence[str] = ("result",)) -> Verdict | None:
    """Return the Verdict of the first known mistake that explains all results, or of two at once if none does.

    tried: a Tried for each case. Returns None if no mistake explains them all.
    """
    end = time.process_time() + TIME_LIMIT
    if known.program is None or any(map(is_found, tried)):
        return None
    tried = sorted(tried, key=lambda one: (one.problem is None, _size(one.case)))
    ways = [(mistake, way) for mistake in known.mistakes() for way in mistake.ways]
    hypotheses = [
        (mistake, _Hypothesis(known, changes, tried, outputs))
        for mistake, way in ways
        for changes in ((way,), *((variant, way) for variant in known.variants))
    ]
    # nan from memory outside of the answer's is not a sign of a guard, nor is an exception: many mistakes raise
    outside = any(one.measured and one.measured.id.startswith("outside") for one in tried)
    raises = any(isinstance(one.problem, Raised) for one in tried)
    for guarded in (False,) if outside or raises else (False, True):
        for mistake, hypothesis in hypotheses:
            if hypothesis.explains_all(guarded):
                return _verdict(mistake)
    if any(one.problem and one.problem.id in ("outputs", "dtype") for one in tried):
        return None  # a second mistake does not explain other outputs or another dtype
    for (one, first), (other, second) in product([pair for pair in ways if pair[0].often], ways):
        if one.id == other.id or heads(first) & heads(second):
            continue
        if time.process_time() > end:
            return None
        if _Hypothesis(known, (first, second), tried, outputs).explains_all(False):
            return _verdict(one, other)
    return None


def _size(case):
    return sum(x.size for x in case.arguments if isinstance(x, np.ndarray))


def is_found(one: Tried) -> bool:
    """Return whether a harness ended the answer, which the programs of mistakes cannot explain."""
    return isinstance(one.result, Finding) and not isinstance(one.result, Raised)


def _verdict(*mistakes):
    sentence, *second = [mistake.sentence for mistake in mistakes]
    if second:
        sentence = f"{sentence}; and {second[0]}"
    return Verdict("", Outcome.WRONG, sentence, mistakes=tuple(mistake.id for mistake in mistakes))


class _Hypothesis:
    """The hypothesis that the answer is the program with some edits. Its results are computed when needed."""

    def __init__(self, known, changes, tried, outputs):
        self.known, self.changes, self.tried, self.outputs = known, changes, tried, outputs
        self.function, self.guesses = None, {}

    def explains_all(self, guarded):
        """Return whether its results are the answer's in all cases."""
        return all(self.explains(n, guarded) for n in range(len(self.tried)))

    def explains(self, n, guarded):
        """Return whether its result is the answer's in case n.

        guarded: accept a result without numbers where the answer is right: the learner may guard a case that our
        model of the mistake does not.
        """
        case, result, problem, _ = self.tried[n]
        guess = self._guess(n)
        if not _same_outcome(guess, result, case):  # the usual case
            return guarded and not problem and not _has_numbers(guess)
        if not problem:
            return True
        other = find_problem(guess, case, self.outputs)
        return other is not None and (problem.id != "dtype" or other.fields == problem.fields)

    def _guess(self, n):
        if n not in self.guesses:
            self.guesses[n] = attempt(self._run, *(_copied(x) for x in self.tried[n].case.arguments))
        return self.guesses[n]

    def _run(self, *arguments):
        if self.function is None:
            try:
                self.function = self.known.function(reduce(ProgramText.edited, self.changes, self.known.program))
            except (ValueError, SyntaxError):
                if len(self.changes) == 1:
                    raise
                self.function = _impossible  # edits that exclude each other
        return self.function(*arguments)


def _impossible(*arguments):
    raise Finding("impossible")


def _copied(x):
    return x.copy() if isinstance(x, np.ndarray) else x


def _has_numbers(guess):
    """Return whether a guess is finite numbers, or not numbers at all, such as a set, which no guard changes."""
    try:
        return all(np.isfinite(as_numbers(x)).all() for x in (guess if isinstance(guess, tuple) else (guess,)))
    except (TypeError, ValueError):
        return not isinstance(guess, Finding)


def _same_outcome(guess, result, case):
    """Return whether a guess is the result, to 1e-6 or the case's tolerance if that is larger, exactly if 0."""
    tolerance = max(1e-6, case.tolerance) if case.tolerance else 0.0
    refused = isinstance(result, Raised) and REFUSED_IN_PLACE in result.fields["error"]
    if refused and not isinstance(guess, Finding):
        return _other_shape(guess, case)
    if isinstance(guess, Finding) or isinstance(result, Finding):
        return isinstance(guess, Raised) and isinstance(result, Raised) and guess.kind == result.kind
    if isinstance(case.expected, tuple):
        if not (
            isinstance(result, tuple | list) and isinstance(guess, tuple | list) and len(result) == len(guess)
        ):
            return False
        return all(same(x, y, tolerance, case.size) for x, y in zip(result, guess, strict=True))
    return same(result, guess, tolerance, case.size)


def _other_shape(guess, case):
    """Return whether an array of a guess has another shape than expected, as the same sum in place cannot have."""
    several = isinstance(case.expected, tuple) and isinstance(guess, tuple | list)
    pairs = zip(guess, case.expected, strict=False) if several else [(guess, case.expected)]
    return any(isinstance(x, np.ndarray) and x.shape != np.shape(right) for x, right in pairs)
