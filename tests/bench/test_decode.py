"""The benchmark of decoding: the recorded kernels are today's, and a wrong result is not timed."""

import json

import pytest
import torch

from flashlib import splits
from flashlib.bench import decode
from flashlib.bench.common import harness
from flashlib.bench.decode import DecodeSize
from flashlib.kernels import decode as kernel
from flashlib.kernels.compiler import client, compiled
from tests.bench import recorded
from tests.tiers import amounts

RECORD = json.loads((recorded.DATA / "h200_decode.json").read_text(encoding="utf-8"))
AGAIN = "make the record again: python -m flashlib.bench.decode --out notebooks/data/h200_decode.json"


def attention(Q, K, V, *, causal, at):
    """Launch the kernels of a recorded row for `today`, over a cache that is never filled."""
    size = decode.SIZES[at][1]
    each, table = torch.tensor(size.lengths or [size.N] * size.B), None
    shape = size.B, size.H_k, int(each.max()), decode.D
    if size.page:
        pages = -(-each // size.page)
        shape = int(pages.sum()), size.H_k, size.page, decode.D
        table = torch.zeros(size.B, int(pages.max()), dtype=torch.int32)
    K, V = (torch.empty(shape, dtype=torch.float8_e4m3fn if size.fp8 else torch.bfloat16) for _ in range(2))
    k_scale, v_scale = (torch.empty(shape[:3]) if size.fp8 else None for _ in range(2))
    Q = torch.empty(size.B, size.H_q, 1, decode.D, dtype=torch.bfloat16)
    return kernel.attention(Q, K, V, each.int(), table, k_scale=k_scale, v_scale=v_scale)


def today(at, name) -> str:
    """Return the hash of what a kernel of a recorded row is compiled to today, without a GPU."""
    asked = {"kernel": name, "d": decode.D, "dtype": "bfloat16", "causal": False, "capability": 90}
    asked |= {"module": __name__, "call": "attention", "launched": name, "options": {"at": at}}
    found = client.compile_for_gpu(asked | {"shape": (1, 1, 1, 16), "until": "ttgir"})
    return compiled.hash_of(found["ttgir"], found["compile_options"])


@pytest.mark.compiles
@pytest.mark.parametrize("at", range(len(RECORD["rows"])))
def test_what_was_timed_is_what_is_compiled_today(at):
    assert RECORD["triton"] == recorded.pinned_triton(), AGAIN
    assert {k["kernel"]: today(at, k["kernel"]) for k in RECORD["rows"][at]["kernels"]} == {
        k["kernel"]: k["ttgir"] for k in RECORD["rows"][at]["kernels"]
    }, AGAIN


def test_every_size_is_recorded_and_says_which_kernels_ran():
    found = [
        (row["case"], row["B"], row["H"], row["H_k"], row["N"], row["page"], row["fp8"], row["longest"])
        for row in RECORD["rows"]
    ]
    assert found == [(case, *size[:6], max(size.lengths or [size.N])) for case, size in decode.SIZES]
    for row in RECORD["rows"]:
        assert [kernel["kernel"] for kernel in row["kernels"]] == ["_partial", "_merge"]


NEAR, ON_AVERAGE = 1.08, 1.01  # times the fastest number of parts; the worst is one sequence of fp8


def test_the_chosen_number_of_parts_is_near_the_best_recorded_one():
    """The choice of the model in `splits` was timed, and takes little longer than the fastest number tried."""
    ratios = []
    assert [(row["case"], row["B"], row["page"]) for row in RECORD["sweep"]] == [
        (case, size.B, size.page) for case, size in decode.SIZES
    ]
    for row in RECORD["sweep"]:
        asked = {name: row[name] for name in ("places", "ragged", "looks_up")}
        n = splits.chosen(row["tiles"], row["heads"], RECORD["multiprocessors"], **asked)
        assert n == row["chosen"]
        ratios.append(row["us"][str(n)] / min(row["us"].values()))
    assert max(ratios) <= NEAR and sum(ratios) / len(ratios) <= ON_AVERAGE, ratios


SIZES = {
    "contiguous": DecodeSize(2, 4, 2, 96),
    "pages": DecodeSize(2, 4, 2, 96, 16),
    "fp8": DecodeSize(2, 4, 1, 96, 0, True),
    "fp8 in pages": DecodeSize(2, 2, 2, 96, 32, True),
    "ragged": DecodeSize(3, 4, 2, 50, 16, False, decode.lengths(3, 50)),
}


@pytest.fixture
def no_clock(monkeypatch):
    """Instead of a clock, a call takes 1 us; instead of being captured in a graph, it is made once."""
    monkeypatch.setattr(harness, "side_by_side", lambda runs: dict.fromkeys(runs, decode.REPLAYS / 1000))

    def captured(run, times):
        run()
        return type("Graph", (), {"replay": lambda self: None})()

    monkeypatch.setattr(harness, "captured", captured)


@pytest.mark.parametrize("amount, case", amounts(SIZES, few=["contiguous", "fp8 in pages", "ragged"]))
def test_a_row_says_what_was_timed(case, amount, no_clock):
    torch.manual_seed(0)
    size = SIZES[case]
    row = decode.measure(case, size, 4000, device="cpu", cold=0)
    assert set(row["us"]) == set(decode.peers(size)) and ("sdpa" in row["us"]) == (case == "contiguous")
    scales = 8 if size.fp8 else 0
    assert row["bytes"] == size.tokens * size.H_k * (2 * decode.D * (1 if size.fp8 else 2) + scales)
    assert row["share"]["ours"] == pytest.approx(row["bytes"] / 4e6, abs=1e-3)
    assert [kernel["kernel"] for kernel in row["kernels"]] == ["_partial", "_merge"]


@pytest.mark.parametrize("amount, case", amounts(SIZES, few=["contiguous", "fp8 in pages"]))
def test_a_wrong_result_is_not_timed(case, amount):
    torch.manual_seed(0)
    problem = decode.DecodeProblem(SIZES[case], "cpu", cold=0)
    problem.verify("ours", decode.ours)
    with pytest.raises(AssertionError, match="O of half at"):
        problem.verify("half", lambda Q, **cache: decode.ours(Q, **cache) / 2)


def test_there_are_more_caches_than_fit_in_the_L2_cache():
    size = SIZES["contiguous"]
    problem = decode.DecodeProblem(size, "cpu", cold=3 * size.bytes)
    assert len(problem.caches) == 3 and len({cache["K"].data_ptr() for cache in problem.caches}) == 3


@pytest.mark.parametrize("case, amount", [("contiguous", "all"), ("ragged", "few")])
def test_a_sweep_records_the_choice_and_its_arguments(case, amount, no_clock, monkeypatch):
    monkeypatch.setattr(harness, "replayed_us", lambda graphs: dict.fromkeys(graphs, 40.0))
    torch.manual_seed(0)
    row = decode.sweep(case, SIZES[case], 8, device="cpu", cold=0)
    asked = {name: row[name] for name in ("places", "ragged", "looks_up")}
    chosen = splits.chosen(row["tiles"], row["heads"], 8, **asked)
    assert row["chosen"] == chosen and row["ragged"] == (row["B"] > 1)
    assert str(chosen) in row["us"] and len(row["us"]) > 1


def test_a_prompt_is_shared_by_all(no_clock, monkeypatch):
    monkeypatch.setattr(decode, "GQA", (4, 2))
    torch.manual_seed(0)
    row = decode.with_a_prompt(B=3, prompt=64, own=20, page=16, device="cpu", cold=0)
    assert set(row["us"]) == {"pages of their own", "read by each", "read once"}


def test_a_row_for_each_number_of_parts(no_clock, monkeypatch):
    size, asked = SIZES["contiguous"], []

    def ours(Q, K, V, lengths, parts):
        asked.append(parts)
        return decode.sdpa(Q, K, V, lengths)

    monkeypatch.setattr(decode, "ours", ours)
    rows = decode.by_parts(size, "cpu", cold=0)
    assert [row["parts"] for row in rows] == sorted(set(asked)) and min(asked) == 1
    for row in rows:
        assert (row["B"], row["H"], row["H_k"], row["N"], row["us"]) == (2, 4, 2, 96, 1.0)
    monkeypatch.setattr(decode, "ours", lambda Q, K, V, lengths, parts: Q)
    with pytest.raises(AssertionError, match="O of 1 parts at"):
        decode.by_parts(size, "cpu", cold=0)


def test_a_step_appends_rotates_and_attends(no_clock, monkeypatch):
    calls, kept = [], {}

    def host_us(runs):
        kept.update(runs)
        for name, run in runs.items():
            calls.append([name])
            run()
        return dict.fromkeys(runs, 3.0)

    def called(name, result):
        return lambda *given, **options: calls[-1].append(name) or result

    monkeypatch.setattr(decode.short_sequences, "host_us", host_us)
    monkeypatch.setattr(harness, "median_ms", lambda run: 0.05)
    monkeypatch.setattr(decode, "ours", called("attend", None))
    monkeypatch.setattr(decode.kernels("append"), "append", called("append", None))
    monkeypatch.setattr(decode.kernels("append"), "rotate", called("rotate", None))
    calls.append([])  # what is captured as a graph
    row = decode.steps(B=2, N=32, page=16, device="cpu")
    step = ["append", "rotate", "attend"]
    ours = ["step", *step], ["attention", "attend"], ["graph"], ["contiguous", "attend"]
    assert calls == [step, *ours, ["sdpa"]]
    assert row == {"B": 2, "N": 32, "page": 16, "us": dict.fromkeys(kept, 3.0), "graph_us": 50.0}


def test_lengths_are_ragged_and_add_up():
    each = decode.lengths(16, 8192)
    assert sum(each) == 16 * 8192 and min(each) > 0 and max(each) > 2 * 8192


def test_memory_is_counted():
    rows = {row["case"]: row for row in decode.memory(B=50, N=300)}
    per_token = {name: row["bytes_per_token"] for name, row in rows.items() if "bytes_per_token" in row}
    assert per_token["MHA"] == 4 * per_token["GQA"] == 32 * per_token["MQA"]
    assert per_token["GQA in fp8"] == per_token["GQA"] // 2 + 8 * 2 * 4
    assert rows["pages of 16"]["empty"] < rows["pages of 256"]["empty"] < rows["longest reserved"]["empty"]
