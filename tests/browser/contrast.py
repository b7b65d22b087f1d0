"""How well the text of a widget stands out from its background."""

# Everything on the page with text, and the colours in which it is really drawn.
CONTRASTS = """root => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const rgba = (colour) => known.get(colour) ?? known.set(colour, drawn(colour)).get(colour);
    const drawn = (colour) => {
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
    for (const element of root.querySelectorAll("*")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || element.tagName === "OPTION") continue;
        if (!element.checkVisibility({ checkVisibilityCSS: true })) continue;
        const back = background(element);
        const front = over(rgba(getComputedStyle(element).color), back);
        const [a, b] = [luminance(front), luminance(back)].sort((x, y) => y - x);
        const where = [element.getAttribute("class"), element.textContent, back.map(Math.round).join()];
        found.push([(a + 0.05) / (b + 0.05), ...where]);
    }
    return found;
}"""


def too_low(root, least=4.5):
    """Return the texts inside root whose contrast is below the least: [contrast, class, text, background].

    Raises AssertionError if nothing with text is found.
    """
    found = root.evaluate(CONTRASTS)
    assert found, "no text is shown"
    return [text for text in found if text[0] < least]
