"""Time the ladder on one GPU in one run: every rung of `kernels.ladder`, the tuned kernel, its peers, the ceiling.

    python -m flashlib.bench.ladder --out notebooks/data/h200_ladder.json

Forward pass in bf16, N = 4096, B * N = 16384 tokens, H * d = 2048. Each call is verified on one head before it is
timed. Rungs 6 to 8 try several launch options; 7 and 8 start from the fastest options of the previous rung. The
fastest is marked. After the ladder and the peers, kernels that lack one of FlashAttention-2's three ideas are
timed one by one, next to rung 5 with the same options: a tile so small that none spills registers on an H200. The
last part is rung 8 with one wait in each step and with two.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from flashlib import cost
from flashlib.bench.common import harness, problem, records
from flashlib.bench.common.peers import PEERS, kernels
from flashlib.types import Traffic

DS = 128, 64  # 128 first: recording what it was compiled to takes a while
TOKENS, WIDTH, N = 16384, 2048, 4096
FEW_HEADS = 16  # of one long sequence: too few programs for a large GPU, unless rows run in parallel
CEILING = 8192
SMALL = {"B_r": 64, "B_c": 64, "num_warps": 4, "num_stages": 1}
TILES = [
    {"B_r": r, "B_c": c, "num_warps": w} for r, c, w in ((64, 128, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8))
]
STAGES = (2, 3, 4)
PIPELINED = SMALL | {"num_stages": 2}


class LadderProblem(problem.BenchProblem):
    """One size; row: its fields in a row of the record."""

    def __init__(self, B: int, H: int, N: int, d: int, causal: bool, **options: Any) -> None:
        super().__init__(problem.Size(B, H, H, N, d, causal), **options)
        self.row: dict = {"B": B, "H": H, "N": N, "d": d, "causal": causal}
        self.N, self.d, self.causal = N, d, causal

    def compiled(self, row: dict) -> tuple[dict, dict]:
        """Return the arguments of `records` for a row: the size, and the kernels with their options."""
        return self.size.compiled, self.launches(row["rung"], row["options"])

    def launches(self, rung: str, options: dict) -> dict:
        if rung == "ours":
            return {"forward": {}}
        return {{"r6_tiles": "r5_causal", "r7_stages": "r5_causal"}.get(rung, rung): options}

    def ready(self, rung: "Rung", options: dict) -> Callable:
        """Return the function that is timed, which has no arguments."""
        return lambda: rung.run(*self.tensors, self.causal, **options)


class Rung(NamedTuple):
    """What is timed: run(Q, K, V, causal, **options) -> O, called as `LadderProblem.ready` describes.

    choices(problem, tried): the launch options to try; tried: rows of the previous rung, the fastest first.
    traffic(problem, **options): the bytes that one head moves to and from HBM by the closed form; None if unknown.
    roundings: how often S is rounded before its softmax.
    """

    name: str
    idea: str
    run: Callable
    choices: Callable = lambda problem, tried: [{}]
    traffic: Callable | None = None
    roundings: int = 1


def kernel(module: str, **switches: object) -> Callable:
    """Return the run of a rung that is a module of flashlib.kernels."""
    return lambda Q, K, V, causal, **options: (
        kernels(module).attention(Q, K, V, causal=causal, **switches, **options).O
    )


def small(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    return [SMALL]


def pipelined(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    return [PIPELINED]


def tiles(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    return [SMALL | tile for tile in TILES]


def stages(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    return [row["options"] | {"num_stages": n} for row in tried[:2] for n in STAGES]


def again(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    """The best options of the previous rung, and smaller tiles, since more of them fit without pointers."""
    found = [row["options"] for row in tried[:2]]
    return found + [SMALL | {"B_c": c, "num_stages": n} for c, n in ((64, 3), (128, 2))]


def tuned(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    Q = problem.tensors[0]
    descriptors = kernels("launch.tile_sizes").room(Q.device).tma
    heads = problem.size.B * problem.size.H_q
    sizes = {"causal": problem.causal, "N_q": problem.N, "N_k": problem.N, "heads": heads}
    config = kernels("launch.tile_sizes").default(problem.d, Q.dtype, descriptors, Q.device, **sizes)
    return [
        dict(zip(("B_r", "B_c", "num_warps", "num_stages"), config, strict=True)) | {"descriptors": descriptors}
    ]


def stored(problem: LadderProblem) -> Traffic:
    return cost.standard_traffic(problem.N, problem.N, problem.d, dtype="bfloat16")


def tiled(problem: LadderProblem, B_r: int, B_c: int, **_: object) -> Traffic:
    N, d, causal = problem.N, problem.d, problem.causal
    return cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, causal=causal, dtype="bfloat16")


def every_tile(problem: LadderProblem, B_r: int, B_c: int, **_: object) -> Traffic:
    return cost.fa2_traffic(problem.N, problem.N, problem.d, B_r=B_r, B_c=B_c, dtype="bfloat16")


R5, R8 = kernel("ladder.r5_causal"), kernel("ladder.r8_descriptors")
R8_TWO_WAITS = kernel("ladder.r8_descriptors", common_wait=False)
RUNGS = [
    Rung("r1_eager", "standard attention, S and P in HBM", PEERS["eager"], traffic=stored, roundings=2),
    Rung("r2_softmax", "scale, mask and softmax in one kernel", kernel("ladder.r2_softmax"), traffic=stored),
    Rung("r3_flash", "one kernel, S and P stay on the chip", kernel("ladder.r3_flash"), small, every_tile),
    Rung("r4_exp2", "exp2, the scale folded in", kernel("ladder.r4_exp2"), small, every_tile),
    Rung("r5_causal", "hidden tiles skipped, others masked only where cut", R5, small, tiled),
    Rung("r6_tiles", "larger tiles, more warps", R5, tiles, tiled),
    Rung("r7_stages", "tiles loaded ahead", R5, stages, tiled),
    Rung("r8_descriptors", "tensor descriptors in place of pointers", R8, again, tiled),
    Rung("ours", "the tuned kernel, kernels.forward", PEERS["ours"], tuned, tiled),
]
OTHERS = [Rung(name, "a peer", run) for name, run in PEERS.items() if name not in ("ours", "eager")]
PARTNER = Rung("r5_causal", "FlashAttention-2's three ideas", R5, pipelined, tiled)


def large(problem: LadderProblem, tried: list[dict]) -> list[dict]:
    """The tuned choice for a long sequence on Hopper."""
    choice, _ = kernels("launch.tile_sizes").HOPPER[max(problem.d, 32)]
    return [dict(zip(SMALL, choice, strict=True))]


ONE_WAIT = Rung("r8_descriptors", "K_j and V_j awaited together", R8, large, tiled)
TWO_WAITS = Rung("without_common_wait", "V_j awaited by itself", R8_TWO_WAITS, large, tiled)
WITHOUT = [
    Rung(f"without_{name}", idea, kernel("ablations.forward", **{name: False}), pipelined, tiled)
    for name, idea in (
        ("late_division", "O normalised in every step"),
        ("parallel_rows", "one program for each head"),
        ("split_rows", "warps split over the keys"),
    )
]


def time(rung: Rung, problem: LadderProblem, options: dict, part: str) -> dict:
    """Return the row of one call: verified, then timed. If the GPU or a library cannot run it, ms is None."""
    row = {"part": part, "rung": rung.name, "idea": rung.idea, **problem.row, "options": options}
    row |= {"ms": None, "tflops": None, "flop_per_byte": None}
    traffic = rung.traffic and rung.traffic(problem, **options)
    if traffic:
        row["flop_per_byte"] = round(cost.intensity(problem.head_flops, traffic), 1)
    try:
        run = problem.ready(rung, options)
        given = run()
    except Exception as error:  # whatever a compiler, a driver or a library raises
        return row | {"reason": harness.reason(error)}
    problem.verify(f"{rung.name} at {problem.row} with {options}", given, rung.roundings)
    ms = min(harness.median_ms(run, rep_ms=100) for _ in range(2))  # other work can only add to the time
    return row | {"ms": round(ms, 4), "tflops": round(problem.flops / ms / 1e9, 1)}


def climb(
    problem: LadderProblem, rungs: Iterable[Rung], part: str, notes: records.Notes | None = None
) -> list[dict]:
    """Return the rows of these rungs in their order; `best` marks the fastest of each.

    notes: gets the rows that record what was compiled.
    """
    rows, tried = [], []
    for rung in rungs:
        here = [time(rung, problem, options, part) for options in rung.choices(problem, tried)]
        tried = sorted((row for row in here if row["ms"]), key=lambda row: row["ms"]) or tried
        for row in here:
            row["best"] = bool(row["ms"]) and row is tried[0]
            harness.say(line(row))
            if notes is not None and records.has_notes(row):
                notes.add(row, *problem.compiled(row))
        rows += here
    return rows


MEMORIES = {
    "l2_read": "reads that the L2 cache serves",
    "l2_copy": "tiles that TMA copies from the L2 cache",
    "dram_copy": "a copy from DRAM to DRAM, bytes read and written",
}
CEILING_ROW: dict = {
    "part": "ceiling",
    "d": None,
    "causal": None,
    "options": {},
    "flop_per_byte": None,
    "best": True,
}


def ceiling() -> list[dict]:
    """Return rows for what limits attention: a matrix product, the L2 cache, a copy within DRAM."""
    A, B = (torch.randn(CEILING, CEILING, device="cuda", dtype=torch.bfloat16) for _ in "AB")
    exact, plain = A[:64].double() @ B.double(), (A[:64].float() @ B.float()).bfloat16()
    harness.verify("matrix product", (A @ B)[:64], exact, plain)
    ms = harness.median_ms(lambda: A @ B)
    row: dict = CEILING_ROW | {"rung": "matmul", "idea": f"a matrix product, {CEILING} x {CEILING} x {CEILING}"}
    row |= {"N": CEILING, "ms": round(ms, 4), "tflops": round(2 * CEILING**3 / ms / 1e9, 1)}
    return [row, *map(memory, MEMORIES)]


def memory(name: str) -> dict:
    """Return the row of a memory; name: of a function of `bench.bandwidth`, which says what it does."""
    from flashlib.bench import bandwidth  # only when called: Triton may not be installed

    n_bytes, ms = getattr(bandwidth, name)()
    speed = {"bytes": n_bytes, "ms": round(ms, 4), "tflops": None, "gb_per_s": round(n_bytes / ms / 1e6, 1)}
    return CEILING_ROW | {"rung": name, "idea": MEMORIES[name], "N": None} | speed


def line(row: dict) -> str:
    size = f"d={row['d']:<4}{'causal' if row['causal'] else '':7}N={row['N']:<6}"
    values = (value for name, value in row["options"].items() if name != "descriptors")
    options = " ".join(" ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values)
    result = f"{row['tflops']:8.1f}{' *' if row['best'] else ''}" if row["ms"] else f"       - {row['reason']}"
    return f"{size}{row['rung']:22}{options:20}{result}"


def measure(ds: Iterable[int] = DS, notes: records.Notes | None = None) -> list[dict]:
    """Return all rows: for each size the ladder, the peers, and each of FlashAttention-2's ideas."""
    rows = ceiling()
    for row in rows:
        speed = f"{row['gb_per_s']} GB/s" if row["tflops"] is None else f"{row['tflops']} TFLOP/s"
        harness.say(f"{row['idea']}: {speed}")
    harness.say("TFLOP/s with B_r B_c num_warps num_stages; * the best of a rung")
    for d, causal in itertools.product(ds, (False, True)):
        with harness.stopwatch(f"d = {d}, causal = {causal}"):
            problem = LadderProblem(TOKENS // N, WIDTH // d, N, d, causal)
            rows += climb(problem, RUNGS, "ladder", notes)
            rows += climb(problem, OTHERS, "peer")
            rows += climb(problem, [PARTNER, *WITHOUT], "fa2")
            rows += climb(problem, [ONE_WAIT, TWO_WAITS], "wait", notes)
            del problem  # frees its memory before the next one is made
            few = LadderProblem(1, FEW_HEADS, TOKENS, d, causal)
            rows += climb(few, [PARTNER, WITHOUT[1]], "fa2")
    return rows


def main(name: str = "ladder", description: str = __doc__, measure: Callable[..., list] = measure) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m flashlib.bench.{name}", description=description)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="d = 128 only")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("The ladder is timed on a CUDA device; torch finds none. Recorded runs are in notebooks/data.")
    torch.manual_seed(0)
    record = {**harness.environment(), "dtype": "bfloat16"}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    with records.Notes(harness.capability()) as notes:
        rows = measure(DS[:1] if args.quick else DS, notes)
        with harness.stopwatch("still compiling"):
            notes.finish()
    record["rows"] = sorted(rows, key=lambda row: row["d"] or 0)
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
