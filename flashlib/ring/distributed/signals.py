"""Copies and signals between GPUs that take no multiprocessor, in a stream of their own.

A kernel that waits for a signal occupies a multiprocessor. A persistent kernel, such as Hopper's attention, gives
each multiprocessor its share of the work in advance, and is delayed as a whole if one of them is occupied. The
driver's operations wait in the stream itself: a signal is a word in shared memory, 1 once it was put, and 0 again
once the wait for it has ended. As these numbers never change, the operations can be captured in a CUDA graph.

The driver is called with numbers, since torch's objects for streams and events take the CPU longer than the call.
Source: CUDA Driver API, Stream Memory Operations.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from flashlib.private_apis import of_driver

CHANNELS = 4  # of each pair of ranks
WORD = 4  # bytes
EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ
STREAM, ADDRESS, WORDS = ctypes.c_void_p, ctypes.c_uint64, (ctypes.c_uint32, ctypes.c_uint)
ARGUMENTS = {
    "cuStreamWriteValue32_v2": (STREAM, ADDRESS, *WORDS),
    "cuStreamWaitValue32_v2": (STREAM, ADDRESS, *WORDS),
    "cuMemcpyDtoDAsync_v2": (ADDRESS, ADDRESS, ctypes.c_size_t, STREAM),
    "cuEventRecord": (ctypes.c_void_p, STREAM),
    "cuStreamWaitEvent": (STREAM, ctypes.c_void_p, ctypes.c_uint),
}


class Signals:
    """Copies from the memory that the ranks of a group share, and signals between each pair, on each channel.

    handle: what `symmetric_memory` returns for this memory, whose last `room(group)` bytes are for the words.
    All ranks of the group must create it together.
    """

    def __init__(self, memory: torch.Tensor, handle: Any, group: dist.ProcessGroup) -> None:
        self.handle, self.me, self.begin_of_words = handle, dist.get_rank(group), len(memory) - room(group)
        ranks = range(dist.get_world_size(group))
        self.addresses = [handle.get_buffer(rank, (1,), torch.uint8, 0).data_ptr() for rank in ranks]
        self.device = memory.device.index
        self.copies = torch.cuda.Stream(memory.device)
        self.stream = self.copies.cuda_stream
        self.computed = torch.cuda.Event()
        self.computed.record(self.copies)  # before that it has no number
        memory[self.begin_of_words :].zero_()
        torch.cuda.synchronize(memory.device)
        dist.barrier(group)  # nobody writes before all words are 0

    def begin(self) -> None:
        """Make what follows wait for all work so far on the current stream."""
        _driver("cuEventRecord", self.computed.cuda_event, of_driver.current_stream(self.device))
        _driver("cuStreamWaitEvent", self.stream, self.computed.cuda_event, 0)

    def put_signal(self, to: int, channel: int) -> None:
        """Signal a rank once all copies so far are done. The rank must wait for it before the next one is put."""
        _driver("cuStreamWriteValue32_v2", self.stream, self._word(to, self.me, channel), 1, 0)

    def wait_signal(self, of: int, channel: int) -> None:
        """Make what follows wait for a signal from a rank."""
        word = self._word(self.me, of, channel)
        _driver("cuStreamWaitValue32_v2", self.stream, word, 1, EQUAL)
        _driver("cuStreamWriteValue32_v2", self.stream, word, 0, 0)

    def fetch(self, X: torch.Tensor, of: int, at: int) -> None:
        """Copy from the memory of a rank to a contiguous tensor."""
        _driver("cuMemcpyDtoDAsync_v2", X.data_ptr(), self.addresses[of] + at, X.nbytes, self.stream)

    def end(self, tensors: Sequence[torch.Tensor]) -> "Copied":
        """Return what waits for all copies and signals so far. tensors: those that were fetched."""
        return Copied(self, tensors)

    def _word(self, to, of, channel):
        """Return the address of the word that `of` writes for `to`."""
        return self.addresses[to] + self.begin_of_words + WORD * (of * CHANNELS + channel)


class Copied:
    """Copies under way. Waiting makes the stream that computes wait for the stream that copies."""

    def __init__(self, signals: Signals, tensors: Sequence[torch.Tensor]) -> None:
        self.device, self.event, self.tensors = signals.device, torch.cuda.Event(), tensors
        self.event.record(signals.copies)

    def wait(self) -> None:
        """Make the current stream wait until everything has arrived, and everything sent has been read."""
        _driver("cuStreamWaitEvent", of_driver.current_stream(self.device), self.event.cuda_event, 0)
        self.tensors = ()


def check(device: torch.device) -> None:
    """Raise unless the driver has all of these functions, and a stream waits for a word that was written."""
    word, stream = torch.zeros(1, dtype=torch.int32, device=device), torch.cuda.current_stream(device).cuda_stream
    _driver("cuStreamWriteValue32_v2", stream, word.data_ptr(), 1, 0)
    _driver("cuStreamWaitValue32_v2", stream, word.data_ptr(), 1, EQUAL)
    torch.cuda.synchronize(device)
    for name in ARGUMENTS:
        _function(name)


def room(group: dist.ProcessGroup) -> int:
    """Return how many bytes a rank's words take."""
    return WORD * CHANNELS * dist.get_world_size(group)


def _driver(name, *arguments):
    code = _function(name)(*arguments)
    if code:
        raise RuntimeError(f"{name} of the CUDA driver fails with code {code}: link.Link copies without it")


@functools.cache
def _function(name):
    function = getattr(ctypes.CDLL("libcuda.so.1"), name)
    function.argtypes = ARGUMENTS[name]
    return function
