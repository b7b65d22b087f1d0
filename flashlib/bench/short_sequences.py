"""Short sequences: the time of the kernel itself, of a launch on the CPU, and of a call in a loop.

`in_graphs`, the record's `short`: 16 heads, d = 128, the forward pass.

    graph_us  microseconds of one call in a CUDA graph, which replays launches without Python: the GPU's time
    host_us   microseconds that the CPU needs for a call while the GPU is idle, without waiting for it: checks,
              choice of tiles, tensor descriptors, Triton's launcher

`calls`, the record's `calls`: 8 heads, B = 1, no mask; "forward", and "both", the forward pass with its gradients
by torch.autograd.grad.

    host_us   as above
    loop_us   in some rows: microseconds for each of many calls that follow each other, as in a user's loop, until
              the GPU has done the last one: the CPU's time or the GPU's, whichever is longer

SDPA's backend is chosen once around the calls, not in each.
"""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import median

import torch
from torch.nn.attention import sdpa_kernel

from flashlib.bench.common import harness
from flashlib.bench.common.peers import BACKENDS, BACKWARD_PEERS, PEERS, chosen_sdpa
from flashlib.bench.common.problem import BenchProblem, Size

SHAPES = [(B, N) for N in (128, 256, 512) for B in (1, 4)]
HEADS, D = 16, 128
REPLAYS = 20  # calls in a graph: one kernel takes a few microseconds, less than its overhead
NAMES = ("ours", "sdpa_flash", "sdpa_cudnn")

CALL_HEADS = 8
CALLS = [(which, d, N) for which in ("forward", "both") for d in (64, 128) for N in (128, 512)]
IN_A_LOOP = {"d": 128, "N": 512}
LOOP_NAMES = (*NAMES, "flex")
TURNS = 10


def graph_us(run: Callable[[], object]) -> float:
    """Return the time of run() on the GPU in microseconds, the median of replays of a CUDA graph."""
    graph = harness.captured(run, REPLAYS)
    return harness.median_ms(graph.replay, rep_ms=50) * 1e3 / REPLAYS


def host_us(runs: dict[str, Callable[[], object]], *, calls: int = 40) -> dict[str, float]:
    """Return by name the CPU time of one call of each of `runs`, without waiting for the GPU."""

    def each(run):
        for _ in range(calls):
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            yield time.perf_counter() - start

    return _by_turns(runs, each)


def loop_us(runs: dict[str, Callable[[], object]], *, calls: int = 100) -> dict[str, float]:
    """Return by name the time per call of each of `runs`, for many calls in a row, until the GPU is done."""

    def in_a_row(run):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        yield (time.perf_counter() - start) / calls

    return _by_turns(runs, in_a_row)


def _by_turns(runs, seconds) -> dict[str, float]:
    """Return by name the median of seconds(run) for each of `runs`, in microseconds.

    They take turns, because the speed of a shared CPU can change by a factor of two within seconds.
    """
    times = {name: [] for name in runs}
    for _ in range(TURNS):
        for name, run in runs.items():
            with backend_of(name):
                run()
                times[name] += seconds(run)
    return {name: round(median(found) * 1e6, 1) for name, found in times.items()}


def backend_of(name: str) -> AbstractContextManager:
    return sdpa_kernel(BACKENDS[name]) if name in BACKENDS else contextlib.nullcontext()


def in_graphs() -> list:
    """Measure all short shapes, print the results and return their rows."""
    harness.say(f"{HEADS} heads, d = {D}: microseconds in a CUDA graph, and on the CPU for a call")
    harness.say("   B     N  causal" + "".join(f"{name:>24}" for name in NAMES))
    rows = []
    for B, N in SHAPES:
        for causal in (False, True):
            row = in_graph(B, N, causal)
            rows.append(row)
            cells = "".join(f"{row['graph_us'][name]!s:>12}{row['host_us'][name]!s:>12}" for name in NAMES)
            harness.say(f"{B:4} {N:5}  {causal!s:6}{cells}")
    return rows


def in_graph(B: int, N: int, causal: bool) -> dict:
    """Return the row of one shape, each kernel verified before it is timed."""
    problem = BenchProblem(Size(B, HEADS, HEADS, N, D, causal), whole=True)
    row: dict = {"B": B, "H": HEADS, "N": N, "d": D, "causal": causal}
    row |= {"graph_us": dict.fromkeys(NAMES), "host_us": dict.fromkeys(NAMES)}
    runs = {}
    for name in NAMES:
        run = problem.run(chosen_sdpa if name in BACKENDS else PEERS[name])

        def graph(name=name, run=run):
            problem.verify(f"{name} at B={B}, N={N}, causal={causal}", run())
            row["graph_us"][name] = round(graph_us(run), 2)

        with backend_of(name):
            if harness.works(name, graph, needed=name == "ours"):
                runs[name] = run
    row["host_us"] |= host_us(runs)
    return row


def calls() -> list:
    """Measure the times of calls, print them and return the rows."""
    harness.say(f"B = 1, {CALL_HEADS} heads: microseconds on the CPU for a call, and for a call in a loop")
    harness.say("            d     N" + "".join(f"{name:>24}" for name in LOOP_NAMES))
    rows = []
    for which, d, N in CALLS:
        row = call(which, d, N)
        rows.append(row)
        loop = row.get("loop_us", {})
        cells = "".join(f"{row['host_us'].get(name)!s:>12}{loop.get(name)!s:>12}" for name in LOOP_NAMES)
        harness.say(f"{which:9}{d:4} {N:5}{cells}")
    return rows


def call(which: str, d: int, N: int, device: str = "cuda") -> dict:
    """Return the row of one kind of call, each verified on one head before it is timed."""
    both = which == "both"
    problem = BenchProblem(Size(1, CALL_HEADS, CALL_HEADS, N, d, False), gradients=both, device=device)
    leaves = [X.requires_grad_(both) for X in problem.tensors]
    looped = {"d": d, "N": N} == IN_A_LOOP
    row: dict = {"pass": which, "B": 1, "H": CALL_HEADS, "N": N, "d": d, "causal": False}
    peers = BACKWARD_PEERS if both else PEERS
    runs: dict[str, Callable[[], object]] = {}
    for name in LOOP_NAMES if looped else NAMES:
        attention = chosen_sdpa if name in BACKENDS else peers[name]

        def run(attention=attention):
            O = attention(*leaves, False)
            return torch.autograd.grad(O, leaves, problem.dO) if both else O

        def check(name=name, run=run):
            problem.verify(f"{name} at d={d}, N={N}", run())

        with backend_of(name):
            if harness.works(name, check, needed=name == "ours"):
                runs[name] = run
    row["host_us"] = dict.fromkeys(NAMES) | host_us({name: runs[name] for name in NAMES if name in runs})
    if looped:
        row["loop_us"] = dict.fromkeys(LOOP_NAMES) | loop_us(runs)
    return row
