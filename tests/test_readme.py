"""The README and chapter 00 say what the registry and the recorded runs say."""

import re

import pytest

pytest.importorskip("nbformat")
from flashlib.chapters import CHAPTERS, NEEDS, chapter  # noqa: E402
from tools import notebooks, tables  # noqa: E402

FOLDER = tables.START_HERE.parent


def test_the_tables_of_the_readme_are_up_to_date():
    text = tables.README.read_text(encoding="utf-8")
    assert tables.readme(text) == text, "run python -m tools.tables"


def test_the_table_of_chapter_00_is_up_to_date():
    text = tables.START_HERE.read_text(encoding="utf-8")
    assert notebooks.to_text(tables.start_here(notebooks.read(tables.START_HERE))) == text, (
        "run python -m tools.tables"
    )


def test_a_text_without_its_place_is_refused():
    with pytest.raises(ValueError, match="there are no lines '<!-- speed"):
        tables.replaced("# Title\n", "speed", "")


def test_every_chapter_is_registered_in_order():
    assert [c.slug for c in CHAPTERS] == [path.stem for path in notebooks.chapters(FOLDER)]
    assert [c.number for c in CHAPTERS] == [f"{n:02d}" for n in range(len(CHAPTERS))]
    with pytest.raises(KeyError, match="no chapter '99_none' .* there are 00_start_here, "):
        chapter("99_none")


@pytest.mark.parametrize("c", CHAPTERS, ids=lambda c: c.slug)
def test_a_chapter_is_what_the_registry_says(c):
    cells = notebooks.read(FOLDER / f"{c.slug}.ipynb").cells
    assert cells[0].source.startswith(f"# {c.number} · {c.title}\n")
    assert f"About {c.minutes} minutes" in cells[0].source
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert set(c.needs) <= NEEDS.keys()
    assert ("triton" in c.needs) == bool(
        re.search(r"^(import|from) (triton|flashlib\.kernels)", code, re.MULTILINE)
    )
    shown = re.findall(r"^(?:\w+ = )?(\w+(?:Player|Players|Lab|Tree))\b[.(]", code, re.MULTILINE)
    assert set(c.widgets) == set(shown)
