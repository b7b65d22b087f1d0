"""Time the Hopper kernel in eight bits and measure its error, next to cuDNN's kernels in e4m3 and in bf16.

    python -m flashlib.bench.fp8 --out notebooks/data/h200_fp8.json

cuDNN's attention in e4m3 comes with `pip install nvidia-cudnn-frontend==1.18.0`. A record has

    rows     TFLOP/s of each, medians of `--runs` runs, which are in `runs`; as in `bench.hopper`. fp8, int8: the
             kernel alone, on numbers that are already in eight bits, like cuDNN's; whole: with the pass that
             makes them. one_level: fp8 with one sum for all tiles, where the kernel has two. `pass_us`: that pass
             alone, in a CUDA graph, as it is and with one idea left out
    errors   for each kind of inputs: rms of O's error against fp64 over rms of O, on 16 heads, of each kernel and
             of fp8 with one idea left out, each on the same tensors. bias: the mean relative error where V > 0

All are verified before they are timed: their rms error must be below BOUND.
"""

import argparse
import functools
import math
from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Any

import torch

from flashlib import cost
from flashlib.bench.common import cudnn_fp8, harness, peers, records
from flashlib.bench.common.problem import Size, tensors

SIZES = [
    Size(16384 // N, 2048 // d, 2048 // d, N, d, causal)
    for d in (64, 128, 256)
    for causal in (False, True)
    for N in (4096, 16384)
]
NAMES = ("fp8", "int8", "fp8_whole", "int8_whole", "one_level", "cudnn_fp8", "sdpa_cudnn", "hopper")
BOUND = {"sdpa_cudnn": 0.02, "hopper": 0.02, "cudnn_fp8": 0.12}  # the others reach 0.075; plain inputs
KINDS = ("plain", "outliers", "channel means", "drifting means", "positive")
HEADS, LENGTHS = 16, (1024, 4096, 16384)
LEFT_OUT = {"not rotated": {"rotated": False}, "not centred": {"centred": False}}


def ours(small: Any, causal: bool, **changed: Any) -> torch.Tensor:
    """Return O of the kernel for the output of `quantised`. changed: fields of its tiles."""
    from flashlib.kernels.hopper import fp8, launch_fp8  # only when called: Triton may not be installed

    d = small[0].shape[3]
    tiles = launch_fp8.TILES[d, causal]._replace(**changed) if changed else None
    return launch_fp8.of_quantised(fp8._attention, small, causal, d**-0.5, tiles).O


def quantised(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, **options: Any) -> Any:
    from flashlib.kernels import quantise

    return quantise.quantised(Q, K, V, permuted=True, **options)


def two_level(d: int, causal: bool) -> bool:
    from flashlib.kernels.hopper import launch_fp8

    return launch_fp8.TILES[d, causal].TWO_LEVEL


def exact(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, heads: int) -> torch.Tensor:
    """Return O of the last heads of the last batch in fp64, (heads, N, d), computed a few rows at a time."""
    O = []
    for q, k, v in zip(*(X[-1, -heads:].double() for X in (Q, K, V)), strict=True):
        for start in range(0, len(q), 4096):
            S = q[start : start + 4096] @ k.T / math.sqrt(q.shape[-1])
            if causal:
                S.masked_fill_(torch.ones_like(S, dtype=torch.bool).triu(start + 1), -math.inf)
            O.append(S.softmax(-1) @ v)
    return torch.cat(O).view(heads, -1, Q.shape[-1])


def relative_rms_error(O: torch.Tensor, right: torch.Tensor) -> float:
    """Return the rms error of O's last heads, relative to the rms of the correct O."""
    error = O[-1, -len(right) :].double() - right
    return (error.pow(2).mean() / right.pow(2).mean()).sqrt().item()


def runs_of(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, right: torch.Tensor) -> dict:
    """Return the functions that are timed, by name, after verifying each; all return O, cuDNN's in e4m3."""
    small, small_int = quantised(Q, K, V), quantised(Q, K, V, qk="int8")
    found: dict[str, Callable] = {
        "fp8": lambda: ours(small, causal),
        "int8": lambda: ours(small_int, causal),
        "fp8_whole": lambda: ours(quantised(Q, K, V), causal),
        "int8_whole": lambda: ours(quantised(Q, K, V, qk="int8"), causal),
        "sdpa_cudnn": lambda: peers.PEERS["sdpa_cudnn"](Q, K, V, causal),
        "hopper": lambda: peers.kernels("hopper.forward").attention(Q, K, V, causal=causal).O,
    }
    if two_level(Q.shape[3], causal):
        found["one_level"] = lambda: ours(small, causal, TWO_LEVEL=False)
    units = {}

    def prepare():
        made = cudnn_fp8.prepared(Q, K, V, causal, right.abs().max().item() * 1.5)
        found["cudnn_fp8"], units["cudnn_fp8"] = made

    harness.works("cudnn_fp8", prepare, needed=False)
    for name in list(found):

        def check(name=name):
            error = relative_rms_error(found[name]().float() * units.get(name, 1.0), right)
            if not error <= BOUND.get(name, 0.08):
                raise AssertionError(f"{name} is wrong: rms error {error:.3g} of rms of O")

        if not harness.works(name, check, needed=name in ("fp8", "int8", "fp8_whole", "int8_whole")):
            del found[name]
    return found


def pass_us(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> dict[str, float]:
    """Return the time of the quantising pass in microseconds, as it is and with one idea left out."""
    ways: dict[str, dict[str, Any]] = {"fp8": {}, "int8": {"qk": "int8"}, **LEFT_OUT}
    graphs = {
        name: harness.captured(functools.partial(quantised, Q, K, V, **way), 10) for name, way in ways.items()
    }
    return {name: round(us / 10, 1) for name, us in harness.replayed_us(graphs).items()}


def measure(size: Size) -> dict:
    """Return the row of a size."""
    Q, K, V = tensors(size)
    right = exact(Q, K, V, size.causal, 1)
    found = runs_of(Q, K, V, size.causal, right)
    flops = size.B * size.H_q * cost.flops(size.N, size.N, size.d, causal=size.causal)
    row = {"d": size.d, "causal": size.causal, "N": size.N, "B": size.B, "H": size.H_q}
    return row | harness.compare(NAMES, found, flops) | {"pass_us": pass_us(Q, K, V)}


def inputs(kind: str, N: int, d: int = 128) -> list[torch.Tensor]:
    """Return Q, K and V of HEADS heads.

    outliers: one number in 1,000 is ten times larger; channel means: each channel of V has its own mean; drifting
    means: one that changes along the keys, and is 0 over all of them; positive: all of V is at least 1.
    """
    given = [torch.randn(1, HEADS, N, d, device="cuda") for _ in "QKV"]
    if kind == "outliers":
        given = [torch.where(torch.rand_like(X) < 1e-3, 10 * X, X) for X in given]
    if kind == "channel means":
        given[2] += 0.5 * torch.randn(1, HEADS, 1, d, device="cuda")
    if kind == "drifting means":
        along = torch.linspace(-2, 2, N, device=given[2].device)[:, None]
        given[2] += along * torch.randn(1, HEADS, 1, d, device="cuda")
    if kind == "positive":
        given[2] = given[2].abs() + 1
    return [X.bfloat16() for X in given]


def errors(kind: str, N: int, causal: bool = False) -> dict:
    """Return the row of errors for one kind of inputs."""
    Q, K, V = inputs(kind, N)
    right = exact(Q, K, V, causal, HEADS)
    small = quantised(Q, K, V)
    made = {"fp8": ours(small, causal), "one_level": ours(small, causal, TWO_LEVEL=False)}
    made["int8"] = ours(quantised(Q, K, V, qk="int8"), causal)
    for name, way in LEFT_OUT.items():
        made[name] = ours(quantised(Q, K, V, **way), causal)
    made["not centred, one level"] = ours(quantised(Q, K, V, centred=False), causal, TWO_LEVEL=False)
    made["sdpa_cudnn"] = peers.PEERS["sdpa_cudnn"](Q, K, V, causal)

    def of_cudnn():
        run, unit = cudnn_fp8.prepared(Q, K, V, causal, right.abs().max().item())
        made["cudnn_fp8"] = run().float() * unit

    harness.works("cudnn_fp8", of_cudnn, needed=False)
    row: dict = {"kind": kind, "N": N, "d": Q.shape[3], "H": HEADS, "causal": causal}
    row["error"] = {name: float(f"{relative_rms_error(O, right):.3g}") for name, O in made.items()}
    if kind == "positive":
        relative = {name: (O[0].double() / right - 1).mean().item() for name, O in made.items()}
        row["bias"] = {name: float(f"{x:.3g}") for name, x in relative.items()}
    return row


def merged(tables: list[list[dict]]) -> list[dict]:
    """Return one row for each size: the first run's, with all speeds in `runs`, and medians."""
    rows = []
    for same in zip(*tables, strict=True):
        runs = {name: [row["tflops"][name] for row in same] for name in NAMES}
        speeds = {name: None if None in found else median(found) for name, found in runs.items()}
        passes = {name: median(row["pass_us"][name] for row in same) for name in same[0]["pass_us"]}
        rows.append(same[0] | {"tflops": speeds, "runs": runs, "pass_us": passes})
    return rows


def summary(rows: list[dict]) -> str:
    """Return each speed relative to cuDNN's in e4m3, and the quantising pass's share of the whole time."""
    lines = []
    for name in NAMES:
        both = [row["tflops"] for row in rows if row["tflops"][name] and row["tflops"]["cudnn_fp8"]]
        if both and name != "cudnn_fp8":
            found = [speeds[name] / speeds["cudnn_fp8"] for speeds in both]
            mean = geometric_mean(found)
            lines.append(f"{name} / cudnn_fp8: geometric mean {mean:.3f}, smallest {min(found):.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.fp8", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the runs in")
    parser.add_argument("--runs", type=int, default=3, help="how often each size is timed (%(default)s)")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}; it must be at least 1")
    if not torch.cuda.is_available() or harness.capability() != 90:
        parser.exit(1, "Eight bits are timed on a GPU of compute capability 9.0; torch finds none.\n")
    torch.manual_seed(0)
    record = harness.environment() | {"cudnn_frontend": frontend()}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
    with records.Notes() as notes:
        with harness.stopwatch("errors"):
            record["errors"] = []
            for kind in KINDS:
                for N in LENGTHS:
                    record["errors"].append(errors(kind, N))
                    harness.say(record["errors"][-1])
        save()
        tables = []
        for _ in range(args.runs):
            tables.append([])
            for size in SIZES:
                tables[-1].append(measure(size))
                row = tables[-1][-1]
                harness.say(f"{size.compiled} {row['tflops']} {row['pass_us']}")
        record["rows"] = merged(tables)
        harness.say(summary(record["rows"]))
        for size, row in zip(SIZES, record["rows"], strict=True):
            notes.add(row, size.compiled, {name: {"dtype": "bfloat16"} for name in ("hopper_fp8", "hopper_int8")})
        save()
        notes.finish()
    save()


def frontend() -> str | None:
    """Return the version of cuDNN's frontend, or None if it is not installed."""
    try:
        import cudnn
    except ImportError:
        return None
    return cudnn.__version__


if __name__ == "__main__":
    main()
