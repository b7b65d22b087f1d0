"""A picture of numbers shows its pixels, and is transparent where there are none."""

import numpy as np
import pytest

from flashlib.widgets.widget import FOLDER

pytestmark = pytest.mark.browser

SHOWN = """async ([script, pixels, width, height]) => {
    const { pictureOf } = await import(`data:text/javascript,${encodeURIComponent(script)}`);
    const image = new Image();
    image.src = pictureOf(Uint32Array.from(pixels), width, height).slice(4, -1);
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return [...new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)];
}"""


@pytest.mark.parametrize("width, height", [(1, 1), (3, 7), (127, 61)])
def test_a_picture_shows_its_pixels(browser, width, height):
    pixels = np.random.default_rng(0).integers(2**24, size=width * height) | 0xFF000000
    pixels[1::3] = 0  # transparent
    script = (FOLDER / "shared" / "picture.js").read_text(encoding="utf-8")
    page = browser.new_page()
    try:
        assert page.evaluate(SHOWN, [script, pixels.tolist(), width, height]) == pixels.tolist()
    finally:
        page.close()
