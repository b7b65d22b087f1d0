"""Signals and copies of two ranks, by a driver that does everything at once and refuses to wait for ever."""

import ctypes
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
import torch.distributed as dist  # noqa: E402

from flashlib.private_apis import of_driver  # noqa: E402
from flashlib.ring.distributed import signals  # noqa: E402

N = 64  # bytes for data
COMPUTES, COPIES = 11, 22  # streams: the one that computes, the one that copies


class Driver:
    """The functions of the driver, on the memory of this process. Calls of one stream are noted in their order."""

    def __init__(self):
        self.noted = []

    def __call__(self, name, *given):
        kinds = signals.ARGUMENTS[name]
        assert len(given) == len(kinds)
        [kind(value) for kind, value in zip(kinds, given, strict=True)]
        self.noted.append((name, given))
        getattr(self, name)(*given)

    def cuStreamWriteValue32_v2(self, stream, address, value, flags):
        ctypes.c_uint32.from_address(address).value = value

    def cuStreamWaitValue32_v2(self, stream, address, value, flags):
        assert flags == 1 and ctypes.c_uint32.from_address(address).value == value, "it would wait for ever"

    def cuMemcpyDtoDAsync_v2(self, to, of, n, stream):
        ctypes.memmove(to, of, n)

    def cuEventRecord(self, event, stream): ...

    def cuStreamWaitEvent(self, stream, event, flags): ...


@pytest.fixture
def two(monkeypatch):
    """Return the driver, and the memory and Signals of two ranks."""
    driver, P = Driver(), 2
    monkeypatch.setattr(dist, "get_world_size", lambda group: P)
    monkeypatch.setattr(dist, "barrier", lambda group: None)
    monkeypatch.setattr(signals, "_driver", driver)
    monkeypatch.setattr(of_driver, "current_stream", lambda index: COMPUTES)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: SimpleNamespace(cuda_stream=COPIES))
    monkeypatch.setattr(torch.cuda, "Event", lambda: SimpleNamespace(record=lambda stream: None, cuda_event=33))
    memory = [torch.full((N + signals.room(None),), 7, dtype=torch.uint8) for _ in range(P)]

    def get_buffer(rank, sizes, dtype, offset):
        return memory[rank][offset : offset + sizes[0]]

    made = []
    for me in range(P):
        monkeypatch.setattr(dist, "get_rank", lambda group, me=me: me)
        made.append(signals.Signals(memory[me], SimpleNamespace(get_buffer=get_buffer), None))
    return driver, memory, made


def test_each_signal_is_taken_back_by_its_wait(two):
    _, memory, (one, other) = two
    for _ in range(3):
        for channel in range(signals.CHANNELS):
            one.put_signal(1, channel)
            with pytest.raises(AssertionError, match="for ever"):
                one.wait_signal(1, channel)  # of the other direction
            other.wait_signal(0, channel)
            with pytest.raises(AssertionError, match="for ever"):
                other.wait_signal(0, channel)
    assert all(not words[N:].any() for words in memory)


def test_a_copy_is_of_the_other_ranks_memory_and_on_its_own_stream(two):
    driver, memory, (one, _) = two
    memory[1][:N] = torch.arange(N)
    X = torch.zeros(3, dtype=torch.int32)
    driver.noted.clear()
    one.begin()
    one.fetch(X, 1, 8)
    copied = one.end([X])
    copied.wait()
    assert torch.equal(X.view(torch.uint8), memory[1][8:20])
    names, given = zip(*driver.noted, strict=True)
    assert names == ("cuEventRecord", "cuStreamWaitEvent", "cuMemcpyDtoDAsync_v2", "cuStreamWaitEvent")
    assert (given[0][1], given[1][0], given[2][3], given[3][0]) == (COMPUTES, COPIES, COPIES, COMPUTES)
