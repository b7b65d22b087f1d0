"""A kernel in Gluon as plain Python: its functions, over stubs of the parts of Gluon that they name."""

import types
from collections.abc import Callable
from typing import Any

import torch
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.gluon.integers import as_integer, integer_range
from flashlib.gluon.language import Language, Pointer, stubs
from flashlib.gluon.memory import Described
from flashlib.private_apis import of_kernels


class World:
    """Turns kernels into plain Python: their functions, with stubs for the parts of Gluon."""

    def __init__(self, gl: Language) -> None:
        self.stubs, self.made = stubs(gl), {}

    def plain(self, function: types.FunctionType) -> Callable:
        """Return a kernel's function over the stubs; each is made once, so functions may call each other."""
        if function not in self.made:
            names: dict[str, Any] = {"__builtins__": function.__globals__.get("__builtins__")}
            made = types.FunctionType(
                function.__code__, names, function.__name__, function.__defaults__, function.__closure__
            )
            made.__kwdefaults__ = function.__kwdefaults__
            self.made[function] = made
            used = function.__code__.co_names
            names["range"] = integer_range
            names.update(
                {name: self.of(function.__globals__[name]) for name in used if name in function.__globals__}
            )
        return self.made[function]

    def of(self, x: Any) -> Any:
        """Return the stand-in for a global, or for an argument that is not a tensor."""
        if id(x) in self.stubs:
            return self.stubs[id(x)]
        if function := of_kernels.function_of(x):
            return self.plain(function)
        if of_kernels.is_constant(x):
            return self.of(x.value)
        if isinstance(x, types.ModuleType) and x.__name__.startswith("flashlib."):
            return types.SimpleNamespace(**{name: self.of(y) for name, y in vars(x).items() if _may_be_used(y)})
        return x

    def argument(self, name: str, x: Any, fixed: bool) -> Any:
        """Return the stand-in for an argument of the launch; fixed: it is a gl.constexpr."""
        if isinstance(x, TensorDescriptor):
            return Described(name, x)
        if isinstance(x, torch.Tensor):
            return Pointer(name, x)
        found = self.of(x)
        return found if fixed else as_integer(found)


def _may_be_used(x):
    return of_kernels.function_of(x) or of_kernels.is_constant(x)
