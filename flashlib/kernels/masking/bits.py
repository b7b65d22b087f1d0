"""Masks as a bit for each score: torch computes once what a kernel cannot, and the bits are kept with the mask."""

import weakref

import torch
import triton
from triton import KernelInterface

from flashlib import masks
from flashlib.kernels.masking import device_side
from flashlib.kernels.masking.pass_sizes import PassSizes

ROWS = 1024  # the most rows of scores that torch computes at a time
SCORES = 2**26  # and the most scores: each takes 8 bytes or more meanwhile
KEPT_BITS = weakref.WeakKeyDictionary()  # {mask: {sizes: its bits}}
KEPT_SIZES = 16  # for which the bits of a mask are kept


def mask_bits(mask: masks.Mask, sizes: PassSizes) -> torch.Tensor:
    """Return which scores a mask lets through, a bit each: (B or 1, H or 1, N_q, ceil(N_k / 32)) of int32.

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
    for start in range(0, max(N_q, 1), rows):  # one part even if there are no rows
        r = torch.arange(start, min(start + rows, N_q), device=device)[:, None] + place.past
        sees = mask.sees(place, r, c)
        lines.append(packed_bits(sees.reshape(*(1,) * (4 - sees.ndim), *sees.shape)))
    return torch.cat(lines, dim=2)


def packed_bits(sees: torch.Tensor) -> torch.Tensor:
    """Return booleans (..., n) packed into words of int32, 32 each, at least one; the first is the lowest bit."""
    n = sees.shape[-1]
    powers = (2 ** torch.arange(8, device=sees.device)).to(torch.uint8)
    sees = torch.nn.functional.pad(sees, (0, max(-n % 32, 32 - n))).unflatten(-1, (-1, 8))
    return (sees * powers).sum(-1, dtype=torch.uint8).view(torch.int32)


def bits_test(words: torch.Tensor, rows: int, sizes: PassSizes) -> tuple[KernelInterface, tuple]:
    """Return the function of a mask that is kept in words, and its numbers. rows: how many share a line."""
    strides = (0 if n == 1 else stride for n, stride in zip(words.shape[:2], words.stride(), strict=False))
    return device_side.in_bits, (words, *strides, words.stride(2), rows, sizes.N_q, sizes.N_k)
