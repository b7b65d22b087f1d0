"""Chapter 13 says what its capstone takes, and the rest of its core takes no more than an evening or two."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from tools import minutes, notebooks  # noqa: E402

CHAPTER = Path(__file__).parents[1] / "notebooks" / "13_hopper.ipynb"
MOST = 150  # minutes without the capstone and what is optional


def test_the_head_says_what_the_capstone_takes():
    nb = notebooks.read(CHAPTER)
    said = r"Section (\d+) is the capstone: .* take (\d+) of these minutes"
    number, told = re.search(said, nb.cells[0].source).groups()
    text = "".join(f"{cell.source}\n\n" for cell in nb.cells if cell.cell_type == "markdown")
    section = re.search(rf"^## {number}\. A kernel of your own$.*?(?=^## )", text, re.MULTILINE | re.DOTALL)[0]
    takes = [int(found) for found in re.findall(r"^\*(\d+) minutes · \w+\*$", section, re.MULTILINE)]
    assert len(takes) == 3 and sum(takes) == int(told) <= 140
    whole = minutes.of(nb)
    assert whole.all - whole.optional - sum(takes) <= MOST
