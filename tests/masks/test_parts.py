"""The mask of a part equals the mask of the whole at its rows and keys, for every tile."""

import numpy as np
import pytest

from flashlib import cost, masks, naive, tiled
from flashlib.masks import runs
from tests import masked
from tests.masks.test_masks import grid, problem

PLACES = ("contiguous", "striped", "zigzag", "other steps", "two steps", "three pieces", "one", "nothing")
MORE = {
    "both sides": lambda *_: masked.Case(masks.window(2, 3), lambda r, c: r - 2 <= c <= r + 3),
    "itself": lambda *_: masked.Case(masks.window(0, 0), lambda r, c: r == c),
    "tree": lambda rng, N_q, N_k: _tree(rng, N_q, N_k),
}
KINDS = {**masked.KINDS, **MORE}


def _tree(rng, N_q, N_k):
    if N_q > N_k:
        return masked.Case(masks.causal(), lambda r, c: c <= r)
    parents = np.array([rng.integers(-1, i) if i else -1 for i in range(N_q)])
    mask = masks.tree(parents)
    seen = mask.sees(masks.Place(N_q, N_k), np.arange(N_q)[:, None] + N_k - N_q, np.arange(N_k))
    return masked.Case(mask, lambda r, c: bool(seen[r - N_k + N_q, c]))


def draw_runs(rng, how, N):
    """Return ranges of some of N items."""
    cuts = sorted(int(n) for n in rng.integers(0, N + 1, 6))
    P = int(rng.integers(2, 6))
    return {
        "contiguous": range(cuts[1], cuts[4]),
        "striped": range(int(rng.integers(0, P)), N, P),
        "zigzag": (range(cuts[0], cuts[1]), range(cuts[3], cuts[4])),
        "other steps": range(cuts[0], cuts[5], int(rng.integers(1, 5))),
        "two steps": (range(cuts[0], cuts[2], 2), range(cuts[2], cuts[5], 3)),
        "three pieces": [range(cuts[0], cuts[1], 2), range(cuts[2], cuts[3]), range(cuts[4], cuts[5], 3)],
        "one": range(cuts[2], min(cuts[2] + 1, N)),
        "nothing": range(0),
    }[how]


def listed(runs):
    """Return the numbers of the items."""
    return np.array([n for run in ([runs] if isinstance(runs, range) else runs) for n in run], int)


def draw_part(rng, kind, N_q=23, N_k=29):
    """Return a Case of the whole, its part, and the numbers of its rows and keys."""
    case = KINDS[kind](rng, N_q, N_k)
    how = rng.choice(PLACES, 2) if rng.random() < 0.5 else [str(rng.choice(PLACES))] * 2
    rows, keys = (draw_runs(rng, str(one), N) for one, N in zip(how, (N_q, N_k), strict=True))
    return case, masks.placed(case.mask, N_q, N_k, rows, keys), listed(rows), listed(keys)


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_of_a_part_are_hidden_whole_or_cut_as_in_the_whole(amount, kind, rng):
    for N_q, N_k in [(23, 29), (29, 23), (19, 19)] * {"few": 4, "all": 12}[amount]:
        case, part, rows, keys = draw_part(rng, kind, N_q, N_k)
        seen = masked.seen(case, N_q, N_k)[np.ix_(rows, keys)]
        tiles = part.on(len(rows), len(keys))
        assert np.array_equal(tiles.seen(*tiles.all), seen)
        B_r, B_c = (int(n) for n in rng.integers(1, 9, 2))
        computed = cost.computed_tiles(len(rows), len(keys), B_r=B_r, B_c=B_c, mask=part)
        for i, j in np.ndindex(computed.shape):
            at = slice(i * B_r, min((i + 1) * B_r, len(rows))), slice(j * B_c, min((j + 1) * B_c, len(keys)))
            assert tiles.hidden(*at) == (not seen[at].any()) == (not computed[i, j])
            assert tiles.cut(*at) == (not seen[at].all())
        counted = cost.tiles_per_row_block(len(rows), len(keys), B_r=B_r, B_c=B_c, mask=part)
        assert np.array_equal(counted, computed.sum(axis=1))
        assert masked.count(part, len(rows), len(keys)) == seen.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_gradients_of_a_part_are_those_of_the_whole(kind, rng):
    N_q, N_k = 23, 29
    for _ in range(8):
        case, part, rows, keys = draw_part(rng, kind, N_q, N_k)
        whole, tiles, at = case.mask.on(N_q, N_k), part.on(len(rows), len(keys)), np.ix_(rows, keys)
        S, dS = rng.standard_normal((2, N_q, N_k))
        expected = whole.scores(S, *whole.all)[at], whole.gradient(dS, S, *whole.all)[at]
        for r, c in grid(len(rows), len(keys), 4, 5):
            np.testing.assert_allclose(tiles.scores(S[at][r, c], r, c), expected[0][r, c], rtol=1e-14)
            np.testing.assert_allclose(tiles.gradient(dS[at][r, c], S[at][r, c], r, c), expected[1][r, c])


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_attention_and_gradients_take_a_part(amount, kind, rng):
    Q, K, V, dO = problem(rng, 23, 29)
    for _ in range({"few": 1, "all": 4}[amount]):
        case, part, rows, keys = draw_part(rng, kind)
        seen = masked.seen(case, 23, 29)[np.ix_(rows, keys)]
        own = _case_of(case, seen, rows, keys)
        q, k, v, do = Q[rows], K[keys], V[keys], dO[rows]
        O, lse, grads = masked.attention(q, k, v, own, dO=do)
        for module, blocks in ((naive, {}), (tiled, {"B_r": 4, "B_c": 3})):
            given = module.attention(q, k, v, mask=part, **blocks)
            np.testing.assert_allclose(given.O, O, atol=1e-12)
            np.testing.assert_allclose(given.lse, lse, atol=1e-12)
            for X, exact in zip(module.backward(q, k, v, O, lse, do, mask=part, **blocks), grads, strict=True):
                np.testing.assert_allclose(X, exact, atol=1e-8)


