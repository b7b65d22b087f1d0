"""Only the package of masks tests of which kind a mask is; all other code calls its methods."""

import ast
from pathlib import Path

import pytest

from flashlib import masks
from flashlib.masks import biased

ROOT = Path(__file__).resolve().parents[2]


def kinds(base):
    """Return the names of a class and of those of the package that derive from it."""
    derived = [one for one in base.__subclasses__() if one.__module__.startswith("flashlib.masks")]
    return {base.__name__, *(name for one in derived for name in kinds(one))}


KINDS = {*kinds(masks.Mask), *(one.__name__ for one in (biased.OfPlace, biased.OfDistance, biased.OfFunction))}


def names(node):
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in ast.walk(node)}


def asked_kinds(text):
    """Return the lines on which code tests of which kind a mask is, or whether it is exactly a plain one."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and names(node.func) & {"isinstance", "issubclass"}:
            wrong = names(node.args[1]) & KINDS - {"Mask"}
        elif isinstance(node, ast.MatchClass):
            wrong = names(node.cls) & KINDS
        elif isinstance(node, ast.Compare) and any(
            "type" in names(side) for side in (node.left, *node.comparators)
        ):
            wrong = names(node) & KINDS
        else:
            continue
        if wrong:
            found.append(node.lineno if hasattr(node, "lineno") else node.cls.lineno)
    return found


def test_only_masks_know_their_kinds():
    files = [file for file in (ROOT / "flashlib").rglob("*.py") if ROOT / "flashlib/masks" not in file.parents]
    found = {str(file.relative_to(ROOT)): asked_kinds(file.read_text(encoding="utf-8")) for file in files}
    wrong = [f"{file}:{line}" for file, lines in found.items() for line in lines]
    assert not wrong, (
        f"{wrong} ask for a kind of mask: add an answer to flashlib.masks.Mask, which the kind overrides"
    )


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(x, masks.Window)", "isinstance(x, (int, Placed | Blocks))", "type(x) is masks.Mask",
        "masks.Softcap == type(x)", "match x:\n    case masks.Window(left, right):\n        pass",
        "issubclass(x, OfPlace)",
    ],
)  # fmt: skip
def test_each_way_to_test_for_a_kind_is_found(code):
    assert asked_kinds(code) and not asked_kinds("isinstance(x, masks.Mask) and x == masks.causal()")
