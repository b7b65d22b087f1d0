"""A page saved by tools/page.py, opened as a file in a real browser that reaches no network."""

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")
pytest.importorskip("nbconvert")

import nbformat

from flashlib import widgets
from tests.browser.lab import opened_file
from tests.browser.labs import ASKS_NOTHING
from tools import page as tool

pytestmark = pytest.mark.browser

CODE = [
    "from ipywidgets import interact\n\nfrom flashlib import widgets",
    *(f"widgets.{name}()" for name in widgets.__all__),
    "widgets.FlashPlayer(B_r=0)",
    "interact(lambda x: print(f'the square is {x * x}'), x=(0, 9));",
]
BROKEN = len(widgets.__all__)  # the widget that cannot be shown: its sentence stands in its place


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The page of a notebook with a widget of each class, one that refuses its arguments, one of ipywidgets."""
    folder = tmp_path_factory.mktemp("page")
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("$N$ and [02](02_safe.ipynb)")])
    nb.cells += [nbformat.v4.new_code_cell(text) for text in CODE]
    nbformat.write(nb, folder / "all.ipynb")
    return tool.save(folder / "all.ipynb", folder / "pages")


@pytest.fixture(scope="module")
def playing(browser, saved):
    with opened_file(browser, saved) as page:
        page.wait_for_function("n => document.querySelectorAll('.flash-widget').length === n", arg=BROKEN + 1)
        yield page


def outputs(page):
    """The outputs with a view: a widget of each class, the one that refuses, and the one of ipywidgets."""
    return page.locator(".jp-OutputArea-output:has(> .saved-picture)").all()


@pytest.mark.parametrize("number", range(BROKEN), ids=widgets.__all__)
def test_each_widget_plays_in_the_place_of_its_picture(playing, number):
    output = outputs(playing)[number]
    widget = output.locator(".flash-widget")
    assert widget.get_attribute("data-loads") == "1"
    assert widget.bounding_box()["height"] > 100
    assert output.locator(".saved-picture img").is_hidden()


def test_the_style_sheet_of_a_class_is_there_once(playing):
    styles = playing.locator("style").all_text_contents()
    assert sum(".flash-widget {" in style for style in styles) == len(widgets.__all__)


def test_player_steps(playing):
    player = outputs(playing)[widgets.__all__.index("FlashPlayer")].locator(".flash-widget")
    before = player.get_attribute("data-frame")
    player.focus()
    playing.keyboard.press("ArrowRight")
    playing.wait_for_function(
        "([player, before]) => player.dataset.frame !== before", arg=[player.element_handle(), before]
    )


def test_settings_are_off_and_say_so(playing):
    for name, output in zip(widgets.__all__, outputs(playing)[:BROKEN], strict=True):
        fieldsets = output.locator(".flash-settings")
        if name in ASKS_NOTHING:
            assert fieldsets.count() == 0
            continue
        off = fieldsets.evaluate_all("all => all.map((fieldset) => fieldset.matches('fieldset:disabled'))")
        assert off and all(off)
        text = output.locator(".flash-widget").inner_text()
        assert ("it plays" in text) == (output.locator(".flash-play").count() > 0)
        assert "to change a setting, run the notebook" in text


def test_what_cannot_play_says_so(playing):
    *_, broken, interact = outputs(playing)
    assert "B_r" in broken.locator(".flash-problem").inner_text()
    assert "the square is" in interact.inner_text()
    assert "need a running notebook" in interact.inner_text()


def test_links_lead_to_pages(playing):
    assert playing.locator("a[href='02_safe.html']").count() == 1


def assert_pictures_stand(page):
    """Every widget's picture is visible and has an alternative text, and no output is empty."""
    for output in outputs(page)[:BROKEN]:
        image = output.locator(".saved-picture img")
        assert image.is_visible()
        assert image.evaluate("image => image.naturalWidth") > 0
        assert image.get_attribute("alt").split("(")[0] in widgets.__all__
    for output in page.locator(".jp-OutputArea-output").all():
        assert output.locator("img").count() or output.inner_text().strip()
        assert output.bounding_box()["height"] > 0


def test_without_javascript_the_pictures_stand(browser, saved):
    with opened_file(browser, saved, java_script_enabled=False) as page:
        assert_pictures_stand(page)


def test_where_a_module_fails_its_picture_stays(browser, saved):
    path = saved.with_name("broken.html")
    text = saved.read_text(encoding="utf-8").replace("export default", "throw Error('broken'); export default")
    path.write_text(text, encoding="utf-8")
    with opened_file(browser, path, errors=BROKEN + 1) as page:
        assert page.locator(".flash-widget").count() == 0
        assert_pictures_stand(page)
