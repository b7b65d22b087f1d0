"""FlashAttention on Hopper, in Gluon: kernels that say which warp does what.

attention     both passes as one operation of PyTorch, with gradients
forward       the forward pass: the kernel and `attention`
backward      its gradients: the kernel and `backward`; sums: sums of dQ, and how they become dQ
dkv_256       the gradients at d = 256, in two passes: dK and dV; dq_256: dQ; tiles_256: tile functions of both
fp8           the forward pass in eight bits; fp8_tiles: its work in registers; launch_fp8: its launch
launch        which tensors the forward takes, and its tiles, grid and descriptors; launch_backward: the backward's
launch_256    the grids of the passes at d = 256
votes         what its warps may skip, in PTX
rescaling     the forward with other rules for when O is rescaled
ladder        numbered, frozen teaching versions, one idea more in each; backward_ladder: the backward's
instrumented  the same kernels with marks, which record the time of each event

`flashlib.gluon` runs them on a CPU.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors and type checkers, which do not see what __getattr__ imports
    from flashlib.kernels.autograd import hopper_attention as attention

__all__ = ["attention"]


def __getattr__(name):
    if name == "attention":
        found = importlib.import_module("flashlib.kernels.autograd").hopper_attention
        return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
