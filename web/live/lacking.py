"""What Python on a page lacks: why it cannot import a module, in words.

The page of a chapter with kernels has more: Triton's own Python with its interpreter, and a stand-in for torch.
"""

import ast
import importlib.util
from functools import cache
from pathlib import Path

from web.live import beside
from web.live.kernel_files import MODULES

ROOT = Path(__file__).resolve().parents[2]
STOOD_IN = "torch", "triton"  # what the pages of chapters with kernels have after all
PACKAGES = {  # package: why a page has none
    "torch": "torch, which does not run in a page",
    "triton": "Triton, which does not run in a page",
    "transformers": "transformers, which does not run in a page",
    "safetensors": "safetensors, which does not run in a page",
    "ipywidgets": "ipywidgets, which does not run in a page",
    "subprocess": "another process, which a page cannot start",
    "multiprocessing": "another process, which a page cannot start",
}
COMPILER = "Triton's compiler, which runs in JupyterLab or Colab, not in a page"
GLUON = "Gluon, whose kernels do not run in a page"
GPU = "a GPU, which a page cannot use"
GRADIENTS = "gradients, which the stand-in for torch in this page does not compute"
LAYERS = "layers of torch.nn, which the stand-in for torch in this page lacks"
PARTS = {  # modules, with all below them: why a page lacks them, even one with Triton's interpreter
    "torch.autograd": GRADIENTS,
    "torch.cuda": GPU,
    "torch.nn": LAYERS,
    "torch.OutOfMemoryError": GPU,
    "triton.experimental": GLUON,
    "flashlib.gluon": GLUON,
    "flashlib.kernels.hopper": GLUON,
    "flashlib.private_apis.of_gluon": GLUON,
    "flashlib.kernels.compiler.client": COMPILER,
    "flashlib.kernels.compiler.kernel_report": COMPILER,
    "flashlib.kernels.compiler.registry": COMPILER,
    "flashlib.kernels.compiler.worker": COMPILER,
    "flashlib.widgets.compiler_lab": COMPILER,
    "flashlib.bench": COMPILER,
    "flashlib.ring.distributed": "torch.distributed, which does not run in a page",
    "flashlib.interop": "adapters for other packages, which do not run in a page",
}
ASKED = {  # functions that import what they need when they are called
    "mine": COMPILER,
    "CompilerLab": COMPILER,
}


def of_module(module, kernels=False):
    """Return why a page cannot import a module, or a name from one; "" if it can.

    kernels: whether it is the page of a chapter with kernels.
    """
    package = module.partition(".")[0]
    if package == "flashlib":
        return of_flashlib(module, kernels)
    if package not in PACKAGES or kernels and package in STOOD_IN:
        return _of_part(module) if kernels else ""
    return PACKAGES[package]


@cache
def of_flashlib(module, kernels=False):
    """Return why a page cannot import a module of flashlib: what it imports, itself or through others."""
    seen, left = set(), [module]
    while left:
        one = left.pop()
        for path in {*filter(None, map(file_of, _with_packages(one)))} - seen:
            seen.add(path)
            for other in _imports_of(path):
                if found := _of_import(other, kernels):
                    return found
                left += [other] * other.startswith("flashlib.")
        if kernels and (found := _of_part(one)) and of_flashlib(one):
            return found
    return ""


def _with_packages(module):
    """Return a module and the packages that it is in, which are imported first."""
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _of_import(module, kernels):
    """Return why an import in a module of flashlib fails; processes are only a problem when they start."""
    package = module.partition(".")[0]
    if package not in ("transformers", "safetensors", *STOOD_IN):
        return ""
    return of_module(module, kernels)


def _of_part(module):
    """Return why a page with kernels lacks a part of what it has, or ""."""
    package, _, rest = module.partition(".")
    missing = torch_lacks(rest) if package == "torch" else ""
    if package == "torch" and not missing:
        return ""
    if near := next((one for one in PARTS if f"{module}.".startswith(f"{one}.")), ""):
        return PARTS[near]
    if missing:
        return f"{missing}, which the stand-in for torch in this page lacks"
    return f"{module}, which does not run in a page" if package == "triton" and _is_left_out(rest) else ""


def torch_lacks(path):
    """Return the first name of a path, such as `nn.functional.gelu`, that the stand-in lacks, or ""."""
    there, name = beside.loaded("page_torch"), "torch"
    for part in filter(None, path.split(".")):
        name = f"{name}.{part}"
        if not hasattr(there, part):
            return name
        there = getattr(there, part)
    return ""


def _is_left_out(path):
    """Return whether a path in Triton names a module that pages have not."""
    folder, _, name = path.replace(".", "/").rpartition("/")
    if path.replace(".", "/") in MODULES or name in MODULES.get(folder, "").split():
        return False
    place = Path(importlib.util.find_spec("triton").origin).parent / folder / name
    return place.is_dir() or place.with_suffix(".py").is_file()


def imports(tree, everywhere=False):
    """Yield the modules that code imports; those that a function imports when it is called, only on demand."""
    for node in ast.walk(tree) if everywhere else tree.body:
        yield from (module for _, module in bound(node))
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def bound(node):
    """Yield (name that it binds, module or name in a module) for each part of an import statement."""
    match node:
        case ast.Import():
            yield from ((one.asname or one.name.split(".")[0], one.name) for one in node.names)
        case ast.ImportFrom(level=0):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
        case _:
            pass


@cache
def _imports_of(path):
    return tuple(imports(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def file_of(module):
    """Return the Path of a module of flashlib, or None if the name is not one of a module."""
    path = ROOT.joinpath(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
