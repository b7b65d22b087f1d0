"""Imports point one way, and no module needs more than it must."""

import ast
import functools
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

# The rooms of flashlib from the ground up, and what each may import: only rooms above it in this list.
# A room is a folder, without the folders and files in it that have separate rooms, or a top-level file.
ROOMS = {
    "language": "",
    "flashlib": "language",
    "types": "",
    "inputs": "types",
    "gpus": "",
    "environment": "",
    "interop.weights": "",
    "interop.families": "",
    "chapters": "interop.weights",
    "earlier": "language chapters",
    "splits": "",
    "recorded_head": "",
    "masks": "types inputs",
    "softmax": "inputs",
    "memory": "types",
    "sink": "types",
    "cost": "types inputs gpus masks",
    "naive": "types inputs masks",
    "tiled": "types inputs masks",
    "chunked": "types inputs",
    "torch_ref": "types inputs masks",
    "cache": "types inputs",
    "pipeline": "language types inputs gpus",
    "ring": "language types inputs masks softmax cost tiled",
    "lowbit": "types inputs masks tiled",
    "learner": "types softmax tiled",
    "private_apis": "",  # of torch, Triton and Gluon
    "gluon": "inputs pipeline private_apis",
    "kernels base": "private_apis",  # which Triton
    "learner.process": "language learner / kernels base",
    "learner.kernels": "learner private_apis / kernels base, learner.process",
    "ring.processes": "language types learner / kernels base",
    "kernels.launch": "inputs masks private_apis / kernels base",
    "kernels.masking": "masks / kernels.launch",
    "kernels": "types inputs splits masks cache private_apis / kernels base, kernels.launch, kernels.masking",
    "kernels.ladder": "types inputs / kernels.launch",
    "kernels.ablations": "types inputs / kernels.launch, kernels, kernels.ladder",
    "kernels.hopper": "types inputs private_apis / kernels.launch, kernels",
    "kernels.hopper.ladder": "types inputs / kernels.launch, kernels.hopper",
    "kernels.hopper.backward_ladder": "types inputs / kernels.launch, kernels, kernels.hopper",
    "kernels.choice": "masks / kernels.launch, kernels.masking, kernels, kernels.hopper",
    "kernels.autograd": "types inputs masks sink private_apis / kernels.launch, kernels.masking, kernels, "
    "kernels.hopper, kernels.choice",  # it joins all passes
    "kernels.compiler": "language inputs gpus learner private_apis / kernels.launch, kernels, kernels.ladder, "
    "kernels.ablations, kernels.hopper, kernels.hopper.ladder, kernels.hopper.backward_ladder",
    "ring.distributed": "types inputs masks ring kernels private_apis / kernels.launch, kernels.hopper",
    "lm": "types inputs cache kernels",
    "interop": "inputs masks kernels / kernels base, kernels.launch",
    "interop.vllm": "masks / kernels base, kernels.launch",
    "interop.deepspeed": "masks ring / kernels base",
    "interop.transformers": "types inputs masks sink tiled torch_ref / kernels base",
    "pictures": "types gpus",
    "widgets": "language types inputs gpus splits masks softmax memory cost naive tiled cache pipeline ring "
    "lowbit learner lm recorded_head pictures / learner.kernels, kernels.compiler",
    "checks.engine": "language chapters earlier softmax learner widgets / kernels base, learner.process, "
    "kernels.compiler",
    "checks.harness": "language types softmax naive tiled pipeline ring learner widgets private_apis gluon / "
    "kernels base, learner.process, learner.kernels, checks.engine",
    "checks.chapters": "language types gpus masks softmax memory cost naive tiled cache pipeline ring lowbit / "
    "kernels base, kernels.ladder, kernels.hopper.ladder, kernels.compiler, interop.families, checks.engine, "
    "checks.harness",
    "checks.classroom": "language chapters earlier environment pictures learner / kernels base, learner.process, "
    "checks.engine",
    "checks": "chapters earlier / checks.engine, checks.classroom",  # it finds the chapters by their files
    "bench.common": "cost torch_ref masks / kernels.compiler",
    "bench": "language types splits masks ring sink cost naive tiled torch_ref cache pipeline learner lm pictures "
    "kernels interop private_apis / kernels base, kernels.compiler, kernels.hopper, kernels.hopper.ladder, "
    "kernels.autograd, checks.engine, interop.transformers, ring.distributed, ring.processes, bench.common",
}

