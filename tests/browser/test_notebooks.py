"""The chapters with widgets, in JupyterLab, in a real browser."""

import pytest

pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CHAPTERS = ["00_start_here", "01_naive_softmax", "02_safe_softmax", "03_online_softmax", "05_one_pass", "06_tiling"]

# Everything on the page that has text in it, with the colours it is really drawn in.
CONTRASTS = """player => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map((c) => top[c] * top[3] + below[c] * (1 - top[3]));
    const background = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
        return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const luminance = (rgb) => {
        const [r, g, b] = rgb.map((x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const element of player.querySelectorAll("*")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || element.tagName === "OPTION") continue;
        if (!element.checkVisibility({ checkVisibilityCSS: true })) continue;
        const back = background(element);
        const front = over(rgba(getComputedStyle(element).color), back);
        const [a, b] = [luminance(front), luminance(back)].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), element.className, element.textContent, back.map(Math.round).join()]);
    }
    return found;
}"""


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_runs_and_its_widgets_are_drawn(open_lab, name):
    with open_lab(f"{name}.ipynb") as lab:
        lab.page.locator(".jp-Notebook h1").first.wait_for()
        assert lab.run_all() == []
        widgets = lab.page.locator(".flash-widget")
        for k in range(widgets.count()):
            widgets.nth(k).scroll_into_view_if_needed()
            assert int(widgets.nth(k).get_attribute("data-loads")) == 1
            assert widgets.nth(k).bounding_box()["height"] > 100
