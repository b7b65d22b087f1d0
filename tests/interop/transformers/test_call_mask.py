"""transformers' masks and flashlib's see the same scores, for every way in which masks are made."""

import itertools

import numpy as np
import pytest

from tests import required

required.package("transformers", "run make models")

import torch  # noqa: E402
from transformers import masking_utils as theirs  # noqa: E402

from flashlib import masks  # noqa: E402
from flashlib.interop.transformers import call_mask, engines, patterns  # noqa: E402
from flashlib.interop.transformers.patterns import Pattern  # noqa: E402

POSITIONS = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]])
PACKS = theirs.find_packed_sequence_indices(POSITIONS)


def _packed(function):
    remapped = theirs.remap_positions_for_packed_sequence(function, POSITIONS)
    return theirs.and_masks(remapped, theirs.packed_sequence_mask_function(PACKS))


CAUSAL, FREE = theirs.causal_mask_function, theirs.bidirectional_mask_function
WINDOW = theirs.sliding_window_causal_mask_function(4)
OVERLAY = theirs.blockwise_overlay(torch.tensor([[-1, 0, 0, 0, -1, -1, 1, 1, -1, -1, 2], [-1] * 11]))

# name: the function, and how it is read; None: it is asked for each score
FUNCTIONS = {
    "causal": (CAUSAL, Pattern(right=0)),
    "free": (FREE, Pattern()),
    "window": (WINDOW, Pattern(3, 0)),
    "wide": (theirs.sliding_window_bidirectional_mask_function(3), Pattern(3, 3)),
    "chunk": (theirs.chunked_causal_mask_function(4, torch.tensor([0, 2])), None),
    "mine": (lambda b, h, q, k: (q - k) % 3 != 1, None),
    "either": (theirs.or_masks(CAUSAL, OVERLAY), None),
}
PACKED = {
    "packed": (_packed(CAUSAL), Pattern(right=0, ids=PACKS)),
    "packed window": (_packed(WINDOW), Pattern(3, 0, PACKS)),
    "packed chunk": (_packed(theirs.chunked_causal_mask_function(3, torch.tensor([0, 0]))), None),
}

# N_q, N_k, q_offset, kv_offset: a sequence; a step and a part with a cache; a static one; a sliding one
PLACES = [(11, 11, 0, 0), (1, 9, 8, 0), (3, 11, 8, 0), (5, 11, 0, 0), (1, 11, 6, 0), (2, 6, 9, 5), (7, 3, 0, 0)]

PADDING = {
    "none": None,
    "right": [[1] * 11, [1] * 6 + [0] * 5],
    "left": [[0] * 4 + [1] * 7, [1] * 11],
    "hole": [[1] * 4 + [0] * 2 + [1] * 5, [1] * 11],
    "all": [[0] * 11, [1] * 11],
}


def table_of(made, H=1):
    """Return what flashlib's mask sees, (B, 1, N_q, N_k): asked in torch, as kernels do, and in NumPy."""
    (B, N_q, N_k), (mask, causal, keys) = made.sizes, made.hides()
    mask = masks.fitted(mask, causal, B, H, N_q, keys)
    b, i, c = torch.arange(B)[:, None, None, None], torch.arange(N_q)[:, None], torch.arange(keys)
    place = masks.Place(N_q, keys, b, torch.arange(H)[:, None, None])
    found = mask.sees(place, i + place.past, c).expand(B, H, N_q, keys)
    for one, h in itertools.product(range(B), range(H)):
        tiles = engines.OfHead(mask, one, h).on(N_q, keys)
        assert np.array_equal(tiles.seen(*tiles.all), found[one, h])
        if tiles.keys is not None:
            first, end = tiles.keys
            numbers = np.arange(keys)
            assert np.array_equal((numbers >= first[:, None]) & (numbers < end[:, None]), found[one, h])
    return torch.nn.functional.pad(found, (0, N_k - keys))


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_is_seen(name, place, padding):
    there = PADDING[padding] and torch.tensor(PADDING[padding]).bool()
    check(*FUNCTIONS[name], place, there)


@pytest.mark.parametrize("name", PACKED)
def test_packed_sequences_see_only_themselves(name):
    """They come without a cache, and without padding."""
    check(*PACKED[name], PLACES[0], None)


