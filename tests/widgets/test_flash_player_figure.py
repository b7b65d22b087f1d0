"""The picture of a step shows its numbers."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib import tiled
from flashlib.pictures import number_text
from flashlib.pictures.canvas import length
from flashlib.pictures.steps import telling_step
from flashlib.widgets import FlashPlayer
from flashlib.widgets.flash_player import figure


def inputs(rng, N_q, N_k, d):
    return tuple(rng.normal(size=(N, d)) for N in (N_q, N_k, N_k))


@pytest.mark.parametrize("order", ["fa1", "fa2"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_picture_shows_the_numbers_of_the_step(rng, order, causal):
    Q, K, V = inputs(rng, 8, 6, 3)
    steps = list(tiled.steps(Q, K, V, B_r=4, B_c=2, order=order, causal=causal))
    for at, step in enumerate(steps):
        shown = figure.draw(Q, K, V, steps, at).texts
        for r in range(len(step.m)):
            assert number_text.number(step.m_old[r]) in shown
            assert {number_text.number(step.m[r]), number_text.number(step.m[r]) + " ↑"} & set(shown)
            assert number_text.number(step.alpha[r]) in shown
            assert number_text.number(step.l[r]) in shown
        for X in (step.S_ij, step.P_ij, step.O_acc, Q[step.rows], K[step.cols], V[step.cols]):
            assert {number_text.short(x) for x in X.ravel()} <= set(shown)
        assert f"tile ({step.i}, {step.j}) of 2 × 3 tiles" in shown


def test_a_picture_tells_about_the_row(rng):
    Q, K, V = inputs(rng, 6, 4, 2)
    steps = list(tiled.steps(Q, K, V, B_r=3, B_c=2, causal=True))
    told = lambda at, row: figure.draw(Q, K, V, steps, at, row=row).texts[-1]  # noqa: E731
    assert told(0, 0) == "Row 0 sees no key yet: m stays −∞, l and O_acc stay 0."
    assert told(0, 2).startswith("Row 2: the first scores it sees; their maximum is ")
    steps = list(tiled.steps(Q, K, V, B_r=3, B_c=1))
    k, r = next((k, r) for k, s in enumerate(steps) for r in range(3) if s.m[r] > s.m_old[r] > -np.inf)
    row = steps[k].rows.start + r
    assert f"Row {row}: the maximum grew from {number_text.number(steps[k].m_old[r])} to " in told(k, row)
    assert told(len(steps), None).startswith("Finished")
    with pytest.raises(IndexError, match="at is 99"):
        figure.draw(Q, K, V, steps, 99)


@pytest.mark.parametrize("N_q, N_k", [(0, 3), (3, 0), (1, 1), (64, 64), (9, 4)])
def test_any_size_can_be_drawn(rng, N_q, N_k):
    Q, K, V = inputs(rng, N_q, N_k, 2)
    steps = list(tiled.steps(Q, K, V, B_r=8, B_c=4, causal=True))
    for at in {0, telling_step(steps), len(steps)}:
        assert figure.draw(Q, K, V, steps, at, O=np.full_like(Q, np.nan)).png().startswith(b"\x89PNG")


def test_same_steps_same_bytes(rng):
    Q, K, V = inputs(rng, 8, 8, 4)
    pictures = {figure.draw(Q, K, V, tiled.steps(Q, K, V, B_r=4, B_c=2), 5)._repr_png_() for _ in range(2)}
    assert len(pictures) == 1


def test_neighbouring_numbers_of_the_state_do_not_touch(rng):
    Q, K, V = inputs(rng, 8, 8, 4)
    left = sorted(figure.COLUMNS.values())
    for scale in (0.5, 0.01, 30):  # numbers with leading zeros, and large ones
        steps = list(tiled.steps(Q, K, V, B_r=4, B_c=2, scale=scale))
        for at in range(len(steps)):
            picture = figure.draw(Q, K, V, steps, at)
            for x, y, text in picture.written:
                if x in left[:-2] and 190 < y < 316:  # row, m_old, m, alpha: each up to the next column
                    size = 9 if len(text) > list(figure.LONG.values())[left.index(x)] else 11
                    assert x + length(text, size, "bold") + 3 <= left[left.index(x) + 1], text


def test_a_picture_of_a_wrong_loop_shows_what_is_wrong(rng):
    Q, K, V = inputs(rng, 8, 8, 4)
    right = list(tiled.steps(Q, K, V, B_r=4, B_c=2))
    k, r = next((k, r) for k, s in enumerate(right) for r in range(4) if s.m[r] > s.m_old[r] > -np.inf)

    def my_steps(Q, K, V, B_r, B_c):
        for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c):
            yield step._replace(O_acc=step.O_acc + (step.alpha < 1)[:, None] * (step.j > 0))

    player = FlashPlayer.from_steps(my_steps, Q, K, V, B_r=4, B_c=2)
    picture = player.figure()
    row = right[k].rows.start + r
    assert picture.words.startswith(f"Step {k + 1} is wrong: O_acc of row {row} is ")
    assert re.search(r" in column \d, it should be ", picture.words)
    words = [f"w{n}" for n in range(8)]
    named = FlashPlayer.from_steps(my_steps, Q, K, V, B_r=4, B_c=2, words=words).figure().words
    assert f" of row {row} (w{row}) is " in named
    assert {number_text.short(x) for x in right[k].O_acc[r]} <= set(picture.texts) and "≠" in picture.texts
    assert "≠" not in FlashPlayer(Q, K, V).figure().texts
    assert not player.figure(at=k, row=row).words.startswith("Row")
