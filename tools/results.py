"""docs/results.md: the numbers recorded in notebooks/data, as tables. `tools.tables` writes the file."""

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from flashlib.chapters import NOTEBOOKS, Chapter
from tools.markdown import number, table

DATA = Path(__file__).resolve().parents[1] / "notebooks" / "data"
NAMES = {
    "ours": "ours",
    "hopper": "Hopper kernel",
    "sdpa_cudnn": "SDPA cuDNN",
    "fa4": "FlashAttention-4",
    "flex": "FlexAttention",
    "sdpa_flash": "SDPA flash",
    "sdpa_efficient": "SDPA efficient",
    "sdpa_math": "SDPA math",
    "sdpa_mask": "SDPA, additive mask",
    "eager": "eager",
    "standard": "standard",
}
OF_A_LADDER = {
    "ladder": "the ladder",
    "peer": "others",
    "fa2": "FlashAttention-2's ideas, all and without one",
    "wait": "one wait per step, or two",
    "ideas": "one pass, as it is and without an idea",
}
RUNS = {
    "ours": "ours",
    "sdpa_flash": "SDPA flash",
    "sdpa_flash_again": "SDPA flash, again",
    "sdpa_flash_third": "SDPA flash, a third time",
    "eager": "eager",
    "ours_checkpointed": "ours, with checkpointing",
    "ours_compiled": "ours, in torch.compile",
}
WAYS = {
    "ring_copy_engines": "ring, copy engines",
    "ring": "ring, NCCL",
    "ring_in_turn": "ring, no overlap",
    "ring_contiguous": "ring, contiguous",
    "all_gather": "all-gather",
    "ulysses": "Ulysses",
    "two_d": "2D",
    "ring_graph": "ring, one CUDA graph",
    "all_gather_graph": "all-gather, one CUDA graph",
}
OF_MODELS = {"eager": "eager", "sdpa": "SDPA", "flex": "FlexAttention", "ours": "ours", "hopper": "Hopper kernel"}
USUAL = ("ours", "sdpa_cudnn", "flex", "sdpa_flash", "eager")
OF_HOPPER = ("hopper", "ours", "sdpa_cudnn", "fa4")
IN_EIGHT_BITS = {
    "fp8": "e4m3",
    "int8": "int8 for Q and K",
    "one_level": "e4m3, one sum",
    "cudnn_fp8": "cuDNN e4m3",
    "sdpa_cudnn": "SDPA cuDNN, bf16",
    "hopper": "Hopper kernel, bf16",
    "fp8_whole": "e4m3 with the pass",
}
WITH_ERRORS = {
    "cudnn_fp8": "cuDNN e4m3",
    "fp8": "e4m3",
    "int8": "int8 for Q and K",
    "not rotated": "e4m3, not rotated",
    "not centred": "e4m3, not centred",
    "not centred, one level": "e4m3, not centred, one sum",
    "sdpa_cudnn": "SDPA cuDNN, bf16",
}
WITH_BIAS = ("cudnn_fp8", "not centred, one level", "not centred")
SIZE = ("d", "causal", "N")
HEADS = ("d", "query / key heads", "causal", "N")


