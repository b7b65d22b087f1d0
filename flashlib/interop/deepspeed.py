"""Our attention in DeepSpeed, as the local attention of its Ulysses, which exchanges heads for rows between ranks.

    attend = deepspeed.ulysses(group, causal=True)
    O = attend(Q, K, V)          # (B, N / P, H, d) of this rank

`make deepspeed` runs it on 4 processes, next to `flashlib.ring.distributed.ulysses`. Tried with DeepSpeed 0.19.8.

Source: Jacobs and others, DeepSpeed Ulysses (2023).
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from flashlib.masks import Mask
from flashlib.ring import agree

INSTEAD = "flashlib.ring.distributed.ulysses takes any N, H and H_k"


class Local(torch.nn.Module):
    """The attention of a rank: all rows of some heads, (B, N, H / P, d), as exchanged by DeepSpeed.

    attention: one of flashlib's, for (B, H, N, d); None: the kernels. Raises ValueError for a mask that depends on
    the head, since a rank counts its heads from 0, and for arguments passed on by DeepSpeed.
    """

    def __init__(
        self, attention: Callable | None = None, *, causal: bool = False, mask: Mask | None = None,
        scale: float | None = None,
    ):  # fmt: skip
        super().__init__()
        if mask is not None and (mask.asks_head or mask.heads not in (None, 1)):
            raise ValueError(
                f"the mask is {mask!r}, which tells heads apart, and a rank has some of them: call "
                "flashlib.ring.distributed.ulysses.attention"
            )
        self.attention = attention
        self.options: dict[str, Any] = {"causal": causal, "mask": mask, "scale": scale}

    def forward(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *more: Any, **options: Any
    ) -> torch.Tensor:
        """Return O, with the shape of Q."""
        if more or options:
            raise ValueError(
                f"{len(more) + len(options)} more arguments are given; what an attention is asked is given to "
                "ulysses: causal, mask and scale"
            )
        if self.attention is None:
            from flashlib import kernels

            self.attention = kernels.attention
        return self.attention(*(X.transpose(1, 2) for X in (Q, K, V)), **self.options).O.transpose(1, 2)


def ulysses(
    group: Any = None, attention: Callable | None = None, *, causal: bool = False, mask: Mask | None = None,
    scale: float | None = None,
) -> Callable:  # fmt: skip
    """Return DeepSpeed's Ulysses with our attention: f(Q, K, V), each (B, N / P, H, d) of this rank, returns O.

    group: of ranks; None: all. attention, causal, mask, scale: see Local. All ranks must have equally many tokens,
    and H and H_k must be multiples of P; otherwise f raises the same ValueError on every rank, before any work.
    """
    from deepspeed.sequence.layer import DistributedAttention

    if not torch.cuda.is_available():  # it would compile an extension for minutes, or wait for a lock file
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    group = torch.distributed.group.WORLD if group is None else group
    local = Local(attention, causal=causal, mask=mask, scale=scale)
    exchanged = DistributedAttention(local, group, scatter_idx=2, gather_idx=1)
    return functools.partial(_called, exchanged, group, local.options)


def _called(exchanged, group, options, Q, K, V):
    _check(group, options, Q=Q, K=K, V=V)
    return exchanged(Q, K, V, 0)  # the batch axis


def _check(group, options, **tensors):
    """Raise the same error on every rank unless all have the same arguments, and DeepSpeed can exchange them."""
    shapes = {name: tuple(getattr(X, "shape", ())) for name, X in tensors.items()}
    dtypes = {f"dtype of {name}": getattr(X, "dtype", type(X).__name__) for name, X in tensors.items()}
    try:
        agree.check("interop.deepspeed.ulysses", group, **shapes, **dtypes, **options)
    except ValueError as error:
        raise ValueError(f"{error}; {INSTEAD}") from None
    P = torch.distributed.get_world_size(group)
    for name, shape in shapes.items():
        if len(shape) != 4:
            raise ValueError(f"{name} has shape {shape}; pass a tensor (B, N / {P}, H, d) on each rank")
        if shape[2] % P:
            raise ValueError(
                f"{name} has {shape[2]} heads, and {P} ranks share them: H and H_k must be multiples of {P}; "
                f"{INSTEAD}"
            )
