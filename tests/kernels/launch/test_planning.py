"""A launch is decided once for each kind of call, and few kernels are compiled for many sizes."""

import json
import subprocess
import sys

import pytest
import torch

from flashlib.kernels import backward, forward
from flashlib.kernels.launch import planning

# Every launch is looked up as Triton does, for a GPU that is absent, but not carried out.
COUNT = """
import json
import sys
import torch
from triton import JITFunction
import flashlib.kernels
from flashlib.private_apis import of_compiler
from flashlib.kernels.launch import inputs, tile_sizes
of_compiler.pretend_gpu(90)
tile_sizes.room = lambda device: tile_sizes.Room(227 * 1024, 132, tma=True)
inputs.check_device = lambda **_: None
from flashlib.kernels import backward, forward

def look_up(kernel, *args, grid, warmup, **options):
    _, specialization, rest = kernel.device_caches[90][-1](*args, **options)
    found.setdefault(kernel.__name__, set()).add(str((specialization, rest)))

JITFunction.run = look_up
for d, B, H, causal in json.loads(sys.argv[1]):
    found = {}
    for N in range(1, 301):
        X = torch.empty(B, H, N, d, dtype=torch.bfloat16)
        lse = torch.empty(B, H, N)
        forward.attention(X, X, X, causal=causal)
        backward.backward(X, X, X, X, lse, X, causal=causal)
    print(json.dumps({name: len(variants) for name, variants in found.items()}))
"""
CALLS = [(64, 1, 8, False), (64, 1, 8, True), (128, 1, 100, False), (40, 2, 3, False), (17, 2, 3, True)]


@pytest.mark.process
def test_at_most_two_kernels_are_compiled_for_300_lengths():
    command = [sys.executable, "-c", COUNT, json.dumps(CALLS)]
    env = {"TRITON_INTERPRET": "0", "CUDA_VISIBLE_DEVICES": "", "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert not done.returncode, done.stderr
    for call, line in zip(CALLS, done.stdout.splitlines(), strict=True):
        variants = json.loads(line)
        assert variants.keys() == {"_forward", "_prepare", "_dkv", "_dq"}
        assert max(variants.values()) <= 2, (call, variants)


def test_plans_are_forgotten_before_they_are_too_many():
    plans = planning.Plans()
    for n in range(plans.MOST + 1):
        plans.keep(n, "a plan")
    assert len(plans) == 1 and plans[plans.MOST] == "a plan"


def test_a_call_with_anything_but_tensors_has_no_key_and_is_not_kept():
    plans = planning.Plans()
    assert plans.key(([1.0],)) is None
    assert plans.keep(None, "a plan") == "a plan" and not plans


def test_a_key_distinguishes_equal_options_of_different_types():
    plans, X = planning.Plans(), torch.zeros(3)
    keys = [plans.key((X,), *options) for options in ((1, None), (True, None), (1, False), (1, 0), (1,))]
    assert None not in keys and len(set(keys)) == len(keys)
    assert plans.key((X,), 1.0) is None and plans.key((X,), [1]) is None


@pytest.mark.parametrize("shape, strides", [
    ((1, 1, 1, 16), (16, 16, 1, 1)),
    ((2, 1, 5, 16), (80, 3, 16, 1)),
    ((1, 3, 5, 32), (7, 160, 32, 1)),
    ((1, 3, 1, 16), (0, 16, 1, 1)),
])  # fmt: skip
def test_the_stride_of_an_axis_of_size_1_does_not_matter(shape, strides, device):
    X = torch.empty_strided(shape, strides, device=device).normal_()
    assert X.is_contiguous() and planning.resolve_descriptors(True, X, X.half())
    described = planning.describe(X, 16, 32).strides
    assert all(s > 0 and s * X.element_size() % 16 == 0 for s in described[:3]) and described[3] == 1
    plain = X.clone(memory_format=torch.contiguous_format)
    given, expected = (forward.attention(Y, Y, Y, descriptors=ways) for Y, ways in ((X, True), (plain, False)))
    torch.testing.assert_close(given.O, expected.O)
    dO = torch.ones_like(plain)
    given, expected = (
        backward.backward(Y, Y, Y, *expected, dO, descriptors=ways) for Y, ways in ((X, True), (plain, False))
    )
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(given, expected, strict=True))


@pytest.mark.parametrize("strides", [(2560, 640, 16, 1), (2560, 16, 64, 1), (0, 640, 16, 1), (5120, 1280, 32, 2)])
@pytest.mark.parametrize("out_dtype", [None, torch.float32])
def test_gradients_are_stored_head_after_head_whatever_the_strides_of_Q_K_and_V(strides, out_dtype, device):
    """If these are too, memory is allocated in a shorter way."""
    Q, K, V = (torch.empty_strided((1, 4, 40, 16), strides, device=device).normal_().half() for _ in range(3))
    Q, K, V = (torch.empty_strided(X.shape, strides, dtype=X.dtype, device=device).copy_(X) for X in (Q, K, V))
    O, lse = forward.attention(Q, K, V)
    grads = backward.backward(Q, K, V, O, lse, torch.ones_like(O), out_dtype=out_dtype)
    plain = [X.clone(memory_format=torch.contiguous_format) for X in (Q, K, V)]
    expected = backward.backward(*plain, O, lse, torch.ones_like(O), out_dtype=out_dtype)
    for dX, dY in zip(grads, expected, strict=True):
        assert dX.stride() == torch.empty(Q.shape).stride() and dX.dtype == (out_dtype or Q.dtype)
        assert torch.equal(dX, dY)


@pytest.mark.parametrize("strides", [(160, 80, 0, 1), (160, 80, 17, 1), (161, 80, 16, 1)])
def test_other_strides_matter(strides, device):
    X = torch.empty_strided((2, 2, 5, 16), strides, dtype=torch.bfloat16, device=device)
    with pytest.raises(ValueError, match="descriptors=True takes tensors"):
        planning.resolve_descriptors(True, X)


@pytest.mark.parametrize("shape", [(5, 3, 32), (5, 1, 32), (1, 3, 16)])
def test_packed_tokens_are_described_as_one_sequence(shape):
    X = torch.zeros(shape)
    given, expected = (planning.describe(Y, 16, 32) for Y in (X, X.transpose(0, 1)[None]))
    assert tuple(given.shape) == tuple(expected.shape) and given.block_shape == expected.block_shape
    sides = zip(given.shape, given.strides, expected.strides, strict=True)
    assert all(stride == other for n, stride, other in sides if n > 1)


@pytest.mark.gpu
def test_hooks_see_every_launch():
    """Profilers learn from hooks what ran; without hooks a launch skips that work."""
    Q, K, V = torch.randn(3, 1, 2, 40, 32, device="cuda", dtype=torch.float16)
    before = forward.attention(Q, K, V)
    seen = []
    hooks = planning.triton.knobs.runtime.launch_enter_hook

    def see(told):
        seen.append(told.get()["name"])

    hooks.add(see)
    try:
        during = [forward.attention(Q, K, V) for _ in range(3)]
    finally:
        hooks.remove(see)
    assert seen == ["_forward"] * 3
    after = forward.attention(Q, K, V)
    for given in (*during, after):
        assert torch.equal(given.O, before.O) and torch.equal(given.lse, before.lse)
    assert len(seen) == 3
