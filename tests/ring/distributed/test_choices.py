"""What a ring takes by default: which module computes, and whether copy engines copy; all ranks copy alike."""

from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from flashlib import gluon  # noqa: E402
from flashlib.kernels.launch import which_gpu  # noqa: E402
from flashlib.ring.distributed import (  # noqa: E402
    agreements,
    choices,
    copy_engines,
    link,
    local,
    on_cpu,
    on_gpu,
    on_hopper,
)
from flashlib.ring.distributed.axes import Axis  # noqa: E402

CUDA = torch.device("cuda", 0)


class Group:
    """Stands for a ProcessGroup."""


def test_hops_are_computed_by_hoppers_kernels_on_hopper_gpus_alone():
    assert local.module_for(torch.device("cpu")) is on_cpu
    with gluon.on_cpu(seed=0):
        assert local.module_for(CUDA) is on_hopper
    for capability, interpreted in (((8, 0), False), ((10, 0), False), ((0, 0), False), ((9, 0), True)):
        with (
            mock.patch.object(which_gpu, "runs_gluon", lambda interpreted=interpreted: not interpreted),
            mock.patch.object(which_gpu, "capability", lambda device, found=capability: found),
        ):
            assert local.module_for(CUDA) is on_gpu


# hosts of the ranks, the indices of their GPUs, GPUs that this rank sees, pairs without access; are they near?
NEIGHBOURS = [
    ([7, 7], [0, 1], 2, [], True),
    ([7, 7, 7], [3, 0, 2], 4, [], True),
    ([7, 8], [0, 1], 2, [], False),
    ([7, 7], [0, 0], 2, [], False),
    ([7, 7], [0, 1], 1, [], False),
    ([7, 7, 7], [0, 1, 2], 3, [(0, 2)], False),
]


@pytest.mark.parametrize("hosts, indices, seen, apart, near", NEIGHBOURS)
def test_copy_engines_need_one_host_and_access_to_every_other_gpu(hosts, indices, seen, apart, near):
    def can_access(own, other):
        assert own != other
        return (own, other) not in apart

    with (
        mock.patch("torch.cuda.device_count", lambda: seen),
        mock.patch("torch.cuda.can_device_access_peer", can_access),
    ):
        told = list(zip(hosts, indices, strict=True))
        assert copy_engines._are_near(told, indices[0]) is near


def reached(answers, shared, driver):
    """Return whether a rank takes copy engines. answers: what another rank tells, for each time that both tell."""
    asked, told = [], iter([(7, 1), *((answer,) for answer in answers)])
    with (
        mock.patch("torch.distributed.get_world_size", lambda group: 2),
        mock.patch("torch.distributed.get_backend_config", lambda group: "cuda:nccl"),
        mock.patch("torch.cuda.device_count", lambda: 2),
        mock.patch("torch.cuda.can_device_access_peer", lambda own, other: True),
        mock.patch.object(copy_engines, "_host", lambda: 7),
        mock.patch("flashlib.ring.distributed.signals.check", driver),
        mock.patch("flashlib.private_apis.of_torch.symmetric_memory", lambda *given: asked.append(0) or shared()),
        mock.patch.object(copy_engines.agree, "numbers_of_all", lambda group, *own: [own, next(told)]),
    ):
        return copy_engines.reach_all(Group(), CUDA), len(asked)


def test_one_rank_that_cannot_share_memory_keeps_all_from_copy_engines():
    def fails(*given):
        raise RuntimeError("no")

    def nothing(*given):
        return None

    assert reached([True, True], nothing, nothing) == (True, 1)
    assert reached([True, False], nothing, nothing) == (False, 1)
    assert reached([True, True], fails, nothing) == (False, 1)
    assert reached([False], nothing, nothing) == (False, 0), "sharing needs all ranks"
    assert reached([True], nothing, fails) == (False, 0)


@pytest.mark.parametrize("reach, taken", [(True, copy_engines.CopyEngines), (False, link.Link)])
def test_what_is_chosen_is_what_a_call_takes(reach, taken):
    group = Group()
    with (
        mock.patch("torch.distributed.all_reduce", lambda X, group: None),
        mock.patch("torch.zeros", lambda n, device: None),
        mock.patch.object(choices, "axis_of", lambda group: Axis(group, 2, 0)),
        mock.patch.object(local, "module_for", lambda device: on_hopper),
        mock.patch.object(copy_engines, "reach_all", lambda group, device: reach),
    ):
        assert choices.chosen(CUDA, group=group) == (on_hopper, taken)
    known = agreements.agreements_of(group)
    assert known.link_for(CUDA) is taken and known.link_for(torch.device("cpu")) is link.Link


def test_ranks_on_cpus_send_and_receive():
    with mock.patch.object(choices, "axis_of", lambda group: Axis(group, 2, 0)):
        assert choices.chosen("cpu", group=Group()) == (on_cpu, link.Link)