def _case_of(case, seen, rows, keys):
    """Return the definition of a part of a whole of 23 queries and 29 keys."""
    past = len(keys) - len(rows)
    return masked.Case(
        None,
        lambda r, c: seen[r - past, c],
        lambda s, r, c: case.score(s, int(rows[r - past]) + 6, int(keys[c])),
    )


def test_torch_takes_a_part_of_heads_and_sequences(rng):
    torch = pytest.importorskip("torch")
    from flashlib import torch_ref

    B, H, N_q, N_k, d = 2, 3, 11, 14, 4
    Q, K, V = (torch.from_numpy(rng.standard_normal((B, H, n, d))) for n in (N_q, N_k, N_k))
    ids = np.stack([masked.packed(rng, N_k) for _ in range(B)])
    told = torch.from_numpy(rng.random((H, N_k)) < 0.6)
    for mask in (
        masks.documents(ids) & masks.alibi([0.5, 0.1, 0.0]),
        masks.from_function(lambda b, h, r, c: told[h, c] & (c <= r + b)),
        masks.window(3, 1) | masks.documents(ids),
        masks.tree(np.arange(-1, N_q - 1)),
    ):
        for rows, keys in (
            (range(1, N_q, 3), range(2, N_k, 3)),
            ((range(0, 3), range(8, 11)), (range(1, 4), range(9, 12))),
        ):
            i, c = torch.from_numpy(listed(rows)), torch.from_numpy(listed(keys))
            part = masks.placed(mask, N_q, N_k, rows, keys)
            given = torch_ref.attention(Q[:, :, i], K[:, :, c], V[:, :, c], mask=part)
            hidden = torch.ones(N_k, dtype=torch.bool).index_fill(0, c, False)
            b, h = torch.arange(B)[:, None, None, None], torch.arange(H)[:, None, None]
            r, place = i[:, None] + N_k - N_q, masks.Place(N_q, N_k, b, h)
            S = mask.score(Q[:, :, i] @ K.mT / d**0.5, place, r, torch.arange(N_k))
            S = S.masked_fill(~mask.sees(place, r, torch.arange(N_k)) | hidden, -torch.inf)
            torch.testing.assert_close(given.O, S.softmax(-1).nan_to_num() @ V)
            torch.testing.assert_close(given.lse, S.logsumexp(-1))


def test_a_part_is_as_plain_as_it_can_be():
    lo, hi = (range(0, 4), range(28, 32)), (range(4, 8), range(24, 28))
    for rows, keys, plain in (
        (lo, lo, masks.causal()),  # zigzag: its own keys
        (hi, range(0, 4), masks.Mask()),  # an earlier rank's first half
        (range(28, 32), hi, masks.Mask()),  # a later rank's keys for the second half
        (range(3, 32, 4), range(1, 32, 4), masks.causal()),  # striped: an earlier rank
        (range(1, 32, 4), range(3, 32, 4), masks.Window(None, -1)),  # a later one: strictly causal
        (range(8, 16), range(8, 16), masks.causal()),
    ):
        part = masks.placed(masks.causal(), 32, 32, rows, keys)
        assert part == plain or type(part) is type(plain) is masks.Mask
    part = masks.placed(masks.window(9, 0), 32, 32, range(2, 32, 4), range(1, 32, 4))
    assert part == masks.Window(2, 0)
    both = masks.placed(masks.causal() & masks.softcap(2.0), 32, 32, range(16, 32), range(0, 16))
    assert both == masks.softcap(2.0)


