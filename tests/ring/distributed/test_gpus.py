"""GPUs of one host: every way, with both kinds of copies, equals one process; its bits repeat, except dQ's."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
import torch.distributed as dist  # noqa: E402

from flashlib import masks  # noqa: E402
from flashlib.ring import processes  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402

MASKS = [None, masks.window(90, 0), masks.documents([0] * 100 + [1] * 157), masks.softcap(3.0)]


def on_this_rank():
    """Compare all ways, layouts and masks on this rank's GPU; return the number of cases."""
    from flashlib.ring.distributed import choices, copy_engines, gradients, link, on_gpu

    torch.cuda.set_device(dist.get_rank())
    P, n = dist.get_world_size(), 0
    assert choices.chosen("cuda").link is copy_engines.CopyEngines
    axes = None
    if P > 2:
        mesh = dist.init_device_mesh("cuda", (2, P // 2))
        axes = mesh.get_group(0), mesh.get_group(1)
    ways = [("ring", {"local": on_gpu, "link": of}) for of in (None, link.Link, link.InTurn)] + [("ring", {})]
    ways += [("all_gather", {}), ("ulysses", {})] + [("two_d", {}), ("two_d", {"link": link.Link})] * (P > 2)
    for mask in MASKS:
        for layout in ("zigzag", "striped", "contiguous"):
            case = {"B": 2, "N_q": 257, "N_k": 257, "H_k": 2, "H": 4, "d": 64, "d_v": 64, "layout": layout}
            case |= {"causal": True, "mask": mask, "dtype": torch.bfloat16}
            whole = [X.cuda() for X in on_ranks.tensors(case, n)]
            exact = on_ranks.one_process(case, *(X.double() for X in whole))
            plain = on_ranks.one_process(case, *whole)
            for way, options in ways:
                gradients.TURN = n % 2 * 2**27  # 0: heads take turns
                group = axes if way == "two_d" else dist.group.WORLD
                first, at = on_ranks.on_this_rank(way, group, case, *whole, **options)
                again, _ = on_ranks.on_this_rank(way, group, case, *whole, **options)
                for name, X, Y, right, rough, i in zip(
                    on_ranks.NAMES, first, again, exact, plain, at, strict=True
                ):
                    if name != "dQ" or options.get("local") is on_gpu:
                        assert torch.equal(X, Y), f"{name} of {way}, {options} has other bits the second time"
                    right, rough = right[:, :, i], rough[:, :, i].double()
                    bound = 2 * (rough - right).abs().max() + 1e-3
                    assert (X.double() - right).abs().max() <= bound, f"{name} of {way}, {options}, {case}"
                n += 1
    return n


def in_a_graph():
    """Compare a captured call, replayed with other numbers and between other calls, with an ordinary one."""
    from flashlib.ring.distributed import link, on_gpu, ring

    torch.cuda.set_device(dist.get_rank())
    leaves = [torch.randn(1, 4, 256, 64, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3)]
    dO = torch.randn_like(leaves[0])

    def step(of):
        O, lse = ring.attention(*leaves, causal=True, local=on_gpu, link=of)
        return O.detach(), lse.detach(), *torch.autograd.grad(O, leaves, dO)

    graphs, aside = [], torch.cuda.Stream()
    for of in (None, link.Link):
        with torch.cuda.stream(aside):
            step(of)
        torch.cuda.synchronize()
        graphs.append((of, torch.cuda.CUDAGraph()))
        with torch.cuda.graph(graphs[-1][1]):
            found = step(of)
        graphs[-1] += (found,)
    for _ in range(3):
        for of, graph, found in graphs:
            with torch.no_grad():
                [X.normal_() for X in leaves]
            graph.replay()
            given = [X.clone() for X in found]
            graph.replay()
            for X, Y, Z in zip(given, found, step(of), strict=True):
                assert torch.equal(X, Z) and torch.equal(Y, Z), of
    return "equal"


def gpus(P):
    if (there := torch.cuda.device_count()) < P:
        pytest.skip(f"GPUs: {there}")


@pytest.mark.gpu
@pytest.mark.parametrize("P", [2, 4])
def test_every_way_equals_one_process(P):
    gpus(P)
    found = processes.run(on_this_rank, ranks=P, seconds=300, backend="nccl")
    assert found == [len(MASKS) * 3 * (6 if P == 2 else 8)] * P


@pytest.mark.gpu
@pytest.mark.parametrize("P", [2, 4])
def test_a_cuda_graph_replays_both_passes(P):
    gpus(P)
    assert processes.run(in_a_graph, ranks=P, seconds=100, backend="nccl") == ["equal"] * P
