"""What moves in FlashPlayer, in a real browser: slices between HBM and SRAM, and the sums that alpha shrinks."""

import pytest

pytest.importorskip("anywidget")

from flashlib.pictures.steps import grown
from tests.browser.playing import at_start, data, four_digits, received, seek, steps_of, timeline, value

pytestmark = pytest.mark.browser

SMALL, RAGGED = range(2)  # the players of the page
CELLS = [
    "from flashlib.widgets import FlashPlayer\nFlashPlayer(N=7, d=3, B_r=4, B_c=2)",
    "FlashPlayer(N=9, d=4, B_r=4, B_c=2, seed=5)",
]


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("player_motion.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab


@pytest.fixture
def first(lab):
    return at_start(lab, SMALL)


# Play the step that ends at a frame, pause its motions at a share of their time, and return where they are then.
HELD = """(player, [frame, part, selector]) => {
    const { transport } = player.flashWidget;
    transport.seek(frame - 1);
    transport.step(1);
    for (const animation of player.getAnimations({ subtree: true })) {
        animation.pause();
        animation.currentTime = part * animation.effect.getTiming().duration;
    }
    const box = player.querySelector(selector).getBoundingClientRect();
    return [box.left, box.top, box.width, box.height];
}"""
SLICE = ".flash-strip:nth-child({}) .flash-here"
TILE = '.flash-tiles .flash-matrix[data-name="{}"]'


def frame_of(player, part, k=1):
    return next(n for n, now in enumerate(timeline(player)) if now == [k, part])


def test_slices_travel_from_hbm_to_sram_at_a_load(first):
    frame = frame_of(first, "load")
    for place, (name, moves) in enumerate([("Q_i", False), ("K_j", True), ("V_j", True)], start=1):
        tile = TILE.format(name)
        own = first.evaluate(HELD, [frame + 1, 1, tile])
        in_hbm = first.evaluate(HELD, [frame, 0, SLICE.format(place)])
        start, middle, end = (first.evaluate(HELD, [frame, part, tile]) for part in (0, 0.5, 1))
        assert end == pytest.approx(own, abs=1)
        assert start == pytest.approx(in_hbm if moves else own, abs=1)  # Q_i came in the last step
        assert (own[1] > middle[1] > start[1]) == moves


def test_o_travels_back_at_a_store(first):
    frame = next(n for n, (_, part) in enumerate(timeline(first)) if part == "store")
    start, end = (first.evaluate(HELD, [frame, part, ".flash-air > .flash-matrix"]) for part in (0, 1))
    assert end == pytest.approx(first.evaluate(HELD, [frame, 1, SLICE.format(4)]), abs=5)  # less its border
    assert start[1] > end[1] + 100


def test_the_sums_shrink_by_alpha(lab):
    player = at_start(lab, RAGGED)
    frames, sent = received(player)
    steps = steps_of(frames, sent)
    k = next(k for k, step in enumerate(steps) if grown(step).any())
    player.evaluate("player => { player.flashWidget.picked = null; }")
    bar = '.flash-track[data-name="l"] .flash-kept'
    frame = frame_of(player, "rescale", k)
    before, after = (player.evaluate(HELD, [frame, part, bar])[2] for part in (0, 1))
    alpha = steps[k].alpha[int(data(player, "row")) - steps[k].rows.start]
    assert after / before == pytest.approx(alpha, rel=0.02)
    assert value(player.locator(".flash-factor").inner_text().removeprefix("× ")) == four_digits(alpha)


def test_nothing_moves_when_it_scrubs_or_plays_fast_and_the_frame_is_the_same(first):
    moving = "player => player.getAnimations({ subtree: true }).length"
    load = frame_of(first, "load")
    seek(first, load)
    assert first.evaluate(moving) == 0
    shown = "player => player.querySelector('.flash-body').innerText"
    still = first.evaluate(shown)
    seek(first, load - 1)
    first.locator(".flash-speed").select_option("2")
    times = first.evaluate(
        """player => {
            player.flashWidget.transport.step(1);
            const moving = player.getAnimations({ subtree: true });
            return moving.map((animation) => animation.effect.getTiming().duration);
        }"""
    )
    assert set(times) == {300}  # ms, at two frames a second
    first.page.wait_for_function(f"player => !({moving})(player)", arg=first.element_handle())
    assert first.evaluate(shown) == still
    first.locator(".flash-speed").select_option("10")
    seek(first, load - 1)
    first.evaluate("player => player.flashWidget.transport.step(1)")
    assert first.evaluate(moving) == 0
    first.locator(".flash-speed").select_option("story pace")


# The middle of each element of a selector while the motion to a frame is paused at a share of its time.
MIDDLES = """(player, [frame, part, selector]) => {
    const { transport } = player.flashWidget;
    transport.seek(frame - 1);
    transport.step(1);
    for (const animation of player.getAnimations({ subtree: true })) {
        animation.pause();
        animation.currentTime = part * animation.effect.getTiming().duration;
    }
    return [...player.querySelectorAll(selector)].map((element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        return [left + width / 2, top + height / 2, width, Number(getComputedStyle(element).opacity)];
    });
}"""
HOLD = 5 / 12  # of the time: the factor has arrived, and the shrink begins


def rescale(player):
    """The step of the first rescale, its frame, and the described row."""
    frames, sent = received(player)
    k, step = next((k, step) for k, step in enumerate(steps_of(frames, sent)) if grown(step).any())
    player.evaluate("player => { player.flashWidget.picked = null; }")
    frame = frame_of(player, "rescale", k)
    seek(player, frame)
    return step, frame, int(data(player, "row")) - step.rows.start


def test_the_factor_goes_from_alpha_to_l_and_o_acc_which_shrink_in_their_row(lab):
    player = at_start(lab, RAGGED)
    step, frame, r = rescale(player)
    row = f".flash-rows tbody tr:nth-child({r + 1}) "
    places = [row + f'td[data-name="{name}"] > span:first-child' for name in ("alpha", "l")]
    targets = [places[1] + ":not(.flash-copy)", row + ".flash-matrix:not(.flash-copy)"]
    start = player.evaluate(MIDDLES, [frame, 0, ".flash-flying"])
    [alpha] = player.evaluate(MIDDLES, [frame, 0, places[0]])
    assert len(start) == 2 and all(abs(y - alpha[1]) < 8 for _, y, *_ in start)
    landed = player.evaluate(MIDDLES, [frame, HOLD + 0.03, ".flash-flying"])  # a little later, because of easing
    goals = [player.evaluate(MIDDLES, [frame, 1, target])[0] for target in targets]
    for (x, y, *_), goal in zip(landed, goals, strict=True):
        assert (x, y) == pytest.approx(goal[:2], abs=4)
    copies = player.evaluate(MIDDLES, [frame, 0.2, row + ".flash-copy"])
    shrunk = player.evaluate(MIDDLES, [frame, 0.98, row + ".flash-copy"])
    for before, after in zip(copies, shrunk, strict=True):
        assert before[3] == 1 and after[3] < 0.1
        assert after[2] / before[2] == pytest.approx(max(step.alpha[r], 0.15), rel=0.1)
    assert value(player.locator(row + "td[data-name='l'] .flash-copy").inner_text()) == four_digits(step.l_old[r])
    seek(player, frame)
    assert player.locator(".flash-copy, .flash-flying").count() == 0


def test_a_rescale_lasts_two_seconds_and_its_shrink_700_ms(lab):
    player = at_start(lab, RAGGED)
    _, frame, _ = rescale(player)
    lasts = player.evaluate(
        """player => {
            const { story, last } = player.flashWidget.transport;
            return Array.from({ length: last }, (_, frame) => [story.lasts(frame), story.moves(frame)]);
        }"""
    )
    assert lasts[frame] == [2000, 1200] and (1 - HOLD) * 1200 == pytest.approx(700)
    marks = player.evaluate("player => player.flashWidget.frames.marked()")
    assert {k for k, (time, _) in enumerate(lasts) if time == 2000} == set(marks)
    assert {time for time, _ in lasts} == {400, 2000}


def test_the_story_skips_only_parts_of_steps_without_a_rescale(lab):
    player = at_start(lab, RAGGED)
    frames = timeline(player)
    marks = player.evaluate("player => player.flashWidget.frames.marked()")
    told = player.evaluate(
        """player => {
            const { transport } = player.flashWidget;
            const told = [];
            for (let frame = 0; frame < transport.last; frame = transport.story.next(frame)) told.push(frame);
            return told;
        }"""
    )
    grew = {frames[frame][0] for frame in marks}
    for frame, (k, part) in enumerate(frames):
        assert (frame in told) == (k == 0 or k in grew or part in ("load", "add", "store")), (k, part)
