"""GPUs of one host: every way, with both kinds of copies, equals one process and repeats to the bit."""

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
    from flashlib.ring.distributed import copy_engines, gradients, link

    torch.cuda.set_device(dist.get_rank())
    P, n = dist.get_world_size(), 0
    axes = None
    if P > 2:
        mesh = dist.init_device_mesh("cuda", (2, P // 2))
        axes = mesh.get_group(0), mesh.get_group(1)
    for mask in MASKS:
        for layout in ("zigzag", "striped", "contiguous"):
            case = {"B": 2, "N_q": 257, "N_k": 257, "H_k": 2, "H": 4, "d": 64, "d_v": 64, "layout": layout}
            case |= {"causal": True, "mask": mask, "dtype": torch.bfloat16}
            whole = [X.cuda() for X in on_ranks.tensors(case, n)]
            exact = on_ranks.one_process(case, *(X.double() for X in whole))
            plain = on_ranks.one_process(case, *whole)
            for way, of in (
                ("ring", link.Link), ("ring", copy_engines.CopyEngines), ("ring", link.InTurn),
                ("all_gather", link.Link), ("ulysses", link.Link), *[("two_d", link.Link)] * (P > 2),
            ):  # fmt: skip
                gradients.TURN = n % 2 * 2**26  # 0: heads take turns
                group = axes if way == "two_d" else dist.group.WORLD
                first, at = on_ranks.on_this_rank(way, group, case, *whole, link=of)
                again, _ = on_ranks.on_this_rank(way, group, case, *whole, link=of)
                for name, X, Y, right, rough, i in zip(
                    on_ranks.NAMES, first, again, exact, plain, at, strict=True
                ):
                    assert torch.equal(X, Y), f"{name} of {way} by {of.__name__} has other bits the second time"
                    right, rough = right[:, :, i], rough[:, :, i].double()
                    bound = 2 * (rough - right).abs().max() + 1e-3
                    assert (X.double() - right).abs().max() <= bound, f"{name} of {way}, {of.__name__}, {case}"
                n += 1
    return n


@pytest.mark.gpu
@pytest.mark.parametrize("P", [2, 4])
def test_every_way_equals_one_process(P):
    if (there := torch.cuda.device_count()) < P:
        pytest.skip(f"GPUs: {there}")
    found = processes.run(on_this_rank, ranks=P, seconds=300, backend="nccl")
    assert found == [len(MASKS) * 3 * (5 if P == 2 else 6)] * P