def read(name) -> dict:
    """Return the record with a name such as "h200_forward"."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


# --- parts of a table ---


def yes(flag) -> str:
    return "yes" if flag else "no"


def size(row) -> list:
    return [row["d"], yes(row["causal"]), row["N"]]


def size_and_heads(row) -> list:
    return [row["d"], f"{row['H']} / {row['H_k']}", yes(row["causal"]), row["N"]]


def speed(row, name) -> str | None:
    """Return TFLOP/s, and their range if there were several runs."""
    median, runs = row["tflops"][name], row.get("runs", {}).get(name, ())
    if median is None or len(runs) < 2:
        return number(median)
    return f"{median:.0f} ({min(runs):.0f} to {max(runs):.0f})"


def over(rows, name, peer) -> list:
    """Return the ratio of two speeds in each row that has both."""
    both = [row["tflops"] for row in rows if row["tflops"][name] and row["tflops"][peer]]
    return [tflops[name] / tflops[peer] for tflops in both]


def mean(ratios) -> float:
    """Return the geometric mean."""
    return math.prod(ratios) ** (1 / len(ratios))


def titles(names) -> list:
    return [NAMES[name] for name in names]


def shown(sentence, heads, rows) -> str:
    """Return a sentence and the table that it introduces."""
    return f"{sentence}:\n\n{table(heads, rows)}"


# --- the parts of the page: each takes a record, and returns Markdown ---


def passes(record) -> str:
    """Return TFLOP/s at the usual sizes, with the ratio of ours to SDPA's flash, and at other d and heads."""
    ratios = over(record["rows"], "ours", "sdpa_flash")
    rows = [
        [*size(row), *(speed(row, name) for name in USUAL), number(ratio, 2)]
        for row, ratio in zip(record["rows"], ratios, strict=True)
    ]
    others = [name for name in USUAL if name != "eager"]
    more = [[*size_and_heads(row), *(speed(row, name) for name in others)] for row in record["more"]]
    usual = f"TFLOP/s, {record['dtype']}, B N = 16384, H d = 2048"
    said = f"The geometric mean of the last column is {mean(ratios):.2f}. Other d, and heads that share K and V"
    return "\n".join(
        (
            shown(usual, [*SIZE, *titles(USUAL), "ours / SDPA flash"], rows),
            shown(said, [*HEADS, *titles(others)], more),
        )
    )


def short(record) -> str:
    """Return the times for short sequences on the GPU, and those of a call on the CPU."""
    names = ("ours", "sdpa_cudnn", "sdpa_flash")
    rows = [
        [row["B"], row["N"], yes(row["causal"]), *(number(row["graph_us"][name], 1) for name in names)]
        for row in record["short"]
    ]
    calls = [
        [row["pass"], row["N"], row["d"], *(number(row["host_us"][name]) for name in names)]
        for row in record["calls"]
    ]
    on_gpu = "Microseconds of the forward pass for short sequences, in a CUDA graph; 16 heads, d = 128"
    on_cpu = "Microseconds of CPU time for a call; 8 heads, B = 1"
    return "\n".join(
        (
            shown(on_gpu, ["B", "N", "causal", *titles(names)], rows),
            shown(on_cpu, ["pass", "N", "d", *titles(names)], calls),
        )
    )


def hopper(record) -> str:
    """Compare the Hopper kernel with others."""
    return hopper_beside(record, "forward")


def hopper_backward(record) -> str:
    """Compare the Hopper kernel for the backward pass with others, also with heads that share K and V."""
    beside = hopper_beside(record, "backward")
    return "\n".join((beside, groups_of_heads(record["grouped"]))) if "grouped" in record else beside


