"""Every public function of flashlib has type hints; in `make check`, mypy tests whether they are right.

A function of a module, or a method of a public class, is public if its name has no leading underscore. Kernels,
and the solutions of a chapter, which learners read, need no hints.
"""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules():
    for path in sorted(ROOT.joinpath("flashlib").rglob("*.py")):
        if not path.name.startswith("solutions") or "chapters" not in path.parts:
            yield path


def is_kernel(function):
    """Return whether a function is compiled for a GPU: its decorator is a `jit` or takes one."""
    decorators = [node for decorator in function.decorator_list for node in ast.walk(decorator)]
    return any(getattr(node, "attr", getattr(node, "id", "")) == "jit" for node in decorators)


def public(body):
    """Yield each public function that is defined in a module or in a public class, and whether it takes self."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from public(node.body + node.orelse)
        if getattr(node, "name", "_").startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            for method, _ in public(node.body):
                static = any(getattr(decorator, "id", "") == "staticmethod" for decorator in method.decorator_list)
                yield method, not static
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_kernel(node):
            yield node, False


def without_hint(function, bound):
    """Return what has no hint in a function: the names of parameters, and "return"."""
    taken = function.args
    parameters = [*(taken.posonlyargs + taken.args)[bound:], taken.vararg, *taken.kwonlyargs, taken.kwarg]
    missing = [parameter.arg for parameter in parameters if parameter and parameter.annotation is None]
    return missing + ["return"] * (function.returns is None)


def open_in(source):
    """Return {line and name: what has no hint} for the public functions of a module."""
    found = {f"{f.lineno} {f.name}": without_hint(f, bound) for f, bound in public(ast.parse(source).body)}
    return {name: missing for name, missing in found.items() if missing}


def test_public_functions_have_hints():
    found = {path.relative_to(ROOT).as_posix(): open_in(path.read_text(encoding="utf-8")) for path in modules()}
    assert {path: missing for path, missing in found.items() if missing} == {}


def test_missing_hints_are_found():
    source = """
@triton.jit
def kernel(x_ptr, N: tl.constexpr): ...
def _private(x): ...
def f(a, b: int, *c, d=1, **e): ...
def done(a: int, *b: int, **c: int) -> None: ...
class A:
    def method(self, x) -> int: ...
    def _private(self, x): ...
    @staticmethod
    def static(x) -> int: ...
if TORCH:
    def g(): ...
"""
    assert list(open_in(source).values()) == [["a", "c", "d", "e", "return"], ["x"], ["x"], ["return"]]


def test_the_package_says_that_it_has_types():
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
    assert ROOT.joinpath("flashlib", "py.typed").is_file()
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["*"]
