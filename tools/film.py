"""Film FlashPlayer in JupyterLab and Chromium: the README's animation, in the light and the dark theme.

Every picture is a screenshot of the widget, with its animations paused at fractions of their duration.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, this is tools/

from tests.browser import lab as browsing

CELL = "from flashlib.widgets import FlashPlayer\nFlashPlayer()"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTH = 930  # of the widget, in pixels
STEPS = (1, 3)  # the steps to film: one that rescales, and the last of the row block, which stores
PARTS = (0.2, 0.5, 0.8)  # of the duration of a motion
MOVING, STILL, TELLING = 90, 600, 1600  # ms: each picture of a motion, its end, and the end of a rescale

# Play the step that ends at a frame and pause its motion; false if nothing moves.
HELD = """(root, [frame, part]) => {
    const { transport } = root.flashWidget;
    transport.seek(frame - 1);
    transport.step(1);
    const moving = root.getAnimations({ subtree: true });
    for (const animation of moving) {
        animation.pause();
        animation.currentTime = part * animation.effect.getTiming().duration;
    }
    return moving.length > 0;
}"""


def opened_player(lab):
    """Run the cell; return the player, WIDTH pixels wide."""
    lab.page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")  # no callouts
    if errors := lab.run_all():
        raise RuntimeError(errors[0])
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    player = lab.page.locator(".flash-player")
    browsing.set_width(player, WIDTH)
    return player


def film(player):
    """Return the pictures, and the ms for which each is shown."""
    player.scroll_into_view_if_needed()
    box = player.bounding_box()
    parts = player.evaluate("root => root.flashWidget.frames.timeline")
    pictures, times = [], []

    def take(time):
        png = player.page.screenshot(clip=box)  # a screenshot of an element would wait until nothing moves
        pictures.append(Image.open(io.BytesIO(png)).convert("RGB"))
        times.append(time)

    for frame, (step, part) in enumerate(parts):
        if step not in STEPS:
            continue
        for at in PARTS:
            if player.evaluate(HELD, [frame, at]):
                take(MOVING)
        player.evaluate("(root, frame) => root.flashWidget.transport.seek(frame)", frame)
        take(TELLING if part == "rescale" else STILL)
    return pictures, times


def store(pictures, times, path):
    """Save an animation that repeats forever."""
    picture, *others = pictures
    picture.save(path, save_all=True, append_images=others, duration=times, quality=70, loop=0)
    print(f"{path.name}: {len(times)} pictures, {path.stat().st_size} bytes")


def main():
    """Film both themes into docs/; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        try:
            with browsing.driver() as driver, browsing.served(folder) as address:
                with (
                    browsing.chromium(driver) as browser,
                    browsing.opened(browser, address, folder, "film.ipynb", [CELL]) as lab,
                ):
                    player = opened_player(lab)
                    for theme, name in THEMES.items():
                        lab.theme(name)
                        store(*film(player), browsing.ROOT / "docs" / f"player-{theme}.webp")
        except browsing.NoBrowser as reason:
            print(reason)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
