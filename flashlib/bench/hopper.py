"""Time the Hopper kernel, the portable one, SDPA's and, if it is installed, FlashAttention-4 in one run.

    python -m flashlib.bench.hopper --out notebooks/data/h200_hopper.json

A record has `rows`, the sizes of `python -m flashlib.bench`; `more`, heads that share K and V, d = 256,
longer and ragged sequences, fp16; `calls`, the microseconds of CPU time for a call. Each of the first two tables
is timed as a whole, `--runs` times: a row has the TFLOP/s of each run in `runs`, and their medians in `tflops`.
They are counted as in `flashlib.bench`. `error` is the largest error of O against fp64, on the heads that are
verified. A peer that does not support a size has None there. An interrupted run leaves its completed tables.
"""

import argparse
import functools
import itertools
from collections.abc import Callable, Iterable
from statistics import geometric_mean, median

import torch

from flashlib.bench import short_sequences
from flashlib.bench.common import harness, peers, records
from flashlib.bench.common.problem import BenchProblem, Size
from flashlib.bench.common.sizes import SIZES

OTHERS = ("ours", "sdpa_flash", "sdpa_cudnn", "fa4")
NEEDED = ("hopper", "ours")
MORE = [
    (Size(B, H_q, H_k, N, d, causal), dtype)
    for B, H_q, H_k, N, d, dtype in (
        (4, 32, 8, 4096, 128, torch.bfloat16),
        (2, 32, 8, 8192, 128, torch.bfloat16),
        (4, 8, 8, 4096, 256, torch.bfloat16),
        (1, 16, 16, 32768, 128, torch.bfloat16),
        (4, 16, 16, 4096, 128, torch.float16),
        (4, 16, 16, 4099, 128, torch.bfloat16),
    )
    for causal in (False, True)
]
RUNG_SIZES = [size for size in SIZES if size.N > 1024]
CALLS = [Size(1, 8, 8, N, d, False) for d in (64, 128) for N in (128, 256, 512)]


