"""Copies between the ranks of a group, by torch.distributed's own send and receive."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # its name until torch 2.12
Message = tuple[int, torch.Tensor, str]
"""A rank of the group, the contiguous tensor that goes to it or comes from it, its buffer's name at the sender."""


class Pending:
    """Copies under way."""

    def __init__(self, works: Sequence, tensors: Sequence[torch.Tensor]) -> None:
        self.works, self.tensors = works, tensors  # a tensor must be kept while it is sent

    def wait(self) -> None:
        """Return when they have arrived; on a GPU, make its stream wait for them."""
        for work in self.works:
            work.wait()
        self.works, self.tensors = (), ()


class Link:
    """Copies between the ranks of a group. All ranks start them in the same order, by which NCCL matches them.

    from_anywhere: whether any tensor can be sent, or only one in a buffer.
    """

    from_anywhere = True

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        self.buffers: dict[str, torch.Tensor] = {}

    def reserve(self, numbers: dict[str, int], dtype: torch.dtype, device: torch.device) -> None:
        """Prepare buffers of these sizes, the same on all ranks of the group. Here there is nothing to do."""

    def buffer(self, name: str, n: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return the buffer of this name, n numbers long: the same memory each time."""
        if name not in self.buffers:
            self.buffers[name] = torch.empty(n, dtype=dtype, device=device)
        return self.buffers[name]

    def start(self, sends: Sequence[Message], receives: Sequence[Message], tag: int = 0) -> Any:
        """Start copies to and from other ranks. Empty tensors are not sent, as both sides know."""
        both = [(dist.isend, *message) for message in sends] + [(dist.irecv, *message) for message in receives]
        both = [(way, peer, X) for way, peer, X, _ in both if X.numel()]
        ops = [dist.P2POp(way, X, group=self.group, group_peer=peer, tag=tag) for way, peer, X in both]
        works = dist.batch_isend_irecv(ops) if ops else ()
        return Pending(works, [X for _, _, X in both])


class InTurn(Link):
    """A Link that waits for each copy, so that nothing is computed meanwhile: it shows what overlap saves."""

    def start(self, sends: Sequence[Message], receives: Sequence[Message], tag: int = 0) -> Pending:
        pending = super().start(sends, receives, tag)
        pending.wait()
        return pending


def exchange(
    group: dist.ProcessGroup | None, parts: Sequence[torch.Tensor], sizes: Sequence[int]
) -> list[torch.Tensor]:
    """Send the flat tensor parts[s] to each rank s of a group; return what each sent here, `sizes` long."""
    sent = [len(part) for part in parts]
    there = parts[0].new_empty(sum(sizes))
    item = there.element_size()
    bytes_out, bytes_in = ([n * item for n in counts] for counts in (sent, sizes))
    dist.all_to_all_single(
        there.view(torch.uint8), torch.cat(list(parts)).view(torch.uint8), bytes_in, bytes_out, group=group
    )
    return list(there.split(list(sizes)))


def gather(group: dist.ProcessGroup | None, own: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
    """Return the flat tensor of each rank of a group, `sizes` long; they travel padded to the longest."""
    most = max(sizes)
    padded = own if len(own) == most else torch.cat([own, own.new_zeros(most - len(own))])
    there = own.new_empty(len(sizes) * most)
    if most:
        _gather(there.view(torch.uint8), padded.view(torch.uint8), group=group)
    return [there[r * most : r * most + n] for r, n in enumerate(sizes)]
