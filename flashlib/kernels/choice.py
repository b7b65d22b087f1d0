"""Which kernels compute a call of `kernels.attention`: on a Hopper GPU its own, if they take it and are faster.

Both compute the same attention; sums are added in a different order, so the last bits differ. A Hopper kernel is
right for a call without a mask, except causal, on a Hopper GPU, with the shapes that it takes. Its backward pass
adds to dQ in any order, except at d = 256.
"""

import functools
import math
from typing import NamedTuple

import torch

from flashlib.kernels import forward
from flashlib.kernels.launch import tile_sizes, which_gpu
from flashlib.kernels.launch.inputs import check_attention
from flashlib.kernels.masking import prepare
from flashlib.masks import Mask

PORTABLE, HOPPER = "flashlib.kernels.{}", "flashlib.kernels.hopper.{}"


class Least(NamedTuple):
    """The smallest call in which the Hopper forward is faster. blocks: of rows, for each multiprocessor."""

    rows: int
    keys: int
    blocks: float = 0


FORWARD = {64: Least(128, 128, 0.5), 128: Least(16, 256), 256: Least(16, 64)}  # by d; see `bench.choice`
BLOCK = 128  # rows of a program, about
# The fewest rows and keys, by d and causal, for which eight bits and the pass that makes them are faster than 16
# bits; of those that `bench.fp8` times.
EIGHT_BITS = {
    (64, False): 4096, (64, True): 16384, (128, False): 4096, (128, True): 16384,
    (256, False): 4096, (256, True): 4096,
}  # fmt: skip


class Chosen(NamedTuple):
    """Names of the modules that compute the two passes of a call, and why the choice is such."""

    forward: str
    why_forward: str
    backward: str
    why_backward: str


def chosen(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: Mask | None = None,
    deterministic: bool = True, portable: bool = False, eight_bits: bool = False,
) -> Chosen:  # fmt: skip
    """Return which kernels `kernels.attention` uses for a call with these arguments, and why; nothing is computed.

    Arguments and errors: as in `kernels.attention`. Its scale and its sink do not matter. eight_bits: whether an
    error of some percent is allowed; `kernels.attention` itself always computes in the dtype of Q, but this names
    `flashlib.kernels.hopper.fp8` where its forward pass, which has no gradients, is faster.
    """
    mask = prepare.mask_of_call(mask)
    checked(Q, K, V, causal, mask)
    if eight_bits and not against_eight_bits(Q, K, V, causal, mask, portable):
        faster = "with the pass that makes eight bits it is faster than in 16"
        return Chosen(HOPPER.format("fp8"), faster, "none", "attention in eight bits has no gradients")
    found: list[str] = []
    for name, against in (
        ("forward", against_forward(Q, K, V, mask, portable)),
        ("backward", against_backward(Q, K, V, causal, mask, deterministic, portable)),
    ):
        found += (PORTABLE if against else HOPPER).format(name), against or "it takes the call, and is faster"
    return Chosen(*found)


def checked(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: Mask | None
) -> tuple[Mask | None, bool]:
    """Return (mask, causal) as kernels take them; raise TypeError or ValueError for what they do not take."""
    check_attention(Q, K, V, causal, head_dims=forward.HEAD_DIMS, grouped=True, differentiable=True, values=True)
    return prepare.checked_mask(mask, bool(causal), Q, K)


def against_forward(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask | None, portable: bool) -> str:
    """Return why the Hopper forward is not used for a call that was checked; "" if it is."""
    if reason := _against(mask, portable):
        return reason
    if reason := _launches()[0].why_not(Q, K, V):
        return reason
    (B, H, N_q, d), N_k = Q.shape, K.shape[2]
    least, blocks = FORWARD[d], -(-N_q // BLOCK) * B * H
    if N_q < least.rows or N_k < least.keys:
        return (
            f"there are {N_q} rows and {N_k} keys, and at d = {d} the Hopper kernel is faster from {least.rows} "
            f"rows and {least.keys} keys on"
        )
    if least.blocks and blocks < (few := math.ceil(least.blocks * tile_sizes.room(Q.device).multiprocessors)):
        return f"there are {blocks} blocks of rows, and at d = {d} the Hopper kernel is faster from {few} on"
    return ""


def against_eight_bits(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: Mask | None, portable: bool
) -> str:
    """Return why the Hopper forward in eight bits does not pay for a call that was checked; "" if it does."""
    if reason := _against(mask, portable) or _launches()[0].why_not(Q, K, V):
        return reason
    least, d = EIGHT_BITS[Q.shape[3], bool(causal)], Q.shape[3]
    if (N := min(Q.shape[2], K.shape[2])) < least:
        return f"there are {N} rows or keys, and at d = {d} eight bits are faster from {least} on"
    return ""


def against_backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: Mask | None, deterministic: bool,
    portable: bool,
) -> str:  # fmt: skip
    """Return why the Hopper backward is not used for a call that was checked; "" if it is."""
    if reason := _against(mask, portable):
        return reason
    if deterministic and Q.shape[-1] != 256:
        return "deterministic is True, and the Hopper kernel adds to dQ in any order"
    return _launches()[1].why_not(Q, K, V, causal)


def _against(mask, portable):
    if portable:
        return "portable is True"
    if not which_gpu.runs_gluon():
        return "the kernels are interpreted here, as there is no GPU"
    return "" if mask is None else "there is a mask other than causal, which the Hopper kernels do not take"


@functools.cache
def _launches():
    from flashlib.kernels.hopper import launch, launch_backward  # only here, as they import all of Gluon

    return launch, launch_backward
