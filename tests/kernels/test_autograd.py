"""Attention as an operation of PyTorch: gradients, and what PyTorch does with operations."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from flashlib import torch_ref
from flashlib.kernels import DEVICE, autograd, forward
from tests.kernels.gradients import reference, rounding

X = torch.zeros(1, 2, 8, 16, device=DEVICE)


@pytest.fixture
def leaves(device):
    shapes = (2, 4, 37, 16), (2, 2, 53, 16), (2, 2, 53, 16)
    return [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]


def loss(Q, K, V, **options):
    """Return a number that depends on O and on lse, after other operations and before them."""
    O, lse = autograd.attention(Q * 2, K, V.sin(), causal=True, **options)
    return O.square().sum() + lse.sum()


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("with_lse", [True, False])
def test_gradients_are_those_of_standard_attention(deterministic, with_lse, leaves, poisoned):
    outputs = autograd.attention(*leaves, causal=True, deterministic=deterministic)
    dO, dlse = (torch.randn_like(Y) for Y in outputs)
    of = (outputs.O, outputs.lse) if with_lse else (outputs.O,)
    given = torch.autograd.grad(of, leaves, (dO, dlse)[: len(of)])
    detached = [Y.detach() for Y in leaves]
    exact = reference(*(Y.double() for Y in detached), dO, dlse if with_lse else None, causal=True)
    bounds = rounding(*detached, dO, dlse, causal=True)
    for Y, Y_exact, bound in zip(given, exact, bounds, strict=True):
        assert (Y - Y_exact).abs().max().item() <= bound


def test_the_gradient_of_lse_alone(leaves):
    lse = autograd.attention(*leaves).lse
    dQ, dK, dV = torch.autograd.grad(lse.sum(), leaves, allow_unused=True)
    exact = reference(*(Y.double() for Y in leaves), torch.zeros_like(leaves[0]), torch.ones_like(lse))
    for Y, Y_exact in zip((dQ, dK), exact[:2], strict=True):
        torch.testing.assert_close(Y.double(), Y_exact, atol=1e-5, rtol=1e-5)
    assert dV is None or not dV.any()


def test_nothing_but_Q_K_V_O_and_lse_is_kept(leaves):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda Y: kept.append(Y) or Y, lambda Y: Y):
        O, lse = autograd.attention(*leaves)
    expected = sum(Y.numel() for Y in (*leaves, O, lse))
    assert sum(Y.numel() for Y in {Y.data_ptr(): Y for Y in kept}.values()) == expected


def test_values_are_those_of_the_kernel(leaves):
    given = autograd.attention(*leaves, causal=True, scale=0.3)
    with torch.no_grad():
        expected = forward.attention(*leaves, causal=True, scale=0.3)
    assert all(torch.equal(Y, Z) for Y, Z in zip(given, expected, strict=True))


def test_a_compiled_graph_holds_the_operation_whole(leaves):
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    given, expected = (torch.autograd.grad(f(*leaves), leaves) for f in (compiled, loss))
    assert all(torch.equal(Y, Z) for Y, Z in zip(given, expected, strict=True))


def test_activation_checkpointing(leaves):
    given = torch.autograd.grad(checkpoint(loss, *leaves, use_reentrant=False), leaves)
    expected = torch.autograd.grad(loss(*leaves), leaves)
    assert all(torch.equal(Y, Z) for Y, Z in zip(given, expected, strict=True))


def test_autocast_casts_what_comes_in(leaves):
    with torch.autocast(leaves[0].device.type, dtype=torch.bfloat16):
        O, lse = autograd.attention(*leaves)
    assert O.dtype == torch.bfloat16 and lse.dtype == torch.float32
    grads = torch.autograd.grad(O.float().sum(), leaves)
    assert all(grad.dtype == torch.float32 for grad in grads)


@pytest.mark.parametrize("dynamic", [True, None])
def test_a_compiled_graph_takes_other_sizes(dynamic, device):
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for N, d in ((20, 16), (33, 16), (33, 24)):
        leaves = [torch.randn(1, 2, N, d, device=device, requires_grad=True) for _ in range(3)]
        given, expected = (torch.autograd.grad(f(*leaves), leaves) for f in (compiled, loss))
        assert all(torch.equal(Y, Z) for Y, Z in zip(given, expected, strict=True))


def test_the_operations_keep_torchs_rules(leaves):
    rules = {"test_utils": ("test_schema", "test_autograd_registration", "test_faketensor")}
    Q, K, V = leaves
    spread = Q.detach().transpose(1, 2).contiguous().transpose(1, 2).bfloat16().requires_grad_()
    for arguments in ((Q, K, V), (spread, K.bfloat16(), V.bfloat16())):
        forward_check = torch.library.opcheck(autograd._attention, (*arguments, True, 0.25, True), **rules)
        detached = [Y.detach() for Y in arguments]
        O, lse = autograd.attention(*detached, causal=True, scale=0.25)
        saved = (*detached, O, lse, torch.ones_like(O), None, True, 0.25, True)
        backward_check = torch.library.opcheck(autograd._attention_backward, saved, **rules)
        assert {*forward_check.values(), *backward_check.values()} == {"SUCCESS"}


def test_gradients_in_batches(leaves):
    outputs = autograd.attention(*leaves, causal=True)
    for Y, given in zip(outputs, (leaves, leaves[:2]), strict=True):
        dY = torch.randn(3, *Y.shape, device=Y.device)
        options = {"retain_graph": True, "allow_unused": True}
        batched = torch.autograd.grad(Y, given, dY, is_grads_batched=True, **options)
        one_by_one = [torch.autograd.grad(Y, given, dy, **options) for dy in dY]
        for X, *expected in zip(batched, *one_by_one, strict=True):
            assert torch.equal(X, torch.stack(expected))


def test_a_second_derivative_is_refused_in_words(leaves):
    (dQ,) = torch.autograd.grad(loss(*leaves), leaves[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated again.*torch_ref.attention"):
        dQ.sum().backward()


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((X, X, X[:, :, :5]), ValueError, "V"),
        ((X.half(), X, X), TypeError, "K has dtype torch.float32 and Q has torch.float16"),
        ((X.tolist(), X, X), TypeError, "Q is a list; pass a torch tensor"),
    ],
)
def test_bad_input_is_refused_as_by_the_kernel(arguments, error, message):
    with pytest.raises(error, match=message):
        autograd.attention(*arguments)
    with torch.autocast(DEVICE, dtype=torch.bfloat16), pytest.raises((TypeError, ValueError)):
        autograd.attention(X, X, X.int())
    with pytest.raises(TypeError, match="deterministic is 0"):
        autograd.attention(X, X, X, deterministic=0)


def test_a_model_learns_the_same_as_with_standard_attention(device):
    def train(attention):
        torch.manual_seed(0)
        W = (torch.randn(16, 48, device=device) / 4).requires_grad_()
        x, y = torch.randn(2, 3, 21, 16, device=device), torch.randn(2, 3, 21, 16, device=device)
        losses = []
        for _ in range(5):
            loss = (attention(*(x @ W).chunk(3, dim=-1), causal=True).O - y).square().mean()
            (grad,) = torch.autograd.grad(loss, W)
            W = (W - grad / 10).detach().requires_grad_()
            losses.append(loss.item())
        return losses

    ours, plain = train(autograd.attention), train(torch_ref.attention)
    assert ours[-1] < ours[0]
    assert ours == pytest.approx(plain, rel=1e-4)
