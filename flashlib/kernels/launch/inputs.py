"""The checks of tensors and options that every launch makes before any work, and how a kernel takes a tensor."""

import contextlib
import functools
import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import NoReturn

import torch
from torch.autograd import forward_ad

from flashlib.inputs import check_causal, check_shapes, check_tensors
from flashlib.kernels import DEVICE, INTERPRETED
from flashlib.private_apis.of_torch import in_forward_mode

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
HEAD_DIMS = (16, 32, 64, 128)
NO_DEVICE_SWITCH = contextlib.nullcontext()
DISABLED = {}  # {function: the same function, not traced by torch.compile}
MIN_BLOCK, MAX_BLOCK = 16, 256  # tl.dot does not take an inner side below 16; tiles above 256 do not fit a GPU


def check_device(**tensors: torch.Tensor) -> None:
    """Raise ValueError unless kernels can access the tensors."""
    for name, X in tensors.items():
        if X.device.type != "cuda" and not (INTERPRETED and X.device.type == "cpu"):
            mend = f"{name}.to({DEVICE!r})"
            if not INTERPRETED and not torch.cuda.is_available():
                mend = (
                    "torch finds no GPU, and TRITON_INTERPRET in the environment says that kernels are compiled; "
                    "remove it and restart Python to run them in the interpreter"
                )
            raise ValueError(f"{name} is on {X.device}, where no kernel runs: {mend}")


def check_no_gradient(**tensors: torch.Tensor) -> None:
    """Raise ValueError if a tensor requires a gradient, for kernels without a backward pass."""
    for name, X in tensors.items():
        if X.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} requires a gradient, and this kernel has no backward: pass {name}.detach(), "
                "or call flashlib.kernels.autograd.attention"
            )


def refuse_tangents(*_: object) -> NoReturn:
    """Raise RuntimeError: nothing here computes derivatives in forward mode."""
    raise RuntimeError(
        "there is no kernel for derivatives in forward mode (torch.func.jvp, jacfwd, hessian, forward_ad): "
        "use flashlib.torch_ref.attention or SDPA's math backend"
    )


def have_memory(*tensors: torch.Tensor | None) -> bool:
    """Return whether kernels can read the tensors: none is a batch of torch.func.vmap or stands in for another."""
    try:
        for X in tensors:
            if X is not None and not X.data_ptr() and X.numel():
                return False
    except (AttributeError, RuntimeError):  # it has no pointer
        return False
    return True


def uncompiled(f: Callable) -> Callable:
    """Return f so that torch.compile does not trace it: it runs as it is, between two graphs."""

    @functools.wraps(f)
    def run(*args, **options):
        if not torch.compiler.is_compiling():
            return f(*args, **options)
        if f not in DISABLED:  # here, since it imports the compiler; once, since a new one would be compiled again
            DISABLED[f] = torch.compiler.disable(f)
        return DISABLED[f](*args, **options)

    return run


def check_readable(**tensors: torch.Tensor | None) -> None:
    """Raise RuntimeError unless the tensors are plain numbers that kernels can read."""
    given = [X for X in tensors.values() if X is not None]
    if in_forward_mode() and any(forward_ad.unpack_dual(X).tangent is not None for X in given):
        refuse_tangents()  # a kernel would lose them
    for name, X in tensors.items():
        if not have_memory(X):
            raise RuntimeError(
                f"{name} is a batch of torch.func.vmap, or stands in for a tensor while torch traces, and this "
                "kernel reads numbers: call flashlib.kernels.autograd.attention"
            )


def check_deterministic(deterministic: bool) -> None:
    """Raise or warn, as torch.use_deterministic_algorithms requires, if the order of sums may change."""
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


