"""Time FlashAttention in bf16 on one GPU, ours and its peers in one run; without a GPU, NumPy's.

What is timed without one is said in `flashlib.bench.cpu`. The sizes keep B * N = 16384 tokens and H * d = 2048.
TFLOP/s count 4 B H N^2 d operations for the forward pass, 2.5 times as many for the backward pass, half of it if
causal. MB are the most that a call holds beyond its inputs and outputs.
"""

import argparse
import functools
import itertools
import math

import torch

from flashlib import cost, torch_ref
from flashlib.bench import backward, cpu, harness, short
from flashlib.bench.peers import BACKWARD_PEERS, EAGER_LIMIT, PEERS

TOKENS, WIDTH = 16384, 2048
SIZES = (1024, 4096, 16384)


def measure(B, H, N, d, causal) -> dict:
    """Return TFLOP/s and memory of every peer at one size, each verified on one head before it is timed."""
    Q, K, V = (torch.randn(B, H, N, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    one_head = [X[-1:, -1:] for X in (Q, K, V)]
    exact = torch_ref.attention(*(X.double() for X in one_head), causal=causal).O
    plain = torch_ref.attention(*one_head, causal=causal).O
    runs = {}
    for name, peer in PEERS.items():
        if name == "eager" and N > EAGER_LIMIT:
            continue
        runs[name] = functools.partial(peer, Q, K, V, causal)
        harness.verify(f"{name} at d={d}, causal={causal}, N={N}", runs[name]()[-1:, -1:], exact, plain)
    flops = B * H * cost.flops(N, N, d, causal=causal)
    return {"d": d, "causal": causal, "N": N, **harness.compare(PEERS, runs, flops)}


def main():
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
    peers, timed = (BACKWARD_PEERS, backward.measure) if args.backward else (PEERS, measure)

    torch.manual_seed(0)
    record = {**harness.environment(), "dtype": "bfloat16", "rows": []}
    print(", ".join(f"{key} {value}" for key, value in record.items() if key != "rows"))
    print("TFLOP/s\n  d  causal      N" + "".join(f"{name:>15}" for name in peers) + "   ours / sdpa_flash")
    for d, causal, N in itertools.product((64, 128), (False, True), (4096,) if args.quick else SIZES):
        row = timed(TOKENS // N, WIDTH // d, N, d, causal)
        record["rows"].append(row)
        cells = "".join(f"{'-' if value is None else value:>15}" for value in row["tflops"].values())
        print(f"{d:3}  {causal!s:6} {N:6}{cells}   {ratio(row, 'ours'):.2f}", flush=True)
    print(summary(record["rows"]))
    if not (args.quick or args.backward):
        record["short"] = short.main()
    if args.out:
        harness.write(args.out, record)


def summary(rows) -> str:
    """Return geometric means over SDPA's flash, and what is held."""
    lines = []
    for name in ("ours", "ours_fused", "sdpa_cudnn", "flex"):
        if name in rows[0]["tflops"]:
            mean = math.exp(sum(math.log(ratio(row, name)) for row in rows) / len(rows))
            lines.append(f"geometric mean of {name} / sdpa_flash: {mean:.3f}")
    for name in ("ours", "sdpa_flash"):
        held = [row["mb"][name] for row in rows]
        lines.append(f"{name} holds {min(held)} to {max(held)} MB beyond inputs and outputs")
    return "\n".join(lines)


def ratio(row, name):
    """Return the speed of a peer over that of SDPA's flash at one size."""
    return row["tflops"][name] / row["tflops"]["sdpa_flash"]


if __name__ == "__main__":
    main()
