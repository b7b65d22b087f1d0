"""For `bench.mine`: a learner's kernel in Gluon next to ours for Hopper, our portable one and those of others.

On a Hopper GPU each is verified and timed, all in one run. Elsewhere all are compiled for an H100.
"""

import inspect
from collections.abc import Callable
from typing import Any

from flashlib.bench.learner_resources import KernelReport, yours_and_ours

CAPABILITY = 90
DS = 64, 128
LENGTHS = 4096, 16384
PEERS = "hopper", "ours", "sdpa_cudnn", "fa4"
OURS = {"ours": "hopper_forward", "portable": "forward"}  # compiled for comparison


def is_in_gluon(answer: Any) -> bool:
    """Return whether a function names a kernel in Gluon."""
    names = inspect.getclosurevars(answer) if inspect.isfunction(answer) else None
    used = [*names.globals.values(), *names.nonlocals.values()] if names else []
    return any(type(x).__name__ == "GluonJITFunction" for x in used)


def compiled(answer: Callable) -> list[KernelReport]:
    """Return a KernelReport for each kernel of a function and for two of ours."""
    from flashlib.kernels.compiler import compiled as compiler
    from flashlib.kernels.compiler import learner_kernels

    reports = []
    for d in DS:
        size: dict = {"d": d, "causal": True, "capability": CAPABILITY}
        reports += yours_and_ours(f"d = {d}", learner_kernels.reports(answer, "attention", **size))
        reports += [
            KernelReport(f"d = {d}", whose, compiler.report(kernel=name, **size, sass=False))
            for whose, name in OURS.items()
        ]
    return reports


def timed(answer: Callable) -> dict[Any, dict]:
    """Return {size: {peer: TFLOP/s or None}} of a function and its peers; each result is verified first."""
    import torch

    from flashlib.bench import hopper
    from flashlib.bench.common.problem import Size, measure

    def yours(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
        result = answer(Q, K, V, causal)
        return result[0] if isinstance(result, tuple | list) else result

    peers = {"yours": yours} | {name: hopper.PEERS[name] for name in PEERS if name in hopper.PEERS}
    torch.manual_seed(0)
    shapes = [(16384 // N, 2048 // d, 2048 // d, N, d) for d in DS for N in LENGTHS]
    sizes = [Size(*shape, causal) for shape in shapes for causal in (False, True)]
    return {size: measure(size, peers)["tflops"] for size in sizes}
