"""The rungs of the ladder, and the finished kernel, launched in the interpreter that runs learners' kernels."""

import importlib

import pytest

from flashlib.kernels.hopper import forward, ladder, launch
from flashlib.kernels.hopper.interpreter import launched
from tests.kernels.hopper.test_ladder import RUNGS, exact, inputs
from tests.kernels.hopper.test_ladder import check as check_close

# B, H, H_k, N_q, N_k, d, causal
PROBLEMS = [(1, 2, 1, 140, 211, 64, True), (1, 1, 1, 131, 333, 64, False), (1, 1, 1, 77, 257, 128, False)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("name", [*RUNGS, "forward"])
def test_our_own_kernels_are_right_where_learners_kernels_run(name, problem, monkeypatch):
    monkeypatch.setattr(launch, "INTERPRETED", False)
    monkeypatch.setattr(launch.which_gpu, "capability", lambda device: (9, 0))
    module, ran = forward if name == "forward" else importlib.import_module(f"{ladder.__name__}.{name}"), []
    with launched.taken(lambda *noted: None, ran):
        found = module.attention(*inputs(*problem[:-1]), causal=problem[-1])
    assert ran and all(one.whole for one in ran), [one.fault for one in ran]
    check_close(found, exact(problem), 0.02)
