"""Further properties of attention over ranks: bits, errors, steps, memory; most in a single run of four ranks."""

import functools
import itertools
import sys
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from flashlib import masks, torch_ref  # noqa: E402
from flashlib.masks.runs import count  # noqa: E402
from flashlib.ring import agree, cost, hops  # noqa: E402
from flashlib.ring.distributed import (  # noqa: E402
    agreements,
    all_gather,
    gradients,
    link,
    memory,
    on_cpu,
    ring,
    training,
    two_d,
    ulysses,
)
from flashlib.ring.processes import rank  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402

CASE = {"B": 2, "N_q": 61, "N_k": 61, "H_k": 2, "H": 4, "d": 5, "d_v": 3, "layout": "zigzag", "causal": True}
CASE |= {"mask": None, "dtype": torch.bfloat16}


def message(call):
    """Return the error of a call, in words."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def part(n, N=None, layout="zigzag", dtype=torch.float32, H=2):
    """Return Q, K and V of n rows, of ones."""
    return (torch.ones(1, H, n, 4, dtype=dtype) for _ in range(3))


class Counted(link.Link):
    """A Link that counts what it sends."""

    sent: list = []

    def start(self, sends, receives, tag=0):
        self.sent += [(tag, peer, X.numel()) for peer, X, _ in sends if X.numel()]
        return super().start(sends, receives, tag)


def disagreements():
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("ring", "heads"))
    return {
        "dtype": message(lambda: ring.attention(*part(4, dtype=torch.float64 if rank == 2 else torch.float32))),
        "causal": message(lambda: ring.attention(*part(4), causal=rank == 3)),
        "sizes": message(lambda: ring.attention(*part(5 if rank == 1 else 4))),
        "mask": message(
            lambda: ring.attention(*part(4), mask=masks.documents((np.arange(16) < 8 + rank).astype(int)))
        ),
        "no tensor": message(lambda: ring.attention(*([None] * 3 if rank == 0 else part(4)))),
        "layout of all": message(lambda: ring.attention(*part(4), layout="spiral")),
        "two axes": message(lambda: two_d.attention(*part(4), group=mesh, causal=rank == 3)),
        "other order": message(lambda: two_d.attention(*part(4), group=(mesh.get_group(1), mesh.get_group(0)))),
        "one axis": message(lambda: ring.attention(*part(4), group=mesh)),
        "a list": message(lambda: ring.attention(*part(4), mask=[[True]])),
        "no group": message(lambda: ring.attention(*part(4), group="all")),
        "gradients": message(lambda: ring.attention(*(X.requires_grad_(rank == 1) for X in part(4)))),
        "link": message(lambda: ring.attention(*part(4), link=link.InTurn if rank == 1 else None)),
        "after all that": message(lambda: ring.attention(*part(4), group=mesh["ring"])),
    }


def bits():
    """Return whether two calls, and one that waits for each copy, give the same bits."""
    whole = on_ranks.tensors(CASE, 3)
    found = [on_ranks.on_this_rank("ring", dist.group.WORLD, CASE, *whole, link=of)[0] for of in
             (None, None, link.InTurn)]  # fmt: skip
    return all(torch.equal(X, Y) for other in found[1:] for X, Y in zip(found[0], other, strict=True))


def views():
    """Return errors for inputs that are views, if only K, or only Q and V, require a gradient.

    N may be smaller than the number of ranks. The gradient of a sum is one number with strides of 0.
    """
    found = []
    for way, N, wanted in itertools.product((ring, all_gather, ulysses), (3, 21), ((1,), (0, 2))):
        g = torch.Generator().manual_seed(N)
        whole = [torch.randn(2, h, 8, N, generator=g, dtype=torch.float64).mT for h in (4, 2, 2)]
        at = training.positions(N)
        own = [X.mT[..., at].mT for X in whole]
        for i in wanted:
            whole[i].requires_grad_(), own[i].requires_grad_()
        right, O = torch_ref.attention(*whole, causal=True).O, way.attention(*own, causal=True).O
        right.sum().backward(), O.sum().backward()
        pairs = [(O, right), *((own[i].grad, whole[i].grad) for i in wanted)]
        found += [(X - Y[:, :, at]).abs().sum().item() for X, Y in pairs]
        assert all(X.grad is None for X in own if not X.requires_grad)
    return found


def errors_by_ranks():
    """Return the rms errors of this rank's O, lse, dQ, dK and dV in a ring of one and of four ranks."""
    case = CASE | {"N_q": 256, "N_k": 256, "d": 16, "d_v": 16}
    whole = on_ranks.tensors(case, 5)
    exact = on_ranks.one_process(case, *(X.double() for X in whole))
    alone = [dist.new_group([r]) for r in range(4)][dist.get_rank()]
    result = {}
    for name, group in (("one", alone), ("four", dist.group.WORLD)):
        given, at = on_ranks.on_this_rank("ring", group, case, *whole)
        result[name] = [
            ((X.double() - Y[:, :, i]) ** 2).mean().item() ** 0.5 for X, Y, i in zip(given, exact, at, strict=True)
        ]
    return result


