"""Signals between GPUs that take no multiprocessor: words in shared memory, which streams write and wait for.

A kernel that waits for a signal occupies a multiprocessor. A persistent kernel, such as Hopper's attention, gives
each multiprocessor its share of the work in advance, and is delayed as a whole if one of them is occupied. The
driver's operations on words wait in the stream itself.

Source: CUDA Driver API, Stream Memory Operations.
"""

import ctypes
import functools
from typing import Any

import torch
import torch.distributed as dist

CHANNELS = 4  # of each pair of ranks
WORD = 4  # bytes
AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ


class Signals:
    """The memory that the ranks of a group share, and signals between them, counted for each pair and channel.

    handle: what `symmetric_memory` returns for this memory, whose last `room(group)` bytes are for the words.
    All ranks of the group must create it together.
    """

    def __init__(self, memory: torch.Tensor, handle: Any, group: dist.ProcessGroup) -> None:
        self.handle, self.me, self.begin = handle, dist.get_rank(group), len(memory) - room(group)
        self.put: dict[tuple[int, int], int] = {}
        self.awaited: dict[tuple[int, int], int] = {}
        memory[self.begin :].zero_()
        torch.cuda.synchronize(memory.device)
        dist.barrier(group)  # nobody writes before all words are 0

    def get_buffer(self, rank: int, sizes: tuple[int, ...], dtype: torch.dtype, offset: int) -> torch.Tensor:
        """Return memory of a rank of the group as a tensor."""
        return self.handle.get_buffer(rank, sizes, dtype, offset)

    def put_signal(self, to: int, channel: int) -> None:
        """Signal a rank once all work in the current stream is done."""
        self.put[to, channel] = n = self.put.get((to, channel), 0) + 1
        _driver("cuStreamWriteValue32_v2", self._word(to, self.me, channel), n, 0)

    def wait_signal(self, of: int, channel: int) -> None:
        """Make the current stream wait for the next signal from a rank."""
        self.awaited[of, channel] = n = self.awaited.get((of, channel), 0) + 1
        _driver("cuStreamWaitValue32_v2", self._word(self.me, of, channel), n, AT_LEAST)

    def _word(self, to, of, channel):
        """Return the address of the word that `of` writes for `to`."""
        at = self.begin + WORD * (of * CHANNELS + channel)
        return self.handle.get_buffer(to, (WORD,), torch.uint8, at).data_ptr()


def room(group: dist.ProcessGroup) -> int:
    """Return how many bytes a rank's words take."""
    return WORD * CHANNELS * dist.get_world_size(group)


def _driver(name, address, value, flags):
    function = getattr(_library(), name)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = function(stream, ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(flags))
    if code:
        raise RuntimeError(f"{name} of the CUDA driver fails with code {code}: link.Link copies without it")


@functools.cache
def _library():
    return ctypes.CDLL("libcuda.so.1")
