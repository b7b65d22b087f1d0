"""Triton kernels: compiled where there is a CUDA device, interpreted on the CPU where there is none.

The public functions are here, and are imported on first use:

    attention(Q, K, V)   FlashAttention with gradients; with masks, a sink, grouped heads
    chosen(Q, K, V)      which kernels it uses for a call, and why
    varlen.attention     sequences of any lengths, packed one after the other; with gradients
    decode.attention     a few new queries of each sequence over its cache
    append.append        writes new keys and values into a cache; append.rotate rotates the queries

Two functions and three modules, since the module is the selector here as in all of flashlib: a submodule that is
imported becomes an attribute of its package, so a function named `varlen` would be the module from then on.
docs/kernels.md lists what each of them takes and refuses.

Importing this package decides between compiler and interpreter, and nothing else does. Triton may have been
imported before, for example by torch's optimizers: its language is then interpreted from now on, and so is each
kernel that is decorated from now on. Kernels that you decorated before stay as they were, and need a GPU. If you
set TRITON_INTERPRET yourself (to 0 or 1), it is left alone; an empty value counts as unset. The modules:

    softmax         row softmax
    forward         FlashAttention-2, forward pass
    backward        its gradients, with P recomputed tile by tile; backward_passes: its kernels
    bias_gradients  gradients of tensors that changes of scores read; bias_passes: its kernel
    autograd        both passes as one operation of PyTorch, with a sink if one is given
    choice          which kernels compute it: on a Hopper GPU its own, if they take the call and are faster
    merge           O and lse for two sets of keys, from those for each
    varlen          sequences of any lengths, packed one after the other
    decode          a few new queries over a cache; decode_passes: its kernels
    append          new keys and values written into a cache, rotated on the way

    quantise        Q, K and V in eight bits: rotated, centred, scaled, rounded, laid out
    eight_bits      the forward pass on them, for GPUs that multiply e4m3 or int8

    launch          inputs checked, plans made once, tiles chosen and loaded, the layout of a cache
    masking         masks prepared for a kernel, and the device functions with which it applies them
    compiler        what the compiler makes of a kernel, for any GPU, present or not; a learner's kernel too
    ladder          numbered, frozen teaching versions of the forward pass; a plain backward pass
    ablations       the kernels with a switch that takes back each idea
    hopper          kernels for Hopper only, in Gluon, where warps have roles; their ladder and their interpreter
    interpreter     Triton's interpreter made faster; interpreter_operators: its operators

INTERPRETED: whether kernels run in the interpreter. DEVICE: where their tensors live, "cuda" or "cpu".
"""

# ruff: noqa: I001  flashlib.private_apis before triton
import importlib
import platform
from typing import TYPE_CHECKING

import torch

import flashlib.private_apis  # noqa: F401  says whether Triton interprets

try:
    import triton
except ModuleNotFoundError as error:
    system = platform.system()
    reason = "run make setup" if system == "Linux" else f"it has packages for Linux, and this is {system}"
    raise ImportError(
        f"Triton is not installed: {reason}. Chapters in NumPy run without it; "
        "those with kernels have their results stored, and run in the browser on the course's site"
    ) from error

from flashlib.private_apis import of_compiler, of_driver, of_interpreter, tried

tried.warn_of_version(triton.__version__)
INTERPRETED = of_driver.interpreted()
if INTERPRETED:
    from flashlib.kernels.interpreter import patch_interpreter

    of_interpreter.interpret_language()
    patch_interpreter()
else:
    of_compiler.ensure_cache()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

if TYPE_CHECKING:  # for editors and type checkers, which do not see what __getattr__ imports
    from flashlib.kernels import append, decode, varlen
    from flashlib.kernels.autograd import attention
    from flashlib.kernels.choice import chosen

__all__ = ["DEVICE", "INTERPRETED", "append", "attention", "chosen", "decode", "varlen"]
FUNCTIONS = {"attention": "autograd", "chosen": "choice"}  # where each is


def __getattr__(name):
    if name in FUNCTIONS:
        found = getattr(importlib.import_module(f"flashlib.kernels.{FUNCTIONS[name]}"), name)
        return globals().setdefault(name, found)  # the next call finds it at once
    if name in __all__:
        return importlib.import_module(f"flashlib.kernels.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
