"""A run that measures the stored numbers writes the stored record, and shows these numbers.

Measurements are replaced by a lookup in the stored record, by size. So the sizes, their order, the numbers derived
from times and the tables are those of the record, whatever the GPU.
"""

import contextlib
import copy
import json
import math
import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from flashlib.bench import __main__ as bench
from flashlib.bench import (
    backward_ladder,
    clocks,
    counters,
    cpu,
    decode,
    fp8,
    gpt,
    hopper,
    hopper_backward,
    hopper_backward_ladder,
    hopper_ladder,
    ladder,
    limits,
    models,
    models_writing,
    ring,
    serve,
    short_sequences,
    timelines,
    variants,
)
from flashlib.bench.common import harness, records
from flashlib.bench.common.problem import Size
from flashlib.kernels.launch import tile_sizes
from flashlib.learner import one_thread
from flashlib.lm.model import Config
from flashlib.ring import processes
from tests.bench import recorded
from tools.results import AWAITED

ENVIRONMENT = "gpu", "python", "torch", "triton", "cudnn", "cpu", "numpy", "blas", "date"
COMPILED = "config", "ttgir", "sass"  # what a note gets from the compiler


class Notes(contextlib.nullcontext):
    """Notes before the compiler has answered."""

    def __init__(self, capability=90):
        super().__init__(self)
        assert capability == 90

    def add(self, row, size, asked):
        row["kernels"] = [{"kernel": kernel, **size, "asked": options} for kernel, options in asked.items()]

    def finish(self):
        pass


def stored(name):
    record = json.loads((recorded.DATA / name).read_text(encoding="utf-8"))
    for part in record.values():
        for row in part if isinstance(part, list) else []:
            for note in row.get("kernels", []):
                if "asked" in note:
                    for field in COMPILED:
                        note.pop(field, None)
    return record


def without_notes(row):
    return {key: copy.deepcopy(value) for key, value in row.items() if key != "kernels"}


def the_row(rows, **of):
    """Return the one row with these values."""
    (row,) = (row for row in rows if all(row[key] == value for key, value in of.items()))
    return row


def sizes_of(size):
    return {"d": size.d, "causal": size.causal, "N": size.N, "B": size.B, "H": size.H_q, "H_k": size.H_k}


@pytest.fixture
def replay(monkeypatch, tmp_path, capsys):
    """Return a function that runs a benchmark on a made-up GPU and returns its lines: it must write the record."""
    path = tmp_path / "record.json"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(records, "Notes", Notes)

    def run(main, record, *options):
        here = {key: record[key] for key in ENVIRONMENT if key in record}
        for name in ("environment", "cpu_environment"):
            monkeypatch.setattr(harness, name, lambda: dict(here))
        monkeypatch.setattr(sys, "argv", ["bench", "--out", str(path), *options])
        main()
        assert json.loads(path.read_text(encoding="utf-8")) == record
        return capsys.readouterr().out.splitlines()

    return run


