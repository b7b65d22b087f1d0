"""Every widget of the course, all in one page: by keyboard and screen reader, at any width, in both themes."""

import re
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")

import axe_playwright_python

from flashlib import widgets
from tests.browser.contrast import too_low

pytestmark = pytest.mark.browser

NAMES = widgets.__all__
THEMES = ["JupyterLab Light", "JupyterLab Dark"]
SIZE = {"width": 1440, "height": 1000}
WRONG = {  # for each class, one argument that is wrong for it
    "BackwardPlayer": {"wrt": "v"},
    "ComparePlayers": {"N": 0},
    "FlashPlayer": {"B_r": 0},
    "MergeTree": {"cuts": (99,)},
    "OnlineSoftmaxLab": {"x": ()},
    "OverflowLab": {"dtype": "int8"},
    "TilingLab": {"N": 0},
}
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
CONTROLS = r"button|checkbox|combobox|grid|link|listbox|radio|searchbox|slider|spinbutton|switch|tab|textbox"

# What axe finds in one widget; the rest of the page belongs to JupyterLab.
VIOLATIONS = """async (root) => {
    const { violations, passes } = await axe.run(root);
    if (!passes.length) return ["axe has looked at nothing"];
    return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
}"""

# Where Tab must stop: what is visible, enabled and not taken out; of the radio buttons of a group only one.
STOPS = """root => {
    const all = "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]";
    const radios = (e) => [...root.querySelectorAll("input[type=radio]")].filter(({ name }) => name === e.name);
    const stop = (e) => (radios(e).find(({ checked }) => checked) ?? radios(e)[0]) === e;
    return [...root.querySelectorAll(all)].filter(
        (e) => e.tabIndex >= 0 && !e.matches(":disabled") && e.checkVisibility({ visibilityProperty: true }) &&
            (e.type !== "radio" || stop(e)),
    );
}"""

FOCUS = """root => {
    const e = document.activeElement;
    return !root.contains(e) ? null : e === root ? "root" : String(window.stops.indexOf(e));
}"""

# Words or marks outside the widget, in a box too small for them, or on other words; what scrolls may be larger.
MISPLACED = """root => {
    const found = [];
    const told = (why, e) => found.push(`${why}: ${e.outerHTML.slice(0, 150)}`);
    const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX);
    const reachable = (e) => e.tabIndex >= 0 || e.querySelector("button, input, select, textarea, [tabindex]");
    if (root.scrollWidth > root.clientWidth) told(`${root.scrollWidth} px in ${root.clientWidth} px`, root);
    const box = root.getBoundingClientRect();
    for (const e of root.querySelectorAll("*")) {
        if (e.closest(".flash-spoken, defs") || !e.checkVisibility({ visibilityProperty: true })) continue;
        const style = getComputedStyle(e);
        const own = e.getBoundingClientRect();
        let holder = e.parentElement;
        while (holder !== root && !scrolls(holder)) holder = holder.parentElement;
        const inside = own.left >= box.left - 1 && own.right <= box.right + 1;
        const beyond = !inside && own.width > 0 && style.opacity !== "0";
        if (beyond && holder === root) told("beyond the edge", e);
        if (e instanceof SVGElement || style.display === "inline" || e.matches("input, select")) continue;
        const [wide, high] = [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight];
        if (scrolls(e)) {
            if (wide > 1 && !reachable(e)) told("scrolls by pointer only", e);
        } else if (style.overflowX !== "visible") {
            if (wide > 1 || high > 1) told(`clipped, ${wide} and ${high} px too large`, e);
        } else if (wide > 1 && [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) {
            told(`text ${wide} px wider than its box`, e);
        }
    }
    const texts = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.data.trim() || e.closest("pre, .flash-spoken, option, sub, sup")) continue;
        if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) texts.push([box, e]);
    }
    texts.forEach(([a, e], k) => {
        const over = texts.slice(k + 1).find(([b]) => {
            const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            return width > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 3;
        });
        if (over) told(`on the text of ${over[1].outerHTML.slice(0, 80)}`, e);
    });
    return found;
}"""

MOVING = """root => [
    ...root.getAnimations({ subtree: true }).map((animation) => String(animation)),
    ...[root, ...root.querySelectorAll("*")].flatMap((e) => [null, "::before", "::after"].flatMap((part) => {
        const { transitionDuration, animationName } = getComputedStyle(e, part);
        const still = transitionDuration.split(", ").every((time) => time === "0s") && animationName === "none";
        return still ? [] : [`${e.outerHTML.slice(0, 150)} ${part}: ${transitionDuration} ${animationName}`];
    })),
]"""

