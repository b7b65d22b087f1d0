"""Each rank holds its tokens in order, each token is on one rank, and the layouts balance the work as they say."""

import numpy as np
import pytest

from flashlib import masks, ring
from flashlib.ring import cost, hops, layouts

LAYOUTS = list(layouts.LAYOUTS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_token_is_on_one_rank_and_ranks_hold_about_equally_many(layout):
    for P in range(1, 9):
        for N in (0, 1, 2, 7, 16, 23, 64, 97):
            held = [ring.positions(N, P, r, layout) for r in range(P)]
            assert np.array_equal(np.sort(np.concatenate(held)), np.arange(N))
            assert all((np.diff(own) > 0).all() for own in held)
            assert max(map(len, held)) - min(map(len, held)) <= (2 if layout == "zigzag" else 1)
            runs = [layouts.runs(N, P, r, layout) for r in range(P)]
            assert all(len(run) for own in runs for run in own)
            assert [sum(map(len, own)) for own in runs] == [len(own) for own in held]


def test_layouts_by_hand():
    for layout, expected in (
        ("contiguous", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("striped", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("zigzag", [[0, 1, 6, 7], [2, 3, 4, 5]]),
    ):
        assert [ring.positions(8, 2, r, layout).tolist() for r in range(2)] == expected
    assert layouts.runs(8, 2, 1, "zigzag") == (range(2, 6),), "adjacent pieces are joined"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_join_undoes_split(layout, rng):
    for P, N in ((1, 5), (3, 17), (4, 64), (7, 5), (5, 0)):
        X = rng.standard_normal((2, N, 3))
        parts = ring.split(X, P, layout, axis=1)
        assert np.array_equal(ring.join(parts, layout, axis=1), X)
        assert np.array_equal(ring.join(ring.split(X[0], P, layout), layout), X[0])
        for r, part in enumerate(parts):
            assert np.array_equal(part, X[:, ring.positions(N, P, r, layout)])
            assert not np.shares_memory(part, X)


@pytest.mark.parametrize("N, P", [(1024, 4), (1000, 8), (997, 3)])
def test_zigzag_and_striped_balance_a_causal_mask_and_contiguous_does_not(N, P):
    problem = cost.Problem(N, N, 8, "float32", causal=True, B_r=1, B_c=1)
    balance = {layout: cost.ring(problem, P, layout).balance for layout in LAYOUTS}
    assert balance["zigzag"] > 0.98 and balance["striped"] > 0.98
    assert balance["contiguous"] == pytest.approx(P / (2 * P - 1), abs=0.01), "half is wasted"
    everything = problem._replace(causal=False)
    assert all(cost.ring(everything, P, layout).balance > 0.98 for layout in LAYOUTS)


@pytest.mark.parametrize("P", [2, 3, 5])
def test_with_zigzag_only_hop_0_of_a_causal_mask_needs_a_mask(P):
    n = 4  # tokens of a piece
    plan = ring.plan(masks.causal(), 2 * P * n, 2 * P * n, P, "zigzag")
    half, whole = slice(0, n), slice(0, 2 * n)
    for r, own in enumerate(plan.hops):
        for source, hop in enumerate(own):
            if source == r:
                assert hop == hops.Hop(whole, whole, masks.causal())
            elif source < r:
                assert hop[:2] == (whole, half) and type(hop.mask) is masks.Mask
            else:
                assert hop[:2] == (slice(n, 2 * n), whole) and type(hop.mask) is masks.Mask


def test_invalid_layouts_and_parts_are_refused(rng):
    X = rng.standard_normal((6, 2))
    for call, error, words in (
        (lambda: ring.split(X, 2, "zig"), ValueError, "layout is 'zig'; accepted are 'contiguous', 'striped'"),
        (lambda: ring.split(X, 0, "zigzag"), ValueError, "ranks is 0; accepted are whole numbers of at least 1"),
        (lambda: ring.split(X, 2.0, "zigzag"), TypeError, "ranks is 2.0"),
        (lambda: ring.positions(6, 2, 2, "zigzag"), ValueError, "r is 2, and there are 2 ranks, numbered from 0"),
        (lambda: ring.join([X[:1], X[1:]], "zigzag"), ValueError, r"the parts have \[1, 5\] tokens; 6 tokens"),
    ):
        with pytest.raises(error, match=words):
            call()
