"""Time FlashAttention's forward pass in bf16 on one GPU, ours and PyTorch's in one run; without a GPU, NumPy's.

What is timed without one is said in `flashlib.bench.cpu`. The sizes keep B * N = 16384 tokens and H * d = 2048.
TFLOP/s count 4 B H N^2 d operations, half of it if causal.
"""

import argparse
import itertools
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from flashlib import cost, torch_ref
from flashlib.bench import cpu, harness

TOKENS, WIDTH = 16384, 2048
SIZES = (1024, 4096, 16384)
EAGER_LIMIT = 4096  # S and P of longer sequences take tens of gigabytes


def sdpa(backend, Q, K, V, causal):
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(Q, K, V, is_causal=causal)  # N_q = N_k: top-left is bottom-right


def eager(Q, K, V, causal):
    S = Q @ K.mT / math.sqrt(Q.shape[-1])
    if causal:
        S = S.masked_fill(torch.ones(S.shape[-2:], dtype=torch.bool, device=S.device).triu(1), -torch.inf)
    return S.softmax(dim=-1) @ V


def ours(Q, K, V, causal):
    from flashlib.kernels import forward  # only where there is a GPU: Triton may not be installed

    return forward.attention(Q, K, V, causal=causal).O


PEERS = {
    "ours": ours,
    "sdpa_flash": lambda *args: sdpa(SDPBackend.FLASH_ATTENTION, *args),
    "sdpa_cudnn": lambda *args: sdpa(SDPBackend.CUDNN_ATTENTION, *args),
    "eager": eager,
}


def measure(d, causal, N) -> dict:
    """Return TFLOP/s of every peer at one size, each verified on one head before it is timed."""
    B, H = TOKENS // N, WIDTH // d
    Q, K, V = (torch.randn(B, H, N, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    one_head = [X[-1:, -1:] for X in (Q, K, V)]
    exact = torch_ref.attention(*(X.double() for X in one_head), causal=causal).O
    plain = torch_ref.attention(*one_head, causal=causal).O
    tflops = {}
    for name, run in PEERS.items():
        if name == "eager" and N > EAGER_LIMIT:
            tflops[name] = None
            continue
        harness.verify(f"{name} at d={d}, causal={causal}, N={N}", run(Q, K, V, causal)[-1:, -1:], exact, plain)
        ms = harness.median_ms(lambda run=run: run(Q, K, V, causal))
        tflops[name] = round(B * H * cost.flops(N, N, d, causal=causal) / ms / 1e9, 1)
    return {"d": d, "causal": causal, "N": N, "tflops": tflops}


def main():
    if not torch.cuda.is_available():
        print(
            "No CUDA device here: NumPy is timed on the CPU. Recorded GPU runs are in notebooks/data.", flush=True
        )
        return cpu.main()
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="N = 4096 only")
    args = parser.parse_args()

    torch.manual_seed(0)
    record = {**harness.environment(), "dtype": "bfloat16", "rows": []}
    print(", ".join(f"{key} {value}" for key, value in record.items() if key != "rows"))
    print("TFLOP/s\n  d  causal      N" + "".join(f"{name:>12}" for name in PEERS) + "   ours / sdpa_flash")
    ratios = []
    for d, causal, N in itertools.product((64, 128), (False, True), (4096,) if args.quick else SIZES):
        row = measure(d, causal, N)
        record["rows"].append(row)
        values = row["tflops"].values()
        ratios.append(row["tflops"]["ours"] / row["tflops"]["sdpa_flash"])
        cells = "".join(f"{'-' if value is None else value:>12}" for value in values)
        print(f"{d:3}  {causal!s:6} {N:6}{cells}   {ratios[-1]:.2f}", flush=True)
    print(f"geometric mean of ours / sdpa_flash: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
