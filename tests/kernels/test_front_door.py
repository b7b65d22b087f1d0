"""`flashlib.kernels` offers its public functions, and imports them on first use."""

import subprocess
import sys

import pytest
import torch

from flashlib import kernels


def python(code):
    """Return what `code` prints in a new Python process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_importing_the_package_imports_no_kernel():
    found = python(
        "import sys, flashlib.kernels\n"
        "print(*sorted(name for name in sys.modules if name.startswith('flashlib.kernels.')))"
    )
    assert {name.rpartition(".")[2] for name in found.split()} <= {"interpreter", "interpreter_operators"}


@pytest.mark.process
def test_each_name_is_available_after_one_import():
    names = "append", "decode", "varlen", "attention"
    told = python(
        f"from flashlib import kernels\nfor name in {names}: print(name in dir(kernels), getattr(kernels, name))"
    )
    *modules, function = told.splitlines()
    assert all(line.startswith("True <module 'flashlib.kernels.") for line in modules) and len(modules) == 3
    assert function.startswith("True <function attention")


def test_the_names_are_the_functions_of_their_modules():
    from flashlib.kernels import append, attention, autograd, decode, varlen

    assert kernels.attention is attention is autograd.attention
    assert (kernels.append, kernels.decode, kernels.varlen) == (append, decode, varlen)
    assert callable(append.append) and callable(decode.attention) and callable(varlen.attention)


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'flashlib.kernels' has no attribute 'flash'"):
        print(kernels.flash)
    with pytest.raises(ImportError, match="cannot import name 'flash'"):
        from flashlib.kernels import flash  # noqa: F401


def test_all_submodules_can_still_be_imported():
    from flashlib.kernels import autograd, backward, forward, softmax

    assert callable(forward.attention) and callable(backward.backward) and callable(softmax.softmax)
    assert autograd.forward is forward


def test_attention_has_gradients_and_a_sink(device):
    Q, K, V = (torch.randn(1, 2, 40, 16, device=device, requires_grad=True) for _ in range(3))
    kernels.attention(Q, K, V, causal=True, sink=0.0).O.sum().backward()
    assert all(X.grad.isfinite().all() for X in (Q, K, V))


def test_torch_compile_reads_through_the_door(device):
    Q = torch.randn(1, 1, 20, 16, device=device)
    compiled = torch.compile(lambda X: kernels.attention(X, X, X).O * 2, backend="eager", fullgraph=True)
    assert torch.equal(compiled(Q), kernels.attention(Q, Q, Q).O * 2)
