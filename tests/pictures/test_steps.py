"""Which step a picture shows, and which rows it says grew."""

import numpy as np
import pytest

from flashlib import tiled
from flashlib.pictures.steps import grown, telling_step
from flashlib.types import Step


def steps_of(rng, **options):
    Q, K, V = (rng.normal(size=(N, 4)) for N in (9, 23, 23))
    return list(tiled.steps(Q, K, V, B_r=3, B_c=4, **options))


@pytest.mark.parametrize("order", ["fa1", "fa2"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_maximum_grows_only_where_there_was_one(rng, order, causal):
    """Each row's first tile sets its maximum, a later one may raise it: together they are all the changes."""
    seen, rises, changes = set(), 0, 0
    for step in steps_of(rng, order=order, causal=causal):
        rows = grown(step)
        changes += np.count_nonzero(step.m != step.m_old)
        rises += np.count_nonzero(rows)
        assert {int(row) for row in np.arange(9)[step.rows][rows]} <= seen
        assert np.isfinite(step.m - step.m_old)[rows].all()
        seen |= {int(row) for row in np.arange(9)[step.rows][step.m > -np.inf]}
    assert changes == rises + len(seen) and rises


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_the_shown_step_is_the_growing_one_nearest_to_two_thirds(n):
    def step(m_old, m):
        return Step(i=0, j=0, m=np.array([m]), l=np.ones(1), O_acc=np.zeros((1, 1)), m_old=np.array([m_old]))

    first, same = step(-np.inf, 1.0), step(1.0, 1.0)
    steps = [first, *[same] * (n - 1)]
    assert telling_step(steps) == 2 * n // 3, "a row's first tile is no growth"
    for k in range(n):
        assert telling_step([*steps[:k], step(1.0, 2.0), *steps[k + 1 :]]) == k
