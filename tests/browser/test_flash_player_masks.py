"""FlashPlayer with a mask, in a real browser: the hatched scores are those of the mask."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib import masks

pytestmark = pytest.mark.browser

N = 12
MASKS = {
    "a pack": "masks.causal() & masks.documents([0] * 5 + [1] * 3 + [2] * 4)",
    "stripes, capped": "masks.from_function(lambda r, c: (r - c) % 3 == 0) & masks.softcap(2.0)",
}
DRAWN = """(path, N) => Array.from({ length: N * N }, (_, k) => {
    const svg = path.ownerSVGElement, box = { w: svg.width.baseVal.value / N, h: svg.height.baseVal.value / N };
    const point = svg.createSVGPoint();
    [point.x, point.y] = [(k % N + 0.5) * box.w, (Math.floor(k / N) + 0.5) * box.h];
    return path.isPointInFill(point);
})"""


@pytest.fixture(scope="module", params=MASKS, ids=str)
def shown(request, open_lab):
    cells = [
        "from flashlib import masks\nfrom flashlib.widgets import FlashPlayer\n"
        f"mask = {MASKS[request.param]}\nFlashPlayer(N={N}, B_r=4, B_c=3, mask=mask)"
    ]
    with open_lab(f"masked-{len(request.param)}.ipynb", cells=cells) as lab:
        assert lab.run_all() == []
        yield eval(MASKS[request.param], {"masks": masks}), lab.page.locator(".flash-player")


def test_the_hatched_scores_are_the_hidden_ones(shown):
    mask, player = shown
    tiles = mask.on(N, N)
    drawn = player.locator(".flash-grid .flash-hidden").evaluate(DRAWN, N)
    assert np.array_equal(np.reshape(drawn, (N, N)), ~tiles.seen(*tiles.all))
    picture, field = (player.locator(f".flash-grid {x}").bounding_box() for x in ("svg", ".flash-grid-field"))
    assert all(abs(picture[side] - field[side]) < 1 for side in ("x", "y"))  # the current tile is in its place
    marks = player.locator(".flash-tile-marks").inner_text()
    assert "score masked" in marks
    T = sum(not tiles.hidden(slice(i, i + 4), slice(j, j + 3)) for i in range(0, N, 4) for j in range(0, N, 3))
    assert int(player.get_attribute("data-tiles")) == T and ("tile skipped" in marks) == (T < 12)


def test_the_mask_cannot_be_switched_and_changed_scores_are_announced(shown):
    mask, player = shown
    assert player.get_by_text("B", exact=False).count() > 0
    assert player.get_by_label("causal").count() == 0
    assert ("changed by the mask" in player.locator(".flash-grid header").inner_text()) == mask.changes_scores
    player.focus()
    for _ in range(3):
        player.page.keyboard.press("ArrowRight")
    assert "NaN" not in player.inner_text()
