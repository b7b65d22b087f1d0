"""The mask of some heads is the same object each time, and does not keep masks that nobody needs any more."""

import gc
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from flashlib import masks  # noqa: E402
from flashlib.masks import Place  # noqa: E402
from flashlib.ring.distributed import of_heads  # noqa: E402


def of_heads_and_rows():
    return masks.from_function(lambda b, h, r, c: (r + h) % 3 >= c % 2)


def test_head_0_of_a_part_is_its_first_head():
    mask = of_heads_and_rows()
    part, (r, c) = of_heads.part(mask, 2, 4), np.ogrid[:5, :5]
    for h in range(2):
        seen = part.sees(Place(5, 5, 0, h), r, c)
        np.testing.assert_array_equal(seen, mask.sees(Place(5, 5, 0, h + 2), r, c))
    assert part is of_heads.part(mask, 2, 4) is not of_heads.part(mask, 0, 2)


def test_a_part_of_a_part_counts_from_its_first_head():
    mask = masks.score(lambda S, h, r, c: S * (1 + h), lambda S, h, r, c: 1 + h + 0 * S)
    part = of_heads.part(of_heads.part(mask, 2, 6), 1, 3)
    np.testing.assert_array_equal(
        part.score(np.ones((2, 2)), Place(2, 2, 0, 0), *np.ogrid[:2, :2]), 4 * np.ones((2, 2))
    )


def test_masks_of_earlier_steps_go():
    steps = []
    for _ in range(of_heads.KEPT + 3):
        mask = of_heads_and_rows()
        of_heads.part(mask, 1, 2)
        steps.append(weakref.ref(mask))
    del mask
    gc.collect()
    assert [step() for step in steps[:3]] == [None] * 3
