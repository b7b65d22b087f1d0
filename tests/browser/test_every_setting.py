"""In every setting of a widget, and at every width of the page, no text overlaps another or is cut off."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib import checks, tiled, widgets
from tests.browser import answered
from tests.browser.lab import opened_file
from tests.browser.probes import MISPLACED

pytestmark = pytest.mark.browser

PAGES = 360, 768, 1280, 1600  # px
CARDS = "first_overflow", "shifts_that_fail", "masked_row", "shapes"  # one for each kind of field
SENTENCE = "FlashPlayer, a sentence, less"
WRONG = "FlashPlayer, wrong steps, less"
TILES = "TilingLab, less"
NAMES = [*widgets.__all__, SENTENCE, WRONG, TILES, *CARDS]
SLIDERS = {  # how many are moved; widgets not named here have none
    "BackwardPlayer": 4,
    "ComparePlayers": 4,
    "EightBitsLab": 3,
    "FlashPlayer": 4,
    SENTENCE: 2,
    WRONG: 2,
    "MaskLab": 5,
    "OverflowLab": 2,
    "PagesLab": 2,
    "ProgramsLab": 3,
    "RingPlayer": 5,
    "ServeLab": 3,
    "SplitLab": 6,
    "TilingLab": 5,
    TILES: 2,
    "TripsPlayer": 2,
}

# Everything that is misplaced in some setting: each slider at its two ends, then all at their largest. `all` adds
# each value of a select, radio button or checkbox, everything unfolded, and several positions of players; without
# it, a slider that is moved alone is checked at one width of page.
SETTINGS = """async (root, { misplaced, widths, all }) => {
    const widget = root.flashWidget;
    const { model, transport } = widget;
    const find = eval(misplaced);
    const found = new Map();
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const count = { looks: 0, sliders: 0 };

    const look = async (setting, alone = false) => {
        const stands = transport?.position;
        const parts = all ? [0, 0.3, 1] : [];
        for (const width of alone && !all ? widths.slice(2, 3) : widths) {
            root.parentElement.style.width = `${width}px`;
            await frame(); // until what watches its size has drawn
            for (const position of new Set([stands, ...parts.map((part) => part * transport?.last)])) {
                if (position !== stands) transport?.seek(Math.round(position));
                if (Number.isNaN(position)) continue;
                count.looks++;
                for (const problem of find(root))
                    if (!found.has(problem)) found.set(problem, `${setting}, ${width} px, at ${position}`);
            }
            if (parts.length) transport?.seek(stands);
        }
    };
    const settled = async () => {
        for (let k = 0; model.get("heard") !== model.get("asked"); k++) {
            if (k > 6000) throw Error("Python does not answer");
            await new Promise((done) => setTimeout(done, 5));
        }
    };
    const first = { ...model.get(widget.shown).setting };
    const back = () => (widget.ask(first), settled());
    const change = (control, set) => {
        set(control);
        for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind, { bubbles: true }));
        return settled();
    };
    const shown = (kind) => [...root.querySelectorAll(kind)].filter(
        (e) => !e.matches(":disabled, .flash-scrub, .flash-speed") && e.checkVisibility(),
    );
    const [ranges, controls] = ["input[type=range]", "input, select"].map((kind) => () => shown(kind));
    const nameOf = (e) => e.ariaLabel ?? e.closest("label")?.textContent ?? e.className;

    await look("as it is made");
    const folds = shown("[aria-expanded=false]");
    for (const fold of folds) fold.click();
    if (all) await look("unfolded");
    for (const fold of folds) {
        const before = controls().length;
        fold.click();
        if (controls().length < before) fold.click();
    }
    for (const range of ranges()) {
        const { value } = range;
        count.sliders++;
        for (const end of ["min", "max"]) {
            await change(range, () => (range.value = range[end] || "0"));
            await look(`${nameOf(range)} = ${range.value}`, true);
        }
        void change(range, () => (range.value = value)); // the page's own, which Python does not answer
        await back();
    }
    for (const range of ranges()) void change(range, () => (range.value = range.max));
    await settled();
    if (count.sliders > 1) await look("all sliders at their largest");
    await back();
    for (const control of all ? controls() : []) {
        const { selectedIndex, checked, type } = control;
        if (type === "checkbox" || (type === "radio" && !checked)) {
            const on = type === "radio" && shown(`[name="${control.name}"]`).find((one) => one.checked);
            control.click();
            await settled();
            await look(`${nameOf(control)} pressed`);
            (on || control).click();
            await settled();
            await back();
        }
        for (let k = 0; k < (control.options?.length ?? 0); k++) {
            if (k === selectedIndex || control.options[k].disabled) continue;
            await change(control, () => (control.selectedIndex = k));
            await look(`${nameOf(control)}: ${control.options[k].text}`);
            await change(control, () => (control.selectedIndex = selectedIndex));
            await back();
        }
    }
    return [count, [...found].map(([problem, where]) => `${where}: ${problem}`)];
}"""

# Parts far below the window are laid out but not painted, which would take most of the time.
FAR = '() => (document.querySelector("main").style.paddingTop = "20000px")'
ALONE = """(root) => {
    for (const place of document.querySelectorAll("[data-place]")) place.hidden = !place.contains(root);
}"""


def made(name):
    if name in CARDS:
        return checks.predict(name)
    if name == SENTENCE:
        return widgets.FlashPlayer.from_sentence(panels="less")
    if name == WRONG:
        return widgets.FlashPlayer.from_steps(unscaled, B_r=8, causal=True, panels="less")
    if name == TILES:
        return widgets.TilingLab(N=64, B_r=16, B_c=16, causal=True, panels="less")
    return getattr(widgets, name)()


def unscaled(Q, K, V, B_r, B_c, causal):
    """Steps in which l is never rescaled."""
    l = {}  # noqa: E741
    for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c, causal=causal):
        l[step.i] = l.get(step.i, 0) + step.P_ij.sum(axis=1)
        yield step._replace(l=l[step.i])


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The widgets of a page, by name, and their widths on pages of the site with the widths of PAGES."""
    path = answered.write({name: made(name) for name in NAMES}, tmp_path_factory.mktemp("page"))
    with opened_file(browser, path) as page:
        page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")  # no callouts
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        places, widths = answered.connect(page), []
        for width in PAGES:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("() => new Promise(requestAnimationFrame)")
            widths.append(places["FlashPlayer"].evaluate("root => root.parentElement.clientWidth"))
        page.evaluate(FAR)
        yield places, widths


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("amount", ["few", "all"])
def test_no_setting_makes_texts_overlap_or_cuts_them(page, name, amount):
    places, widths = page
    places[name].evaluate(ALONE)
    asked = {"misplaced": MISPLACED, "widths": widths, "all": amount == "all"}
    count, found = places[name].evaluate(SETTINGS, asked)
    assert count["looks"] >= len(widths) and count["sliders"] == SLIDERS.get(name, 0)
    assert found == []


