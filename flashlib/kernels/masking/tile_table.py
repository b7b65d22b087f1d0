"""Which tiles are computed under any mask: a kernel looks at each tile once, and a table lists those needed."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from flashlib import masks
from flashlib.kernels.launch.inputs import on_device_of
from flashlib.kernels.masking import device_side
from flashlib.kernels.masking.bounds import ComputedTiles
from flashlib.kernels.masking.device_side import MaskArgs, Masking, TileTable, Variant
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.score_tests import score_tests


def tiles_of_table(hide: Sequence[masks.Mask], sizes: PassSizes) -> ComputedTiles:
    """Return the tiles to compute, as lists: for each block the cut ones, then the whole ones.

    Raises ValueError if there are 2^31 tiles or more.
    """
    sizes = sizes.told_apart_by(hide)
    T_r, T_c = triton.cdiv(sizes.N_q, sizes.B_R), triton.cdiv(sizes.N_k, sizes.B_C)
    if sizes.B * sizes.H * T_r * T_c >= 2**31:  # of programs, on one axis of a grid
        raise ValueError(
            f"a table has fewer than 2^31 tiles, and {sizes.N_q} queries and {sizes.N_k} keys in tiles of "
            f"{sizes.B_R} x {sizes.B_C}, for {sizes.B} sequences and {sizes.H} heads that the mask tells apart, "
            "have more: pass larger B_r and B_c, or write the mask with only window, prefix or documents"
        )
    tests = score_tests(hide, sizes)
    kinds = torch.empty(sizes.B, sizes.H, T_r, T_c, dtype=torch.int8, device=sizes.device)
    with on_device_of(kinds):
        if kinds.numel():
            placed = any(tests.lines)
            code = Masking(tl.constexpr(False), Variant(None, tests.functions, ()), tl.constexpr(placed))
            args = MaskArgs(seen=tests.numbers, seen_at=tests.lines if placed else ())
            device_side.kinds[(kinds.numel(),)](
                kinds, args, sizes.N_q, sizes.N_k, sizes.H, MASK=code, B_R=sizes.B_R, B_C=sizes.B_C
            )
    if sizes.transposed:
        kinds = kinds.mT.contiguous()
    index = torch.argsort(kinds, dim=-1, stable=True).to(torch.int32)
    counts = torch.stack([(kinds == 0).sum(-1), (kinds < 2).sum(-1)], dim=-1).to(torch.int32)
    order = counts[..., 1].sum((0, 1)).argsort(descending=True, stable=True).to(torch.int32)
    blocks, most = kinds.shape[2:]
    strides = sizes.H * blocks if sizes.B > 1 else 0, blocks if sizes.H > 1 else 0
    return ComputedTiles(None, TileTable(counts, index, *strides, most), order)
