"""Ulysses and a ring combined: groups of ranks exchange heads for rows, and one rank of each group forms a ring.

The ranks of a group, best those with the fastest links, each hold one piece of what one rank of a ring would. So
more ranks than heads can share a sequence, with fewer hops than in a ring of all ranks.

Source: Fang and Zhao, USP: A Unified Sequence Parallelism Approach (2024).
"""

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from flashlib.masks import Mask
from flashlib.ring.distributed import call as calls
from flashlib.ring.distributed import ulysses
from flashlib.ring.distributed.axes import axis_of
from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, group: Any, layout: str = "zigzag",
    causal: bool = False, mask: Mask | None = None, scale: float | None = None, local: ModuleType | None = None,
    link: Callable | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of this rank's rows, over the keys of all ranks.

    group: a DeviceMesh of two axes, the ring and the heads, or (ring, heads), this rank's two groups. Of P ranks
    in groups of `size`, rank r is member r % size of group r // size, and holds what `training.split` gives it
    with heads=size. Everything else is as in `ring.attention`. Raises ValueError if the two groups are swapped.
    """
    ring, heads = _axes(group)
    return calls.attend(WAY, (ring, heads), Q, K, V, layout, causal, mask, scale, local, link)


def _axes(group):
    if hasattr(group, "get_group"):
        if group.ndim != 2:
            raise ValueError(
                f"group is a DeviceMesh of {group.ndim} axes; pass one of two: the ring, and the heads"
            )
        group = group.get_group(0), group.get_group(1)
    if not isinstance(group, tuple) or len(group) != 2:
        raise TypeError(f"group is {group!r:.60}; pass a DeviceMesh of two axes, or two groups, (ring, heads)")
    ring, heads = axis_of(group[0], "the ring"), axis_of(group[1], "the group of heads")
    between = [_step(axis) for axis in (ring, heads)]
    if ring.size > 1 and between[1] == ring.size * between[0]:
        raise ValueError(
            f"group is (ring, heads) with ring = ranks {_ranks(ring)} and heads = ranks {_ranks(heads)}; ranks "
            "that follow each other share heads, so this looks like (heads, ring): swap the two"
        )
    return ring, heads


def _step(axis):
    """Return the distance between neighbouring ranks of an axis, or 0 if it varies."""
    steps = {b - a for a, b in itertools.pairwise(_ranks(axis))}
    return steps.pop() if len(steps) == 1 else 0


def _ranks(axis):
    return dist.get_process_group_ranks(axis.group)


WAY = calls.Way("two_d.attention", ulysses.forward, ulysses.backward, calls.of_ring, in_pieces=True)
