"""Time the Hopper forward with three rules for when O is rescaled, and measure their errors.

    python -m flashlib.bench.hopper_rescaling --out notebooks/data/h200_hopper_rescaling.json

`rungs` has the TFLOP/s of each rule of `kernels.hopper.rescaling` in bf16, as the record of
`flashlib.bench.hopper_ladder` has them for rungs, at d = 64, 128 and 256. `errors` has the root mean square of O's
errors against fp64 for one head of 4096 rows and keys, for scores with a standard deviation of `times`.
"""

import argparse
import functools
from collections.abc import Callable

import torch

from flashlib import torch_ref
from flashlib.bench import hopper
from flashlib.bench.common import harness, records
from flashlib.bench.common.problem import Size

RULES = {"hopper_always_rescaled": None, "hopper_forward": 0, "hopper_lazily_rescaled": 8}
WIDE = [Size(16384 // N, 8, 8, N, 256, causal) for N in (4096, 16384) for causal in (False, True)]
TIMES = 1, 3, 6, 10


def rule(tau: int | None) -> Callable:
    """Return the kernel with this tau as a peer."""

    def peer(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
        from flashlib.kernels.hopper import rescaling  # only when called: Triton may not be installed

        return rescaling.attention(Q, K, V, causal=causal, tau=tau).O

    return peer


def errors(given: dict[str, Callable], d: int, times: float, N: int = 4096, device: str = "cuda") -> dict:
    """Return a row: the error of each peer for scores whose standard deviation is `times`."""
    generator = torch.Generator().manual_seed(d)
    Q, K, V = (torch.randn(1, 1, N, d, generator=generator) for _ in range(3))
    Q, K, V = (X.to(device, torch.bfloat16) for X in (times * Q, K, V))
    exact = torch_ref.attention(Q.double(), K.double(), V.double()).O
    found = {}
    for name, peer in given.items():
        rms = (peer(Q, K, V, False).double() - exact).square().mean().sqrt().item()
        found[name] = float(f"{rms:.3g}")
    return {"d": d, "N": N, "times": times, "rms": found}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.hopper_rescaling", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the runs in")
    parser.add_argument("--runs", type=int, default=5, help="how often the table is timed (%(default)s)")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}; it must be at least 1")
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "The Hopper kernel is timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment()
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    rules = {name: rule(tau) for name, tau in RULES.items()}
    record["errors"] = [errors(rules, d, times) for d in (64, 128, 256) for times in TIMES]
    for row in record["errors"]:
        harness.say(f"d {row['d']}, scores times {row['times']}: {row['rms']}")
    with records.Notes() as notes:
        with harness.stopwatch("rules"):
            sizes = [(size, torch.bfloat16) for size in (*hopper.RUNG_SIZES, *WIDE)]
            record["rungs"] = hopper.table(sizes, args.runs, notes, rules)
        harness.say(hopper.steps(record["rungs"]))
        save()
        notes.finish()
    save()


if __name__ == "__main__":
    main()
