"""docs/models.md: its examples run, and what it names is there."""

import importlib
import re
from pathlib import Path

import pytest

from flashlib.interop import weights
from tests import required

required.package("transformers", "run make models")

from tests.interop.transformers.families import FAMILIES  # noqa: E402

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
NAMES = sorted(set(re.findall(r"`(flashlib\.[\w.]+)", TEXT)))


@pytest.mark.parametrize("amount", ["all"])
def test_all_examples_run(amount, capsys):
    if not weights.are_here():
        required.missing("The weights are not here: run make models")
    names = {}
    for block in BLOCKS:
        exec(compile(block, "docs/models.md", "exec"), names)
    assert len(BLOCKS) == 3
    assert capsys.readouterr().out.splitlines() == ["torch.Size([1, 23])", "The capital of France is Paris."]


def test_the_families_that_are_tested_are_named():
    assert "Fourteen families are tested" in TEXT and len(FAMILIES) == 14
    text = re.sub("[^a-z0-9]", "", TEXT.lower().replace("2 and 3", "2, gemma 3"))
    assert [name for name in FAMILIES if name.replace("_", "") not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_name_on_the_page_exists(name):
    parts = name.split(".")
    found = importlib.import_module("flashlib")
    for at, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:at]))
        found = getattr(found, part)
