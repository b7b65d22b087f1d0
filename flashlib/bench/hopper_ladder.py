"""Time the rungs of the Hopper forward side by side; `bench.hopper` has the finished kernel.

    python -m flashlib.bench.hopper_ladder --out notebooks/data/h200_hopper_ladder.json

O in bf16, at the longer of the usual sizes. Each result is verified before it is timed, and the whole table
is timed `--runs` times: a row of `rungs` has the TFLOP/s of each run in `runs`, and their medians in `tflops`.
`error` is the largest error of O against fp64. A rung that refuses a size has None there. The rungs are frozen, so
this record stays valid when the finished kernel changes.
"""

import argparse
from collections.abc import Callable

import torch

from flashlib.bench import hopper
from flashlib.bench.common import harness, records


def rungs() -> dict[str, Callable]:
    """Return the peers that are timed: {name of the compiled kernel: peer}."""
    from flashlib.kernels.compiler import registry  # only when called: Triton may not be installed

    def peer(kernel):
        return lambda Q, K, V, causal: kernel.call(Q, K, V, causal=causal).O

    found = registry.kernels().items()
    mine = {name: peer(kernel) for name, kernel in found if name.startswith("hopper_") and not kernel.launched}
    del mine["hopper_forward"]
    return mine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.hopper_ladder", description=__doc__)
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
    sizes = [(size, torch.bfloat16) for size in hopper.RUNG_SIZES]
    with records.Notes() as notes:
        with harness.stopwatch("rungs"):
            record["rungs"] = hopper.table(sizes, args.runs, notes, rungs())
        harness.say(hopper.steps(record["rungs"]))
        if args.out:
            harness.write(args.out, record)
        notes.finish()
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
