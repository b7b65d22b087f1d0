"""A stand-in for FlashInfer 0.6.17 that computes with our kernels what maps to them, and refuses everything else.

`stand_in()` makes `import flashinfer` find it in this process. A function or an option that it lacks raises
`options.NotTaken`, which names it.
"""

import sys
import types
from typing import Any

import torch

from tools.flashinfer_stand_in import batch, cascade, merging, pages, single
from tools.flashinfer_stand_in.options import NotTaken

MODULES = batch, cascade, merging, pages, single
DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}


class Refusing(types.ModuleType):
    """A module that has whatever is imported from it; calling what it was not given raises NotTaken."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: Any, **__: Any) -> None:
            raise NotTaken(f"{self.__name__}.{name}")

        return refuse


def stand_in() -> None:
    """Make `import flashinfer` find our functions in this process; raise RuntimeError if the package is loaded."""
    if "flashinfer" in sys.modules and not isinstance(sys.modules["flashinfer"], Refusing):
        raise RuntimeError("flashinfer is imported already: call stand_in() before anything imports it")
    ours = {name: x for module in MODULES for name, x in vars(module).items() if _is_public(module, name, x)}
    utils = {
        "get_compute_capability": lambda _: torch.cuda.get_device_capability(),
        "has_flashinfer_jit_cache": lambda: True,  # so no test compiles the package's kernels first
        "is_sm90a_supported": lambda _: torch.cuda.get_device_capability()[0] == 9,
    }
    contents = {
        "flashinfer": ours, "flashinfer.decode": ours, "flashinfer.prefill": ours, "flashinfer.utils": utils,
        "flashinfer.jit": {}, "flashinfer.jit.attention": {}, "flashinfer.fp4_quantization": {},
        "flashinfer.jit.utils": {"filename_safe_dtype_map": DTYPES},
        "flashinfer.jit.attention.variants": {"attention_sink_decl": {"fa2": "", "fa3": ""}},
    }  # fmt: skip
    for name, attributes in contents.items():
        add(name, attributes)


def add(name: str, attributes: dict[str, Any]) -> None:
    """Add a module with these attributes, which refuses all others, also as an attribute of its package."""
    module = sys.modules[name] = Refusing(name)
    vars(module).update(attributes)
    package, _, last = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], last, module)


def _is_public(module, name, x):
    return not name.startswith("_") and getattr(x, "__module__", None) == module.__name__
