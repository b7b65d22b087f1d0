"""Time FlashAttention in bf16 on one GPU, ours and its peers in one run; without a GPU, NumPy's.

See `flashlib.bench.cpu` for what is timed without one. The sizes keep B * N = 16384 tokens and H * d = 2048.
TFLOP/s count 4 B H N^2 d operations for the forward pass, 2.5 times as many for the backward pass, half of them
if causal. MB are the peak memory of a call beyond its inputs and outputs.

A record has `rows`, those sizes; `more`, other d, and heads that share K and V; for the forward pass also `short`
and `calls`, see `flashlib.bench.short_sequences`. Each row lists our compiled kernels in `kernels`, see
`flashlib.bench.common.records`. A peer that does not support a size has None there.
"""

import argparse
import functools
import math
from collections.abc import Callable, Iterable

import torch

from flashlib.bench import cpu, short_sequences
from flashlib.bench.common import harness, records
from flashlib.bench.common.peers import BACKWARD_PEERS, PEERS
from flashlib.bench.common.problem import Size, measure
from flashlib.bench.common.sizes import MORE, QUICK, SIZES

FORWARD = {"forward": {}}
BACKWARD = {"backward_dkv": {}, "backward_dq": {}, "backward_fused": {}}


def table(
    sizes: Iterable[Size], measure: Callable[..., dict], peers: dict[str, Callable], kernels: dict[str, dict],
    notes: records.Notes,
) -> list:  # fmt: skip
    """Return the rows of these sizes, and print each as soon as it is known."""
    names = "".join(f"{name:>15}" for name in peers)
    harness.say(f"TFLOP/s\n  d  causal      N   heads{names}   ours / sdpa_flash")
    rows = []
    for size in sizes:
        row: dict = {"d": size.d, "causal": size.causal, "N": size.N, "B": size.B, "H": size.H_q, "H_k": size.H_k}
        notes.add(row, size.compiled, kernels)
        row |= measure(size, peers)
        rows.append(row)
        cells = "".join(f"{'-' if value is None else value:>15}" for value in row["tflops"].values())
        heads = f"{size.H_q}/{size.H_k}"
        harness.say(f"{size.d:3}  {size.causal!s:6} {size.N:6}{heads:>8}{cells}   {ratio(row, 'ours'):.2f}")
    return rows


def main() -> None:
    if not torch.cuda.is_available():
        print(
            "No CUDA device here: NumPy is timed on the CPU. Recorded GPU runs are in notebooks/data.", flush=True
        )
        return cpu.main()
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="N = 4096 only")
    parser.add_argument("--backward", action="store_true", help="the backward pass")
    args = parser.parse_args()
    peers, kernels = (BACKWARD_PEERS, BACKWARD) if args.backward else (PEERS, FORWARD)
    passes = functools.partial(measure, gradients=args.backward)

    torch.manual_seed(0)
    record = {**harness.environment(), "dtype": "bfloat16"}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    with records.Notes(harness.capability()) as notes:
        with harness.stopwatch("the usual sizes"):
            sizes = [size for size in SIZES if size.N == QUICK or not args.quick]
            record["rows"] = table(sizes, passes, peers, kernels, notes)
            harness.say(summary(record["rows"]))
        if not args.quick:
            with harness.stopwatch("other sizes"):
                others = {name: peer for name, peer in peers.items() if name != "eager"}
                record["more"] = table(MORE, passes, others, kernels, notes)
        with harness.stopwatch("still compiling"):
            notes.finish()
    save()
    if not (args.quick or args.backward):
        with harness.stopwatch("short sequences"):
            record["short"] = short_sequences.in_graphs()
        with harness.stopwatch("calls"):
            record["calls"] = short_sequences.calls()
        save()


def summary(rows: list[dict]) -> str:
    """Return the geometric means of the speed relative to SDPA's flash, and the memory in use."""
    lines = []
    for name in ("ours", "ours_fused", "sdpa_cudnn", "flex"):
        ratios = [ratio(row, name) for row in rows if row["tflops"].get(name)]
        if len(ratios) == len(rows):
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines.append(f"geometric mean of {name} / sdpa_flash: {mean:.3f}")
    for name in ("ours", "sdpa_flash"):
        held = [row["mb"][name] for row in rows]
        lines.append(f"{name} holds {min(held)} to {max(held)} MB beyond inputs and outputs")
    return "\n".join(lines)


def ratio(row: dict, name: str) -> float:
    """Return a peer's speed relative to SDPA's flash at one size."""
    return row["tflops"][name] / row["tflops"]["sdpa_flash"]


if __name__ == "__main__":
    main()
