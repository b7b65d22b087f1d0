"""The kernels that can be compiled, and the options that each takes."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import triton

from flashlib.inputs import check_causal, check_counts
from flashlib.kernels import backward, eight_bits, forward, ladder, merge, softmax
from flashlib.kernels.ablations import forward as ablated
from flashlib.kernels.ablations import warp_specialised
from flashlib.kernels.compiler.makers import NVIDIA, maker_of
from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS
from flashlib.kernels.hopper import backward as hopper_backward
from flashlib.kernels.hopper import backward_ladder as hopper_backward_ladder
from flashlib.kernels.hopper import forward as hopper_forward
from flashlib.kernels.hopper import fp8 as hopper_fp8
from flashlib.kernels.hopper import ladder as hopper_ladder
from flashlib.kernels.hopper import rescaling as hopper_rescaling
from flashlib.kernels.ladder import plain_backward, r8_descriptors
from flashlib.kernels.launch.inputs import DTYPES, check_kernel_blocks, check_powers_of_two

MAX_STAGES = 8


class Kernel(NamedTuple):
    """How to get a kernel launched.

    call: the function of its module that launches it. launched: its name there, if the call launches others too.
    options: with these the call launches it.
    """

    call: Callable
    launched: str | None = None
    options: dict = {}


@functools.cache
def kernels() -> dict[str, Kernel]:
    """Return the kernels that lists offer: passes, softmax, merge, rungs, rungs without one idea, Hopper's."""
    found = {
        "forward": Kernel(forward.attention),
        "backward_dkv": Kernel(backward.backward, "_dkv"),
        "backward_dq": Kernel(backward.backward, "_dq"),
        "backward_fused": Kernel(backward.backward, "_dkv", {"deterministic": False}),
        "softmax": Kernel(softmax.softmax),
        "merge": Kernel(merge.merge),
    }
    found |= _rungs(ladder)
    found["without_common_wait"] = Kernel(r8_descriptors.attention, options={"common_wait": False})
    for idea in ("late_division", "parallel_rows", "split_rows"):
        found[f"without_{idea}"] = Kernel(ablated.attention, options={idea: False})
    found |= {f"hopper_{name}": kernel for name, kernel in _rungs(hopper_ladder).items()}
    found["hopper_forward"] = Kernel(hopper_forward.attention)
    found |= {
        f"hopper_backward_{name}": kernel for name, kernel in _backward_rungs(hopper_backward_ladder).items()
    }
    return found | {"hopper_backward": Kernel(hopper_backward.backward, "_backward")}


@functools.cache
def all_kernels() -> dict[str, Kernel]:
    """Return `kernels` and those that no list offers, as only some GPUs, dtypes or head dimensions have them."""
    return kernels() | {
        "warp_specialised": Kernel(warp_specialised.attention),
        "without_warp_specialize": Kernel(warp_specialised.attention, options={"warp_specialize": False}),
        "plain_dkv": Kernel(plain_backward.backward, "_dkv"),
        "plain_dq": Kernel(plain_backward.backward, "_dq"),
        "hopper_dkv_256": Kernel(hopper_backward.backward, "_dkv"),
        "hopper_dq_256": Kernel(hopper_backward.backward, "_dq"),
        "hopper_always_rescaled": Kernel(hopper_rescaling.attention, options={"tau": None}),
        "hopper_lazily_rescaled": Kernel(hopper_rescaling.attention, options={"tau": 8}),
        "eight_bits": Kernel(eight_bits.attention, "_attention"),
        "eight_bits_int8": Kernel(eight_bits.attention, "_attention", {"qk": "int8", "pv": None}),
        "hopper_fp8": Kernel(hopper_fp8.attention, "_attention"),
        "hopper_int8": Kernel(hopper_fp8.attention, "_attention", {"qk": "int8"}),
    }


