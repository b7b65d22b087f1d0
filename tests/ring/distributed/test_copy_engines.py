"""The protocol of copies by copy engines, with memory shared by processes in place of GPU memory."""

import tempfile
import time
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
import torch.distributed as dist  # noqa: E402

from flashlib import masks  # noqa: E402
from flashlib.ring import processes  # noqa: E402
from flashlib.ring.distributed import copy_engines, link  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402
from tests.ring.distributed.test_on_ranks import CASE  # noqa: E402

CHANNELS = 4


class Shared:
    """Does what `signals.Signals` does, with files that all ranks map."""

    def __init__(self, folder, n, made):
        me, P = dist.get_rank(), dist.get_world_size()
        self.me = me

        def mapped(name, size):
            return torch.from_file(f"{folder}/{name}-{made}", shared=True, size=size, dtype=torch.uint8)

        self.memory = [mapped(f"memory-{r}", n) for r in range(P)]
        self.signals = [mapped(f"signals-{r}", CHANNELS * P).view(CHANNELS, P) for r in range(P)]
        self.begun = False
        dist.barrier()

    def begin(self):
        self.begun = True

    def end(self, tensors):
        assert self.begun
        return link.Pending((), tensors)

    def fetch(self, X, of, at):
        X.view(torch.uint8).copy_(self.memory[of][at : at + X.nbytes])

    def put_signal(self, to, channel=0):
        self._until(to, channel, self.me, 0)
        self.signals[to][channel, self.me] = 1

    def wait_signal(self, of, channel=0):
        self._until(self.me, channel, of, 1)
        self.signals[self.me][channel, of] = 0

    def _until(self, whose, channel, of, value):
        end = time.monotonic() + 20
        while self.signals[whose][channel, of] != value:
            assert time.monotonic() < end, f"rank {self.me} waits in vain"
            time.sleep(1e-4)  # not 0, which would poll without a pause


def on_this_rank(folder, copies):
    """Compare with send and receive, bit by bit: layouts, masks, and sizes that grow and shrink."""
    made = []

    def shared(n, device, group):
        made.append(n)
        handle = Shared(folder, n, len(made))
        return handle.memory[handle.me], handle

    copies.shared = shared
    wide = {"N_q": 90, "N_k": 75, "layout": "striped", "mask": masks.window(30, 20)}
    cases = [CASE, CASE | wide, CASE | {"N_q": 17, "N_k": 13}, CASE | {"N_q": 2, "N_k": 3, "causal": False}]
    cases.append(CASE | {"layout": "contiguous", "mask": masks.window(8, 0), "dtype": torch.float32})
    for n, case in enumerate([*cases, *cases]):
        whole = on_ranks.tensors(case, n)
        one, _ = on_ranks.on_this_rank("ring", dist.group.WORLD, case, *whole)
        other, _ = on_ranks.on_this_rank("ring", dist.group.WORLD, case, *whole, link=copies.CopyEngines)
        assert all(torch.equal(X, Y) for X, Y in zip(one, other, strict=True)), case
    return len(made)


@pytest.mark.parametrize("amount, P", [("few", 3), ("all", 2), ("all", 4)])
def test_the_bits_are_those_of_send_and_receive(amount, P):
    with tempfile.TemporaryDirectory() as folder:
        found = processes.run(on_this_rank, folder, copy_engines, ranks=P, seconds=60)
    assert len({*found}) == 1 and found[0] == 5, "memory is kept, and grows when more is needed"


class Group:
    """Stands for a ProcessGroup."""


def test_after_out_of_memory_the_next_call_tries_again(monkeypatch):
    group, device = Group(), torch.device("cpu")
    memory, asked = copy_engines.GroupMemory(group), []

    def shared(n, device, group):
        asked.append(n)
        if len(asked) == 1:
            raise torch.OutOfMemoryError("no memory")
        return torch.zeros(n, dtype=torch.uint8), None

    monkeypatch.setattr(copy_engines, "shared", shared)
    with pytest.raises(torch.OutOfMemoryError):
        memory.reserve({"KV 0": 1000}, device)
    memory.reserve({"KV 0": 1000}, device)
    memory.reserve({"KV 0": 900}, device)
    assert len(asked) == 2 and len(memory.own("KV 0", 1000)) == 1000


def test_memory_that_a_cuda_graph_refers_to_is_kept_and_does_not_grow_in_a_capture(monkeypatch):
    pytest.importorskip("triton")
    from flashlib.private_apis import of_driver

    made, waited = [], []
    monkeypatch.setattr(of_driver, "current_stream", lambda index: stream)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(copy_engines, "shared", lambda n, *given: (made.append(n), [torch.zeros(n), Group()])[1])
    memory, device = copy_engines.GroupMemory(Group()), torch.device("cuda", 0)

    stream, capturing = 1, False
    memory.reserve({"KV 0": 600}, device)
    memory.reserve({"KV 0": 600}, device)
    assert made == [1024] and not waited, "nothing to wait for on the same stream"
    stream = 2
    memory.reserve({"KV 0": 600}, device)
    assert waited == [device], "the pass on another stream may still read the buffers"
    stream, capturing = 3, True
    with pytest.raises(RuntimeError, match="call it once with these sizes, and then capture"):
        memory.reserve({"KV 0": 2000}, device)
    memory.reserve({"KV 0": 600}, device)
    assert len(waited) == 1, "a capture cannot wait"
    of_graph, capturing = weakref.ref(memory.handle), False
    memory.reserve({"KV 0": 2000}, device)
    of_no_graph = weakref.ref(memory.handle)
    memory.reserve({"KV 0": 3000}, device)
    assert len(waited) == 3 and len(made) == 3
    assert of_graph() is not None and of_no_graph() is None
