"""A stand-in for torch, for pages where the real one does not run: what kernels and their tests use of it.

It has tensors on a CPU, with the numbers that torch computes, and its random numbers. It computes no gradients,
and has no torch.nn and no compiler. A name that it lacks raises an error that says so.

    dtypes, device, storage   types of numbers, the one device, memory with addresses for kernels
    eight_bits                floats of 8 bits
    core                      what a tensor is; tensor: the class with all its methods, which are in
    views, reading, printing  the same numbers; numbers for Python; the text of a tensor
    arithmetic, reductions    numbers computed of each, of two, of many
    writing                   copies, and writing in place
    making, random, functions functions of torch
    modes, autograd, modules  what watches calls; operations that could have gradients; modules below torch
    errors, missing           errors in the words of torch; the error of a missing name
    testing                   comparing tensors
"""

import math as _math

from . import autograd, dtypes, functions, making, missing, modes, modules, random
from .device import Size, device
from .dtypes import dtype, finfo, iinfo, promote_types, result_type
from .random import Generator, default_generator, manual_seed
from .storage import UntypedStorage
from .tensor import Tensor

__version__ = "stand-in"
nan, inf, pi, e = _math.nan, _math.inf, _math.pi, _math.e
strided, contiguous_format, preserve_format = "torch.strided", "torch.contiguous_format", "torch.preserve_format"
no_grad = inference_mode = autograd.no_grad
_SEEN = {  # functions that modes see
    making: "arange as_tensor empty empty_like empty_strided eye from_numpy full full_like linspace ones "
    "ones_like tensor zeros zeros_like",
    random: "rand rand_like randint randn randn_like randperm",
    functions: "allclose bincount broadcast_tensors cat einsum equal isclose outer searchsorted stack where",
}


def is_grad_enabled():
    return False


def is_autocast_enabled(device_type=None):
    return False


def are_deterministic_algorithms_enabled():
    return False


def get_float32_matmul_precision():
    return "highest"


def get_default_dtype():
    return dtypes.float32


def get_num_threads():
    return 1


def set_num_threads(n):
    """Do nothing: a page computes in one thread."""


is_tensor, concat, concatenate = functions.is_tensor, functions.cat, functions.cat
globals().update(functions.of_methods())
for _module, _names in _SEEN.items():
    globals().update({name: modes.seen(getattr(_module, name)) for name in _names.split()})
globals().update(dtypes.NAMED)  # last: torch.bool, torch.int and torch.float are types
modules.make(__name__)
__getattr__ = missing.module("torch", globals())
__all__ = [
    "Generator", "Size", "Tensor", "UntypedStorage", "default_generator", "device", "dtype", "finfo", "iinfo",
    "manual_seed", "promote_types", "result_type",
]  # fmt: skip
