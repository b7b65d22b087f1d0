"""Verify, time, record. It knows no algorithm: its callers decide what is compared."""

import contextlib
import datetime
import functools
import itertools
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch

say = functools.partial(print, flush=True)  # a line at a time: an interrupted run has shown its results so far


@contextlib.contextmanager
def stopwatch(what: str) -> Iterator[None]:
    """Print how long the block took."""
    start = time.perf_counter()
    yield
    say(f"{what}: {time.perf_counter() - start:.0f} s")


def verify(
    name: str, given: torch.Tensor | np.ndarray, exact: torch.Tensor | np.ndarray,
    plain: torch.Tensor | np.ndarray, *, roundings: int = 1,
) -> None:  # fmt: skip
    """Raise AssertionError unless the largest error of `given` is at most twice that of a plain implementation.

    given, plain: tensors or arrays of one dtype; exact: the same in fp64. NaN never passes.
    roundings: how often `given` rounds S, which a plain implementation does once; the bound grows with it.
    """
    given, plain, exact = map(torch.as_tensor, (given, plain, exact))
    error, bound = ((X.double() - exact).abs().max().item() for X in (given, plain))
    bound *= 2 * roundings
    if not error <= bound:
        raise AssertionError(f"{name} is wrong: error {error:.3g}, at most {bound:.3g} accepted")


def works(name: str, check: Callable[[], object], *, needed: bool) -> bool:
    """Return whether check() raises nothing; if it does, print why, or raise it again if needed."""
    try:
        check()
    except Exception as error:  # whatever a compiler, a driver or a library raises
        if needed:
            raise
        say(f"{name:>15}: none, {reason(error)}")
        return False
    return True


def reason(error: BaseException) -> str:
    """Return what went wrong, in one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def median_ms(run: Callable[[], object], *, rep_ms: int = 200) -> float:
    """Return the median time of run() on the GPU in milliseconds: warmed up, by events, L2 cleared in between."""
    import triton  # not before flashlib.kernels, which chooses between compiler and interpreter

    return triton.testing.do_bench(run, warmup=50, rep=rep_ms, return_mode="median")


def captured(run: Callable[[], object], times: int) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of this many calls of run(), which replays their launches without Python."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            run()
    return graph


def side_by_side(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the time of each run on the GPU, in milliseconds, by name.

    They are timed in turn, then again in the opposite order. The smaller of the two medians counts, because
    earlier work on the GPU, or its temperature, can only add to a time (by up to a tenth, as measured).
    """
    forth = {name: median_ms(run, rep_ms=100) for name, run in runs.items()}
    back = {name: median_ms(runs[name], rep_ms=100) for name in reversed(runs)}
    return {name: min(forth[name], back[name]) for name in runs}


def replayed_us(graphs: dict[str, torch.cuda.CUDAGraph], *, turns: int = 7) -> dict[str, float]:
    """Return the median time of a replay of each graph, in microseconds, by name; the order of a turn alternates.

    Quicker than `side_by_side`, for many graphs that take about a millisecond each.
    """
    taken: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(turns):
        events = {name: [torch.cuda.Event(enable_timing=True) for _ in range(2)] for name in graphs}
        for name in reversed(graphs) if turn % 2 else graphs:
            events[name][0].record()
            graphs[name].replay()
            events[name][1].record()
        torch.cuda.synchronize()
        for name, (start, end) in events.items():
            taken[name].append(start.elapsed_time(end) * 1e3)
    return {name: float(np.median(times)) for name, times in taken.items()}


def compare(names: Iterable[str], runs: dict[str, Callable[[], object]], flops: float) -> dict:
    """Return {"tflops": {name: ...}, "mb": {name: ...}}, with None for names without a run.

    runs: functions by name, each of `flops` operations. mb: see `cuda_peak_bytes`.
    """
    tflops = {name: round(flops / ms / 1e9, 1) for name, ms in side_by_side(runs).items()}
    mb = {name: round(cuda_peak_bytes(run) / 1e6, 1) for name, run in runs.items()}
    return {"tflops": {name: tflops.get(name) for name in names}, "mb": {name: mb.get(name) for name in names}}


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak memory of NumPy's arrays during run() in bytes, beyond what they held before."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def torch_peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak memory of torch's CPU tensors during run() in bytes, beyond what they held before."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler prints that it starts and stops
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as prof:
        run()
    events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = itertools.accumulate(e.nbytes() for e in sorted(events, key=lambda e: e.start_ns()))
    return max(held, default=0)


def cuda_peak_bytes(run: Callable[[], object]) -> int:
    """Return torch's peak GPU memory during run() in bytes, beyond what it held before and the result.

    run returns a tensor, or a tuple of tensors.
    """
    run()  # the first call also creates handles and workspaces, which persist
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = run()
    torch.cuda.synchronize()
    returned = sum(X.untyped_storage().nbytes() for X in (out if isinstance(out, tuple) else (out,)))
    return torch.cuda.max_memory_allocated() - before - returned


def cpu_environment() -> dict:
    """Return what every number measured on a CPU depends on: the CPU's name, versions and the date."""
    try:
        text = Path("/proc/cpuinfo").read_text()  # Linux; elsewhere the platform knows the name
        cpu = next(line.partition(": ")[2] for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor()
    return {
        "cpu": cpu,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"],
        "date": datetime.date.today().isoformat(),
    }


def environment() -> dict:
    """Return what every number measured on a GPU depends on: the device, versions and the date."""
    import triton

    return {
        "gpu": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),  # a special type
        "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "date": datetime.date.today().isoformat(),
    }


def capability() -> int | str:
    """Return the compiler's name for the current GPU: 90 for a capability of 9.0, "gfx942" for an MI300X."""
    if torch.version.hip:
        return torch.cuda.get_device_properties().gcnArchName.partition(":")[0]
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def watch(steps: Iterable) -> tuple[list, list, int]:
    """Return what a generator yields, the GPU's milliseconds for each item, and torch's peak memory in bytes."""
    torch.cuda.reset_peak_memory_stats()
    results, events = [], [torch.cuda.Event(enable_timing=True)]
    events[0].record()
    for result in steps:
        results.append(result)
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
    torch.cuda.synchronize()
    ms = [start.elapsed_time(end) for start, end in itertools.pairwise(events)]
    return results, ms, torch.cuda.max_memory_allocated()


def write(path: str | Path, record: dict) -> None:
    """Write a record as JSON, with each row of its lists on one line, so that a new run makes a readable diff."""

    def text(value):
        if not isinstance(value, list):
            return json.dumps(value)
        return "[\n" + ",\n".join("  " + json.dumps(row) for row in value) + "\n ]"

    members = ",\n".join(f" {json.dumps(key)}: {text(value)}" for key, value in record.items())
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("{\n" + members + "\n}\n", encoding="utf-8")