# Rules of the widgets' style sheets that could reach what is not theirs. What they say of the body is the theme.
FAR_REACHING = """() => {
    const found = [];
    const told = (selector) => /^([.]flash-|body:not[(][^()]*[)] [.]flash-)/.test(selector);
    const look = (rule) => {
        if (rule instanceof CSSStyleRule) {
            const selectors = rule.selectorText.split(/,(?![^(]*[)])/).map((selector) => selector.trim());
            found.push(...selectors.filter((selector) => !told(selector)));
            const reached = [...document.querySelectorAll(rule.selectorText)];
            const outside = reached.find((e) => !e.closest(".flash-widget"));
            if (outside) found.push(`${rule.selectorText}: ${outside.outerHTML.slice(0, 150)}`);
        } else if (rule instanceof CSSGroupingRule) [...rule.cssRules].forEach(look);
        else if (!rule.name?.startsWith("flash-")) found.push(rule.cssText); // @keyframes have a name
    };
    const sheets = [...document.querySelectorAll('style[id^="flashlib."]')].map((style) => style.sheet);
    sheets.flatMap(({ cssRules }) => [...cssRules]).forEach(look);
    return [sheets.length, found];
}"""

# What looks different without the style sheets of the other widgets, by every property that any of them sets. With
# them, all of them come after the widget's own, so that they win wherever a rule of each would do.
DISTURBED = """(root, name) => {
    const styles = [...document.querySelectorAll('style[id^="flashlib."]')];
    const own = styles.find((style) => style.id.endsWith(`.${name}`));
    styles[0].before(own);
    const set = (rule) => [...(rule.style ?? []), ...[...(rule.cssRules ?? [])].flatMap(set)];
    const properties = [...new Set(styles.flatMap((style) => [...style.sheet.cssRules].flatMap(set)))];
    const elements = [root, ...root.querySelectorAll("*")];
    const places = elements.flatMap((e) => [null, "::before", "::after"].map((part) => [e, part]));
    const look = () => places.map(([e, part]) => {
        const style = getComputedStyle(e, part);
        if (part && style.content === "none") return [];
        return properties.map((property) => style.getPropertyValue(property));
    });
    const together = look();
    for (const style of styles) style.sheet.disabled = style !== own;
    const alone = look();
    for (const style of styles) style.sheet.disabled = false;
    const found = places.flatMap(([e, part], k) => properties.flatMap((property, n) => {
        const [a, b] = [alone[k][n], together[k][n]];
        const where = `${part ?? ""} ${e.outerHTML.slice(0, 150)}`;
        return a === b ? [] : [`${property}: ${a}, with the others ${b}: ${where}`];
    }));
    return [properties.length, found];
}"""


def call(name, arguments=None):
    given = ", ".join(f"{key}={value!r}" for key, value in (arguments or {}).items())
    return f"from flashlib.widgets import {name}\n{name}({given})"


@pytest.fixture(scope="module")
def lab(open_lab):
    """The page: each widget as it is made without arguments, then each with the wrong one."""
    cells = [call(name) for name in NAMES] + [call(name, WRONG[name]) for name in NAMES if name in WRONG]
    with open_lab("every_widget.ipynb", cells=cells) as lab:
        assert lab.run_all() == []
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        lab.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        yield lab


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def widget(lab, name):
    return shown(lab, NAMES.index(name))


def shown(lab, n):
    """The n-th widget of the page, in view."""
    widget = lab.page.locator(".flash-widget").nth(n)
    widget.scroll_into_view_if_needed()
    return widget


@pytest.fixture
def sized(lab):
    """Return a function that sets the size of the page until the end of the test."""

    def set_size(width, height):
        lab.page.set_viewport_size({"width": width, "height": height})
        lab.page.wait_for_timeout(300)  # the notebook follows, and the widgets that measure themselves

    yield set_size
    set_size(**SIZE)


@pytest.fixture(scope="module", params=THEMES)
def theme(lab, request):
    lab.theme(request.param)
    return request.param


def active_cell(lab):
    return lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")


def test_every_widget_is_on_the_page(lab):
    assert lab.page.locator(".flash-widget").count() == len(NAMES) + len(WRONG)
    assert set(WRONG) == set(NAMES), "give each class of __all__ an argument that is wrong for it"


