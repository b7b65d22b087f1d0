"""A pool of pages of which the last begin beyond 2^31 numbers: an offset in 32 bits does not reach them.

The pages before them are never touched, so the system does not provide memory for them.
"""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable

import numpy as np
import torch

from flashlib.checks.harness import far_memory
from flashlib.checks.harness.launches import unwrapped
from flashlib.checks.harness.watch import watched
from flashlib.kernels import INTERPRETED


def reached(
    answer: Callable, Q: np.ndarray, K: np.ndarray, V: np.ndarray, lengths: np.ndarray, table: np.ndarray,
    parts: int, near: tuple,
) -> bool | None:  # fmt: skip
    """Return whether an answer gives the same result, `near`, if the pages are far out in K and V, of 16 bits.

    Loads from outside of all tensors give 0. Returns True if kernels are compiled: then such a pool would need
    real memory. Returns None if the memory is refused.
    """
    if not INTERPRETED:
        return True
    of_page = K[0].size
    first = far_memory.REACH // of_page
    memory = far_memory.requested((first + 2 * len(K)) * of_page)
    if memory is None:
        return None
    pools = []
    for n, X in enumerate((K, V)):  # next to each other at the end of one block of memory
        pool = memory[n * X.size :][: first * of_page + X.size].view(first + len(X), *X.shape[1:])
        pool[first:] = torch.from_numpy(np.ascontiguousarray(X))
        pools.append(pool)
    small = [torch.from_numpy(np.ascontiguousarray(X)) for X in (Q, lengths, table + np.int32(first))]
    try:
        with watched(Q=small[0], lengths=small[1], table=small[2]):
            given = unwrapped(answer, small[0], *pools, *small[1:], parts)
        return all(np.array_equal(x.numpy(), y, equal_nan=True) for x, y in zip(given, near, strict=True))
    except Exception:  # of any kind: the same call was right with the pages near
        return False
