"""The first page as a visitor meets it: what its first screen has, and the loop that is to be mended."""

import itertools
import re

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
ASKED = "Press the line that is wrong."
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


def title(page):
    return page.locator("#loop h2").inner_text()


def runs(page):
    """Return the labels of the buttons that run the line."""
    return page.get_by_role("button", name=re.compile("^Run|^run$|▶")).all_inner_texts()


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
        assert page.locator("#loop .asked").inner_text() == ASKED and page.locator("#loop details").is_hidden()
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


GIVEN_AWAY = "#loop .flash-part-lines, #loop details, #loop .cause"


def seen(page, names):
    """Return the texts of the elements that are visible."""
    return [one.text_content() for one in page.locator(names).all() if one.is_visible()]


def test_the_cause_is_told_after_the_wrong_number_and_only_if_asked(browser, course):
    with visit(browser, course.address) as page:
        assert page.locator("#loop .flash-headline").is_hidden(), "the player has not stopped"
        page.wait_for_selector(STOPPED, state="attached")
        assert "Step 2 is wrong: O_acc of row 3 (because) is " in verdict(page) and CAUSE not in verdict(page)
        assert "it should be" in page.locator("#loop .flash-verdict").inner_text()
        assert not seen(page, GIVEN_AWAY) and not page.evaluate(MARKED)
        press(page, "Show me")
        assert CAUSE in verdict(page) and page.evaluate(MARKED) and seen(page, GIVEN_AWAY)
        assert page.get_by_label("the line to mend").evaluate("e => e === document.activeElement")


def test_what_is_missing_is_not_said_while_it_plays(browser, course):
    with visit(browser, course.address) as page:
        page.wait_for_selector("#loop .flash-widget[data-step='1'][data-part='rescale']")
        assert page.locator("#loop .flash-sentence").is_hidden() and not seen(page, GIVEN_AWAY)


def answer(page):
    """Return what was said to the line that was pressed."""
    return page.locator("#loop .asked").inner_text()


def test_the_lines_can_be_pressed(browser, course):
    with visit(browser, course.address) as page:
        page.locator("#loop .loop-line").nth(3).click()
        assert not page.locator(STOPPED).count(), "it answers before the player has stopped"
        assert answer(page) == "m_old = m: this line is right. Which one is wrong?"
        page.get_by_text("yield m, l, O_acc").focus()
        page.keyboard.press("Enter")
        assert answer(page).startswith("yield m, l, O_acc: this line is right")
        assert page.locator("#loop .loop-line[tabindex='0']").count() == 1, "one stop for the Tab key"
        for key in ("ArrowUp", " "):
            page.keyboard.press(key)
        assert answer(page).startswith("Yes, this one. Enter runs the line")
        line = page.get_by_label("the line to mend")
        assert line.evaluate("e => e === document.activeElement") and line.input_value() == landing.WRONG
        assert CAUSE not in verdict(page) and not page.locator("#loop .loop-line[role]").count()
        before = page.locator("#loop .code").inner_html()
        page.get_by_text("yield m, l, O_acc").click()
        assert page.locator("#loop .code").inner_html() == before, "it has been found"
        press(page, "Run")
        assert CAUSE in verdict(page), "after an attempt"


@pytest.mark.parametrize("screen", [(1366, 768), (390, 844)])
def test_what_was_pressed_stays_in_view(browser, course, screen):
    inside = "e => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight"
    with visit(browser, course.address, screen) as page:
        page.emulate_media(reduced_motion="reduce")
        line = mend(page)
        for name in ("Write it for me", "Put the mistake back"):
            assert line.evaluate(inside)
            press(page, name)
        assert line.evaluate(inside) and page.get_by_role("button", name="Run").evaluate(inside)
        to_player = page.get_by_role("link", name="See it played")
        assert to_player.is_visible() == (screen[0] < 992), "where the player is below"


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
        assert "when this page was made" in verdict(page) and title(page) == "Every line is right now"
        press(page, "Put the mistake back")
        assert CAUSE in verdict(page) and "right up to step 1 of 3" in told(page)
        assert title(page) == "One of these lines is wrong" and runs(page) == ["Run"]
        page.reload()
        page.wait_for_selector(STOPPED, state="attached")
        assert page.get_by_role("button", name="Show me").is_visible() and not fetched(page)


