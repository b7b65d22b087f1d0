"""Prediction cards in JupyterLab, in a real browser: answers are graded at once, and kept."""

import json
import time

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("cloudpickle")
pytest.importorskip("nbconvert")

from nbformat.v4 import new_markdown_cell

from flashlib.checks.engine.prediction import card_texts
from tests.browser.contrast import too_low
from tests.browser.lab import THEMES, opened_file
from tests.browser.probes import AXE, VIOLATIONS
from tests.browser.saved import save
from tests.browser.shown import prediction_card
from tests.browser.shown.prediction_card import outcome

pytestmark = pytest.mark.browser

CARDS = ["first_overflow", "sum_overflow", "first_underflow", "more_queries", "shapes"]
PARTS, CHOICE, ONE, SET, TUPLES = range(len(CARDS))
KEPT = "predictions.json"
CELLS = [
    f"import os\nos.environ['FLASHLIB_PROGRESS'] = {KEPT!r}\nfrom flashlib import checks",
    *(f"checks.predict({name!r})" for name in CARDS[:TUPLES]),
    new_markdown_cell("**Predict.** Which shapes do S, P and O get?"),
    f"checks.predict({CARDS[TUPLES]!r})",
    "import time\nwhile os.path.exists('busy'):\n    time.sleep(0.05)",
]


@pytest.fixture(scope="module")
def lab(open_lab):
    with open_lab("predictions.ipynb", CELLS) as lab:
        assert lab.run_all() == []
        lab.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        yield lab


def card(lab, n):
    card = lab.page.locator(".flash-card").nth(n)
    card.scroll_into_view_if_needed()
    return card


def test_it_is_answered_by_keyboard(lab):
    prediction_card.check(card(lab, PARTS))


def test_a_card_below_its_question_shows_only_its_fields(lab):
    alone, below = (card(lab, n).locator(".flash-card-asks") for n in (ONE, TUPLES))
    assert alone.is_visible() and not below.is_visible()
    assert card(lab, TUPLES).get_attribute("aria-label") == card_texts()["shapes"]


def test_buttons_are_pressed_by_keyboard_and_any_number_of_a_set(lab):
    tiles, row = (card(lab, SET).get_by_role("group", name=name) for name in ("tiles", "row without key"))
    for name in ("(0, 0)", "(1, 0)", "(2, 0)", "(0, 0)"):
        tiles.get_by_role("button", name=name).press("Space")
    row.get_by_role("button", name="True").press("Enter")
    row.get_by_role("button", name="False").press("Space")
    pressed = card(lab, SET).get_by_role("button", pressed=True)
    assert pressed.all_inner_texts() == ["(1, 0)", "(2, 0)", "False"]
    card(lab, SET).get_by_role("button", name="Check").click()
    assert outcome(card(lab, SET)) == "wrong"
    row.get_by_role("button", name="True").click()
    card(lab, SET).get_by_role("button", name="Check").click()
    assert outcome(card(lab, SET)) == "right"


def test_a_phone_shows_the_keys_that_an_answer_needs(lab):
    modes = [card(lab, n).get_by_role("textbox").first.get_attribute("inputmode") for n in (PARTS, ONE, TUPLES)]
    assert modes == ["decimal", "text", "decimal"], "its decimal keys have no minus sign"
    sizes = lab.page.locator(".flash-card input").evaluate_all(
        "all => all.map((e) => getComputedStyle(e).fontSize)"
    )
    assert set(sizes) == {"16px"}, "it enlarges the page for less"


