"""On a Hopper GPU: the Hopper kernel against fp64, and no worse than the portable one; and it never hangs."""

import subprocess
import sys

import pytest
import torch

from flashlib import torch_ref
from flashlib.kernels import forward as portable
from flashlib.kernels.hopper import forward
from tests import oracle

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="no Hopper GPU")]
DTYPES = [torch.float16, torch.bfloat16]
SIZES = [(1, 1), (1, 4099), (63, 65), (129, 127), (193, 1021), (1021, 193), (1024, 1024), (2047, 1021)]


def tensors(N_q, N_k, d, dtype, heads=(2, 3, 3)):
    B, H, H_k = heads
    torch.manual_seed(N_q + N_k + d)
    return tuple(torch.randn(B, h, n, d, device="cuda").to(dtype) for h, n in ((H, N_q), (H_k, N_k), (H_k, N_k)))


def check(Q, K, V, **options):
    """Compare O and lse with fp64: no further from it than the portable kernel, except for a last rounding."""
    group = Q.shape[1] // K.shape[1]
    K_all, V_all = (X.double().repeat_interleave(group, 1) for X in (K, V))
    exact = torch_ref.attention(Q.double(), K_all, V_all, **options)
    given, other = (module.attention(Q, K, V, **options) for module in (forward, portable))
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    eps = torch.finfo(Q.dtype).eps
    largest = exact.lse.masked_fill(exact.lse.isinf(), 0).abs().max().item()
    for name, rounding in (("O", eps / 4 * V.abs().max().item()), ("lse", 2.0**-23 * max(largest, 4))):
        one, two, best = (getattr(X, name).cpu().double() for X in (given, other, exact))
        oracle.assert_close(one, best, rounding=rounding + oracle.worst(two, best), what=name)
    return given


@pytest.mark.parametrize("N_q, N_k", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [64, 128, 256])
def test_equals_fp64(d, dtype, causal, N_q, N_k, poisoned):
    check(*tensors(N_q, N_k, d, dtype), causal=causal)


@pytest.mark.parametrize("heads", [(1, 8, 2), (3, 6, 1), (2, 16, 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads(heads, causal, poisoned):
    check(*tensors(517, 771, 128, torch.bfloat16, heads), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_more_row_blocks_than_multiprocessors(causal, poisoned):
    """Programs compute several blocks: barriers, slots and O's place are reused."""
    for d in (64, 128, 256):
        check(*tensors(1000, 777, d, torch.bfloat16, (5, 16, 4)), causal=causal)


def test_strides_inside_nan(poisoned):
    """Tensors are slices of larger ones, (B, N, H, d), whose other elements are NaN: nothing there is read."""
    for causal in (False, True):
        given = []
        for X in tensors(131, 197, 64, torch.float16):
            B, H, N, d = X.shape
            wide = torch.full((B, N + 5, H + 1, 2 * d), torch.nan, device="cuda", dtype=X.dtype)
            inner = wide[:, 2 : N + 2, :H, d:].transpose(1, 2)
            inner.copy_(X)
            given.append(inner)
        check(*given, causal=causal)


def test_rows_that_see_no_key(poisoned):
    O, lse = check(*tensors(300, 7, 128, torch.bfloat16), causal=True)
    assert not O[:, :, :293].any() and (lse[:, :, :293] == -torch.inf).all() and lse[:, :, 293:].isfinite().all()


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e5, 1e8, 1e11, 2e27])
def test_scores_of_any_size(scale, poisoned):
    """Products of small whole numbers are exact, so keys tie: they share a row's weight at any scale."""
    torch.manual_seed(0)
    Q, K = (torch.randint(-2, 3, (1, 2, n, 64), device="cuda").half() for n in (137, 353))
    V = torch.randn(1, 2, 353, 64, device="cuda").half()
    O, lse = forward.attention(Q, K, V, causal=True, scale=scale)
    S = Q.double() @ K.double().mT
    S = S.masked_fill(~torch.ones_like(S, dtype=torch.bool).tril(353 - 137), -torch.inf)
    m = S.amax(-1, keepdim=True)
    P = torch.exp((S - m) * scale)
    exact, exact_lse = P @ V.double() / P.sum(-1, keepdim=True), (m * scale)[..., 0] + P.sum(-1).log()
    assert (O - exact).abs().max() <= torch.finfo(O.dtype).eps * V.abs().max()
    assert ((lse - exact_lse).abs() <= 2.0**-22 * exact_lse.abs().clamp(min=4)).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_it_repeats_to_the_bit(d, causal):
    Q, K, V = tensors(1500, 1700, d, torch.bfloat16, (2, 16, 16))
    first = forward.attention(Q, K, V, causal=causal)
    for _ in range(20):
        again = forward.attention(Q, K, V, causal=causal)
        assert torch.equal(first.O, again.O) and torch.equal(first.lse, again.lse)


MANY = """
import torch
from flashlib.kernels.hopper import forward
torch.manual_seed(0)
Q, K, V = (torch.randn(2, 8, n, {d}, device="cuda").bfloat16() for n in (517, 771, 771))
first = forward.attention(Q, K, V, causal={causal})
for n in range(10_000):
    last = forward.attention(Q, K, V, causal={causal})
torch.cuda.synchronize()
assert torch.equal(first.O, last.O) and torch.equal(first.lse, last.lse)
"""


@pytest.mark.parametrize("d, causal", [(64, False), (64, True), (128, True), (256, False)])
def test_ten_thousand_launches_end(d, causal):
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(d=d, causal=causal)], timeout=120, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
