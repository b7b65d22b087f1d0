"""Chapter 17 without what it needs: its first cell says in a sentence what is missing, and its exercises work."""

import contextlib
import io
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from flashlib import chapters, checks
from flashlib.interop import weights
from tools import notebooks

SLUG = "17_real_models"
CELLS = notebooks.read(Path(__file__).resolve().parents[2] / "notebooks" / f"{SLUG}.ipynb").cells
FIRST = next(cell for cell in CELLS if cell.cell_type == "code").source
OTHERWISE = {name: chapters.NEEDS[name].otherwise for name in ("transformers", "weights")}


@pytest.fixture
def nothing_is_here(tmp_path, monkeypatch):
    """No weights, and no package transformers."""
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path))
    monkeypatch.setattr(chapters, "find_spec", lambda name: None if name == "transformers" else find_spec(name))


def printed(source):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, "first cell", "exec"), {})
    return said.getvalue()


def test_the_first_cell_says_in_a_sentence_what_is_missing(nothing_is_here):
    said = printed(FIRST)
    assert said == f"{OTHERWISE['transformers']}\n"
    assert "run make models" in said and "stored results" in said
    assert chapters.chapter(SLUG).obstacles() == list(OTHERWISE.values())


def test_weights_alone_may_be_missing(nothing_is_here, monkeypatch):
    monkeypatch.setattr(chapters, "find_spec", lambda name: name)
    assert printed(FIRST) == f"{OTHERWISE['weights']}\n"


def test_where_all_is_here_it_says_so(nothing_is_here, monkeypatch):
    monkeypatch.setattr(chapters, "find_spec", lambda name: name)
    monkeypatch.setattr(weights, "are_here", lambda: True)
    said = printed(FIRST)
    assert "missing" not in said and "make models" not in said and said.count("\n") == 1
    assert CELLS[2].outputs[0].text == said  # what is stored was made where all is here


def test_an_exercise_is_checked_without_them(nothing_is_here):
    assert checks.packs(
        lambda positions: [0, *(np.flatnonzero(np.diff(positions) != 1) + 1), len(positions)]
    ).right
    assert checks.packs(lambda ids: [0, len(ids)]).outcome == "wrong"


def test_all_that_is_stored_is_there():
    """Who reads it without models sees each result: no cell has failed, and each that prints has printed."""
    for cell in CELLS:
        if cell.cell_type == "code":
            assert all(output.output_type != "error" for output in cell.outputs)
            assert cell.outputs or not re.search(r"^print\(", cell.source, re.MULTILINE)
