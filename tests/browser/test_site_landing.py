"""The first page as a visitor meets it: what its first screen has, and the loop that is to be mended."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from tests.browser import test_site
from tests.browser.probes import AXE
from tests.browser.test_site import visit
from tests.required import missing
from web import landing
from web.live import parts

pytestmark = pytest.mark.browser

SCREENS = [(1366, 900), (390, 844), (360, 640)]
CALM = 0.05  # how far what is seen may shift
STOPPED = "#loop[data-stopped]"
PATIENCE = 120_000  # milliseconds
# How far it has shifted since the page began to load.
SHIFTED = """() => new Promise((done) => {
    let sum = 0;
    const add = (list) => list.getEntries().forEach((one) => (sum += one.hadRecentInput ? 0 : one.value));
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 100);
})"""
STEP = "document.querySelector('#loop .flash-widget').flashWidget.at.k"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The site with Python in it, of one chapter."""
    try:
        parts.check(parts.folder())
    except parts.Missing as reason:
        missing(str(reason))
    made = test_site.Course(tmp_path_factory.mktemp("landing"), ["start_here"], is_live=True)
    yield made
    made.stop()


def verdict(page):
    return page.locator("#loop .verdict").inner_text()


def told(page):
    """Return what the player says of the loop."""
    return " ".join(page.locator("#loop .flash-headline").inner_text().split())


def press(page, name):
    page.get_by_role("button", name=name).click()
    page.wait_for_selector("#loop:not([aria-busy])", timeout=PATIENCE)


def mend(page):
    """Open the line that is wrong."""
    page.locator("#loop .mistake .loop-line").click()
    return page.get_by_label("the line to mend")


def fetched(page):
    """Return whether anything of Python was requested."""
    return any("/static/live/" in one.url or "worker" in one.url for one in page.loaded)


@pytest.mark.parametrize("screen", SCREENS)
def test_the_loop_is_on_the_first_screen(browser, course, screen):
    with visit(browser, course.address, screen) as page:
        assert page.locator("#loop .verdict").is_hidden(), "it is not told before it is seen"
        top, mends = (page.locator(name).bounding_box() for name in ("#loop .code", "#loop .mending"))
        assert top["y"] + 40 < screen[1], "the loop begins there"
        assert screen == SCREENS[-1] or mends["y"] + mends["height"] < screen[1], "and is whole"
        assert page.evaluate(SHIFTED) <= CALM and page.evaluate(test_site.TOO_WIDE) == []
        for link in ("a[href='index.html#chapters']", "#theme"):
            box = page.locator(f".top {link}").bounding_box()
            assert box["width"] > 30 and box["x"] + box["width"] <= screen[0]


def test_the_loop_stops_at_its_mistake(browser, course):
    with visit(browser, course.address) as page:
        page.wait_for_selector("#loop .loop-line.now")
        page.wait_for_selector(STOPPED, state="attached")
        assert page.evaluate(STEP) == 1 and "right up to step 1 of 3" in told(page)
        assert landing.WRONG in page.locator("#loop .mistake .now").inner_text()


CAUSE = "O_acc is not rescaled when the maximum grows"
MARKED = "getComputedStyle(document.querySelector('#loop .mistake')).borderLeftColor !== 'rgba(0, 0, 0, 0)'"


def test_the_cause_is_told_after_the_wrong_number_and_only_if_asked(browser, course):
    with visit(browser, course.address) as page:
        page.wait_for_selector(STOPPED, state="attached")
        said = verdict(page)
        assert "Step 2 is wrong: O_acc of row 3 (because) is " in said and CAUSE not in said
        assert not page.evaluate(MARKED)
        press(page, "Which line?")
        assert CAUSE in verdict(page) and page.evaluate(MARKED)
        assert page.get_by_role("button", name="Mend it").evaluate("e => e === document.activeElement")
        page.keyboard.press("Enter")
        assert page.get_by_label("the line to mend").evaluate("e => e === document.activeElement")


def test_the_lines_can_be_pressed(browser, course):
    with visit(browser, course.address) as page:
        page.wait_for_selector(STOPPED, state="attached")
        page.locator("#loop .loop-line").nth(3).click()
        assert "That line is right" in verdict(page) and CAUSE not in verdict(page)
        page.get_by_text("yield m, l, O_acc").focus()
        for key in ("Enter", "ArrowUp", " "):
            page.keyboard.press(key)
        line = page.get_by_label("the line to mend")
        assert line.evaluate("e => e === document.activeElement") and line.input_value() == landing.WRONG
        assert page.locator("#loop [data-judged]").count() == 2 and CAUSE not in verdict(page)
        assert page.locator("#loop .loop-line[tabindex='0']").count() == 1, "one stop for the Tab key"
        press(page, "Run")
        assert CAUSE in verdict(page), "after an attempt"


