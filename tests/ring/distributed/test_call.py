"""What comes before a ring's first copies on GPUs."""

from unittest import mock

import pytest

torch = pytest.importorskip("torch")
from flashlib.ring.distributed import call  # noqa: E402


class Group:
    """Stands for a ProcessGroup."""


@pytest.mark.parametrize("backend", ["cuda:nccl", "cpu:gloo,cuda:nccl"])
def test_all_ranks_meet_once_on_their_gpus_also_if_the_group_has_gloo_for_the_cpu(backend):
    group, met = Group(), []
    with (
        mock.patch("torch.distributed.get_backend_config", lambda group: backend),
        mock.patch("torch.distributed.all_reduce", lambda X, group: met.append(X.device.type)),
    ):
        for device in ("cpu", "meta", "meta"):  # meta stands for a GPU
            call._meet(group, torch.device(device))
    assert met == ["meta"]
