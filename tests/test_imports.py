"""Imports point one way, and no module needs more than it must."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "flashlib").rglob("*.py"))
}

# What a module (left, the first that fits) may import of flashlib (right). Implementations import no other one,
# only `state`: the lines that they have in common are the lesson, and sharing them would hide it.
MAY_IMPORT = {
    r"flashlib(\.state)?": r"",
    r"flashlib\.(gpus|chapters|figures)": r"",
    r"flashlib\.masks\.mask": r"flashlib\.state",
    r"flashlib\.masks(\..*)?": r"flashlib\.(state|masks\..*)",
    r"flashlib\.pipeline(\..*)?": r"flashlib\.(state|gpus|pipeline|pipeline\..*)",
    r"flashlib\.cost": r"flashlib\.(state|gpus|masks)",
    r"flashlib\.gpt": r"flashlib\.state",
    r"flashlib\.(softmax|chunked|memory|sink|rotary)": r"flashlib\.state",
    r"flashlib\.(pages|cache)": r"flashlib\.(state|pages)",
    r"flashlib\.lm": r"flashlib\.(state|gpt|rotary|cache|kernels\.(append|decode))",
    r"flashlib\.serve": r"flashlib\.(state|lm)",
    r"flashlib\.(naive|tiled|torch_ref)": r"flashlib\.(state|masks)",
    r"flashlib\.recorder": r"flashlib\.(state|softmax|tiled)",
    r"flashlib\.kernels\.ladder(\..*)?": r"flashlib\.(state|kernels|kernels\.ladder)",
    r"flashlib\.parcel": r"flashlib\.kernels",
    r"flashlib\.kernels\.occupancy": r"flashlib\.gpus",
    r"flashlib\.kernels\.registry": (
        r"flashlib\.(state|kernels|kernels\.(softmax|forward|forward_ideas|backward|occupancy|(hopper\.)?ladder))"
        r"|flashlib\.kernels\.hopper\.forward"
    ),
    r"flashlib\.kernels\.compiler": r"flashlib\.kernels\.occupancy",
    r"flashlib\.kernels\.compiled": r"flashlib\.kernels\.(compiler|listings|occupancy|registry)",
    r"flashlib\.kernels\.compiling": r"flashlib\.(parcel|kernels|kernels\.(listings|tuned))",
    r"flashlib\.kernels\.own": r"flashlib\.(state|parcel|kernels\.(compiled|compiler))",
    r"flashlib\.kernels\.launching": r"flashlib\.(state|masks|kernels|kernels\.tuned)",
    r"flashlib\.kernels\.variants": r"flashlib\.(masks|kernels|kernels\.(launching|seen|tuned))",
    r"flashlib\.kernels\.forward": r"flashlib\.(state|kernels|kernels\.(launching|tuned|tiles|seen|variants))",
    r"flashlib\.kernels\.forward_ideas": r"flashlib\.kernels\.ladder",
    r"flashlib\.kernels\.backward_passes": r"flashlib\.(kernels|kernels\.(tiles|forward|seen))",
    r"flashlib\.kernels\.backward": (
        r"flashlib\.(state|kernels|kernels\.(launching|tuned|forward|variants|backward_passes))"
    ),
    r"flashlib\.kernels\.backward_ideas": (
        r"flashlib\.(state|kernels|kernels\.(launching|tuned|tiles|forward|backward))"
    ),
    r"flashlib\.kernels\.sinks": r"flashlib\.(state|sink|kernels|kernels\.(forward|backward))",
    r"flashlib\.kernels\.varlen": r"flashlib\.(state|kernels|kernels\.(forward|backward|launching|packed|tuned))",
    r"flashlib\.kernels\.paged": r"flashlib\.(state|kernels)",
    r"flashlib\.kernels\.decode_passes": r"flashlib\.kernels(\.(seen|forward))?",
    r"flashlib\.kernels\.decode": (
        r"flashlib\.(state|masks|kernels|kernels\.(launching|tuned|variants|sinks|forward|paged|decode_passes))"
    ),
    r"flashlib\.kernels\.decode_ideas": (
        r"flashlib\.(state|kernels|kernels\.(decode|decode_passes|forward|launching))"
    ),
    r"flashlib\.kernels\.packed": r"flashlib\.(kernels|kernels\.(launching|seen|variants))",
    r"flashlib\.kernels\.append": r"flashlib\.(state|cache|kernels|kernels\.(launching|tiles|paged))",
    r"flashlib\.kernels\.hopper": r"",
    r"flashlib\.kernels\.hopper\.threads": r"",
    r"flashlib\.kernels\.hopper\.standing": r"flashlib\.(kernels\.hopper\.threads|pipeline\..*)",
    r"flashlib\.kernels\.hopper\.interpreting": (
        r"flashlib\.(state|kernels|kernels\.hopper(\.(forward|launch|standing|threads))?|pipeline\..*)"
    ),
    r"flashlib\.kernels\.hopper\.clocked": r"flashlib\.state",
    r"flashlib\.kernels\.hopper\.launch": r"flashlib\.(state|kernels|kernels\.(launching|tuned))",
    r"flashlib\.kernels\.hopper\.forward": r"flashlib\.(state|kernels\.hopper\.launch)",
    r"flashlib\.kernels\.hopper\.ladder": r"flashlib\.(state|kernels|kernels\.(tuned|hopper|hopper\.launch))",
    r"flashlib\.kernels\.hopper\.ladder\.r5_.*": r"flashlib\.kernels\.hopper\.ladder(\.(tiles|r4_overlap))?",
    r"flashlib\.kernels\.hopper\.ladder\.r\d_.*": r"flashlib\.kernels\.hopper\.ladder(\.tiles)?",
    r"flashlib\.kernels\.hopper\.ladder\.tiles": r"",
    r"flashlib\.kernels\.autograd": r"flashlib\.(state|masks|kernels|kernels\.(forward|backward|variants))",
    r"flashlib\.kernels": r"flashlib\.(state|kernels\.interpreting)",
    r"flashlib\.kernels\..*": r"flashlib\.(state|kernels)",
    r"flashlib\.bench\.harness": r"flashlib\.(state|cost)",
    r"flashlib\.(picture|orders|hierarchy|widgets|checks)(\..*)?": r"flashlib\.(?!bench).*",
    r"flashlib\.bench(\..*)?": r"flashlib\..*",
}


def imports_of(name, text, is_package=False):
    """Return the modules of flashlib that the module `name` imports anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            parents = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in MODULES else base)
    return {module for module in found if re.match(r"flashlib\b", module)}