def groups_of_heads(rows) -> str:
    """Return TFLOP/s of the Hopper backward by d, causal, N and the heads of Q that share K and V, and ratios."""
    groups = sorted({row["H"] // row["H_k"] for row in rows})
    cells: dict[tuple, dict] = {}
    for row in rows:
        ratios = [number(of[0], 2) for peer in ("sdpa_cudnn", "fa4") if (of := over([row], "hopper", peer))]
        cell = f"{row['tflops']['hopper']:.0f} ({', '.join(ratios)})"
        cells.setdefault(tuple(size(row)), {})[row["H"] // row["H_k"]] = cell
    of_size = [[*key, *(of[group] for group in groups)] for key, of in cells.items()]
    least = [f"{min(over(rows, 'hopper', name)):.2f} of {NAMES[name]}" for name in ("sdpa_cudnn", "fa4", "ours")]
    said = (
        f"TFLOP/s of the Hopper kernel by how many of {rows[0]['H']} heads of Q share a head of K and V, "
        f"{rows[0]['dtype']}, B N = 16384; in brackets its speed over {NAMES['sdpa_cudnn']}'s and over "
        f"{NAMES['fa4']}'s. Its smallest ratios are {', '.join(least)}"
    )
    return shown(said, [*SIZE, *groups], of_size)


def hopper_beside(record, which) -> str:
    """Compare a Hopper kernel with others, at the usual sizes and at others that were timed."""
    rows, more = record["rows"], record.get("more", [])
    names = [name for name in OF_HOPPER if name in rows[0]["tflops"]]
    beside = [[*size(row), *(speed(row, name) for name in names)] for row in rows]
    others = [[*size_and_heads(row), row["dtype"], *(speed(row, name) for name in names)] for row in more]
    runs = len(rows[0]["runs"]["hopper"])
    how_often = "one run" if runs == 1 else f"medians of {runs} runs, with their range"
    usual = f"TFLOP/s of the {which} pass, {rows[0]['dtype']}, B N = 16384, H d = 2048, {how_often}"
    tables = [shown(usual, [*SIZE, *titles(names)], beside), ratios_by_length(rows, names[1:])]
    if others:
        tables.append(shown("Other sizes", [*HEADS, "dtype", *titles(names)], others))
    return "\n".join(tables)


def ratios_by_length(rows, peers) -> str:
    """Compare the Hopper kernel with others for each N: a mean over N would hide where it is slower."""
    cells = []
    for N in dict.fromkeys(row["N"] for row in rows):
        ratios = [over([row for row in rows if row["N"] == N], "hopper", name) for name in peers]
        cells.append([N, *(f"{min(each):.2f} to {max(each):.2f}" for each in ratios)])
    return shown("The speed of the Hopper kernel over that of others", ["N", *titles(peers)], cells)


def rungs(record) -> str:
    """Return TFLOP/s of the rungs of a Hopper kernel, for the forward or the backward pass."""
    rows = record["rungs"]
    each = [
        [NAMES.get(name, name.removeprefix("hopper_")), *(number(row["tflops"][name]) for row in rows)]
        for name in rows[0]["tflops"]
    ]
    sizes = [f"d {row['d']}{', causal' if row['causal'] else ''}, {row['N']}" for row in rows]
    return shown("TFLOP/s of the rungs", ["rung", *sizes], each)


def rescaling(record) -> str:
    """Return TFLOP/s of the Hopper forward by the rule for when O is rescaled, and the errors of O."""
    errors = [
        [row["d"], row["times"], *(f"{error:.2e}" for error in row["rms"].values())] for row in record["errors"]
    ]
    names = [name.removeprefix("hopper_") for name in record["errors"][0]["rms"]]
    said = "Root mean square of the errors of O against fp64, by the standard deviation of the scores"
    return "\n".join((rungs(record), shown(said, ["d", "deviation", *names], errors)))


def choice(record) -> str:
    """Return the GPU's times of the smallest calls for which kernels are chosen, and the CPU's times of calls."""
    rows = [
        [row["pass"], row["d"], yes(row["causal"]), row["B"] * row["H"], row["N_q"], row["N_k"]]
        + [number(row["graph_us"][name], 1) for name in ("portable", "hopper")]
        for row in record["rows"]
        if (row["B"], row["H"]) == (4, 16)
    ]
    names = ["ours", "hopper", "flash_attn_func", "sdpa", "sdpa_flash", "sdpa_cudnn"]
    calls = [
        [row["pass"], row["d"], row["N"], *(number(row["host_us"][name]) for name in names)]
        for row in record["calls"]
    ]
    of_calls = [NAMES.get(name, name.replace("sdpa", "SDPA")) for name in names]
    on_gpu = "Microseconds of small calls on the GPU, in a CUDA graph, of B H = 64 heads"
    on_cpu = "Microseconds of CPU time for a call, causal, 8 heads, B = 1; both: forward and gradients"
    heads = ["pass", "d", "causal", "heads", "rows", "keys", "portable", NAMES["hopper"]]
    return "\n".join((shown(on_gpu, heads, rows), shown(on_cpu, ["pass", "d", "N", *of_calls], calls)))


def eight_bits(record) -> str:
    """Compare the Hopper kernel in eight bits with others; the pass that quantises, and errors against fp64."""
    rows = [
        [*size(row), *(number(row["tflops"][name]) for name in IN_EIGHT_BITS)]
        + [number(row["pass_us"]["fp8"]), f"{1 - row['tflops']['fp8_whole'] / row['tflops']['fp8']:.0%}"]
        for row in record["rows"]
    ]
    errors = [
        [row["kind"], row["N"], *(number(row["error"][name], 4) for name in WITH_ERRORS)]
        + [f"{row['bias'][name]:.1%}" if "bias" in row else None for name in WITH_BIAS]
        for row in record["errors"]
    ]
    ratios = over(record["rows"], "fp8", "cudnn_fp8")
    means = f"{mean(ratios):.2f} times that of cuDNN in e4m3, from {min(ratios):.2f} to {max(ratios):.2f}"
    runs = len(record["rows"][0]["runs"]["fp8"])
    what = f"medians of {runs} runs; the pass that quantises in microseconds, and its share of the whole"
    speeds = f"TFLOP/s of the forward pass, B N = 16384, H d = 2048, {what}"
    one = record["errors"][0]
    said = (
        f"In the geometric mean, the speed of e4m3 is {means}. At d = 256 there is one sum for all tiles. "
        f"Root mean square of O's error over that of O, {one['H']} heads, d = {one['d']}, no mask, and its mean "
        "relative error"
    )
    heads = [*SIZE, *IN_EIGHT_BITS.values(), "pass, us", "its share"]
    of_errors = ["inputs", "N", *WITH_ERRORS.values(), *(f"bias, {WITH_ERRORS[name]}" for name in WITH_BIAS)]
    return "\n".join((shown(speeds, heads, rows), shown(said, of_errors, errors)))


def ladder(record) -> str:
    """Return TFLOP/s of the rungs, of the peers, and of kernels with and without an idea."""
    best = [row for row in record["rows"] if row["best"] and row["part"] != "ceiling" and row["N"] == 4096]
    columns = sorted({(row["d"], row["causal"]) for row in best})
    found = {}
    for row in best:
        what = NAMES.get(row["rung"], row["idea"]) if row["part"] == "peer" else row["idea"]
        speeds = found.setdefault((OF_A_LADDER[row["part"]], row["rung"], what), {})
        speeds[row["d"], row["causal"]] = row["tflops"]
    heads = ["part", "rung", "what it is", *(f"d {d}{', causal' if causal else ''}" for d, causal in columns)]
    rows = [[*names, *(number(speeds.get(column)) for column in columns)] for names, speeds in found.items()]
    return shown("TFLOP/s, N = 4096, B N = 16384, H d = 2048; the fastest options of each", heads, rows)


def limits(record) -> str:
    """Return TFLOP/s of six launches, and after the move that each limit calls for."""
    heads, rows = ["launch", "the move for", "rung", "B_r B_c warps stages", "TFLOP/s", "gain"], []
    for row in sorted(record["rows"], key=lambda row: row["launch"]):
        if row["limit"] is None:
            before = row["tflops"]
        gain = "" if row["limit"] is None else number(row["tflops"] / before, 2)
        options = " ".join(map(str, row["options"].values()))
        rows.append([row["launch"], row["limit"] or "", row["rung"], options, number(row["tflops"]), gain])
    what = "TFLOP/s without a mask: six launches, each followed by the moves that limits call for"
    return shown(what, heads, rows)


def variants(record) -> str:
    """Return the times with masks and changed scores, and those of packed sequences."""
    both, names = ("forward", "backward"), ("ours", "flex", "sdpa_mask")
    long = {(row["case"], row["pass"]): row for row in record["rows"] if (row["d"], row["N"]) == (128, 16384)}
    rows = []
    for case in dict.fromkeys(case for case, _ in long):
        cells = [number(long[case, which]["ms"][name], 2) for which in both for name in names]
        rows.append([case, f"{long[case, 'forward']['tiles']:.0%}", *cells])
    packed = []
    for row in record["packed"]:
        times = row["ms"]["ours"], row["ms"]["flex"], row["padded_ms"]
        packed.append([row["pass"], row["d"], row["sequences"], row["longest"], *(number(ms, 2) for ms in times)])
    made = [(case, row["prepare"]) for (case, which), row in long.items() if which == "forward"]
    prepared = [[case, number(p["ours_ms"], 1), number(p["flex_ms"], 1), p["bytes"]] for case, p in made]
    heads = ["mask", "tiles", *(f"{which}: {NAMES[name]}" for which in both for name in names)]
    of_packed = ["pass", "d", "sequences", "longest", *titles(names[:2]), "ours, padded"]
    masks = "Milliseconds, bfloat16, d = 128, N = 16384, 16 heads; tiles: the share that our forward pass computes"
    packs = "Milliseconds for 16384 tokens in sequences of many lengths, packed, and ours padded to the longest"
    once = "Milliseconds that a new mask takes once, d = 128, N = 16384, and the bytes that ours keeps"
    of_prepared = ["mask", *titles(names[:2]), "bytes kept by ours"]
    parts = (masks, heads, rows), (packs, of_packed, packed), (once, of_prepared, prepared)
    return "\n".join(shown(*part) for part in parts)


def decode(record) -> str:
    """Return the times of a step of decoding with caches of every kind."""
    rows = [
        [row["B"], f"{row['H']} / {row['H_k']}", row["longest"], row["page"] or "contiguous"]
        + ["fp8" if row["fp8"] else "bfloat16"]
        + [number(row["us"].get(name), 1) for name in ("ours", "ours_full", "sdpa")]
        + [f"{row['share']['ours']:.0%}"]
        for row in record["rows"]
    ]
    names = ["ours", "ours, told no lengths", "SDPA", "ours, of a copy's speed"]
    heads = ["B", "query / key heads", "longest", "page", "cache", *names]
    (shared,), (cpu,) = record["shared"], record["cpu"]
    prompt = (
        f"Microseconds for {shared['B']} sequences that share {shared['prompt']} tokens and have {shared['own']}"
    )
    calls, graph = cpu["us"]["step"], cpu["us"]["graph"]
    copy = f"a copy in DRAM moves {record['copy_gbs']} GB/s"
    return "\n".join(
        (
            shown(f"Microseconds for one new query per sequence, d = 128; {copy}", heads, rows),
            shown(f"{prompt} of their own", [*shared["us"]], [[number(us) for us in shared["us"].values()]]),
            f"A step for {cpu['B']} sequences (append, rotate, attend) takes the CPU {calls:.0f} us as calls.\n"
            f"As one CUDA graph it takes {graph:.1f} us, and the GPU {cpu['graph_us']:.0f} us.\n",
        )
    )


def serve(record) -> str:
    """Return the speed of the small language model with each cache, and with both ways of batching."""
    ways = [*record["rows"][0]["tokens_s"]]
    rows = [[row["B"], *(number(row["tokens_s"][way]) for way in ways)] for row in record["rows"]]
    batching = [
        [row["batching"], row["steps"], number(row["at_once"], 1), number(row["tokens_s"])]
        for row in record["batching"]
    ]
    served = record["batching"][0]
    lengths = f"prompts of {record['prompt']} tokens, {record['new']} new ones"
    server = f"A server that answers {served['requests']} requests, at most {served['running']} at once"
    return "\n".join(
        (
            shown(
                f"Tokens per second written by the small language model, {lengths}",
                ["sequences", *(way.replace("_", " ") for way in ways)],
                rows,
            ),
            shown(server, ["batching", "steps", "requests at once, mean", "tokens per second"], batching),
        )
    )


def rings(record) -> str:
    """Return the efficiency of each way on several GPUs, and the time of the ring with copy engines."""
    ways = [way for way in WAYS if any(way in row["efficiency"] for row in record["rows"])]
    rows = []
    for row in record["rows"]:
        seen = f"documents of {row['documents']}" if row["documents"] else f"window of {(row['left'] or 0) + 1}"
        mask = "causal" if row["documents"] is row["left"] is None else seen
        peer = max((x for way, x in row["efficiency"].items() if way.startswith("cp_")), default=None)
        cells = [*(number(row["efficiency"].get(way), 2) for way in ways), number(peer, 2)]
        sizes = [row["ranks"], row["N"], f"{row['H']} / {row['H_k']}", mask, row["pass"]]
        rows.append([*sizes, number(row["ms"]["ring_copy_engines"], 2), *cells])
    heads = ["GPUs", "N", "query / key heads", "mask", "pass", "ring, ms"]
    said = "Efficiency: the time of one GPU for the whole sequence, divided by GPUs times time; d = 128, bfloat16"
    return shown(said, [*heads, *(WAYS[way] for way in ways), "context_parallel"], rows)


def models(record) -> str:
    """Return times and memory of a model of transformers with each attention, and how fast it generates."""
    names = ("eager", "sdpa", "flex", "ours", "hopper")
    heads = ["pass", "B", "N", *(OF_MODELS[name] for name in names)]

    def rows(key, unit):
        for row in record["rows"]:
            found = (row[key].get(name) for name in names)
            yield [row["pass"], row["B"], row["N"], *(None if x is None else number(x / unit, 1) for x in found)]

    writing = [
        [OF_MODELS[row["engine"]], yes(row["compiled"]), number(row.get("tokens_s"), 1), row["graphs"]]
        + [row["graph_breaks"]]
        for row in record["writing"]
    ]
    size = (
        f"{record['weights'] / 1e9:.2f} billion weights, {record['dtype']}, transformers {record['transformers']}"
    )
    took = f"SDPA's backend is {record['sdpa_backend']['step']}"
    said = "Tokens per second of `generate`, one sequence, a static cache"
    return "\n".join(
        (
            shown(f"Milliseconds of a pass over B sequences of N tokens, {size}; {took}", heads, rows("ms", 1)),
            shown("Peak memory of a pass in GB", heads, rows("mb", 1e3)),
            shown(said, ["attention", "compiled", "tokens per second", "graphs of a step", "breaks"], writing),
        )
    )


def gpt(record) -> str:
    """Return time, memory and loss of training a GPT with each attention."""
    rows = [
        [RUNS[run["run"]], number(run["ms"], 1), number(run["mb"]), len(run["loss"]), number(run["loss"][-1], 3)]
        for run in record["runs"]
    ]
    sizes = f"{record['layers']} layers, {record['width']} wide, {record['heads']} heads"
    sentence = f"A GPT of {sizes}, a context of {record['context']}, {record['batch']} sequences per step"
    return shown(sentence, ["attention", "ms per step", "MB", "steps", "last loss"], rows)


def counters(record) -> str:
    """Return the bytes that one call moves, with caches emptied before each kernel."""
    rows = []
    for row in record["rows"]:
        if row["N"] >= 4096:
            tile = f"{row['B_r']} x {row['B_c']}" if row["B_r"] else None
            moved = [sum(k[f"{at}_read"] + k[f"{at}_written"] for k in row["cold"]) for at in ("dram", "l2", "sm")]
            cells = [number(nbytes / 1e6) for nbytes in moved]
            rows.append([NAMES[row["name"]], row["N"], row["d"], yes(row["causal"]), tile, *cells])
    heads = ["attention", "N", "d", "causal", "tile", "DRAM", "L2 cache", "multiprocessors"]
    what = f"{record['dtype']}, one sequence of {record['H']} heads, caches emptied before each kernel"
    return shown(f"Megabytes that one call reads and writes, {what}", heads, rows)


def cpu(record) -> str:
    """Return the times and the memory of NumPy's FlashAttention and of plain NumPy."""
    rows = []
    for row in record["rows"]:
        plain, tiled = row["plain"], min(row["tiled"], key=lambda tiled: tiled["ms"])
        times = [number(each["ms"], 1) for each in (plain, tiled)]
        held = [number(each["peak_bytes"] / 1e6, 1) for each in (plain, tiled)]
        rows.append([row["N"], yes(row["causal"]), *times, f"{tiled['B_r']} x {tiled['B_c']}", *held])
    heads = ["N", "causal", "plain, ms", "tiled, ms", "its tile", "plain, MB", "tiled, MB"]
    return shown(f"One head, {record['dtype']}, d = {record['d']}, one thread; the fastest tile", heads, rows)


class Part(NamedTuple):
    """A part of the page. module: the module of flashlib that makes the record, with its options."""

    title: str
    record: str
    module: str
    make: Callable

    @property
    def command(self) -> str:
        return f"python -m {self.module} --out notebooks/data/{self.record}.json"


PARTS = (
    Part("Forward pass", "h200_forward", "flashlib.bench", passes),
    Part("Backward pass", "h200_backward", "flashlib.bench --backward", passes),
    Part("The kernel for Hopper", "h200_hopper", "flashlib.bench.hopper", hopper),
    Part("The kernel for Hopper, step by step", "h200_hopper_ladder", "flashlib.bench.hopper_ladder", rungs),
    Part(
        "When the kernel for Hopper rescales",
        "h200_hopper_rescaling",
        "flashlib.bench.hopper_rescaling",
        rescaling,
    ),
    Part("Which kernel a small call takes", "h200_choice", "flashlib.bench.choice", choice),
    Part("The backward for Hopper", "h200_hopper_backward", "flashlib.bench.hopper_backward", hopper_backward),
    Part(
        "The backward for Hopper at d = 256",
        "h200_hopper_backward_256",
        "flashlib.bench.hopper_backward --wide",
        hopper_backward,
    ),
    Part(
        "The backward for Hopper, step by step",
        "h200_hopper_backward_ladder",
        "flashlib.bench.hopper_backward_ladder",
        rungs,
    ),
    Part("The kernel for Hopper in eight bits", "h200_fp8", "flashlib.bench.fp8", eight_bits),
    Part("Short sequences and calls", "h200_forward", "flashlib.bench", short),
    Part("The forward pass, step by step", "h200_ladder", "flashlib.bench.ladder", ladder),
    Part("Launches and what limits them", "h200_limits", "flashlib.bench.limits", limits),
    Part("The backward pass, step by step", "h200_backward_ladder", "flashlib.bench.backward_ladder", ladder),
    Part("Variants", "h200_variants", "flashlib.bench.variants", variants),
    Part("Decoding", "h200_decode", "flashlib.bench.decode", decode),
    Part("A language model that writes", "h200_serve", "flashlib.bench.serve", serve),
    Part("Rings", "h200_ring", "flashlib.bench.ring", rings),
    Part("Rings of four", "h200_ring_4", "flashlib.bench.ring --ranks 4", rings),
    Part("A model of transformers", "h200_models", "flashlib.bench.models", models),
    Part("Training a GPT", "h200_gpt", "flashlib.bench.gpt", gpt),
    Part("Bytes, by the GPU's counters", "h200_counters", "flashlib.bench.counters", counters),
    Part("NumPy on a CPU", "cpu_numpy", "flashlib.bench.cpu", cpu),
)


class Awaited(NamedTuple):
    """What has changed since a record was made: kernels, modules as `sources` names them, and both in words."""

    kernels: str
    modules: str
    words: str


# Records that will be made again.
AWAITED = {
    "h200_ring_4": Awaited(
        "hopper_forward hopper_backward",
        "agreements all_gather call copy_engines gradients keys local on_gpu on_hopper ring signals ulysses",
        "the Hopper kernels, whose forward rescales less and whose backward cuts groups of heads into parts, and "
        "before rings took the CPU less time",
    ),
}

HEAD = """# Results

Every number here was recorded by a command of this repository, which verified each result before it timed it. The
files are in [`notebooks/data`](../notebooks/data), and `python -m tools.tables` makes this page from them. A
number comes from one run, as the median of many calls, unless the range of several runs follows it. Timings of
one size differ by some percent from run to run, so smaller differences mean nothing.

"ours" are the portable kernels, in Triton, "Hopper kernel" those for Hopper only, in Gluon. SDPA is PyTorch's
`scaled_dot_product_attention`; "flash" and "cuDNN" are its backends. "SDPA flash" is FlashAttention-2. It was
written for Ampere and does not use the new features of Hopper, so a ratio to it shows what these are worth. The
fair comparisons on Hopper are cuDNN and FlashAttention-4. FlashAttention-3 was not recorded.

TFLOP/s count 4 B H N^2 d operations for the forward pass, 2.5 times as many for the backward pass, and half of
them if causal. A dash means not possible, or not recorded. The timelines of `python -m flashlib.bench.timelines`
are drawn in the notebooks and have no table here.
"""


def page() -> str:
    """Return the text of docs/results.md."""
    parts = []
    for part in PARTS:
        record = read(part.record)
        made = f"{environment(record)}: `{part.command}`."
        if chapters := readers(f"{part.record}.json"):
            made += f" Read by {_links(chapters)}."
        if part.record in AWAITED:
            made += f" It was made before the last change to {AWAITED[part.record].words}."
        parts.append(f"## {part.title}\n\n{made}\n\n{part.make(record)}")
    return "\n".join([HEAD, *parts])


def readers(file) -> list[Chapter]:
    """Return the chapters and other notebooks that read a file of notebooks/data, such as "h200_forward.json"."""
    return [c for c in NOTEBOOKS if f"data/{file}" in _text(DATA.parent / f"{c.slug}.ipynb")]


@functools.cache
def _text(path):
    return path.read_text(encoding="utf-8")


def _links(chapters):
    return ", ".join(f"[{c.title}](../notebooks/{c.slug}.ipynb)" for c in chapters)


def environment(record) -> str:
    """Return device, versions and date of a record."""
    if "gpu" not in record:
        return f"{record['cpu']}, Python {record['python']}, NumPy {record['numpy']}, {record['date']}"
    return f"{record['gpu']}, torch {record['torch']}, Triton {record['triton']}, {record['date']}"


def in_short(of_hopper, backward) -> str:
    """Return the table of the README: causal, N = 16384, with the ratio of ours to SDPA's cuDNN."""
    rows, shared = [], [row for row in backward["grouped"] if row["d"] == 128 and row["H_k"] in (8, 1)]
    for title, of_pass in (("forward", of_hopper["rows"]), ("backward", [*backward["rows"], *shared])):
        for row in of_pass:
            if row["causal"] and row["N"] == 16384:
                cells = [number(row["tflops"].get(name)) for name in ("ours", "hopper", "sdpa_cudnn", "fa4")]
                (ratio,) = over([row], "hopper", "sdpa_cudnn")
                rows.append([title, row["d"], f"{row['H']}/{row['H_k']}", *cells, number(ratio, 2)])
    names = "portable", "Hopper kernel", "SDPA cuDNN", "FlashAttention-4", "Hopper kernel / cuDNN"
    heads = ["pass", "d", "heads of Q/K", *names]
    one, other = (record["gpu"].removeprefix("NVIDIA ").split()[0] for record in (of_hopper, backward))
    where = f"on an {one}" if one == other else f"forward on an {one}, backward on an {other}"
    dates = " and ".join(dict.fromkeys([of_hopper["date"], backward["date"]]))
    return shown(f"TFLOP/s, causal, bfloat16, N = 16384, {where} ({dates})", heads, rows)
