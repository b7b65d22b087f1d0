"""What a call takes where nothing else is given: the module that computes hops, and the class that copies.

Each rank chooses its module alone, as all modules give fp32. All ranks of a group copy in the same way: they find
out once, together, whether copy engines reach all of their GPUs.
"""

from types import ModuleType
from typing import Any, NamedTuple

import torch

from flashlib.ring.distributed import local
from flashlib.ring.distributed.agreements import agreements_of
from flashlib.ring.distributed.axes import axis_of
from flashlib.ring.distributed.link import Link


class Defaults(NamedTuple):
    """What the ways take by default, as they take it as arguments."""

    local: ModuleType
    link: type[Link]


def chosen(device: torch.device | str, *, group: Any = None) -> Defaults:
    """Return what a call takes by default for tensors on a device. All ranks of the group call this.

    group: as in `ring.attention`; for `two_d` that of the ring. `all_gather` and `ulysses` use no link.
    """
    axis, device = axis_of(group), torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    known = agreements_of(axis.group)
    known.meet(axis.group, device)
    return Defaults(local.module_for(device), known.link_for(device))
