"""A learner's steps are played unchanged, with the true values next to them."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import masks, tiled
from flashlib.checks.chapters.tiling import solutions
from flashlib.types import Step
from flashlib.widgets import FlashPlayer
from flashlib.widgets.flash_player import learner
from flashlib.widgets.flash_player.source import PARTS, lines_of

SETTINGS = [
    dict(B_r=4, B_c=2, causal=False),
    dict(B_r=3, B_c=4, causal=True),  # ragged; the first rows see no key
    dict(B_r=5, B_c=5, causal=True),
]


def bare(step):
    """A step with only the fields that a learner must give."""
    return Step(step.i, step.j, step.m, step.l, step.O_acc)


def right(Q, K, V, *, B_r, B_c, causal, order, scale):
    for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c, causal=causal, order=order, scale=scale):
        yield bare(step)


def no_rescale_of_l(Q, K, V, B_r, B_c):
    for i in range(-(-len(Q) // B_r)):
        Q_i = Q[i * B_r : (i + 1) * B_r]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros_like(Q_i)
        for j in range(-(-len(K) // B_c)):
            K_j, V_j = K[j * B_c : (j + 1) * B_c], V[j * B_c : (j + 1) * B_c]
            S_ij = Q_i @ K_j.T / np.sqrt(Q.shape[1])
            m_old, m = m, np.maximum(m, S_ij.max(axis=1))
            alpha = np.exp(m_old - m)
            P_ij = np.exp(S_ij - m[:, None])
            l = l + P_ij.sum(axis=1)
            O_acc = alpha[:, None] * O_acc + P_ij @ V_j
            yield Step(i, j, m, l, O_acc)


def verdict_of(my_steps, **setting):
    return FlashPlayer.from_steps(my_steps, N=10, d=3, **setting).frames["learner"]


def play(my_steps, rng, **setting):
    inputs = [rng.normal(size=(N, 3)) for N in (10, 7, 7)]
    setting = {"order": "fa2", "scale": None, **setting}
    return learner.record(my_steps, *inputs, **setting), list(tiled.steps(*inputs, **setting))


@pytest.mark.parametrize("order", ["fa1", "fa2"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_right_steps_never_go_wrong_and_are_completed_to_the_library_s(rng, setting, order):
    recording, steps = play(right, rng, **setting, order=order)
    assert len(recording.steps) == len(steps)
    for given, step in zip(recording.steps, steps, strict=True):
        for name in Step._fields:
            if isinstance(getattr(step, name), np.ndarray):
                # FA1 stores O divided by l: reloaded, it is O_acc up to one more rounding
                np.testing.assert_allclose(getattr(given, name), getattr(step, name), rtol=1e-14, err_msg=name)
            else:
                assert getattr(given, name) == getattr(step, name), name
    found = learner.verdict(recording)
    assert found["first"] is None and not found["missed"] and not found["remark"] and found["O"] is None
    assert max(found["errors"]) < 1e-14


def test_the_truth_does_not_depend_on_the_order_of_tiles(rng):
    """Right to left is just as good: O_acc and l of a row block that has seen the same tiles are the same."""

    def backwards(Q, K, V, B_r, B_c):
        yield from (bare(step) for step in _columns_reversed(Q, K, V, B_r, B_c))

    recording, steps = play(backwards, rng, B_r=4, B_c=3, causal=False)
    found = learner.verdict(recording)
    assert found["first"] is None and not found["missed"]
    last = {step.i: step for step in steps}
    for step, true in zip(recording.steps, recording.true, strict=True):
        if step.j == 0:
            np.testing.assert_allclose(true.O_acc / true.l[:, None], (last[step.i].O_acc.T / last[step.i].l).T)


def _columns_reversed(Q, K, V, B_r, B_c):
    """The steps of the keys in blocks from the right; the ragged block stays the last one."""
    blocks = list(tiled.blocks(len(K), B_c))
    order = np.concatenate([np.arange(b.start, b.stop) for b in reversed(blocks)])
    sizes = np.cumsum([0, *(b.stop - b.start for b in reversed(blocks))])
    for i, rows in enumerate(tiled.blocks(len(Q), B_r)):
        for n in range(len(blocks)):
            seen = order[: sizes[n + 1]]
            *_, step = tiled.steps(Q[rows], K[:][seen], V[:][seen], B_r=B_r, B_c=len(seen))
            yield step._replace(i=i, j=len(blocks) - 1 - n)


def test_a_missing_rescale_is_found_where_the_maximum_first_grows(rng):
    recording, steps = play(no_rescale_of_l, rng, B_r=4, B_c=2, causal=False)
    grown = next(k for k, s in enumerate(steps) if ((s.m > s.m_old) & (s.m_old > -np.inf)).any())
    step = steps[grown]
    row = step.rows.start + int(np.argmax((step.m > step.m_old) & (step.m_old > -np.inf)))
    assert learner.verdict(recording)["first"] == [grown, "l", row]
    for given, true, right_one in zip(recording.steps, recording.true, steps, strict=True):
        np.testing.assert_allclose(true.l, right_one.l, rtol=1e-14)
        np.testing.assert_allclose(given.O_acc, right_one.O_acc, rtol=1e-12)  # the bug is in l only


def test_yielded_arrays_are_copied(rng):
    """State is usually updated in place; each step must show its values at the time."""

    def in_place(Q, K, V, B_r, B_c):
        state = {}
        for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c):
            m, l, O_acc = state.setdefault(step.i, (step.m.copy(), step.l.copy(), step.O_acc.copy()))
            m[:], l[:], O_acc[:] = step.m, step.l, step.O_acc
            yield Step(step.i, step.j, m, l, O_acc)

    assert learner.verdict(play(in_place, rng, B_r=4, B_c=2, causal=False)[0])["first"] is None


def test_a_learner_s_code_cannot_change_the_inputs(rng):
    def careless(Q, K, V, B_r, B_c):
        yield from right(Q, K, V, B_r=B_r, B_c=B_c, causal=False, order="fa2", scale=None)
        Q[:], K[:], V[:] = 0, 0, 0

    X = [rng.normal(size=(6, 2)) for _ in range(3)]
    before = [x.copy() for x in X]
    widget = FlashPlayer.from_steps(careless, *X)
    for _ in range(2):
        assert widget.frames["learner"]["first"] is None
        widget.B_c += 1
    assert all(np.array_equal(x, y) for x, y in zip(X, before, strict=True))


def test_only_its_parameters_are_passed_and_controls_follow():
    seen = []

    def two(Q, K, V, B_r, B_c):
        seen.append((B_r, B_c))
        yield from right(Q, K, V, B_r=B_r, B_c=B_c, causal=False, order="fa2", scale=None)

    widget = FlashPlayer.from_steps(two)
    assert widget.frames["controls"] == ["B_r", "B_c", "N", "d"]
    widget.B_c = 3
    assert seen == [(4, 2), (4, 3)]
    assert FlashPlayer.from_steps(right).frames["controls"] == ["B_r", "B_c", "causal", "order", "scale", "N", "d"]
    assert FlashPlayer.from_steps(lambda Q, K, V, **setting: right(Q, K, V, **setting)).frames["controls"][:4] == [
        *("B_r", "B_c", "causal", "order")
    ]


def test_bytes_read_are_those_of_the_learner_s_own_loads(rng):
    recording, _ = play(no_rescale_of_l, rng, B_r=4, B_c=2, causal=False)
    by_hand = 10 * 3 * 8 + 3 * 2 * (7 * 3 * 8)  # Q once; K and V for each of three row blocks
    assert recording.read[-1] == by_hand


def test_a_missed_tile_is_named(rng):
    def skips(Q, K, V, **setting):
        yield from (step for step in right(Q, K, V, **setting) if (step.i, step.j) != (1, 1))

    found = learner.verdict(play(skips, rng, B_r=4, B_c=2, causal=False)[0])
    assert found["missed"] == [[1, 1]]
    assert found["first"] is not None  # the steps after it hold the tile that was never yielded
    assert found["O"] is None  # and so does O


def test_a_forgotten_last_tile_leaves_O_wrong_though_each_step_is_right(rng):
    def forgets(Q, K, V, **setting):
        yield from (step for step in right(Q, K, V, **setting) if step.j < 3)

    recording, _ = play(forgets, rng, B_r=4, B_c=2, causal=False)
    found = learner.verdict(recording)
    assert found["first"] is None
    assert found["missed"] == [[0, 3], [1, 3], [2, 3]]
    difference = np.abs(recording.O - recording.O_true).max()
    assert difference > 0.01 and found["O"] == [difference, 0]


def test_a_tile_counted_twice_is_wrong(rng):
    def twice(Q, K, V, B_r, B_c):
        step = next(tiled.steps(Q, K, V, B_r=B_r, B_c=B_c))
        yield bare(step)
        yield Step(0, 0, step.m, 2 * step.l, 2 * step.O_acc)

    assert learner.verdict(play(twice, rng, B_r=4, B_c=2, causal=False)[0])["first"] == [1, "l", 0]


def test_nan_is_wrong():
    def nan(Q, K, V, B_r, B_c):
        for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c):
            yield Step(step.i, step.j, step.m, step.l, step.O_acc * np.nan)

    assert verdict_of(nan)["first"] == [0, "O_acc", 0]


def test_an_endless_generator_is_stopped():
    def endless(Q, K, V, B_r, B_c):
        step = bare(next(tiled.steps(Q, K, V, B_r=B_r, B_c=B_c)))
        while True:
            yield step

    found = verdict_of(endless)
    assert len(found["errors"]) == 3 * 5
    assert found["remark"] == "endless goes on after 15 steps, one for each tile of S; it was stopped"


def test_an_exception_ends_the_play_and_is_reported():
    def breaks(Q, K, V, B_r, B_c):
        for k, step in enumerate(tiled.steps(Q, K, V, B_r=B_r, B_c=B_c)):
            if k == 3:
                raise IndexError("list index out of range")
            yield bare(step)

    found = verdict_of(breaks)
    assert len(found["errors"]) == 3
    assert found["remark"] == "breaks raised IndexError: list index out of range"
    assert found["O"][1] == 0 and len(found["missed"]) == 12


one = np.ones(4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "yielded a int without i; yield Step"),
        ((0, 0, one, one, one), "yielded a tuple without i; yield Step"),
        (Step(3, 0, one, one, one), "a step with i = 3; its blocks are 0 .. 2"),
        (Step(0, -1, one, one, one), "a step with j = -1; its blocks are 0 .. 4"),
        (Step(0, 0.0, one, one, one), "a step with j = 0.0"),
        (
            Step(0, 0, np.ones((4, 1)), one, np.ones((4, 3))),
            r"m has shape \(4, 1\) at step 0, tile \(0, 0\); .*\(4,\)",
        ),
        (Step(0, 0, one, None, np.ones((4, 3))), "l has type NoneType .* shape"),
        (Step(0, 0, one, one, "O"), r"O_acc has type str .*\(4, 3\)"),
        (Step(0, 0, one, one, np.ones((4, 3)), S_ij=one), r"S_ij has shape \(4,\) .*\(4, 2\)"),
    ],
    ids=str,
)
def test_anything_that_is_not_a_step_is_refused_in_a_sentence(given, words):
    assert re.search(words, FlashPlayer.from_steps(lambda Q, K, V: iter([given]), N=10, d=3).problem)


@pytest.mark.parametrize(
    ("my_steps", "words"),
    [
        (3, "my_steps is a int; pass the function itself"),
        (lambda Q, K, V: iter(()), "yielded nothing"),
        (lambda Q, K, V: None, "raised TypeError: 'NoneType' object is not iterable"),
        (lambda Q, K, V: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda Q, K: iter(()), "raised TypeError: .* takes 2 positional arguments but 3 were given"),
    ],
)
def test_anything_that_cannot_run_is_refused_in_a_sentence(my_steps, words):
    assert re.search(words, FlashPlayer.from_steps(my_steps).problem)


def test_a_setting_that_breaks_it_is_refused_and_the_last_run_stays():
    def even_only(Q, K, V, B_r, B_c):
        if B_c % 2:
            raise ValueError("B_c must be even")
        yield from right(Q, K, V, B_r=B_r, B_c=B_c, causal=False, order="fa2", scale=None)

    widget = FlashPlayer.from_steps(even_only)
    frames = widget.frames
    widget.B_c = 3
    assert widget.frames is frames and widget.B_c == 2
    assert widget.refused == "even_only raised ValueError: B_c must be even. It stays 2."
    widget.B_c = 4
    assert widget.refused == "" and widget.frames["T_c"] == 2


def test_anything_with_the_right_attributes_is_a_step():
    def plain(Q, K, V, B_r, B_c):
        for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c):
            yield SimpleNamespace(i=np.int64(step.i), j=step.j, m=list(step.m), l=step.l, O_acc=step.O_acc)

    assert verdict_of(plain)["first"] is None


@pytest.mark.parametrize("source", [tiled.fa1_steps, tiled.fa2_steps, no_rescale_of_l])
def test_the_line_of_each_part_is_found_by_the_name_it_assigns(source):
    lines = lines_of(source, causal=False)
    assert list(lines) == list(PARTS)
    expected = {
        "scores": "S_ij =",
        "maximum": "np.maximum(",
        "rescale": "alpha = np.exp(",
        "weights": "P_ij = np.exp(",
    }
    for part, words in expected.items():
        assert sum(words in line for line in lines[part]) == 1, part
    assert [line.partition(" =")[0] for line in lines["add"]] == ["l", "O_acc"]
    assert len(lines["store"]) > 0 or source is no_rescale_of_l


def test_a_loop_is_shown_by_its_name_and_its_lines(rng):
    frames = FlashPlayer.from_loop(solutions.my_fa2, *rng.normal(size=(3, 8, 4)), scale=0.5).frames
    assert frames["learner"]["name"] == "my_fa2" and frames["learner"]["first"] is None
    assert frames["lines"] == lines_of(solutions.my_fa2, causal=False)


def test_lines_under_if_causal_are_those_of_a_causal_run():
    run = {causal: lines_of(solutions.my_fa2, causal=causal)["scores"] for causal in (False, True)}
    assert len(run[False]) == 1
    assert run[True] == [*run[False], "S_ij = np.where(is_visible(rows, cols, past), S_ij, -np.inf)"]


def test_a_loop_inside_the_step_does_not_hide_its_lines():
    def with_a_loop(Q, K, V):
        m = 0
        for j in range(2):
            S_ij = Q @ K[j]
            for r in range(3):
                m = max(m, S_ij[r])
            yield j, m

    lines = lines_of(with_a_loop, causal=False)
    assert lines["scores"] == ["S_ij = Q @ K[j]"] and lines["maximum"] == ["m = max(m, S_ij[r])"]


def test_without_source_there_are_no_lines():
    assert not any(lines_of(len, causal=False).values())
    typed = {}
    exec("def f(Q, K, V):\n    for i in range(2):\n        S_ij = Q\n        yield S_ij", typed)
    assert not any(lines_of(typed["f"], causal=False).values())


def test_it_opens_at_a_step_and_another_tiling_from_its_start():
    player = FlashPlayer.from_steps(tiled.steps, B_r=4, B_c=2, opens_at=3)
    assert player.frames["opens_at"] == 3
    player.B_c = 4
    assert player.frames["opens_at"] is None
    assert FlashPlayer.from_steps(tiled.steps, B_r=4, B_c=2, opens_at=99).frames["opens_at"] is None


def test_a_mask_is_passed_on_and_used_for_the_truth():
    mask = masks.window(2, 0) & masks.softcap(0.5)
    assert repr(FlashPlayer.from_steps(tiled.steps, mask=mask)).endswith("right at each)")
    deaf = FlashPlayer.from_steps(right, mask=mask)  # the function takes no mask
    assert re.search("wrong from step 1 on", repr(deaf))

    def loop(Q, K, V, O, B_r, B_c, mask, scale):
        return tiled.fa2_steps(Q, K, V, O, np.empty(len(Q)), B_r, B_c, mask, scale or Q.shape[1] ** -0.5)

    Q, K, V = np.random.default_rng(0).normal(size=(3, 8, 4))
    for causal in (False, True):
        assert "right at each" in repr(
            FlashPlayer.from_loop(loop, Q, K, V, mask=masks.window(2, 1), causal=causal)
        )
