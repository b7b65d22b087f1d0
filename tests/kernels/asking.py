"""Access for tests to the parts of a kernel that are not kernels themselves."""

import torch
import triton
import triton.language as tl

from flashlib.kernels import DEVICE
from flashlib.kernels.decode_passes import Sequences, _parts

EVER = 2**30  # keys


def parts_of(N_k, B, parts, B_C) -> list[int]:
    """Return how many parts `decode` splits the keys of each of B sequences of N_k keys into."""
    own = torch.full((triton.next_power_of_2(B),), -1, dtype=torch.int32, device=DEVICE)
    _store[(1,)](own, B, N_k, EVER, parts, B_C, len(own))
    return own[:B].tolist()


@triton.jit
def _store(Own_ptr, B, N_k, left, parts, B_C: tl.constexpr, B_P: tl.constexpr):
    own, _ = _parts(Sequences(None, B, 1, N_k, 0, left, parts), B_C, B_P)
    tl.store(Own_ptr + tl.arange(0, B_P), own)
