"""A chapter with a capstone says how long that takes, and the rest takes no more than an evening or two."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from flashlib.chapters import named  # noqa: E402
from tools import minutes, notebooks  # noqa: E402

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
MOST = 150  # minutes without the capstone and what is optional


def test_the_head_says_how_long_the_capstone_takes():
    nb = notebooks.read(NOTEBOOKS / f"{named('hopper').slug}.ipynb")
    said = r"Section (\d+) is the capstone: .* take (\d+) of these minutes"
    number, told = re.search(said, nb.cells[0].source).groups()
    text = "".join(f"{cell.source}\n\n" for cell in nb.cells if cell.cell_type == "markdown")
    section = re.search(rf"^## {number}\. A kernel of your own$.*?(?=^## )", text, re.MULTILINE | re.DOTALL)[0]
    takes = [int(found) for found in re.findall(r"^\*(\d+) minutes · \w+\*$", section, re.MULTILINE)]
    assert len(takes) == 3 and 60 <= sum(takes) == int(told) <= 120
    whole = minutes.of(nb)
    assert whole.core - sum(takes) <= MOST


def test_the_head_says_how_long_a_kernel_for_any_mask_takes():
    nb = notebooks.read(NOTEBOOKS / f"{named('scores').slug}.ipynb")
    (told,) = re.findall(r"a whole kernel, takes (\d+) of these minutes", nb.cells[0].source)
    (text,) = [cell.source for cell in nb.cells if "exercise:variant" in notebooks.tags(cell)]
    (takes,) = re.findall(r"^\*(\d+) minutes · \w+\*$", text, re.MULTILINE)
    whole = minutes.of(nb)
    assert told == takes and whole.core - int(takes) <= MOST
