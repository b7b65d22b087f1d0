"""Cases that are drawn at random for each check, from a seed that the verdict shows."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

_seed = 0


def new_seed() -> int:
    """Return a four-digit seed for a check."""
    return random.SystemRandom().randrange(1000, 10000)


def use(seed: int) -> None:
    """Make `cases` draw from this seed."""
    global _seed
    _seed = seed


def cases(make: Callable[[np.random.Generator], Any], count: int = 3) -> list:
    """Return `count` Cases, each made by make(rng); their words say that they are drawn, and from which seed."""
    rng = np.random.default_rng(_seed)
    made = [make(rng) for _ in range(count)]
    return [case._replace(words=f"{case.words} {_drawn()}") for case in made]


def is_drawn(case: Any) -> bool:
    """Return whether `cases` has drawn this Case from the seed."""
    return case.words.endswith(_drawn())


def _drawn():
    return f"(drawn with seed {_seed})"
