"""A page of the site with a widget of each class, opened as a file in a browser without a network."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib import widgets
from tests.browser import sizes
from tests.browser.lab import opened_file
from tests.browser.labs import ASKS_NOTHING
from tests.browser.saved import save

pytestmark = pytest.mark.browser

CODE = [
    "from flashlib import widgets",
    *(f"widgets.{name}()" for name in widgets.__all__),
    "widgets.FlashPlayer(B_r=0)",
]
BROKEN = len(widgets.__all__)  # the widget that cannot be shown, with its sentence instead


# Once the parts that watch their size have drawn.
ALL_OUT_OF_PLACE = f"""async () => {{
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    return [...document.querySelectorAll(".flash-widget:not(:has(> .flash-problem))")].map({sizes.OUT_OF_PLACE});
}}"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The page of a widget of each class and of one that refuses its arguments."""
    return save(CODE, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def playing(browser, saved):
    with opened_file(browser, saved) as page:
        page.wait_for_selector("html[data-ready]", state="attached")
        yield page


def test_nothing_is_cut_off(browser, saved):
    with opened_file(browser, saved) as page:
        page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")  # no callouts
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        found = {}
        for width in sizes.WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            found |= zip([(width, name) for name in widgets.__all__], page.evaluate(ALL_OUT_OF_PLACE), strict=True)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert {which: problems for which, problems in found.items() if problems} == {}


def places(page):
    """The places of widgets: one of each class, and the one that refuses."""
    return page.locator("[data-place]").all()


@pytest.mark.parametrize("number", range(BROKEN), ids=widgets.__all__)
def test_each_widget_plays_in_the_place_of_its_picture(playing, number):
    place = places(playing)[number]
    widget = place.locator(".flash-widget")
    assert widget.get_attribute("data-loads") == "1"
    assert widget.bounding_box()["height"] > 100
    assert place.locator(".still img").is_hidden()


def test_the_style_sheet_of_a_class_occurs_once(playing):
    sheets = playing.locator("link[rel=stylesheet]").evaluate_all("all => all.map((one) => one.href)")
    assert len(sheets) == len(set(sheets)) == 2 + len(widgets.__all__)  # the site's, and what widgets share


@pytest.mark.parametrize("name", ["PagesLab", "PipelinePlayer", "RingPlayer", "ServeLab"])
def test_it_opens_in_the_middle_of_its_work(playing, name):
    """Where Python says that it is most instructive: neither at the beginning nor at the end."""
    widget = places(playing)[widgets.__all__.index(name)].locator(".flash-widget")
    shown = "root => { const { transport, time } = root.flashWidget; return time ?? transport.position; }"
    opens = widget.evaluate("root => root.flashWidget.result.opens")
    assert widget.evaluate(shown) == opens
    assert 0 < widget.evaluate("root => root.flashWidget.transport.position / root.flashWidget.transport.last") < 1


def test_player_steps(playing):
    player = places(playing)[widgets.__all__.index("FlashPlayer")].locator(".flash-widget")
    before = player.get_attribute("data-frame")
    player.focus()
    playing.keyboard.press("ArrowRight")
    assert player.get_attribute("data-frame") != before


def test_settings_are_off_and_say_so(playing):
    for name, place in zip(widgets.__all__, places(playing)[:BROKEN], strict=True):
        fieldsets = place.locator(".flash-settings")
        if name in ASKS_NOTHING:
            assert fieldsets.count() == 0
            continue
        off = fieldsets.evaluate_all("all => all.map((fieldset) => fieldset.matches('fieldset:disabled'))")
        assert off and all(off)
        text = place.locator(".flash-widget").inner_text()
        assert "To change a setting, run the notebook." in text


def test_a_disabled_button_looks_disabled(playing):
    tree = places(playing)[widgets.__all__.index("MergeTree")].locator(".flash-widget")
    back = "all => all.map((button) => getComputedStyle(button).backgroundColor)"
    backs = tree.locator("button:disabled").evaluate_all(back)
    assert len(backs) > 5 and set(backs) == {"rgba(0, 0, 0, 0)"}
    assert "Pick a node" not in tree.inner_text()


def test_a_widget_that_cannot_be_shown_says_so(playing):
    assert "B_r" in places(playing)[BROKEN].locator(".flash-problem").inner_text()


def assert_pictures_stand(page):
    """Every widget's picture is visible and has an alternative text."""
    for place in places(page)[:BROKEN]:
        image = place.locator(".still img")
        image.scroll_into_view_if_needed()
        assert image.is_visible()
        assert image.get_attribute("alt").split("(")[0] in widgets.__all__


def test_without_javascript_the_pictures_are_shown(browser, saved):
    with opened_file(browser, saved, java_script_enabled=False) as page:
        assert_pictures_stand(page)


def test_where_scripts_fail_pictures_stay(browser, saved):
    path = saved.with_name("broken.html")
    text = saved.read_text(encoding="utf-8").replace('src="static/widgets/', 'src="static/gone/')
    path.write_text(text, encoding="utf-8")
    with opened_file(browser, path, errors=len(widgets.__all__) + BROKEN + 1) as page:
        assert page.locator(".flash-widget").count() == 0
        assert_pictures_stand(page)
