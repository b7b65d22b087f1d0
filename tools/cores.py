"""How many processor cores this process may use: in a container or under taskset, fewer than there are."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OF_PROCESS = Path("/proc/self/cgroup")


def usable() -> int:
    """Return the number of cores that affinity and the quota of the control group allow, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    else:  # macOS and Windows
        number = os.cpu_count() or 1
    return max(1, math.ceil(min(number, quota())))


def quota() -> float:
    """Return the cores that this process's control group and those above it grant; infinity without a limit."""
    try:
        lines = OF_PROCESS.read_text().splitlines()
    except OSError:
        return math.inf
    found = [math.inf]
    for line in lines:  # hierarchy:controllers:path; version 2 has hierarchy 0 and no controllers
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = CGROUPS / controllers if controllers else CGROUPS
        group = root / path.strip("/")
        found += [_of(folder) for folder in (group, *group.parents) if folder.is_relative_to(root)]
    return min(found)


def _of(folder):
    """Return the cores that one group grants: quota / period, both in microseconds."""
    try:
        if (folder / "cpu.max").exists():  # version 2
            granted, period = (folder / "cpu.max").read_text().split()
        else:
            granted, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        granted = math.inf if granted == "max" else int(granted)
    except (OSError, ValueError):
        return math.inf
    return granted / int(period) if granted > 0 else math.inf
