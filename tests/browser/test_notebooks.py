"""The chapters with widgets, in JupyterLab, in a real browser; all are executed against their stored outputs."""

import pytest

from flashlib.chapters import CHAPTERS

pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

WITH_WIDGETS = [chapter.slug for chapter in CHAPTERS if chapter.widgets and not chapter.obstacles()]


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_a_chapter_runs_and_what_widgets_it_has_are_drawn(open_lab, name):
    with open_lab(f"{name}.ipynb") as lab:
        lab.page.locator(".jp-Notebook h1").first.wait_for()
        assert lab.run_all() == []
        widgets = lab.page.locator(".flash-widget")
        for k in range(widgets.count()):
            widgets.nth(k).scroll_into_view_if_needed()
            assert int(widgets.nth(k).get_attribute("data-loads")) == 1
            assert widgets.nth(k).bounding_box()["height"] > 100