def shows(lines, *words, numbers):
    """Assert that one line has these words and, after them, these numbers and no others."""
    found = []
    for line in lines:
        if all(word in line for word in words):
            rest = line
            for word in words:
                rest = rest.replace(word, " ", 1)
            found.append([float(x) for x in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", rest)])
    assert [n for n in numbers if n is not None] in found, (words, numbers, found)


@pytest.mark.parametrize("backward", [False, True])
def test_the_tables_of_all_peers(backward, replay, monkeypatch):
    record = stored("h200_backward.json" if backward else "h200_forward.json")

    def measure(size, given, gradients):
        row = the_row(record["rows"] + record["more"], **sizes_of(size))
        assert gradients == backward and set(given) ^ set(row["tflops"]) <= {"fa4"}
        return {"tflops": row["tflops"], "mb": row["mb"]}

    def in_graph(B, N, causal):
        return the_row(record["short"], B=B, N=N, causal=causal)

    def call(which, d, N):
        return the_row(record["calls"], d=d, N=N, **{"pass": which})

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(short_sequences, "in_graph", in_graph)
    monkeypatch.setattr(short_sequences, "call", call)
    lines = replay(bench.main, record, *["--backward"] * backward)
    for row in record["rows"] + record["more"]:
        speeds = row["tflops"]
        ratio = round(speeds["ours"] / speeds["sdpa_flash"], 2)
        heads = [row["d"], row["N"], row["H"], row["H_k"]]
        given = [re.sub(r"(\d)/(\d)", r"\1 \2", line) for line in lines]  # heads of Q and of K
        shows(given, str(row["causal"]), numbers=[*heads, *speeds.values(), ratio])
    for row in record.get("short", []):
        both = [row[key][name] for name in short_sequences.NAMES for key in ("graph_us", "host_us")]
        shows(lines, str(row["causal"]), numbers=[row["B"], row["N"], *both])
    for row in record.get("calls", []):
        both = [
            row.get(key, {}).get(name) for name in short_sequences.LOOP_NAMES for key in ("host_us", "loop_us")
        ]
        shows(lines, row["pass"], numbers=[row["d"], row["N"], *both])
    held = [row["mb"]["ours"] for row in record["rows"]]
    shows(lines, "ours holds", numbers=[min(held), max(held)])
    for name in ("ours", "sdpa_cudnn"):
        product, n = 1.0, len(record["rows"])
        for row in record["rows"]:
            product *= row["tflops"][name] / row["tflops"]["sdpa_flash"]
        shows(lines, f"geometric mean of {name} / sdpa_flash:", numbers=[round(product ** (1 / n), 3)])


def test_a_quick_run_has_only_the_middle_length(monkeypatch, tmp_path, capsys):
    record, asked = stored("h200_forward.json"), []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(records, "Notes", Notes)
    monkeypatch.setattr(harness, "environment", dict)
    monkeypatch.setattr(bench, "measure", lambda size, given, gradients: asked.append(size.N) or record["rows"][0])
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    bench.main()
    assert asked == [bench.QUICK] * 4


def test_the_tables_of_the_hopper_kernel(replay, monkeypatch):
    record, runs = stored("h200_hopper.json"), Counter()
    rows = record["rows"] + record.get("more", [])

    def measure(size, dtype, given, gradients, verify):
        assert given is None and not gradients and verify == (not runs[size, dtype])
        row = the_row(rows, **sizes_of(size), dtype=str(dtype).removeprefix("torch."))
        speeds = {name: speeds[runs[size, dtype]] for name, speeds in row["runs"].items()}
        runs[size, dtype] += 1
        return {key: value for key, value in without_notes(row).items() if key != "runs"} | {"tflops": speeds}

    def call(size):
        return the_row(record["calls"], d=size.d, N=size.N, B=size.B, H=size.H_q)

    monkeypatch.setattr(hopper, "PEERS", dict.fromkeys(record["rows"][0]["tflops"]))
    monkeypatch.setattr(hopper, "measure", measure)
    monkeypatch.setattr(hopper, "call", call)
    for name in {"more", "calls"} - record.keys():
        monkeypatch.setattr(hopper, name.upper(), [])
    n = len(rows[0]["runs"]["hopper"])
    lines = replay(hopper.main, record, "--runs", str(n))
    for row in rows:
        for nth in range(n):
            speeds = [speeds[nth] for speeds in row["runs"].values()]
            shows(lines, str(row["causal"]), f"{row['H']}/{row['H_k']}", numbers=[row["d"], row["N"], *speeds])
    for part in {"rows", "more"} & record.keys():
        worse = [row for row in record[part] if row["error"]["hopper"] > row["error"]["ours"]]
        shows(lines, "larger than ours in", numbers=[len(worse), len(record[part])])


@pytest.mark.parametrize("name, options", [("h200_hopper_backward", []), ("h200_hopper_backward_256", ["--wide"])])
def test_the_tables_of_the_hopper_backward(name, options, replay, monkeypatch):
    record, runs = stored(f"{name}.json"), Counter()
    tables = [record["rows"] + record.get("more", []), record.get("grouped", [])]

    def measure(size, dtype, given, gradients, verify):
        rows = tables["ours_fused" not in given]
        key = size, dtype, len(given)
        assert gradients and verify == (not runs[key]) and set(given) ^ set(rows[0]["tflops"]) <= {"fa4"}
        row = the_row(rows, **sizes_of(size), dtype=str(dtype).removeprefix("torch."))
        speeds = {name: speeds[runs[key]] for name, speeds in row["runs"].items()}
        runs[key] += 1
        return {key: value for key, value in without_notes(row).items() if key != "runs"} | {"tflops": speeds}

    monkeypatch.setattr(hopper, "measure", measure)
    if "more" not in record:
        monkeypatch.setattr(hopper_backward, "MORE", [])
    if "grouped" not in record:
        monkeypatch.setattr(hopper_backward, "GROUPED", [])
    n = len(record["rows"][0]["runs"]["hopper"])
    lines = replay(hopper_backward.main, record, "--runs", str(n), *options)
    for row in sum(tables, []):
        for nth in range(n):
            speeds = [speeds[nth] for speeds in row["runs"].values()]
            shows(lines, str(row["causal"]), f"{row['H']}/{row['H_k']}", numbers=[row["d"], row["N"], *speeds])


def test_the_tables_of_eight_bits(replay, monkeypatch):
    record, runs = stored("h200_fp8.json"), Counter()

    def measure(size):
        row = the_row(record["rows"], d=size.d, causal=size.causal, N=size.N, B=size.B, H=size.H_q)
        speeds = {name: speeds[runs[size]] for name, speeds in row["runs"].items()}
        runs[size] += 1
        return {key: value for key, value in without_notes(row).items() if key != "runs"} | {"tflops": speeds}

    monkeypatch.setattr(fp8, "frontend", lambda: record["cudnn_frontend"])
    monkeypatch.setattr(fp8, "errors", lambda kind, N: the_row(record["errors"], kind=kind, N=N))
    monkeypatch.setattr(fp8, "measure", measure)
    n = len(record["rows"][0]["runs"]["fp8"])
    lines = replay(fp8.main, record, "--runs", str(n))
    assert [line for line in lines if "'kind'" in line] == [str(row) for row in record["errors"]]
    for row in record["rows"]:
        size = [row["d"], row["B"], row["H"], row["H"], row["N"]]
        for nth in range(n):
            speeds = [speeds[nth] for speeds in row["runs"].values()]
            given = [*size, *speeds, *row["pass_us"].values()]
            shows(lines, f"'causal': {row['causal']}", numbers=given)
    ratios = [row["tflops"]["fp8"] / row["tflops"]["cudnn_fp8"] for row in record["rows"]]
    own = [round(math.prod(ratios) ** (1 / len(ratios)), 3), round(min(ratios), 3)]
    shows(lines, "fp8 / cudnn_fp8: geometric mean", numbers=own)


def test_the_rungs_of_the_hopper_forward(replay, monkeypatch):
    record, runs = stored("h200_hopper_ladder.json"), Counter()

    def measure(size, dtype, given, gradients, verify):
        assert not gradients and verify == (not runs[size])
        row = the_row(record["rungs"], **sizes_of(size), dtype=str(dtype).removeprefix("torch."))
        assert list(given) == list(row["tflops"])
        speeds = {name: speeds[runs[size]] for name, speeds in row["runs"].items()}
        runs[size] += 1
        return {key: value for key, value in without_notes(row).items() if key != "runs"} | {"tflops": speeds}

    monkeypatch.setattr(hopper, "measure", measure)
    n = len(record["rungs"][0]["runs"]["hopper_r1_alike"])
    lines = replay(hopper_ladder.main, record, "--runs", str(n))
    for row in record["rungs"]:
        for nth in range(len(row["runs"]["hopper_r1_alike"])):
            speeds = [speeds[nth] for speeds in row["runs"].values()]
            shows(lines, str(row["causal"]), f"{row['H']}/{row['H_k']}", numbers=[row["d"], row["N"], *speeds])


def test_the_rungs_of_the_hopper_backward(replay, monkeypatch):
    record, runs = stored("h200_hopper_backward_ladder.json"), Counter()

    def measure(size, given, gradients):
        assert gradients
        row = the_row(record["rungs"], **sizes_of(size))
        assert list(given) == list(row["tflops"])
        speeds = {name: speeds[runs[size]] for name, speeds in row["runs"].items()}
        runs[size] += 1
        return {key: value for key, value in without_notes(row).items() if key != "runs"} | {"tflops": speeds}

    monkeypatch.setattr(hopper, "measure", measure)
    lines = replay(hopper_backward_ladder.main, record)
    for row in record["rungs"]:
        for name, speeds in row["runs"].items():
            for speed in speeds:
                shows(lines, name, "error", numbers=[speed, row["error"][name]])


def without_tensors(of):
    """Return the class of problems of a ladder without their tensors; Q is said to be on a GPU."""
    Q = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16, device=torch.device("cuda", 0))

    class Problem(of):
        def __init__(self, B, H, N, d, causal):
            self.size = Size(B, H, H, N, d, causal)
            self.row = {"B": B, "H": H, "N": N, "d": d, "causal": causal}
            self.N, self.d, self.causal, self.tensors = N, d, causal, (Q,)
            self.head_flops, self.expected = 0, dict.fromkeys(("O", "dQ", "dK", "dV"))

    return Problem


@pytest.mark.parametrize("name", ["ladder", "backward_ladder"])
def test_the_ladders(name, replay, monkeypatch):
    record, module = stored(f"h200_{name}.json"), {"ladder": ladder, "backward_ladder": backward_ladder}[name]
    of_problem = {"ladder": "LadderProblem", "backward_ladder": "BackwardLadderProblem"}[name]

    def time(rung, problem, options, part):
        own = json.loads(json.dumps({"part": part, "rung": rung.name, "options": options, **problem.row}))
        rows = [row for row in record["rows"] if row.get("pass") == problem.row.get("pass")]
        return without_notes(the_row(rows, idea=rung.idea, **own)) | {"best": None}

    monkeypatch.setattr(module, of_problem, without_tensors(getattr(module, of_problem)))
    monkeypatch.setattr(ladder, "time", time)
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(227 * 1024, 132, tma=True))
    monkeypatch.setattr(ladder, "ceiling", lambda: [row for row in record["rows"] if row["part"] == "ceiling"])
    monkeypatch.setattr(ladder, "OTHERS", [rung for rung in ladder.OTHERS if rung.name != "fa4"])
    main = ladder.main if name == "ladder" else lambda: ladder.main(name, "", backward_ladder.measure)
    lines = replay(main, record)
    for row in record["rows"]:
        if row["part"] == "ceiling":
            shows(lines, row["idea"] + ":", numbers=[row["tflops"] or row["gb_per_s"]])
        elif row["ms"]:
            tile = [
                n for value in row["options"].values() for n in (value if isinstance(value, list) else [value])
            ]
            tile = [n for n in tile if not isinstance(n, bool)]
            starred = [" *"] * row["best"]
            shows(lines, f"d={row['d']} ", f"N={row['N']} ", row["rung"], *starred, numbers=[*tile, row["tflops"]])


