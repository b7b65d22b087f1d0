"""Masks as a bit for each score: torch asks once what no kernel can ask, and the bits are kept with the mask."""

import weakref

import torch
import triton
from triton import KernelInterface

from flashlib import masks
from flashlib.kernels.masking import device_side
from flashlib.kernels.masking.pass_sizes import PassSizes

ROWS = 1024  # of scores that torch computes at a time, at most
SCORES = 2**26  # and scores in all: each takes 8 bytes and more meanwhile
KEPT_BITS = weakref.WeakKeyDictionary()  # {mask: {sizes: its bits}}
KEPT_SIZES = 16  # for which the bits of a mask are kept


def mask_bits(mask: masks.Mask, sizes: PassSizes) -> torch.Tensor:
    """Return which scores a mask sees, a bit each: (B or 1, H or 1, N_q, ceil(N_k / 32)) of int32.

    They are kept with the mask, for all passes and tiles. Raises ValueError if a head takes 2^31 words.
    """
    sizes = sizes.told_apart_by([mask])
    key, kept = (*sizes[:4], sizes.device), KEPT_BITS.setdefault(mask, {})
    if key not in kept:
        if len(kept) >= KEPT_SIZES:
            kept.clear()
        kept[key] = _asked_bits(mask, sizes)
    return kept[key]


def _asked_bits(mask, sizes):
    device, (B, H, N_q, N_k) = sizes.device, sizes[:4]
    if N_q * triton.cdiv(N_k, 32) >= 2**31:
        raise ValueError(
            f"the mask is kept as bits, and {N_q} queries and {N_k} keys have more than 2^36 scores: write it "
            "with window, prefix, documents or blocks, or pass from_function a kernel"
        )
    b, h = torch.arange(B, device=device)[:, None, None, None], torch.arange(H, device=device)[:, None, None]
    place, c = sizes.place._replace(b=b, h=h), torch.arange(N_k, device=device)
    rows = max(1, min(ROWS, SCORES // max(B * H * N_k, 1)))
    lines = []
    for start in range(0, max(N_q, 1), rows):  # one part, if there are no rows, too
        r = torch.arange(start, min(start + rows, N_q), device=device)[:, None] + place.past
        sees = mask.sees(place, r, c)
        lines.append(packed_bits(sees.reshape(*(1,) * (4 - sees.ndim), *sees.shape)))
    return torch.cat(lines, dim=2)


def packed_bits(sees: torch.Tensor) -> torch.Tensor:
    """Return booleans (..., n) as words of int32, at least one, each of 32; the first is in the lowest bit."""
    n = sees.shape[-1]
    powers = (2 ** torch.arange(8, device=sees.device)).to(torch.uint8)
    sees = torch.nn.functional.pad(sees, (0, max(-n % 32, 32 - n))).unflatten(-1, (-1, 8))
    return (sees * powers).sum(-1, dtype=torch.uint8).view(torch.int32)


def bits_test(words: torch.Tensor, rows: int, sizes: PassSizes) -> tuple[KernelInterface, tuple]:
    """Return the function of a mask that is kept in words, and its numbers; rows: how many share a line."""
    strides = (0 if n == 1 else stride for n, stride in zip(words.shape[:2], words.stride(), strict=False))
    return device_side.in_bits, (words, *strides, words.stride(2), rows, sizes.N_q, sizes.N_k)
