"""A tree of candidates sees what each of its paths would see as a separate text."""

import re

import numpy as np
import pytest

from flashlib import masks, naive, tiled

N, d = 11, 8  # candidates


def drawn(rng):
    """Return random parents: each candidate continues one of a smaller number, or the text."""
    return [int(rng.integers(-1, i)) if i else -1 for i in range(N)]


def path(parents, i):
    """Return the candidates from the text to candidate i."""
    return [*path(parents, parents[i]), i] if i >= 0 else []


@pytest.mark.parametrize("past", [0, 1, 17])
def test_each_candidate_attends_as_if_its_path_were_the_text(past, rng):
    parents = drawn(rng)
    Q, K, V = (rng.standard_normal((n, d)) for n in (N, past + N, past + N))
    O, lse = tiled.attention(Q, K, V, mask=masks.tree(parents), B_r=3, B_c=5)
    for i in range(N):
        keys = [*range(past), *(past + k for k in path(parents, i))]
        alone = naive.attention(Q[i : i + 1], K[keys], V[keys])
        np.testing.assert_allclose(O[i], alone.O[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(lse[i], alone.lse[0], rtol=1e-12)


def test_a_chain_is_causal(rng):
    Q, K, V = (rng.standard_normal((n, d)) for n in (N, 20, 20))
    chain = naive.attention(Q, K, V, mask=masks.tree(range(-1, N - 1)))
    assert np.array_equal(chain.O, naive.attention(Q, K, V, causal=True).O)


def test_each_sequence_has_its_own_tree(rng):
    parents = [drawn(rng), drawn(rng)]
    both, place = masks.tree(parents), masks.Place(N, 20)
    r, c = np.ogrid[place.past : 20, :20]
    for b in range(2):
        alone = masks.tree(parents[b]).sees(place, r, c)
        assert np.array_equal(both.sees(place._replace(b=b), r, c), alone)


@pytest.mark.parametrize(
    "parents, said",
    [
        ([0], "parents[0] is 0; candidate 0 continues one of a smaller number"),
        ([-1, 0, 2], "parents[2] is 2; candidate 2"),
        ([[-1, 0], [-1, -2]], "parents[1, 1] is -2; candidate 1"),
        ([-1.0], "parents has shape (1,) and dtype float64; pass whole numbers"),
        ([], "parents has shape (0,)"),
        ([[[-1]]], "parents has shape (1, 1, 1)"),
    ],
)
def test_anything_but_a_tree_is_refused(parents, said):
    with pytest.raises((TypeError, ValueError), match=re.escape(said)):
        masks.tree(parents)


@pytest.mark.parametrize("N_q, N_k", [(2, 9), (3, 2)])
def test_a_tree_of_another_size_is_refused(N_q, N_k):
    with pytest.raises(ValueError, match=rf"parents has shape \(3,\), and there are {N_q} queries and {N_k} keys"):
        masks.tree([-1, 0, 0]).on(N_q, N_k)
