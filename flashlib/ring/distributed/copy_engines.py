"""Copies between GPUs of one host by their copy engines, which take no multiprocessor from attention.

The buffers of a ring are in memory that every rank can read. A rank signals that its buffer is full; the next rank
copies it, with an ordinary copy on a separate stream, and signals that it is done. NCCL's send and receive, by
contrast, are kernels, which occupy multiprocessors while they copy.

The memory is kept as long as the group, for later calls. Only one call at a time may run in a group.
"""

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from flashlib.ring.distributed import signals
from flashlib.ring.distributed.link import Link, Message

ALIGNED = 512  # bytes
KEYS, GRADIENTS = 0, 2  # each kind of copy has two channels, full and done; this is the first


class CopyEngines(Link):
    """Copies by copy engines: does what `link.Link` does, in memory that the ranks share."""

    from_anywhere = False

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        super().__init__(group)
        self.memory: Any = None if group is None else _memories.setdefault(group, GroupMemory(group))

    def reserve(self, numbers: dict[str, int], dtype: torch.dtype, device: torch.device) -> None:
        self.memory.reserve({name: n * dtype.itemsize for name, n in numbers.items()}, device)

    def buffer(self, name: str, n: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return self.memory.own(name, n * dtype.itemsize).view(dtype)

    def start(self, sends: Sequence[Message], receives: Sequence[Message], tag: int = 0) -> Any:
        """Start copies. Each rank sends at most one message, and may receive two."""
        sends, receives = ([message for message in some if message[1].numel()] for some in (sends, receives))
        if not (sends or receives):
            return Copied(None, ())
        names = {name for _, _, name in (*sends, *receives)}
        full = GRADIENTS if any(name.startswith("dKV") for name in names) else KEYS
        handle, device = self.memory.handle, (*sends, *receives)[0][1].device
        with self.memory.aside(device) as stream:
            for peer, _, _ in sends:
                handle.put_signal(peer, full)
            for peer, X, name in receives:
                handle.wait_signal(peer, full)
                X.view(torch.uint8).copy_(
                    self.memory.of(peer, name, X.numel() * X.element_size()), non_blocking=True
                )
                handle.put_signal(peer, full + 1)
            for peer, _, _ in sends:
                handle.wait_signal(peer, full + 1)
        return Copied(stream, [X for _, X, _ in receives])


class Copied:
    """Copies under way. Waiting makes the stream that computes wait for the stream that copies."""

    def __init__(self, stream: Any, tensors: Sequence[torch.Tensor]) -> None:
        self.event, self.tensors = stream and stream.record_event(), tensors

    def wait(self) -> None:
        """Make the current stream wait until everything has arrived, and everything sent has been read."""
        if self.event:
            self.event.wait()
        self.event, self.tensors = None, ()


class GroupMemory:
    """The memory of a group: named buffers, at the same offsets on all of its ranks."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group: Any = weakref.ref(group)
        self.sizes: dict[str, int] = {}
        self.memory: Any = None
        self.handle: Any = None
        self.stream: Any = None

    def reserve(self, sizes: dict[str, int], device: torch.device) -> None:
        """Make the buffers at least this large, in bytes. All ranks of the group call this with the same sizes."""
        if self.memory is not None and all(n <= self.sizes.get(name, -1) for name, n in sizes.items()):
            return
        self.sizes |= {name: max(n, self.sizes.get(name, 0)) for name, n in sizes.items()}
        if self.memory is not None and device.type == "cuda":
            torch.cuda.synchronize(device)  # work that reads it has been launched, but may still run
        self.memory = self.handle = None
        n = sum(map(_aligned, self.sizes.values()))
        self.memory, self.handle = shared(max(n, ALIGNED), device, self.group())

    def own(self, name: str, n: int) -> torch.Tensor:
        """Return the first n bytes of this rank's buffer of a name."""
        at = self._at(name)
        return self.memory[at : at + n]

    def of(self, peer: int, name: str, n: int) -> torch.Tensor:
        """Return the first n bytes of another rank's buffer of a name."""
        return self.handle.get_buffer(peer, (n,), torch.uint8, self._at(name))

    @contextlib.contextmanager
    def aside(self, device: torch.device) -> Any:
        """Work on the stream for copies, which first waits for all work so far on the current stream."""
        if device.type != "cuda":
            yield None
            return
        if self.stream is None:
            self.stream = torch.cuda.Stream(device)
        self.stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self.stream):
            yield self.stream

    def _at(self, name):
        """Return the offset of a buffer. Names keep the order in which they were reserved."""
        names = list(self.sizes)
        return sum(_aligned(self.sizes[other]) for other in names[: names.index(name)])


_memories: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # {group: its GroupMemory}


def shared(n: int, device: torch.device, group: dist.ProcessGroup) -> tuple[torch.Tensor, Any]:
    """Return n bytes that all ranks of the group can read, and a `signals.Signals` that reads and signals."""
    from flashlib.private_apis.of_torch import symmetric_memory  # only here: ranks without a GPU do not need it

    memory, handle = symmetric_memory(n + signals.room(group), device, group)
    return memory[:n], signals.Signals(memory, handle, group)


def _aligned(n):
    return -(-n // ALIGNED) * ALIGNED
