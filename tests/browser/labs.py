"""Shared by the tests of labs: their settings, and words as they appear on the page."""

import pytest

Late = pytest.importorskip("playwright.sync_api").TimeoutError
ASKS_NOTHING = ("PipelinePlayer",)  # plays what Python sent, without settings


def wait_for(lab, setting):
    """Wait until a lab shows this setting."""
    lab.page.wait_for_function(
        """([lab, wanted]) => {
            const { setting } = lab.flashWidget.result;
            return Object.entries(wanted).every(([name, x]) => setting[name] === x);
        }""",
        arg=[lab.element_handle(), setting],
    )


def plain(words):
    """Return words as they appear on the page, where names like N_k have a subscript."""
    return words.replace("_", "").replace("\u00a0", " ")


def text(lab, selector):
    return lab.locator(selector).inner_text().replace("\u00a0", " ")


def reopened(lab, file, widgets):
    """Close and reopen the notebook until its widgets are there: at times JupyterLab draws before it restores."""
    for _ in range(6):
        lab.close()
        lab.open(file)
        try:
            return lab.page.locator(".flash-widget").nth(widgets - 1).wait_for(timeout=20_000)
        except Late:
            continue
    raise AssertionError("opened six times, and the widgets were not restored")
