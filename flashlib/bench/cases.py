"""The variants that `flashlib.bench.variants` times, in the form that each competitor expects."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from flashlib import masks

CAP, SINK = 50.0, 0.5
BLOCK = 128


class VariantCase(NamedTuple):
    """One variant, in the form that each of the three expects.

    mask(N, H): our mask. flex_mask(N, H, device), flex_score(N, H, device): FlexAttention's functions; the
    second may be None. numbers(N, H, device): what SDPA adds to scores; None if it cannot.
    """

    name: str
    mask: Callable
    flex_mask: Callable
    flex_score: Callable | None = None
    numbers: Callable | None = None
    with_sink: bool = False


def lengths(N: int) -> np.ndarray:
    """Return the lengths of documents that fill N tokens: log-normal with mean 1000, the last one cut off."""
    rng = np.random.default_rng(N)
    sigma = 1.0
    drawn = np.maximum(rng.lognormal(math.log(1000) - sigma**2 / 2, sigma, size=N), 1).astype(int)
    ends = np.minimum(np.cumsum(drawn), N)
    ends = ends[: np.searchsorted(ends, N) + 1]
    return np.diff(ends, prepend=0)


def ids(N: int) -> np.ndarray:
    return np.repeat(np.arange(len(lengths(N))), lengths(N))


def table(N: int, share: float) -> np.ndarray:
    """Return a random table of blocks, in which this share of the blocks is seen, and all on the diagonal."""
    T = N // BLOCK
    return (np.random.default_rng(N).random((T, T)) < share) | np.eye(T, dtype=bool)


def window(W: int) -> VariantCase:
    def mask(N, H=None):
        return masks.window(W - 1, 0)

    def flex(N, H, device):
        return lambda b, h, q, k: (q >= k) & (q - k < W)

    return VariantCase(f"window {W}", mask, flex, numbers=numbers_of(mask))


def numbers_of(mask: Callable[..., masks.Mask]) -> Callable:
    """Return a function that makes SDPA's additive mask from a mask: 0 where a score is seen, -inf elsewhere."""

    def numbers(N, H, device):
        r, c = torch.arange(N, device=device)[:, None], torch.arange(N, device=device)
        hidden = ~mask(N).sees(masks.Place(N, N), r, c)
        return torch.zeros(N, N, dtype=torch.bfloat16, device=device).masked_fill_(hidden, -math.inf)

    return numbers


def causal(N: int, H: int, device: torch.device | str) -> Callable:
    return lambda b, h, q, k: q >= k


def _documents(N, H, device):
    document = torch.from_numpy(ids(N)).to(device)
    return lambda b, h, q, k: document[q] == document[k]


def _blocks(share):
    def flex(N, H, device):
        allowed = torch.from_numpy(table(N, share)).to(device)
        return lambda b, h, q, k: allowed[q // BLOCK, k // BLOCK]

    def mask(N, H=None):
        return masks.blocks(table(N, share), BLOCK, BLOCK)

    return VariantCase(f"{share:.0%} of blocks", mask, flex, numbers=numbers_of(mask))


def _alibi(N, H, device):
    slopes = torch.from_numpy(masks.alibi_slopes(H)).float().to(device)
    return lambda score, b, h, q, k: score - slopes[h] * (q - k).abs()


def _alibi_numbers(N, H, device):
    distance = torch.arange(N, device=device)[:, None] - torch.arange(N, device=device)
    slopes = torch.from_numpy(masks.alibi_slopes(H)).to(device, torch.bfloat16)
    bias = -slopes[:, None, None] * distance.abs().to(torch.bfloat16)
    return bias.masked_fill_(distance < 0, -math.inf)


def _softcap(N, H, device):
    return lambda score, b, h, q, k: CAP * torch.tanh(score / CAP)


def _every_fourth(N, H=None):
    """Return a mask without intervals and without whole tiles, given as a table of scores."""
    r, c = np.ogrid[:N, :N]
    return masks.dense((c <= r) & ((r - c) % 4 == 0))


def _flex_every_fourth(N, H, device):
    return lambda b, h, q, k: (q >= k) & ((q - k) % 4 == 0)


def _prefix(N, H, device):
    return lambda b, h, q, k: (q >= k) | (k < N // 4)


CASES = [
    *map(window, (256, 1024, 4096)),
    VariantCase(
        "documents",
        lambda N, H: masks.documents(ids(N)),
        _documents,
        numbers=numbers_of(lambda N: masks.documents(ids(N))),
    ),
    VariantCase(
        "prefix", lambda N, H: masks.prefix(N // 4), _prefix, numbers=numbers_of(lambda N: masks.prefix(N // 4))
    ),
    VariantCase(
        "causal ALiBi",
        lambda N, H: masks.causal() & masks.alibi(masks.alibi_slopes(H)),
        causal,
        _alibi,
        _alibi_numbers,
    ),
    VariantCase("causal soft cap", lambda N, H: masks.causal() & masks.softcap(CAP), causal, _softcap),
    VariantCase("causal sink", lambda N, H: masks.causal(), causal, with_sink=True),
    *map(_blocks, (0.1, 0.25, 0.5)),
    VariantCase("every 4th key", _every_fourth, _flex_every_fourth, numbers=numbers_of(_every_fourth)),
]


def named(name: str) -> VariantCase:
    return next(case for case in CASES if case.name == name)
