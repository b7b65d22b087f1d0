"""How the passes at d = 256 are launched: the whole call on a CPU, where a launch runs the kernel's own code."""

import random

import pytest
import torch
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.kernels.hopper import backward, dkv_256, dq_256, launch, launch_256
from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.prepared import numbers
from flashlib.kernels.hopper.interpreter.run import functions, play
from flashlib.kernels.hopper.interpreter.run_backward_256 import NAMES
from flashlib.kernels.launch import planning
from tests.kernels import gradients
from tests.kernels.hopper.test_backward_interpreter import inputs

MODULES = {"_dkv": dkv_256, "_dq": dq_256}
run_on_a_gpu = planning.Launch.__call__


def here(name, x):
    """Return an argument as the interpreter takes it."""
    if isinstance(x, torch.Tensor):
        return gluon.Pointer(x)
    if not isinstance(x, TensorDescriptor):
        return x
    X = x.base.as_strided(tuple(x.shape), tuple(x.strides))
    assert list(x.block_shape[:-2]) == [1] * (X.ndim - 2) and x.shape[-1] in (256, x.strides[0])
    return gluon.Descriptor(name, X, x.block_shape[-2] if X.ndim == 4 else x.block_shape[-1])


def launched(self, *given, **options):
    """Run a launch's programs on the CPU, in the interpreter of Gluon or in Triton's."""
    name = self.kernel.__name__
    if name == "_prepare":  # in Triton's, bfloat16 is wrong
        O, dO, delta, lse, dlse, *outputs = given
        for X, found in zip(outputs, numbers(O, lse, dO, dlse, outputs[0].shape[2], delta), strict=True):
            X.copy_(found.view_as(X))
    elif name in MODULES:
        module, names = MODULES[name], self.kernel.arg_names
        arguments = dict(zip(names, (*given, *self.sizes), strict=False)) | self.constants
        assert set(arguments) == set(names), "a launch gives what the kernel takes"
        arguments = {name: here(name, x) for name, x in arguments.items()}
        for number in range(self.grid[0]):
            gl = gluon.Gluon(number, self.grid[0], random.Random(number), NAMES[name])
            play(gl, functions(gl, module)[name], arguments)
    else:
        run_on_a_gpu(self, *given, **options)


@pytest.fixture
def hopper(monkeypatch):
    """A Hopper GPU, as far as the launcher sees."""
    monkeypatch.setattr(launch, "INTERPRETED", False)
    monkeypatch.setattr(launch_256, "PLANS", planning.Plans())
    monkeypatch.setattr(planning.Launch, "__call__", launched)
    monkeypatch.setattr(launch.which_gpu, "capability", lambda device: (9, 0))
    monkeypatch.setattr(torch, "empty_like", poisoned(torch.empty_like))


def poisoned(make):
    return lambda *args, **options: make(*args, **options).fill_(torch.nan)


@pytest.mark.parametrize("out_dtype", [None, torch.float32], ids=str)
@pytest.mark.parametrize("problem", [(2, 4, 2, 70, 131, 256, True), (1, 3, 1, 137, 65, 256, False)], ids=str)
def test_a_call_has_the_right_gradients(problem, out_dtype, hopper):
    Q, K, V, O, lse, dO, dlse = inputs(*problem)
    options = {"causal": problem[-1], "out_dtype": out_dtype}
    for _ in range(2):  # the second by the plan of the first
        found = backward.backward(Q, K, V, O, lse, dO, dlse=dlse, **options)
        gradients.hold(found, Q, K, V, dO, dlse, **options)
    delta = (O.float() * dO.float()).sum(-1)
    parts = backward.backward(Q, K, V, None, lse, dO, dlse=dlse, delta=delta, **options)
    assert all(torch.equal(one, same) for one, same in zip(parts, found, strict=True))


@pytest.mark.parametrize("shapes", [(0, 5), (5, 0)])
def test_nothing_to_sum_gives_zeros(shapes, hopper):
    Q, K = (torch.ones(1, 2, N, 256).half() for N in shapes)
    found = backward.backward(Q, K, K, Q, torch.zeros(Q.shape[:3]), Q)
    assert [X.shape for X in found] == [Q.shape, K.shape, K.shape] and not any(X.any() for X in found)


def test_tensors_inside_larger_ones(hopper):
    given = []
    for X in inputs(1, 2, 2, 70, 131, 256, True)[:6]:
        if X.ndim == 3:
            given.append(X)
            continue
        B, H, N, d = X.shape
        wide = torch.full((B, N + 5, H + 1, 2 * d), torch.nan, dtype=X.dtype)
        inner = wide[:, 2 : N + 2, :H, d:].transpose(1, 2)
        given.append(inner.copy_(X))
    Q, K, V, O, lse, dO = given
    gradients.hold(backward.backward(Q, K, V, O, lse, dO, causal=True), Q, K, V, dO, causal=True)