# Implementations that must not import each other: the lines that they have in common are the lesson, and sharing
# them would hide it. The fifth rung of Hopper's ladder is the fourth with different registers; the rungs of its
# backward pass share the producer of the second.
APART = [
    r"flashlib\.(softmax|naive|tiled|chunked|torch_ref)",
    r"flashlib\.kernels\.(softmax|forward|append)",
    r"flashlib\.kernels\.ladder\.r\d_\w+",
    r"flashlib\.kernels\.hopper\.ladder\.r[1-46]_\w+",
    r"flashlib\.kernels\.hopper\.backward_ladder\.r[13-6]_\w+",
]
BACKWARD_RUNGS = "flashlib.kernels.hopper.backward_ladder"
BASE = {
    "flashlib.kernels",
    *(f"flashlib.kernels.interpreter{part}" for part in ("", "_operators")),
}


def room_of(module):
    """Return the room that a module is in."""
    if module in BASE:
        return "kernels base"
    name = module.removeprefix("flashlib.")
    while name not in ROOMS and "." in name:
        name = name.rpartition(".")[0]
    return name


def allowed(room):
    """Return the rooms that a room may import."""
    files, _, rooms = ROOMS[room].partition("/")
    return {*files.split(), *(name.strip() for name in rooms.split(",") if name.strip())}


class WithoutTypes(ast.NodeTransformer):
    """Drops the code under `if TYPE_CHECKING:`, which editors read and Python does not run."""

    def visit_If(self, node):
        self.generic_visit(node)
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def base_of(node, name, is_package=False):
    """Return the module or package that a `from ... import` in the module `name` imports from."""
    parts = name.split(".")
    parents = parts[: len(parts) - node.level + is_package] if node.level else []
    return ".".join([*parents, *filter(None, [node.module])])


@functools.cache
def imports_of(name, text, is_package=False, for_types=False):
    """Return the modules of flashlib that the module `name` imports anywhere in its text.

    for_types: those that it imports under `if TYPE_CHECKING:` too.
    """
    found, tree = set(), ast.parse(text)
    for node in ast.walk(tree if for_types else WithoutTypes().visit(tree)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, name, is_package)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in MODULES else base)
    return frozenset(module for module in found if re.match(r"flashlib\b", module))


def forbidden(name, text, is_package=False):
    """Return what the module `name` imports from flashlib but must not."""
    room = room_of(name)
    assert room in ROOMS, f"{name} has no room: say in ROOMS what may be imported there"
    imported = imports_of(name, text, is_package)
    wrong = {m for m in imported if room_of(m) not in allowed(room) | {room}}
    for group in APART:
        if re.fullmatch(group, name):
            wrong |= {m for m in imported if m != name and re.fullmatch(group, m)}
    return wrong


def test_every_module_imports_what_its_room_may():
    wrong = {
        name: forbidden(name, path.read_text(encoding="utf-8"), path.name == "__init__.py")
        for name, path in MODULES.items()
    }
    assert {name: found for name, found in wrong.items() if found} == {}


def test_no_room_may_import_upward():
    order = list(ROOMS)
    for at, room in enumerate(order):
        above = {name for name in allowed(room) if name not in order[:at]}
        assert not above, f"{room} may import {above}, which are not above it in ROOMS"


def test_every_room_exists_and_imports_what_it_may_import():
    used = {room: set() for room in ROOMS}
    for name, path in MODULES.items():
        imported = imports_of(name, path.read_text(encoding="utf-8"), path.name == "__init__.py")
        used[room_of(name)] |= {room_of(m) for m in imported}
    assert set(map(room_of, MODULES)) == set(ROOMS)
    assert {room: allowed(room) - used[room] for room in ROOMS if allowed(room) - used[room]} == {}


# Modules whose imports for types do not count: this one lists, for editors, the modules that its __getattr__
# imports, and these read from it whether kernels are interpreted.
FRONT_DOORS = {"flashlib.kernels"}


def test_no_modules_import_each_other_in_a_circle():
    def imported(name, path):
        text, is_package = path.read_text(encoding="utf-8"), path.name == "__init__.py"
        return imports_of(name, text, is_package, for_types=name not in FRONT_DOORS) - {name}

    graph = {name: sorted(imported(name, path)) for name, path in MODULES.items()}
    done = set()

    def visit(name, way):
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            for imported in graph.get(name, ()):
                visit(imported, [*way, name])
            done.add(name)

    for name in graph:
        visit(name, [])


def private_names(name, text, is_package=False):
    """Return the names with a leading underscore that the module `name` takes from other modules of flashlib."""
    modules, found, tree = {}, set(), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = base_of(node, name, is_package)
            modules |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
            found.update(f"{base}.{alias.name}" for alias in node.names if base in MODULES)
        elif isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{modules.get(node.value.id)}.{node.attr}")
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    pairs = [full.rpartition(".") for full in found]
    return {f"{module}.{last}" for module, _, last in pairs if module in MODULES and re.match("_[a-z0-9]", last)}


