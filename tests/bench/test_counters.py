"""What ncu counts, and for which calls; without a GPU."""

import contextlib
from types import SimpleNamespace

import pytest
import torch

from flashlib import cost, kernels, torch_ref
from flashlib.bench import counters


@pytest.mark.parametrize("control", counters.CACHES.values())
def test_ncu_counts_every_metric_of_this_program(control, monkeypatch):
    asked, done = [], SimpleNamespace(returncode=0, stdout="printed", stderr="")
    monkeypatch.setattr(counters.subprocess, "run", lambda command, **options: asked.append(command) or done)
    monkeypatch.setattr(counters, "parse", lambda text: {"parsed": text})
    assert counters.profile(control) == {"parsed": "printed"}
    ((ncu, *options),) = asked
    assert ncu == "ncu" and options[-3:] == ["-m", "flashlib.bench.counters", "--under-profiler"]
    assert options[options.index("--cache-control") + 1] == control
    metrics = options[options.index("--metrics") + 1].split(",")
    assert metrics == [metric for metric, _ in counters.METRICS.values()]
    done.returncode = 1
    with pytest.raises(SystemExit, match="ncu failed"):
        counters.profile(control)


def test_every_call_is_verified_then_run_once_between_marks(monkeypatch):
    """One call of each kind, small, on the CPU; the profiler is off while a call is verified."""
    calls = [counters.CountedCall(name, 48, 16, False, 16, 16) for name in ("standard", "ours", "sdpa_math")]
    calls.append(counters.CountedCall("ours", 48, 16, True, 16, 16))
    said, run = [], counters.CountedCall.run

    def counted(call, *tensors):
        said.append("run")
        return run(call, *tensors)

    problem = counters.BenchProblem
    monkeypatch.setattr(counters, "CALLS", calls)
    monkeypatch.setattr(counters, "HEADS", 1)
    monkeypatch.setattr(counters.CountedCall, "run", counted)
    monkeypatch.setattr(
        counters, "BenchProblem", lambda size, dtype: problem(size, dtype=dtype, device=kernels.DEVICE)
    )
    monkeypatch.setattr(counters, "sdpa_kernel", lambda backend: contextlib.nullcontext())
    for name, fake in (("range_push", said.append), ("range_pop", lambda: said.append("pop"))):
        monkeypatch.setattr(torch.cuda.nvtx, name, fake)
    for name in ("start", "stop"):
        monkeypatch.setattr(torch.cuda.profiler, name, lambda name=name: said.append(name))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    counters.run_under_profiler()
    assert said == [word for call in calls for word in ("run", call.label, "start", "run", "stop", "pop")]
    monkeypatch.setattr(counters.CountedCall, "run", lambda call, Q, K, V: torch_ref.attention(2 * Q, K, V).O)
    with pytest.raises(AssertionError, match="is wrong"):
        counters.run_under_profiler()


@pytest.mark.parametrize("causal", [False, True])
def test_the_closed_form_is_that_of_all_heads(causal):
    of = {"B_r": 32, "B_c": 64}
    head = cost.fa2_traffic(1024, 1024, 64, dtype="float16", causal=causal, **of)
    form = counters.CountedCall("ours", 1024, 64, causal, **of).closed_form()
    assert (form.read, form.written) == (counters.HEADS * head.read, counters.HEADS * head.written)
    stored = cost.standard_traffic(1024, 1024, 64, dtype="float16")
    assert counters.CountedCall("standard", 1024, 64).closed_form().total == counters.HEADS * stored.total
    assert counters.CountedCall("sdpa_flash", 1024, 64).closed_form() is None