def test_the_limits(replay, monkeypatch):
    record = stored("h200_limits.json")

    def time(rung, problem, options, part):
        own = json.loads(json.dumps({"part": part, "rung": rung.name, "options": options, **problem.row}))
        row = the_row(record["rows"], **own)
        return {name: value for name, value in row.items() if name not in ("launch", "limit", "best")}

    monkeypatch.setattr(ladder, "LadderProblem", without_tensors(ladder.LadderProblem))
    monkeypatch.setattr(ladder, "time", time)
    lines = replay(lambda: ladder.main("limits", "", limits.measure), record)
    for row in record["rows"]:
        of = f"{row['launch']} {row['limit'] or 'as it is'}", f"d={row['d']} ", f"N={row['N']} ", row["rung"]
        shows(lines, *of, *[" *"] * row["best"], numbers=[*row["options"].values(), row["tflops"]])


def test_the_table_of_variants(replay, monkeypatch):
    record = stored("h200_variants.json")

    def which(size, gradients):
        return {
            "pass": "backward" if gradients else "forward",
            "d": size.d,
            "N": size.N,
            "B": size.B,
            "H": size.H_q,
        }

    def measure(case, size, gradients):
        return the_row(record["rows"], case=case.name, **which(size, gradients))

    monkeypatch.setattr(variants, "measure", measure)
    monkeypatch.setattr(variants, "packed", lambda *of: the_row(record["packed"], **which(*of)))
    lines = replay(variants.main, record)
    product, ratios = 1.0, []
    for row in record["rows"] + record["packed"]:
        ms = row["ms"]
        own = [
            round(ms["ours"], 3),
            *(round(ms[name] / ms["ours"], 2) if ms.get(name) else None for name in variants.NAMES[1:]),
        ]
        own.append(round(row["per_tile"], 2) if "case" in row else round(row["padded_ms"], 3))
        where = f"{row['pass']:8} d {row['d']:3} N {row['N']:5} {row.get('case', 'packed'):16}"
        shows(lines, where, numbers=own)
        ratios += [ms["flex"] / ms["ours"]] if ms["flex"] else []
    for ratio in ratios:
        product *= ratio ** (1 / len(ratios))
    shows(lines, "geometric mean", numbers=[round(product, 3), round(min(ratios), 3)])


