"""Signals between GPUs that take no multiprocessor: words in shared memory, which streams write and wait for.

A kernel that waits for a signal holds a multiprocessor. A persistent kernel, such as Hopper's attention, gives
each multiprocessor its share of the work beforehand, and so is late as a whole by what one of them is held. The
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
    """Buffers of the ranks of a group in one memory, and signals between them, counted for each pair and channel.

    handle: what `symmetric_memory` returns for this memory, whose last `room(group)` bytes are for the words.
    All ranks of the group make it at once.
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
        """Tell a rank, once all that is in the current stream is done."""
        self.put[to, channel] = n = self.put.get((to, channel), 0) + 1
        _driver("cuStreamWriteValue32_v2", self._word(to, self.me, channel), n, 0)

    def wait_signal(self, of: int, channel: int) -> None:
        """Have the current stream wait for the next signal of a rank."""
        self.awaited[of, channel] = n = self.awaited.get((of, channel), 0) + 1
        _driver("cuStreamWaitValue32_v2", self._word(self.me, of, channel), n, AT_LEAST)

    def _word(self, to, of, channel):
        """Return the address of the word that `of` writes for `to`."""
        at = self.begin + WORD * (of * CHANNELS + channel)
        return self.handle.get_buffer(to, (WORD,), torch.uint8, at).data_ptr()


def room(group: dist.ProcessGroup) -> int:
    """Return the bytes of a rank's words."""
    return WORD * CHANNELS * dist.get_world_size(group)


def _driver(name, address, value, flags):
    function = getattr(_library(), name)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = function(stream, ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint(flags))
    if code:
        raise RuntimeError(f"{name} of the CUDA driver fails with code {code}: copies by link.Link need it not")


@functools.cache
def _library():
    return ctypes.CDLL("libcuda.so.1")
