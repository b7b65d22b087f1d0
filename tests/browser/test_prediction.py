"""Cards of predictions in JupyterLab, in a real browser: what is typed is graded at once, and kept."""

import time

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("cloudpickle")
pytest.importorskip("nbconvert")

from tests.browser.contrast import too_low
from tests.browser.lab import THEMES, opened_file
from tests.browser.probes import AXE, VIOLATIONS
from tests.browser.saved import save
from tests.browser.shown import prediction_card
from tests.browser.shown.prediction_card import outcome

pytestmark = pytest.mark.browser

CARDS = ["first_overflow", "sum_overflow", "first_underflow", "shapes"]
PARTS, CHOICE, ONE, TUPLES = range(len(CARDS))
KEPT = "predictions.json"
CELLS = [
    f"import os\nos.environ['FLASHLIB_PROGRESS'] = {KEPT!r}\nfrom flashlib import checks",
    *(f"checks.predict({name!r})" for name in CARDS),
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


def test_what_is_missing_or_no_number_is_said_and_costs_no_reason(lab):
    one = card(lab, ONE)
    for text, said in (("-18 keys", "“-18 keys” has “keys” behind the number"), ("", "")):
        one.get_by_label("your answer").fill(text)
        one.get_by_role("button", name="Check").click()
        assert outcome(one) == "open" and "logarithm" not in one.inner_text()
        assert said in one.locator(".flash-card-verdict").inner_text()
    one.get_by_label("your answer").fill("e^2")
    lab.page.keyboard.press("Enter")
    assert "“e^2” is not a number: write one such as 0.5, 1e-3, 2^10" in one.inner_text()
    assert one.locator(".flash-card-verdict sup").count() == 0, "it is seen as it is typed"
    parts = card(lab, CHOICE)
    parts.get_by_label("limit").fill("4.3")
    lab.page.keyboard.press("Enter")
    assert "limit: not 4.3 (near: less than 10 % too large); left: weights." in parts.inner_text()
    parts.get_by_text("nan", exact=True).click()
    parts.get_by_label("limit").fill("4.16")
    lab.page.keyboard.press("Enter")
    assert outcome(parts) == "wrong" and "no term is inf, so there is no inf / inf" in parts.inner_text()
    parts.get_by_role("button", name="Show the answer").click()
    assert "weights: not nan, but 0" in parts.inner_text()


def wait_until_kept(lab, folder, text):
    """Wait until Python has kept an answer: a message waits while another of the same widget is on its way."""
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
def test_it_can_be_read_and_operated_by_all(lab, theme):
    lab.theme(theme)
    card(lab, TUPLES).get_by_label("S").fill("(7, 5)")  # its verdict has buttons
    lab.page.keyboard.press("Enter")
    card(lab, TUPLES).get_by_role("button", name="Try again").wait_for()
    for n in (PARTS, CHOICE, ONE, TUPLES):
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
