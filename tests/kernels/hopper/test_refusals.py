"""The Hopper kernel refuses what it does not take before any work, and names a kernel that takes it."""

import pytest
import torch

from flashlib import masks
from flashlib.kernels.hopper import backward, forward, fp8, launch, launch_backward
from flashlib.kernels.launch import which_gpu

X = torch.zeros(1, 2, 32, 64, dtype=torch.bfloat16)
PORTABLE = "call flashlib.kernels.forward.attention"


@pytest.fixture
def hopper(monkeypatch):
    """A Hopper GPU, as far as checks can tell; a launch fails the test."""

    def launched(*args, **options):
        raise AssertionError("it was launched")

    monkeypatch.setattr(which_gpu, "INTERPRETED", False)
    for module in (launch, launch_backward):
        monkeypatch.setattr(module, "PLANS", launch.planning.Plans())
    monkeypatch.setattr(launch.planning.Launch, "__call__", launched)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    monkeypatch.setattr("flashlib.kernels.launch.inputs.INTERPRETED", True)  # the CPU stands for the GPU


@pytest.mark.parametrize(
    "Q, options, error, words",
    [
        (X.float(), {}, ValueError, f"Q is torch.float32; .* {PORTABLE}"),
        (torch.zeros(1, 2, 32, 80).half(), {}, ValueError, f"d is 80 .* {PORTABLE}"),
        (torch.zeros(1, 2, 32, 32).half(), {}, ValueError, f"d is 32 .* {PORTABLE}"),
        (X, {"mask": masks.Window(4, 4)}, ValueError, f"takes only causal: {PORTABLE}"),
        (torch.zeros(1, 2, 32, 65).half()[..., 1:], {}, ValueError, f"Q has strides .*{PORTABLE}"),
        (torch.zeros(1, 2, 32, 128).half()[..., 1:65], {}, ValueError, f"starts 2 bytes past .*{PORTABLE}"),
        (X.mT.contiguous().mT, {}, ValueError, f"contiguous last axis .*{PORTABLE}"),
        (X[:, :1].expand(1, 2, 32, 64), {}, ValueError, f"Q has strides .*{PORTABLE}"),
        ([1], {}, TypeError, "Q is of type list; pass a torch tensor"),
        (X[0], {}, ValueError, "B, H, N, d"),
        (X, {"causal": 2}, TypeError, "causal is 2"),
        (X, {"scale": -1.0}, ValueError, "scale is -1.0"),
        (X.detach().requires_grad_(), {}, ValueError, "Q requires a gradient"),
    ],
)
def test_bad_input_is_refused(Q, options, error, words, hopper):
    K = X if not isinstance(Q, torch.Tensor) or Q.dim() != 4 else torch.zeros(Q.shape, dtype=Q.dtype)
    with pytest.raises(error, match=words):
        forward.attention(Q, K, K, **options)


def test_a_different_d_of_values_is_refused(hopper):
    with pytest.raises(ValueError, match=f"d_v 128; .* {PORTABLE}"):
        forward.attention(X, X, torch.zeros(1, 2, 32, 128, dtype=X.dtype))


@pytest.mark.parametrize(
    "Q, options, words",
    [
        (X.float(), {}, "Q is torch.float32; .* call flashlib.kernels.eight_bits.attention"),
        (torch.zeros(1, 2, 32, 32).half(), {}, "d is 32 .* call flashlib.kernels.eight_bits.attention"),
        (X, {"mask": masks.Window(4, 4)}, "takes only causal: call flashlib.kernels.eight_bits.attention"),
        (X.mT.contiguous().mT, {}, "contiguous last axis .*or call flashlib.kernels.eight_bits.attention"),
        (X, {"qk": "e5m2"}, "qk is 'e5m2'; pass one of e4m3, int8"),
        (X, {"scale": -1.0}, "scale is -1.0"),
        (X.detach().requires_grad_(), {}, "Q requires a gradient"),
    ],
)
def test_the_kernel_in_eight_bits_refuses_too(Q, options, words, hopper):
    with pytest.raises(ValueError, match=words):
        fp8.attention(Q, Q.detach(), Q.detach(), **options)