def test_the_table_of_decoding(replay, monkeypatch):
    record = stored("h200_decode.json")
    gqa = {"H": 32, "H_k": 8}

    def measure(case, size, copy_gbs):
        assert copy_gbs == record["copy_gbs"]
        own = {"B": size.B, "H": size.H_q, "H_k": size.H_k, "N": size.N, "page": size.page, "fp8": size.fp8}
        return the_row(record["rows"], case=case, tokens=size.tokens, longest=max(size.lengths or [size.N]), **own)

    def by_parts(size):
        assert {"H": size.H_q, "H_k": size.H_k} == gqa
        return [row for row in record["parts"] if (row["B"], row["N"]) == (size.B, size.N)]

    def sweep(case, size, multiprocessors):
        return {"case": case, "N": size.N, "multiprocessors": multiprocessors}

    record["parts"] = by_parts(decode.DecodeSize(1, *decode.GQA, decode.LONG))
    record |= {"multiprocessors": 132, "sweep": [sweep(case, size, 132) for case, size in decode.SIZES]}
    device = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: device)
    monkeypatch.setattr(decode.bandwidth, "dram_copy", lambda: (round(record["copy_gbs"] * 2.5e6), 2.5))
    monkeypatch.setattr(decode, "measure", measure)
    monkeypatch.setattr(decode, "by_parts", by_parts)
    monkeypatch.setattr(decode, "sweep", sweep)
    monkeypatch.setattr(decode, "with_a_prompt", lambda: record["shared"][0])
    monkeypatch.setattr(decode, "steps", lambda: record["cpu"][0])
    lines = replay(decode.main, record)
    for row in record["rows"]:
        where = f"{row['case']:8} B {row['B']:3} {row['H']}/{row['H_k']:<3} N {row['N']:6} page {row['page']:3}"
        cells = [n for name in row["us"] for n in (round(row["us"][name], 1), round(row["share"][name], 2))]
        shows(lines, where, *["fp8"] * row["fp8"], numbers=[row["longest"], *cells])