@functools.cache
def kernels_of(module):
    """Return the names of the kernels that a module defines: one that is launched has an underscore in front."""
    body = ast.parse(MODULES[module].read_text(encoding="utf-8")).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    makers = {"jit", *(f.name for f in functions if not f.decorator_list and "triton.jit(" in ast.unparse(f))}

    def words(function):
        nodes = [node for decorator in function.decorator_list for node in ast.walk(decorator)]
        return {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}

    return {f.name for f in functions if words(f) & makers}


# The package that flashlib.interop.flash_attn replaces has a function of this name.
PRIVATE_AND_TAKEN = {"flashlib.interop.flash_attn.probabilities._get_block_size_n"}


def test_what_is_private_to_a_module_is_not_taken_by_another():
    files = MODULES | {path.stem: path for folder in ("tools", "web") for path in (ROOT / folder).rglob("*.py")}
    taken = set()
    for name, path in files.items():
        taken |= private_names(name, path.read_text(encoding="utf-8"), path.name == "__init__.py")
    kernels = {full for full in taken if full.rpartition(".")[2] in kernels_of(full.rpartition(".")[0])}
    assert kernels, "launched by other modules"
    assert taken - kernels == PRIVATE_AND_TAKEN


@pytest.mark.parametrize(
    "text",
    [
        "from flashlib.tiled import _output",
        "from flashlib import tiled as t\nt._output(1)",
        "from ..tiled import _output",
        "from .. import tiled\ndef f():\n    tiled._output(1)",
        "import flashlib.tiled\nflashlib.tiled._output(1)",
        "import flashlib.tiled as t\nt._output",
    ],
)
def test_a_private_name_that_is_taken_is_found(text):
    assert private_names("flashlib.widgets.lab", text) == {"flashlib.tiled._output"}


def test_what_is_run_as_a_program_is_not_imported():
    files = [path for folder in ("flashlib", "tools", "web") for path in (ROOT / folder).rglob("*.py")]
    statements = [
        ast.unparse(node)
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert len(statements) > 1000
    assert [statement for statement in statements if "__main__" in statement] == []


@pytest.mark.parametrize(
    "name, text",
    [
        ("flashlib.tiled", "from flashlib.naive import attention"),
        ("flashlib.tiled", "from flashlib import naive"),
        ("flashlib.tiled", "from . import naive, types"),
        ("flashlib.tiled", "def f():\n    import flashlib.naive as n"),
        ("flashlib.softmax", "from flashlib import chunked"),
        ("flashlib.kernels.forward", "from .softmax import row_softmax"),
        ("flashlib.kernels.forward", "from ..torch_ref import attention"),
        ("flashlib.kernels.forward", "from flashlib.kernels.ladder import r5_causal"),
        ("flashlib.kernels.launch.planning", "from flashlib.kernels import forward"),
        ("flashlib.kernels.ladder.r4_exp2", "from flashlib.kernels.ladder.r3_flash import _flash"),
        ("flashlib.kernels.hopper.ladder.r2_producer", "from flashlib.kernels.hopper.ladder import r1_alike"),
        (f"{BACKWARD_RUNGS}.r5_in_order", f"from {BACKWARD_RUNGS} import r4_half_columns"),
        ("flashlib.cost", "import flashlib.tiled"),
        ("flashlib.lm.model", "from flashlib import checks"),
        ("flashlib.types", "import flashlib.types, flashlib.tiled"),
        ("flashlib.checks.engine.verdict", "from flashlib.checks.harness import roles"),
    ],
)
def test_a_forbidden_import_is_found(name, text):
    assert forbidden(name, text)


def python(code):
    """Run `code` in a new Python process, from the root of the repository, and return the finished process."""
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


def test_numpy_is_all_that_is_needed():
    third_party = "name.partition('.')[0] not in {'numpy', 'flashlib', *sys.stdlib_module_names}"
    modules = "types, inputs, softmax, naive, tiled, masks, memory, cost, cache, ring, lowbit"
    done = python(BLOCK.format(blocked=third_party) + f"from flashlib import {modules}")
    assert done.returncode == 0, done.stderr


@pytest.mark.process
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


@pytest.mark.process
def test_exercises_in_numpy_need_no_torch_where_their_chapter_ends_with_a_kernel():
    done = python(
        "import sys\n"
        "sys.modules |= {'torch': None, 'triton': None}\n"
        "from flashlib import checks\n"
        "verdict = checks.round_e4m3(lambda x: x)\n"
        "assert verdict.outcome == 'wrong' and verdict.mistake, verdict\n"
    )
    assert done.returncode == 0, done.stderr
