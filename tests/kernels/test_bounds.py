"""The last size that a kernel accepts, and the next one, which is refused before anything runs."""

import math

import pytest
import torch

from flashlib import kernels
from flashlib.kernels import append, backward, decode, forward, varlen
from flashlib.kernels.ladder import MAX_HEADS, r3_flash, r4_exp2
from flashlib.kernels.launch import inputs

LENGTHS = torch.zeros(1, dtype=torch.int32)
CU = torch.zeros(1, dtype=torch.int32)


def nothing(d, H=1):
    """Return a tensor without rows: a call that is accepted ends at once."""
    return torch.empty(1, H, 0, d)


def gradients(d):
    X = nothing(d)
    return backward.backward(X, X, X, X, torch.empty(1, 1, 0), X)


def rotated(columns):
    return append.rotate(nothing(16), LENGTHS, tuple(torch.zeros(2, 4, columns)))


D = {
    "forward": lambda d: forward.attention(*3 * [nothing(d)]),
    "backward": gradients,
    "attention": lambda d: kernels.attention(*3 * [nothing(d)]),
    "varlen": lambda d: varlen.attention(*3 * [torch.empty(0, 1, d)], CU[:0].new_zeros(1), CU[:0].new_zeros(1)),
    "decode": lambda d: decode.attention(nothing(d), *2 * [torch.empty(1, 1, 8, d)], LENGTHS),
    "append": lambda d: append.append(*2 * [nothing(d)], *2 * [torch.empty(1, 1, 8, d)], LENGTHS),
}
BOUNDS = {
    **{f"least d of {name}": (call, 16, 15) for name, call in D.items()},
    **{f"largest d of {name}": (call, 256, 257) for name, call in D.items()},
    "heads of a rung": (lambda H: r3_flash.attention(*3 * [nothing(16, H)]), MAX_HEADS, MAX_HEADS + 1),
    "tile of a rung": (lambda B: r4_exp2.attention(*3 * [nothing(16)], B_r=B), 256, 512),
    "warps of a rung": (lambda n: r4_exp2.attention(*3 * [nothing(16)], num_warps=n), 16, 32),
    "stages of a rung": (lambda n: r4_exp2.attention(*3 * [nothing(16)], num_stages=n), 1, 0),
    "fewest columns": (rotated, 1, 0),
    "most columns": (rotated, 8, 9),
    "least sink": (lambda x: inputs.sink_tensor(x, nothing(16)), -math.inf, math.nan),
    "largest sink": (lambda x: inputs.sink_tensor(x, nothing(16)), math.nextafter(1e38, 0), 1e38),
}


@pytest.mark.skipif(not kernels.INTERPRETED, reason="kernels are compiled here, and take no tensors on the CPU")
@pytest.mark.parametrize("name", BOUNDS)
def test_the_last_is_accepted_and_the_next_refused(name):
    takes, last, further = BOUNDS[name]
    takes(last)
    with pytest.raises(ValueError):
        takes(further)