def steps():
    """Return what this rank sends under a window, in both passes."""
    Counted.sent = []
    case = CASE | {"N_q": 64, "N_k": 64, "layout": "contiguous", "mask": masks.window(8, 0)}
    on_ranks.on_this_rank("ring", dist.group.WORLD, case, *on_ranks.tensors(case, 1), link=Counted)
    return Counted.sent


def sent_bytes():
    """Return the bytes that this rank sends in both passes, and the closed form of `ring.cost`.

    One copy is subtracted: there a rank's own share of dK and dV travels too; here it waits for the others.
    """
    found = []
    for layout, mask in (("zigzag", None), ("striped", masks.window(9, 0)), ("contiguous", masks.window(17, 0))):
        case = CASE | {"B": 1, "layout": layout, "mask": mask, "dtype": torch.float32}
        problem = cost.Problem(61, 61, 5, "float32", 3, 4, 2, True, mask)
        forms = [cost.ring(problem, 4, layout, backward=given).sent[dist.get_rank()] for given in (False, True)]
        Counted.sent = []
        on_ranks.on_this_rank("ring", dist.group.WORLD, case, *on_ranks.tensors(case, 1), link=Counted)
        plan = hops.plan(masks.combined(mask, True), 61, 61, 4, layout)
        own = count(plan.keys[dist.get_rank()]) * 2 * (5 + 3) if plan.last[dist.get_rank()] else 0
        found.append((4 * sum(n for _, _, n in Counted.sent), sum(forms) - 4 * own))
    return found


def without_gloo():
    """Return what ranks compared in three calls, two of them alike, as if tensors were on GPUs."""
    counts, known = [], (agree.numbers_of_all, dist.get_backend_config)

    def numbers_of_all(*given):
        counts.append(given[1:])
        return known[0](*given)

    agree.numbers_of_all, dist.get_backend_config = numbers_of_all, lambda group=None: "nccl"
    for n in (5, 5, 6):
        ring.attention(*part(n))
    agree.numbers_of_all, dist.get_backend_config = known
    return counts


