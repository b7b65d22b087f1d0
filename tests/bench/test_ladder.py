"""The climb goes through every rung, verifies and records it; in the interpreter, with a made-up clock."""

import json

import pytest
import torch

from flashlib import cost, kernels
from flashlib.bench import ladder
from flashlib.bench.common import harness, records

NAMES = [
    "r1_eager",
    "r2_softmax",
    "r3_flash",
    "r4_exp2",
    "r5_causal",
    "r6_tiles",
    "r7_stages",
    "r8_descriptors",
    "ours",
]


@pytest.fixture
def problem():
    torch.manual_seed(0)
    return lambda causal: ladder.LadderProblem(1, 2, 80, 16, causal, device=kernels.DEVICE)


@pytest.mark.parametrize("causal", [False, True])
def test_the_climb_goes_through_every_rung(causal, problem, clock, tmp_path):
    whole = problem(causal)
    whole.head_flops = 15 * 10**9  # so many that what a row says of them is not rounded to 0
    rows = ladder.climb(whole, ladder.RUNGS, "ladder")
    rows += ladder.climb(problem(causal), [ladder.PARTNER, *ladder.WITHOUT], "fa2")
    rows += ladder.climb(problem(causal), [ladder.ONE_WAIT, ladder.TWO_WAITS], "wait")
    assert list(dict.fromkeys(row["rung"] for row in rows if row["part"] == "ladder")) == NAMES
    fa2 = [row["rung"] for row in rows if row["part"] == "fa2"]
    assert fa2 == ["r5_causal", "without_late_division", "without_parallel_rows", "without_split_rows"]
    one, two = (row for row in rows if row["part"] == "wait")
    assert (one["rung"], two["rung"]) == ("r8_descriptors", "without_common_wait")
    assert one["options"] == two["options"]
    for at, row in enumerate(rows):
        assert row["ms"] == pytest.approx(2 - (2 * at + 1) / 200), "the smaller of two times"
        assert row["flop_per_byte"] > 0, row
        if row["part"] == "ladder":
            tiled = {name: row["options"].get(name) for name in ("B_r", "B_c")}
            skips = causal and row["rung"] not in ("r3_flash", "r4_exp2")
            of = {"dtype": "bfloat16"} | ({"causal": skips} | tiled if tiled["B_r"] else {})
            moved = (cost.fa2_traffic if tiled["B_r"] else cost.standard_traffic)(80, 80, 16, **of)
            assert row["tflops"] == pytest.approx(2 * 15e9 / row["ms"] / 1e9, abs=0.06)
            assert row["flop_per_byte"] == pytest.approx(15e9 / (moved.read + moved.written), abs=0.06)
    assert sum(row["best"] for row in rows) == len(NAMES) + len(fa2) + 2

    by_rung = {name: [row for row in rows if row["rung"] == name and row["part"] == "ladder"] for name in NAMES}
    best = [row["options"] for row in by_rung["r6_tiles"]][:-3:-1]  # on this clock the last two
    tried = [row["options"] for row in by_rung["r7_stages"]]
    assert tried == [options | {"num_stages": n} for options in best for n in (2, 3, 4)]
    assert by_rung["r8_descriptors"][0]["options"] == tried[-1]

    harness.write(tmp_path / "ladder.json", {"gpu": "none", "rows": rows})
    assert json.loads((tmp_path / "ladder.json").read_text())["rows"] == rows


def test_the_roofline_point_is_the_closed_form(problem):
    causal, full = problem(True), problem(False)
    by_name = {rung.name: rung for rung in ladder.RUNGS}
    assert by_name["r1_eager"].traffic(full).total > 4 * 80 * 80 * 2
    for name in ("r3_flash", "r4_exp2"):  # they skip no tile
        assert by_name[name].traffic(causal, **ladder.SMALL) == by_name[name].traffic(full, **ladder.SMALL)
    tiled = by_name["r5_causal"].traffic
    assert tiled(causal, **ladder.SMALL).total < tiled(full, **ladder.SMALL).total


def test_a_wrong_rung_is_refused(problem, clock):
    wrong = ladder.Rung("wrong", "a mean", lambda Q, K, V, causal: V.mean(dim=2, keepdim=True).expand_as(Q))
    with pytest.raises(AssertionError, match="wrong at .* is wrong: error"):
        ladder.climb(problem(False), [wrong], "ladder")


def test_a_rung_that_fails_is_recorded_with_the_reason_and_the_climb_goes_on(problem, clock, capsys):
    def fail(Q, K, V, causal, **options):
        raise RuntimeError("out of resource: shared memory\nRequired: 2")

    five, six, seven, eight = ladder.RUNGS[4:8]
    rows = ladder.climb(problem(False), [five, six._replace(run=fail), seven, eight._replace(run=fail)], "ladder")
    failed = [row for row in rows if row["rung"] in ("r6_tiles", "r8_descriptors")]
    for row in failed:
        assert row["ms"] is row["tflops"] is None and not row["best"]
        assert row["reason"] == "RuntimeError: out of resource: shared memory"
    assert "out of resource" in capsys.readouterr().out
    stages = [row for row in rows if row["rung"] == "r7_stages"]
    assert [row["options"] for row in stages] == [ladder.SMALL | {"num_stages": n} for n in (2, 3, 4)]


def test_every_size_has_the_ladder_the_peers_and_the_three_ideas(monkeypatch, capsys):
    climbed = []
    ceiling = [{"idea": "a product", "tflops": 1.0}, {"idea": "reads", "tflops": None, "gb_per_s": 2.0}]
    monkeypatch.setattr(ladder, "ceiling", lambda: ceiling)
    monkeypatch.setattr(ladder, "LadderProblem", lambda *size: size)
    monkeypatch.setattr(
        ladder, "climb", lambda problem, rungs, part, *notes: climbed.append((problem, part, len(rungs))) or []
    )
    assert ladder.measure((128,)) == ceiling and "reads: 2.0 GB/s" in capsys.readouterr().out
    size, few = (4, 16, 4096, 128, True), (1, 16, 16384, 128, True)
    n_others = len(ladder.OTHERS)
    at_size = [(size, "ladder", 9), (size, "peer", n_others), (size, "fa2", 4), (size, "wait", 2)]
    assert climbed[5:] == [*at_size, (few, "fa2", 2)]
    assert len(climbed) == 10 and {rung.name for rung in ladder.OTHERS} >= {"sdpa_flash", "sdpa_cudnn", "flex"}


class Noted(list):
    def add(self, row, size, asked):
        self.append((row["rung"], size, asked))


def test_the_best_row_of_each_rung_notes_what_was_launched(problem, clock, monkeypatch):
    monkeypatch.setattr(records, "has_notes", lambda row: row["best"])
    full, noted = problem(False), Noted()
    rows = ladder.climb(full, ladder.RUNGS[5:], "ladder", noted)
    best = {row["rung"]: row["options"] for row in rows if row["best"]}
    size = {"d": 16, "causal": False, "shape": [1, 2, 2, 80]}
    assert noted == [
        ("r6_tiles", size, {"r5_causal": best["r6_tiles"]}),
        ("r7_stages", size, {"r5_causal": best["r7_stages"]}),
        ("r8_descriptors", size, {"r8_descriptors": best["r8_descriptors"]}),
        ("ours", size, {"forward": {}}),
    ]
