"""A notebook open in two pages, with one Python: a setting made in one page shows in the other."""

import time

import pytest

pytest.importorskip("anywidget")

from tests.browser.lab import SIZE, Lab
from tools.measure_widgets import CASES

pytestmark = pytest.mark.browser

FILE = "twice.ipynb"
ASKED = [(case, control) for case, control in CASES if control]
CELLS = ["from flashlib.widgets import *", *dict.fromkeys(case for case, _ in ASKED)]
TYPED = [*dict.fromkeys(case for case, _ in ASKED)].index("MaskLab('line', N_q=96, N_k=96)")

PATIENCE = 10  # seconds

CHANGE = """(root, [selector, value, event]) => {
    const control = root.querySelector(selector);
    if (value !== null) control.value = value;
    control.dispatchEvent(new Event(event, { bubbles: true }));
}"""

# The setting, the shown result and the message; null while an answer is awaited.
SHOWN = """(root) => {
    const { model, shown, busy } = root.flashWidget;
    if (model.get("heard") !== model.get("asked")) return null;
    const setting = Object.keys(model.get(shown).setting).map((name) => [name, model.get(name)]);
    const controls = [...root.querySelectorAll(".flash-settings :is(input, select, button)")];
    const seen = controls.map((one) => [one.value, one.checked, one.disabled, one.ariaPressed, one.title]);
    return JSON.stringify([model.get("asked"), setting, seen, busy.textContent]);
}"""
ANSWERED = """([root, path, wanted]) => {
    const { model } = root.flashWidget;
    const [first, ...rest] = path;
    return rest.reduce((value, name) => value[name], model.get(first)) === wanted && (%s)(root) !== null;
}"""


@pytest.fixture(scope="module")
def pages(browser, address, open_lab):
    """The widgets of a notebook in one page, and the same widgets in another."""
    with open_lab(FILE, CELLS) as first:
        assert first.run_all() == []
        first.save()
        second = Lab(browser.new_page(viewport=SIZE), address)
        second.open(FILE)
        last = second.page.locator(".flash-widget[data-loads]").nth(len(CELLS) - 2)
        last.wait_for(state="attached")
        yield [lab.page.locator(".flash-widget") for lab in (first, second)]
        assert second.complaints == []
        second.page.context.close()


def ask(widget, step, path):
    *change, wanted = step
    widget.evaluate(CHANGE, change)
    args = [widget.element_handle(), path, wanted]
    widget.page.wait_for_function(ANSWERED % SHOWN, arg=args)


def same(one, other):
    """Wait until the other page shows the same as this one."""
    wanted, end = one.evaluate(SHOWN), time.monotonic() + PATIENCE
    assert wanted is not None
    while other.evaluate(SHOWN) != wanted and time.monotonic() < end:
        other.page.wait_for_timeout(50)
    assert other.evaluate(SHOWN) == wanted


@pytest.mark.parametrize("case, control", ASKED, ids=lambda x: getattr(x, "label", x))
def test_a_page_follows_the_requests_of_another(pages, case, control):
    one, other = (page.nth(CELLS.index(case) - 1) for page in pages)
    first, second = control.steps
    ask(one, first, control.path)
    same(one, other)
    ask(other, second, control.path)
    same(other, one)
    ask(other, first, control.path)  # Python accepts it: it differs from the setting that this page knows
    same(other, one)
    ask(one, second, control.path)
    same(one, other)


def test_a_refused_text_stays_in_both_pages(pages):
    one, other = (page.nth(TYPED) for page in pages)
    one.evaluate(CHANGE, ['input[data-name="line"]', "r +", "change"])
    one.page.wait_for_function("(root) => root.flashWidget.busy.textContent", arg=one.element_handle())
    same(one, other)
