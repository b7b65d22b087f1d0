"""Time small calls by the portable kernels and by Hopper's, and what a call costs the CPU.

    python -m flashlib.bench.choice --out notebooks/data/h200_choice.json

`rows`: bf16, B and H as given; "forward" or "backward". `graph_us` is the GPU's time of a call in a CUDA graph, of
which `kernels.choice` and `launch_backward.SEEN` make their limits: `chosen` is what they say, "portable" or
"hopper", of gradients that are added in any order. `seen`: the keys that a row sees on average.
`calls`: causal, H = 8 and B = 1; `host_us` as in `bench.short_sequences`, of "forward" and of "both", the forward
pass with its gradients by torch.autograd.grad. `hopper` are Hopper's kernels, wherever they take the call.
"""

import argparse
import functools
import itertools
from collections.abc import Callable, Sequence

import torch

from flashlib.bench import short_sequences
from flashlib.bench.common import harness, peers
from flashlib.bench.common.problem import BenchProblem, Size

DS = 64, 128, 256
HEADS = (1, 8), (4, 16), (16, 32)
ROWS = 64, 128, 256, 512, 1024
FEW_ROWS = [(n, 2048) for n in (16, 64, 128, 256)]  # over more keys: the forward pass alone
REPLAYS = 10
CALLS = [(d, N) for d in (64, 128) for N in (512, 1024, 2048)]


def of_module(name: str) -> Callable:
    """Return the function of a module of flashlib.kernels, such as "hopper.forward", that computes its pass."""
    module = peers.kernels(name)
    return module.attention if name.endswith("forward") else functools.partial(module.backward, **_any_order(name))


def _any_order(name):
    return {} if name.startswith("hopper") else {"deterministic": False}


def limits() -> list:
    """Return a row for each small call; each kernel is verified before it is timed."""
    found = []
    for d, causal, (B, H) in itertools.product(DS, (False, True), HEADS):
        for N_q, N_k in [(n, n) for n in ROWS] + FEW_ROWS:
            found.append(limit("forward", (B, H, N_q, d), N_k, causal))
            if N_q == N_k:
                found.append(limit("backward", (B, H, N_q, d), N_k, causal))
    return found


def limit(
    which: str, shape: tuple[int, int, int, int], N_k: int, causal: bool, device: str = "cuda"
) -> dict:  # fmt: skip
    """Return the row of one call."""
    from flashlib import kernels  # only here: Triton may not be installed
    from flashlib.kernels import forward

    B, H, N_q, d = shape
    Q, dO = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(2))
    K, V = (torch.randn(B, H, N_k, d, device=device, dtype=torch.bfloat16) for _ in range(2))
    given = (Q, K, V)
    if which == "backward":
        given = *given, *forward.attention(*given, causal=causal), dO
    graphs, results = {}, []
    for name, module in (("portable", which), ("hopper", f"hopper.{which}")):
        run = functools.partial(of_module(module), *given, causal=causal)
        results.append(run())
        graphs[name] = harness.captured(run, REPLAYS)
    for X, Y in zip(*results, strict=True):
        torch.testing.assert_close(X, Y, atol=2e-2, rtol=2e-2)
    us = {name: round(t / REPLAYS, 2) for name, t in harness.replayed_us(graphs).items()}
    found = getattr(kernels.chosen(Q, K, V, causal=causal, deterministic=False), which)
    row = {"pass": which, "B": B, "H": H, "N_q": N_q, "N_k": N_k, "d": d, "causal": causal}
    row |= {"seen": N_k - min(N_q, N_k) / 2 if causal else N_k, "graph_us": us}
    row["chosen"] = "hopper" if ".hopper." in found else "portable"
    harness.say(f"{which:8} {row['B']:3} {H:3} {N_q:5} {N_k:5} {d:4} {causal!s:5} {us} {row['chosen']}")
    return row


def attended(by: str, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return O. by: "ours", by default and with gradients in any order; or "hopper"."""
    module = peers.kernels("hopper" if by == "hopper" else "autograd")
    return module.attention(Q, K, V, causal=causal, deterministic=False).O


def of_package(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return O by the interface of flash_attn; all tensors are (B, N, H, d)."""
    from flashlib.interop import flash_attn

    out = flash_attn.flash_attn_func(q, k, v, causal=causal)
    assert isinstance(out, torch.Tensor)  # a tuple only if more was asked for
    return out


def transposed(tensors: Sequence[torch.Tensor | None]) -> list:
    """Return (B, N, H, d) for (B, H, N, d), and the other way around."""
    return [X if X is None else X.transpose(1, 2) for X in tensors]


PEERS = {
    "ours": functools.partial(attended, "ours"),
    "hopper": functools.partial(attended, "hopper"),
    "flash_attn_func": of_package,
    "sdpa": peers.chosen_sdpa,
    "sdpa_flash": peers.chosen_sdpa,
    "sdpa_cudnn": peers.chosen_sdpa,
}


def calls(device: str = "cuda") -> list:
    """Return a row for each pass and size, with the CPU time of a call by each of PEERS."""
    found = []
    for which, (d, N) in itertools.product(("forward", "both"), CALLS):
        problem = BenchProblem(Size(1, 8, 8, N, d, True), gradients=which == "both", device=device)
        runs: dict[str, Callable[[], object]] = {}
        for name, peer in PEERS.items():
            turned = transposed if peer is of_package else list
            leaves = [X.detach().requires_grad_(which == "both") for X in turned(problem.tensors)]
            (dO,) = turned([problem.dO])

            def run(peer=peer, leaves=leaves, dO=dO):
                O = peer(*leaves, True)
                return [O] if dO is None else torch.autograd.grad(O, leaves, dO)

            with short_sequences.backend_of(name):
                problem.verify(f"{name} at d={d}, N={N}", tuple(turned(run())))
            runs[name] = run
        row = {"pass": which, "B": 1, "H": 8, "N": N, "d": d, "causal": True}
        found.append(row | {"host_us": short_sequences.host_us(runs)})
        harness.say(f"{which:8} {N:5} {d:4} {found[-1]['host_us']}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.choice", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    args = parser.parse_args()
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "Hopper's kernels are timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment() | {"calls": calls(), "rows": limits()}
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