def test_the_runs_of_the_gpt(replay, monkeypatch):
    record = stored("h200_gpt.json")

    class Problem:
        def __init__(self, text, sizes, batch, steps):
            assert (batch, steps) == (record["batch"], record["steps"])
            self.config = Config(vocab=len(set(text)), **sizes)

        def model(self, attention):
            weights = [SimpleNamespace(numel=lambda n=n: n) for n in (5, record["weights"] - 5)]
            return SimpleNamespace(parameters=lambda: weights)

    rows = [without_notes(row) for row in record["runs"]]
    monkeypatch.setattr(gpt, "TrainingProblem", Problem)
    monkeypatch.setattr(gpt, "measure", lambda of: (rows, record["apart"]))
    replay(gpt.main, record)
    for row in record["runs"]:
        mean = sum(row["loss"][-gpt.WINDOW :]) / gpt.WINDOW
        own = [round(row["ms"], 2), row["mb"], len(row["loss"]), row["loss"][0], pytest.approx(mean, abs=1e-4)]
        shows([gpt.line(row)], row["run"], numbers=own)


def test_the_tables_of_writing(replay, monkeypatch):
    record = stored("h200_serve.json")
    model = SimpleNamespace(bfloat16=lambda: "model")
    monkeypatch.setattr(serve.checkpoint, "load", lambda path, device: (model, {}))
    monkeypatch.setattr(serve, "split", lambda text, device: (None, torch.arange(9000)))
    monkeypatch.setattr(serve, "measure", lambda of, prompts: the_row(record["rows"], B=len(prompts)))
    monkeypatch.setattr(serve, "batching", lambda of, requests: record["batching"] if len(requests) == 256 else [])
    lines = replay(serve.main, record)
    for row in record["rows"]:
        for name in row["tokens_s"]:
            shows(lines, f"  {name:10}", numbers=[row[key][name] for key in row if key != "B"])


