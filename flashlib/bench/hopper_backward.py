"""Time the Hopper backward, the portable passes, SDPA's and, if it is installed, FlashAttention-4.

    python -m flashlib.bench.hopper_backward --out notebooks/data/h200_hopper_backward.json
    python -m flashlib.bench.hopper_backward --wide --out notebooks/data/h200_hopper_backward_256.json

dQ, dK and dV, all kernels of a backward pass together. A record has `rows` and `more`, the sizes of `bench.hopper`
without d = 256, and `grouped`, 32 heads of Q in groups of 1 to 32 that share K and V, beside fewer peers; with
--wide it has only `rows`, those of d = 256, which has different kernels. Each table is timed `--runs` times, and a
row has the TFLOP/s of each run in `runs` and their medians in `tflops`. `error` is the largest error of a gradient
against fp64, which the first run verifies. An interrupted run leaves its completed tables.
"""

import argparse
import functools
import itertools
from collections.abc import Callable

import torch

from flashlib.bench import hopper
from flashlib.bench.common import harness, peers, records
from flashlib.bench.common.problem import Size
from flashlib.bench.common.sizes import LENGTHS, SIZES, TOKENS, usual_size

MORE = [(size, dtype) for size, dtype in hopper.MORE if size.d < 256]
WIDE = [usual_size(256, causal, N) for causal in (False, True) for N in LENGTHS]
KERNELS = {256: ("hopper_dkv_256", "hopper_dq_256")}  # others: one
OTHERS = ("ours_fused", "sdpa_flash", "sdpa_cudnn", "fa4")
PEERS: dict[str, Callable] = {
    "hopper": functools.partial(peers.with_backward, "hopper.backward"),
    "ours": functools.partial(peers.with_backward, "backward"),  # the portable passes, also at d = 256
    **{name: peers.BACKWARD_PEERS[name] for name in OTHERS if name in peers.BACKWARD_PEERS},
}
GROUPS = (1, 2, 4, 8, 32)  # heads of Q that share K and V, of HEADS
HEADS = 32
GROUPED = [
    (Size(TOKENS // N, HEADS, HEADS // group, N, d, causal), torch.bfloat16)
    for d, causal, group, N in itertools.product((128, 64), (True, False), GROUPS, (4096, 8192, 16384))
]
WITH_GROUPS = {name: peer for name, peer in PEERS.items() if name not in ("ours_fused", "sdpa_flash")}


def table(sizes: list, runs: int, notes: records.Notes, given: dict[str, Callable]) -> list[dict]:
    """Return the rows of all runs, merged, with notes on what was compiled. sizes: pairs of a Size and a dtype."""
    rows = hopper.in_runs(sizes, runs, given, gradients=True)
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
    tables = {"rows": (rows, PEERS)}
    if not args.wide:
        tables |= {"more": (MORE, PEERS), "grouped": (GROUPED, WITH_GROUPS)}
    for name, (sizes, given) in tables.items():
        if sizes:
            with records.Notes() as notes, harness.stopwatch(name):
                record[name] = table(sizes, args.runs, notes, given)
                harness.say(hopper.summary(record[name]))
                notes.finish()
            save()  # this table is complete, whatever happens to the next


if __name__ == "__main__":
    main()
