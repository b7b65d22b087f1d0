"""The chapters with widgets, in JupyterLab, in a real browser; all are executed against their stored outputs."""

import pytest

pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

CHAPTERS = [
    "00_start_here",
    "01_naive_softmax",
    "02_safe_softmax",
    "03_online_softmax",
    "05_one_pass",
    "06_tiling",
    "07_counting_bytes",
    "08_backward",
    "12_speed",
]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_runs_and_what_widgets_it_has_are_drawn(open_lab, name):
    with open_lab(f"{name}.ipynb") as lab:
        lab.page.locator(".jp-Notebook h1").first.wait_for()
        assert lab.run_all() == []
        widgets = lab.page.locator(".flash-widget")
        for k in range(widgets.count()):
            widgets.nth(k).scroll_into_view_if_needed()
            assert int(widgets.nth(k).get_attribute("data-loads")) == 1
            assert widgets.nth(k).bounding_box()["height"] > 100