class Live(TorchDispatchMode):
    """Counts the bytes of the tensors that were made in this mode and still live, and their peak."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak = {}, 0, 0

    def noted(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for X in found if isinstance(found, tuple | list) else (found,):
            if isinstance(X, torch.Tensor):
                self.note(X)
        return found

    def note(self, X):
        """Count the storage of a tensor until no tensor uses it."""
        where, n = X.untyped_storage().data_ptr(), X.untyped_storage().nbytes()
        if not n:
            return
        if not self.live.get(where):
            self.live[where] = 0
            self.now += n
            self.peak = max(self.peak, self.now)
        self.live[where] += 1
        weakref.finalize(X, self.gone, where, n)

    def gone(self, where, n):
        self.live[where] -= 1
        if not self.live[where]:
            self.now -= n


Live.__torch_dispatch__ = Live.noted  # defined in the class, it would make torch import Dynamo on each rank

TILES = 2**18  # bytes that tiles on a CPU may take
ROWS = {("contiguous", 170, 1): (256, 384), ("contiguous", 0, 1): (512, 1024), ("zigzag", None, 3): (256, 384)}
"""{a layout, the left of a window, H_k: rows of each rank}. Second: nothing travels; last: heads take turns."""
MORE_ROWS = {("zigzag", None, 1): (128, 384)}


def all_peaks(of):
    on_cpu.B_R = on_cpu.B_C = 64  # so that tiles take little memory
    return {how: peaks(rows, *how) for how, rows in of.items()}


def peaks(rows, layout, left, H_k):
    """Return this rank's peaks of both passes, [(peak, closed form)] for each number of rows. left: of a window.

    If they do not fit on all ranks, return the smallest of up to three runs: on a busy machine, a tensor that was
    sent may happen to be freed later.
    """
    gradients.TURN = 0
    mask = None if left is None else masks.window(left, 0)
    P, me = dist.get_world_size(), dist.get_rank()
    sizes, forms = memory.AttentionSizes(1, 2 * H_k, H_k, 32, 16, torch.bfloat16), []
    for n in rows:
        plan = hops.plan(masks.combined(mask, True), n * P, n * P, P, layout)
        forms.append((memory.forward(sizes, plan, me), memory.backward(sizes, plan, me)))
    least = [(float("inf"), float("inf"))] * len(rows)
    for _ in range(3):
        for i, n in enumerate(rows):
            least[i] = tuple(map(min, least[i], peaks_seen(n, layout, mask, H_k)))
        found = [list(zip(seen, known, strict=True)) for seen, known in zip(least, forms, strict=True)]
        all_fit = torch.tensor(all(fit(*of_pass) for of_pass in zip(*found, strict=True)), dtype=torch.int32)
        dist.all_reduce(all_fit, op=dist.ReduceOp.MIN)
        if all_fit:
            break
    return found


def fit(one, other):
    """Return whether peak and closed form agree for fewer rows and for more, and grow equally."""
    (less, known), (more, known_more) = one, other
    return (
        known * 0.85 <= less <= known + TILES
        and known_more * 0.85 <= more <= known_more + TILES
        and more - less <= 1.06 * (known_more - known)
    )


def peaks_seen(n, layout, mask, H_k):
    """Return the peaks of a forward and a backward pass, in bytes."""
    shapes = (1, 2 * H_k, n, 32), (1, H_k, n, 32), (1, H_k, n, 16)
    Q, K, V = (torch.randn(shape).bfloat16().requires_grad_() for shape in shapes)
    with Live() as live:
        for X in (Q, K, V):
            live.note(X.detach())
        kept = [live.note(X) for X in (Q, K, V)]
        O, lse = ring.attention(Q, K, V, layout=layout, causal=True, mask=mask)
        forward = live.peak
        dO = torch.ones_like(O)
        live.peak = live.now
        torch.autograd.grad([O, lse], [Q, K, V], [dO, torch.zeros_like(lse)])
        del kept
        return forward, live.peak


def all_gather_peak():
    """Return the peak of all-gather's backward pass, over the bytes of dK and dV of the whole sequence."""
    n = 256
    Q, K, V = (torch.randn(1, 1, n, 32).requires_grad_() for _ in range(3))
    with Live() as live:
        O = all_gather.attention(Q, K, V, layout="contiguous").O
        live.peak = before = live.now
        torch.autograd.grad(O.sum(), [Q, K, V])
        return (live.peak - before) / (2 * dist.get_world_size() * K.nbytes)


def everything():
    """Return the results of all of these functions on this rank."""
    torch.manual_seed(0)
    found = {
        f.__name__: f() for f in (disagreements, bits, views, errors_by_ranks, steps, sent_bytes, without_gloo)
    }
    found["peaks"] = all_peaks(ROWS)
    found["all_gather_peak"] = all_gather_peak()
    return found


@functools.cache
def ranks():
    return on_ranks.run(everything)


