"""The benchmark in eight bits: a row says what was timed, a wrong result is not timed, and errors are right."""

import math

import pytest
import torch

from flashlib import gluon, torch_ref
from flashlib.bench import fp8
from flashlib.bench.common import harness
from flashlib.bench.common.problem import Size, tensors
from tests.tiers import amounts

SIZE = Size(1, 2, 2, 150, 64, True)


@pytest.fixture
def on_a_cpu(monkeypatch):
    """The kernel in our interpreter, and no clock: speeds are 1, 2, ...; cuDNN's is missing."""

    def clock(names, runs, flops):
        return {"tflops": {name: 1.0 + at if name in runs else None for at, name in enumerate(names)}, "mb": {}}

    right = torch_ref.attention
    bf16 = lambda Q, K, V, causal: right(Q.float(), K.float(), V.float(), causal=causal).O  # noqa: E731
    monkeypatch.setattr(harness, "compare", clock)
    monkeypatch.setattr(fp8, "pass_us", lambda *given: {"fp8": 1.0})
    monkeypatch.setattr(fp8, "tensors", lambda size: tensors(size, device="cpu"))
    monkeypatch.setitem(fp8.peers.PEERS, "sdpa_cudnn", bf16)
    real = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *shape, device=None, **more: real(*shape, **more))
    monkeypatch.setattr(fp8, "HEADS", 2)
    with gluon.on_cpu(seed=0):
        yield


def test_a_row_says_what_was_timed(on_a_cpu, capsys):
    torch.manual_seed(0)
    row = fp8.measure(SIZE)
    assert (row["d"], row["N"], row["H"], row["causal"]) == (64, 150, 2, True)
    assert {name for name, speed in row["tflops"].items() if speed is None} == {"cudnn_fp8"}
    assert "cudnn_fp8: none" in capsys.readouterr().out
    (both,) = fp8.merged([[row], [row]])
    assert both["runs"]["fp8"] == [1.0, 1.0] and both["tflops"]["cudnn_fp8"] is None
    faster = both | {"tflops": dict.fromkeys(fp8.NAMES, 4.0) | {"fp8": 2.0}}
    assert "fp8 / cudnn_fp8: geometric mean 0.500, smallest 0.500" in fp8.summary([faster])


def test_a_wrong_result_is_not_timed(on_a_cpu, monkeypatch):
    right = fp8.ours
    monkeypatch.setattr(fp8, "ours", lambda small, causal, **changed: right(small, not causal, **changed))
    with pytest.raises(AssertionError, match="fp8 is wrong: rms error"):
        fp8.measure(SIZE)


@pytest.mark.parametrize("amount, kind", amounts(fp8.KINDS, few=["positive"]))
def test_errors_are_against_fp64_on_the_same_tensors(kind, amount, on_a_cpu):
    torch.manual_seed(0)
    row = fp8.errors(kind, 130)
    error = row["error"]
    assert row["kind"] == kind and ("bias" in row) == (kind == "positive")
    assert 0 < error["sdpa_cudnn"] < 1e-5 < error["int8"] < error["fp8"] < 0.08
    if kind == "positive":
        assert error["fp8"] < error["not centred"] / 2


@pytest.mark.parametrize("causal", [False, True])
def test_the_exact_result_is_exact(causal):
    Q, K, V = (torch.randn(2, 3, 70, 16) for _ in range(3))
    expected = torch_ref.attention(Q.double(), K.double(), V.double(), causal=causal).O[-1, -2:]
    found = fp8.exact(Q, K, V, causal, 2)
    assert (found - expected).abs().max() < 1e-12
    assert math.isclose(fp8.relative_rms_error((found * 1.01)[None], found), 0.01, rel_tol=1e-6)
