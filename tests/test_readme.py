"""The README and chapter 00 say what the registry and the recorded runs say."""

import re

import pytest

nbformat = pytest.importorskip("nbformat")
from flashlib.chapters import CHAPTERS, NEEDS, chapter  # noqa: E402
from tools import minutes, notebooks, tables  # noqa: E402

FOLDER = tables.START_HERE.parent


def test_the_tables_of_the_readme_are_up_to_date():
    text = tables.README.read_text(encoding="utf-8")
    assert tables.readme(text) == text, "run python -m tools.tables"


def test_a_table_has_the_speeds_of_each_row_and_the_means_of_ratios():
    rows = [
        {"d": 64, "causal": False, "N": 1024, "dtype": "bfloat16"},
        {"d": 64, "causal": True, "N": 1024, "dtype": "bfloat16"},
    ]
    ours, others = (8.0, 2.0), dict.fromkeys(("sdpa_cudnn", "flex", "eager", "fa4"), 4.0)
    for row, mine in zip(rows, ours, strict=True):
        row["tflops"] = {"ours": mine, "hopper": 8.0, "sdpa_flash": 1.0} | others
    rows[1]["tflops"]["eager"] = None
    record = {"gpu": "GPU", "torch": "2", "triton": "3", "date": "today", "dtype": "bfloat16", "rows": rows}
    speed, hopper = tables.speed("forward", record), tables.hopper(record)
    assert (
        "| 64 | no | 1024 | 8 | 4 | 4 | 1 | 4 | 8.00 |\n| 64 | yes | 1024 | 2 | 4 | 4 | 1 | - | 2.00 |\n" in speed
    )
    assert "The geometric mean of the last column is 4.00." in speed
    assert "| 64 | no | 1024 | 8 | 8 | 4 | 4 |\n| 64 | yes | 1024 | 8 | 2 | 4 | 4 |\n" in hopper
    assert "2.00 times that of chapter 10, 2.00 times that of SDPA cuDNN and 2.00 times that of Fl" in hopper
    for table in (speed, hopper):
        assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1


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
def test_the_head_of_a_chapter_says_how_long_it_takes(c):
    nb = notebooks.read(FOLDER / f"{c.slug}.ipynb")
    assert minutes.stated(nb).cells[0].source == nb.cells[0].source, "run make notebooks"


def test_minutes_are_of_words_predictions_and_exercises():
    nb = nbformat.v4.new_notebook()

    def add(text, code=False, **metadata):
        make = nbformat.v4.new_code_cell if code else nbformat.v4.new_markdown_cell
        nb.cells.append(make(text, metadata=metadata))

    add("# Title\n\n" + "word " * 179 + "<details>" + "hidden " * 500 + "</details>")
    assert minutes.of(nb) == pytest.approx((1, 0, 0), abs=0.01)
    add("## Part (optional)\n\n" + "word " * 358)
    add("checks.predict('x')", code=True)
    add("### Exercise: A\n\n*20 minutes · hard*\n\n" + "word " * 500)
    add("def my_a():\n    " + "word " * 500, code=True, tags=["stub:a"])
    assert minutes.of(nb) == pytest.approx((1 + 2 + 3 + 20, 20, 2 + 3 + 20), abs=0.05)
    add("## Core again\n\n" + "word " * 178)
    assert minutes.of(nb) == pytest.approx((27, 20, 25), abs=0.05)
    said = minutes.sentence(minutes.of(nb))  # rounded up
    assert said == "About 30 minutes, of which 20 are for exercises and 30 are optional."


@pytest.mark.parametrize("rest", ["", " Builds on\nchapter 02."])
def test_a_head_may_end_with_how_long_it_takes(rest):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# T\n\n*About 99 minutes.{rest}*")])
    assert minutes.stated(nb).cells[0].source == f"# T\n\n*About 5 minutes.{rest}*"


@pytest.mark.parametrize("c", CHAPTERS, ids=lambda c: c.slug)
def test_a_chapter_is_what_the_registry_says(c):
    cells = notebooks.read(FOLDER / f"{c.slug}.ipynb").cells
    assert cells[0].source.startswith(f"# {c.number} · {c.title}\n")
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert set(c.needs) <= NEEDS.keys()
    assert ("triton" in c.needs) == bool(
        re.search(r"^(import|from) (triton|flashlib\.kernels)", code, re.MULTILINE)
    )
    shown = re.findall(r"^(?:\w+ = )?(\w+(?:Player|Players|Lab|Tree))\b[.(]", code, re.MULTILINE)
    assert set(c.widgets) == set(shown)
