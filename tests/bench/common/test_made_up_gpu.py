"""The harness on a made-up GPU: its memory, its clock, its graphs."""

import contextlib
import re
import sys
import weakref
from pathlib import Path

import pytest
import torch

from flashlib.bench.common import harness


class Gpu:
    """The current and peak bytes, a clock in seconds, and the calls that a graph records."""

    def __init__(self):
        self.held = self.most = 1000
        self.now, self.waited, self.captured = 0.0, -1.0, None

    def take(self, n):
        self.held += n
        self.most = max(self.most, self.held)

    def reset(self):
        self.most = self.held

    def synchronize(self):
        self.waited = self.now

    @contextlib.contextmanager
    def graph(self, into):
        assert self.waited == self.now, "a graph is captured once what was launched before is done"
        self.captured = into
        yield
        self.captured = None


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = gpu.now

        def elapsed_time(self, end):
            assert gpu.waited == gpu.now, "an event has a time once the GPU has come to it"
            return 1e3 * (end.at - self.at)

    fakes = {
        "synchronize": gpu.synchronize, "memory_allocated": lambda: gpu.held,
        "max_memory_allocated": lambda: gpu.most, "reset_peak_memory_stats": gpu.reset, "Event": Event,
        "CUDAGraph": list, "graph": gpu.graph, "get_device_capability": lambda: gpu.capability,
    }  # fmt: skip
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return gpu


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_peak_leaves_out_inputs_outputs_and_what_the_first_call_creates(outputs, gpu):
    gpu.most = 10**6  # of something before
    calls = []

    def output():
        X = torch.empty(5)
        gpu.take(X.nbytes)
        weakref.finalize(X, gpu.take, -X.nbytes)
        return X

    def run():
        calls.append(gpu.take(0 if calls else 300))  # a workspace, which stays
        out = output() if outputs == 1 else tuple(output() for _ in range(outputs))
        gpu.take(70)
        gpu.take(-70)
        gpu.now += 1
        return out

    assert harness.cuda_peak_bytes(run) == 70 and len(calls) == 2


def test_each_step_has_its_own_time_and_the_peak_is_over_all_steps(gpu):
    gpu.most = 10**6  # of something before

    def steps():
        for seconds in (1, 2, 4):
            gpu.now += seconds
            gpu.take(10 * seconds)
            yield seconds

    assert harness.watch(steps()) == ([1, 2, 4], [1e3, 2e3, 4e3], 1070)


def test_a_graph_has_the_requested_calls_after_one_that_warms_up(gpu):
    before = []

    def run():
        (before if gpu.captured is None else gpu.captured).append(1)
        gpu.now += gpu.captured is None

    assert len(harness.captured(run, 7)) == 7 and len(before) == 1


def test_a_capability_is_two_digits(gpu):
    for gpu.capability, expected in (((7, 5), 75), ((9, 0), 90), ((12, 1), 121)):
        assert harness.capability() == expected


def test_a_time_is_the_median_of_many(monkeypatch):
    testing = pytest.importorskip("triton.testing")
    of = {"median": 2.0, "mean": 9.0}
    monkeypatch.setattr(testing, "do_bench", lambda run, warmup, rep, return_mode: of[return_mode] * (rep == 70))
    assert harness.median_ms(lambda: None, rep_ms=70) == 2.0


def test_an_error_may_double_if_scores_are_rounded_twice():
    exact, plain = torch.zeros(2, dtype=torch.float64), torch.tensor([0.25, 0.0])
    given = torch.tensor([0.0, 1.0])
    harness.verify("ours", given, exact, plain, roundings=2)
    with pytest.raises(AssertionError, match="error 1, at most 0.5 accepted"):
        harness.verify("ours", given, exact, plain)


def test_a_part_is_printed_with_its_seconds(monkeypatch, capsys):
    times = iter([10.0, 52.4])
    monkeypatch.setattr(harness.time, "perf_counter", lambda: next(times))
    with harness.stopwatch("the usual sizes"):
        pass
    assert capsys.readouterr().out == "the usual sizes: 42 s\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the name is read from /proc")
def test_the_processor_has_the_name_from_the_system():
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    assert not names or harness.cpu_environment()["cpu"] == names[0] != ""
