"""Heads of K and V of which the last begins beyond 2^31 numbers: an offset in 32 bits does not reach it.

Each head has a million keys, but only those of its first tile are ever touched, so the system does not provide
memory for the others.
"""

# ruff: noqa: I001  flashlib.kernels before triton
from collections.abc import Callable

import numpy as np
import torch

from flashlib.checks.harness import far_memory
from flashlib.checks.harness.launches import unwrapped
from flashlib.checks.harness.watch import watched
from flashlib.kernels import DEVICE, INTERPRETED

HEADS, d, TILE = 17, 128, 16  # the last head begins where the offsets end
N_K = far_memory.REACH // (HEADS - 1) // d


def reached(attended: Callable) -> bool | None:
    """Return whether a kernel over a table of tiles finds the last of many long heads.

    attended: takes tensors Q, K, V of (1, HEADS, N, d), and a table of whole and cut tiles of TILE x TILE: the
    first tile of keys is whole, all others are hidden. Its result must be the same as with heads that are next to
    each other. Loads from outside of all tensors give 0. Returns True if kernels are compiled: then such tensors
    would need real memory. Returns None if the memory is refused.
    """
    if not INTERPRETED:
        return True
    numbers = np.random.default_rng(0).integers(-24, 25, (3, 1, HEADS, TILE, d)) / 16
    Q, K, V = (torch.from_numpy(X).half() for X in numbers)
    Q = Q[:, :, :1].contiguous()
    memory = far_memory.requested(HEADS * N_K * d + TILE * d)
    if memory is None:
        return None
    far = []
    for n, X in enumerate((K, V)):  # one block of memory for both: V begins one tile after K
        heads = memory[n * TILE * d :][: HEADS * N_K * d].view(1, HEADS, N_K, d)
        heads[:, :, :TILE] = X
        far.append(heads)
    near = unwrapped(attended, Q, K, V, _table(1))
    try:
        with watched(Q=Q):
            given = unwrapped(attended, Q, *far, _table(N_K // TILE))
        return all(torch.equal(x, y) for x, y in zip(given, near, strict=True))
    except Exception:  # of any kind: the same call was right with heads next to each other
        return False


def _table(T_c):
    """Return n_whole, whole, n_cut and cut of one row block: the first of T_c tiles is whole."""
    whole, cut = torch.full((2, 1, T_c), -1, dtype=torch.int32, device=DEVICE)
    whole[0, 0] = 0
    counts = torch.tensor([[1], [0]], dtype=torch.int32, device=DEVICE)
    return counts[0], whole, counts[1], cut
