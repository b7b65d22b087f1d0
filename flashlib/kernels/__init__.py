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
    interpreting    the interpreter made faster
    compiled        what the compiler makes of a kernel, for any GPU, present or not; registry: which there are
    occupancy       how many programs a multiprocessor can hold at a time
    hopper          kernels for Hopper alone, in Gluon, where warps have roles
    ladder          numbered, frozen teaching versions of the forward pass, one idea more in each

INTERPRETED: whether kernels run in the interpreter. DEVICE: where their tensors live, "cuda" or "cpu".
"""

import contextlib
import functools
import os
import platform
import sys
import warnings
from numbers import Integral

import torch
from torch.autograd import forward_ad

from flashlib.state import check_causal, check_shapes, check_tensors

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

INTERPRETED = bool(triton.knobs.runtime.interpret)
if INTERPRETED:
    from flashlib.kernels.interpreting import hasten

    hasten()
DEVICE = "cpu" if INTERPRETED and not torch.cuda.is_available() else "cuda"
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
HEAD_DIMS = (16, 32, 64, 128)
HERE = contextlib.nullcontext()
LEFT_ALONE = {}  # {function: the same, which torch.compile does not look into}
MIN_BLOCK, MAX_BLOCK = 16, 256  # tl.dot takes no inner side below 16; tiles above 256 do not fit a GPU


def check_device(**tensors):
    """Raise ValueError unless kernels can reach the tensors."""
    for name, X in tensors.items():
        if X.device.type != "cuda" and not (INTERPRETED and X.device.type == "cpu"):
            raise ValueError(f"{name} is on {X.device}, where no kernel runs: {name}.to({DEVICE!r})")


def check_no_gradient(**tensors):
    """Raise ValueError or RuntimeError if a kernel is asked for derivatives, or for batches of torch.func.vmap."""
    for name, X in tensors.items():
        if X.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} requires a gradient, and this kernel has no backward: pass {name}.detach(), "
                "or call flashlib.kernels.autograd.attention"
            )
    check_readable(**tensors)


def check_no_tangent(*tensors):
    """Raise RuntimeError if a tensor carries a tangent, which a kernel would lose."""
    if in_forward_mode() and any(X is not None and forward_ad.unpack_dual(X).tangent is not None for X in tensors):
        refuse_tangents()


def in_forward_mode() -> bool:
    """Return whether tensors may carry tangents, inside of torch.func.jvp or torch.autograd.forward_ad."""
    return forward_ad._current_level >= 0


def refuse_tangents(*_):
    """Raise RuntimeError: nothing here computes derivatives in forward mode."""
    raise RuntimeError(
        "there is no kernel for derivatives in forward mode (torch.func.jvp, jacfwd, hessian, forward_ad): "
        "use flashlib.torch_ref.attention or SDPA's math backend"
    )


def in_memory(*tensors) -> bool:
    """Return whether kernels can read the tensors: none is a batch of torch.func.vmap or stands in for another."""
    try:
        for X in tensors:
            if X is not None and not X.data_ptr() and X.numel():
                return False
    except (AttributeError, RuntimeError):  # it has no pointer
        return False
    return True


def uncompiled(f):
    """Return f as torch.compile leaves it alone: what launches kernels runs as it is, between two graphs."""

    @functools.wraps(f)
    def run(*args, **options):
        if not torch.compiler.is_compiling():
            return f(*args, **options)
        if f not in LEFT_ALONE:  # made here, as it imports the compiler, and once, as another is compiled anew
            LEFT_ALONE[f] = torch.compiler.disable(f)
        return LEFT_ALONE[f](*args, **options)

    return run


def check_readable(**tensors):
    """Raise RuntimeError unless the tensors are numbers that kernels can read, and no more than that."""
    check_no_tangent(*tensors.values())
    for name, X in tensors.items():
        if not in_memory(X):
            raise RuntimeError(
                f"{name} is a batch of torch.func.vmap, or stands in for a tensor while torch traces, and this "
                "kernel reads numbers: call flashlib.kernels.autograd.attention"
            )


def check_deterministic(deterministic):
    """Raise or warn, as torch.use_deterministic_algorithms asks, where the order of sums may change."""
    if not isinstance(deterministic, bool):
        raise TypeError(f"deterministic is {deterministic!r}; pass True for two passes, False for one that adds")
    if deterministic or not torch.are_deterministic_algorithms_enabled():
        return
    message = (
        "deterministic=False adds to dQ in any order, and torch.use_deterministic_algorithms(True) is set: "
        "pass deterministic=True"
    )
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=3)


def as_autocast(*tensors):
    """Return the tensors as torch.autocast casts what other operations take: floating tensors, except fp64."""
    if not (torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")):
        return tensors
    return tuple(map(_as_autocast, tensors))


def _as_autocast(X):
    if not isinstance(X, torch.Tensor) or not X.is_floating_point() or X.dtype == torch.float64:
        return X
    kind = X.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return X
    return X.to(torch.get_autocast_dtype(kind))


def check_attention(
    Q, K, V, causal, *, head_dims=HEAD_DIMS, grouped=False, differentiable=False, values=False
):  # fmt: skip
    """Raise TypeError or ValueError unless the kernels take these Q, K, V and this mask.

    head_dims: the accepted d. grouped: whether Q may have more heads than K and V, a multiple of theirs.
    differentiable: whether the caller takes care of derivatives and of batches of torch.func.vmap.
    values: whether V may have another d than Q and K, of those accepted.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_device(Q=Q)
    if not differentiable:
        check_no_gradient(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=grouped, values=values)
    check_causal(causal)
    one_by_one = isinstance(head_dims, tuple)
    for name, d, tensors in (("d", Q.shape[-1], "Q, K and V"), ("d_v", V.shape[-1], "V")):
        if not (
            d in head_dims if one_by_one else head_dims[0] <= d <= head_dims[-1]
        ):  # torch.compile does not support `in` here
            accepted = ", ".join(map(str, head_dims)) if one_by_one else f"{head_dims[0]} to {head_dims[-1]}"
            raise ValueError(f"{name} is {d}; the kernel takes {accepted}: pad {tensors}")


def check_powers_of_two(low, high, **sizes):
    """Raise TypeError or ValueError unless every size is a power of two from low to high."""
    accepted = [2**n for n in range(low.bit_length() - 1, high.bit_length())]
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral):
            raise TypeError(f"{name} is {size!r}; the kernel takes {', '.join(map(str, accepted))}")
        if size not in accepted:
            raise ValueError(f"{name} is {size}; the kernel takes {', '.join(map(str, accepted))}")


def check_kernel_blocks(**sizes):
    """Raise TypeError or ValueError unless every block size is a power of two a kernel can hold."""
    check_powers_of_two(MIN_BLOCK, MAX_BLOCK, **sizes)


def launchable(X):
    """Return X as a kernel takes it: its last axis contiguous and, in the interpreter, bfloat16 as float32.

    Triton's interpreter holds bfloat16 as uint16 and computes on the bits; results are rounded afterwards. A lazy
    negation (torch's "negative bit") is carried out: a pointer does not carry it.
    """
    if INTERPRETED:
        X = X.detach()
        X = X.float() if X.dtype == torch.bfloat16 else X
    if X.is_neg():
        X = X.resolve_neg()
    return X if X.stride(-1) == 1 else X.contiguous()


def on_device_of(X):
    """Return a context in which Triton launches on the device of X, which need not be the current one."""
    here = not X.is_cuda or X.device.index == torch.cuda.current_device()
    return HERE if here else torch.cuda.device(X.device)
