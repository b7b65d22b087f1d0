"""The numbers prepared for kernels agree with the masks, for any sizes, tiles and batches, without attention."""

from functools import reduce
from itertools import product
from operator import and_

import numpy as np
import pytest
import torch

from flashlib import kernels, masks
from flashlib.kernels.masking import bits as kept_bits
from flashlib.kernels.masking import bounds, score_changes, score_tests, sparsity, tile_table
from flashlib.kernels.masking.pass_sizes import PassSizes

pytestmark = pytest.mark.skipif(not kernels.INTERPRETED, reason="small numbers, on the CPU")

B, H = 2, 3
PLACES = [(7, 5), (7, 65), (64, 32), (3, 65), (1, 1), (3, 0), (7, 5)]  # (N_q, N_k); the first comes again
IDS = np.random.default_rng(0).integers(0, 4, (B, 70)).cumsum(1)
INTERVALS = {  # of any sizes up to 70
    "none": lambda n: (),
    "windows": lambda n: (masks.window(3, 0), masks.window(None, 2)),
    "one side": lambda n: (masks.window(0, None),),
    "prefix": lambda n: (masks.prefix(4),),
    "documents": lambda n: (masks.documents(IDS[:1, :n][0]),),
    "of each sequence": lambda n: (masks.documents(IDS[:, :n]), masks.causal()),
    "of which nothing is left": lambda n: (masks.window(2, None), masks.prefix(1), masks.causal()),
}


def asked(N_q, N_k, B=B, H=H, **others):
    return PassSizes(B, H, N_q, N_k, 16, 16, torch.device("cpu"), **others)


def seen(hide, N_q, N_k, b=0, h=0):
    """Return which scores all of these masks let through according to their definition."""
    place, c = masks.Place(N_q, N_k, b, h), np.arange(N_k)[None]
    r = np.arange(N_q)[:, None] + place.past
    return np.broadcast_to(True, (N_q, N_k)) & np.all([part.sees(place, r, c) & (r == r) for part in hide], axis=0)


def bits(words, n):
    """Return the bits of words, the lowest first."""
    each = words.numpy().view(np.uint32)[..., None] >> np.arange(32, dtype=np.uint32) & 1
    return each.reshape(*words.shape[:-1], -1)[..., :n].astype(bool)


ASKING = {
    "nothing": lambda r, c: (r + c) % 3 > 0,
    "sequence and head": lambda b, h, r, c: (r + b * c + h) % 3 > 0,
}


@pytest.mark.parametrize("asking", ASKING)
def test_the_bits_of_a_mask_depend_on_its_sizes_and_not_on_earlier_ones(asking):
    mask = masks.from_function(ASKING[asking])
    for N_q, N_k in PLACES:
        words = kept_bits.mask_bits(mask, asked(N_q, N_k))
        assert words.shape[:2] == ((B, H) if "head" in asking else (1, 1)) and words.shape[3]
        assert words is kept_bits.mask_bits(mask, asked(N_q, N_k)), "they are kept"
        found = np.broadcast_to(bits(words, N_k), (B, H, N_q, N_k))
        for b, h in np.ndindex(B, H):
            assert (found[b, h] == seen([mask], N_q, N_k, b, h)).all(), (N_q, N_k, b, h)


def test_bits_are_kept_for_few_sizes_and_computed_in_parts_of_few_scores(monkeypatch):
    parts = []
    mask = masks.from_function(lambda r, c: (parts.append(len(r)), (r + c) % 3 > 0)[1])
    monkeypatch.setattr(kept_bits, "SCORES", 4 * 40)
    for N_q in range(1, 4 * kept_bits.KEPT_SIZES):
        assert (bits(kept_bits.mask_bits(mask, asked(N_q, 40)), 40) == seen([mask], N_q, 40)).all()
        assert len(kept_bits.KEPT_BITS[mask]) <= kept_bits.KEPT_SIZES
    parts.clear()
    kept_bits.mask_bits(mask, asked(1000, 40))
    assert max(parts) <= 4 and sum(parts) >= 1000


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "keys"])
@pytest.mark.parametrize("kind", INTERVALS)
def test_bounds_enclose_what_is_seen_and_are_never_reversed(kind, transposed):
    for (N_q, N_k), b in product(PLACES, range(B)):
        hide = INTERVALS[kind](N_k)
        first, end = bounds.common_keys(hide, masks.Place(N_q, N_k, b % bounds.batches_of(hide)))
        dense = seen(hide or (masks.Mask(),), N_q, N_k, b)
        if transposed:
            (first, end), dense = bounds.rows_of_keys(first, end, N_k), dense.T
        assert (first <= end).all()
        n = np.arange(dense.shape[1])
        inside = (n >= np.reshape(first, (-1, 1))) & (n < np.reshape(end, (-1, 1)))
        assert (inside == dense)[dense.any(1)].all() and not inside[~dense.any(1)].any()


