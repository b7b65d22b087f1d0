"""Kernels of a part of the keys, and of a new row of a page, whose rows begin beyond 2^31 numbers of fp32.

An offset in 32 bits does not reach them. The rows before them are never touched, so the system does not provide
memory for them.
"""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable
from typing import Any

import torch

from flashlib.checks.harness import far_memory
from flashlib.checks.harness.launches import unwrapped
from flashlib.checks.harness.parts_inference import launch_append, launch_part
from flashlib.checks.harness.watch import watched
from flashlib.kernels import INTERPRETED

HEADS, d, TILE = 17, 16, 16
ROOM = far_memory.REACH // (HEADS - 1) // d  # rows of a head: the last head begins where the offsets end
PAGE, N_PAGES = 4, 3  # rows of a page, and pages beyond the end of the offsets


def part_reached(kernel: Any) -> bool | None:
    """Return whether a kernel for a part of the keys finds the last of many heads, and of many sequences.

    Its State must be the same as with heads that are next to each other. Loads from outside of all tensors give 0.
    Returns True if kernels are compiled: then such a cache would need real memory. Returns None if the memory is
    refused.
    """
    if not INTERPRETED:
        return True
    memory = far_memory.requested((HEADS * ROOM + TILE) * d, torch.float32)
    if memory is None:
        return None
    return all(_same_states(kernel, memory, B, H_k) for B, H_k in ((HEADS, 1), (1, HEADS)))


def _same_states(kernel, memory, B, H_k):
    numbers = torch.arange(3 * HEADS * TILE * d) % 37 / 16 - 1
    Q, K, V = numbers.view(3, B, H_k, TILE, d)
    Q, lengths = Q[:, :, 0].contiguous(), torch.full((B,), TILE, dtype=torch.int32)
    far = []
    for n, X in enumerate((K, V)):  # one block of memory for both: V begins one tile after K
        cache = memory[n * TILE * d :][: HEADS * ROOM * d].view(B, H_k, ROOM, d)
        cache[:, :, :TILE] = X
        far.append(cache)

    def states(K, V):
        m, l, O_acc = (torch.zeros(B, H_k, 1, n) for n in (1, 1, d))
        with watched(Q=Q, lengths=lengths, m=m, l=l, O_acc=O_acc):
            unwrapped(launch_part, kernel, Q, K, V, lengths, 1, 0.25, TILE, m, l, O_acc)
        return m, l, O_acc

    return _same(lambda: states(*far), states(K, V))


def row_reached(kernel: Any) -> bool | None:
    """Return whether a kernel that writes new rows finds a page that far out. Returns True and None as above."""
    if not INTERPRETED:
        return True
    of_page = PAGE * d
    first = far_memory.REACH // of_page
    memory = far_memory.requested((first + N_PAGES) * of_page, torch.float32)
    if memory is None:
        return None
    new = torch.arange(2 * d).view(2, d) / 8
    table, lengths = torch.tensor([[1, 2], [0, 0]], dtype=torch.int32), torch.tensor([6, 2], dtype=torch.int32)

    def written(pool, table):
        pool[-N_PAGES:] = -1
        with watched(new=new, table=table, lengths=lengths):
            unwrapped(launch_append, kernel, new, pool, table, lengths)
        return (pool[-N_PAGES:],)

    far = memory.view(first + N_PAGES, PAGE, d)
    return _same(lambda: written(far, table + first), written(torch.empty(N_PAGES, PAGE, d), table))


def _same(far: Callable[[], tuple], near: tuple) -> bool:
    try:
        return all(torch.equal(x, y) for x, y in zip(far(), near, strict=True))
    except Exception:  # of any kind: the same call was right near by
        return False
