"""Real models without what it needs, and the adapter that it builds, in batches that are padded on either side."""

import contextlib
import io
import re
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from flashlib import chapters, checks
from flashlib.interop import weights
from flashlib.tiled import blocks
from tools import notebooks

SLUG = "17_real_models"
CELLS = notebooks.read(Path(__file__).resolve().parents[2] / "notebooks" / f"{SLUG}.ipynb").cells
(CHECKS,) = (cell for cell in CELLS if ".obstacles()" in cell.source)
IMPORTS = next(cell for cell in CELLS if cell.cell_type == "code").source
OTHERWISE = {name: chapters.NEEDS[name].otherwise for name in ("transformers", "weights")}


@pytest.fixture
def nothing_is_here(tmp_path, monkeypatch):
    """No weights, and no package transformers."""
    monkeypatch.setenv("FLASHLIB_MODELS", str(tmp_path))
    monkeypatch.setattr(chapters, "find_spec", lambda name: None if name == "transformers" else find_spec(name))


def printed():
    """Return what the cell prints that looks for what is missing, after the chapter's imports."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(f"{IMPORTS}\n{CHECKS.source}", "two cells", "exec"), {})
    return said.getvalue()


def test_a_cell_says_in_a_sentence_what_is_missing(nothing_is_here):
    said = printed()
    assert said == f"{OTHERWISE['transformers']}\n"
    assert "run make models" in said and "stored results" in said
    assert chapters.chapter(SLUG).obstacles() == list(OTHERWISE.values())


def test_weights_alone_may_be_missing(nothing_is_here, monkeypatch):
    monkeypatch.setattr(chapters, "find_spec", lambda name: name)
    assert printed() == f"{OTHERWISE['weights']}\n"


def test_if_everything_is_installed_it_says_so(nothing_is_here, monkeypatch):
    monkeypatch.setattr(chapters, "find_spec", lambda name: name)
    monkeypatch.setattr(weights, "are_here", lambda: True)
    said = printed()
    assert "missing" not in said and "make models" not in said and said.count("\n") == 1
    assert CHECKS.outputs[0].text == said  # what is stored was made where all is here


def test_an_exercise_is_checked_without_them(nothing_is_here):
    assert checks.packs(
        lambda positions: [0, *(np.flatnonzero(np.diff(positions) != 1) + 1), len(positions)]
    ).right
    assert checks.packs(lambda ids: [0, len(ids)]).outcome == "wrong"


def test_all_stored_results_are_there():
    """Who reads it without models sees each result: no cell has failed, and each that prints has printed."""
    for cell in CELLS:
        if cell.cell_type == "code":
            assert all(output.output_type != "error" for output in cell.outputs)
            assert cell.outputs or not re.search(r"^print\(", cell.source, re.MULTILINE)


BUILT = "0e12b15a", "b581a90d"  # the cells of step 1 and of the whole pair
TILES, WRITES = "9916ddfa", "cfc544ea"  # the cells of the tiles that speak, and of the text
DECODERS = "GPT-2", "Llama", "Mistral", "Gemma 2", "GPT-OSS", "Llama 4"


@pytest.fixture(scope="module")
def built():
    """Run the cells of the chapter that make the whole adapter; return their names."""
    torch = pytest.importorskip("torch")
    T = pytest.importorskip("transformers")
    from flashlib.interop import families

    names = {"torch": torch, "families": families, "FAMILIES": families.FAMILIES, "output": families.output}
    names |= {name: getattr(T, name) for name in ("AttentionInterface", "AttentionMaskInterface")}
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        for cell_id in BUILT:
            run_cell(cell_id, names)
    return names


def run_cell(cell_id, names):
    exec(next(cell.source for cell in CELLS if cell.id == cell_id), names)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["BERT", *DECODERS])
def test_the_whole_adapter_gives_no_nan_for_padding(built, family, side):
    torch, families = built["torch"], built["families"]
    present = torch.arange(families.IDS.shape[1]) >= torch.tensor([[0], [12]])
    present = present if side == "left" else present.flip(1)
    with torch.no_grad():
        mine, eager = (
            families.model(family, name)(input_ids=families.IDS, attention_mask=present.long())[0][present]
            for name in ("whole", "eager")
        )
    assert torch.isfinite(mine).all()
    torch.testing.assert_close(mine, eager, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", DECODERS)
def test_the_whole_adapter_writes_what_eager_writes_after_padding_on_the_left(built, family, cache):
    torch, families = built["torch"], built["families"]
    present = (torch.arange(20) >= torch.tensor([[0], [7]])).long()
    how = {"max_new_tokens": 8, "do_sample": False, "cache_implementation": cache}
    with torch.no_grad():
        mine, eager = (
            families.model(family, name, eos_token_id=None).generate(
                families.IDS[:, :20], attention_mask=present, **how
            )
            for name in ("whole", "eager")
        )
    assert mine.tolist() == eager.tolist()


def test_some_families_of_the_chapter_are_padded_on_the_left(built):
    masks = {name: family.inputs.get("attention_mask") for name, family in built["FAMILIES"].items()}
    padded = {name: bool(mask[1, 0] == 0) for name, mask in masks.items() if mask is not None}
    assert padded == {"Llama": True, "BERT": False, "Mistral": True}


def test_the_families_that_notice_are_those_of_the_exercise(built):
    """Each of its six broken adapters is one of the chapter's mistakes, whose name begins with its letter."""
    from flashlib.checks.chapters.real_models.exercises_families import FAMILIES, WITNESSES

    assert tuple(built["FAMILIES"]) == FAMILIES
    names = dict(built, combinations=combinations)
    with built["torch"].no_grad(), contextlib.redirect_stdout(io.StringIO()):
        run_cell("f1cc8b1d", names)
        run_cell("0ef36012", names)
    noticed = {name[0]: tuple(found) or ("nobody",) for name, found in names["noticed"].items() if name[1] == ":"}
    assert noticed == WITNESSES
    assert len(names["few"]) == 3


def test_without_transformers_its_check_says_what_to_run(nothing_is_here):
    verdict = checks.model_attention(lambda: None)
    assert verdict.outcome == "not checked" and "run make models" in verdict.sentence


@pytest.mark.skipif(not weights.are_here(), reason="no weights: make models")
def test_without_alpha_the_tiles_write_a_colour_twice_unless_the_text_is_one_tile(built):
    names = dict(built, np=np, blocks=blocks)
    names["model"], names["tokenizer"] = weights.load()
    names["prompt"] = names["tokenizer"]("The capital of France is", return_tensors="pt").input_ids
    names["course"] = pytest.importorskip("flashlib.interop.transformers")
    source = next(cell.source for cell in CELLS if cell.id == TILES)
    broken = source.replace("np.exp(m_old - m),", "np.ones(len(m)),")
    assert broken != source and "B_r=4, B_c=4" in source
    written = {}
    for name, cell in {
        "right": source, "broken": broken, "one tile": broken.replace("B_r=4, B_c=4", "B_r=16, B_c=16")
    }.items():  # fmt: skip
        printed = io.StringIO()
        with built["torch"].no_grad(), contextlib.redirect_stdout(printed):
            exec(cell, names)
            run_cell(WRITES, names)
        written[name] = printed.getvalue()
    assert written["one tile"] == written["right"] != written["broken"]
    assert "red, blue, and green" in written["right"] and "red, blue, and blue" in written["broken"]
