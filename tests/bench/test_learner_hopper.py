"""`bench.mine` compares a kernel in Gluon with ours for Hopper: compiled anywhere, timed on such a GPU."""

from types import SimpleNamespace

import pytest
import torch

from flashlib import bench
from flashlib.bench import hopper, learner, learner_hopper
from flashlib.bench.common import harness, problem
from flashlib.bench.learner_resources import KernelReport
from flashlib.checks.engine import solutions
from flashlib.checks.engine.verdict import Outcome
from flashlib.kernels import INTERPRETED
from flashlib.kernels.compiler import learner_kernels

NUMBERS = slice(3, None)  # of a row: what a kernel takes


def test_a_function_is_recognised_by_the_kernel_that_it_names():
    assert learner_hopper.is_in_gluon(solutions.solution("hopper_attention"))
    assert not learner_hopper.is_in_gluon(solutions.solution("attention"))
    assert not any(map(learner_hopper.is_in_gluon, (3, None, torch.softmax, lambda Q, K, V, causal: Q)))


@pytest.mark.compiles
@pytest.mark.skipif(not INTERPRETED, reason="where there is a GPU, kernels are timed")
def test_the_solution_is_compiled_beside_ours_and_spills_nothing():
    table = bench.mine(solutions.solution("hopper_attention"))
    assert [row[1:3] for row in table.rows] == [
        ("yours", "hopper_kernel"), ("ours", "hopper_forward"), ("portable", "forward"),
    ] * 2  # fmt: skip
    for row in table.rows:
        if row[1] == "yours":
            registers, spilled, shared, warps, programs = row[NUMBERS]
            assert spilled == 0 and 0 < registers <= 168 and shared < 227 and (warps, programs) == (12, 1)
    assert "the producer loads ahead" in table.sentences[1]


def test_a_function_whose_kernels_call_a_stub_is_not_solved_yet():
    source = solutions.program("hopper_attention").source
    begun = source.replace("    divisor =", "    raise NotImplementedError\n    divisor =")
    assert begun != source
    assert bench.mine(solutions.build("hopper_attention", begun)).outcome == Outcome.NOT_SOLVED


@pytest.mark.compiles
@pytest.mark.parametrize("d", learner_hopper.DS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_solution_moves_registers_to_its_consumers(d, causal):
    (report,) = learner_kernels.reports(solutions.solution("hopper_attention"), "attention", d=d, causal=causal)
    assert report.fits and not report.spilled
    for text in (
        "setmaxnreg.inc.sync.aligned.u32 \t240",
        "setmaxnreg.dec.sync.aligned.u32 \t24",
        "wgmma.mma_async",
    ):
        assert text in report.ptx, text


def compiled(answer):  # noqa: ARG001
    """Stands in for the compiler."""
    numbers = {
        "registers": 1,
        "spilled": 0,
        "shared": 1024,
        "num_warps": 4,
        "programs": 1,
        "limited_by": ["warps"],
        "has_roles": True,
    }
    return [KernelReport("d = 64", "yours", SimpleNamespace(kernel="k", **numbers))]


def test_it_is_timed_with_the_peers_on_a_hopper_gpu(monkeypatch):
    """Every size is measured once, with all available peers; of a function that returns (O, lse), O is used."""
    asked = []

    def measure(size, peers):
        asked.append(size)
        X = torch.zeros(1, 1, 2, size.d)
        assert peers["yours"](X, X, X, size.causal) is X
        return {"tflops": {name: 100.0 if name != "hopper" else 200.0 for name in peers}}

    def my_attention(Q, K, V, causal):  # noqa: ARG001
        return Q, None

    monkeypatch.setattr(problem, "measure", measure)
    monkeypatch.setattr(hopper, "PEERS", {name: None for name in ("hopper", "ours", "sdpa_cudnn")})
    speeds = learner_hopper.timed(my_attention)
    assert len(asked) == len(set(asked)) == 8 and {size.N for size in asked} == set(learner_hopper.LENGTHS)
    assert {size.B * size.N * size.H_q * size.d for size in asked} == {16384 * 2048}  # none of them is empty
    assert all(list(speed) == ["yours", "hopper", "ours", "sdpa_cudnn"] for speed in speeds.values())
    monkeypatch.setattr(learner_hopper, "timed", lambda answer: speeds)
    monkeypatch.setattr(harness, "capability", lambda: 90)
    environment = {"gpu": "H100", "torch": "2", "triton": "3", "date": "now"}
    monkeypatch.setattr(harness, "environment", lambda: environment)
    monkeypatch.setattr(learner_hopper, "compiled", compiled)
    table = learner._gluon(my_attention, interpreted=False)
    assert table.then.rows == [compiled(None)[0].row]
    assert len(table.rows) == 8 and {row[-1] for row in table.rows} == {0.5} and "H100" in table.title


def test_on_another_gpu_it_is_compiled(monkeypatch):
    monkeypatch.setattr(harness, "capability", lambda: 80)
    monkeypatch.setattr(learner_hopper, "compiled", compiled)
    table = learner._gluon(None, interpreted=False)
    assert "compiled for the H100 (sm_90)" in table.title and table.then is None
