"""The climb of the backward pass verifies every rung's gradients; in the interpreter, with a made-up clock."""

import json

import pytest
import torch

from flashlib import cost, kernels
from flashlib.bench import backward_ladder, ladder
from flashlib.bench.common import harness

NAMES = ["b1_eager", "b2_adds", "b3_two_passes", "b4_tiles", "b5_stages", "b6_descriptors", "ours"]
IDEAS = ["dkv", "dkv_not_prepared", "dkv_not_transposed", "dkv_late_dP", "dq", "dq_not_in_registers"]


@pytest.fixture
def problem():
    torch.manual_seed(0)
    return lambda causal: backward_ladder.BackwardLadderProblem(1, 2, 48, 16, causal, device=kernels.DEVICE)


def test_the_climb_goes_through_every_rung_and_idea(problem, clock, tmp_path):
    whole = problem(True)
    whole.head_flops = 15 * 10**9  # so many that what a row says of them is not rounded to 0
    rows = ladder.climb(whole, [*backward_ladder.RUNGS, backward_ladder.FUSED], "ladder")
    rows += ladder.climb(whole.only("dkv", ("dK", "dV"), 4), backward_ladder.DKV, "ideas")
    rows += ladder.climb(whole.only("dq", ("dQ",), 3), backward_ladder.DQ, "ideas")
    assert list(dict.fromkeys(row["rung"] for row in rows)) == [*NAMES, "ours_fused", *IDEAS]
    assert [row["pass"] for row in rows if row["part"] == "ideas"] == 4 * ["dkv"] + 2 * ["dq"]
    products = {"dkv": 4, "dq": 3}
    for row in rows:
        flops = 2 * 15e9 * products.get(row.get("pass"), 5) / 5
        assert row["tflops"] == pytest.approx(flops / row["ms"] / 1e9, abs=0.06)
    assert sum(row["best"] for row in rows) == len(NAMES) + 1 + len(IDEAS)
    unknown = {row["rung"] for row in rows if not row["flop_per_byte"]}
    assert unknown - {"ours"} == {"b2_adds", "ours_fused", *IDEAS}  # of ours only if both passes have one tile

    tried = {name: [row["options"] for row in rows if row["rung"] == name] for name in NAMES}
    best = tried["b4_tiles"][:-3:-1]  # on this clock the last two
    assert tried["b5_stages"] == [options | {"num_stages": n} for options in best for n in (2, 3)]
    assert tried["b6_descriptors"] == tried["b5_stages"][:-3:-1]
    assert set(tried["ours"][0]) == {"dkv", "dq"}

    harness.write(tmp_path / "ladder.json", {"gpu": "none", "rows": rows})
    assert json.loads((tmp_path / "ladder.json").read_text())["rows"] == rows


def test_every_size_has_the_ladder_the_peers_and_the_ideas(monkeypatch, capsys):
    class Size(tuple):
        def only(self, name, gradients, products):
            return name, gradients, products

    climbed = []
    monkeypatch.setattr(backward_ladder, "BackwardLadderProblem", lambda *size: Size(size))
    monkeypatch.setattr(
        ladder, "climb", lambda problem, rungs, part, *notes: climbed.append((problem, part)) or []
    )
    backward_ladder.measure((128,))
    size = (4, 16, 4096, 128, True)
    ideas = [(("dkv", ("dK", "dV"), 4), "ideas"), (("dq", ("dQ",), 3), "ideas")]
    assert len(climbed) == 8 and climbed[4:] == [(size, "ladder"), (size, "peer"), *ideas]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_each_gradient_is_verified(wrong, problem, clock):
    right = backward_ladder.RUNGS[2]

    def run(problem, **options):
        def timed():
            given = list(right.run(problem, **options)())
            given[wrong] = given[wrong] * 1.1
            return tuple(given)

        return timed

    with pytest.raises(AssertionError, match=f"{('dQ', 'dK', 'dV')[wrong]} of b3_two_passes at .* is wrong"):
        ladder.climb(problem(False), [right._replace(run=run)], "ladder")


def test_preparing_a_rung_may_fail_too(problem, clock, capsys):
    def fail(problem, **options):
        raise RuntimeError("No available kernel. Aborting execution.")

    _, two, three = backward_ladder.RUNGS[:3]
    rows = ladder.climb(problem(False), [two._replace(run=fail), three], "ladder")
    assert rows[0]["ms"] is None and rows[0]["reason"].startswith("RuntimeError: No available kernel")
    assert rows[1]["ms"] and "No available kernel" in capsys.readouterr().out


def test_the_ladder_counts_the_work_and_the_bytes_of_the_backward_pass(problem):
    causal = problem(True)
    head = cost.backward_flops(48, 48, 16, causal=True)
    assert causal.flops == 2 * head
    by_pass = [causal.only("dkv", ("dK", "dV"), 4), causal.only("dq", ("dQ",), 3)]
    assert [part.head_flops for part in by_pass] == [head * 4 // 5, head * 3 // 5]
    assert backward_ladder.tiled_alike(causal, [16, 32, 4, 2], [16, 32, 8, 3]) == cost.fa2_backward_traffic(
        48, 48, 16, B_r=16, B_c=32, causal=True, dtype="bfloat16"
    )
    assert backward_ladder.tiled_alike(causal, [16, 32, 4, 2], [16, 64, 4, 2]) is None


def test_a_row_says_which_kernels_it_launched(problem):
    causal, tile = problem(True), {"B_r": 16, "num_stages": 2}
    size = {"d": 16, "causal": True, "shape": [1, 2, 2, 48]}
    for rung, kernels_, asked in (
        ("b2_adds", ("fused",), tile | {"descriptors": False}),
        ("b5_stages", ("dkv", "dq"), tile | {"descriptors": False}),
        ("b6_descriptors", ("dkv", "dq"), tile | {"descriptors": True}),
        ("ours", ("dkv", "dq"), {}),
    ):
        expected = size, {f"backward_{which}": asked for which in kernels_}
        assert causal.compiled({"rung": rung, "options": tile}) == expected


def test_the_peers_are_those_of_the_benchmark():
    names = [rung.name for rung in backward_ladder.PEERS]
    assert names[0] == "ours_fused" and {"sdpa_flash", "sdpa_cudnn", "sdpa_efficient", "flex"} <= set(names)
    assert not {"ours", "eager"} & set(names)
