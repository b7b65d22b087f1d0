"""One JupyterLab and one Chromium for all tests here; both stop after the last of them."""

import shutil
from contextlib import contextmanager

import pytest

pytest.importorskip("nbformat")

from tests.browser import lab
from tests.required import missing


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """Where JupyterLab lives; its subfolder notebooks holds a copy of the chapters."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(lab.NOTEBOOKS, folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return folder


@pytest.fixture(scope="package")
def address(folder):
    """The address of a JupyterLab that serves the folder and ignores the user's settings."""
    with lab.served(folder) as url:
        yield url


@pytest.fixture(scope="package")
def playwright():
    try:
        lab.path()
        with lab.driver() as playwright:
            yield playwright
    except lab.NoBrowser as reason:
        missing(str(reason))


@pytest.fixture(scope="package")
def browser(playwright):
    with lab.chromium(playwright) as browser:
        yield browser


@pytest.fixture(scope="package")
def open_lab(browser, address, folder):
    """Return a context that opens a notebook alone in a page: a chapter, or a new one of the given cells.

    At its end the page must have requested nothing from other machines and logged no error.
    """

    @contextmanager
    def opened(name, cells=()):
        with lab.opened(browser, address, folder, name, cells) as page:
            page.page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")  # no callouts
            yield page
            assert page.outside == []
            assert page.complaints == []

    return opened
