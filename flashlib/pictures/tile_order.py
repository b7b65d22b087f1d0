"""Pictures of the order in which an algorithm computes the tiles of S, taken from its Steps."""

from collections.abc import Iterable, Sequence

import numpy as np

from flashlib.pictures.canvas import Picture, corners
from flashlib.pictures.inks import INK, ON_FILL
from flashlib.pictures.steps import tiles_of
from flashlib.types import BackwardStep, Step

SIDE, GAP, TOP = 230, 56, 62  # pixels: a matrix, the space before it and above it
FIRST, LAST = 255, 190  # how light the tiles are


def draw_tile_orders(orders: dict[str, Iterable[Step]], N_q: int, N_k: int, words: str = "") -> Picture:
    """Return a picture of tilings of S, (N_q, N_k), side by side; `words` are written below.

    orders: {title: steps}, see `tile_order`.
    """
    width, height = GAP + len(orders) * (SIDE + GAP) - 20, TOP + SIDE + 16 + 26 * bool(words)
    names = "; ".join(orders)
    picture = Picture(width, height, f"The order of the tiles of S: {names}. {words}".rstrip())
    for n, (title, steps) in enumerate(orders.items()):
        x = GAP + n * (SIDE + GAP)
        picture.text(x, 18, title, face="bold")
        tile_order(picture, (x, TOP, SIDE, SIDE), steps, N_q, N_k)
    picture.text(GAP, height - 20, words)
    return picture


def tile_order(
    picture: Picture,
    place: tuple[float, float, float, float],
    steps: Iterable[Step | BackwardStep],
    N_q: int,
    N_k: int,
) -> tuple[float, float, float]:
    """Draw the tiles of S, numbered as the steps computed them, in `place`: (x, y, width, height) at most.

    steps: with rows, cols and S_ij, as `tiled.steps` gives them. A tile without a step is hatched: skipped. One
    that the mask cuts has a hatched corner, as some of its scores are -inf. Returns x, y and the size of a score.
    """
    steps = list(steps)
    x, y, width, height = place
    cell = min(width / max(N_k, 1), height / max(N_q, 1))
    tiles, ticks_i, ticks_j = tiles_of(steps, N_q, N_k)
    for rows, cols, k in tiles:
        at = x + cols.start * cell, y + rows.start * cell
        size = (cols.stop - cols.start) * cell, (rows.stop - rows.start) * cell
        if k is None:
            picture.hatch(corners(*at, *size))
        else:
            _draw_tile(picture, at, size, k, steps)
        picture.box(*at, *(n + 1 for n in size), edge=INK)
    for k, middle in labelled(ticks_i):
        picture.text(x - 6, y + middle * cell, f"i={k}", 10, align="r")
    for k, middle in labelled(ticks_j):
        picture.text(x + middle * cell, y - 9, f"j={k}", 10, align="m")
    return x, y, cell


def _draw_tile(picture, at, size, k, steps):
    (x, y), (width, height) = at, size
    light = round(FIRST + (LAST - FIRST) * k / len(steps))
    picture.box(*at, *size, fill=f"#{light:02x}{light:02x}{light:02x}")
    if np.isneginf(steps[k].S_ij).any():
        picture.hatch([(x + width / 2, y), (x + width, y), (x + width, y + height / 2)])
    if min(width, height) > 12:
        picture.text(x + width / 2, y + height / 2, str(k + 1), min(13, int(min(size) * 0.5)), ON_FILL, "m")


def labelled(ticks: Sequence[float], most: int = 10) -> list[tuple[int, float]]:
    """Return the (index, middle) of at most `most` of the blocks."""
    return list(enumerate(ticks))[:: -(-len(ticks) // most) or 1]
