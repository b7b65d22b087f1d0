"""Prose in JupyterLab: lines of a readable length, and nothing cut off."""

import pytest

from flashlib.chapters import named

pytestmark = pytest.mark.browser

WIDE = {"width": 1920, "height": 6000}  # also high, since JupyterLab lays out only what is in view
MOST = 100  # characters of a line, not counting formulas

# The lines of the paragraphs and lists on the page, and elements that extend beyond their paragraph.
LINES = """() => {
    const lines = [], range = document.createRange();
    for (const block of document.querySelectorAll(".jp-MarkdownOutput :is(p, li)")) {
        const found = new Map();
        const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
        for (let node; (node = texts.nextNode()); ) {
            if (node.parentElement.closest("table, pre, mjx-container, details:not([open])")) continue;
            for (let k = 0; k < node.length; k++) {
                range.setStart(node, k);
                range.setEnd(node, k + 1);
                const box = range.getClientRects()[0];
                if (!box?.width) continue;
                const line = Math.round(box.bottom / 8);
                found.set(line, (found.get(line) ?? "") + node.data[k]);
            }
        }
        lines.push(...found.values());
    }
    const formulas = [...document.querySelectorAll(".jp-MarkdownOutput p mjx-container")];
    const right = (element) => element.getBoundingClientRect().right;
    const room = (formula) => right(formula.closest(".jp-MarkdownOutput"));
    const cut = formulas.filter((formula) => formula.firstChild && right(formula.firstChild) > room(formula));
    return [lines.map((line) => line.trim()), cut.map((f) => f.textContent)];
}"""


@pytest.mark.parametrize("slug", [named(name).slug for name in ("attention", "backward")])
def test_lines_of_prose_have_a_readable_length(open_lab, slug):
    with open_lab(f"{slug}.ipynb") as lab:
        lab.page.set_viewport_size(WIDE)
        lab.page.wait_for_function(
            "() => document.querySelectorAll('.jp-MarkdownOutput p:has(mjx-container)').length > 20"
        )
        lines, cut = lab.page.evaluate(LINES)
    assert len(lines) > 20 and cut == []
    longest = max(lines, key=len)
    assert 60 < len(longest) <= MOST, longest
