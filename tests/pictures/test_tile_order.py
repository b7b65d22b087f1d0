"""The picture of an order of tiles shows the steps."""

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from flashlib import cost, tiled
from flashlib.pictures import tile_order
from flashlib.pictures.canvas import Picture
from tests.pictures.places import Places

SIDE = 240  # pixels


def inputs(rng, N_q, N_k, d):
    return tuple(rng.normal(size=(N, d)) for N in (N_q, N_k, N_k))


def drawn(steps, N_q, N_k):
    """Return the picture, its pixels' alpha, and the size of a score."""
    picture = Picture(300, 300)
    x, y, cell = tile_order.tile_order(picture, (40, 40, SIDE, SIDE), steps, N_q, N_k)
    assert (x, y) == (40, 40)
    return picture, np.asarray(Image.open(io.BytesIO(picture.png())).convert("RGBA"))[..., 3], cell


CASES = [
    (dict(N_q=8, N_k=8), dict(B_r=2, B_c=2, order="fa2")),
    (dict(N_q=8, N_k=8), dict(B_r=2, B_c=2, order="fa1", causal=True)),
    (dict(N_q=9, N_k=5), dict(B_r=2, B_c=2, order="fa2", causal=True)),  # row blocks without a tile
    (dict(N_q=5, N_k=11), dict(B_r=3, B_c=4, order="fa1", causal=True)),
    (dict(N_q=5, N_k=1), dict(B_r=4, B_c=3, order="fa2", causal=True)),  # only the shorter last block has one
]


@pytest.mark.parametrize(("sizes", "setting"), CASES, ids=str)
def test_tiles_are_numbered_as_they_were_computed_and_the_rest_is_hatched(rng, sizes, setting):
    steps = list(tiled.steps(*inputs(rng, **sizes, d=3), **setting))
    picture, alpha, cell = drawn(steps, **sizes)
    B_r, B_c, causal = setting["B_r"], setting["B_c"], setting.get("causal", False)
    computed = cost.tiles_per_row_block(**sizes, B_r=B_r, B_c=B_c, causal=causal).sum()
    at = {text: ((x - 40) / cell, (y - 40) / cell) for x, y, text in picture.written if text.isdigit()}
    assert len(at) == computed == len(steps)
    for k, step in enumerate(steps):
        x, y = at[str(k + 1)]
        assert step.cols.start < x < step.cols.stop and step.rows.start < y < step.rows.stop
    opaque = 0
    for rows in tiled.blocks(sizes["N_q"], B_r):
        for cols in tiled.blocks(sizes["N_k"], B_c):
            down, across = (slice(*(40 + round(n * cell) for n in (b.start, b.stop))) for b in (rows, cols))
            inside = alpha[down, across][2:-2, 2:-2].mean()
            assert inside < 150 or inside > 250
            opaque += inside > 250
    assert opaque == computed


def test_a_tile_that_the_mask_cuts_has_a_hatched_corner(rng):
    def inks(causal):
        steps = [s for s in tiled.steps(*inputs(rng, 8, 8, 2), B_r=2, B_c=2, causal=causal) if s.i == s.j]
        picture = Picture(300, 300)
        tile_order.tile_order(picture, (40, 40, SIDE, SIDE), steps, 8, 8)
        red = np.asarray(Image.open(io.BytesIO(picture.png())).convert("RGBA")).astype(int)[..., 0]
        return [np.ptp(red[43 + 60 * k : 58 + 60 * k, 83 + 60 * k : 98 + 60 * k]) for k in range(4)]

    assert min(inks(causal=True)) > 60 and max(inks(causal=False)) < 5


def test_orders_are_side_by_side_with_their_titles(rng):
    Q, K, V = inputs(rng, 4, 4, 2)
    traces = {order: tiled.steps(Q, K, V, B_r=2, B_c=2, order=order) for order in ("fa1", "fa2")}
    picture = tile_order.draw_tile_orders(traces, 4, 4, "The same tiles.")
    assert repr(picture) == "The order of the tiles of S: fa1; fa2. The same tiles."
    assert {"fa1", "fa2", "The same tiles."} <= set(picture.texts)
    at = [(x, y) for x, y, text in picture.written if text == "2"]
    (left, low), (right, high) = sorted(at)
    assert low > high and right - left > tile_order.SIDE, "down the first column; along the first row"


@pytest.mark.parametrize("N_q, N_k", [(0, 3), (3, 0), (1, 1), (64, 64), (9, 4)])
def test_an_order_of_any_size_can_be_drawn(rng, N_q, N_k, monkeypatch):
    steps = tiled.steps(*inputs(rng, N_q, N_k, 2), B_r=8, B_c=4, causal=True)
    places = Places(monkeypatch)
    assert tile_order.draw_tile_orders({"": steps}, N_q, N_k).png()
    assert (places.outside(), places.overlapping()) == ([], [])


def test_only_as_many_blocks_are_labelled_as_fit():
    for n in range(1, 200):
        ticks = [k + 0.5 for k in range(n)]
        labels = tile_order.labelled(ticks)
        assert len(labels) <= 10 and labels[0] == (0, 0.5)
        assert n > 10 or len(labels) == n
        assert n <= 10 or len(labels) > 5
        assert all(middle == ticks[k] for k, middle in labels)
