"""In an invented language no text of a widget or a card stays English, and all of them play."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("latex2mathml")
pytest.importorskip("cloudpickle")

from tests.language import marked

pytestmark = pytest.mark.browser

STEPS = 40  # of a run, evenly
# Everything read outside of marks, as text and as attributes; where a text was cut, the end of a mark is unknown.
READ = """root => {
    const found = new Set();
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let [depth, line, holder] = [0, "", null];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.parentElement.closest("code, pre, option[value]")) continue;
        const block = node.parentElement.closest("div, p, td, th, li, h3, button, label, text");
        if (block !== holder) {
            found.add(line);
            [line, holder] = ["", block];
        }
        line += " ";
        for (const sign of node.data) {
            if ("⟦⟧".includes(sign)) [depth, line] = [depth + (sign === "⟦" ? 1 : -1), `${line} `];
            else if (sign === "…") depth = 0;
            else if (!depth) line += sign;
        }
    }
    found.add(line);
    const names = ["title", "aria-label", "placeholder", "aria-valuetext", "label"];
    for (const e of [root, ...root.querySelectorAll("*")])
        for (const name of names) if (e.hasAttribute(name)) found.add(e.getAttribute(name));
    return [...found];
}"""
STEPPED = """(root, steps) => {
    const { transport } = root.flashWidget;
    if (!transport || transport.position >= transport.last) return false;
    transport.step(Math.max(1, Math.floor(transport.last / steps)));
    return true;
}"""
# Set by a reader's own code, and shown unchanged.
GIVEN = {"MaskLab": {"band", "strided", "triangles"}}


def test_no_text_of_a_widget_or_a_card_escapes(browser, tmp_path):
    marked.run(marked.write(tmp_path), "tests.language.page", tmp_path)
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    places = page.locator("[data-place]").all()
    left = {}
    for place in places:
        name, root = place.get_attribute("data-place"), place.locator(".flash-widget").first
        texts = set(root.evaluate(READ))
        while root.evaluate(STEPPED, STEPS):
            texts |= set(root.evaluate(READ))
        words = {word for text in texts for word in marked.escaped(text)} - GIVEN.get(name, set())
        if words:
            left[name] = sorted(words)
    page.close()
    assert complaints == [] and len(places) > 20
    assert not left, "\n".join(f"{name}: {words}" for name, words in left.items())
