"""The functions with which kernels test what is seen, as masks name them, and their numbers on the device."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

from flashlib import masks
from flashlib.kernels.masking import bits, device_side, looked_up
from flashlib.kernels.masking.device_side import Line, Lines
from flashlib.kernels.masking.pass_sizes import PassSizes


class ScoreTests(NamedTuple):
    """The functions that test which scores are seen, their numbers, and their Lines, see `MaskArgs`."""

    functions: tuple
    numbers: tuple
    lines: tuple


NO_TESTS = ScoreTests((), (), ())


def score_tests(hide: Iterable[masks.Mask], sizes: PassSizes) -> ScoreTests:
    """Return the functions for an intersection of masks, one for each."""
    each = [_score_test(part, sizes) for part in hide] or [(device_side.anywhere, None, None)]
    return ScoreTests(*zip(*each, strict=True))


def _score_test(part, sizes):
    test, blocks = part.device_test(sizes.place), part.block_table()
    if test is not None:
        return device_function(test.function), on_device(test.numbers, sizes.device), device_lines(test.lines)
    if blocks is not None:
        lines = torch.from_numpy(np.repeat(blocks.table, blocks.B_c, axis=1)[:, : sizes.N_k])
        words = bits.packed_bits(lines.to(sizes.device)[None, None])
        return *bits.bits_test(words, blocks.B_r, sizes), None
    return *bits.bits_test(bits.mask_bits(part, sizes), 1, sizes), None


def asked_by_torch(part: masks.Mask, place: masks.Place) -> bool:
    """Return whether no kernel can evaluate a mask."""
    return part.block_table() is None and part.device_test(place) is None


def cuts_no_tile(part: masks.Mask, sizes: PassSizes) -> bool:
    """Return whether a mask is known to cut no tile: the table of tiles then describes it completely."""
    blocks = part.block_table()
    return blocks is not None and not (blocks.B_r % sizes.B_R or blocks.B_c % sizes.B_C)


def device_function(f: str | Callable) -> Any:
    """Return the device function of this name, or the @triton.jit function that was passed."""
    if not isinstance(f, str):
        return f
    return getattr(device_side, f, None) or getattr(looked_up, f)


def on_device(numbers: tuple | None, device: torch.device) -> tuple | None:
    """Return numbers as kernels take them: arrays as tensors on the device."""
    if numbers is None:
        return None
    return tuple(torch.from_numpy(n).to(device) if isinstance(n, np.ndarray) else n for n in numbers)


def device_lines(lines: tuple | None) -> Lines | None:
    """Return the positions of a part's rows and keys in the whole, as kernels take them."""
    return None if lines is None else Lines(*(Line(*line) for line in lines))
