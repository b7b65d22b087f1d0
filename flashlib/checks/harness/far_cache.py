"""A cache whose last heads begin beyond 2^31 numbers: an offset in 32 bits does not reach them.

Each head has room for far more keys than there are. That room is never touched, so the system does not provide
memory for it.
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
    answer: Callable, Q: np.ndarray, K: np.ndarray, V: np.ndarray, lengths: np.ndarray, parts: int, near: tuple
) -> bool | None:
    """Return whether an answer gives the same result, `near`, if the last head is far out in K and V, of 16 bits.

    Loads from outside of all tensors give 0. Returns True if kernels are compiled: then such a cache would need
    real memory. Returns None if the memory is refused.
    """
    if not INTERPRETED:
        return True
    B, H_k, N, d = K.shape
    room = max(2 * N, -(-far_memory.REACH // ((B * H_k - 1) * d)))
    memory = far_memory.requested((B * H_k * room + N) * d)
    if memory is None:
        return None
    caches = []
    for begin, X in ((0, K), (N * d, V)):  # V in the room of K
        cache = memory[begin:][: B * H_k * room * d].view(B, H_k, room, d)
        cache[:, :, :N] = torch.from_numpy(np.ascontiguousarray(X))
        caches.append(cache)
    small = [torch.from_numpy(np.ascontiguousarray(X)) for X in (Q, lengths)]
    try:
        with watched(Q=small[0], lengths=small[1]):
            given = unwrapped(answer, small[0], *caches, small[1], parts)
        return all(np.array_equal(x.numpy(), y, equal_nan=True) for x, y in zip(given, near, strict=True))
    except Exception:  # of any kind: the same call was right with the heads near
        return False
