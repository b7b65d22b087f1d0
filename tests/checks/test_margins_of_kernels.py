"""Tolerances of kernels are between the errors of right answers and of answers that lose bits on the way."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
pytest.importorskip("flashlib.kernels", exc_type=ImportError)

from flashlib import checks, kernels  # noqa: E402
from flashlib.checks.engine import Finding, examination, solutions  # noqa: E402
from flashlib.checks.engine.equality import as_numbers  # noqa: E402
from flashlib.learner import process  # noqa: E402
from tests.checks.answers import Answer  # noqa: E402
from tests.checks.test_answers import SEED, call_here, right, wrong  # noqa: E402

LOST = "_16_bits", "rounded"  # how the ids of such mistakes end
NAMES = [
    "inner_loop", "padded", "alibi", "attention", "delta_kernel", "dkv_loop", "dq_loop", "base_2", "tail",
    "decode_part", "decode_cache", "decode", "whole_tiles", "variant",
]  # fmt: skip

interpreted = pytest.mark.skipif(not kernels.INTERPRETED, reason="what is compiled rounds in other places")


def margin(answer, monkeypatch):
    """Return the largest error of an answer in any case that it reaches, in units of the tolerance."""
    errors, find = [0.0], examination.find_problem

    def noted(result, case, outputs=("result",), *others):
        problem = find(result, case, outputs, *others)
        found = [np.inf]
        if not isinstance(result, Finding):
            pairs = zip(*(examination.outputs_of(x, outputs) for x in (result, case.expected)), strict=False)
            found = [error(given, expected, case.tolerance) for given, expected in pairs]
        errors.append(np.inf if problem and max(found) < 1 else max(found))  # then a different rule finds it
        return problem

    with monkeypatch.context() as patch:
        patch.setattr(process, "call", call_here)
        patch.setattr(examination, "find_problem", noted)
        checks.EXERCISES[answer.exercise](answer.program.function, seed=SEED)
    return max(errors)


def error(given, expected, tolerance):
    """Return the difference of two results in units of the tolerance; 0 if they have no numbers to compare."""
    if isinstance(given, Exception) or given is None:
        return 0.0
    x, y = as_numbers(given), as_numbers(expected)
    if x.shape != y.shape or not (finite := np.isfinite(y)).any():
        return 0.0
    apart = np.abs(x - y)[finite].max()
    size = np.abs(y[finite]).max() or 1.0
    return float(apart / (tolerance * size)) if np.isfinite(apart) else np.inf


@interpreted
@pytest.mark.parametrize("name, amount", [("dq_loop", "few"), *((name, "all") for name in NAMES)])
def test_right_answers_lie_inside_and_lost_bits_outside(name, amount, monkeypatch):
    """`pytest -s` shows the margins. "few" are the solution and one answer for each such mistake."""
    solution = Answer(name, "", "the solution", solutions.program(name))
    inside = [solution] if amount == "few" else right(name)
    outside = [answer for answer in wrong(name, amount) if answer.mistake.endswith(LOST)]
    most = {answer.words: margin(answer, monkeypatch) for answer in inside}
    least = {f"{answer.mistake}: {answer.words}": margin(answer, monkeypatch) for answer in outside}
    print(f"\n{name}: right {most}, lost bits {least}, in tolerances")
    assert max(most.values()) < 0.7, f"{name}: the tolerance is close to the error of a right answer: {most}"
    assert min(least.values(), default=9) > 1.4, (
        f"{name}: the tolerance is close to the error of lost bits: {least}"
    )
