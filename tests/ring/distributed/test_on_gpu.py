"""Rings whose ranks are threads of one process: one GPU is then enough to test kernels, merges and buffers.

On a CPU the same ranks compute with torch. Copies go through queues; the ring decides who sends what to whom.
"""

import queue
import threading

import pytest

torch = pytest.importorskip("torch")
from flashlib import masks  # noqa: E402
from flashlib.masks.runs import positions  # noqa: E402
from flashlib.ring import hops  # noqa: E402
from flashlib.ring.distributed import call, gradients, link, local, memory, ring  # noqa: E402
from flashlib.ring.distributed.axes import Axis  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402

CASES = [
    ("zigzag", None, 4, 67),
    ("striped", None, 3, 100),
    ("contiguous", masks.window(20, 0), 4, 90),
    ("zigzag", masks.documents([0] * 30 + [1] * 55), 2, 85),
]


class Boxes:
    """The nth message of a pair goes to the nth receive that is started: NCCL matches this way, without tags."""

    def __init__(self):
        self.boxes, self.lock, self.counts = {}, threading.Lock(), {}

    def next(self, side, sender, receiver):
        """Return the box of a pair's next message, as one side sees it."""
        with self.lock:
            n = self.counts[side, sender, receiver] = self.counts.get((side, sender, receiver), 0) + 1
            return self.boxes.setdefault((sender, receiver, n), queue.Queue())


class Threads(link.Link):
    """Copies between threads."""

    def __init__(self, boxes, me):
        super().__init__(None)
        self.boxes, self.me = boxes, me

    def start(self, sends, receives, tag=0):
        for peer, X, _ in sends:
            self.boxes.next("send", self.me, peer).put(X.clone())  # it may be overwritten once wait returns
        return Coming([(X, self.boxes.next("receive", peer, self.me)) for peer, X, _ in receives])


class Coming:
    def __init__(self, receives):
        self.receives = receives

    def wait(self):
        for X, of in self.receives:
            X.copy_(of.get(timeout=60))
        self.receives = []


def of_rank(me, boxes, plan, whole, results):
    """Put O, lse, dQ, dK and dV of one rank into results, and their positions."""
    Q, K, V, dO, _ = whole
    P, device = plan.P, Q.device
    rows, keys = (torch.from_numpy(positions(runs[me])).to(device) for runs in (plan.rows, plan.keys))
    Q, K, V, dO = Q[:, :, rows], K[:, :, keys], V[:, :, keys], dO[:, :, rows]
    taken = [h // (Q.shape[1] // K.shape[1]) for h in range(Q.shape[1])]
    computes = local.HopComputer(local.module_for(device), taken)
    axis, alone = Axis(None, P, me), Axis()
    made = call.RankCall(
        axis, alone, plan, (Q.shape[1], K.shape[1]), (), (), Q.shape[3] ** -0.5, computes,
        lambda _: Threads(boxes, me),
    )  # fmt: skip
    O, lse = ring.forward(made, Q, K, V)
    grads = gradients.backward(made, Q, K, V, lse, dO, computes.delta_of(O, dO))
    results[me] = (O, lse, *grads), (rows, rows, rows, keys, keys)


@pytest.mark.parametrize("turn", [gradients.TURN, 0])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("layout, mask, P, N", CASES)
def test_ranks_of_threads_equal_one_process(layout, mask, P, N, device, turn, monkeypatch):
    monkeypatch.setattr(gradients, "TURN", turn)  # 0: heads take turns
    case = {"B": 1, "N_q": N, "N_k": N, "H_k": 2, "H": 4, "d": 64, "d_v": 64, "layout": layout, "causal": True}
    case |= {"mask": mask, "dtype": torch.bfloat16}
    whole = [X.to(device) for X in on_ranks.tensors(case, 11)]
    whole[4].zero_()
    exact = on_ranks.one_process(case, *(X.double() for X in whole))
    plain = on_ranks.one_process(case, *whole)
    plan = hops.plan(masks.combined(mask, True), N, N, P, layout)
    boxes, results = Boxes(), {}
    ranks = [threading.Thread(target=of_rank, args=(r, boxes, plan, whole, results)) for r in range(P)]
    [rank.start() for rank in ranks]
    [rank.join() for rank in ranks]
    assert len(results) == P
    for found, at in results.values():
        for name, X, right, rough, i in zip(on_ranks.NAMES, found, exact, plain, at, strict=True):
            right, rough = right[:, :, i], rough[:, :, i]
            bound = 2 * (rough.double() - right).abs().max() + 1e-3
            error = (X.double() - right).abs().max()
            assert error <= bound, (name, error, bound)


@pytest.mark.gpu
def test_the_peak_on_a_gpu_is_the_closed_form():
    from flashlib.ring.distributed import on_gpu

    n, sizes = 4096, memory.AttentionSizes(1, 8, 2, 128, 128, torch.bfloat16)
    plan = hops.plan(masks.causal(), 4 * n, 4 * n, 4, "zigzag")
    g = torch.Generator("cuda").manual_seed(0)
    shapes = (1, 8, n, 128), (1, 2, n, 128), (1, 2, n, 128), (1, 8, n, 128)
    Q, K, V, dO = (torch.randn(shape, generator=g, device="cuda", dtype=torch.bfloat16) for shape in shapes)

    class Nobody(link.Link):
        """Takes whatever is in the buffer for the keys of others: only memory counts here."""

        def start(self, sends, receives, tag=0):
            [X.zero_() for _, X, _ in receives]
            return link.Pending((), ())

    computes = local.HopComputer(on_gpu, [h // 4 for h in range(8)])  # `on_hopper` holds sums, too
    made = call.RankCall(Axis(None, 4, 1), Axis(), plan, (8, 2), (), (), 0.1, computes, Nobody)
    for _ in range(2):  # the first compiles
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated() - memory.AttentionSizes.of(sizes, rows=n, keys=n) * 2 - dO.nbytes
        torch.cuda.reset_peak_memory_stats()
        O, lse = ring.forward(made, Q, K, V)
        forward = torch.cuda.max_memory_allocated() - before - dO.nbytes
        delta = computes.delta_of(O, dO)
        torch.cuda.reset_peak_memory_stats()
        grads = gradients.backward(made, Q, K, V, lse, dO, delta)
        backward = torch.cuda.max_memory_allocated() - before
        del O, lse, delta, grads
    slack = 2**22
    assert 0.85 * memory.forward(sizes, plan, 1) <= forward <= memory.forward(sizes, plan, 1) + slack
    assert 0.85 * memory.backward(sizes, plan, 1) <= backward <= memory.backward(sizes, plan, 1) + slack