def test_axe_finds_no_violation(lab, theme):
    found = [shown(lab, n).evaluate(VIOLATIONS) for n in range(len(NAMES) + len(WRONG))]
    assert [(NAMES[n % len(NAMES)], *texts) for n, texts in enumerate(found) if texts] == []


def test_text_stands_out(lab, theme):
    found = [too_low(shown(lab, n)) for n in range(len(NAMES) + len(WRONG))]
    assert [(NAMES[n % len(NAMES)], *texts) for n, texts in enumerate(found) if texts] == []


@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_tab_reaches_every_control_and_leaves(lab, widget, key):
    count = widget.evaluate(f"root => (window.stops = ({STOPS})(root)).length")
    assert count, "there is nothing to change"
    expected = [str(k) for k in range(count)]
    if key == "Tab":
        widget.focus()
    else:
        widget.evaluate("() => window.stops.at(-1).focus()")
        expected = [*expected[-2::-1], "root"]
    reached = []
    for _ in range(count + 1):
        lab.page.keyboard.press(key)
        reached.append(widget.evaluate(FOCUS))
    assert reached == [*expected, None], widget.evaluate("() => window.stops.map((e) => e.outerHTML.slice(0, 99))")


def test_every_control_has_a_name(widget):
    lines = [line.strip("- ") for line in widget.aria_snapshot().splitlines()]
    controls = [line for line in lines if re.match(rf"({CONTROLS})\b", line)]
    assert controls
    assert [line for line in controls if not re.match(r'\w+ "[^"]*\w', line)] == []


def test_arrow_keys_stay_in_the_widget(lab, widget):
    widget.focus()  # makes its cell the active one
    before = active_cell(lab)
    ranges = widget.locator("input[type=range]:enabled")
    for element in (widget, *(ranges.nth(k) for k in range(ranges.count()))):
        element.focus()
        for key in ("ArrowUp", "ArrowDown"):  # JupyterLab goes to another cell by them
            lab.page.keyboard.press(key)
            assert active_cell(lab) == before, key
            assert widget.evaluate("root => root.contains(document.activeElement)"), key


@pytest.mark.parametrize("width", [700, 1100])
def test_nothing_is_cut_off(lab, sized, width):
    beside = SIZE["width"] - shown(lab, 0).evaluate("root => root.clientWidth")
    sized(width + beside, SIZE["height"])
    assert abs(shown(lab, 0).evaluate("root => root.clientWidth") - width) < 2
    assert misplaced(lab) == []


def test_nothing_is_cut_off_at_200_percent(lab, sized):
    """A browser that zooms to 200% lays the page out for a window half as wide and half as high."""
    sized(SIZE["width"] // 2, SIZE["height"] // 2)
    assert misplaced(lab) == []


def misplaced(lab):
    found = [(name, *shown(lab, n).evaluate(MISPLACED)) for n, name in enumerate(NAMES)]
    return [told for told in found if len(told) > 1]


def test_nothing_moves_by_itself_for_those_who_do_not_want_it(lab, widget):
    lab.page.emulate_media(reduced_motion="reduce")
    try:
        assert widget.evaluate("() => matchMedia('(prefers-reduced-motion: reduce)').matches")
        widget.evaluate("root => root.flashWidget.transport?.play()")
        assert widget.evaluate(MOVING) == []
    finally:
        widget.evaluate("root => root.flashWidget.transport?.pause()")
        lab.page.emulate_media(reduced_motion="no-preference")


def test_what_is_wrong_is_said_in_its_place(lab, name):
    assert name in WRONG, "give it an argument that is wrong"
    problem = getattr(widgets, name)(**WRONG[name]).problem
    assert problem
    root = shown(lab, len(NAMES) + list(filter(WRONG.__contains__, NAMES)).index(name))
    root.locator(".flash-problem").wait_for()
    assert root.inner_text().strip() == problem
    assert root.locator(".flash-problem").get_attribute("role") == "alert"
    assert root.bounding_box()["height"] > 20


def test_style_sheets_reach_widgets_only(lab):
    count, found = lab.page.evaluate(FAR_REACHING)
    assert count >= len(NAMES)  # those of other notebooks may have stayed on the page
    assert found == []


def test_no_widget_changes_the_look_of_another(widget, name):
    properties, found = widget.evaluate(DISTURBED, name)
    assert properties > 50
    assert found == []
