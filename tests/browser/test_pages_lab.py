"""PagesLab in JupyterLab, in a real browser: by keyboard and pointer; everything that its frames show."""

import pytest

pytest.importorskip("anywidget")

from flashlib.cache.pages import Pages
from flashlib.widgets import PagesLab
from flashlib.widgets.pages_lab import scenarios
from tests.browser.lab import resized, wait_until_heard
from tests.browser.labs import wait_for
from tests.browser.shown.pages_lab import EVERY, check_frame

pytestmark = pytest.mark.browser

LAB = ".flash-paging"
WRONG = """from flashlib.cache.pages import Pages
from flashlib.widgets import PagesLab

class MyPages(Pages):
    def _to_write(self, page):
        return page

    drop = None

PagesLab("fork and copy on write", allocator=MyPages)"""
CELLS = ["from flashlib.widgets import PagesLab\nPagesLab()", WRONG]


# The places of the panels, the pages and the buttons, in whole pixels.
PLACES = """(lab) => Array.from({ length: lab.flashWidget.transport.last + 1 }, (_, k) => {
    lab.flashWidget.transport.seek(k);
    const own = lab.getBoundingClientRect();
    const parts = ".flash-panel, .flash-paging-page, .flash-paging-tables > div, .flash-paging-bar, button";
    return [...lab.querySelectorAll(parts)].map((e) => {
        const { x, y, height } = e.getBoundingClientRect();
        return [x - own.x, y - own.y, height].map(Math.round).join();
    });
})"""


@pytest.fixture(scope="module")
def page_of_labs(open_lab):
    with open_lab("pages_lab.ipynb", cells=CELLS) as lab:
        assert lab.run_all() == []
        yield lab.page


@pytest.fixture
def lab(page_of_labs):
    """The first lab, in its original setting, at its beginning."""
    lab = page_of_labs.locator(LAB).first
    lab.scroll_into_view_if_needed()
    ask(lab, **PagesLab().result["setting"])
    seek(lab, 0)
    return lab


@pytest.fixture
def wrong(page_of_labs):
    lab = page_of_labs.locator(LAB).nth(1)
    lab.scroll_into_view_if_needed()
    return lab


def ask(lab, **setting):
    lab.evaluate("(lab, setting) => lab.flashWidget.ask(setting)", setting)
    wait_for(lab, setting)


def seek(lab, position):
    lab.evaluate("(lab, position) => lab.flashWidget.transport.seek(position)", position)


def position(lab):
    return int(lab.get_attribute("data-position"))


@pytest.mark.parametrize("sizes", [{}, {"page": 16, "n_pages": 6}, {"page": 1, "n_pages": 28}], ids=str)
@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_every_frame_is_what_python_computed(lab, scenario, sizes):
    setting = {**PagesLab().result["setting"], "scenario": scenario, **sizes}
    ask(lab, **setting)
    result = PagesLab(**setting).result
    every = lab.evaluate(EVERY)
    for k, (shown, frame) in enumerate(zip(every, result["frames"], strict=True)):
        assert shown["status"] == f"step {k} of {len(every) - 1}"
        check_frame(shown, frame, result)


def test_what_happens_to_a_page_is_described_in_words(lab):
    ask(lab, scenario="fork and copy on write")
    calls = {shown["call"]: [page["mark"] for page in shown["pages"]] for shown in lab.evaluate(EVERY)}
    assert calls["append(A, 11)"][:4] == ["taken"] * 3 + [""]
    assert calls["B = fork(A)"][:4] == ["+ B"] * 3 + [""]
    assert calls["append(B, 1)"][:4] == ["", "", "copied", "copy of 2"]
    assert calls["free(C)"][:7] == ["− C", "− C", "", "", "given back", "", "given back"]


def test_by_keyboard(lab):
    last = len(PagesLab().result["frames"]) - 1
    lab.focus()
    for key, wanted in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        lab.page.keyboard.press(key)
        assert position(lab) == wanted, key
    lab.page.keyboard.press(" ")
    lab.page.wait_for_function("lab => Number(lab.dataset.position) >= 2", arg=lab.element_handle())
    lab.page.keyboard.press(" ")
    assert lab.locator(".flash-play").get_attribute("data-playing") == "false"


