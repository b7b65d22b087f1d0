"""Pictures show what the steps hold."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from flashlib import cost, figures, tiled


def inputs(rng, N_q, N_k, d):
    return tuple(rng.normal(size=(N, d)) for N in (N_q, N_k, N_k))


CASES = [
    (dict(N_q=8, N_k=8), dict(B_r=2, B_c=2, order="fa2")),
    (dict(N_q=8, N_k=8), dict(B_r=2, B_c=2, order="fa1", causal=True)),
    (dict(N_q=9, N_k=5), dict(B_r=2, B_c=2, order="fa2", causal=True)),  # row blocks without a tile
    (dict(N_q=5, N_k=11), dict(B_r=3, B_c=4, order="fa1", causal=True)),
    (dict(N_q=5, N_k=1), dict(B_r=4, B_c=3, order="fa2", causal=True)),  # only the shorter last block has one
]


@pytest.mark.parametrize(("sizes", "setting"), CASES, ids=str)
def test_tile_order_numbers_what_was_computed_and_hatches_the_rest(rng, sizes, setting):
    steps = list(tiled.steps(*inputs(rng, **sizes, d=3), **setting))
    figure = figures.tile_order(steps, **sizes, title="order")
    (ax,) = figure.axes
    B_r, B_c, causal = setting["B_r"], setting["B_c"], setting.get("causal", False)
    T_r, T_c = -(-sizes["N_q"] // B_r), -(-sizes["N_k"] // B_c)
    computed = cost.tiles_per_row_block(**sizes, B_r=B_r, B_c=B_c, causal=causal).sum()
    hatched = [tile for tile in ax.patches if tile.get_hatch()]
    assert len(hatched) == T_r * T_c - computed
    found = {text.get_text(): text.get_position() for text in ax.texts}
    assert len(found) == computed == len(steps)
    for k, step in enumerate(steps):
        x, y = found[str(k + 1)]
        assert step.cols.start < x < step.cols.stop and step.rows.start < y < step.rows.stop
    assert ax.get_title(loc="left") == "order"


def test_tile_order_marks_the_tiles_that_the_mask_cuts(rng):
    steps = list(tiled.steps(*inputs(rng, 8, 8, 2), B_r=2, B_c=2, causal=True))
    corners = lambda steps: [p for p in figures.tile_order(steps, 8, 8).axes[0].patches if not hasattr(p, "get_x")]  # noqa: E731
    assert len(corners(steps)) == 4
    assert not corners(list(tiled.steps(*inputs(rng, 8, 8, 2), B_r=2, B_c=2)))


def test_tile_order_draws_into_axes_that_are_given(rng):
    figure = figures.Picture(6, 3)
    left, right = figure.subplots(1, 2)
    for ax, order in ((left, "fa1"), (right, "fa2")):
        steps = tiled.steps(*inputs(rng, 4, 4, 2), B_r=2, B_c=2, order=order)
        assert figures.tile_order(steps, 4, 4, ax=ax) is figure
    positions = lambda ax: {text.get_text(): text.get_position() for text in ax.texts}  # noqa: E731
    assert len(positions(left)) == 4
    assert positions(left) == {text: (x, y) for text, (y, x) in positions(right).items()}


@pytest.mark.parametrize("N_q, N_k", [(0, 3), (3, 0), (1, 1), (64, 64), (9, 4)])
def test_an_order_of_any_size_can_be_drawn(rng, N_q, N_k):
    steps = tiled.steps(*inputs(rng, N_q, N_k, 2), B_r=8, B_c=4, causal=True)
    assert figures.tile_order(steps, N_q, N_k).png()


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-12.0, "−12"),
        (1.95, "1.950"),
        (0.61878339, "0.6188"),
        (-0.0123456, "−0.01235"),
        (123456.0, "1.235e5"),
        (9999.7, "1.000e4"),
        (-2.5e-7, "−2.500e−7"),
        (-np.inf, "−∞"),
        (np.inf, "∞"),
        (np.nan, "NaN"),
    ],
)
def test_number_has_four_digits_and_a_true_minus_sign(x, text):
    assert figures.number(x) == text
