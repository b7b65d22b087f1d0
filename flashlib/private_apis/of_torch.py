"""Private parts of torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad


def in_forward_mode() -> bool:
    """Return whether tensors may carry tangents, inside torch.func.jvp or torch.autograd.forward_ad."""
    return forward_ad._current_level >= 0


def is_transformed() -> bool:
    """Return whether torch.func transforms the calls here."""
    return torch._C._are_functorch_transforms_active()


def is_dispatched() -> bool:
    """Return whether a mode of torch's dispatcher is on, which may replace tensors by others."""
    return bool(torch._C._len_torch_dispatch_stack())


def untransformed(function: type[torch.autograd.Function]) -> Callable:
    """Return the function's `apply` for calls that torch.func does not transform, which is 2 us faster.

    Torch's own looks for tensors that a transform left behind. These have no memory, so a call that has checked
    for memory has none of them.
    """
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


def times_written(X: torch.Tensor) -> int:
    """Return how often torch wrote to a tensor."""
    return X._version


def let_flex_recompile() -> None:
    """Let torch.compile compile flex_attention for each shape, and its backward pass run more than once."""
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch

    functorch.donated_buffer = False
    dynamo.recompile_limit = 100  # otherwise it silently goes back to eager


def graphs_made() -> tuple[int, int]:
    """Return how many graphs torch.compile has made in this process, and how many graph breaks there were."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())


def symmetric_memory(n_bytes: int, device: torch.device, group: Any) -> tuple[torch.Tensor, Any]:
    """Return memory of a GPU that every rank of a group can read, and its handle.

    All ranks of the group call this together, for the same size. handle: has get_buffer(rank, sizes, dtype,
    offset).
    """
    from torch.distributed import _symmetric_memory as symmetric

    memory = symmetric.empty(n_bytes, dtype=torch.uint8, device=device)
    return memory, symmetric.rendezvous(memory, group)


def rotate_context_parallel(method: str) -> None:
    """Choose how torch's context_parallel moves K and V: "allgather" or "alltoall"."""
    from torch.distributed.tensor.experimental import _attention

    _attention.set_rotate_method(method)
