"""The scenarios of ServeLab: which requests arrive, and when."""

from functools import cache
from typing import NamedTuple

import numpy as np

VOCAB = 32  # of the model that serves them


class Coming(NamedTuple):
    """A request: the step before which it arrives, and the lengths of its prompt and its answer in tokens.

    same: the length of the prefix that all prompts of the scenario share.
    """

    arrives: int
    prompt: int
    answer: int
    same: int = 0


SCENARIOS = {
    "short and long answers": [
        *(Coming(0, 5, 17), Coming(0, 6, 2), Coming(0, 4, 3), Coming(0, 7, 8)),
        *(Coming(1, 5, 2), Coming(2, 6, 14), Coming(3, 4, 5), Coming(5, 8, 3)),
    ],
    "all alike": [Coming(k // 4, 6, 6) for k in range(8)],
    "one long prompt": [
        *(Coming(0, 4, 12), Coming(0, 5, 10), Coming(2, 30, 3)),
        *(Coming(3, 5, 6), Coming(4, 4, 5), Coming(6, 6, 4)),
    ],
    "too few pages": [
        *(Coming(0, 9, 19), Coming(0, 7, 14), Coming(0, 10, 12), Coming(0, 8, 10)),
        *(Coming(3, 6, 6), Coming(8, 7, 4)),
    ],
    "the same beginning": [Coming(4 * k, 22 + k % 3, 5 + k % 2, same=18) for k in range(6)],
}


@cache
def prompts(scenario: str) -> list[list[int]]:
    """Return the prompts of a scenario's requests, the same every time."""
    rng = np.random.default_rng(15)
    beginning = rng.integers(VOCAB, size=max(one.prompt for one in SCENARIOS[scenario])).tolist()
    return [
        beginning[: one.same] + rng.integers(VOCAB, size=one.prompt - one.same).tolist()
        for one in SCENARIOS[scenario]
    ]


def least_pages(page: int) -> int:
    """Return how many pages the longest request of any scenario needs."""
    longest = max(one.prompt + one.answer - 1 for requests in SCENARIOS.values() for one in requests)
    return -(-longest // page)