@pytest.mark.parametrize(("file", "P"), [("h200_ring.json", 2), ("h200_ring_4.json", 4)])
def test_the_rows_of_rings(replay, monkeypatch, file, P):
    record = stored(file)

    def rows(size, device, clock):
        assert device == "cuda" and clock is ring.cuda_clock
        found = [row for row in record["rows"] if size._asdict().items() <= row.items()]
        assert [row["pass"] for row in found] == ["forward", "both"]
        return [without_notes(row) for row in found]

    def on_one(function, *args, ranks, **_):
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: ranks)
        function(*args)

    if file.removesuffix(".json") in AWAITED:  # sizes that are newer than the record are not in it
        known = {row["N"] for row in record["rows"]}
        monkeypatch.setattr(ring, "SIZES", [size for size in ring.SIZES if size.N in known])
    monkeypatch.setattr(ring, "rows", rows)
    monkeypatch.setattr(ring, "sources", lambda: record["sources"])  # held by test_records
    monkeypatch.setattr(processes, "run", on_one)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    lines = replay(ring.main, record, "--ranks", str(P))
    for row in record["rows"]:
        assert row["ranks"] == P
        for name, ms in row["ms"].items():
            share = row["efficiency"].get(name)
            shows(lines, f" {name} ", numbers=[round(ms, 2), share])


def test_efficiency_on_more_ranks_was_predicted_before_they_ran():
    for row in stored("h200_ring.json")["rows"] + stored("h200_ring_4.json")["rows"]:
        assert row["predicted"] == ring.predicted(row, row["ranks"])


def test_a_model_of_transformers(replay, monkeypatch):
    record = stored("h200_models.json")
    weights = SimpleNamespace(numel=lambda: record["weights"])
    model = SimpleNamespace(parameters=lambda: [weights], set_attn_implementation=lambda name: None)
    monkeypatch.setattr(models, "refused", lambda: None)
    monkeypatch.setattr(models.importlib.metadata, "version", lambda name: record["transformers"])
    for name in ("register", "afresh"):
        monkeypatch.setattr(models, name, lambda: None)
    monkeypatch.setattr(models, "llama", lambda device: model)
    monkeypatch.setattr(models, "Verifier", lambda device: "verifier")
    monkeypatch.setattr(models, "sdpa_backend", lambda of, N: record["sdpa_backend"])

    def rows(N, stage, verifier, engines):
        assert (stage.model, stage.turns, verifier, engines) == (model, 5, "verifier", models.ENGINES)
        return [without_notes(the_row(record["rows"], N=N, **{"pass": which})) for which in ("step", "prefill")]

    monkeypatch.setattr(models, "rows", rows)
    monkeypatch.setattr(models_writing, "rows", lambda of, size, turns: record["writing"])
    lines = replay(models.main, record)
    for row in record["rows"]:
        for name, ms in row["ms"].items():
            errors = row["error"][name], row["gradients"][name]
            shows(lines, f"  {name:>8} ", numbers=[round(ms, 2), row["tokens_s"][name], row["mb"][name], *errors])


