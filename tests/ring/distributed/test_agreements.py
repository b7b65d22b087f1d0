"""What the ranks of a group have agreed on: which calls are compared, and that it is kept for each group."""

import gc
import weakref
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
from flashlib import masks  # noqa: E402
from flashlib.ring.distributed import agreements, link, on_cpu  # noqa: E402
from flashlib.ring.distributed.agreements import KEPT, Agreed, Arguments, agreements_of  # noqa: E402


class Group:
    """Stands for a ProcessGroup."""


@pytest.mark.parametrize("backend", ["cuda:nccl", "cpu:gloo,cuda:nccl"])
def test_ranks_meet_once_on_their_gpus_even_if_the_group_has_gloo_for_the_cpu(backend):
    group, met = Group(), []
    with (
        mock.patch("torch.distributed.get_backend_config", lambda group: backend),
        mock.patch("torch.distributed.all_reduce", lambda X, group: met.append(X.device.type)),
    ):
        for device in ("cpu", "meta", "meta"):  # meta stands for a GPU
            agreements_of(group).meet(group, torch.device(device))
    assert met == ["meta"]


def call(n):
    return Agreed(n, n, masks.causal(), 1.0)


def test_a_call_is_known_in_its_group_only_until_KEPT_others_came():
    one, other = Group(), Group()
    for n in range(KEPT):
        agreements_of(one).keep(("ring.attention", n), call(n))
    assert agreements_of(one).earlier(("ring.attention", 0)) == call(0)  # now the latest
    assert agreements_of(other).earlier(("ring.attention", 0)) is None
    agreements_of(one).keep(("ring.attention", KEPT), call(KEPT))
    assert agreements_of(one).earlier(("ring.attention", 1)) is None
    assert agreements_of(one).earlier(("ring.attention", 0)) == call(0)
    assert agreements_of(one).earlier(("ring.attention", [0])) is None, "what cannot be looked up is new"


def test_agreements_end_with_their_group():
    group = Group()
    kept = weakref.ref(agreements_of(group))
    assert kept() is agreements_of(group)
    del group
    gc.collect()
    assert kept() is None


def test_a_call_that_differs_in_any_argument_is_compared():
    X = torch.zeros(1, 2, 4, 3)
    calls = [Arguments(X, X, X, "zigzag", False, None, None, None, None)]
    for other in (X.double(), X[:, :, 1:], X.to("meta"), X.clone().requires_grad_()):
        calls += [calls[0]._replace(**{name: other}) for name in "QKV"]
    calls += [
        calls[0]._replace(**{name: other})
        for name, other in {"layout": "striped", "causal": 0, "mask": masks.causal(), "scale": 1.0}.items()
    ]
    calls += [calls[0]._replace(causal=True), calls[0]._replace(local=on_cpu), calls[0]._replace(link=link.Link)]
    one, another = Group(), Group()
    keys = [agreements._key("ring.attention", (one,), arguments) for arguments in calls]
    keys += [
        agreements._key(name, (one, *more), calls[0]) for name, more in (("ulysses", ()), ("ring", (another,)))
    ]
    gradients = keys[10:13]  # of Q, K and V: only whether any of them requires one is compared
    assert len({*keys}) == len(keys) - 2 and len({*gradients}) == 1
    assert agreements._key("ring.attention", (one,), calls[0]._replace(Q=X.clone())) == keys[0]