def as_autocast(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the tensors cast as torch.autocast casts the inputs of operations: floating tensors, except fp64."""
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
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, *,
    head_dims: range | tuple[int, ...] = HEAD_DIMS, grouped: bool = False, differentiable: bool = False,
    values: bool = False,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError unless the kernels take these Q, K, V and this mask.

    head_dims: the accepted d. grouped: whether Q may have more heads than K and V, a multiple of theirs.
    differentiable: whether the caller takes care of derivatives and of batches of torch.func.vmap.
    values: whether V may have a different d than Q and K, of those accepted.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_device(Q=Q)
    if not differentiable:
        check_no_gradient(Q=Q, K=K, V=V)
        check_readable(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=grouped, values=values)
    check_causal(causal)
    one_by_one = isinstance(head_dims, tuple)
    for name, d, tensors in (("d", Q.shape[-1], "Q, K and V"), ("d_v", V.shape[-1], "V")):
        if not (
            d in head_dims if one_by_one else head_dims[0] <= d <= head_dims[-1]
        ):  # torch.compile does not support `in` here
            accepted = ", ".join(map(str, head_dims)) if one_by_one else f"{head_dims[0]} to {head_dims[-1]}"
            raise ValueError(f"{name} is {d}; the kernel takes {accepted}: pad {tensors}")


def resolve_out_dtype(out_dtype: torch.dtype | None, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of results, by default `dtype`; raise TypeError unless out_dtype is that or float32."""
    if out_dtype is None:
        return dtype
    if out_dtype not in (dtype, torch.float32):
        raise TypeError(
            f"out_dtype is {out_dtype!r}; pass torch.float32, in which all is summed, or None for {dtype}, that "
            "of Q"
        )
    return out_dtype


def sink_tensor(sink: float | torch.Tensor, Q: torch.Tensor) -> torch.Tensor:
    """Return a sink as a tensor on the device of Q, () or (H_q,).

    Raises ValueError for another shape or a number that is too large, TypeError for anything but a number or a
    floating tensor.
    """
    if not isinstance(sink, torch.Tensor):
        if isinstance(sink, bool) or not isinstance(sink, Real):
            raise TypeError(f"sink is {sink!r}; pass a number, or a tensor of one for each head, (H_q,)")
        if not -math.inf <= sink < 1e38:  # false for nan too
            raise ValueError(f"sink is {sink!r:.40}; pass a number below 1e38")
        return torch.full((), float(sink), dtype=torch.float32, device=Q.device)
    if not sink.is_floating_point():
        raise TypeError(f"sink has dtype {sink.dtype}; pass floating-point numbers, e.g. sink.float()")
    if sink.shape not in ((), (Q.shape[1],)):
        raise ValueError(
            f"sink has shape {tuple(sink.shape)}; pass a number, or one for each of {Q.shape[1]} heads"
        )
    return sink.to(Q.device)


def check_powers_of_two(low: int, high: int, **sizes: int) -> None:
    """Raise TypeError or ValueError unless every size is a power of two from low to high."""
    accepted = [2**n for n in range(low.bit_length() - 1, high.bit_length())]
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral):
            raise TypeError(f"{name} is {size!r}; the kernel takes {', '.join(map(str, accepted))}")
        if size not in accepted:
            raise ValueError(f"{name} is {size}; the kernel takes {', '.join(map(str, accepted))}")


def check_kernel_blocks(**sizes: int) -> None:
    """Raise TypeError or ValueError unless every block size is a power of two a kernel can hold."""
    check_powers_of_two(MIN_BLOCK, MAX_BLOCK, **sizes)


def kernel_input(X: torch.Tensor) -> torch.Tensor:
    """Return X as a kernel takes it: its last axis contiguous and, in the interpreter, bfloat16 as float32.

    Triton's interpreter stores bfloat16 as uint16 and computes on the bits; results are rounded afterwards. A lazy
    negation (torch's "negative bit") is carried out, as a pointer has no such bit.
    """
    if INTERPRETED:
        X = X.detach().to(kernel_dtype(X.dtype))
    if X.is_neg():
        X = X.resolve_neg()
    return X if X.stride(-1) == 1 else X.contiguous()


def kernel_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that a kernel reads and writes in place of this one."""
    return torch.float32 if INTERPRETED and dtype == torch.bfloat16 else dtype


def ready(*tensors: torch.Tensor) -> bool:
    """Return whether kernels take the tensors as they are."""
    return all(kernel_input(X) is X for X in tensors)


def on_device_of(X: torch.Tensor) -> AbstractContextManager:
    """Return a context in which Triton launches on the device of X, which need not be the current one."""
    here = not X.is_cuda or X.device.index == torch.cuda.current_device()
    return NO_DEVICE_SWITCH if here else torch.cuda.device(X.device)