def hopper(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    from flashlib.kernels.hopper import forward  # only when called: Triton may not be installed

    return forward.attention(Q, K, V, causal=causal).O


PEERS = {"hopper": hopper, **{name: peers.PEERS[name] for name in OTHERS if name in peers.PEERS}}


def measure(
    size: Size, dtype: torch.dtype = torch.bfloat16, device: str = "cuda",
    given: dict[str, Callable] | None = None, gradients: bool = False, verify: bool = True,
) -> dict:  # fmt: skip
    """Return TFLOP/s, memory and errors of every peer at one size, each verified before it is timed.

    given: {name: function}; PEERS if None. gradients: whether the backward passes are timed; an error is then the
    largest of dQ, dK and dV. verify: False in a run that repeats a verified one; no error is known then. Raises
    AssertionError if one of our kernels is wrong.
    """
    given = PEERS if given is None else given
    problem, runs, errors = BenchProblem(size, gradients=gradients, dtype=dtype, device=device), {}, {}
    for name, peer in given.items():
        run = problem.run(peer)
        made: list[torch.Tensor] = []

        def make(run=run, made=made):
            made.append(run())

        def check(name=name, made=made):
            problem.verify(f"{name} at {size}", made[0])

        if not harness.works(name, make, needed=name in NEEDED):
            continue
        if not verify:
            runs[name] = run
        elif harness.works(name, check, needed=name in NEEDED or name.startswith("hopper_")):
            found = made[0] if gradients else (made[0],)
            pairs = zip(found, problem.expected.values(), strict=True)
            error = max((problem.part(X).double() - exact).abs().max().item() for X, (exact, _) in pairs)
            errors[name] = float(f"{error:.3g}")
            runs[name] = run
    sizes = {"d": size.d, "causal": size.causal, "N": size.N, "B": size.B, "H": size.H_q, "H_k": size.H_k}
    row = sizes | {"dtype": str(dtype).removeprefix("torch."), **harness.compare(given, runs, problem.flops)}
    return row | {"error": errors}


def call(size: Size) -> dict:
    """Return the row of a short call: microseconds of CPU time for each peer, each verified first."""
    problem, runs = BenchProblem(size, whole=True), {}
    for name, peer in PEERS.items():
        run = problem.run(peers.chosen_sdpa if name in peers.BACKENDS else peer)

        def check(name=name, run=run):
            problem.verify(f"{name} at {size}", run())

        with short_sequences.backend_of(name):
            if harness.works(name, check, needed=name in NEEDED):
                runs[name] = run
    return {"d": size.d, "N": size.N, "B": size.B, "H": size.H_q, "host_us": short_sequences.host_us(runs)}


def ratios(rows: list[dict], over: str, dtype: str | None = None) -> list[float]:
    """Return the speed of the Hopper kernel relative to a peer's, for each row that has both."""
    both = [row["tflops"] for row in rows if row["tflops"].get(over) and dtype in (None, row["dtype"])]
    return [tflops["hopper"] / tflops[over] for tflops in both]


def summary(rows: list[dict]) -> str:
    """Return geometric means and the smallest ratio for each peer, and how the errors compare."""
    lines = []
    for name in rows[0]["tflops"]:
        if name != "hopper" and (found := ratios(rows, name)):
            mean = geometric_mean(found)
            lines.append(f"hopper / {name}: geometric mean {mean:.3f} of {len(found)}, smallest {min(found):.3f}")
    worse = [row for row in rows if row["error"]["hopper"] > row["error"]["ours"]]
    return "\n".join([*lines, f"its error is larger than ours in {len(worse)} of {len(rows)}"])


def steps(rows: list[dict]) -> str:
    """Return how much faster each rung is than the one before it: geometric means over rows that have both."""
    names, lines = list(rows[0]["tflops"]), []
    for before, name in itertools.pairwise(names):
        both = [row["tflops"] for row in rows if row["tflops"][before] and row["tflops"][name]]
        if found := [tflops[name] / tflops[before] for tflops in both]:
            lines.append(f"{name} / {before}: geometric mean {geometric_mean(found):.3f} of {len(found)}")
    return "\n".join(lines)


def timed(
    sizes: Iterable[tuple[Size, torch.dtype]], given: dict[str, Callable] | None = None, gradients: bool = False,
    verify: bool = True,
) -> list[dict]:  # fmt: skip
    """Return the rows of one run over (Size, dtype), and print each at once. The others: see `measure`."""
    names = [name.removeprefix("hopper_") for name in given or PEERS]
    harness.say("  d  causal      N   heads" + "".join(f"{name:>15}" for name in names))
    rows = []
    for size, dtype in sizes:
        row = measure(size, dtype, given=given, gradients=gradients, verify=verify)
        rows.append(row)
        cells = "".join(f"{'-' if value is None else value:>15}" for value in row["tflops"].values())
        harness.say(f"{size.d:3}  {size.causal!s:6} {size.N:6}{f'{size.H_q}/{size.H_k}':>8}{cells}")
    return rows


def in_runs(
    sizes: list[tuple[Size, torch.dtype]], runs: int, given: dict[str, Callable] | None = None,
    gradients: bool = False,
) -> list[dict]:  # fmt: skip
    """Return the rows of this many runs, merged; the first run verifies. given, gradients: see `measure`."""
    return merged([timed(sizes, given, gradients, verify=nth == 0) for nth in range(runs)])


def merged(tables: list[list[dict]]) -> list[dict]:
    """Return one row for each size: the first run's, with `runs` and their medians."""
    rows = []
    for same in zip(*tables, strict=True):
        runs = {name: [row["tflops"][name] for row in same] for name in same[0]["tflops"]}
        medians = {name: None if None in speeds else median(speeds) for name, speeds in runs.items()}
        rows.append(same[0] | {"tflops": medians, "runs": runs})
    return rows


def table(
    sizes: list[tuple[Size, torch.dtype]], runs: int, notes: records.Notes,
    given: dict[str, Callable] | None = None,
) -> list[dict]:  # fmt: skip
    """Return the rows of all runs, merged, with notes on what was compiled. sizes, given: as in `timed`."""
    rows = in_runs(sizes, runs, given)
    for (size, _), row in zip(sizes, rows, strict=True):
        compiled = [name for name in given if row["tflops"][name]] if given else ["hopper_forward"]
        notes.add(row, size.compiled, {name: {"dtype": row["dtype"]} for name in compiled})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.hopper", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the runs in")
    parser.add_argument("--runs", type=int, default=5, help="how often each table is timed (%(default)s)")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}; it must be at least 1")
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "The Hopper kernel is timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment()
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    tables = {"rows": [(size, torch.bfloat16) for size in SIZES], "more": MORE}
    for name, sizes in tables.items():
        if sizes:
            with records.Notes() as notes, harness.stopwatch(name):
                record[name] = table(sizes, args.runs, notes)
                harness.say(summary(record[name]))
                notes.finish()
            save()  # this table is complete, whatever happens to the next
    if CALLS:
        with harness.stopwatch("calls"):
            record["calls"] = [call(size) for size in CALLS]
        for row in record["calls"]:
            harness.say(f"d {row['d']}, N {row['N']}: {row['host_us']}")
        save()


if __name__ == "__main__":
    main()
