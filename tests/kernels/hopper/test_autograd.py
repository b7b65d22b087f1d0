"""autograd with a forward pass other than the portable one, such as Hopper's: the gradients are the same."""

import types

import pytest
import torch
from torch import func

from flashlib import gluon
from flashlib.kernels import DEVICE, INTERPRETED, autograd, backward
from flashlib.kernels.hopper import attention as hopper_attention
from flashlib.kernels.hopper import backward as hopper_backward
from flashlib.kernels.hopper import forward as hopper
from flashlib.kernels.hopper import launch_backward
from tests.kernels import gradients
from tests.kernels.hopper import on_a_cpu

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
X = torch.zeros(1, 2, 8, 64, dtype=torch.bfloat16, device=DEVICE)


@pytest.fixture
def stub():
    """The Hopper kernel on a CPU, as a module that autograd takes; it counts its calls."""
    module = types.SimpleNamespace(calls=0)

    def attention(Q, K, V, *, causal, mask, scale):
        assert mask is None
        module.calls += 1
        given = on_a_cpu.Tiles(), on_a_cpu.ORDERS[2]
        return on_a_cpu.attended("forward", Q, K, V, *given, causal=causal, scale=scale)[0]

    module.attention = attention
    return module


def leaves(N_q, N_k, d, dtype, heads=(1, 2, 1), device=DEVICE):
    B, H, H_k = heads
    torch.manual_seed(N_q + N_k)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d)
    return [torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in shapes]


def check(module, given, **problem):
    """Check the gradients with these O and lse: no further from fp64 than standard attention's."""
    outputs = autograd.attention(*given, forward=module, **problem)
    dO, dlse = (torch.randn_like(Y) for Y in outputs)
    found = backward.Grads(*torch.autograd.grad(outputs, given, (dO, dlse)))
    gradients.hold(found, *(Y.detach() for Y in given), dO, dlse, **problem)
    return outputs


@pytest.mark.skipif(not INTERPRETED, reason="kernels are compiled here")
@pytest.mark.parametrize("causal, scale", [(False, None), (True, 0.2)])
def test_gradients_are_those_of_standard_attention(causal, scale, stub):
    given = leaves(77, 131, 64, torch.bfloat16)
    O, lse = check(stub, given, causal=causal, scale=scale)
    assert stub.calls == 1
    with torch.no_grad():
        plain = autograd.attention(*given, causal=causal, scale=scale, forward=stub)
    assert stub.calls == 2 and torch.equal(plain.O, O) and torch.equal(plain.lse, lse)
    assert O.requires_grad and not plain.O.requires_grad


@pytest.mark.skipif(not INTERPRETED, reason="kernels are compiled here")
def test_autocast_casts_for_it_too(stub):
    given = leaves(8, 8, 64, torch.float32)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        O = autograd.attention(*given, forward=stub).O
    assert O.dtype == torch.bfloat16 and stub.calls == 1
    assert all(dY.dtype == torch.float32 for dY in torch.autograd.grad(O.sum(), given))


@pytest.mark.skipif(not INTERPRETED, reason="kernels are compiled here")
@pytest.mark.parametrize(
    "deterministic, d, N_q, N_k, causal, is_hoppers",
    [
        (False, 64, 10, 75, True, True),
        (False, 128, 10, 70, False, True),
        (False, 128, 10, 69, False, False),
        (False, 64, 10, 74, True, False),
        (False, 32, 10, 75, False, False),
        (True, 64, 10, 75, True, False),
        (False, 256, 10, 75, True, True),
        (True, 256, 10, 75, True, True),
        (True, 256, 10, 69, False, False),
    ],
)
def test_autograd_picks_its_backward_where_that_is_faster(
    deterministic, d, N_q, N_k, causal, is_hoppers, monkeypatch
):
    monkeypatch.setattr(launch_backward, "SEEN", dict.fromkeys(launch_backward.SEEN, 70))
    given = leaves(N_q, N_k, d, torch.bfloat16)
    with on_a_cpu.tiled(on_a_cpu.Tiles()), gluon.on_cpu(seed=2) as ran:
        O = autograd.attention(*given, causal=causal, deterministic=deterministic).O
        dO = torch.randn_like(O)
        found = backward.Grads(*torch.autograd.grad(O, given, dO))
    assert bool(ran) == is_hoppers
    gradients.hold(found, *(Y.detach() for Y in given), dO, causal=causal)


@pytest.mark.skipif(HOPPER, reason="there is a Hopper GPU")
@pytest.mark.parametrize("grad", [False, True])
def test_it_refuses_with_its_own_error(grad):
    Q = X.detach().requires_grad_(grad)
    with pytest.raises(ValueError, match="call flashlib.kernels.forward.attention"):
        autograd.attention(Q, X, X, forward=hopper)
    with pytest.raises(ValueError, match="Hopper.*: call flashlib.kernels.forward.attention"):
        hopper_attention(Q, X, X)


@pytest.mark.skipif(HOPPER, reason="there is a Hopper GPU")
def test_its_backward_refuses_too():
    lse = torch.zeros(X.shape[:3], device=DEVICE)
    with pytest.raises(ValueError, match="Hopper.*: call flashlib.kernels.backward.backward"):
        hopper_backward.backward(X, X, X, X, lse, X)


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((X, X, X), {"forward": "hopper"}, TypeError, "forward is 'hopper'; pass a module with attention"),
        ((X, X, X), {"causal": 2}, TypeError, "causal is 2"),
        ((X, X, X), {"scale": -1.0}, ValueError, "scale is -1.0"),
        ((X, X, X), {"mask": 3}, TypeError, "mask is"),
        ((X.tolist(), X, X), {}, TypeError, "Q is of type list; pass a torch tensor"),
        ((X, X, X[:, :, :5]), {}, ValueError, "V"),
    ],
)
def test_bad_input_is_refused_before_any_work(arguments, options, error, message):
    def attention(*_, **__):
        raise AssertionError("it was launched")

    with pytest.raises(error, match=message):
        autograd.attention(*arguments, **{"forward": types.SimpleNamespace(attention=attention)} | options)


def transformed(Q, K, V):
    return autograd.attention(Q, K, V, forward=hopper).O.sum()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: func.grad(f),
        lambda f: lambda *Y: func.vmap(f)(*(Z[None] for Z in Y)),
        lambda f: torch.compile(f, backend="aot_eager", fullgraph=True),
    ],
    ids=["grad", "vmap", "compile"],
)
def test_torch_func_and_compile_are_refused_in_words(wrap):
    with pytest.raises(RuntimeError, match="forward is given, and torch.func, torch.compile"):
        wrap(transformed)(X, X, X)


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_on_a_hopper_gpu(d, causal, poisoned):
    given = leaves(517, 771, d, torch.bfloat16, (2, 4, 2), "cuda")
    outputs = check(hopper, given, causal=causal)
    assert torch.equal(outputs.O, hopper.attention(*(Y.detach() for Y in given), causal=causal).O)
