"""The widgets of each chapter in JupyterLab, in a real browser. nbval runs the whole chapters."""

import ast

import nbformat
import pytest

pytest.importorskip("anywidget")

from flashlib import widgets
from flashlib.chapters import CHAPTERS as NUMBERED
from flashlib.chapters import NOTEBOOKS as CHAPTERS
from tests.browser.lab import KERNEL_TIMEOUT, NOTEBOOKS
from tests.browser.probes import ENOUGH, FIRST_PICTURE, FIRST_SCREEN, NO_PICTURE_FIRST
from tools.workspace import folded

pytestmark = pytest.mark.browser

OPENINGS = [chapter.slug for chapter in NUMBERED if chapter.name not in NO_PICTURE_FIRST]
WITH_WIDGETS = [chapter.slug for chapter in CHAPTERS if set(chapter.widgets) & set(widgets.__all__)]
WIDGET = tuple(f"{name}(" for name in widgets.__all__)  # the beginnings of texts of outputs

# The names in the list of files that do not fit into it.
CUT_NAMES = """() => [...document.querySelectorAll(".jp-DirListing-itemName")]
    .filter((cell) => [...cell.children].some((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1))
    .map((cell) => cell.textContent)"""


def names(source, context):
    """Return the names that a cell reads (ast.Load) or defines (ast.Store)."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            found.add(node.id)
        elif context is ast.Store and isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif context is ast.Store and isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def what_widgets_need(nb):
    """Return the sources of the cells that show widgets, and of earlier ones that define the names they read."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    needed, taken = set(), []
    for cell in reversed(cells):
        shows = any(output.get("data", {}).get("text/plain", "").startswith(WIDGET) for output in cell.outputs)
        defined = names(cell.source, ast.Store)
        if shows or defined & needed:
            needed = needed - defined | names(cell.source, ast.Load)
            taken.append((cell.source, shows))
    return [source for source, _ in reversed(taken)], sum(shows for _, shows in taken)


def test_the_widgets_of_all_chapters_are_drawn(open_lab):
    """On one page, chapter after chapter: opening JupyterLab takes longer than running these cells."""
    cells, counts = [], {}
    for name in WITH_WIDGETS:
        sources, counts[name] = what_widgets_need(nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4))
        cells += [*sources, "%reset -f"]
    assert all(counts.values()), "each has a widget"
    with open_lab("widgets_of_all.ipynb", cells) as lab:
        assert lab.page.locator(".jp-DirListing-itemName").count() > len(CHAPTERS)
        assert lab.page.evaluate(CUT_NAMES) == []
        assert lab.run_all() == []
        shown = lab.page.locator(".flash-widget")
        shown.nth(sum(counts.values()) - 1).wait_for(timeout=KERNEL_TIMEOUT)
        assert shown.count() == sum(counts.values())
        for widget in shown.all():
            widget.scroll_into_view_if_needed()
            if "is not solved yet" in (widget.text_content() or ""):  # it shows an answer
                continue
            assert int(widget.get_attribute("data-loads")) == 1
            assert widget.bounding_box()["height"] > 100


@pytest.mark.parametrize("slug", OPENINGS)
def test_a_chapter_opens_with_something_to_see(open_lab, folder, slug):
    nb = folded(nbformat.read(NOTEBOOKS / f"{slug}.ipynb", as_version=4))
    nbformat.write(nb, folder / "notebooks" / "opening.ipynb")
    with open_lab("opening.ipynb") as lab:
        lab.page.set_viewport_size(FIRST_SCREEN)
        lab.page.wait_for_function(f"() => ({FIRST_PICTURE})() >= {ENOUGH}")


def test_real_models_opens_with_what_a_model_writes(open_lab, folder):
    nb = folded(nbformat.read(NOTEBOOKS / "17_real_models.ipynb", as_version=4))
    nbformat.write(nb, folder / "notebooks" / "opening.ipynb")
    with open_lab("opening.ipynb") as lab:
        lab.page.set_viewport_size(FIRST_SCREEN)
        written = lab.page.locator(".jp-OutputArea pre", has_text="queries counted from 0").first
        written.wait_for()
        assert written.bounding_box()["y"] + ENOUGH <= FIRST_SCREEN["height"]
