"""Tests marked `gpu` run rarely, so these tests check that the names they use still exist."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
FILES = [path for path in sorted(TESTS.rglob("test_*.py")) if "mark.gpu" in path.read_text(encoding="utf-8")]


def missing(text):
    """Return the names in flashlib that a program imports or uses and that do not exist."""
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
    """Return what `from module import name` imports, None if there is no such name."""
    parent = importlib.import_module(module)
    if not hasattr(parent, name):
        try:
            return importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            return None
    return getattr(parent, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_the_names_it_uses_exist(path):
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
