"""A learner's `my_decode` next to ours and PyTorch's attention, for `bench.mine`: compiled, or timed on a GPU.

A step is timed as in `bench.decode`: 32 heads of Q, 8 of K and V, d = 128, bf16, in CUDA graphs that go through
several caches, so that none of them is in the L2 cache.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from flashlib.bench.decode import DecodeProblem

PAGE = 64
SIZES = (1, 8192), (1, 32768), (8, 8192), (8, 32768)  # sequences, keys of each
DS = 64, 128
PEERS = "yours", "ours", "sdpa"


def my_ours(
    Q: "torch.Tensor", K: "torch.Tensor", V: "torch.Tensor", lengths: "torch.Tensor", table: "torch.Tensor",
    parts: int,
) -> "tuple[torch.Tensor, torch.Tensor]":  # fmt: skip
    """Return O and lse of `kernels.decode`, called like a learner's function."""
    from flashlib.kernels import decode

    O, lse = decode.attention(Q[:, :, None], K, V, lengths, table, parts=parts * len(Q))
    return O[:, :, 0], lse[:, :, 0]


def reports(answer: Callable, capability: int) -> list[tuple[str, list, list]]:
    """Return for each d what the compiler makes of yours and of ours: a description, and two lists of Compiled."""
    from flashlib.kernels.compiler import learner_kernels

    def compiled(call, d):
        return learner_kernels.reports(call, "decode", d=d, capability=capability)

    return [(f"d = {d}", compiled(answer, d), compiled(my_ours, d)) for d in DS]


def times(answer: Callable, cold: int | None = None, device: str = "cuda") -> list[tuple[str, dict[str, float]]]:
    """Return for each size its description and the microseconds of a step for each peer that is correct."""
    from flashlib.bench import decode

    found = []
    for B, N in SIZES:
        sizes = [decode.DecodeSize(B, *decode.GQA, N, page) for page in (PAGE, 0)]
        paged, plain = (
            decode.DecodeProblem(size, device, decode.COLD if cold is None else cold) for size in sizes
        )
        us = {}
        for name, problem, attention in (
            ("yours", paged, _called(answer, decode.parts_of(paged))),
            ("ours", paged, decode.ours),
            ("sdpa", plain, decode.sdpa),
        ):
            us |= _measured(name, problem, attention)
        found.append((f"B = {B}, N = {N}", us))
    return found


def _measured(name: str, problem: "DecodeProblem", attention: Callable) -> dict[str, float]:
    """Return {name: microseconds}, or {} with the reason printed, if it is wrong or cannot be in a CUDA graph."""
    from flashlib.bench import decode
    from flashlib.bench.common import harness

    us: dict[str, float] = {}

    def check():
        problem.verify(name, attention)
        us.update(decode.graph_us(problem, {name: attention}))

    harness.works(name, check, needed=name == "ours")
    return us


def _called(answer: Callable, parts: int) -> Callable:
    """Return a learner's function in the form that `bench.decode` calls."""

    def yours(Q, K, V, lengths, table):
        result = answer(Q[:, :, 0], K, V, lengths, table, parts)
        O = result[0] if isinstance(result, tuple | list) else result
        return O[:, :, None]

    return yours