@pytest.mark.parametrize("screen", SCREENS[:2])
def test_the_mended_line_is_kept_until_the_mistake_is_put_back(browser, course, screen):
    with visit(browser, course.address, screen) as page:
        mend(page)
        press(page, "Write it for me")
        page.wait_for_selector("#loop[data-outcome=right]")
        page.evaluate("scrollTo(0, 0)")
        page.reload()
        page.wait_for_selector("#loop[data-outcome=right]")
        assert page.get_by_label("the line to mend").input_value() == landing.MENDED
        assert page.evaluate(SHIFTED) <= CALM
        press(page, "Put the mistake back")
        assert CAUSE in verdict(page) and "right up to step 1 of 3" in told(page)
        page.reload()
        page.wait_for_selector(STOPPED, state="attached")
        assert page.get_by_role("button", name="Which line?").is_visible() and not fetched(page)


def test_it_is_mended_from_what_was_recorded(browser, course):
    with visit(browser, course.address) as page:
        line = mend(page)
        assert line.evaluate("e => e === document.activeElement") and line.input_value() == landing.WRONG
        press(page, "Run")
        assert "right up to step 1 of 3" in told(page) and "is not rescaled" in verdict(page)
        line.fill(landing.MENDED.replace(" ", ""))
        line.press("Shift+Enter")
        page.wait_for_selector("#loop[data-outcome=right]")
        assert verdict(page).startswith("✓ Right") and "right on these numbers" in told(page)
        page.wait_for_function(
            "() => !document.querySelector('#loop .flash-widget').flashWidget.transport.playing"
        )
        assert page.evaluate(STEP) == 3, "nothing stops it before its end"
        assert not fetched(page)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(test_site.VIOLATIONS, "few") == []


MISTAKES = {
    "O_acc = alpha * O_acc + P_ij @ V_j": "[:, None] is missing",
    "l = l + 1\nO_acc = alpha[:, None] * O_acc + P_ij @ V_j": "l is wrong",
    "O_acc = )": "SyntaxError: unmatched ')'",
    "print(l)\nO_acc = alpha * O_acc": "O_acc is wrong",
    landing.MENDED: "✓ Right",
}


def test_another_mistake_is_named_by_the_check_once_python_is_fetched(browser, course):
    with visit(browser, course.address) as page:
        size = f"{page.evaluate('flashSite.live.packed') / 1e6:.1f} MB"
        mend(page)
        for line, words in MISTAKES.items():
            page.get_by_label("the line to mend").fill(line)
            assert page.get_by_role("button", name="Run", exact=True).is_visible() == fetched(page)
            press(page, f"fetches Python, {size}" if not fetched(page) else "Run")
            assert words in verdict(page), line
        assert page.locator("#loop[data-outcome=right]").count() == 1 and "right on these numbers" in told(page)
        assert page.evaluate("localStorage.getItem('flashlib.progress')") is None, "no exercise counts as solved"


# Whether the sign before the true numbers is shown, and not on a learner's own.
APART = """() => {
    const box = (e) => e.getBoundingClientRect();
    const common = (a, b, start, end) => Math.min(a[end], b[end]) - Math.max(a[start], b[start]);
    const isOn = (a, b) => common(a, b, "left", "right") > 0 && common(a, b, "top", "bottom") > 2;
    const signs = [...document.querySelectorAll("#loop .flash-true:not(.flash-equal) > span")];
    const strip = (sign) => sign.closest("td").querySelector(":scope > .flash-matrix");
    return signs.length > 0 && !signs.some((sign) => isOn(box(sign), box(strip(sign))));
}"""


@pytest.mark.parametrize("screen", SCREENS)
def test_the_sign_of_a_difference_is_beside_the_numbers(browser, course, screen):
    with visit(browser, course.address, screen) as page:
        page.wait_for_selector(STOPPED, state="attached")
        assert page.evaluate(APART)


def test_without_javascript_the_picture_and_the_text_stay(browser, course):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(course.address)
    for name in ("#loop .still img", "#loop .verdict", "#loop .mistake", "#chapters"):
        assert page.locator(name).first.is_visible(), name
    assert (
        not page.locator("#loop button").count() and landing.MENDED in page.locator("details").first.text_content()
    )
    context.close()
