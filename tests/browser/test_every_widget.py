"""Every widget of the course, all on one page: by keyboard and screen reader, at any width, in both themes."""

import re

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("cloudpickle")

from flashlib import widgets
from tests.browser import sizes
from tests.browser.contrast import too_low
from tests.browser.lab import SIZE, THEMES, resized, settled, window
from tests.browser.labs import reopened
from tests.browser.playing import active_cell
from tests.browser.probes import AXE, CONTROLS, FAR_REACHING, FOCUS, MOVING, STOPS, VIOLATIONS
from tests.browser.shown import (
    backward_player,
    compare_players,
    eight_bits_lab,
    flash_player,
    mask_lab,
    merge_tree,
    online_softmax_lab,
    overflow_lab,
    pages_lab,
    pipeline_player,
    prediction_card,
    programs_lab,
    ring_player,
    serve_lab,
    split_lab,
    tiling_lab,
    trips_player,
)

pytestmark = pytest.mark.browser

FILE = "every_widget.ipynb"
NAMES = widgets.__all__
WRONG = {  # for each class, one wrong argument
    "BackwardPlayer": {"wrt": "v"},
    "ComparePlayers": {"N": 0},
    "EightBitsLab": {"qk": "e4m4"},
    "FlashPlayer": {"B_r": 0},
    "MaskLab": {"line": "r - c"},
    "MergeTree": {"cuts": (99,)},
    "OnlineSoftmaxLab": {"x": ()},
    "OverflowLab": {"dtype": "int8"},
    "PagesLab": {"page": 3},
    "PipelinePlayer": {"program": 3},
    "ProgramsLab": {"BLOCK": 3},
    "RingPlayer": {"ranks": 1},
    "ServeLab": {"batch": 0},
    "SplitLab": {"N_k": 0},
    "TilingLab": {"N": 0},
    "TripsPlayer": {"d": 9},
}

# Widgets whose title is followed by what they show now; for the others it would repeat their first words.
TOLD_NOW = {
    *("BackwardPlayer", "EightBitsLab", "PipelinePlayer", "ProgramsLab", "RingPlayer", "SplitLab", "TilingLab"),
    "TripsPlayer",
}
CARD = """import os
os.environ["FLASHLIB_PROGRESS"] = "every_widget.json"  # no other file's answers
from flashlib import checks
checks.predict("first_overflow")"""
SHOWN = {  # for each class, the function that compares it with Python
    "BackwardPlayer": backward_player.check,
    "ComparePlayers": compare_players.check,
    "EightBitsLab": eight_bits_lab.check,
    "FlashPlayer": flash_player.check,
    "MaskLab": mask_lab.check,
    "MergeTree": merge_tree.check,
    "OnlineSoftmaxLab": online_softmax_lab.check,
    "OverflowLab": overflow_lab.check,
    "PagesLab": pages_lab.check,
    "PipelinePlayer": pipeline_player.check,
    "ProgramsLab": programs_lab.check,
    "RingPlayer": ring_player.check,
    "ServeLab": serve_lab.check,
    "SplitLab": split_lab.check,
    "TilingLab": tiling_lab.check,
    "TripsPlayer": trips_player.check,
}

# Play a widget step by step until something moves by itself; returns what moved.
STEPPED = """root => {
    const { transport } = root.flashWidget;
    let moved = [];
    transport?.seek(0);
    while (transport?.position < transport?.last && !moved.length) {
        transport.step(1);
        moved = root.getAnimations({ subtree: true }).map((animation) => String(animation));
    }
    return moved;
}"""

