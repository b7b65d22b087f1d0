"""Tests marked `gpu` run where nobody looks each day: what they name must still be there."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
FILES = [path for path in sorted(TESTS.rglob("test_*.py")) if "mark.gpu" in path.read_text(encoding="utf-8")]


def missing(text):
    """Return what a program imports from flashlib, or asks of a module of it, that is not there."""
    tree, known, found = ast.parse(text), {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flashlib":
            for alias in node.names:
                known[alias.asname or alias.name] = imported(node.module, alias.name)
                if known[alias.asname or alias.name] is None:
                    found.append(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = known.get(node.value.id)
            if isinstance(module, ModuleType) and not hasattr(module, node.attr):
                found.append(f"{module.__name__}.{node.attr}")
    return found


def imported(module, name):
    """Return what `from module import name` gives, None if there is no such name."""
    parent = importlib.import_module(module)
    if not hasattr(parent, name):
        try:
            return importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            return None
    return getattr(parent, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_what_it_names_is_there(path):
    pytest.importorskip("triton")
    assert not missing(path.read_text(encoding="utf-8"))


def test_a_name_that_is_gone_is_found():
    text = """
def test():
    from flashlib.kernels import forward
    from flashlib import gone
    forward._gone()
"""
    assert missing(text) == ["flashlib.gone", "flashlib.kernels.forward._gone"]
