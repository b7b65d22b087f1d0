"""Short sequences and small batches: the time of the kernel alone, and what a launch costs on the CPU.

A CUDA graph replays a launch without Python, so its time is the GPU's. Launched from Python, a call takes as long
as the CPU needs to prepare it, if that is longer: checks, choice of tiles, tensor descriptors, Triton's launcher.
"""

import time

import torch

from flashlib import torch_ref
from flashlib.bench import harness
from flashlib.bench.peers import PEERS

SHAPES = [(B, N) for N in (128, 256, 512) for B in (1, 4)]
HEADS, D = 16, 128
REPLAYS = 20  # of one graph: a single kernel of a few microseconds is shorter than what surrounds it


def graph_us(run) -> float:
    """Return the time of run() on the GPU in microseconds, the median of replays of a CUDA graph."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPLAYS):
            run()
    return harness.median_ms(graph.replay, rep_ms=100) * 1e3 / REPLAYS


def host_us(run, *, calls=200) -> float:
    """Return the time that the CPU needs for one call of run(), in microseconds, without waiting for the GPU."""
    times = []
    for _ in range(calls):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[calls // 2] * 1e6


def measure(B, N, causal) -> dict:
    """Return microseconds of the kernel and of the CPU's part, ours and SDPA's flash."""
    Q, K, V = (torch.randn(B, HEADS, N, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    exact = torch_ref.attention(*(X.double() for X in (Q, K, V)), causal=causal).O
    plain = torch_ref.attention(Q, K, V, causal=causal).O
    row = {"B": B, "H": HEADS, "N": N, "d": D, "causal": causal, "graph_us": {}, "host_us": {}}
    for name in ("ours", "sdpa_flash"):

        def run(run=PEERS[name]):
            return run(Q, K, V, causal)

        harness.verify(f"{name} at B={B}, N={N}, causal={causal}", run(), exact, plain)
        row["graph_us"][name], row["host_us"][name] = round(graph_us(run), 2), round(host_us(run), 1)
    return row


def main() -> list:
    """Measure all short shapes, print them and return their rows."""
    print(f"short sequences, {HEADS} heads, d = {D}: microseconds in a CUDA graph, and of the CPU for a launch")
    print("   B     N  causal    graph: ours  flash  ratio    launch: ours  flash")
    rows = [measure(B, N, causal) for B, N in SHAPES for causal in (False, True)]
    for row in rows:
        graph, host = row["graph_us"], row["host_us"]
        ratio = graph["ours"] / graph["sdpa_flash"]
        print(
            f"{row['B']:4} {row['N']:5}  {row['causal']!s:6}{graph['ours']:15.2f}{graph['sdpa_flash']:7.2f}"
            f"{ratio:7.2f}{host['ours']:16.1f}{host['sdpa_flash']:7.1f}",
            flush=True,
        )
    return rows
