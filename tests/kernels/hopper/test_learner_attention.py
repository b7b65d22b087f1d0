"""The kernel of the capstone for Hopper, as a learner writes it: on a Hopper GPU, against fp64."""

import pytest
import torch

from flashlib import torch_ref
from flashlib.checks.engine import solutions
from tests.checks import answers

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
# B, H, N_q, N_k, d, causal
PROBLEMS = [
    (1, 1, 128, 128, 64, False),
    (2, 3, 77, 333, 64, True),
    (1, 2, 300, 70, 64, True),
    (1, 2, 1, 1, 128, True),
    (2, 2, 517, 1031, 128, False),
    (1, 4, 2048, 2048, 128, True),
]
RIGHT = [one.program for one in answers.right() if one.exercise == "hopper_attention"]


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="it takes a Hopper GPU")
@pytest.mark.parametrize("which", range(1 + len(RIGHT)))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_it_is_right_on_a_hopper_gpu(problem, dtype, which):
    B, H, N_q, N_k, d, causal = problem
    my_attention = [solutions.program("hopper_attention"), *RIGHT][which].function
    generator = torch.Generator("cuda").manual_seed(N_q)
    shapes = [(B, H, N, d) for N in (N_q, N_k, N_k)]
    Q, K, V = (torch.randn(shape, device="cuda", generator=generator).to(dtype) for shape in shapes)
    O, lse = my_attention(Q, K, V, causal)
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), causal=causal)
    plain = torch_ref.attention(Q, K, V, causal=causal)
    rounding = (exact.O - exact.O.to(dtype)).abs().max()
    assert (O - exact.O).abs().max() <= 2 * max((plain.O - exact.O).abs().max(), rounding)
    assert torch.equal(lse.isneginf(), exact.lse.isneginf())
    seen = ~exact.lse.isneginf()
    assert (lse - exact.lse)[seen].abs().amax() < 1e-4 if seen.any() else True