def test_in_eight_bits_an_empty_problem_needs_no_launch(hopper):
    Q, K = (torch.zeros(1, 2, n, 64).half() for n in (5, 0))
    O, lse = fp8.attention(Q, K, K)
    assert O.dtype == torch.bfloat16 and not O.any() and (lse == -torch.inf).all()


LSE = torch.zeros(1, 2, 32)
BACKWARD = "call flashlib.kernels.backward.backward"


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"mask": masks.Window(4, 4)}, ValueError, f"takes only causal: {BACKWARD}"),
        (
            {name: torch.zeros(1, 2, 32, 96).half() for name in "QKVO"},
            ValueError,
            f"takes 64, 128 or 256 .*: {BACKWARD}",
        ),
        ({name: X.float() for name in "QKVO"}, ValueError, f"Q is torch.float32; .*: {BACKWARD}"),
        ({"K": X.mT.contiguous().mT}, ValueError, f"K has strides .*, or {BACKWARD}"),
        ({"lse": LSE[:, :1]}, ValueError, "lse"),
        ({"dlse": LSE[..., :31]}, ValueError, "dlse has shape .* they must be equal"),
        ({"dO": X.float()}, (TypeError, ValueError), "dO"),
        ({"Q": X.detach().requires_grad_()}, ValueError, "Q requires a gradient"),
        ({"causal": 2}, TypeError, "causal is 2"),
        ({"scale": -1.0}, ValueError, "scale is -1.0"),
    ],
)
def test_the_backward_refuses_as_the_forward_does(changed, error, words, hopper):
    given = dict.fromkeys(("Q", "K", "V", "O", "dO"), X) | {"lse": LSE} | changed
    if given["Q"].shape != X.shape or given["Q"].dtype != X.dtype:
        given["dO"] = given["Q"]
    with pytest.raises(error, match=words):
        backward.backward(**given)


def test_without_a_gpu_it_names_a_kernel_that_runs_here(monkeypatch):
    monkeypatch.setattr(which_gpu, "INTERPRETED", True)
    with pytest.raises(ValueError, match=f"takes a Hopper GPU: {PORTABLE}"):
        forward.attention(X, X, X)


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (10, 0)])
def test_another_gpu_is_refused(capability, hopper, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    with pytest.raises(ValueError, match=rf"capability \({capability[0]}, {capability[1]}\), .* {PORTABLE}"):
        forward.attention(X, X, X)


@pytest.mark.parametrize("shapes", [((1, 2, 0, 64), (1, 2, 5, 64)), ((1, 2, 5, 64), (1, 2, 0, 64))])
def test_an_empty_problem_needs_no_launch(shapes, hopper):
    Q, K = (torch.zeros(shape).half() for shape in shapes)
    O, lse = forward.attention(Q, K, K)
    assert O.shape == Q.shape and not O.any() and (lse == -torch.inf).all()


@pytest.mark.parametrize("transposed", [False, True])
def test_tensors_that_the_copy_unit_can_address_are_taken(transposed, hopper):
    Q = torch.zeros(1, 32, 2, 64).half().transpose(1, 2) if transposed else X
    with pytest.raises(AssertionError, match="it was launched"):
        forward.attention(Q, Q, Q)


@pytest.mark.parametrize("heads, size, n", [(12, 1, 12), (12, launch.TOGETHER // 5, 4), (7, launch.TOGETHER, 1)])
def test_a_section_is_a_divisor_of_the_heads_that_fits(heads, size, n):
    assert launch.section(heads, size) == n


def test_a_section_is_one_head_if_none_fits():
    assert launch.section(6, 10 * launch.TOGETHER) == 1
