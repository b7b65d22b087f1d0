"""The search of the site, by keyboard and by touch: what it finds, selects and opens."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from tests.browser import test_site
from tests.browser.probes import AXE
from tests.browser.test_site import CHAPTER as SOFTMAX
from tests.browser.test_site import GLOSSARY, visit

pytestmark = pytest.mark.browser

ABOUT = "about.html"
VIOLATIONS = """async () => {
    const { violations, passes } = await axe.run("#search");
    if (!passes.length) return ["axe has looked at nothing"];
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}"""
# What a screen reader gets: the option that the field points to, and the options marked as selected.
SELECTED = """() => {
    const active = document.activeElement.getAttribute("aria-activedescendant");
    const options = [...document.querySelectorAll("#search-results [role=option]")];
    const selected = options.filter((one) => one.getAttribute("aria-selected") === "true");
    return [options.findIndex((one) => one.id === active), selected.length, options.indexOf(selected[0])];
}"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    made = test_site.Course(tmp_path_factory.mktemp("site"), test_site.SOME)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def page(browser, course):
    with visit(browser, course.address + ABOUT) as page:
        yield page


@pytest.fixture
def start(page, course):
    """A page without widgets, which appears at once."""
    page.goto(course.address + ABOUT)
    page.wait_for_selector(test_site.READY, state="attached")
    return page


def options(page):
    return page.locator("#search [role=option]")


def search(page, words):
    """Type words into the search and wait for the results."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    options(page).first.wait_for()


def test_enter_opens_the_first_result(start):
    search(start, "online softmax")
    assert start.locator("#search mark").count()
    start.keyboard.press("Enter")
    start.wait_for_url(f"**/{SOFTMAX}")


def test_enter_need_not_wait_for_the_results(start):
    start.keyboard.press("/")
    start.keyboard.type("online softmax")
    start.keyboard.press("Enter")
    start.wait_for_url(f"**/{SOFTMAX}")


def test_arrows_select_and_enter_opens_the_selection(start):
    search(start, "rescale maximum")
    count = options(start).count()
    assert count > 2 and start.evaluate(SELECTED) == [0, 1, 0]
    for key, at in [("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowUp", 0), ("ArrowUp", count - 1)]:
        start.keyboard.press(key)
        assert start.evaluate(SELECTED) == [at, 1, at]
    chosen = options(start).last
    field, window = start.locator("#search input"), start.viewport_size["height"]
    assert chosen.bounding_box()["y"] + chosen.bounding_box()["height"] <= window and field.is_visible()
    start.keyboard.press("ArrowDown")
    start.keyboard.press("ArrowDown")
    address = options(start).nth(1).get_attribute("href")
    start.keyboard.press("Enter")
    start.wait_for_url(f"**/{address}")


def test_a_new_search_begins_with_its_first_result_again(start):
    search(start, "rescale")
    start.keyboard.press("ArrowDown")
    start.keyboard.type(" maximum")
    start.locator("#search mark", has_text="maximum").first.wait_for()
    assert start.evaluate(SELECTED) == [0, 1, 0]


@pytest.mark.parametrize("words", ["xyzzy", "", "softmax xyzzy"])
def test_enter_without_a_result_opens_nothing(start, words):
    start.keyboard.press("/")
    start.keyboard.type(words)
    start.keyboard.press("Enter")
    if words:
        start.get_by_text("Nothing contains all of these words.").wait_for()
    assert start.url.endswith(ABOUT) and start.locator("#search").is_visible()
    assert options(start).count() == 0
    assert start.locator("#search input").get_attribute("aria-expanded") == "false"
    start.get_by_role("button", name="Close").click()
    assert start.locator("#search").is_hidden()


def test_a_typing_error_finds_what_was_meant(start):
    search(start, "online softmx")
    start.get_by_text("Nothing contains “online softmx”. These are the results for “online softmax”.").wait_for()
    start.keyboard.press("Enter")
    start.wait_for_url(f"**/{SOFTMAX}")


@pytest.mark.parametrize("by, name", [("keyboard", ABOUT), ("touch", GLOSSARY)])
def test_a_term_of_the_glossary_is_opened_on_its_row(start, course, by, name):
    """From elsewhere, and from its own page."""
    if name != ABOUT:
        start.goto(course.address + name)
        start.wait_for_selector(test_site.READY, state="attached")
    search(start, "paged attention")
    first = options(start).first
    assert first.locator(".title").inner_text() == "Glossary · page, paged attention"
    start.keyboard.press("Enter") if by == "keyboard" else first.click()
    row = start.locator("tr:target")
    row.wait_for()
    assert "paged attention" in row.inner_text() and start.locator("#search").is_hidden()
    start.wait_for_function("scrollY > 0")
    assert 0 < row.bounding_box()["y"] < start.viewport_size["height"]


def test_a_result_keeps_its_formulas(start):
    search(start, "running result from item")
    assert "Once m and l are known" in options(start).first.inner_text()


@pytest.mark.parametrize("size", test_site.WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_results_are_accessible(browser, course, theme, size):
    with visit(browser, course.address + ABOUT, size, theme) as page:
        page.locator("#search-open").click()
        page.keyboard.type("softmax")
        options(page).nth(20).wait_for()
        page.keyboard.press("ArrowDown")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(VIOLATIONS) == []
        assert page.evaluate(test_site.TOO_WIDE) == []
        field = page.get_by_role("combobox", name="Words to look for", expanded=True)
        assert field.get_attribute("aria-controls") == page.get_by_role("listbox").get_attribute("id")
        page.keyboard.press("Escape")
        assert page.locator("#search").is_hidden()
