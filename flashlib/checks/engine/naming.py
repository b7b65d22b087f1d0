"""Name the mistake that explains what an answer returned.

It is found by hypothesis: each known mistake is a program too, and it is named if it gives what the answer gave in
every case, the right ones included (but see `_Trial.explains`). Cases that failed are tried first: most mistakes
do not explain the first of them, and need not be tried on another.
"""

import time
from functools import reduce
from itertools import product

import numpy as np

from flashlib.checks.engine.examine import Finding, Raised, attempt, find_problem
from flashlib.checks.engine.mistakes import Mistake
from flashlib.checks.engine.program import Program, heads
from flashlib.checks.engine.values import as_numbers, same

TIME_LIMIT = 2.5  # seconds of computing, after which no two mistakes at once are tried: a check has few more


def named(known, cases, given, failed, outputs) -> Mistake | None:
    """Return the first known Mistake that gives what was given; of two at once, if no single one does; or None.

    failed: the Problem of each case, or None.
    """
    end = time.process_time() + TIME_LIMIT
    if known.program is None or any(isinstance(result, Raised) and result.found for result in given):
        return None
    order = sorted(range(len(cases)), key=lambda n: failed[n] is None)
    ways = [(mistake, way) for mistake in known.mistakes() for way in mistake.ways]
    trials = [
        (mistake, _Trial(known, changes, cases, given, failed, outputs))
        for mistake, way in ways
        for changes in ((way,), *((variant, way) for variant in known.variants))
    ]
    for guarded in (False, True):
        for mistake, trial in trials:
            if all(trial.explains(n, guarded) for n in order):
                return mistake
    if any(problem and problem.id in ("outputs", "dtype") for problem in failed):
        return None  # no two mistakes give other values, or numbers of another kind
    for (one, first), (other, second) in product([pair for pair in ways if pair[0].often], ways):
        if one.id == other.id or heads(first) & heads(second):
            continue
        if time.process_time() > end:
            return None
        trial = _Trial(known, (first, second), cases, given, failed, outputs)
        if all(trial.explains(n, False) for n in order):
            return Mistake(f"{one.id} and {other.id}", f"{one.sentence}; and {other.sentence}")
    return None


class _Trial:
    """What a program with edits gives in the cases, worked out when it is asked for."""

    def __init__(self, known, changes, cases, given, failed, outputs):
        self.known, self.changes = known, changes
        self.cases, self.given, self.failed, self.outputs = cases, given, failed, outputs
        self.function, self.guesses = None, {}

    def explains(self, n, guarded):
        """Return whether it gives what was given in case n.

        guarded: where the answer is right, the mistake may give no numbers. The answer may have, beside the
        mistake, a guard that our model of the mistake lacks.
        """
        guess, case = self._guess(n), self.cases[n]
        if self.failed[n]:
            return _same_outcome(guess, self.given[n], case) and bool(find_problem(guess, case, self.outputs))
        return _same_outcome(guess, self.given[n], case) or (guarded and not _has_numbers(guess))

    def _guess(self, n):
        if n not in self.guesses:
            self.guesses[n] = attempt(self._run, *(_copied(x) for x in self.cases[n].arguments))
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
    """Return whether a mistake gives numbers, all of them finite; or None, which is for no guard to mend."""
    if guess is None:
        return True
    try:
        return all(np.isfinite(as_numbers(x)).all() for x in (guess if isinstance(guess, tuple) else (guess,)))
    except (TypeError, ValueError):
        return False


def _same_outcome(guess, result, case):
    """Return whether a mistake gives in a case what was given; to 1e-6 or as the case has it, 0 too."""
    tolerance = max(1e-6, case.tolerance) if case.tolerance else 0.0
    if isinstance(guess, Raised) or isinstance(result, Raised):
        both = isinstance(guess, Raised) and isinstance(result, Raised)
        return both and not result.found and guess.error.split(":")[0] == result.error.split(":")[0]
    if isinstance(case.expected, tuple):
        if not (
            isinstance(result, tuple | list) and isinstance(guess, tuple | list) and len(result) == len(guess)
        ):
            return False
        return all(same(x, y, tolerance, case.size) for x, y in zip(result, guess, strict=True))
    return same(result, guess, tolerance, case.size)