def test_frames_are_spoken(lab):
    frame = PagesLab().result["frames"][4]
    seek(lab, 4)
    last = len(PagesLab().result["frames"]) - 1
    lab.page.wait_for_function(
        "([lab, words]) => lab.querySelector('[aria-live=polite]').textContent === words",
        arg=[lab.element_handle(), f"step 4 of {last}. {frame['call']} {frame['words']}"],
    )


def test_scenarios_and_sizes_by_keyboard(lab):
    lab.locator("input[value='requests come and go']").focus()
    for scenario in ("a shared prompt", "fork and copy on write"):
        lab.page.keyboard.press("ArrowRight")
        wait_for(lab, {"scenario": scenario})
    for name, key, wanted, spoken in (
        ("page", "End", 16, "16 rows"),
        ("page", "Home", 1, "1 row"),
        ("n_pages", "End", 32, "32"),
    ):
        slider = lab.locator(f"input[data-name={name}]")
        slider.focus()
        slider.press(key)
        wait_for(lab, {name: wanted})
        assert slider.get_attribute("aria-valuetext") == spoken
        assert slider.evaluate("slider => slider === document.activeElement")


def test_a_refused_size_is_reverted(lab):
    lab.evaluate("lab => lab.flashWidget.ask({ page: 5 })")
    lab.get_by_text("page is 5; pass 1, 2, 4, 8 or 16. It stays 4.").wait_for()
    assert lab.locator("input[data-name=page]").get_attribute("aria-valuetext") == "4 rows"
    ask(lab, n_pages=20)
    wait_until_heard(lab)


@pytest.mark.parametrize("width", [560, 930, 1300])
@pytest.mark.parametrize("scenario", ["a shared prompt", "out of pages"])
def test_nothing_jumps_while_it_plays(lab, scenario, width):
    ask(lab, scenario=scenario, page=2, n_pages=32)
    with resized(lab, width):
        first, *others = lab.evaluate(PLACES)
    assert len(first) > 40
    for k, places in enumerate(others, start=1):
        moved = [pair for pair in zip(first, places, strict=True) if pair[0] != pair[1]]
        assert not moved, (k, moved)


def test_drawing_fits_into_a_frame(lab):
    """Each frame counts with the fastest of three times, since the machine may be busy."""
    ask(lab, scenario="out of pages", page=16, n_pages=32)
    times = lab.evaluate(
        """lab => Array.from({ length: lab.flashWidget.transport.last + 1 }, (_, k) => {
            const { transport } = lab.flashWidget;
            return Math.min(...[1, 2, 3].map(() => {
                transport.seek(k ? k - 1 : k + 1);
                transport.seek(k);
                return lab.flashWidget.drawTime;
            }));
        })"""
    )
    assert max(times) < 1000 / 60


def test_a_wrong_allocator_is_shown_where_it_is_wrong(wrong):
    changed = {"_to_write": lambda self, page: page, "drop": None}
    result = PagesLab("fork and copy on write", allocator=type("MyPages", (Pages,), changed)).result
    *right, last = wrong.evaluate(EVERY)
    for shown, frame in zip([*right, last], result["frames"], strict=True):
        check_frame(shown, frame, result)
    assert last["words"].startswith("✕ B wrote into page 2, row 3, and A has this page too.")
    assert [page["mark"] for page in last["pages"]] == ["", "", "✕ wrong"] + [""] * 13
    assert wrong.get_attribute("data-kind") == "fault"
    marks = wrong.locator(".flash-marks path").get_attribute("d")
    assert marks == f"M{len(right)} 0V1"
    assert wrong.get_by_text("“speculation” is off: MyPages has no drop.").is_visible()
    off = wrong.locator("input[type=radio]:disabled").evaluate_all("all => all.map((input) => input.value)")
    assert off == ["speculation"]
