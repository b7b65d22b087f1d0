"""Kernel tests run in the interpreter without a CUDA device; marked `gpu` they run compiled on one."""

from importlib.util import find_spec

import pytest
import torch

from tests.kernels.poison import poison

collect_ignore_glob = [] if find_spec("triton") else ["test_*"]  # no packages for macOS and Windows


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    from flashlib import kernels

    if request.param == "cpu" and not kernels.INTERPRETED:
        pytest.skip("kernels are compiled here")
    torch.manual_seed(0)
    return request.param


@pytest.fixture
def poisoned(monkeypatch):
    """Fill all memory that a launch allocates with NaN, so that an element it does not write is noticed."""
    poison(monkeypatch)


@pytest.fixture
def own_compiler(monkeypatch):
    """Give a test its own compiler, without kept answers."""
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
