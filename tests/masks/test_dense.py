"""Masks of tables with an entry for each score."""

import numpy as np
import pytest

from flashlib import masks

torch = pytest.importorskip("torch")
from flashlib import torch_ref  # noqa: E402


@pytest.mark.parametrize(
    "shape", [(7, 9), (2, 3, 7, 9), (2, 1, 7, 9), (1, 3, 1, 9), (2, 1, 7, 1), (1, 1, 1, 1)], ids=str
)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_each_score_is_seen_as_the_table_says(shape, as_tensor, rng):
    B, H, N_q, N_k = 2, 3, 7, 9
    seen = rng.random(shape) < 0.6
    table = np.broadcast_to(seen, (B, H, N_q, N_k))
    mask = masks.dense(torch.from_numpy(seen) if as_tensor else seen)
    assert (mask.asks_batch, mask.asks_head) == (
        shape[0] == 2 and len(shape) == 4,
        len(shape) == 4 and shape[1] == 3,
    )
    rows = np.arange(N_q)[:, None] + N_k - N_q
    for b, h in np.ndindex(B, H):
        found = mask.sees(masks.Place(N_q, N_k, b, h), rows, np.arange(N_k))
        assert isinstance(found, np.ndarray) and np.array_equal(found, table[b, h])
    Q, K, V = (torch.from_numpy(rng.standard_normal((B, H, n, 4))) for n in (N_q, N_k, N_k))
    S = (Q @ K.mT / 2).masked_fill(~torch.from_numpy(table.copy()), -torch.inf)
    torch.testing.assert_close(torch_ref.attention(Q, K, V, mask=mask).O, S.softmax(-1).nan_to_num() @ V)


def test_a_table_is_copied(rng):
    seen = rng.random((5, 6)) < 0.5
    for given in (seen.copy(), torch.from_numpy(seen.copy())):
        mask = masks.dense(given)
        given[:] = False
        tiles = mask.on(5, 6)
        assert np.array_equal(tiles.seen(*tiles.all), seen)


@pytest.mark.parametrize(
    "seen, error, words",
    [
        (np.ones((3, 4)), TypeError, "seen has dtype float64; pass bools: True where a score is seen"),
        (torch.zeros(3, 4), TypeError, "seen has dtype float32; pass bools"),
        ([[True], []], TypeError, "pass an array or a tensor of bool"),
        (
            np.ones((2, 3, 4), bool),
            ValueError,
            r"seen has shape \(2, 3, 4\); pass \(N_q, N_k\) or \(B, H, N_q, N_k\)",
        ),
    ],
)
def test_anything_but_a_table_is_refused_in_words(seen, error, words):
    with pytest.raises(error, match=words):
        masks.dense(seen)


def test_a_table_of_other_sizes_is_refused_in_words():
    mask = masks.dense(np.ones((3, 4), bool))
    for N_q, N_k, words in (
        (2, 4, "seen has 3 queries, and there are 2"),
        (3, 5, "seen has 4 keys, and there are 5"),
    ):
        with pytest.raises(ValueError, match=words):
            mask.on(N_q, N_k)
    with pytest.raises(ValueError, match="the mask is made for 2 heads, and this is one head"):
        masks.dense(np.ones((1, 2, 3, 4), bool)).on(3, 4)
