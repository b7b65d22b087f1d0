"""Helpers for pictures of recorded Steps: which step to show, and the tiles into which the steps cut S."""

from collections.abc import Sequence

import numpy as np

from flashlib.types import BackwardStep, Step

Tile = tuple[slice, slice, int | None]


def telling_step(steps: Sequence[Step]) -> int:
    """Return the index of an instructive step: some maximum grew, and about two thirds are done."""
    grew = [k for k, step in enumerate(steps) if grown(step).any()]
    wanted = 2 * len(steps) // 3
    return min(grew, key=lambda k: abs(k - wanted), default=wanted)


def grown(step: Step) -> np.ndarray:
    """Return which rows already had a maximum that grew."""
    return (step.m_old > -np.inf) & (step.m > step.m_old)


def tiles_of(
    steps: Sequence[Step | BackwardStep], N_q: int, N_k: int
) -> tuple[list[Tile], list[float], list[float]]:
    """Return each tile of S, (rows, columns, index of its step or None if skipped), and where to label i and j."""
    blocks_i = _blocks(N_q, ((s.i, s.rows) for s in steps))
    blocks_j = _blocks(N_k, ((s.j, s.cols) for s in steps))
    computed = {(s.i, s.j): k for k, s in enumerate(steps)}
    tiles = [
        (rows, cols, computed.get((i, j))) for i, rows in enumerate(blocks_i) for j, cols in enumerate(blocks_j)
    ]
    return tiles, _middles(blocks_i), _middles(blocks_j)


def _middles(blocks):
    return [(block.start + block.stop) / 2 for block in blocks]


def _blocks(N, seen):
    """Return the slices that cut N like the blocks in the steps, (index, slice); a single one without steps."""
    B = max((block.start // index if index else block.stop for index, block in seen), default=max(N, 1))
    return [slice(start, min(start + B, N)) for start in range(0, N, B)]
