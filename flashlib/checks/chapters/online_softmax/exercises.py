"""The exercises on one row, score by score."""

from collections.abc import Callable, Generator
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Verdict, attempt, examine, exercise, random_cases
from flashlib.checks.engine.equality import same
from flashlib.checks.harness.metered import measured_memory, read_once
from flashlib.softmax import logsumexp, safe, summarise

INF = np.inf
MANY = 2000  # scores, to measure how much an answer keeps
FEW, FEW_BYTES = 8, 6000  # scores and bytes that may be kept
EXACT = 1e-13  # relative error: less than if a weight of exp(-25) is left out


@exercise(title="One online step", minutes=5, difficulty="easy")
def online_step(answer: Callable, known: Known) -> Verdict:
    finite = [
        _step("the first score", [], 2.0),
        _step("a score below the maximum", [2.0], 1.0),
        _step("a score above the maximum", [1.0], 2.0),
        _step("a score equal to the maximum", [2.0], 2.0),
        _step("a second score above the maximum", [0.0, 1.0], 3.0),
        _step("a score equal to the maximum after three", [1.0, 2.0, 2.0], 2.0),
        _step("a first score of -20000", [], -20000.0),
        _step("a first score of -2e12", [], -2e12),
        _step("a second score of -2e12", [-2e12], -2e12)._replace(tolerance=1e-3),  # of an lse, too
        _step("scores near 1000", [1000.0, 999.0], 1001.0),
        _step("scores near -1000", [-1000.0], -999.0),
        _step("a score far above the maximum", [-20000.0], 20000.0),
        _step("a score far below the maximum", [20000.0], -20000.0),
        _step("a score 18 below the maximum", [1.0], -17.0),
        _step("a score of 0", [1.0], 0.0),
        _step("a score above a maximum of 0", [0.0, -1.0], 1.0),
        _step("a score below a maximum of 0", [0.0, -1.0], -1.0),
        _step("a score 25 below the maximum", [1.0], -24.0)._replace(tolerance=EXACT),
        _step("a score 25 above the maximum", [1.0, 0.5], 26.0)._replace(tolerance=EXACT),
    ]
    masked = [
        _step("a masked score", [2.0, 1.0], -INF),
        _step("a masked score before any other", [], -INF),
    ]
    return examine(answer, [finite + random_cases.cases(_any_step), masked], known, outputs=("m", "l"))


def _step(words, seen, x_j):
    before, after = summarise(np.array(seen)), summarise(np.array([*seen, x_j]))
    return Case(words, (float(before.m), float(before.l), x_j), (after.m, after.l))


def _any_step(rng):
    *seen, x_j = _any_scores(rng).tolist()
    return _step(f"a score after {len(seen)}", seen, max(seen) if seen and rng.random() < 0.3 else x_j)


def _any_scores(rng, most=9):
    """Return 1 to `most` scores of any size, some of them equal."""
    return rng.normal(scale=rng.choice([1, 30, 1000]), size=rng.integers(1, most + 1)).round(int(rng.integers(2)))


@exercise(title="A stream that cannot be rewound", minutes=10, difficulty="medium", optional=True)
def stream_lse(answer: Callable, known: Known) -> Verdict:
    finite = (
        ("one score", [2.0]),
        ("two equal scores", [1.0, 1.0]),
        ("four scores", np.log([1.0, 2.0, 1.0, 4.0])),
        ("scores whose maximum comes first", [3.0, 1.0, 2.0]),
        ("scores whose maximum comes twice", [1.0, 3.0, 2.0, 3.0]),
        ("scores near 1000", [1000.0, 1001.0]),
        ("scores far below 0", [-1000.0, -1001.0]),
        ("scores near -20000", [-20000.0, -20001.0]),
        ("one score of -2e12", [-2e12]),
        ("scores that rise by 1000", [-1000.0, 0.0, 1000.0, 1000.5]),
        ("scores that fall by 1000", [1000.5, 1000.0, 0.0, -1000.0]),
        ("scores whose maximum is 0", [0.0, -1.0]),
        ("scores of 0 among others", [1.0, 0.0, -1.0]),
        ("a log-sum-exp of 0 on the way", [0.0, 1.0, -2.0]),
        ("scores that fall by 20", [1.0, -19.0]),
        ("scores that rise by 20", [1.0, 21.0]),
    )
    masked = (
        ("no scores", []),
        ("masked scores among others", [2.0, -INF, 3.0]),
        ("a masked score before others", [-INF, 2.0, 1.0, -INF]),
        ("only masked scores", [-INF] * 3),
    )
    stages = [[_streamed(words, np.array(x, float)) for words, x in rows] for rows in (finite, masked)]
    stages[0] += random_cases.cases(lambda rng: _streamed("scores", _any_scores(rng, 30)))
    verdict = examine(_from_stream(answer), stages, known)
    return verdict.right and _kept(known, lambda x: answer(_Stream(x)), rows=1) or verdict


