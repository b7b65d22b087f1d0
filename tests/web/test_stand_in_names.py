"""The stand-ins have each name that is asked of them, and no file of Triton is missing or changed."""

import ast
import importlib.metadata
import re
from pathlib import Path

import pytest

from flashlib.chapters import named
from tools import notebooks
from web.live import beside, kernel_files
from web.live.parts import ROOT

triton = pytest.importorskip("triton")

from triton._C import libtriton  # noqa: E402

page_torch, page_libtriton = beside.loaded("page_torch"), beside.loaded("page_libtriton")
PACKAGE = Path(triton.__file__).parent
MODULES = [
    PACKAGE.joinpath(folder, f"{name}.py")
    for folder, of_it in kernel_files.MODULES.items()
    for name in of_it.split()
]
OF_LIBTRITON = re.compile(r"_?(ir|interpreter)(\.\w+)+")  # as Triton imports its parts: ir, _ir, _interpreter


def in_triton(path):
    """Yield the modules of Triton that a module imports as it is imported itself, and the names in them."""
    package = ("triton", *path.relative_to(PACKAGE).parent.parts)
    for node in outside_functions(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*parts, *filter(None, [node.module])])
            if module.startswith("triton"):
                yield from (f"{module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("triton"))


def outside_functions(node):
    """Yield the nodes that run when a module is imported: not those in functions or under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        hint = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not hint:
            yield child
            yield from outside_functions(child)


def test_each_module_finds_those_that_it_imports():
    given = set(kernel_files.files())
    for path in MODULES:
        for name in in_triton(path):
            places = [name, name.rpartition(".")[0]]  # a module, or a name in one
            files = [f"{one.replace('.', '/')}{end}" for one in places for end in (".py", "/__init__.py")]
            assert given.intersection(files), (
                f"{path} imports {name}: add it to MODULES of web/live/kernel_files.py"
            )


def test_files_of_triton_are_unchanged_and_come_with_their_licence():
    given = kernel_files.files()
    for path in MODULES:
        assert given[path.relative_to(PACKAGE.parent).as_posix()] == path.read_bytes()
    assert b"Permission is hereby granted, free of charge" in given[kernel_files.LICENCE]
    assert "triton/_C/libtriton/interpreter.py" in given and "torch/__init__.py" in given


def test_without_triton_there_is_a_reason(monkeypatch):
    def none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", none)
    with pytest.raises(kernel_files.NoTriton, match="Triton is not installed here"):
        kernel_files.files()


def enums(module):
    return {name: x for name in dir(module) if hasattr(x := getattr(module, name), "__members__")}


def asked_of_libtriton():
    """Return {names with dots} that Triton's files take from the part in C++."""
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and OF_LIBTRITON.fullmatch(text := ast.unparse(node)):
                yield text.lstrip("_")
        for name in in_triton(path):
            if name.startswith("triton._C.libtriton."):
                yield name.removeprefix("triton._C.libtriton.")


def test_the_stand_in_for_libtriton_has_what_triton_asks_for():
    asked = set(asked_of_libtriton())
    assert {"getenv", "native_specialize_impl", "interpreter.load", "ir.MEM_SEMANTIC.ACQUIRE"} <= asked
    assert "linear_layout.LinearLayout" in asked
    kinds = enums(libtriton.ir)
    for name in asked:
        first, *rest = name.split(".")
        if first == "ir" and rest and rest[0] not in kinds:
            continue  # a class of the compiler
        found = page_libtriton
        for part in name.split("."):
            found = getattr(found, part)
    named_enums = {name.split(".")[1] for name in asked if name.startswith("ir.")} & set(kinds)
    assert named_enums <= set(enums(page_libtriton.ir))


@pytest.mark.parametrize("part", ["ir", "interpreter"])
def test_enums_have_the_members_that_they_have_in_triton(part):
    own = enums(getattr(libtriton, part))
    found = enums(getattr(page_libtriton, part))
    assert found
    for name, enum in found.items():
        assert list(enum.__members__) == list(own[name].__members__)


class Like:
    """An argument with a type."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 0


def test_types_of_arguments_have_the_names_that_triton_gives_them():
    import torch
    from triton.backends.compiler import BaseBackend

    numbers = None, True, 0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, 1.5, 2**64, "x", [1], b""
    kinds = {getattr(torch, name) for name in page_torch.dtypes.NAMED}
    for argument in (*numbers, *map(Like, kinds)):
        assert named_type(page_libtriton, None, argument) == named_type(libtriton, BaseBackend, argument), argument


def named_type(module, backend, argument):
    try:
        return module.native_specialize_impl(backend, argument, False, False, False)[0]
    except (TypeError, OverflowError) as error:
        return str(error)


@pytest.mark.parametrize("value", ["1", "TRUE", "on", "Yes", "y", "0", "false", "", "x", None])
def test_the_environment_is_read_as_triton_reads_it(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("TRITON_OF_A_TEST", raising=False)
    else:
        monkeypatch.setenv("TRITON_OF_A_TEST", value)
    for module in (libtriton, page_libtriton):
        assert module.getenv("TRITON_OF_A_TEST", "none") == (value if value is not None else "none")
    for default in (True, False):
        own, page = (m.getenv_bool("TRITON_OF_A_TEST", default) for m in (libtriton, page_libtriton))
        assert own == page


# ---- torch

ASKING = "triton_first_steps", "triton_flash", "triton_backward", "speed"
LACKS = re.compile(  # what these chapters ask for and a page lacks: gradients, the compiler, a GPU
    r"torch\.(autograd\.(grad|graph)|compile\b|func\.|autocast|OutOfMemoryError|cuda\.(?!is_available))"
)
NAME = re.compile(r"torch(\.\w+)+")


def asked_of_torch():
    """Return the names of torch, with dots, in the cells of chapters and in answers to their exercises."""
    texts = [path.read_text(encoding="utf-8") for name in ASKING for path in answers_of(name)]
    for name in ASKING:
        nb = notebooks.read(ROOT / "notebooks" / f"{named(name).slug}.ipynb")
        texts += [cell.source for cell in nb.cells if cell.cell_type == "code"]
    for node in (node for text in texts for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Attribute) and NAME.fullmatch(text := ast.unparse(node)):
            yield text
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            yield from (f"{node.module}.{one.name}" for one in node.names)


def answers_of(name):
    folder = ROOT / "tests" / "checks" / "answers" / name
    return [path for path in folder.glob("*.py") if path.name.startswith(("right", "wrong"))]


def test_the_stand_in_for_torch_has_what_chapters_and_answers_ask_for():
    asked = set(asked_of_torch())
    assert len(asked) > 40
    for name in sorted(asked):
        if not LACKS.match(name):
            found = page_torch
            for part in name.split(".")[1:]:
                found = getattr(found, part)  # raises an error that names it