def test_missing_or_unreadable_parts_are_reported_without_a_verdict(lab):
    one, hint = card(lab, ONE), "Which results are rounded to 0?"
    for text, said in (("-18 keys", "“-18 keys” is not a number: write one such as 12"), ("", "")):
        one.get_by_label("your answer").fill(text)
        one.get_by_role("button", name="Check").click()
        assert outcome(one) == "open" and hint not in one.inner_text()
        assert said in one.locator(".flash-card-verdict").inner_text()
    one.get_by_label("your answer").fill("e^2")
    lab.page.keyboard.press("Enter")
    assert "“e^2” is not a number" in one.inner_text()
    assert one.locator(".flash-card-verdict sup").count() == 0, "it is shown as typed"
    parts = card(lab, CHOICE)
    parts.get_by_label("limit").fill("4.3")
    lab.page.keyboard.press("Enter")
    assert "limit: not 4.3 (near: less than 10 % too large). Left: weights." in parts.inner_text()
    parts.get_by_text("nan", exact=True).click()
    parts.get_by_label("limit").fill("4.16")
    lab.page.keyboard.press("Enter")
    assert outcome(parts) == "wrong" and "no term is inf, so there is no inf / inf" in parts.inner_text()
    parts.get_by_role("button", name="Show the answer").click()
    assert "weights: not “nan”, but “0”" in parts.inner_text()


def wait_until_kept(lab, folder, text):
    """Wait until Python has stored an answer: a message waits while another of the same widget is on its way."""
    deadline = time.monotonic() + 30
    while text not in (folder / "notebooks" / KEPT).read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, f"{text} was not kept"
        lab.page.wait_for_timeout(50)


def test_an_answer_is_kept_for_the_next_time(lab, folder):
    one = card(lab, ONE)
    one.get_by_label("your answer").fill("-18")
    lab.page.keyboard.press("Enter")
    assert outcome(one) == "right"
    wait_until_kept(lab, folder, '"-18"')
    lab.run_again(1 + ONE)
    again = card(lab, ONE)
    assert again.get_by_label("your answer").input_value() == "-18" and outcome(again) == "right"


def test_an_answer_of_an_earlier_form_of_the_question_is_kept_and_not_shown(lab, folder):
    kept = folder / "notebooks" / KEPT
    earlier = {"S": "(5, 7)", "P": "5, 7", "rows": "5"}
    kept.write_text(json.dumps({"solved": {}, "predicted": {"shapes": earlier}}), encoding="utf-8")
    lab.run_again(2 + TUPLES)
    shapes = card(lab, TUPLES)
    assert [field.input_value() for field in shapes.get_by_role("textbox").all()] == ["", "", "5", "7", "", ""]
    for k, number in enumerate((5, 16), 1):
        shapes.get_by_label(f"O, number {k} of 2").fill(str(number))
    lab.page.keyboard.press("Enter")
    assert "right so far; left: S." in shapes.inner_text()
    wait_until_kept(lab, folder, '"5, 16"')
    predicted = json.loads(kept.read_text(encoding="utf-8"))["predicted"]
    assert predicted == {"shapes": earlier | {"O": "5, 16"}}


def test_it_answers_while_python_is_busy(lab, folder):
    busy = folder / "notebooks" / "busy"
    busy.touch()
    try:
        lab.begin(len(CELLS) - 1)
        one = card(lab, ONE)
        one.get_by_label("your answer").fill("-24")
        lab.page.keyboard.press("Enter")
        assert outcome(one) == "wrong" and "24 log(2) is 16.6" in one.inner_text()
    finally:
        busy.unlink()


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible(lab, theme):
    lab.theme(theme)
    for k, number in enumerate((7, 5), 1):
        card(lab, TUPLES).get_by_label(f"S, number {k} of 2").fill(str(number))  # its verdict has buttons
    lab.page.keyboard.press("Enter")
    card(lab, TUPLES).get_by_role("button", name="Try again").wait_for()
    for n in range(len(CARDS)):
        assert card(lab, n).evaluate(VIOLATIONS) == []
        assert too_low(card(lab, n)) == []


def test_on_a_saved_page_it_is_graded_without_python(browser, tmp_path):
    with opened_file(browser, save(CELLS[: 2 + ONE], tmp_path)) as page:
        one = page.locator(".flash-card").nth(ONE)
        one.get_by_label("your answer").fill("-18")
        page.keyboard.press("Enter")
        assert outcome(one) == "right" and "2^-24" in one.inner_text()
        one.get_by_label("your answer").fill("−20")
        page.keyboard.press("Enter")
        assert outcome(one) == "wrong" and "Hint: " in one.inner_text() and "-18" not in one.inner_text()
        one.get_by_role("button", name="Show the answer").click()
        assert "not −20, but -18" in one.inner_text() and "Why: " in one.inner_text()
