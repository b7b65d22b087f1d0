"""Parts of a group, and units in turns: they change who sums what, and when; interpreted, and on a Hopper GPU."""

import itertools

import pytest
import torch

from flashlib.kernels.hopper import backward, groups, launch_backward
from flashlib.kernels.launch import planning
from flashlib.pipeline import PipelineFault
from tests.kernels import gradients
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import Sizes, Tiles

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
ORDER = on_a_cpu.ORDERS[2]


def differentiated(sizes, lag=1, ring=2, **options):
    *tensors, dlse = on_a_cpu.inputs(sizes)
    options |= {"tiles": Tiles(lag=lag, ring=ring), "order": ORDER, "dlse": dlse, "causal": sizes.causal}
    return on_a_cpu.differentiated("backward", *tensors, **options)[0]


@pytest.mark.parametrize("d", groups.HEADS)
def test_parts_are_equal_and_as_few_as_their_heads_allow(d):
    for group in range(1, 65):
        parts = groups.parts_of(group, d)
        assert group % parts == 0 and group // parts <= groups.HEADS[d]
        assert all(group % fewer or group // fewer > groups.HEADS[d] for fewer in range(1, parts))


@pytest.mark.parametrize("d, heads", [(64, (1, 5, 1)), (64, (1, 12, 2)), (128, (1, 3, 1)), (128, (2, 4, 1))])
def test_groups_in_parts_are_as_exact_as_standard_attention(d, heads, poisoned):
    sizes = Sizes(heads, 75, 131, d, True)
    assert groups.parts_of(heads[1] // heads[2], d) > 1
    Q, K, V, _, _, dO, dlse = on_a_cpu.inputs(sizes)
    gradients.hold(differentiated(sizes), Q, K, V, dO, dlse, causal=True)


@pytest.mark.parametrize("d", groups.HEADS)
def test_parts_change_only_the_order_of_the_sums(d, monkeypatch, poisoned):
    """Not a bit of dQ, and of dK and dV in fp32 no more than the last ones."""
    sizes = Sizes((1, 2 * groups.HEADS[d], 1), 75, 70, d, True)
    in_parts = differentiated(sizes, out_dtype=torch.float32)
    monkeypatch.setattr(groups, "HEADS", {d: 8})
    whole = differentiated(sizes, out_dtype=torch.float32)
    assert torch.equal(in_parts.dQ, whole.dQ)
    for X, Y in ((in_parts.dK, whole.dK), (in_parts.dV, whole.dV)):
        assert X.dtype == torch.float32 and not torch.equal(X, Y)
        assert (X - Y).abs().max() <= 16 * torch.finfo(torch.float32).eps * Y.abs().max()


# lag, ring, units in turns: as many as they allow
@pytest.mark.parametrize("lag, ring, last", [(2, 4, 2), (3, 5, 2), (9, 18, 4)])
@pytest.mark.parametrize("d", groups.HEADS)
def test_units_in_turns_change_no_bit(d, lag, ring, last, monkeypatch, poisoned):
    """And every wait ends: programs run here one after the other, in the order of their numbers."""
    sizes = Sizes((3, 2, 2), 33, 131, d, True)
    found = []
    for mixed in (1, last):
        monkeypatch.setattr(launch_backward, "last_in_turns", lambda *_, mixed=mixed: mixed)
        found.append(differentiated(sizes, lag, ring))
    assert all(torch.equal(X, Y) for X, Y in zip(*found, strict=True))


@pytest.mark.parametrize("lag, ring, last", [(1, 4, 2), (3, 5, 3)])
def test_more_units_in_turns_would_wait_for_a_later_program(lag, ring, last, monkeypatch):
    monkeypatch.setattr(launch_backward, "last_in_turns", lambda *_: last)
    with pytest.raises(PipelineFault, match="a program waits for a later one"):
        differentiated(Sizes((3, 2, 2), 33, 131, 64, True), lag, ring)


def test_units_in_turns_fill_the_gpu_and_wait_for_no_later_program():
    for T_c, units, multiprocessors in itertools.product((1, 2, 7, 32, 131, 264, 1024), (1, 3, 64), (114, 132)):
        lag, ring = launch_backward.turns(T_c, multiprocessors)
        last = launch_backward.last_in_turns(T_c, units, lag, ring, multiprocessors)
        assert 1 <= last <= min(units, lag, ring - lag)
        assert last == 1 or last * T_c <= multiprocessors
        assert last == units or (last + 1) * T_c > multiprocessors


@pytest.mark.parametrize("heads", [(1, 8, 1), (2, 6, 2), (1, 7, 1), (2, 32, 2)])
@pytest.mark.parametrize("d", groups.HEADS)
@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
def test_on_a_gpu_dK_and_dV_of_parts_repeat_to_the_bit(d, heads, monkeypatch, poisoned):
    sizes = Sizes(heads, 517, 1283, d, True)
    Q, K, V, O, lse, dO, dlse = (X.cuda() for X in on_a_cpu.inputs(sizes))
    monkeypatch.setattr(launch_backward, "PLANS", planning.Plans())
    first, *others = (backward.backward(Q, K, V, O, lse, dO, dlse=dlse, causal=True) for _ in range(10))
    gradients.hold(first, Q, K, V, dO, dlse, causal=True)
    assert all(torch.equal(first.dK, other.dK) and torch.equal(first.dV, other.dV) for other in others)
