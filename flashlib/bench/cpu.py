"""Time FlashAttention in NumPy against plain NumPy, on this CPU: one head, fp32, d = 64.

    python -m flashlib.bench.cpu --out run.json

Every result is verified before it is timed. Plain NumPy is the usual three lines, `plain` in this file. Both use
one thread, since NumPy would use more for matrix products only, and how well depends on the library that it was
built with. Time is the median of several runs, taken in turns; `system_ms` of it was spent in the operating
system, mostly to provide fresh memory. Memory is the peak that NumPy held, without Q, K and V.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib import naive, tiled
from flashlib.learner.one_thread import ONE_THREAD

D = 64
SIZES = (1024, 2048, 4096, 8192, 16384)
BLOCKS = ((64, 64), (128, 128), (256, 256), (512, 512), (1024, 512))


def plain(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool) -> np.ndarray:
    """Attention as it is usually written in NumPy: the scores, their softmax, the weighted sum."""
    S = Q @ K.T * D**-0.5
    if causal:
        S = np.where(np.tri(len(Q), len(K), dtype=bool), S, -np.inf)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    P = P / P.sum(axis=1, keepdims=True)
    return P @ V


def exact(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool, rows: int = 1024) -> np.ndarray:
    """Return O in fp64, a few rows at a time: all scores of the longest sequence would take gigabytes."""
    Q, K, V = (X.astype(np.float64) for X in (Q, K, V))
    parts = []
    for r in range(0, len(Q), rows):
        n_keys = r + rows if causal else len(K)
        parts.append(naive.attention(Q[r : r + rows], K[:n_keys], V[:n_keys], causal=causal).O)
    return np.concatenate(parts)


def milliseconds(run: Callable[[], object]) -> tuple[float, float]:
    """Return the time of run(), and how much of that was spent in the operating system."""
    start, system = time.perf_counter(), os.times().system
    run()
    return 1e3 * (time.perf_counter() - start), 1e3 * (os.times().system - system)


def measure(N: int, causal: bool, turns: int) -> dict:
    """Return time and peak memory of plain NumPy, and of tiled.attention for each of BLOCKS."""
    from flashlib.bench.common import harness

    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((N, D), dtype=np.float32) for _ in range(3))
    runs: dict = {None: partial(plain, Q, K, V, causal)}
    for B_r, B_c in BLOCKS:
        runs[B_r, B_c] = lambda B_r=B_r, B_c=B_c: tiled.attention(Q, K, V, B_r=B_r, B_c=B_c, causal=causal).O
    O, O_plain = exact(Q, K, V, causal), runs[None]()
    for blocks, run in runs.items():
        harness.verify(f"tiled.attention with B_r, B_c = {blocks}, N = {N}, causal = {causal}", run(), O, O_plain)
    times = [[milliseconds(run) for run in runs.values()] for _ in range(turns)]
    plain_row, *rows = (
        {"ms": round(ms, 2), "system_ms": round(system_ms), "peak_bytes": harness.peak_bytes(run)}
        for (ms, system_ms), run in zip(np.median(times, axis=0), runs.values(), strict=True)
    )
    tiles = [{"B_r": B_r, "B_c": B_c} | row for (B_r, B_c), row in zip(BLOCKS, rows, strict=True)]
    return {"N": N, "causal": causal, "plain": plain_row, "tiled": tiles}


def show(row: dict) -> None:
    """Print the row of one size: plain NumPy, then each block size with its ratios to it."""
    plain_ms, plain_bytes = row["plain"]["ms"], row["plain"]["peak_bytes"]
    print(f"{row['N']:6}  {row['causal']!s:6}  plain      {plain_ms:9.1f}{plain_bytes / 1e6:15.1f}")
    for tile in row["tiled"]:
        ratios = f"{tile['ms'] / plain_ms:5.2f}", f"{tile['peak_bytes'] / plain_bytes:6.1%}"
        blocks = f"{tile['B_r']} x {tile['B_c']}"
        print(f"{'':16}{blocks:11}{tile['ms']:9.1f}  {ratios[0]}{tile['peak_bytes'] / 1e6:8.1f}  {ratios[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.cpu", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="N up to 2048 only: some ten seconds")
    args = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # NumPy reads them once, when it is loaded
        command = [sys.executable, "-m", "flashlib.bench.cpu", *sys.argv[1:]]
        sys.exit(subprocess.call(command, env={**os.environ, **ONE_THREAD}))

    from flashlib.bench.common import harness  # it imports torch, which the first process does not need

    record = {**harness.cpu_environment(), "threads": 1, "dtype": "float32", "d": D, "rows": []}
    print(", ".join(f"{key} {value}" for key, value in record.items() if key != "rows"))
    print("     N  causal  B_r x B_c         ms  ratio      MB   ratio")
    for N in SIZES[:2] if args.quick else SIZES:
        for causal in (False, True):
            record["rows"].append(measure(N, causal, turns=3 if args.quick or N > 8192 else 7))
            show(record["rows"][-1])
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
