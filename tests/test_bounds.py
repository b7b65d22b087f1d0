"""The last number that is accepted, and the next one, which is refused."""

import math
import sys

import numpy as np
import pytest

from flashlib import cost, inputs, masks, pipeline
from flashlib.lm import rotary
from flashlib.lm.sampling import check_temperature

LARGEST = sys.float_info.max
X, HALF = np.zeros((5, 8)), np.zeros((5, 4))
BEFORE, AFTER = -math.inf, math.inf


def computes(amount):
    return pipeline.run(pipeline.Program({"role": lambda: iter([pipeline.Compute("x", "exp", amount)])}, (), ()))


def says(most):
    said = pipeline.Program({"role": lambda: (pipeline.Compute("x", "exp", 1) for _ in range(9))}, (), ())
    return pipeline.commands.expanded(said, most)


def at_latency(clocks):
    name = next(iter(sorted(pipeline.timeline.LATENCIES)))
    work = pipeline.Program({"role": lambda: iter([pipeline.Compute("x", "exp", 1)])}, (), ())
    return pipeline.run(work, pipeline.MACHINE._replace(**{name: clocks}))


# The function that takes the number, the last number, and the next one.
BOUNDS = {
    "least scale": (lambda x: inputs.resolve_scale(x, 4), 1e-30, BEFORE),
    "largest scale": (lambda x: inputs.resolve_scale(x, 4), 1e30, AFTER),
    "largest cap": (masks.softcap, LARGEST, AFTER),
    "least cap": (masks.softcap, math.ulp(0), BEFORE),
    "least temperature": (check_temperature, 0.0, BEFORE),
    "largest temperature": (check_temperature, LARGEST, AFTER),
    "least base": (lambda x: rotary.angles(3, 4, x), math.ulp(0), BEFORE),
    "largest base": (lambda x: rotary.angles(3, 4, x), LARGEST, AFTER),
    "no work": (computes, 0.0, BEFORE),
    "most work": (computes, LARGEST, AFTER),
    "latency": (at_latency, 0.0, BEFORE),
    "commands of a role": (says, 9, 8),
    "count": (lambda n: inputs.check_counts(n=n), 0, -1),
    "block": (lambda n: inputs.check_block_sizes(n=n), 1, 0),
    "columns that are rotated": (lambda n: rotary.angles(3, n), 2, 0),
    "d": (lambda n: cost.flops(3, 4, n), 1, 0),
    "axes of X": (lambda n: rotary.rotate(np.zeros((1,) * (n - 2) + X.shape)[(0,) * (2 - n)], HALF, HALF), 2, 1),
    "columns of X": (lambda n: rotary.rotate(X[:, :n], HALF, HALF), 8, 7),
    "axes of cos": (lambda n: rotary.rotate(X[None], *2 * [HALF.reshape((1,) * (n - 2) + HALF.shape)]), 3, 4),
}


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("name", BOUNDS)
def test_the_last_is_accepted_and_the_next_refused(name):
    takes, last, further = BOUNDS[name]
    takes(last)
    if isinstance(last, float):
        further = math.nextafter(last, further)
    with pytest.raises(ValueError):
        takes(further)
