"""How much a mask hides, as far as that is known without evaluating each score: tile sizes depend on it."""

import numpy as np

from flashlib import masks
from flashlib.kernels.launch import tile_sizes
from flashlib.kernels.masking.bounds import batches_of, common_keys
from flashlib.kernels.masking.score_tests import asked_by_torch


def sparsity_of(mask: masks.Mask | None, causal: bool, N_q: int, N_k: int) -> tile_sizes.Sparsity:
    """Return the sparsity that tile sizes depend on; dense if rows do not see intervals.

    keys is 0 if the mask is known to hide everything.
    """
    if mask is None:
        return tile_sizes.DENSE
    hide = [part for part in masks.combined(mask, causal).conjuncts() if part.hides_scores()]
    return _sparsity(hide, N_q, N_k)._replace(biased=mask.biased)


def _sparsity(hide, N_q, N_k):
    places = [masks.Place(N_q, N_k, b) for b in range(batches_of(hide))]
    if N_q and any(all(_hides_all(part, place) for place in places) for part in hide):
        return tile_sizes.Sparsity(keys=0)
    each = [common_keys(hide, place) for place in places]
    if each[0] is None:
        sides = tuple((blocks.B_r, blocks.B_c) for part in hide if (blocks := part.block_table()))
        return tile_sizes.Sparsity(sides=sides, bits=any(asked_by_torch(part, places[0]) for part in hide))
    return tile_sizes.Sparsity(float(np.mean([end - first for first, end in each]))) if N_q else tile_sizes.DENSE


def _hides_all(part, place):
    """Return whether a mask by itself is known to hide everything."""
    if (blocks := part.block_table()) is not None:
        return not blocks.table.any()
    keys = part.keys(place)
    return keys is not None and bool((keys[0] == keys[1]).all())


def hides_all(mask: masks.Mask | None, causal: bool, N_q: int, N_k: int) -> bool:
    """Return whether it is known, without evaluating each score, that no score is seen."""
    return sparsity_of(mask, causal, N_q, N_k).keys == 0