# Differences of look without the style sheets of the other widgets, among everything that their rules match and
# set. When present, they all come after the widget's own, so that they win whenever rules of both match.
DISTURBED = """(root, name) => {
    const styles = [...document.querySelectorAll('style[id^="flashlib."]')];
    const own = styles.find((style) => style.id.endsWith(`.${name}`));
    styles[0].before(own);
    const ofSelector = new Map();
    const collect = (rule, outer) => {
        if (rule instanceof CSSKeyframesRule) return;
        const selector = rule.selectorText?.replaceAll("&", `:is(${outer})`) ?? outer;
        if (rule.style) ofSelector.set(selector, new Set([...(ofSelector.get(selector) ?? []), ...rule.style]));
        for (const inner of rule.cssRules ?? []) collect(inner, selector);
    };
    for (const style of styles) if (style !== own) for (const rule of style.sheet.cssRules) collect(rule, "");
    const elements = new Set([root, ...root.querySelectorAll("*")]);
    const places = [...ofSelector].flatMap(([selector, properties]) => {
        const parts = [null, "::before", "::after"].filter((part) => !part || selector.includes(part));
        const matched = [...document.querySelectorAll(selector.replaceAll(/::(before|after)/g, ""))];
        const reached = matched.filter((e) => elements.has(e));
        return reached.flatMap((e) => parts.map((part) => [e, part, [...properties]]));
    });
    const look = () => places.map(([e, part, properties]) => {
        const style = getComputedStyle(e, part);
        return properties.map((property) => style.getPropertyValue(property));
    });
    const together = look();
    for (const style of styles) style.sheet.disabled = style !== own;
    const alone = look();
    for (const style of styles) style.sheet.disabled = false;
    const found = places.flatMap(([e, part, properties], k) => properties.flatMap((property, n) => {
        const [a, b] = [alone[k][n], together[k][n]];
        const where = `${part ?? ""} ${e.outerHTML.slice(0, 150)}`;
        return a === b ? [] : [`${property}: ${a}, with the others ${b}: ${where}`];
    }));
    return [places.length, found];
}"""


# Change the first setting of a widget as a user would, or change it back; false if it has none.
CHANGED = """(root, back) => {
    const kinds = "input[type=range]:enabled, select:enabled, input[type=checkbox]:enabled";
    const ours = (e) => !e.matches(".flash-scrub, .flash-speed") && e.checkVisibility();
    const control = [...root.querySelectorAll(kinds)].find(ours);
    if (!control) return false;
    const up = Number(control.value) < Number(control.max);
    control.dataset.first ??= control.value;
    if (control.type === "checkbox") control.click();
    else if (back) control.value = control.dataset.first;
    else if (control.type === "range") control[up ? "stepUp" : "stepDown"]();
    else control.selectedIndex = (control.selectedIndex + 1) % control.options.length;
    for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind, { bubbles: true }));
    return true;
}"""

# Set the speed as a user would, by its index among a widget's speeds; -1: the highest. Returns the old one.
SPEED = """(root, index) => {
    const { speed } = root.flashWidget.transport;
    const before = speed.selectedIndex;
    speed.selectedIndex = index < 0 ? speed.options.length + index : index;
    speed.dispatchEvent(new Event("change", { bubbles: true }));
    return before;
}"""

# Unfold and fold everything that can be: the state of each button, and the number of visible elements.
UNFOLDED = """root => {
    const seen = () => [...root.querySelectorAll("*")].filter((e) => e.checkVisibility()).length;
    const folds = [...root.querySelectorAll("[aria-expanded]")].filter((e) => e.checkVisibility());
    return folds.map((button) => {
        const found = [0, 1, 2].map(() => {
            const now = [button.getAttribute("aria-expanded"), seen()];
            button.click();
            return now;
        });
        button.click();
        return found;
    });
}"""

# Play from near the end.
PLAYED = """root => {
    const { transport } = root.flashWidget;
    transport.seek(Math.max(0, transport.last - 12));
    transport.play();
}"""


# Note in `reached` where the focus is after each press of Tab.
WATCH_TAB = f"""root => {{
    window.reached = [];
    window.noteFocus = ({{ key }}) => key === "Tab" && reached.push(({FOCUS})(root));
    addEventListener("keyup", noteFocus);
}}"""


def call(name, arguments=None):
    given = ", ".join(f"{key}={value!r}" for key, value in (arguments or {}).items())
    return f"from flashlib.widgets import {name}\n{name}({given})"


@pytest.fixture(scope="module")
def page(open_lab):
    """The page: each widget made without arguments, then each with the wrong one, and a prediction."""
    cells = [call(name) for name in NAMES] + [call(name, WRONG[name]) for name in sorted(WRONG)] + [CARD]
    with open_lab(FILE, cells=cells) as lab:
        lab.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        yield lab


@pytest.fixture
def lab(page):
    """The page, with Python running: one test closes and reopens the notebook."""
    if not page.ran:
        assert page.run_all() == []
        page.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    return page


@pytest.fixture(params=NAMES, scope="module")  # all tests of a widget one after another: it stays in view
def name(request):
    return request.param


@pytest.fixture
def widget(lab, name):
    return shown(lab, NAMES.index(name))


# JupyterLab omits the content of a cell outside the view until the frame after it has come into view.
LAID_OUT = "root => root.checkVisibility({ contentVisibilityAuto: true })"
IN_VIEW = f"""root => {{
    const {{ top, bottom }} = root.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && ({LAID_OUT})(root);
}}"""
ALL_LAID_OUT = "*, *::before, *::after { content-visibility: visible !important; }"


