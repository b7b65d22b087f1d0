"""Pictures of layouts: which thread holds which number of a tile, and where a tile's numbers are in shared memory.

They come from the compiler's own description of a layout, its `format_tensor_view`.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from flashlib.pictures.canvas import Picture
from flashlib.pictures.inks import HIGHLIGHT, INK, NEGATIVE, ON_FILL, POSITIVE, ZERO

HELD = re.compile(r"T(\d+):(\d+)")
LIES = re.compile(r"\((\d+): *(\d+)\)")
FILLS = HIGHLIGHT, POSITIVE, NEGATIVE, "#cfd4da"
CELL, HIGH, GAP, TOP = 34, 19, 40, 56  # pixels


def holders(layout: Any, shape: Sequence[int]) -> np.ndarray:
    """Return who holds each number of a tile: an array of its shape, of lists of (thread, register)."""
    found = np.empty(tuple(shape), dtype=object)
    numbers = [part for part in re.split(r"[\[\],\n]", layout.format_tensor_view(list(shape))) if part.strip()]
    for at, text in zip(np.ndindex(*shape), numbers, strict=True):
        found[at] = [(int(thread), int(register)) for thread, register in HELD.findall(text)]
    return found


def places(layout: Any, shape: Sequence[int]) -> np.ndarray:
    """Return where each number of a tile (rows, columns) is in shared memory, counted in numbers."""
    lies = LIES.findall(layout.format_tensor_view(list(shape)))
    return np.array([int(row) * shape[1] + int(column) for row, column in lies]).reshape(tuple(shape))


def same(one: Any, other: Any, shape: Sequence[int]) -> bool:
    """Return whether two layouts hold a tile in the same registers of the same threads."""
    pairs = zip(holders(one, shape).flat, holders(other, shape).flat, strict=True)
    return all(sorted(a) == sorted(b) for a, b in pairs)


def draw_holders(
    tiles: dict[str, tuple[Any, Sequence[int]]], rows: int = 18, threads: Sequence[int] = (0, 1, 2, 3)
) -> Picture:
    """Draw layouts side by side, with the number of the thread that holds each element; some threads have a fill.

    tiles: {title: (layout, shape)}, of one or two axes; one with one axis is drawn as a column. rows: how many of
    the first rows are drawn.
    """
    held = {title: _two(holders(layout, shape))[:rows] for title, (layout, shape) in tiles.items()}
    widths = [_wide(X) * X.shape[1] for X in held.values()]
    width, height = GAP + sum(widths) + GAP * len(widths), TOP + HIGH * max(len(X) for X in held.values()) + 14
    picture = Picture(max(width, 420), height, f"Who holds which number: {'; '.join(held)}")
    x = GAP
    for (title, X), wide in zip(held.items(), widths, strict=True):
        picture.text(x, 16, title, face="bold")
        for column in range(0, X.shape[1]) if X.shape[1] > 1 else ():
            picture.text(x + (column + 0.5) * _wide(X), TOP - 9, str(column), 9, align="m")
        for row in range(len(X)):
            picture.text(x - 6, TOP + (row + 0.5) * HIGH, str(row), 9, align="r")
            for column in range(X.shape[1]):
                _cell(picture, x + column * _wide(X), TOP + row * HIGH, X[row, column], threads, _wide(X))
        x += wide + GAP
    return picture


def draw_places(layout: Any, shape: tuple[int, int], title: str, group: int = 8) -> Picture:
    """Draw where groups of neighbours in a tile are in shared memory, with a fill for each group of columns."""
    at = places(layout, shape)[:, ::group] // group
    per_row = shape[1] // group
    wide = 58
    picture = Picture(GAP + wide * per_row + GAP, TOP + HIGH * shape[0] + 14, f"{title}: groups of {group}")
    picture.text(GAP, 16, title, face="bold")
    for column in range(per_row):
        last = (column + 1) * group - 1
        picture.text(GAP + (column + 0.5) * wide, TOP - 9, f"{column * group}-{last}", 9, align="m")
    for row in range(shape[0]):
        picture.text(GAP - 6, TOP + (row + 0.5) * HIGH, str(row), 9, align="r")
        for column in range(per_row):
            fill = FILLS[0] if at[row, column] % per_row == 0 else ZERO
            x, y = GAP + column * wide, TOP + row * HIGH
            picture.box(x, y, wide + 1, HIGH + 1, fill=fill, edge=INK)
            picture.text(x + wide / 2, y + HIGH / 2, str(at[row, column] % per_row), 10, ON_FILL, align="m")
    return picture


def _two(X):
    return X if X.ndim == 2 else X[:, None]


def _wide(X):
    return CELL if X.shape[1] > 1 else 3 * CELL


def _cell(picture, x, y, held, threads, wide):
    names = sorted({thread for thread, _ in held})
    fill = FILLS[threads.index(names[0]) % len(FILLS)] if names[0] in threads else ZERO
    picture.box(x, y, wide + 1, HIGH + 1, fill=fill, edge=INK)
    picture.text(x + wide / 2, y + HIGH / 2, " ".join(map(str, names)), 10, ON_FILL, align="m")
