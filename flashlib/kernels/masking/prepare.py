"""Prepares a mask for the kernels: what a call does with it before any pass, and what each pass gets.

If every row sees an interval of keys, bounds decide which tiles are computed. For other masks a table lists the
tiles, in 4 bytes each, and functions decide which scores of a cut tile are seen. What no kernel can evaluate (a
union, a table of scores, a function without a kernel) torch evaluates once for each score, and keeps as a bit.
"""

import torch
import triton.language as tl

from flashlib import masks
from flashlib.kernels.masking import biases
from flashlib.kernels.masking.bounds import bounded_tiles
from flashlib.kernels.masking.device_side import MaskArgs, Masking, Variant
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.score_changes import check_changes, score_changes
from flashlib.kernels.masking.score_tests import NO_TESTS, cuts_no_tile, score_tests
from flashlib.kernels.masking.tile_table import tiles_of_table


def mask_of_call(mask: masks.Mask | None) -> masks.Mask | None:
    """Return the mask for one call; one that may have changed keeps nothing from earlier calls.

    None for a plain Mask, which many parts have. Anything but a mask is returned as it is, to be refused later.
    """
    if not isinstance(mask, masks.Mask) or torch.compiler.is_compiling():
        return mask
    return masks.in_one_call(mask) if mask.conjuncts() else None


def checked_mask(
    mask: masks.Mask | None, causal: bool, Q: torch.Tensor, K: torch.Tensor
) -> tuple[masks.Mask | None, bool]:
    """Return (mask, causal) as kernels take them: None for a mask that hides no more than causal does.

    Raises TypeError or ValueError unless kernels take the mask for these tensors.
    """
    if mask is None:
        return None, causal
    B, H, N_q = Q.shape[:3]
    hide, change = hiding_and_changing(masks.fitted(mask, causal, B, H, N_q, K.shape[2]))
    if not change and all(part == masks.causal() for part in hide):
        return None, bool(hide)
    place = masks.Place(N_q, K.shape[2])
    check_changes(change, place, H)
    biases.check(change, Q, place)
    return mask, causal


def hiding_and_changing(mask: masks.Mask) -> tuple[tuple[masks.Mask, ...], tuple[masks.Mask, ...]]:
    """Return the masks of an intersection that hide scores, and those that change them, in their order."""
    parts = mask.conjuncts()
    return tuple(p for p in parts if p.hides_scores()), tuple(p for p in parts if p.changes_scores)


def prepared_mask(mask: masks.Mask | None, causal: bool, sizes: PassSizes) -> tuple[MaskArgs | None, Masking]:
    """Return the MaskArgs and the Masking of a mask from `checked_mask`, see `device_side`."""
    if mask is None:
        return None, Masking(tl.constexpr(causal))
    hide, change = hiding_and_changing(masks.combined(mask, causal))
    changes, tests = score_changes(change, sizes), NO_TESTS
    computed = bounded_tiles(hide, sizes)
    if computed is None:
        computed = tiles_of_table(hide, sizes)
        tests = score_tests([part for part in hide if not cuts_no_tile(part, sizes)], sizes)
    args = MaskArgs(computed.order, computed.numbers, tests.numbers, changes.numbers)
    placed = any((*tests.lines, *changes.lines))
    if placed:
        args = args._replace(seen_at=tests.lines, scores_at=changes.lines)
    variant = Variant(computed.function, tests.functions, changes.functions)
    return args, Masking(tl.constexpr(False), variant, tl.constexpr(placed))