def test_it_is_mended_from_what_was_recorded(browser, course):
    with visit(browser, course.address) as page:
        line = mend(page)
        assert line.evaluate("e => e === document.activeElement") and line.input_value() == landing.WRONG
        press(page, "Run")
        assert "right up to step 1 of 3" in told(page) and "is not rescaled" in verdict(page)
        line.fill(landing.MENDED.replace(" ", ""))
        line.press("Enter")
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
PLAYED = [*MISTAKES][1], landing.MENDED
NOT_PLAYED = "the player still shows the one before"


def test_another_mistake_is_named_by_the_check_once_python_is_fetched(browser, course):
    with visit(browser, course.address) as page:
        size = f"{page.evaluate('flashSite.live.packed') / 1e6:.1f} MB"
        line = mend(page)
        for text, words in MISTAKES.items():
            line.fill(text)
            assert runs(page) == ["Run" if fetched(page) else f"Run it here: fetches Python, {size}, once"]
            line.press("Enter")
            page.wait_for_selector("#loop:not([aria-busy])", timeout=PATIENCE)
            assert words in verdict(page), text
            assert (NOT_PLAYED in verdict(page)) == (text not in PLAYED), "or the player shows this attempt"
        assert page.locator("#loop[data-outcome=right]").count() == 1 and "right on these numbers" in told(page)
        assert page.evaluate("localStorage.getItem('flashlib.progress')") is None, "no exercise counts as solved"


OWN = "O_acc = O_acc * alpha[:, None] + P_ij @ V_j"  # right, and not the line that was recorded


def test_a_right_line_is_kept_with_its_verdict_and_only_as_it_was_run(browser, course):
    with visit(browser, course.address) as page:
        line = mend(page)
        for text in ([*MISTAKES][0], OWN):  # the second while Python is still being fetched for the first
            line.fill(text)
            line.press("Enter")
        page.wait_for_selector("#loop[data-mended]:not([aria-busy])", timeout=PATIENCE)
        assert verdict(page).startswith("✓ Right") and title(page) == "Every line is right now"
        page.reload()
        page.wait_for_selector("#loop[data-outcome=right]")
        assert verdict(page).startswith("✓ Right: in all 18 cases\n\nYour line, run here before.")
        assert line.input_value() == OWN and "right on these numbers" in told(page) and not runs(page)
        line.fill(f"{OWN} ")
        assert runs(page)[0].startswith("Run it here") and title(page) == "One of these lines is wrong"
        page.reload()
        page.wait_for_selector(STOPPED, state="attached")
        assert "Right" not in verdict(page) and runs(page)[0].startswith("Run it here")


# Whether the sign before the true numbers is shown, and not on a learner's own.
APART = """() => {
    const box = (e) => e.getBoundingClientRect();
    const common = (a, b, start, end) => Math.min(a[end], b[end]) - Math.max(a[start], b[start]);
    const isOn = (a, b) => common(a, b, "left", "right") > 0 && common(a, b, "top", "bottom") > 2;
    const signs = [...document.querySelectorAll("#loop .flash-true:not(.flash-equal) > span")];
    const strip = (sign) => sign.closest("td").querySelector(":scope > .flash-matrix");
    return signs.length > 0 && !signs.some((sign) => isOn(box(sign), box(strip(sign))));
}"""

# The sums that are cut off at the end of their table.
CUT = """() => {
    const end = document.querySelector("#loop .flash-rows").getBoundingClientRect().right;
    const sums = [...document.querySelectorAll("#loop .flash-rows td:last-child .flash-matrix")];
    return sums.map((sum) => sum.getBoundingClientRect().right - end).filter((over) => over > 0.5);
}"""


@pytest.mark.parametrize("screen", SCREENS)
def test_the_sign_of_a_difference_is_beside_the_numbers(browser, course, screen):
    with visit(browser, course.address, screen) as page:
        page.wait_for_selector(STOPPED, state="attached")
        assert page.evaluate(APART)
        assert page.evaluate(CUT) == []


def test_lines_and_buttons_are_large_enough_for_a_finger(browser, course):
    with visit(browser, course.address, (390, 844)) as page:
        page.wait_for_selector(STOPPED, state="attached")
        boxes = [one.bounding_box() for one in page.locator("#loop .code .loop-line").all()]
        assert all(above["y"] + above["height"] <= below["y"] + 0.1 for above, below in itertools.pairwise(boxes))
        assert min(box["height"] for box in boxes) >= 24
        for button in page.locator("#loop .flash-buttons .flash-button").all():
            box = button.bounding_box()
            assert (box["width"], box["height"]) == (44, 44)


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
