"""Names one can search for: a class name means one thing, and a file's name says what it holds."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [path for path in sorted((ROOT / "flashlib").rglob("*")) if path.suffix in (".py", ".js")]

# Class names that several modules may share, and why.
SHARED = {
    "Wait": "learners type it, in the commands of a kernel's roles (pipeline) and in those of a rank (ring)",
    "Compute": "learners type it, in the commands of a kernel's roles (pipeline) and in those of a rank (ring)",
    "Config": "as in Triton, how a kernel is launched (a chapter prints it); as in GPT, the sizes of a model",
    "Backend": "vLLM's backend for one device: interop.vllm.cpu and .cuda are registered by the same name",
    "Impl": "vLLM's word for the class of a Backend that computes",
}

# Words that say nothing about what a file holds.
EMPTY = {
    *("told", "said", "seen", "asked", "given", "found", "known", "joined", "placed", "apart", "whole", "ways"),
    *("heads", "values", "units", "numbers", "things", "misc", "utils", "helpers", "common"),
}


def classes():
    """Return {name of a class: the modules that define it} in flashlib."""
    modules = defaultdict(set)
    for path in SOURCES:
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    modules[node.name].add(path.relative_to(ROOT).as_posix())
    return modules


def test_a_class_name_has_one_meaning():
    several = {name: sorted(paths) for name, paths in classes().items() if len(paths) > 1}
    new = {name: paths for name, paths in several.items() if name not in SHARED}
    assert not new, f"several classes of one name: tell them apart, or add the name to SHARED with a reason: {new}"
    assert several.keys() >= SHARED.keys(), f"shared no longer: {SHARED.keys() - several.keys()}"


def test_the_name_of_a_file_says_what_it_holds():
    empty = [path.relative_to(ROOT).as_posix() for path in SOURCES if path.stem in EMPTY]
    assert not empty, f"name these files by what they hold: {empty}"
