"""On a Hopper GPU: the Hopper backward against fp64, as exact as standard attention; and it never hangs."""

import subprocess
import sys

import pytest
import torch

from flashlib.kernels import backward as portable
from flashlib.kernels import forward, hopper
from flashlib.kernels.hopper import backward, launch_backward
from flashlib.kernels.launch import planning
from tests.kernels import gradients

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")]
DTYPES = [torch.float16, torch.bfloat16]
SIZES = [(1, 1), (1, 4099), (63, 65), (129, 127), (193, 1021), (1021, 193), (1024, 1024), (2047, 1021), (300, 7)]


def problem(N_q, N_k, d, dtype, heads=(2, 3, 3)):
    B, H, H_k = heads
    torch.manual_seed(N_q + N_k + d)
    shapes = (B, H, N_q, d), (B, H_k, N_k, d), (B, H_k, N_k, d), (B, H, N_q, d)
    Q, K, V, dO = (torch.randn(shape, device="cuda").to(dtype) for shape in shapes)
    return Q, K, V, dO, torch.randn(B, H, N_q, device="cuda")


def check(Q, K, V, dO, dlse=None, **options):
    O, lse = forward.attention(Q, K, V, **options)
    given = backward.backward(Q, K, V, O, lse, dO, dlse=dlse, **options)
    gradients.hold(given, Q, K, V, dO, dlse, **options)
    return given


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [64, 128, 256])
def test_equals_fp64(d, dtype, causal, N_q, N_k, poisoned):
    *given, dlse = problem(N_q, N_k, d, dtype)
    check(*given, causal=causal)
    check(*given, dlse, causal=causal, scale=0.2)


@pytest.mark.parametrize("heads", [(1, 8, 2), (3, 6, 1), (2, 16, 16), (5, 16, 4)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_grouped_heads(d, heads, causal, poisoned):
    check(*problem(517, 771, d, torch.bfloat16, heads)[:4], causal=causal)


@pytest.mark.parametrize("turns", [(1, 2), (1, 3), (2, 3), (5, 7)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_few_buffers_of_sums(d, causal, turns, monkeypatch, poisoned):
    """Programs wait for each other all the time, unlike with as many buffers as a launch normally has."""
    monkeypatch.setattr(launch_backward, "turns", lambda *_: turns)
    monkeypatch.setattr(launch_backward, "PLANS", planning.Plans())
    given = problem(517, 1283, d, torch.bfloat16, (8, 8, 4))[:4]
    for _ in range(5):
        check(*given, causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 256])
def test_strides_inside_nan(d, causal, poisoned):
    """Tensors are slices of larger ones, (B, N, H, d), whose other elements are NaN: nothing there is read."""
    given = []
    for X in problem(131, 197, d, torch.float16)[:4]:
        B, H, N, d = X.shape
        wide = torch.full((B, N + 5, H + 1, 2 * d), torch.nan, device="cuda", dtype=X.dtype)
        inner = wide[:, 2 : N + 2, :H, d:].transpose(1, 2)
        inner.copy_(X)
        given.append(inner)
    check(*given, causal=causal)


@pytest.mark.parametrize("dO", [lambda X: X[..., :1, :1].expand(X.shape), lambda X: X.mT.contiguous().mT])
@pytest.mark.parametrize("d", [128, 256])
def test_any_gradient_is_taken(d, dO, poisoned):
    Q, K, V, X, _ = problem(131, 197, d, torch.bfloat16)
    check(Q, K, V, dO(X), causal=True)


@pytest.mark.parametrize("d", [64, 256])
def test_keys_past_the_end_stay_out_of_low_scores(d, poisoned):
    """Scores of all real keys are below -1e4: zeros past the end would have 2^1e4 times the weight."""
    Q, K, V, dO, _ = problem(200, 197, d, torch.bfloat16)
    Q[..., 0], K[..., 0] = 450, -450
    O, lse = forward.attention(Q, K, V)
    assert (lse < -1e4).all()
    pairs = zip(backward.backward(Q, K, V, O, lse, dO), portable.backward(Q, K, V, O, lse, dO), strict=True)
    for X, same in pairs:
        assert X.isfinite().all() and (X - same).abs().max() <= 0.02 * same.abs().max()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_dK_and_dV_repeat_to_the_bit_and_dQ_almost(d, causal):
    Q, K, V, dO, _ = problem(1500, 1700, d, torch.bfloat16, (2, 16, 8))
    O, lse = forward.attention(Q, K, V, causal=causal)
    first = backward.backward(Q, K, V, O, lse, dO, causal=causal)
    for _ in range(20):
        again = backward.backward(Q, K, V, O, lse, dO, causal=causal)
        assert torch.equal(first.dK, again.dK) and torch.equal(first.dV, again.dV)
        assert (first.dQ - again.dQ).abs().max() <= torch.finfo(Q.dtype).eps * first.dQ.abs().max()


@pytest.mark.parametrize("causal", [False, True])
def test_all_repeats_to_the_bit_at_d_256(causal):
    Q, K, V, dO, _ = problem(1500, 1700, 256, torch.bfloat16, (2, 16, 8))
    O, lse = forward.attention(Q, K, V, causal=causal)
    first, *others = (backward.backward(Q, K, V, O, lse, dO, causal=causal) for _ in range(20))
    for other in others:
        assert all(torch.equal(one, same) for one, same in zip(first, other, strict=True))


@pytest.mark.parametrize("d", [64, 256])
def test_nothing_to_sum_gives_zeros(d):
    Q, K, V, dO, _ = problem(33, 40, d, torch.bfloat16)
    O, lse = forward.attention(Q, K[:, :, :0], V[:, :, :0])
    dQ, dK, _ = backward.backward(Q, K[:, :, :0], V[:, :, :0], O, lse, dO)
    assert not dQ.any() and dQ.shape == Q.shape and not dK.numel()
    none = Q[:, :, :0]
    _, dK, dV = backward.backward(none, K, V, none, lse[:, :, :0], none)
    assert not dK.any() and not dV.any() and dK.shape == K.shape


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_attention_has_gradients(d, causal, poisoned):
    Q, K, V, dO, dlse = problem(517, 1771, d, torch.bfloat16, (2, 4, 2))
    leaves = [X.requires_grad_() for X in (Q, K, V)]
    outputs = hopper.attention(*leaves, causal=causal)
    found = portable.Grads(*torch.autograd.grad(outputs, leaves, (dO, dlse)))
    gradients.hold(found, *(X.detach() for X in leaves), dO, dlse, causal=causal)


MANY = """
import torch
from flashlib.kernels import forward
from flashlib.kernels.hopper import backward
torch.manual_seed(0)
Q, K, V, dO = (torch.randn(2, 8, n, {d}, device="cuda").bfloat16() for n in (517, 771, 771, 517))
O, lse = forward.attention(Q, K, V, causal={causal})
first = backward.backward(Q, K, V, O, lse, dO, causal={causal})
for n in range(10_000):
    last = backward.backward(Q, K, V, O, lse, dO, causal={causal})
torch.cuda.synchronize()
assert torch.equal(first.dK, last.dK) and torch.equal(first.dV, last.dV)
"""


@pytest.mark.parametrize(
    "d, causal", [(64, False), (64, True), (128, False), (128, True), (256, False), (256, True)]
)
def test_ten_thousand_launches_end(d, causal):
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(d=d, causal=causal)], timeout=120, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
