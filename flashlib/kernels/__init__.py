"""Triton kernels: compiled where there is a CUDA device, interpreted on the CPU where there is none.

Importing this package is the one place that decides, since Triton reads TRITON_INTERPRET as it is imported:
import `flashlib.kernels` before `triton`. Set the variable yourself (to 0 or 1) and it is left alone.

    softmax         row softmax
    forward         FlashAttention-2, forward pass
    forward_ideas   rung 5 of the ladder, with a switch for each idea that takes it back
    backward        its gradients, with P recomputed tile by tile
    backward_passes the kernels of the backward pass
    backward_ideas  its passes, with a switch for each of their ideas that takes it back
    autograd        both as one operation of PyTorch
    varlen          sequences of any lengths, packed one after the other; packed: what their rows see
    sinks           attention with a sink
    decode          few new queries over a cache; decode_passes: its kernels; paged: what a cache is to them
    decode_ideas    the same in one kernel
    append          new keys and values written into a cache, rotated on the way
    variants        how a kernel is told of a mask; seen: what it asks of it
    tuned           their tiles, warps and stages for each GPU
    launching       how they are launched: options, descriptors, plans that are made once
    tiles           what they share: how tiles are loaded and stored
    interpreter     the interpreter made faster
    private         what is used of the insides of Triton and torch; private_names: a list of it
    compiled        what the compiler makes of a kernel, for any GPU, present or not; registry: which there are
    occupancy       how many programs a multiprocessor can hold at a time
    hopper          kernels for Hopper alone, in Gluon, where warps have roles
    ladder          numbered, frozen teaching versions of the forward pass, one idea more in each

INTERPRETED: whether kernels run in the interpreter. DEVICE: where their tensors live, "cuda" or "cpu".
"""

import os
import platform
import sys

import torch

if not torch.cuda.is_available() and "TRITON_INTERPRET" not in os.environ:
    if "triton" in sys.modules:
        raise ImportError(
            "triton was imported before flashlib.kernels, too late to run it without a GPU: "
            "restart the kernel and import flashlib.kernels first"
        )
    os.environ["TRITON_INTERPRET"] = "1"

try:
    import triton
except ModuleNotFoundError as error:
    system = platform.system()
    reason = "run make setup" if system == "Linux" else f"it has packages for Linux, and this is {system}"
    raise ImportError(
        f"Triton is not installed: {reason}. The chapters up to 08 run without it; "
        "in the kernel chapters read on with the results stored in the notebook"
    ) from error

from flashlib.kernels import private, private_names

private_names.warn_of_version(triton.__version__)
INTERPRETED = private.interpreted()
if INTERPRETED:
    from flashlib.kernels.interpreter import patch_interpreter

    patch_interpreter()
DEVICE = "cpu" if INTERPRETED and not torch.cuda.is_available() else "cuda"
