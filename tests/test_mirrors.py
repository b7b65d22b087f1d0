"""A cell tagged `mirrors:flashlib.tiled.fa2_steps` is that function, so that book and library stay the same."""

import ast
import difflib
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from tools import notebooks  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TAG = "mirrors:"
MAX_LINES = 25  # of a NumPy core, so that it can be read in one sitting


def mirrors():
    for path in notebooks.chapters(ROOT / "notebooks"):
        for cell in notebooks.read(path).cells:
            for tag in notebooks.tags(cell):
                if tag.startswith(TAG):
                    name = tag.removeprefix(TAG)
                    yield pytest.param(name, cell.source, id=f"{path.stem}-{name}")


def library_function(name):
    """Return the syntax tree of the function `name`, "flashlib.module.function", read from its file."""
    module, _, function = name.rpartition(".")
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assert file.is_file(), f"there is no module {module}"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return node
    raise AssertionError(f"there is no function {name}")


def cell_function(source):
    """Return the syntax tree of the only function in a cell."""
    body = ast.parse(source).body
    one = len(body) == 1 and isinstance(body[0], ast.FunctionDef)
    assert one, "a cell that mirrors a function holds that function and nothing else"
    return body[0]


def hints(function):
    """Return the type hints of a function's parameters and of its result."""
    taken = function.args
    parameters = [*taken.posonlyargs, *taken.args, taken.vararg, *taken.kwonlyargs, taken.kwarg]
    return [hint for hint in (*(p.annotation for p in parameters if p), function.returns) if hint]


def without_hints(function):
    """Return a function without its hints."""
    function = ast.parse(ast.unparse(function)).body[0]
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    function.returns = None
    return function


def core(function):
    """Return the text of `function` without the parts that may differ: name, decorators, docstrings, comments."""
    function = ast.parse(ast.unparse(function)).body[0]
    function.name, function.decorator_list = "f", []
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(function)


def difference(name, source):
    """Return a diff from the function `name` to the one in a cell; empty if they are the same.

    A cell may leave out all hints, which learners need not write; if it has any, they are flashlib's.
    """
    library, cell = library_function(name), cell_function(source)
    library, cell = core(library if hints(cell) else without_hints(library)), core(cell)
    return "\n".join(difflib.unified_diff(library.splitlines(), cell.splitlines(), name, "cell", lineterm=""))


def lines_of(function):
    """Return the number of lines of `function` as it is written, without its head and its docstring."""
    first = function.body[ast.get_docstring(function) is not None]
    return function.end_lineno - first.lineno + 1


@pytest.mark.parametrize("name, source", list(mirrors()))
def test_mirror(name, source):
    changes = difference(name, source)
    assert not changes, f"the cell and {name} differ:\n{changes}"
    if not name.startswith("flashlib.kernels."):
        assert lines_of(library_function(name)) <= MAX_LINES


def test_the_functions_that_chapters_build_are_mirrored():
    softmax = ("naive", "safe", "logsumexp", "online", "online_blocks", "merge", "weighted_sum")
    built = {f"flashlib.softmax.{name}" for name in softmax}
    built |= {"flashlib.naive.attention_passes", "flashlib.tiled.fa1_steps", "flashlib.tiled.fa2_steps"}
    built |= {"flashlib.kernels.softmax._softmax", "flashlib.kernels.ladder.r3_flash._flash"}
    assert built <= {parameters.values[0] for parameters in mirrors()}


NAME = "flashlib.inputs.resolve_scale"


def test_name_decorator_docstring_and_comments_may_differ():
    source = ast.unparse(library_function(NAME)).replace("def resolve_scale", "def mine")
    source = "@anything\n" + source.replace('"""Return', '"""In my own words, return') + "\n    # done"
    assert "mine" in source and "own words" in source
    assert not difference(NAME, source)


def test_all_hints_may_be_left_out_and_not_some():
    function = library_function(NAME)
    assert hints(function) and not difference(NAME, ast.unparse(without_hints(function)))
    assert difference(NAME, ast.unparse(function).replace("d: int", "d"))


def test_anything_else_may_not():
    source = ast.unparse(library_function(NAME))
    changes = difference(NAME, source.replace("1 / math.sqrt(d)", "1 / d", 1))
    assert "-        return 1 / math.sqrt(d)" in changes
    assert "+        return 1 / d" in changes
    assert difference(NAME, source.replace("d: int", "d: int = 1", 1))
    with pytest.raises(AssertionError, match="nothing else"):
        difference(NAME, source + "\nprint(1)")
    with pytest.raises(AssertionError, match="there is no function flashlib.inputs.gone"):
        difference("flashlib.inputs.gone", source)
    with pytest.raises(AssertionError, match="there is no module flashlib.gone"):
        difference("flashlib.gone.f", source)