@pytest.fixture
def alone(monkeypatch):
    """Make this process the only rank of a group: so Dynamo and Triton are imported once, not on four ranks."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", rank.LOOPBACK.get(sys.platform, "lo"))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_every_rank_raises_the_same_sentence_about_a_disagreement():
    said = [one["disagreements"] for one in ranks()]
    for name in said[0]:
        of_all = {one[name] for one in said}
        assert name in ("two axes", "other order") or len(of_all) == 1, name
    said = said[0]
    assert said["dtype"] == (
        "ValueError: the ranks of ring.attention disagree: dtype is float32 on ranks 0, 1, 3 and float64 on "
        "rank 2; give every rank the same"
    )
    assert "causal is False on ranks 0, 1, 2 and True on rank 3" in said["causal"]
    assert said["sizes"].startswith(
        "ValueError: the ranks of ring.attention have 4, 5, 4, 4 rows of Q; 17 rows in a zigzag layout are "
    )
    assert "mask is documents(<2 documents of 16 tokens>) with the digest" in said["mask"]
    assert "error is not given on ranks 1, 2, 3 and Q is of type NoneType; pass" in said["no tensor"]
    assert said["layout of all"].startswith("ValueError: layout is 'spiral'; accepted are")
    assert said["one axis"].startswith("ValueError: group is a DeviceMesh of 2 axes")
    assert "and heads = ranks [0, 2]; ranks that follow" in said["other order"]
    assert said["a list"].startswith("TypeError: mask is of type list; pass one of flashlib.masks")
    assert said["no group"].startswith("TypeError: group is 'all'")
    assert "gradients is" in said["gradients"]
    assert "link is None on ranks 0, 2, 3 and InTurn on rank 1" in said["link"]
    assert said["after all that"] == "nothing", "an error leaves the groups as they were"
    assert all("causal is" in one["disagreements"]["two axes"] for one in ranks())


def test_the_bits_are_the_same_each_time_and_whenever_copies_arrive():
    assert all(one["bits"] for one in ranks())


def test_views_and_gradients_of_some_inputs():
    for one in ranks():
        assert all(error < 1e-11 for error in one["views"]), one["views"]


def test_the_error_does_not_grow_with_the_ranks():
    found = [one["errors_by_ranks"] for one in ranks()]
    one, four = (np.sqrt(np.mean([np.square(rank[name]) for rank in found], axis=0)) for name in ("one", "four"))
    # one rank has all rows, four have a quarter each: both are means over all rows
    assert (four[[0, 2, 3, 4]] <= 1.02 * one[[0, 2, 3, 4]]).all(), (one, four)


def test_keys_that_no_rank_sees_are_not_sent():
    sent = [one["steps"] for one in ranks()]
    assert [sorted({peer for _, peer, _ in one}) for one in sent] == [[1], [0, 2], [1, 3], [2]]
    assert [len(one) for one in sent] == [4, 5, 5, 1], "K and V twice to the next, and gradients home"


def test_the_bytes_sent_are_the_closed_form():
    for one in ranks():
        assert all(counted == form for counted, form in one["sent_bytes"]), one["sent_bytes"]
    assert any(counted for one in ranks() for counted, _ in one["sent_bytes"])


def test_torch_compile_breaks_around_it(alone):
    def f(Q, K, V):
        return ring.attention(Q + 1, K, V, causal=True).O * 2

    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    given = [torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    assert torch.equal(torch.compile(f, backend=backend)(*given), f(*given))
    assert len(graphs) == 2, "one before the call and one after"


def test_on_gpus_ranks_compare_only_new_calls():
    assert all(one["without_gloo"] == [(5, 5), (6, 6)] for one in ranks())


def test_what_is_kept_of_a_call_does_not_keep_its_group(alone, monkeypatch):
    monkeypatch.setattr(dist, "get_backend_config", lambda group=None: "nccl")
    for way in (ring, ulysses):
        way.attention(*part(4))
    kept = agreements.agreements_of(dist.group.WORLD).calls.values()
    assert len(kept) == 2 and not any(dist.group.WORLD in (call.ring.group, call.heads.group) for call in kept)


def test_the_kernels_compute_hops_and_refuse_what_they_do_not_take(alone):
    kernels = pytest.importorskip("flashlib.kernels")
    from flashlib.ring.distributed import on_gpu

    if not kernels.INTERPRETED:
        pytest.skip("kernels are compiled here")
    with pytest.raises(ValueError, match="d is 4; the kernel takes 16 to 256"):
        ring.attention(*part(4), local=on_gpu)
    with pytest.raises(TypeError, match="Q has dtype torch.float64"):
        ring.attention(*(torch.ones(1, 1, 4, 16, dtype=torch.float64) for _ in range(3)), local=on_gpu)
    case = CASE | {"B": 1, "N_q": 37, "N_k": 37, "d": 16, "d_v": 16, "dtype": torch.float32}
    case |= {"mask": masks.window(20, 3)}
    whole = on_ranks.tensors(case, 7)
    exact = on_ranks.one_process(case, *(X.double() for X in whole))
    given, at = on_ranks.on_this_rank("ring", dist.group.WORLD, case, *whole, local=on_gpu)
    for X, Y, i in zip(given, exact, at, strict=True):
        torch.testing.assert_close(X.double(), Y[:, :, i], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("amount", ["few", "all"])
def test_the_peak_is_the_closed_form(amount):
    of_ranks = [one["peaks"] for one in ranks()] if amount == "few" else on_ranks.run(all_peaks, MORE_ROWS)
    for one in of_ranks:
        for how, found in one.items():
            assert all(fit(*of_pass) for of_pass in zip(*found, strict=True)), (how, found)


def test_all_gather_holds_three_times_dK_and_dV():
    """And less than one more: a tile, this rank's own part, and what was sent and is not yet freed."""
    peaks_of_ranks = [one["all_gather_peak"] for one in ranks()]
    assert all(2.9 <= peak <= 3.9 for peak in peaks_of_ranks), peaks_of_ranks


def test_outside_of_a_group():
    with pytest.raises(RuntimeError, match="this process is not a rank yet: call attention in a function that"):
        ring.attention(*part(4))
