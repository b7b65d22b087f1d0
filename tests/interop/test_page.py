"""docs/models.md: its examples run, and what it names is there."""

import importlib
import re
from pathlib import Path

import pytest

from flashlib.interop import weights
from tests import required

required.package("transformers", "run make models")

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
NAMES = sorted(set(re.findall(r"`(flashlib\.[\w.]+)", TEXT)))


def test_all_examples_run(capsys):
    if not weights.are_here():
        required.missing("The weights are not here: run make models")
    names = {}
    for block in BLOCKS:
        exec(compile(block, "docs/models.md", "exec"), names)
    assert len(BLOCKS) == 3
    assert capsys.readouterr().out.splitlines() == ["torch.Size([1, 23])", "The capital of France is Paris."]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_is_there(name):
    parts = name.split(".")
    found = importlib.import_module("flashlib")
    for at, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:at]))
        found = getattr(found, part)