def forbidden(name, text, is_package=False):
    """Return what the module `name` imports of flashlib and may not."""
    allowed = [right for left, right in MAY_IMPORT.items() if re.fullmatch(left, name)]
    assert allowed, f"{name} is new: say in MAY_IMPORT what it may import"
    return {m for m in imports_of(name, text, is_package) if not re.fullmatch(allowed[0], m)}


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name):
    path = MODULES[name]
    assert not forbidden(name, path.read_text(encoding="utf-8"), path.name == "__init__.py")


@pytest.mark.parametrize(
    "name, text",
    [
        ("flashlib.tiled", "from flashlib.naive import attention"),
        ("flashlib.tiled", "from flashlib import naive"),
        ("flashlib.tiled", "from . import naive, state"),
        ("flashlib.tiled", "def f():\n    import flashlib.naive as n"),
        ("flashlib.kernels.forward", "from .softmax import row_softmax"),
        ("flashlib.kernels.forward", "from ..torch_ref import attention"),
        ("flashlib.kernels.ladder.r4_exp2", "from flashlib.kernels.ladder.r3_flash import kernel"),
        ("flashlib.cost", "import flashlib.tiled"),
        ("flashlib.lm.gpt", "from flashlib.kernels import autograd"),
        ("flashlib.state", "import flashlib.state, flashlib.tiled"),
    ],
)
def test_a_forbidden_import_is_found(name, text):
    assert forbidden(name, text)


def python(code):
    """Run `code` in a Python of its own, from the root of the repository, and return the finished process."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_flashlib_itself_imports_nothing_heavy():
    done = python(
        "import sys, flashlib\n"
        "heavy = {'torch', 'triton', 'matplotlib', 'numpy', 'ipywidgets', 'anywidget'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert done.returncode == 0, done.stderr


BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if {blocked}:
            raise ModuleNotFoundError(name + ' is blocked', name=name)
sys.meta_path.insert(0, Block())
"""


@pytest.mark.parametrize("module", ["state", "softmax", "naive", "tiled", "memory", "cost"])
def test_numpy_is_all_that_is_needed(module):
    third_party = "name.partition('.')[0] not in {'numpy', 'flashlib', *sys.stdlib_module_names}"
    done = python(BLOCK.format(blocked=third_party) + f"import flashlib.{module}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("system, words", [("Linux", "run make setup"), ("Darwin", "this is Darwin")])
def test_without_triton_kernels_say_so(system, words):
    done = python(
        BLOCK.format(blocked="name == 'triton'")
        + f"import platform, torch\nplatform.system = lambda: {system!r}\n"
        + "try:\n"
        + "    import flashlib.kernels\n"
        + "except ImportError as error:\n"
        + "    print(error)"
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1, "one sentence"
    assert done.stdout.startswith("Triton is not installed") and words in done.stdout