def _streamed(words, x):
    return Case(words, (x,), logsumexp(x))


class _Score(float):
    """A number that counts how many of them exist at once."""

    alive = most = 0

    def __init__(self, _):
        _Score.alive += 1
        _Score.most = max(_Score.most, _Score.alive)

    def __del__(self):
        _Score.alive -= 1


class _Stream(Generator):
    """Yields scores one by one, once, and counts how often it is asked for more after its end."""

    def __init__(self, x):
        self.scores, self.ended = iter(x), 0

    def send(self, value):
        try:
            return _Score(next(self.scores))
        except StopIteration:
            self.ended += 1
            raise

    def throw(self, error, *_):
        raise error


def _from_stream(answer):
    """Return answer as a function of a row, which is passed to it as a stream."""

    @wraps(answer)
    def run(stream):
        given = _Stream(stream)
        try:
            result = answer(given)
        except NotImplementedError:
            raise
        except Exception:
            if given.ended > 1:
                raise Finding("twice") from None
            raise
        if given.ended > 1 and not same(result, logsumexp(stream), 1e-6):
            raise Finding("twice")
        return result

    return run


def _kept(known, answer, rows):
    """Return the Verdict on an answer that keeps many scores, or None."""
    x = np.sin(np.arange(float(MANY)))  # all different
    attempt(answer, *[x[:9]] * rows)  # objects created by a first call do not count
    _Score.most = 0
    _, kept = measured_memory(lambda: attempt(answer, *[x] * rows), FEW_BYTES)
    if kept > FEW_BYTES:
        return known.wrong("kept", n=MANY, kB=f"{kept / 1000:.0f}")
    return known.wrong("held", n=_Score.most) if _Score.most > FEW else None


@exercise(title="Carry one more number", minutes=10, difficulty="medium")
def weighted_mean(answer: Callable, known: Known) -> Verdict:
    v = [10.0, 20.0, 30.0, 40.0]
    rows = (
        ("one score", [0.5], v[:1]),
        ("two scores", [0.0, 1.0], v[:2]),
        ("two equal scores", [1.0, 1.0], v[:2]),
        ("four scores", np.log([1.0, 2.0, 1.0, 4.0]), v),
        ("scores that fall", [3.0, 2.0, 1.0, 0.0], v),
        ("scores whose maximum comes twice", [1.0, 3.0, 2.0, 3.0], v),
        ("scores near 1000", [1000.0, 1001.0, 999.0], v[:3]),
        ("scores near -1000", [-1000.0, -1001.0], v[:2]),
        ("scores near -20000", [-20000.0, -20001.0], v[:2]),
        ("one score of -2e12", [-2e12], v[:1]),
        ("values that begin with 0", [1.0, 2.0, 0.5], [0.0, 0.0, 3.0]),
        ("a maximum of 0, then 1", [0.0, -1.0, 1.0], v[:3]),
        ("values that cancel", [1.0, 1.0, 2.0], [3.0, -3.0, 5.0]),
        ("a score 20 below the first", [1.0, -19.0], [1.0, 40.0]),
        ("a score 20 above the first", [1.0, 21.0], [40.0, 1.0]),
        ("scores that rise by 1000", [-1000.0, 0.0, 1000.0, 1000.5], v),
        ("scores that fall by 1000", [1000.5, 1000.0, 0.0, -1000.0], v),
    )
    cases = [_weighted(words, np.array(x), np.array(v)) for words, x, v in rows]
    verdict = examine(read_once(answer, {0: "x", 1: "v"}), cases + random_cases.cases(_any_weighted), known)
    return verdict.right and _kept(known, answer, rows=2) or verdict


def _weighted(words, x, v):
    return Case(words, (x, v), safe(x) @ v, 1e-10)


def _any_weighted(rng):
    x = _any_scores(rng, 30)
    return _weighted(f"{len(x)} scores", x, rng.uniform(1, 5, size=len(x)).round(1))
