"""The portable kernel in eight bits: its only error is the rounding of P, its rounding is e4m3's; refusals."""

import pytest
import torch
import triton
import triton.language as tl

from flashlib.kernels import DEVICE, eight_bits, quantise
from flashlib.kernels.launch import which_gpu
from tests.kernels import eight
from tests.kernels.test_quantise import inputs, turned

# B, H, H_k, N_q, N_k, d, dtype, causal
PROBLEMS = [
    (1, 1, 1, 64, 128, 64, torch.bfloat16, False),
    (1, 2, 1, 150, 301, 64, torch.float16, True),
    (2, 2, 2, 77, 53, 32, torch.bfloat16, True),
    (1, 1, 1, 131, 257, 128, torch.float16, False),
    (1, 3, 1, 5, 67, 256, torch.bfloat16, True),
]


@pytest.mark.parametrize("pv", ["e4m3", None])
@pytest.mark.parametrize("qk", sorted(quantise.FORMATS))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_only_error_is_the_rounding_of_P(problem, qk, pv):
    *size, causal = problem
    Q, K, V = inputs(*size)
    small = quantise.quantised(Q, K, V, qk=qk)
    given = eight_bits.attention(Q, K, V, causal=causal, scale=0.1, qk=qk, pv=pv)
    assert given.O.dtype == Q.dtype and given.lse.dtype == torch.float32
    q, k, v = eight.stands_for(small, size[4], permuted=False)
    eps = torch.finfo(Q.dtype).eps
    if pv is None:
        small = small._replace(v_mean=torch.zeros_like(small.v_mean))
        v = V.double()
    eight.check(given, small, q, k, v, causal, 0.1, weight=2.0**-4 if pv else eps, out=eps)


def test_rotation_and_means_change_only_roundings():
    """The same scores and values from different numbers: errors stay those of eight bits."""
    Q, K, V = inputs(*PROBLEMS[3][:7])
    exact = torch.softmax(Q.double() @ K.double().mT * 0.1, -1) @ V.double()
    for rotated in (False, True):
        for centred in (False, True):
            O = eight_bits.attention(Q, K, V, scale=0.1, rotated=rotated, centred=centred, qk="int8").O
            assert (O.double() - exact).pow(2).mean().sqrt() < 0.12 * V.double().std()


def test_lse_is_that_of_the_original_scores():
    Q, K, V = inputs(*PROBLEMS[1][:7])
    exact = (Q.double() @ K.double().mT * 0.1).logsumexp(-1)
    assert (eight_bits.attention(Q, K, V, scale=0.1, qk="int8").lse - exact).abs().max() < 0.2
    assert (turned(Q) @ turned(K).mT - Q.double() @ K.double().mT).abs().max() < 1e-9


@triton.jit
def _round_all(X_ptr, Y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(Y_ptr + i, eight_bits._rounded(tl.load(X_ptr + i)))


def test_the_interpreted_rounding_is_that_of_e4m3():
    """All numbers of the format from 0 on, the ties between neighbours, and the numbers next to these."""
    codes = torch.arange(0, 127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    ties = (codes[1:] + codes[:-1]) / 2
    near = [torch.nextafter(ties, torch.full_like(ties, to)) for to in (0.0, 1e9)]
    x = torch.cat([codes, ties, *near])
    x = torch.cat([x, torch.zeros(512 - len(x))]).to(DEVICE)
    y = torch.empty_like(x)
    _round_all[(1,)](x, y, 512)
    assert torch.equal(y, x.to(torch.float8_e4m3fn).float())


X = torch.zeros(1, 2, 32, 64, dtype=torch.bfloat16, device=DEVICE)


@pytest.mark.parametrize(
    "Q, options, error, words",
    [
        (X.float(), {}, ValueError, "Q is torch.float32; this kernel takes float16 and bfloat16"),
        (X[..., :48], {}, ValueError, "d is 48; the kernel takes 32, 64, 128, 256"),
        (X, {"qk": "fp8"}, ValueError, "qk is 'fp8'; pass one of e4m3, int8"),
        (X, {"pv": "int8"}, ValueError, "pv is 'int8'; pass 'e4m3', or None"),
        (X, {"causal": 2}, TypeError, "causal is 2"),
        (X, {"scale": -1.0}, ValueError, "scale is -1.0"),
        (X.detach().requires_grad_(), {}, ValueError, "Q requires a gradient"),
        ([1], {}, TypeError, "Q is of type list"),
    ],
)
def test_bad_input_is_refused(Q, options, error, words):
    K = Q.detach() if isinstance(Q, torch.Tensor) else X
    with pytest.raises(error, match=words):
        eight_bits.attention(Q, K, K, **options)


@pytest.mark.parametrize(
    "capability, options, words",
    [
        ((8, 6), {}, r"capability \(8, 6\), and e4m3 takes one of 8.9 or later: pass qk='int8' and pv=None"),
        ((7, 5), {"qk": "int8", "pv": None}, r"\(7, 5\), .*: call flashlib.kernels.forward.attention"),
        ((0, 0), {}, "a maker other than NVIDIA"),
    ],
)
def test_a_gpu_without_the_format_is_refused(capability, options, words, monkeypatch):
    monkeypatch.setattr(eight_bits, "INTERPRETED", False)
    monkeypatch.setattr(which_gpu, "capability", lambda device: capability)
    with pytest.raises(ValueError, match=words):
        eight_bits.attention(X, X, X, **options)


@pytest.mark.parametrize("shapes", [((1, 2, 0, 64), (1, 2, 5, 64)), ((1, 2, 5, 64), (1, 2, 0, 64))])
def test_an_empty_problem_needs_no_launch(shapes):
    Q, K = (torch.zeros(shape, dtype=torch.float16, device=DEVICE) for shape in shapes)
    O, lse = eight_bits.attention(Q, K, K)
    assert O.shape == Q.shape and not O.any() and (lse == -torch.inf).all()


@pytest.mark.parametrize("pv", ["e4m3", None])
def test_rows_that_see_no_key(pv):
    Q, K, V = inputs(*PROBLEMS[2][:7])  # 77 queries and 53 keys: the first 24 rows see none
    O, lse = eight_bits.attention(Q, K, V, causal=True, qk="int8", pv=pv)
    assert not O[:, :, :24].any() and lse[:, :, :24].isneginf().all()
    assert O[:, :, 24:].any(-1).all() and lse[:, :, 24:].isfinite().all()
