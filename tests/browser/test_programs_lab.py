"""ProgramsLab in JupyterLab, in a real browser: by keyboard, by pointer, and the offsets that it shows."""

import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import ProgramsLab
from tests.browser.labs import text, wait_for
from tests.browser.shown.programs_lab import check_program, check_shown

pytestmark = pytest.mark.browser

LAB = ".flash-programs-lab"
CELLS = ["from flashlib.widgets import ProgramsLab\nlab = ProgramsLab()\nlab"]


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("programs_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


@pytest.fixture
def lab(page_of_labs):
    """The lab, in the setting it was made with, at program 2."""
    lab = page_of_labs.locator(LAB).first
    lab.scroll_into_view_if_needed()
    setting = ProgramsLab().result["setting"]
    lab.evaluate("(lab, setting) => lab.flashWidget.ask(setting)", setting)
    wait_for(lab, setting)
    lab.evaluate("lab => lab.flashWidget.choose(2)")
    return lab


def test_it_shows_what_python_computed(lab):
    result = check_shown(lab)
    values = lab.locator(".flash-programs-code [data-mark]").all_inner_texts()
    assert [value for value in values if value.strip()] == ["pid = 2", "offs = [8 9 10 11]", "mask = [1 1 0 0]"]
    assert text(lab, ".flash-programs-listing header .flash-note") == "values in program 2"
    assert text(lab, ".flash-programs-stores > p:last-child") == result["tensors"][2]["stored"]


def test_the_program_by_slider_keys_and_pointer(lab):
    result = ProgramsLab().result
    slider = lab.get_by_label("program_id(0) of the program")
    slider.focus()
    slider.press("Home")
    check_program(lab, result, 0)
    lab.focus()
    for key, program in (("ArrowRight", 1), ("End", 2), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0)):
        lab.page.keyboard.press(key)
        check_program(lab, result, program)
    lab.locator(".flash-programs-grid").click(position={"x": 100, "y": 15})
    check_program(lab, result, 2)
    assert slider.input_value() == "2"


def test_sliders_and_the_mask(lab):
    slider = lab.locator("input[data-name=N]")
    slider.focus()
    slider.press("ArrowLeft")
    check_shown(lab, N=9)
    slider.press("Home")
    wait_for(lab, {"N": 0})
    assert text(lab, ".flash-headline-now").endswith("The grid has no programs, so nothing runs.")
    assert text(lab, ".flash-programs-programs > p") == "No program runs."
    assert "No program loads anything." in text(lab, ".flash-programs-loads")
    lab.evaluate("lab => lab.flashWidget.ask({ N: 10 })")
    lab.get_by_label("with its mask").uncheck()
    check_shown(lab, mask=False)
    assert lab.locator(".flash-legend").inner_text().count("out of bounds") == 1


def test_a_pointer_is_chosen(lab):
    lab.get_by_text("y_ptr", exact=True).click()
    assert lab.locator(".flash-programs-loads svg.flash-programs-matrix").get_attribute("aria-label") == (
        "y_ptr: 2 loaded and 2 masked"
    )


def test_tiles_by_two_sliders_and_a_transposed_copy(lab):
    lab.get_by_text("tiles of a matrix", exact=True).click()
    result = check_shown(lab, kernel="tile")
    rows, columns = (lab.get_by_label(f"program_id({axis}) of the program") for axis in (0, 1))
    rows.press("Home")
    columns.press("End")
    check_program(lab, result, 3)
    lab.get_by_label("to a transposed copy").check()
    check_shown(lab, kernel="tile", transposed=True)


def test_a_loop_goes_on_by_turns(lab):
    lab.get_by_text("loop over a row", exact=True).click()
    result = check_shown(lab, kernel="loop")
    turn = lab.get_by_label("turn of the loop")
    turn.press("ArrowRight")
    check_program(lab, result, 9, turn=1)
    assert "start = 4" in text(lab, ".flash-programs-code")
    lab.focus()
    lab.page.keyboard.press("ArrowUp")
    check_program(lab, result, 9, turn=0)


def test_a_setting_that_python_refuses_goes_back(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ BLOCK: 3 })")
    lab.get_by_text("BLOCK is 3; pass 1, 2, 4, 8 or 16. It stays 4.").wait_for()
    check_shown(lab)


def test_it_is_said_to_those_who_do_not_see(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ mask: false })")
    wait_for(lab, {"mask": False})
    lab.page.wait_for_function(
        """lab => /up to 2 past the end/.test(lab.querySelector("[aria-live=polite]").textContent)""",
        arg=lab.element_handle(),
    )