def test_blocks_that_are_not_cut_become_a_smaller_table(rng):
    table = rng.random((6, 5)) < 0.5
    whole = masks.blocks(table, 8, 16)
    zigzag = (range(8, 16), range(40, 47)), (range(0, 16), range(64, 75))
    part = masks.placed(whole, 47, 75, *zigzag)
    assert isinstance(part, masks.Blocks) and np.array_equal(part.table, table[np.ix_([1, 5], [0, 4])])
    pieces = range(8, 15), range(40, 47)
    for rows, keys in ((range(9, 16), range(0, 16)), (range(8, 16, 2), range(0, 32, 2)), (pieces, range(16))):
        part = masks.placed(whole, 47, 75, rows, keys)
        tiles = part.on(len(listed(rows)), len(listed(keys)))
        assert np.array_equal(tiles.seen(*tiles.all), table[np.ix_(listed(rows) // 8, listed(keys) // 16)])
    assert isinstance(masks.placed(whole, 47, 75, range(9, 30), range(16)), masks.Placed)


def test_a_window_of_a_long_sequence_is_evaluated_at_once():
    N = 2**40
    for rows, keys in ((range(5, N, 2**36), range(3, N, 2**36)), (range(N - 8, N), range(N - 40, N))):
        for mask in (masks.causal(), masks.window(2**37, 0), masks.prefix(7), masks.alibi(0.5) & masks.causal()):
            tiles = masks.placed(mask, N, N, rows, keys).on(len(rows), len(keys))
            expected = mask.sees(masks.Place(N, N), listed(rows)[:, None], listed(keys))
            assert np.array_equal(tiles.seen(*tiles.all), expected)
            assert tiles.keys is not None


def test_a_part_of_a_part_is_a_part(rng):
    case, part, rows, keys = draw_part(rng, "union")
    inner = masks.placed(part, len(rows), len(keys), range(1, len(rows), 2), range(0, len(keys), 3))
    tiles = inner.on(len(rows[1::2]), len(keys[::3]))
    assert np.array_equal(tiles.seen(*tiles.all), masked.seen(case, 23, 29)[np.ix_(rows[1::2], keys[::3])])


@pytest.mark.parametrize(
    "rows, error, words",
    [
        (3, TypeError, r"rows is 3; pass a range, such as range\(1, 23, 4\), or several in a tuple"),
        ([1, 2], TypeError, "pass a range"),
        (range(5, 1, -1), ValueError, "pass ranges of positive steps within the 23 rows"),
        (range(20, 25), ValueError, "within the 23 rows"),
        (range(-1, 3), ValueError, "within the 23 rows"),
        ((range(0, 5), range(4, 8)), ValueError, "begins after the end of the one before"),
    ],
)
def test_other_rows_are_refused_in_words(rows, error, words):
    with pytest.raises(error, match=words):
        masks.placed(masks.prefix(2), 23, 29, rows, range(29))


def test_sizes_that_do_not_fit_are_refused_in_words():
    with pytest.raises(ValueError, match="ids has shape .2,., and there are 29 keys"):
        masks.placed(masks.documents([0, 1]), 23, 29, range(3), range(4))
    part = masks.placed(masks.prefix(2), 23, 29, range(0, 6), range(1, 9))
    with pytest.raises(ValueError, match="placed for 6 rows and 8 keys, and there are 5 and 8"):
        part.on(5, 8)


def test_items_before_a_number_are_counted(rng):
    for how in PLACES:
        some = runs.checked_runs("keys", draw_runs(rng, how, 29), 29)
        x = np.arange(31)
        assert np.array_equal(runs.before(some, x), (listed(some)[:, None] < x).sum(axis=0))
        assert np.array_equal(runs.positions(some), listed(some))
        x = np.arange(len(listed(some)))
        assert np.array_equal(runs.item_at(some, x), listed(some))
        if (line := runs.line(some)) is not None:
            start, step, split, jump = line
            assert np.array_equal(start + step * x + jump * (x >= split), listed(some))