def check(function, pattern, place, there):
    given = dict(mask_function=function, attention_mask=there)
    made = call_mask.mask_of_call(2, *place, **given)
    table = theirs.sdpa_mask(2, *place, **given, allow_is_causal_skip=False)
    assert made.pattern == pattern
    N_q, N_k, q_offset, kv_offset = place
    seen_keys = slice(kv_offset, min(q_offset + N_q, kv_offset + N_k))
    assert made.padded == (there is not None and not there[:, seen_keys].all())
    assert made.shape == table.shape and torch.equal(table_of(made), table)


def test_a_static_cache_goes_on_counting_in_its_own_tensor():
    offset = torch.tensor(4)
    made = call_mask.mask_of_call(1, 2, 9, offset, 0)
    offset += 2
    assert made.hides() == (None, True, 6)


def test_functions_written_for_one_number_are_called_with_one_number():
    def one_by_one(b, h, q, k):
        return torch.where(q.sum() > 3, k <= q, k == q)  # q.sum() is q, of one number

    given = dict(mask_function=theirs.and_masks(CAUSAL, one_by_one), use_vmap=True)
    made = call_mask.mask_of_call(2, 7, 7, **given)
    assert torch.equal(table_of(made), theirs.sdpa_mask(2, 7, 7, **given, allow_is_causal_skip=False))


@pytest.mark.parametrize("heads, batches", [(1, 1), (3, 2), (1, 2)])
def test_tables_are_read(heads, batches):
    table = torch.rand(batches, heads, 5, 7) < 0.6
    added = torch.zeros(table.shape).masked_fill(~table, torch.finfo(torch.float32).min)
    for given in (table, added, added.masked_fill(~table, -torch.inf), added.half()):
        made, added = call_mask.of_table(given, 2, 5, 7)
        assert added is None and torch.equal(table_of(made, H=3), table.expand(2, 3, 5, 7))


def test_other_numbers_in_a_table_are_added_to_scores():
    table = torch.randn(2, 1, 5, 7)
    table[1, 0, 3, 2:] = -torch.inf
    made, added = call_mask.of_table(table, 2, 5, 7)
    assert torch.equal(table_of(made), table > -torch.inf)
    assert torch.equal(added, table.masked_fill(table == -torch.inf, 0))


def test_tables_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 1, 5, 7\); a table of \(2 or 1, 1 or H, 5, 8\)"):
        call_mask.of_table(torch.ones(2, 1, 5, 7), 2, 5, 8)


def test_recognised_masks_make_no_table_and_are_shared_by_all_layers():
    made = call_mask.mask_of_call(2, 11, 11, mask_function=WINDOW)
    assert made.hides().mask == masks.window(3, 0) and made.hides() is made.hides()
    assert made.hides(5.0).mask is made.hides(5.0).mask
    asked = call_mask.mask_of_call(2, 11, 11, mask_function=FUNCTIONS["chunk"][0]).hides()
    assert not asked.mask.may_change, "what a function said is kept for all layers of one call"


def test_causal_alone_needs_no_mask():
    assert call_mask.mask_of_call(2, 11, 11).hides() == (None, True, 11)
    assert call_mask.mask_of_call(2, 1, 11, 10).hides() == (None, False, 11)
    assert call_mask.mask_of_call(2, 11, 11, mask_function=FREE).hides() == (None, False, 11)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="makes a mask with more, which flashlib does not know"):
        call_mask.mask_of_call(2, 11, 11, more=1)


def test_a_model_that_looks_into_its_mask_gets_an_explanation():
    made = call_mask.mask_of_call(2, 11, 11)
    with pytest.raises(AttributeError, match="looks into its mask .*pass tables=True"):
        made.masked_fill(made, 0)


def test_nothing_is_recognised_where_transformers_changed_what_it_means(monkeypatch):
    def sliding_window_overlay(sliding_window):
        def inner_mask(b, h, q, k):
            return k >= q - sliding_window  # one key more

        inner_mask.__module__, inner_mask.__qualname__ = theirs.__name__, "sliding_window_overlay.<locals>.inner"
        return inner_mask

    monkeypatch.setattr(theirs, "sliding_window_overlay", sliding_window_overlay)
    patterns._agree.cache_clear()
    try:
        with pytest.warns(UserWarning, match="not those that flashlib knows"):
            assert patterns.recognised(CAUSAL) is None
    finally:
        patterns._agree.cache_clear()
