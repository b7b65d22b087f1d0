"""The modules below torch: their few names. Any other name in them is missing, and says so."""

import sys
import types

from . import autograd, functions, missing, modes, testing
from .tensor import Tensor


def _never(*arguments, **options):  # noqa: ARG001
    return False


def _itself(function=None, **options):  # noqa: ARG001
    return function if function is not None else lambda function: function


MODULES = {
    "amp": {"is_autocast_available": _never},
    "autograd": {"Function": autograd.Function, "no_grad": autograd.no_grad},
    "autograd.forward_ad": {"_current_level": -1, "unpack_dual": autograd.unpack_dual},
    "autograd.function": {"once_differentiable": autograd.once_differentiable, "Function": autograd.Function},
    "compiler": {"is_compiling": _never, "disable": _itself},
    "cuda": {"is_available": _never, "device_count": lambda: 0},
    "func": {},
    "library": {"custom_op": autograd.custom_op, "register_autograd": autograd.register_autograd},
    "masked": {"MaskedTensor": type("MaskedTensor", (), {})},
    "nn": {},
    "nn.functional": {
        "scaled_dot_product_attention": functions.scaled_dot_product_attention,
        "elu": functions.elu,
        "pad": functions.pad,
        "softmax": Tensor.softmax,
        "log_softmax": Tensor.log_softmax,
        "relu": Tensor.relu,
    },
    "overrides": {"TorchFunctionMode": modes.TorchFunctionMode},
    "testing": {"assert_close": testing.assert_close},
    "utils": {},
    "utils.checkpoint": {"checkpoint": lambda function, *given, **options: function(*given)},
    "version": {"cuda": None, "hip": None},
    "_C": {"_are_functorch_transforms_active": _never, "_len_torch_dispatch_stack": lambda: 0},
}


class _Finder:
    """Says that a module below torch is missing: the last of Python's finders."""

    def __init__(self, package):
        self.start = f"{package}."

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002
        if name.startswith(self.start):
            said = f"the stand-in for torch in this page has no module torch.{name.removeprefix(self.start)}"
            raise ModuleNotFoundError(said, name=name)


def make(package):
    """Make the modules below a package."""
    sys.meta_path.append(_Finder(package))
    for name, names in MODULES.items():
        full = f"{package}.{name}"
        module = types.ModuleType(full)
        module.__path__ = []  # so that others below it may be imported
        module.__dict__.update(names, __getattr__=missing.module(f"torch.{name}", vars(module)))
        sys.modules[full] = module
        parent, _, last = full.rpartition(".")
        setattr(sys.modules[parent], last, module)
