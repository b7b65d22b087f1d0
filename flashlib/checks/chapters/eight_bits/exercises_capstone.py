"""The capstone: plain attention in eight bits, repaired. It is judged by the errors of O and by their causes."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from flashlib import lowbit, tiled
from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Outcome,
    Verdict,
    attempt,
    examine,
    exercise,
    random_cases,
    written,
)
from flashlib.lowbit.trials import Trial

CAUSES = {
    cause: name for cause, name in lowbit.CAUSE_NAMES.items() if cause != "S"
}  # those that can be the largest


@exercise(
    title="Repair plain fp8 attention",
    minutes=75,
    difficulty="hard",
    program=partial(written, lowbit=lowbit, tiled=tiled),
    limit=12.0,
)
def repaired(answer: Callable, known: Known) -> Verdict:
    verdict = examine(answer, _cases(), known)
    if verdict.outcome != Outcome.RIGHT:
        return verdict
    errors = []
    for trial in lowbit.trials():
        error, found, alone = _judged(answer, trial)
        if found:
            causes = ", ".join(f"{words} {alone[cause]:.2%}" for cause, words in CAUSES.items() if cause in alone)
            return known.verdict(found, *[("each cause alone", causes)] * bool(alone))
        errors.append(f"{error:.2%} with {trial.words}")
    return Verdict("", Outcome.RIGHT, f"O is off by {', '.join(errors[:-1])} and {errors[-1]}")


def _cases():
    """Return Cases in which nothing is rounded: whatever is subtracted, turned or scaled has to come back."""
    rng = np.random.default_rng(0)
    return [
        _unrounded(rng, "nothing rounded, 2 queries, 3 keys", 2, 3, 2),
        _unrounded(rng, "nothing rounded, as many queries as keys", 4, 4, 4),
        _unrounded(rng, "nothing rounded, 200 keys", 3, 200, 4),
        _unrounded(rng, "nothing rounded, 200 queries and 300 keys", 200, 300, 8),
        _unrounded(rng, "nothing rounded, scores of hundreds", 3, 200, 4, size=20.0),
        *random_cases.cases(_any),
    ]


def _unrounded(rng, words, N_q, N_k, d, size=1.0):
    Q, K, V = rng.normal(size=(N_q, d)) * size, rng.normal(size=(N_k, d)) * size, rng.normal(size=(N_k, d))
    K, V = K + rng.normal(size=d), V + 3 * rng.normal(size=d)
    return Case(words, (Q, K, V, lowbit.TensorCore(())), lowbit.exact(Q, K, V))


def _any(rng):
    N_q, N_k = map(int, rng.integers((2, 3), (9, 400)))
    return _unrounded(rng, f"nothing rounded, {N_q} queries, {N_k} keys", N_q, N_k, 2 ** int(rng.integers(1, 5)))


class Judged(NamedTuple):
    """The error of O in a trial, a Finding or None, and, if it is too large, {cause: the error it makes alone}."""

    error: float
    found: Finding | None = None
    alone: Mapping[str, float] = MappingProxyType({})


def _judged(answer: Callable, trial: Trial) -> Judged:
    O, core = _run(answer, trial, lowbit.CAUSES)
    if isinstance(O, Finding):
        return Judged(np.nan, O)
    name, most = min(core.multiplied.items(), key=lambda item: item[1])
    if most < (needed := len(trial.Q) * trial.K.size):
        return Judged(np.nan, Finding("past_the_core", name=name, share=f"{most / needed:.0%}"))
    exact = lowbit.exact(trial.Q, trial.K, trial.V)
    error = lowbit.error(O, exact)
    if not error <= trial.bound:
        alone = {cause: lowbit.error(_run(answer, trial, {cause})[0], exact) for cause in CAUSES}
        return Judged(error, _too_large(trial, core, error, alone), alone)
    if core.stored_numbers < O.size:
        return Judged(error, Finding("not_stored"))
    return Judged(error, None if np.array_equal(lowbit.rounded(O, "bf16"), O) else Finding("changed_later"))


def _run(answer, trial, causes):
    """Return the O of a trial, or a Finding, and the core that multiplied."""
    core = lowbit.TensorCore(causes)
    O = attempt(answer, trial.Q.copy(), trial.K.copy(), trial.V.copy(), core)
    return O if isinstance(O, Finding) else np.asarray(O, float), core


def _too_large(trial, core, error, alone):
    """Return the Finding that names the largest cause that can be repaired."""
    fields = {"words": trial.words, "error": f"{error:.2%}", "bound": f"{trial.bound:.1%}"}
    name, share = max(core.saturated.items(), key=lambda item: item[1])
    if share:
        return Finding("saturated", name=name, share=f"{share:.1%}", **fields)
    cause, second = sorted(alone, key=alone.__getitem__, reverse=True)[:2]
    if cause == "V" and alone["V"] <= 1.1 * _left_of_V(trial):
        cause = second
    fields |= {"alone": f"{alone[cause]:.2%}"}
    if cause != "inputs":
        return Finding(f"by_{cause}", **fields)
    size, name = min((core.largest[name], name) for name in "QK")
    return Finding(f"by_inputs{_kind(trial, core, size)}", name=name, size=f"{size:.3g}", **fields)


def _kind(trial, core, largest):
    """Return which repair rounding Q and K needs."""
    if core.formats == {"int8"} and largest < lowbit.FORMATS["int8"].largest / 2:
        return "_unscaled"
    if trial.words == "means":
        return "_mean"
    return "_int8" if core.formats == {"int8"} else "_e4m3"


def _left_of_V(trial):
    """Return the error of O from rounding V alone, with the scale that brings its largest number to 448."""
    exact = lowbit.exact(trial.Q, trial.K, trial.V)
    O = lowbit.attention(trial.Q, trial.K, trial.V, lowbit.EXACT._replace(v="e4m3", v_share="tensor")).O
    return lowbit.error(O, exact)
