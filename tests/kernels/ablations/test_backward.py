"""Without any of its ideas the backward pass is as exact as with all; with all it equals the finished kernel."""

import pytest
import torch

from flashlib.kernels import backward, forward
from flashlib.kernels.ablations import backward as ablated
from flashlib.types import Grads
from tests.kernels.gradients import hold
from tests.kernels.test_backward import SMALL, tensors

IDEAS = ("prepared", "transposed", "early_dP", "in_registers")
without = pytest.mark.parametrize("without", [(), *((idea,) for idea in IDEAS), IDEAS], ids="-".join)


def gradients(Q, K, V, dO, without=(), *, causal, **options):
    """Return Grads of the two passes without these ideas."""
    ideas = {idea: idea not in without for idea in IDEAS}
    in_registers = ideas.pop("in_registers")
    O, lse = forward.attention(Q, K, V, causal=causal)
    given = Q, K, V, dO, ablated.prepare(Q, O, lse, dO)
    dQ = ablated.dq(*given, in_registers=in_registers, causal=causal, **options)
    return Grads(dQ, *ablated.dkv(*given, **ideas, causal=causal, **options))


@without
@pytest.mark.parametrize("N_q, N_k, causal", [(19, 37, False), (53, 21, True)], ids=["ragged", "blind rows"])
def test_equals_fp64(without, N_q, N_k, causal, device, poisoned):
    given = tensors(device, N_q, N_k, 16, torch.float32)
    hold(gradients(*given, without, causal=causal, descriptors=False, **SMALL), *given, causal=causal)


@pytest.mark.parametrize("N_q, N_k", [(19, 37), (37, 37), (1, 70), (1, 1), (0, 5), (5, 0)])
def test_other_sizes(N_q, N_k, device, poisoned):
    given = tensors(device, N_q, N_k, 16, torch.float32)
    hold(gradients(*given, IDEAS, causal=True, **SMALL), *given, causal=True)


@pytest.mark.parametrize("amount, without", [("few", ()), *(("all", (idea,)) for idea in IDEAS), ("few", IDEAS)])
def test_with_descriptors(amount, without, device, poisoned):
    given = tensors(device, 37, 21, 16, torch.float16)
    hold(gradients(*given, without, causal=True, descriptors=True, **SMALL), *given, causal=True)


@pytest.mark.parametrize("descriptors", [False, True])
@pytest.mark.parametrize("N_q, N_k, d, options", [(37, 53, 16, SMALL), (70, 67, 64, {})], ids=["asked", "tuned"])
@pytest.mark.parametrize("causal", [False, True])
def test_with_all_ideas_it_equals_the_finished_kernel_to_the_bit(
    descriptors, N_q, N_k, d, options, causal, device, poisoned
):
    Q, K, V, dO = tensors(device, N_q, N_k, d, torch.float16)
    options = options | {"causal": causal, "descriptors": descriptors}
    for_use = backward.backward(Q, K, V, *forward.attention(Q, K, V, causal=causal), dO, **options)
    for given, expected in zip(gradients(Q, K, V, dO, **options), for_use, strict=True):
        assert given.dtype == expected.dtype and torch.equal(given, expected)


def test_the_passes_refuse_what_they_do_not_take(device):
    Q, K, V, dO = tensors(device, 5, 7, 16, torch.float32)
    with pytest.raises(ValueError, match="d is 24; the kernel takes 16, 32, 64, 128"):
        gradients(*tensors(device, 5, 7, 24, torch.float32), causal=False)
    with pytest.raises(ValueError, match="all axes before the last two must be equal"):
        gradients(*tensors(device, 5, 7, 16, torch.float32, heads=(1, 4, 2)), causal=False)
    with pytest.raises(ValueError, match="B_r is 48; the kernel takes 16, 32"):
        gradients(Q, K, V, dO, causal=False, B_r=48)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("N_q, N_k, causal", [(1021, 2047, False), (2047, 1021, True)])
def test_long_sequences_on_a_gpu(dtype, d, N_q, N_k, causal, poisoned):
    torch.manual_seed(0)
    given = tensors("cuda", N_q, N_k, d, dtype)
    for without in ((), *((idea,) for idea in IDEAS), IDEAS):
        hold(gradients(*given, without, causal=causal), *given, causal=causal)