def _rungs(package):
    """Return the rungs of a ladder that have a kernel."""
    found = {}
    for rung in pkgutil.iter_modules(package.__path__):
        module = vars(importlib.import_module(f"{package.__name__}.{rung.name}"))
        if "attention" in module and any(isinstance(x, triton.KernelInterface) for x in module.values()):
            found[rung.name] = Kernel(module["attention"])
    return found


def _backward_rungs(package):
    """Return the rungs of a ladder of backward passes, without helper kernels, whose names have no underscore."""
    found = {}
    for rung in pkgutil.iter_modules(package.__path__):
        module = vars(importlib.import_module(f"{package.__name__}.{rung.name}"))
        if "backward" in module:
            (launched,) = (
                name for name, x in module.items() if isinstance(x, triton.JITFunction) and name[0] == "_"
            )
            found[rung.name] = Kernel(module["backward"], launched)
    return found


def options_of(kernel: str) -> frozenset[str]:
    """Return which of causal, B_r, B_c, num_warps, num_stages and descriptors a kernel takes."""
    taken = inspect.signature(all_kernels()[kernel].call).parameters
    return frozenset(taken) & {"causal", "B_r", "B_c", "num_warps", "num_stages", "descriptors"}


def check(
    kernel: str, d: int, dtype: str, causal: bool, capability: int | str, options: dict[str, int | bool],
    shape: Sequence[int] | None,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError for what the kernel does not take; options: those that are not None."""
    check_choice(kernel=(kernel, all_kernels()))
    check_choice(dtype=(dtype, [str(accepted).removeprefix("torch.") for accepted in DTYPES]))
    check_choice(capability=(capability, MULTIPROCESSORS))
    if kernel.startswith("hopper_") and maker_of(capability) is not NVIDIA:
        raise ValueError(
            f"capability is {capability!r}, and {kernel} is for Hopper, an NVIDIA GPU: pass 90, or 'forward'"
        )
    check_counts(at_least=1, d=d)
    if kernel == "hopper_backward" and d == 256 or kernel.endswith("_256") and d != 256:
        raise ValueError(
            f"d is {d} and kernel {kernel!r}; at d = 256 the Hopper backward has two passes, 'hopper_dkv_256' and "
            "'hopper_dq_256', at others one, 'hopper_backward'"
        )
    check_causal(causal)
    taken = options_of(kernel)
    for name in options:
        if name not in taken:
            raise ValueError(f"{name} is {options[name]!r}; {kernel} has no such option: leave it out")
    if causal and "causal" not in taken:
        raise ValueError(f"causal is {causal}; {kernel} has no mask: leave it out")
    check_kernel_blocks(**{name: options[name] for name in ("B_r", "B_c") if name in options})
    if "num_warps" in options:
        check_powers_of_two(1, 16, num_warps=options["num_warps"])
    if "num_stages" in options:
        check_counts(at_least=1, num_stages=options["num_stages"])
        if options["num_stages"] > MAX_STAGES:
            raise ValueError(f"num_stages is {options['num_stages']}; at most {MAX_STAGES} are compiled here")
    if not isinstance(options.get("descriptors", True), bool):
        raise TypeError(f"descriptors is {options['descriptors']!r}; pass True or False, or None to choose")
    if shape is not None:
        if kernel == "softmax":
            raise ValueError(f"shape is {shape}; softmax takes rows of length d: leave it out")
        if len(shape) != 4:
            raise ValueError(f"shape is {shape}; pass (B, H_q, H_k, N)")
        check_counts(at_least=1, **dict(zip(("B", "H_q", "H_k", "N"), shape, strict=True)))


def check_choice(**choices: tuple[object, Iterable]) -> None:
    """Raise ValueError if a value is not accepted; choices: name=(value, accepted)."""
    for name, (value, accepted) in choices.items():
        if isinstance(value, bool) or value not in list(accepted):
            raise ValueError(f"{name} is {value!r}; accepted are {', '.join(map(str, accepted))}")
