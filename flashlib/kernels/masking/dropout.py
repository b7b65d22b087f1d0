"""Dropout in the kernels: Philox recomputes which weights are kept wherever they are needed; nothing is stored.

The random number of a weight follows from a seed and the weight's place: the position of its row, its key, head
and batch. Weights that are dropped take part in the softmax, so m, l and lse are those without dropout. Weights
that are kept are divided by 1 - p.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.kernels.launch.inputs import on_device_of

STEPS = 2**24  # how many numbers Philox draws from here, evenly from 0 to 1


class Dropout(NamedTuple):
    """The arguments of a kernel: a pointer to the seed, which is an int64, and numbers that are not constants.

    below: a weight is dropped if its number, from 0 to 2^24, is less than this. kept: the factor of weights that
    are kept.
    """

    seed: Any
    below: Any
    kept: Any


def dropout_of(p: float, seed: torch.Tensor) -> Dropout:
    """Return the Dropout of a probability."""
    return Dropout(seed, float(round(p * STEPS)), 1 / (1 - p))


@triton.jit
def factors(dropout, b, h, r, c):
    """Return the factors of weights, 0 or 1 / (1 - p), for r and c that broadcast to a tile."""
    row, key = r + 0 * c, c + 0 * r
    none = 0 * row
    seed = tl.load(dropout.seed)
    number, _, _, _ = tl.philox(seed, row, key, none + tl.cast(h, tl.int32), none + tl.cast(b, tl.int32))
    number = (number >> 8).to(tl.int32).to(tl.float32)
    return tl.where(number < dropout.below, 0.0, dropout.kept)


def kept(p: float, seed: torch.Tensor, b: int, H: int, r: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Return which weights of batch b kernels keep, (H, len(r), len(c)) of bool.

    seed: () of int64. r, c: positions of rows and keys, (n,) of int32, all on one device. For tests and for
    inspection: kernels call `factors`.
    """
    found = torch.empty((H, len(r), len(c)), dtype=torch.int8, device=r.device)
    if found.numel():
        sizes = triton.cdiv(len(r), TILE.value), triton.cdiv(len(c), TILE.value)
        with on_device_of(found):
            _kept[(H * sizes[0] * sizes[1],)](found, r, c, dropout_of(p, seed), b, len(r), len(c))
    return found.bool()


TILE = tl.constexpr(64)


@triton.jit(do_not_specialize=["b", "n_r", "n_c"])
def _kept(Kept_ptr, R_ptr, C_ptr, dropout, b, n_r, n_c):
    """Write which weights are kept; a program writes one tile of a head."""
    T_r, T_c = tl.cdiv(n_r, TILE), tl.cdiv(n_c, TILE)
    i, j, h = tl.program_id(0) // T_c % T_r, tl.program_id(0) % T_c, tl.program_id(0) // T_c // T_r
    rows, keys = i * TILE + tl.arange(0, TILE)[:, None], j * TILE + tl.arange(0, TILE)[None, :]
    r, c = tl.load(R_ptr + rows, mask=rows < n_r, other=0), tl.load(C_ptr + keys, mask=keys < n_c, other=0)
    kept = (factors(dropout, b, h, r, c) > 0).to(tl.int8)
    at = (h.to(tl.int64) * n_r + rows) * n_c + keys
    tl.store(Kept_ptr + at, kept, mask=(rows < n_r) & (keys < n_c))
