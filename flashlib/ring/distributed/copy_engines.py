"""Copies between GPUs of one host by their copy engines, which take no multiprocessor from attention.

The buffers of a ring are in memory that every rank can read. A rank signals that its buffer is full; the next rank
copies it, with an ordinary copy on a separate stream, and signals that it is done. NCCL's send and receive, by
contrast, are kernels, which occupy multiprocessors while they copy.

The memory is kept as long as the group, for later calls. A call on another stream than the one before waits for
that; a CUDA graph does not, so no other call of the group may run beside a replay.
"""

import hashlib
import itertools
import os
import socket
import weakref
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from flashlib.ring import agree
from flashlib.ring.distributed.link import Link, Message, Pending

ALIGNED = 512  # bytes
KEYS, GRADIENTS = 0, 2  # each kind of copy has two channels, full and done; this is the first


class CopyEngines(Link):
    """Copies by copy engines: does what `link.Link` does, in memory that the ranks share."""

    from_anywhere = False

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        super().__init__(group)
        self.memory: Any = None if group is None else memory_of(group)

    def reserve(self, numbers: dict[str, int], dtype: torch.dtype, device: torch.device) -> None:
        self.memory.reserve({name: n * dtype.itemsize for name, n in numbers.items()}, device)

    def buffer(self, name: str, n: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return self.memory.own(name, n * dtype.itemsize).view(dtype)

    def start(self, sends: Sequence[Message], receives: Sequence[Message], tag: int = 0) -> Any:
        """Start copies. Each rank sends at most one message, and may receive two."""
        sends, receives = ([message for message in some if message[1].numel()] for some in (sends, receives))
        if not (sends or receives):
            return Pending((), ())
        full = GRADIENTS if (sends or receives)[0][2].startswith("dKV") else KEYS
        handle = self.memory.handle
        handle.begin()
        for peer, _, _ in sends:
            handle.put_signal(peer, full)
        for peer, X, name in receives:
            handle.wait_signal(peer, full)
            handle.fetch(X, peer, self.memory.at[name])
            handle.put_signal(peer, full + 1)
        for peer, _, _ in sends:
            handle.wait_signal(peer, full + 1)
        return handle.end([X for _, X, _ in receives])


class GroupMemory:
    """The memory of a group: named buffers, at the same offsets on all of its ranks, `at`."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group: Any = weakref.ref(group)
        self.sizes: dict[str, int] = {}
        self.at: dict[str, int] = {}
        self.memory: Any = None
        self.handle: Any = None
        self.stream: Any = None  # on which the last pass computed
        self.captured: dict[int, tuple] = {}  # what CUDA graphs refer to, kept as long as the group

    def reserve(self, sizes: dict[str, int], device: torch.device) -> None:
        """Make the buffers at least this large, in bytes. All ranks of the group call this with the same sizes."""
        enough = self.memory is not None and all(n <= self.sizes.get(name, -1) for name, n in sizes.items())
        if device.type == "cuda":
            self._settle(device, enough)
        if enough:
            return
        self.sizes |= {name: max(n, self.sizes.get(name, 0)) for name, n in sizes.items()}
        self.memory = self.handle = None
        ends = list(itertools.accumulate(map(_aligned, self.sizes.values()), initial=0))
        self.at = dict(zip(self.sizes, ends, strict=False))  # names keep the order in which they were reserved
        self.memory, self.handle = shared(max(ends[-1], ALIGNED), device, self.group())

    def own(self, name: str, n: int) -> torch.Tensor:
        """Return the first n bytes of this rank's buffer of a name."""
        at = self.at[name]
        return self.memory[at : at + n]

    def _settle(self, device, enough):
        """Wait until nothing reads the memory, if it is to be replaced, or a pass on another stream used it."""
        from flashlib.private_apis.of_driver import current_stream  # only here: with it comes Triton

        before, self.stream = self.stream, current_stream(device.index)
        if torch.cuda.is_current_stream_capturing():  # which begins when all work is done
            if not enough:
                raise RuntimeError(
                    "a CUDA graph is captured, and attention over ranks needs more memory for copies than before: "
                    "call it once with these sizes, and then capture"
                )
            self.captured[id(self.handle)] = self.memory, self.handle
        elif before is not None and not (enough and before == self.stream):
            torch.cuda.synchronize(device)


_memories: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: its GroupMemory}


def memory_of(group: dist.ProcessGroup) -> GroupMemory:
    """Return the GroupMemory of a group, which lives as long as the group."""
    if group not in _memories:
        _memories[group] = GroupMemory(group)
    return _memories[group]


def shared(n: int, device: torch.device, group: dist.ProcessGroup) -> tuple[torch.Tensor, Any]:
    """Return n bytes that all ranks of the group can read, and a `signals.Signals` that reads and signals."""
    from flashlib.private_apis.of_torch import symmetric_memory  # only here: ranks without a GPU do not need these
    from flashlib.ring.distributed import signals

    memory, handle = symmetric_memory(n + signals.room(group), device, group)
    return memory[:n], signals.Signals(memory, handle, group)


def reach_all(group: dist.ProcessGroup, device: torch.device) -> bool:
    """Return whether copy engines reach the GPUs of all ranks of a group. All ranks call this.

    The GPUs must be of one host, and every rank must see them all and reach their memory. Signals and shared
    memory are tried: only NVIDIA's driver has the first, and a container may forbid the second.
    """
    if device.type != "cuda" or dist.get_world_size(group) == 1 or "nccl" not in dist.get_backend_config(group):
        return False
    from flashlib.private_apis.of_torch import symmetric_memory
    from flashlib.ring.distributed import signals

    told = agree.numbers_of_all(group, _host(), device.index)
    near = _are_near(told, device.index) and _runs(signals.check, device)
    return all_of(group, near) and all_of(group, _runs(symmetric_memory, ALIGNED, device, group))


def all_of(group: dist.ProcessGroup, own: bool) -> bool:
    """Return whether it is so on all ranks of a group."""
    return all(one for (one,) in agree.numbers_of_all(group, own))


def _host():
    """Return a number of this host, other after each start of it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            name = file.read() + socket.gethostname()
    except OSError:  # not Linux, where nothing is shared
        return os.getpid()
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def _are_near(told, own):
    """Return whether a GPU reaches the others. told: the host of each rank and the index of its GPU there."""
    hosts, indices = ({*of} for of in zip(*told, strict=True))
    if len(hosts) > 1 or len(indices) < len(told) or max(indices) >= torch.cuda.device_count():
        return False
    return all(torch.cuda.can_device_access_peer(own, other) for other in indices - {own})


def _runs(function, *given):
    try:
        function(*given)
    except Exception:  # whatever the libraries raise
        return False
    return True


def _aligned(n):
    return -(-n // ALIGNED) * ALIGNED
