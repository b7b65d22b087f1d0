"""Name the mistake that explains what an answer returned.

It is found by hypothesis: each known mistake is a program too, and it is named if it gives what the answer gave in
every case, the right ones included (but see `_Hypothesis.explains`). Cases that failed are tried first, and the
smallest of them before the others: most mistakes do not explain it, and need not be tried on another.
"""

import time
from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from flashlib.checks.engine.cases import Finding, Raised, Tried, attempt, find_problem
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.program import Program, heads
from flashlib.checks.engine.values import as_numbers, same
from flashlib.checks.engine.verdict import Outcome, Verdict

TIME_LIMIT = 2.5  # seconds of computing, after which no two mistakes at once are tried: a check has few more


def diagnose(known: Known, tried: Sequence[Tried], outputs: Sequence[str] = ("result",)) -> Verdict | None:
    """Return the Verdict of the first known mistake that gives what was given, or of two at once if none does.

    tried: a Tried of each case. Returns None where no mistake explains them all.
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
    # nan from memory that is not the answer's is no sign of a guard, nor is an exception: many mistakes raise
    outside = any(one.measured and one.measured.id.startswith("outside") for one in tried)
    raises = any(isinstance(one.problem, Raised) for one in tried)
    for guarded in (False,) if outside or raises else (False, True):
        for mistake, hypothesis in hypotheses:
            if hypothesis.explains_all(guarded):
                return _verdict(mistake)
    if any(one.problem and one.problem.id in ("outputs", "dtype") for one in tried):
        return None  # two mistakes do not give other values, or numbers of another kind
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
    """Return whether a harness ended the answer: the programs know nothing of that."""
    return isinstance(one.result, Finding) and not isinstance(one.result, Raised)


def _verdict(*mistakes):
    sentence, *second = [mistake.sentence for mistake in mistakes]
    if second:
        sentence = f"{sentence}; and {second[0]}"
    return Verdict("", Outcome.WRONG, sentence, mistakes=tuple(mistake.id for mistake in mistakes))


class _Hypothesis:
    """A hypothesis: the answer is the program with some edits. What that gives is computed when it is needed."""

    def __init__(self, known, changes, tried, outputs):
        self.known, self.changes, self.tried, self.outputs = known, changes, tried, outputs
        self.function, self.guesses = None, {}

    def explains_all(self, guarded):
        """Return whether it gives what was given in all cases."""
        return all(self.explains(n, guarded) for n in range(len(self.tried)))

    def explains(self, n, guarded):
        """Return whether it gives what was given in case n.

        guarded: where the answer is right, the mistake may give no numbers. The answer may have, beside the
        mistake, a guard that our model of the mistake lacks.
        """
        case, result, problem, _ = self.tried[n]
        guess = self._guess(n)
        if not _same_outcome(guess, result, case):  # as mostly
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
                self.function = self.known.function(reduce(Program.edited, self.changes, self.known.program))
            except (ValueError, SyntaxError):
                if len(self.changes) == 1:
                    raise
                self.function = _impossible  # edits that do not go together
        return self.function(*arguments)


def _impossible(*arguments):
    raise Finding("impossible")


def _copied(x):
    return x.copy() if isinstance(x, np.ndarray) else x


def _has_numbers(guess):
    """Return whether a mistake gives finite numbers, or what is none, as a set, which a guard does not mend."""
    try:
        return all(np.isfinite(as_numbers(x)).all() for x in (guess if isinstance(guess, tuple) else (guess,)))
    except (TypeError, ValueError):
        return not isinstance(guess, Finding)


def _same_outcome(guess, result, case):
    """Return whether a mistake gives what was given in a case, to 1e-6, or its tolerance if that is more, or 0."""
    tolerance = max(1e-6, case.tolerance) if case.tolerance else 0.0
    if isinstance(guess, Finding) or isinstance(result, Finding):
        return isinstance(guess, Raised) and isinstance(result, Raised) and guess.kind == result.kind
    if isinstance(case.expected, tuple):
        if not (
            isinstance(result, tuple | list) and isinstance(guess, tuple | list) and len(result) == len(guess)
        ):
            return False
        return all(same(x, y, tolerance, case.size) for x, y in zip(result, guess, strict=True))
    return same(result, guess, tolerance, case.size)
