"""Time the rungs of the Hopper backward, and cuDNN's; `bench.hopper_backward` has the finished kernel.

    python -m flashlib.bench.hopper_backward_ladder --out notebooks/data/h200_hopper_backward_ladder.json

dQ, dK and dV in bf16 at d = 128, all kernels of a backward pass together; TFLOP/s count five products. Each result
is verified before it is timed, and the whole table is timed `--runs` times: a row has the TFLOP/s of each run in
`runs` and their medians in `tflops`. `error` is the largest error of a gradient against fp64.
"""

import argparse
import functools
from collections.abc import Callable

import torch

from flashlib.bench import hopper
from flashlib.bench.common import harness, peers, records
from flashlib.bench.common.problem import Size

OTHERS = ("sdpa_cudnn",)
SIZES = [size for size in hopper.RUNG_SIZES if size.d == 128]  # that the rungs support


def rungs() -> dict[str, Callable]:
    """Return the peers that are timed, {name of the compiled kernel: peer}: the rungs, then cuDNN."""
    from flashlib.kernels.compiler import registry  # only when called: Triton may not be installed

    found = {name: kernel for name, kernel in registry.kernels().items() if name.startswith("hopper_backward_")}
    modules = {name: kernel.call.__module__.removeprefix("flashlib.kernels.") for name, kernel in found.items()}
    mine = {name: functools.partial(peers.with_backward, module) for name, module in modules.items()}
    return mine | {name: peers.BACKWARD_PEERS[name] for name in OTHERS}


def table(runs: int, notes: records.Notes) -> list[dict]:
    """Return the rows of all runs, merged, with notes on what was compiled."""
    given = rungs()
    rows = hopper.merged([[timed(size, given) for size in SIZES] for _ in range(runs)])
    for size, row in zip(SIZES, rows, strict=True):
        notes.add(row, size.compiled, {name: {"dtype": row["dtype"]} for name in given if name not in OTHERS})
    return rows


def timed(size: Size, given: dict[str, Callable]) -> dict:
    """Return the row of one run, and print it."""
    row = hopper.measure(size, given=given, gradients=True)
    harness.say(f"d {size.d}, {'causal' if size.causal else 'no mask'}, N {size.N}: TFLOP/s")
    for name, speed in row["tflops"].items():
        harness.say(f"{name:>34}{'-' if speed is None else speed:>8}   error {row['error'].get(name)}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.hopper_backward_ladder", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the runs in")
    parser.add_argument("--runs", type=int, default=3, help="how often the table is timed (%(default)s)")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}; it must be at least 1")
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "The Hopper kernel is timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment()
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    with records.Notes() as notes:
        with harness.stopwatch("rungs"):
            record["rungs"] = table(args.runs, notes)
        harness.say(hopper.steps(record["rungs"]))
        if args.out:
            harness.write(args.out, record)
        notes.finish()
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
