"""The memory that is free on a learner's machine, so that a demonstration does not take too much."""

import contextlib
import os
from pathlib import Path

CONTAINER = (  # its limit and its use, in the files of control groups, versions 2 and 1
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def free_bytes(root: Path = Path("/")) -> int:
    """Return how many bytes of memory are free, 0 if the system does not say.

    In a container, its limit counts too. Without Linux's /proc, in `root`, a quarter of the memory counts as free.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
        free = 1024 * int(fields["MemAvailable"].removesuffix("kB"))
    except (OSError, KeyError):
        return _quarter()
    for limit, used in CONTAINER:
        with contextlib.suppress(OSError, ValueError):  # no such file, or a limit of "max"
            free = min(free, int((root / limit).read_text()) - int((root / used).read_text()))
    return max(free, 0)


def _quarter() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, ValueError, OSError):  # for example on Windows
        return 0
