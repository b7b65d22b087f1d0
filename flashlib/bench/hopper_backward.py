"""Time the Hopper backward, the portable passes, SDPA's and, if it is installed, FlashAttention-4.

    python -m flashlib.bench.hopper_backward --out notebooks/data/h200_hopper_backward.json
    python -m flashlib.bench.hopper_backward --wide --out notebooks/data/h200_hopper_backward_256.json

dQ, dK and dV, all kernels of a backward pass together. A record has `rows` and `more`, the sizes of `bench.hopper`
without d = 256; with --wide it has only `rows`, those of d = 256, which has different kernels. Each table is timed
`--runs` times, and a row has the TFLOP/s of each run in `runs` and their medians in `tflops`. `error` is the
largest error of a gradient against fp64. An interrupted run leaves its completed tables.
"""

import argparse
import functools
from collections.abc import Callable

import torch

from flashlib.bench import hopper
from flashlib.bench.common import harness, peers, records
from flashlib.bench.common.sizes import LENGTHS, SIZES, usual_size

MORE = [(size, dtype) for size, dtype in hopper.MORE if size.d < 256]
WIDE = [usual_size(256, causal, N) for causal in (False, True) for N in LENGTHS]
KERNELS = {256: ("hopper_dkv_256", "hopper_dq_256")}  # others: one
OTHERS = ("ours", "ours_fused", "sdpa_flash", "sdpa_cudnn", "fa4")
PEERS: dict[str, Callable] = {
    "hopper": functools.partial(peers.with_backward, "hopper.backward"),
    **{name: peers.BACKWARD_PEERS[name] for name in OTHERS if name in peers.BACKWARD_PEERS},
}


def table(sizes: list, runs: int, notes: records.Notes) -> list[dict]:
    """Return the rows of all runs, merged, with notes on what was compiled. sizes: pairs of a Size and a dtype."""
    rows = hopper.merged([hopper.timed(sizes, PEERS, gradients=True) for _ in range(runs)])
    for (size, _), row in zip(sizes, rows, strict=True):
        compiled = KERNELS.get(size.d, ("hopper_backward",))
        notes.add(row, size.compiled, {name: {"dtype": row["dtype"]} for name in compiled})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.hopper_backward", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the runs in")
    parser.add_argument("--runs", type=int, default=5, help="how often each table is timed (%(default)s)")
    parser.add_argument("--wide", action="store_true", help="time d = 256, and nothing else")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}; it must be at least 1")
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "The Hopper kernel is timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment()
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    rows = [(size, torch.bfloat16) for size in (WIDE if args.wide else SIZES)]
    tables = {"rows": rows, "more": [] if args.wide else MORE}
    for name, sizes in tables.items():
        if sizes:
            with records.Notes() as notes, harness.stopwatch(name):
                record[name] = table(sizes, args.runs, notes)
                harness.say(hopper.summary(record[name]))
                notes.finish()
            save()  # this table is complete, whatever happens to the next


if __name__ == "__main__":
    main()
