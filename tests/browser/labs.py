"""What the tests of labs share: their setting, and words as they stand on the page."""

import pytest

Late = pytest.importorskip("playwright.sync_api").TimeoutError
ASKS_NOTHING = ("PipelinePlayer",)  # plays what Python sent, and has no settings


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
    """Return words as they are on the page, where names like N_k have an index that is set lower."""
    return words.replace("_", "").replace("\u00a0", " ")


def text(lab, selector):
    return lab.locator(selector).inner_text().replace("\u00a0", " ")


def reopened(lab, file, widgets):
    """Close the notebook and open it until its widgets are there: JupyterLab at times draws before it restores."""
    for _ in range(6):
        lab.close()
        lab.open(file)
        try:
            return lab.page.locator(".flash-widget").nth(widgets - 1).wait_for(timeout=20_000)
        except Late:
            continue
    raise AssertionError("opened six times, and the widgets were not restored")