def shown(lab, n):
    """The n-th widget of the page, in view and laid out."""
    widget = lab.page.locator(".flash-widget").nth(n)
    if not widget.evaluate(IN_VIEW):
        widget.scroll_into_view_if_needed()
        lab.page.wait_for_function(LAID_OUT, arg=widget.element_handle())
    return widget


@pytest.fixture(params=THEMES)
def theme(lab, request):
    lab.theme(request.param)
    yield request.param
    lab.theme(THEMES[0])


def test_every_widget_is_on_the_page(lab):
    assert lab.page.locator(".flash-widget").count() == len(NAMES) + len(WRONG) + 1
    assert set(WRONG) == set(NAMES), "give each class of __all__ an argument that is wrong for it"


def test_it_shows_what_python_computed(widget, name):
    assert name in SHOWN, "say in tests/browser/shown what it shows"
    SHOWN[name](widget)


def test_a_prediction_is_graded_as_it_is_typed(lab):
    card = shown(lab, len(NAMES) + len(WRONG))
    prediction_card.check(card)
    assert card.evaluate(VIOLATIONS) == [] and too_low(card) == []


def test_axe_finds_no_violation(lab):
    """In one theme: the next test covers in both themes all that axe says about colours."""
    style = lab.page.add_style_tag(content=ALL_LAID_OUT)
    found = lab.page.locator(".flash-widget").evaluate_all(VIOLATIONS)
    style.evaluate("style => style.remove()")
    assert found == []


def test_text_stands_out(lab, theme):
    widgets = lab.page.locator(".flash-widget").all()
    found = [too_low(widget) for widget in widgets[: len(NAMES) + len(WRONG)]]
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
    widget.evaluate(WATCH_TAB)
    for _ in range(count + 1):
        lab.page.keyboard.press(key)
    reached = lab.page.evaluate("() => (removeEventListener('keyup', noteFocus), reached)")
    assert reached == [*expected, None], widget.evaluate("() => window.stops.map((e) => e.outerHTML.slice(0, 99))")


def test_every_control_has_a_name(widget):
    lines = [line.strip("- ") for line in widget.aria_snapshot().splitlines()]
    controls = [line for line in lines if re.match(rf"({CONTROLS})\b", line)]
    assert controls
    assert [line for line in controls if not re.match(r'\w+ "[^"]*\w', line)] == []


def test_no_group_of_controls_is_empty(widget):
    groups = widget.locator("fieldset, [role=group]:not([tabindex])")  # the others scroll, and have what is read
    empty = "all => all.filter((e) => !e.querySelector('button, input, select, textarea')).map((e) => e.outerHTML)"
    assert groups.evaluate_all(empty) == []


def test_folded_parts_say_so_and_unfold(widget):
    for before, between, after in widget.evaluate(UNFOLDED):
        seen = dict([before, between])
        assert before == after and seen["true"] > seen["false"]


def test_arrow_keys_stay_in_the_widget(lab, widget):
    widget.focus()  # makes its cell the active one
    before = active_cell(lab)
    for element in (widget, *widget.locator("input[type=range]:enabled").all()[:1]):
        element.focus()
        for key in ("ArrowUp", "ArrowDown"):  # JupyterLab moves to another cell with them
            lab.page.keyboard.press(key)
            assert active_cell(lab) == before, key
            assert widget.evaluate("root => root.contains(document.activeElement)"), key


def test_its_first_line_says_what_it_is_and_what_it_shows(widget, name):
    title, now = widget.locator(".flash-headline > *").all_inner_texts()
    assert len(title) > 20
    assert len(now) > 40 if name in TOLD_NOW else not now, "name it in TOLD_NOW"
    first = widget.locator(":scope > :first-child")
    assert first.get_attribute("class") == "flash-headline" and first.bounding_box()["height"] < 60


@pytest.mark.parametrize("amount, width", sizes.AMOUNTS)
def test_nothing_is_cut_off(lab, amount, width):  # noqa: ARG001
    with resized(shown(lab, 0), width):
        assert misplaced(lab, width) == []


def test_a_control_and_what_it_changes_are_on_one_screen(lab):
    with resized(shown(lab, 0), sizes.LAPTOP):
        heights = {name: shown(lab, n).bounding_box()["height"] for n, name in enumerate(NAMES)}
    higher = {name for name, height in heights.items() if height > sizes.HIGH}
    assert higher == sizes.HIGHER, {name: heights[name] for name in higher}


