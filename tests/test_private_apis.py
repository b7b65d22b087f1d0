"""The private parts of Triton and torch that we use are as they were when tried, and used in one room only."""

# ruff: noqa: I001  flashlib.kernels before triton
import contextvars
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from flashlib import private_apis
from flashlib.private_apis import of_driver, tried
import triton

ROOT = Path(private_apis.__file__).parents[1]
NAMES = [
    (module, name, expected)
    for used in (*tried.USED.values(), tried.USED_OF_TORCH)
    for module, names in used.items()
    for name, expected in names.items()
]


def found(module, name) -> str:
    """Return what a name refers to: its parameters, its type, or "set"; "missing" if there is no such name."""
    *parts, last = name.split(".")
    try:
        owner = importlib.import_module(module)
        for part in parts:
            owner = getattr(owner, part)
    except (ImportError, AttributeError):
        return "missing"
    if not hasattr(owner, last):
        makers = [vars(kind)["__init__"] for kind in getattr(owner, "__mro__", ()) if "__init__" in vars(kind)]
        codes = [maker.__code__ for maker in makers if isinstance(maker, types.FunctionType)]
        return "set" if any(last in (*code.co_names, *code.co_varnames) for code in codes) else "missing"
    thing = getattr(owner, last)
    try:
        return ", ".join(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # not callable, or from C++
        return type(thing).__name__


def change(module, name, expected, now) -> str:
    """Return a sentence that says what changed about a name, "" if nothing."""
    if now == expected:
        return ""
    library, version, here = (
        ("torch", tried.TORCH, torch.__version__)
        if module.startswith("torch")
        else ("Triton", tried.TRITON, triton.__version__)
    )
    return (
        f"flashlib/private_apis uses {module}.{name}, which is ({expected}) in {library} {version} and "
        f"({now}) in {here}: mend it there, and in tried.py"
    )


@pytest.fixture(scope="module")
def as_it_comes() -> dict:
    """Return what each name refers to in a process that compiles, where the interpreter is not patched."""
    code = "import json, test_private_apis as t; print(json.dumps([t.found(*names[:2]) for names in t.NAMES]))"
    path = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    env = os.environ | {"TRITON_INTERPRET": "0", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env, check=True, timeout=120)
    return dict(zip(NAMES, json.loads(run.stdout), strict=True))


@pytest.mark.process
def test_private_parts_are_unchanged_since_they_were_tried(as_it_comes):
    changes = [change(*used, now) for used, now in as_it_comes.items()]
    assert [said for said in changes if said] == []


def test_parts_that_the_interpreter_does_not_patch_are_unchanged_too():
    """In this process, where the patched ones have our parameters."""
    patched = "triton.runtime.interpreter", "triton.language"
    changes = [change(*used, found(*used[:2])) for used in NAMES if used[0] not in patched]
    assert len(changes) > 50 and [said for said in changes if said] == []


def test_a_change_is_reported_in_a_sentence(monkeypatch):
    module = "triton.runtime.interpreter"
    names = tried.USED["kernels in the interpreter"][module]
    assert names["_patch_lang"] == "fn"
    monkeypatch.setattr(triton, "__version__", "3.9.9")
    monkeypatch.setattr(f"{module}._patch_lang", lambda fn, scope: None)
    assert change(module, "_patch_lang", "fn", found(module, "_patch_lang")) == (
        "flashlib/private_apis uses triton.runtime.interpreter._patch_lang, which is (fn) in Triton "
        "3.7.1 and (fn, scope) in 3.9.9: mend it there, and in tried.py"
    )
    monkeypatch.delattr(f"{module}._patch_lang")
    assert "(missing) in 3.9.9" in change(module, "_patch_lang", "fn", found(module, "_patch_lang"))
    name = "_len_torch_dispatch_stack"
    monkeypatch.delattr(torch._C, name)
    assert f"in torch {tried.TORCH} and (missing)" in change("torch._C", name, "int", found("torch._C", name))


@pytest.mark.parametrize("scratch", [0, 128])
@pytest.mark.parametrize("kind", ["CudaLauncher", "another", "older"])
def test_a_launch_passes_the_driver_what_tritons_launcher_passes(kind, scratch):
    """Without scratch memory Triton's launcher is not called, but would pass the same arguments."""
    older = {"__call__": lambda own, *given: own.launch(*given)}  # arguments one by one, as in old versions
    from triton.backends.nvidia.driver import CudaLauncher

    def launched():
        triton.set_allocator(lambda size, align, stream: ("memory", size, align, stream))
        of_driver.relaunch(compiled, (5, 6, 7), ("last",))(("a", "b"), (8, None), stream=3)
        run(5, 6, 7, 3, "function", "packed", None, None, None, "a", "b", 8, None, "last")

    handed = []
    name, methods = ("CudaLauncher", older) if kind == "older" else (kind, {})
    run = object.__new__(type(name, (CudaLauncher,), methods))
    names = "num_ctas launch_cooperative_grid launch_pdl arg_annotations kernel_signature global_scratch_align"
    vars(run).update(
        {name: name for name in names.split()}, launch=lambda *given: handed.append(given), num_ctas=2
    )
    vars(run).update(global_scratch_size=scratch, profile_scratch_size=0, profile_scratch_align=1)
    compiled = types.SimpleNamespace(run=run, function="function", packed_metadata="packed")
    contextvars.copy_context().run(launched)
    ours, own = handed
    assert ours == own and own[-1] == ("last" if kind == "older" else ("a", "b", 8, None, "last"))


class Tensor:
    """A tensor of which only the address matters."""

    def __init__(self, address):
        self.data_ptr = lambda: address


def test_a_launch_encodes_descriptors_as_tritons_launcher_does(monkeypatch):
    """Once for each address of each argument, and again for a new one."""
    from triton.backends.nvidia import driver

    handed, encoded = [], []

    def fill(address, *fields):
        encoded.append(address)
        return "map", address, fields

    utils = types.SimpleNamespace(launch=lambda *given: handed.append(given), fill_tma_descriptor_tiled=fill)
    monkeypatch.setattr(triton.runtime.driver, "_active", types.SimpleNamespace(utils=utils))
    tile = {"swizzle": 3, "elem_size": 2, "elem_type": 1, "block_size": [64, 64], "fp4_padded": False}
    signature = {"a": "tensordesc<fp16[64, 64]>", "b": "*fp32", "c": "tensordesc<fp16[64, 64]>", "n": "i32"}
    run = object.__new__(driver.CudaLauncher)
    names = "num_ctas launch_cooperative_grid launch_pdl arg_annotations kernel_signature global_scratch_align"
    vars(run).update({name: name for name in names.split()}, profile_scratch_align=1)
    vars(run).update(global_scratch_size=0, profile_scratch_size=0)
    run.launch = driver.wrap_handle_tensordesc(utils.launch, signature, [tile, tile])
    meta = types.SimpleNamespace(tensordesc_meta=[tile, tile])
    compiled = types.SimpleNamespace(run=run, function="function", packed_metadata="packed", metadata=meta)

    def described(n):
        fields = {"shape": [n, 64], "strides": [64, 1], "padding": "zero", "round_f32_to_tf32": False}
        return lambda X: types.SimpleNamespace(base=X, **fields)

    launch = of_driver.relaunch(compiled, (5, 6, 7), ("last",), describe := (described(9), None, described(8)))
    for addresses in ((16, 32), (16, 48), (32, 16), (16, 32)):
        given = Tensor(addresses[0]), "b", Tensor(addresses[1]), 4
        known = len(encoded)
        launch(given, (8,), stream=3)
        ours, new = handed.pop(), encoded[known:]
        run(5, 6, 7, 3, "function", "packed", None, None, None, *of_driver.described(given, describe), 8, "last")
        own = handed.pop()
        assert ours[:-1] == own[:-1] and list(ours[-1]) == list(own[-1])
        assert new == {(16, 32): [16, 32] * (known == 0), (16, 48): [48], (32, 16): [32, 16]}[addresses]


PRIVATE = re.compile(
    r"\b(torch|triton)\._(?!_version)|\btriton\.(runtime|backends|compiler|knobs)\b|triton import knobs"
    r"|_current_level|_functorch|_dispatch_stack|\bX\._version|_patch_lang|\.device_caches|\.packed_metadata"
    r"|InterpreterBuilder|GridExecutor|__triton_"
)


def private_lines(text):
    return [line.strip() for line in text.splitlines() if PRIVATE.search(line)]


def test_private_parts_are_used_in_one_room_only():
    files = sorted(ROOT.rglob("*.py"))
    using = {path.relative_to(ROOT).as_posix(): private_lines(path.read_text(encoding="utf-8")) for path in files}
    found = {path: lines for path, lines in using.items() if lines}
    assert {path.rpartition("/")[0] for path in found} == {"private_apis"}
    assert sum(map(len, found.values())) > 15


def imported(version) -> list[str]:
    """Return the warnings when flashlib.kernels is imported twice, with a Triton that claims this version."""
    code = (
        f"import triton; triton.__version__ = {version!r}; import flashlib.kernels; from flashlib import kernels"
    )
    command = [sys.executable, "-W", "always", "-c", f"import os; os.environ['TRITON_INTERPRET'] = '1'; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [line for line in done.stderr.splitlines() if "tried with" in line]


@pytest.mark.process
@pytest.mark.parametrize("version, missing", tried.TRIED.items())
def test_with_a_version_that_was_tried_the_import_says_what_does_not_run(version, missing):
    said = imported(version)
    assert bool(said) == bool(missing)
    assert all(line.endswith(f"Triton 3.7.1, and this is {version}: {missing}") for line in said)


@pytest.mark.process
def test_with_any_other_version_the_import_says_once_what_may_not_work():
    (line,) = imported("3.9.9+git")
    start, _, rest = line.partition("UserWarning: ")
    assert start.startswith("<string>:1:")  # the line that imports
    assert rest == (
        "The kernels were tried with Triton 3.7.1, and this is 3.9.9: these use its insides and may not work: "
        "launches, reports on compiled kernels, kernels in the interpreter, checks of kernels, loops of kernels, "
        "kernels.hopper"
    )


def test_the_version_that_is_pinned_was_tried():
    pinned = (ROOT.parent / "requirements.txt").read_text(encoding="utf-8")
    assert f"triton=={tried.TRITON}" in pinned and f"torch=={tried.TORCH}\n" in pinned


class Compiled:
    """A compiled kernel that records how it is launched."""

    function, packed_metadata = "function", "packed"

    def __init__(self):
        self.launched = []

    def run(self, *arguments):
        self.launched.append(arguments)

    def __getitem__(self, grid):
        return lambda *arguments: self.launched.append((grid, *arguments))


def test_a_launch_is_made_again_and_hooks_see_it(monkeypatch):
    gpu = types.SimpleNamespace(get_current_device=lambda: 3, get_current_stream=lambda device: device + 4)
    monkeypatch.setattr(of_driver.driver, "_active", gpu)
    compiled = Compiled()
    launch = of_driver.relaunch(compiled, (5, 1, 1), ("last",))
    hook, expected = triton.knobs.runtime.launch_exit_hook, []
    for hooks in ([], [lambda told: None], []):
        monkeypatch.setattr(hook, "calls", hooks)
        launch(("Q", "K"), (1, 2))
        told = ((5, 1, 1),) if hooks else (5, 1, 1, 7, "function", "packed", None, None, None)
        expected.append((*told, "Q", "K", 1, 2, "last"))
    assert compiled.launched == expected
