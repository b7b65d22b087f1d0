"""The words of a case describe it correctly."""

import numpy as np
import pytest

pytest.importorskip("triton")

from flashlib.checks.chapters.scores import exercises_triton  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES  # noqa: E402
from flashlib.checks.harness import launches  # noqa: E402


def test_a_number_of_dropout_equals_p(monkeypatch):
    given = {}
    monkeypatch.setattr(
        launches,
        "examine_kernel",
        lambda answer, run, cases, known, outputs: given.update({case.words: case for case in cases[0]}),
    )
    EXERCISES["dropout"].examine(None, None)
    P, _, _, seed, p, *_ = given["p that is one of the numbers"].arguments
    assert (exercises_triton._rand(seed, np.arange(P.size)) == p).any()