def test_the_timelines(replay, monkeypatch):
    record = stored("h200_timelines.json")
    monkeypatch.setattr(timelines, "inputs", lambda d: (d, d + 1, d + 2))

    def measure(rung, Q, K, V):
        assert (K, V) == (Q + 1, Q + 2)
        return without_notes(the_row(record["rows"], rung=rung, d=Q))

    monkeypatch.setattr(timelines, "measure", measure)
    monkeypatch.setattr(timelines, "compared", lambda row, n: f"at {n}")
    recorded = {row["rung"] for row in record["rows"]}
    models = {rung: model for rung, model in timelines.measured.MODELS.items() if rung in recorded}
    monkeypatch.setattr(timelines.measured, "MODELS", models)
    lines = replay(timelines.main, record)
    for row in record["rows"]:
        own = [*(n for at, one in enumerate(row["programs"]) for n in (one["number"], at))]
        longer = round(row["ms"]["marked"] / row["ms"]["plain"], 3)
        shows(lines, f"{row['rung']} d {row['d']}:", numbers=[*own, longer])


def test_the_clocks(replay, monkeypatch):
    record = stored("h200_clocks.json")
    monkeypatch.setattr(clocks, "rows", lambda: iter(record["rows"]))
    monkeypatch.setattr(clocks, "works", lambda: {row["beside"]: row["beside"] for row in record["ghz"]})
    monkeypatch.setattr(clocks, "ghz", lambda beside: the_row(record["ghz"], beside=beside)["runs"])
    monkeypatch.setattr(clocks, "sources", lambda: record["source"])
    replay(clocks.main, record)


def test_the_counters(replay, monkeypatch):
    record = stored("h200_counters.json")

    def profile(control):
        name = {"all": "cold", "none": "warm"}[control]
        fields = counters.CountedCall._fields
        return {counters.CountedCall(*(row[field] for field in fields)).label: row[name] for row in record["rows"]}

    monkeypatch.setattr(counters, "profile", profile)
    monkeypatch.setattr(counters.shutil, "which", lambda name: name)
    here = SimpleNamespace(L2_cache_size=record["l2_bytes"])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: here)
    lines = replay(counters.main, record)
    for row in record["rows"]:
        moved = [
            round(sum(kernel[f"{place}_read"] + kernel[f"{place}_written"] for kernel in row[name]) / 1e6, 1)
            for name in ("cold", "warm") for place in ("sm", "l2", "dram")
        ]  # fmt: skip
        call = counters.CountedCall(*(row[field] for field in counters.CountedCall._fields))
        form = call.closed_form()
        shows(lines, call.label + " ", numbers=[form and round(form.total / 1e6, 1), *moved])


def test_numpy_on_a_cpu(replay, monkeypatch):
    record, asked = stored("cpu_numpy.json"), []
    for name in one_thread.THREADS:
        monkeypatch.setenv(name, "1")

    def measure(N, causal, turns):
        asked.append(turns)
        return the_row(record["rows"], N=N, causal=causal)

    monkeypatch.setattr(cpu, "measure", measure)
    lines = replay(cpu.main, record)
    assert asked == [7] * 8 + [3] * 2
    for row in record["rows"]:
        plain = row["plain"]
        shows(lines, str(row["causal"]), "plain",
              numbers=[row["N"], round(plain["ms"], 1), round(plain["peak_bytes"] / 1e6, 1)])  # fmt: skip
        for tile in row["tiled"]:
            ratios = round(tile["ms"] / plain["ms"], 2), round(100 * tile["peak_bytes"] / plain["peak_bytes"], 1)
            own = [round(tile["ms"], 1), ratios[0], round(tile["peak_bytes"] / 1e6, 1), ratios[1]]
            shows(lines, f"{tile['B_r']} x {tile['B_c']} ", "%", numbers=own)
