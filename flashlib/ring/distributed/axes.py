"""An axis of ranks: a process group, its size, and this rank's number in it."""

from typing import Any, NamedTuple

import torch.distributed as dist


class Axis(NamedTuple):
    """One axis of ranks. group: None for this rank alone. me: this rank's number in the group."""

    group: Any = None
    size: int = 1
    me: int = 0


def axis_of(group: Any, name: str = "group") -> Axis:
    """Return the axis of a group: a ProcessGroup, a DeviceMesh of one axis, or None for all ranks."""
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "this process is not a rank yet: call attention in a function that flashlib.ring.processes.run runs, "
            "or after torch.distributed.init_process_group"
        )
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise ValueError(
                f"{name} is a DeviceMesh of {group.ndim} axes; pass one of its axes, e.g. mesh['ring']"
            )
        group = group.get_group()
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(f"{name} is {group!r:.60}; pass a ProcessGroup, a DeviceMesh of one axis, or None")
    return Axis(group, dist.get_world_size(group), dist.get_rank(group))
