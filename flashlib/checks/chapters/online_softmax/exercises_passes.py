"""The exercise on what a softmax reads."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.chapters.softmax.exercises_safe import UNGUARDED, exact_weights, row_program
from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.engine.value_text import describe, show
from flashlib.checks.harness.metered import MeteredArray


class _Memory(MeteredArray):
    """Slow memory whose slices are slow memory too, so that stores through them are seen."""

    def __getitem__(self, key):
        return self._moved(lambda x: x[key]) if isinstance(key, slice) else super().__getitem__(key)


ROW = row_program("row(x, n, p)", "np.append(P / some[:, None], np.zeros(len(x) - n))", "S = x[None, :n]")


@exercise(
    title="Read only what counts",
    minutes=10,
    difficulty="medium",
    program=ROW,
    variants=(UNGUARDED,),
    optional=True,
)
def causal_row_passes(answer: Callable, known: Known) -> Verdict:
    finite = (
        ("one score", [2.0], 1),
        ("a visible and a hidden score", [0.5, 1.5], 1),
        ("no hidden score", [0.0, 1.0, -0.5], 3),
        ("equal scores, one of them hidden", [1.0, 0.5, 1.0, 1.0], 3),
        ("large scores", [1000.0, 999.0, 1001.0, 500.0, 998.0], 3),
        ("scores near -400", [-400.0, -401.0], 2),
        ("scores near -800", [-800.0, -801.0], 2),
        ("scores near -1000", [-1000.0, -1001.0, -999.5, -998.0, 0.0], 3),
        ("scores near a million, of both signs", [-1e6, 1 - 1e6, 1e6, 1e6 - 1], 2),
        ("scores of minus a million", [-1e6, -1e6, 0.0], 2),
        ("a score 18 below the first", [0.0, -18.0, 3.0], 2),
        ("hidden scores far above the visible ones", [1.0, 2.0, 3.0, 1e4, 5e3], 3),
        ("scores that fall", [800.0, 1.0, -50.0, -1000.0, 3.0], 4),
        ("scores that rise", [-1000.0, 0.0, 800.0, 5.0], 3),
        ("50 scores", np.random.default_rng(0).normal(scale=30, size=50), 20),
    )
    none = (("no visible score, n = 0", [0.5, -1.0, 2.0], 0), ("one hidden score, n = 0", [3.0], 0))
    seen = []  # the arguments, x and p in slow memory of each run
    stages = [[_row(*row) for row in finite] + random_cases.cases(_any_visible), [_row(*row) for row in none]]
    verdict = examine(_metered(answer, seen), stages, known)
    return _traffic(answer, seen, known) or verdict if verdict.right else verdict


def _row(words, row, n):
    weights = np.append(exact_weights(np.array(row[:n])), np.zeros(len(row) - n))
    return Case(words, (np.array(row), n, np.full(len(row), np.nan)), weights, 1e-9)


def _any_visible(rng):
    N = int(rng.integers(18, 80))
    n = int(rng.integers(17, N))
    return _row(f"{n} visible scores of {N}", rng.normal(size=N) * rng.choice([1, 30, 1000]), n)


def _metered(answer, seen):
    """Return answer as a function that returns p; it runs in slow memory, and appends its accesses to `seen`."""

    @wraps(answer)
    def run(x, n, p):
        slow_x, slow_p = MeteredArray(x), _Memory(p)
        answer(slow_x, n, slow_p)
        seen.append(((x, n, p), slow_x.reads, slow_p.reads, slow_p.writes))
        x_after, p_after = slow_x._data, slow_p._data
        if slow_x.writes.any() or not np.array_equal(x_after, x):
            raise Finding("x_written")
        if n and not slow_p.writes.any() and np.isnan(p_after).all():
            raise Finding("nothing_written")
        return Measured(p_after, Finding("hidden_not_0")) if n and p_after[n:].any() else p_after

    return run


def _traffic(answer, seen, known):
    """Return the Verdict for the longest row read or written wrongly, with the shortest one as input; or None."""
    found = []
    for arguments, reads, p_reads, writes in sorted(seen, key=lambda run: len(run[1])):
        if problem := _about_traffic(reads[: arguments[1]], reads[arguments[1] :], p_reads, writes):
            counted = f"reads of x {show(reads)}, writes of p {show(writes)}"
            found.append((*problem, ("input", describe(answer, arguments)), ("counted", counted)))
    if not found:
        return None
    (*_, at, counted), (id, fields, *_) = found[0], found[-1]
    return known.wrong(id, at, counted, **fields)


def _about_traffic(visible, hidden, p_reads, writes):
    """Return the id and fields of a mistake in the reads of the scores or in the use of p, or None."""
    most, least = hidden.max(initial=0), visible.min(initial=3)
    again = len(visible) and visible[0] == 4 and (visible[1:] == 3).all()
    problems = (
        ("read_for_none", most and not len(visible)),
        ("all_read", most >= 3),
        ("hidden_read", most),
        ("p_read", p_reads.any()),
        ("p_written_twice", (writes > 1).any()),
        ("first_read_again", again),
        ("read_twice", (visible > 3).any()),
        ("kept", least < 3),
    )
    fields = {"hidden_read": {"passes": most}, "kept": {"times": ("never", "once", "twice", "")[least]}}
    return next(((id, fields.get(id, {})) for id, holds in problems if holds), None)