# Where the transport of a widget is, in px below the top of the notebook, at places from its beginning to its end.
SCROLLED = """async (root) => {
    const pane = root.closest(".jp-WindowedPanel-outer");
    const row = root.querySelector(".flash-transport");
    const below = (element) => element.getBoundingClientRect().top - pane.getBoundingClientRect().top;
    const found = [];
    for (const share of [0.4, 0.6, 0.8]) {
        pane.scrollTop += below(root) + share * root.offsetHeight;
        await new Promise((done) => setTimeout(done, 50));
        found.push(Math.round(below(row)));
    }
    return found;
}"""


def test_the_transport_of_a_narrow_widget_stays_in_view(lab):
    """The boxes around an output scroll by themselves, in which it would not stay."""
    with resized(shown(lab, 0), sizes.WIDTHS[0]):
        assert shown(lab, NAMES.index("RingPlayer")).evaluate(SCROLLED) == [0, 0, 0]


def test_nothing_is_cut_off_at_200_percent(lab):
    """A browser that zooms to 200% lays the page out for a window half as wide and half as high."""
    half = {side: length // 2 for side, length in SIZE.items()}
    with window(shown(lab, 0), half):
        width = settled(shown(lab, 0))
        assert half["width"] / 2 < width < half["width"]
        assert misplaced(lab, width) == []


def misplaced(lab, width):
    """What is misplaced in each widget, when all are this wide."""
    found = []
    for n, name in enumerate(NAMES):
        widget = shown(lab, n)
        assert abs(settled(widget) - width) < 2, name
        found.append((name, *widget.evaluate(sizes.OUT_OF_PLACE)))
    return [problems for problems in found if len(problems) > 1]


def test_nothing_moves_by_itself_with_reduced_motion(lab, widget):
    plays = widget.locator(".flash-play").count() > 0
    assert (widget.evaluate(STEPPED) != []) == plays
    lab.page.emulate_media(reduced_motion="reduce")
    try:
        assert widget.evaluate("() => matchMedia('(prefers-reduced-motion: reduce)').matches")
        assert widget.evaluate(f"root => [...({STEPPED})(root), ...({MOVING})(root)]") == []
    finally:
        lab.page.emulate_media(reduced_motion="no-preference")


def test_it_plays_to_its_end_at_the_highest_speed(lab, widget):
    if not widget.evaluate("root => Boolean(root.flashWidget.transport)"):
        assert widget.locator(".flash-play").count() == 0
        return
    before = widget.evaluate(SPEED, -1)
    widget.evaluate(PLAYED)
    ended = "root => { const t = root.flashWidget.transport; return t.position === t.last && !t.playing; }"
    lab.page.wait_for_function(ended, arg=widget.element_handle(), timeout=20_000)
    widget.evaluate(SPEED, before)


def test_a_setting_changes_what_is_shown(lab, widget):
    """It is changed back for the tests that follow."""
    changed = "([root, before]) => root.innerHTML !== before && !root.querySelector('.flash-problem')?.innerText"
    for back in (False, True):
        before = widget.evaluate("root => root.innerHTML")
        assert widget.evaluate(CHANGED, back), "there is no setting"
        lab.page.wait_for_function(changed, arg=[widget.element_handle(), before], timeout=20_000)


def test_a_sentence_in_its_place_says_what_is_wrong(lab):
    for n, (name, arguments) in enumerate(sorted(WRONG.items()), start=len(NAMES)):
        problem = getattr(widgets, name)(**arguments).problem
        assert problem, name
        root = shown(lab, n)
        root.locator(".flash-problem").wait_for()
        assert root.text_content().strip() == problem, name  # a cell out of view has no innerText
        assert root.locator(".flash-problem").get_attribute("role") == "alert", name
        assert root.bounding_box()["height"] > 20, name


def test_style_sheets_reach_widgets_only(lab):
    count, found = lab.page.evaluate(FAR_REACHING)
    assert count >= len(NAMES)  # rules of other notebooks may have stayed on the page
    assert found == []


def test_no_widget_changes_the_look_of_another(widget, name):
    compared, found = widget.evaluate(DISTURBED, name)
    assert compared > 50
    assert found == []


def test_a_reopened_notebook_draws_its_widgets(lab):
    """Python is not asked again."""
    lab.save()
    reopened(lab, FILE, len(NAMES) + len(WRONG) + 1)
    for n, name in enumerate(NAMES):
        assert shown(lab, n).locator("svg, canvas, table").count(), name
