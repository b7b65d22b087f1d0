"""The PTX of the Hopper forward, executed for a warp: the interpreter knows only what they are for."""

import re

import numpy as np
import pytest

from flashlib.kernels.hopper import votes

LANES = 32
CONSTANT = np.full(LANES, 1.0, np.float32)


class Warp:
    """Registers of 32 bits, one for each lane. given: the first values of $0, $1 and so on; skipped: lines."""

    def __init__(self, given):
        self.registers = {f"${at}": np.asarray(x, np.float32).copy() for at, x in given.items()}
        self.skipped = 0

    def of(self, name, kind):
        if name == "0f3F800000":
            return CONSTANT
        if name.lstrip("-").isdigit() or name == "0xffffffff":
            return np.full(LANES, int(name, 0), np.int64)
        value = self.registers[name]
        return value.view(np.int32) if kind == "s32" else value

    def run(self, ptx):
        ptx = re.sub("//.*", "", ptx).strip().strip("{}")
        lines = [line.strip() for line in re.split(r"[;\n]", ptx) if line.strip()]
        goal = None
        for line in lines:
            if line == f"{goal}:":
                goal = None
            elif goal:
                self.skipped += 1
            elif not line.startswith(".reg") and not line.endswith(":"):
                goal = self.step(line)
        assert goal is None

    def step(self, line):
        """Execute a line; return the label where a branch that is taken goes."""
        if branch := re.fullmatch(r"@!(\w+) bra\.uni (\w+)", line):
            assert len(set(self.registers[branch[1]])) == 1, "the branch is the same for all lanes"
            return None if self.registers[branch[1]][0] else branch[2]
        name, operands = line.split(" ", 1)
        operation, *_, kind = name.split(".")
        to, *sources = (operand.strip() for operand in operands.split(","))
        x = [self.of(source, kind) for source in sources]
        if operation == "vote":
            value = np.full(LANES, x[0].any())
        elif operation == "setp":
            value = x[0] < x[1] if ".lt." in name else x[0] != x[1]
            value = value | x[2] if ".or." in name else value
        else:
            value = {"mov": lambda x: x, "max": np.fmax, "min": np.fmin, "mul": np.multiply}[operation](*x)
        self.registers[to] = value.view(np.float32) if value.dtype == np.int32 else value.copy()
        return None


SCORES = {
    "mixed": lambda rng, shape: rng.standard_normal(shape),
    "negative": lambda rng, shape: -np.abs(rng.standard_normal(shape)) - 1,
    "hidden": lambda rng, shape: np.where(rng.random(shape) < 0.9, -np.inf, rng.standard_normal(shape)),
    "unseen": lambda rng, shape: np.full(shape, -np.inf),
    "zeros": lambda rng, shape: np.where(rng.random(shape) < 0.5, -0.0, -1.0),
    "large": lambda rng, shape: 1e37 * rng.standard_normal(shape),
}


@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("kind", SCORES)
def test_maxima_of_two_rows(kind, n):
    """The larger of a row's columns is its maximum. Floats are compared only if not all maxima are positive."""
    x = SCORES[kind](np.random.default_rng(n), (4 * n, LANES)).astype(np.float32)
    warp = Warp({at + 4: x[at] for at in range(4 * n)})
    warp.run(votes.maxima.fn(n))
    exact = x.reshape(n, 2, 2, LANES).max((0, 2))
    for row in (0, 1):
        found = np.maximum(*(warp.registers[f"${2 * row + column}"] for column in (0, 1)))
        np.testing.assert_array_equal(found, exact[row])
    assert warp.skipped == (4 * n if (exact > 0).all() else 0)


@pytest.mark.parametrize("grown", [(), (0,), (1,), (0, 1)])
def test_a_warp_multiplies_only_if_a_maximum_has_grown(grown):
    n, rng = 32, np.random.default_rng(7)
    x, alpha = rng.standard_normal((n, LANES)).astype(np.float32), np.ones((2, LANES), np.float32)
    for row in grown:
        alpha[row, 3 + row] = 0.25
    factors = alpha[[0, 0, 1, 1] * (n // 4)]
    warp = Warp(dict(enumerate(x)) | {2 * n + at: factor for at, factor in enumerate(factors)})
    warp.run(votes.multiply.fn(n))
    np.testing.assert_array_equal([warp.registers[f"${at}"] for at in range(n)], x * factors)
    assert warp.skipped == (0 if grown else n)