# A widget as wide as on a phone of 390 px: its height, its letters that are smaller than LETTERS, and where its
# transport is, in px below the bar of the page, when the page has scrolled to places in it.
ON_PHONE = """async (root, least) => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    root.parentElement.style.width = "358px";
    await drawn();
    await drawn();
    const small = new Set();
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.data.trim() || e.closest(".flash-spoken, option, title, .flash-compiler-lab code")) continue;
        if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const by = e instanceof SVGElement ? e.getScreenCTM() : { b: 0, d: 1 };
        const size = parseFloat(getComputedStyle(e).fontSize) * Math.hypot(by.b, by.d);
        if (size > 0 && size < least) small.add(`${size.toFixed(1)} px: ${node.data.slice(0, 30)}`);
    }
    const row = root.flashWidget.transport?.element;
    const bar = document.querySelector(".top").offsetHeight;
    const places = [];
    for (const share of row ? [0.5, 0.7, 0.9] : []) {
        scrollBy(0, root.getBoundingClientRect().top - bar + share * root.offsetHeight);
        await drawn();
        places.push(Math.round(row.getBoundingClientRect().top - bar));
    }
    return { height: root.offsetHeight, small: [...small], places };
}"""
LETTERS = 10.95  # px: 11, but for rounding
HEIGHTS = {SENTENCE: 1200, TILES: 800}  # px at most, for a first look


@pytest.mark.parametrize("name", [*widgets.__all__, SENTENCE, WRONG, TILES])
def test_it_can_be_read_and_played_on_a_phone(page, name):
    places, _ = page
    places[name].evaluate(ALONE)
    seen = places[name].evaluate(ON_PHONE, LETTERS)
    assert seen["small"] == []
    assert all(abs(below) <= 1 for below in seen["places"]), "its transport goes out of view"
    assert seen["height"] <= HEIGHTS.get(name, 2000)


CHANGES = {  # a player, and a setting of it with different steps
    "BackwardPlayer": {"B_c": 8},
    "ComparePlayers": {"B_c": 8},
    "FlashPlayer": {"B_c": 8},
    SENTENCE: {"B_r": 1},
    "OnlineSoftmaxLab": {"typed": "1, 0.5, 2, 1.5, 0, 3, 2.5, 3.5"},
    "PagesLab": {"page": 8},
    "RingPlayer": {"ranks": 8},
    "ServeLab": {"batch": 2},
    "TripsPlayer": {"N": 40},
}
# The position of a widget after a setting was changed at its start, in the middle and at its end: shares of the
# whole.
KEPT = """async (root, changes) => {
    const widget = root.flashWidget;
    const { model, transport } = widget;
    const ask = async (setting) => {
        widget.ask(setting);
        while (model.get("heard") !== model.get("asked")) await new Promise((done) => setTimeout(done, 5));
        if (model.get("refused")) throw Error(model.get("refused"));
    };
    const first = { ...model.get(widget.shown).setting };
    const shares = [];
    for (const share of [0, 0.5, 1]) {
        transport.seek(Math.round(share * transport.last));
        await ask(changes);
        shares.push(transport.position / transport.last);
        await ask(first);
    }
    return shares;
}"""


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_setting_keeps_the_place(page, name):
    places, _ = page
    start, middle, end = places[name].evaluate(KEPT, CHANGES[name])
    assert start == 0 and 0.2 < middle < 0.8 and end == 1