@pytest.mark.parametrize("kind", INTERVALS)
def test_sparsity_is_the_mean_of_the_keys_of_a_row(kind):
    for N_q, N_k in PLACES:
        hide = INTERVALS[kind](N_k)
        mask = reduce(and_, hide) if hide else masks.Mask()
        each = [seen(hide or (masks.Mask(),), N_q, N_k, b) for b in range(bounds.batches_of(hide))]
        assert sparsity.sparsity_of(mask, False, N_q, N_k).keys == pytest.approx(np.mean(each) * N_k if N_k else 0)


@kernels.triton.jit
def _differ(b, h, r, c):
    return r != c


def test_sparsity_says_whether_torch_must_evaluate_the_mask():
    known, table = masks.causal(), masks.blocks(np.eye(3, dtype=bool), 4, 4)
    by_torch = masks.from_function(lambda r, c: r != c)
    by_kernel = masks.from_function(lambda r, c: r != c, kernel=_differ)
    for mask, asks in (
        (table, False),
        (table & by_kernel, False),
        (table & by_torch, True),
        (known | by_torch, True),
        (known & table, False),
    ):
        assert sparsity.sparsity_of(mask, False, 12, 12).bits is asks, mask


@pytest.mark.parametrize("sides", [(8, 16), (16, 8), (16, 16), (32, 16), (24, 48), (48, 24)], ids=str)
def test_a_table_of_blocks_suffices_only_if_no_tile_is_cut(sides):
    """Judged from the table: each block may differ from its neighbour."""
    mask = masks.blocks(np.indices((12, 12)).sum(0) % 2 > 0, *sides)
    dense = seen([mask], 96, 96).reshape(6, 16, 6, 16).swapaxes(1, 2).reshape(36, -1)
    whole = bool((dense.all(1) | ~dense.any(1)).all())
    assert score_tests.cuts_no_tile(mask, asked(96, 96)) is whole


@pytest.mark.parametrize("kind", INTERVALS)
def test_bounds_in_a_closed_form_are_those_of_each_row(kind):
    for N_q, N_k in PLACES:
        hide = INTERVALS[kind](N_k)
        if (closed := bounds.closed_form(hide)) is None:
            assert any(not isinstance(part, masks.Window) for part in hide)
            continue
        left, right, n = closed
        r, c = np.arange(N_q)[:, None] + N_k - N_q, np.arange(N_k)
        inside = (r - left <= c) & (c <= r + right) | (c < n)
        assert (inside == seen(hide or (masks.Mask(),), N_q, N_k)).all()


@pytest.mark.parametrize("asking", [*product(ASKING, [False, True])], ids=str)
def test_a_table_lists_for_each_block_the_tiles_of_which_something_is_seen(asking):
    """Read as in the kernel; the block with the most tiles begins first."""
    (asking, transposed), (N_q, N_k) = asking, (45, 70)
    mask = masks.from_function(
        lambda b, h, r, c: ASKING[asking](b, h, r, c) & ((r - 25) // 16 + h != c // 16) & (c < 64)
    )
    mask = mask if "head" in asking else masks.from_function(lambda r, c: (r // 16 != c // 16) & (c < 64))
    table, order = tile_table.tiles_of_table((mask,), asked(N_q, N_k, transposed=transposed))[1:]
    assert table[0].shape[:2] == ((B, H) if "head" in asking else (1, 1))
    tiles = np.zeros((B, H, 5 if transposed else 3))
    for b, h in np.ndindex(B, H):
        some = np.pad(seen([mask], N_q, N_k, b, h), ((0, 3), (0, 10))).reshape(3, 16, 5, 16).any((1, 3))
        some = some.T if transposed else some
        for block, expected in enumerate(some):
            at = b * table[2] + h * table[3] + block
            n = table[0].reshape(-1, 2)[at, 1].item()
            assert set(table[1].reshape(-1, table[4])[at, :n].tolist()) == set(np.flatnonzero(expected))
            tiles[b, h, block] = n
    assert (np.diff(tiles.sum((0, 1))[order.numpy()]) <= 0).all()


@pytest.mark.parametrize("size", [1e-45, 1e-30, 1.0, 1e30, 1e300])
def test_the_numbers_of_score_changes_are_finite_in_fp32(size):
    slopes, cap = masks.alibi([size, -size, 1.0]), masks.softcap(size)
    (each,), (c, inverse) = score_changes.score_changes([slopes, cap], asked(8, 8)).numbers
    assert (each * 2.0**20).isfinite().all(), "times a distance"
    assert all(0 < torch.tensor(x, dtype=torch.float32) < torch.inf for x in (c, inverse))
