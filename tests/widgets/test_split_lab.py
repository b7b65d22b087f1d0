"""SplitLab: States are those of the parts, merge to attention in any order, and are split as by `decode`."""

import base64
import json
import math
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import splits
from flashlib.gpus import GPUS
from flashlib.softmax import merge
from flashlib.widgets import SplitLab
from flashlib.widgets.split_lab import choices, model, part_states
from tests import oracle

SPLITS = [(1, 1), (5, 7), (63, 2), (1000, 3), (1000, 256), (4097, 13), (8192, 8), (10_007, 37), (65_536, 101)]
CALLS = [
    model.DecodeCall(8192, 1, 8, 4, 128, "H200"),
    model.DecodeCall(1000, 3, 1, 1, 16, "A100"),
    model.DecodeCall(65_536, 64, 64, 64, 128, "RTX 4090"),
    model.DecodeCall(37, 7, 5, 3, 40, "H100"),
]
EXACT = 1e-12  # of numbers of about 1, in fp64


@pytest.fixture(scope="module", params=SPLITS, ids=str)
def lab(request):
    lab = SplitLab(*request.param)
    assert not lab.problem
    return lab


def inputs(N_k):
    q, K, V = part_states.problem()
    return q, K[:N_k], V[:N_k]


def sent(lab):
    """What is sent to the page: the outline, a row of numbers for each node, and O and lse twice."""
    r = lab.result
    found, rows, size = np.frombuffer(r["buffer"], "<f8"), 2 * r["n"] - 1, r["D"] + 4
    outline, nodes, ends = np.split(found, [r["bins"], r["bins"] + rows * size])
    return outline, nodes.reshape(rows, size), ends.reshape(2, r["D"] + 1)


def test_parts_cover_the_keys(lab):
    ranges, (N_k, asked) = lab.result["ranges"], (lab.N_k, lab.parts)
    assert [key for begin, end in ranges for key in range(begin, end)] == list(range(N_k))
    tiles = [-(-(end - begin) // model.B_C) for begin, end in ranges]
    assert all(begin % model.B_C == 0 for begin, _ in ranges)
    assert 1 <= len(ranges) <= asked and max(tiles) - min(tiles) <= 1
    assert len(ranges) == 1 or len(ranges) == asked or max(tiles) == -(-model.tiles_of(N_k) // asked)


def test_states_are_those_of_the_parts(lab):
    q, K, V = inputs(lab.N_k)
    for (begin, end), state in zip(lab.result["ranges"], lab.states, strict=True):
        O, lse = oracle.attention(q, K[begin:end], V[begin:end])
        s = K[begin:end] @ q[0] / 2
        assert state.m == pytest.approx(s.max(), abs=EXACT)
        assert state.l == pytest.approx(np.exp(s - s.max()).sum(), rel=EXACT)
        assert np.abs(state.O_acc / state.l - O[0]).max() < EXACT
        assert abs(state.m + np.log(state.l) - lse[0]) < EXACT


@pytest.mark.parametrize("order", ["row", "tree", "random"])
def test_merged_in_any_order_they_are_attention(lab, order):
    if order == "random":
        states = lab.states
        rng = np.random.default_rng(len(states))
        while len(states) > 1:
            states.append(merge(states.pop(rng.integers(len(states))), states.pop(rng.integers(len(states)))))
        O, lse = part_states.finished(states[0])
    else:
        O, lse = part_states.finished(part_states.merged(lab.states, order).states[-1])
    exact = oracle.attention(*inputs(lab.N_k))
    assert np.abs(O - exact[0][0]).max() < EXACT and abs(lse - exact[1][0]) < EXACT


@pytest.mark.parametrize("order", ["row", "tree"])
@pytest.mark.parametrize("parts", [1, 2, 7, 16, 61])
def test_nodes_are_sent_as_they_were_merged(order, parts):
    lab = SplitLab(16_384, parts, order=order)
    n, nodes, (outline, rows, ends) = lab.result["n"], lab.result["nodes"], sent(lab)
    assert np.array_equal(rows[:n, :6], [[s.m, s.l, *s.O_acc] for s in lab.states])
    states, spans, levels = lab.states, [[k, k + 1] for k in range(n)], [0] * n
    for k, (a, b) in enumerate(nodes["children"], n):
        states.append(merge(states[a], states[b]))
        assert spans[a][1] == spans[b][0], "neighbours"
        spans.append([spans[a][0], spans[b][1]])
        levels.append(1 + max(levels[a], levels[b]))
        m, l, *O_acc, alpha_a, alpha_b = rows[k]
        assert (m, l, *O_acc) == (states[k].m, states[k].l, *states[k].O_acc)
        assert (alpha_a, alpha_b) == (np.exp(rows[a, 0] - m), np.exp(rows[b, 0] - m))
    assert nodes["spans"] == spans and nodes["levels"] == levels and spans[-1] == [0, n]
    assert levels[-1] == (n - 1 if order == "row" else math.ceil(math.log2(n)))
    O, lse = oracle.attention(*inputs(lab.N_k))
    assert np.abs(ends - [*O[0], *lse]).max() < EXACT
    assert np.abs(ends[0] - ends[1]).max() == lab.result["difference"]
    assert len(outline) == min(480, lab.N_k) and outline.max() == pytest.approx(rows[-1, 0], abs=EXACT)


def test_which_settings_determine_the_states_and_which_only_the_gpu():
    lab = SplitLab(1000, 3)
    before, states = lab.result, lab.states
    for name, value in {"B": 7, "H_k": 2, "group": 64, "d": 40, "gpu": "A100"}.items():
        setattr(lab, name, value)
        assert lab.result["buffer"] == before["buffer"] and lab.result["nodes"] == before["nodes"]
    assert lab.result["chip"] != before["chip"] and lab.result["times"] != before["times"]
    after = lab.result
    lab.order = "tree"
    assert lab.result["times"] == after["times"] and lab.result["chip"] == after["chip"]
    assert all(np.array_equal(a.O_acc, b.O_acc) for a, b in zip(lab.states, states, strict=True))
    lab.parts = 2
    assert lab.result["buffer"] != before["buffer"] and lab.result["times"]["curve"] == after["times"]["curve"]


def test_the_first_keys_are_the_same_for_every_length():
    short, long = (part_states.scores(N_k) for N_k in (37, 1000))
    assert np.abs(short - long[:37]).max() < EXACT


class TestTheKernel:
    """What model.py repeats of `decode`."""

    @pytest.fixture(autouse=True)
    def interpreted(self):
        if not find_spec("triton"):
            pytest.skip("Triton is not installed")
        from flashlib import kernels

        if not kernels.INTERPRETED:
            pytest.skip("kernels are compiled here")

    @pytest.mark.parametrize("B", [1, 3])
    @pytest.mark.parametrize("N_k, parts", SPLITS, ids=str)
    def test_splits_into_as_many_parts(self, N_k, parts, B):
        from tests.kernels.asking import parts_of

        n = SplitLab(N_k, parts, B=B).result["n"]
        assert parts_of(N_k, B, B * parts, model.B_C) == [n] * B

    @pytest.mark.parametrize("gpu", choices.GPUS)
    @pytest.mark.parametrize("d", [16, 40, 64, 128])
    @pytest.mark.parametrize("group", [1, 4, 37, 64])
    def test_takes_these_tiles_and_as_many_parts(self, gpu, d, group, monkeypatch):
        import torch

        from flashlib.kernels import decode
        from flashlib.kernels.launch import planning, tile_sizes
        from tests.kernels.asking import parts_of

        room = tile_sizes.Room(GPUS[gpu].block_sram, GPUS[gpu].sms, tma=gpu in model.HOPPER)
        monkeypatch.setattr(tile_sizes, "room", lambda device: room)
        monkeypatch.setattr(decode, "PLANS", planning.PlansOfMasks())
        for B in (3, 30):
            call = model.DecodeCall(10_007, B, 8, group, d, gpu)
            Q, K = (torch.zeros(1, 1, 1, d).half().expand(B, H, N, d) for H, N in ((8 * group, 1), (8, call.N_k)))
            lengths = torch.full((B,), call.N_k, dtype=torch.int32)
            cache = decode.CacheTensors(K, K, lengths, None, None, None)
            plan = decode.plan_of(Q, cache, False, None, None, 0, None)
            tiles, (*_, parts, _) = plan.partial.constants, plan.partial.sizes
            assert (tiles["B_C"], plan.partial.config["num_stages"]) == (model.B_C, model.STAGES)
            assert group <= tiles["B_R"] == call.B_R, "the heads of a group are rows of one tile"
            assert parts_of(call.N_k, B, parts, model.B_C) == [call.default] * B
            merge = plan.merge.constants
            assert merge["COLS"] * call.joined == splits.NUMBERS and merge["JOINED"] <= call.joined

    def test_launches_a_program_for_each_part_and_leaves_as_many_states(self):
        import torch

        from flashlib.kernels import decode

        B, H_k, group, d = 3, 2, 4, 16
        Q, K = torch.zeros(B, H_k * group, 1, d), torch.zeros(B, H_k, 700, d)
        lengths = torch.full((B,), 700, dtype=torch.int32)
        plan = decode.plan_of(Q, decode.CacheTensors(K, K, lengths, None, None, None), True, None, None, 0, 5 * B)
        programs = model.DecodeCall(700, B, H_k, group, d, "H200").programs(model.actual_parts(11, 5))
        assert plan.partial.grid[0] >= programs and plan.states >= programs * group * (d + 2)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_programs_waves_and_bytes(call):
    curve = call.curve()
    made = {len(model.split(call.N_k, parts)) for parts in range(1, 257)}
    assert [n for n, _ in curve] == sorted(made | {call.default})
    assert call.bytes == 2 * 2 * call.B * call.H_k * call.N_k * call.d
    for n, _ in curve:
        count, last = call.waves(n)
        assert (count - 1) * call.places + last == call.programs(n) == call.B * call.H_k * n
        assert 1 <= last <= call.places


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_time_is_bytes_over_bandwidth_and_more_with_few_programs(call):
    bandwidth = GPUS[call.gpu].bandwidth
    for n, time in call.curve():
        assert time.launches == 2 * model.LAUNCH and time.states >= model.LATENCY
        reading = time.keys - model.LATENCY
        assert reading >= call.bytes / bandwidth * (1 - EXACT)
        count, last = call.waves(n)
        in_flight = min(call.in_flight, call.bytes / call.programs(n))
        if count == 1:
            rate = min(bandwidth, last * in_flight / model.LATENCY)
            assert reading == pytest.approx(call.bytes / rate)
        if count == 1 and last * in_flight < bandwidth * model.LATENCY:
            assert reading > call.bytes / bandwidth, "too few bytes in flight"


def test_the_choice_of_decode_is_drawn():
    r = SplitLab(264 * model.B_C, H_k=1).result
    assert r["times"]["default"] == 132 in [n for n, *_ in r["times"]["curve"]]


@pytest.mark.parametrize("N_k", [1, 1000, 8192, 65_536])
def test_the_slider_ends_at_what_is_accepted(N_k):
    lab = SplitLab(N_k, 1)
    end = lab.result["stops"]["parts"][-1]
    assert end == min(model.tiles_of(N_k), 256)
    lab.parts = end
    assert lab.refused == "" and lab.result["n"] == end


def test_a_few_programs_cannot_pull_the_bandwidth():
    one, eight = (SplitLab(32_768, parts).result["times"]["now"]["keys"] for parts in (1, 8))
    assert 7 < one / eight <= 8
    lab = SplitLab(32_768, 1, B=64)
    assert lab.result["times"]["now"]["keys"] < 1.1 * lab.result["times"]["least"]


def test_from_four_parts_on_the_first_step_of_the_chapter_takes_no_less_time():
    """128 programs ask for the whole bandwidth, and the default is as fast."""
    call = model.DecodeCall(8192, 1, 32, 1, 128, "H200")
    times = {n: time.total for n, time in call.curve()}
    assert times[3] > 1.05 * times[4] and times[4] == pytest.approx(min(times.values()), rel=1e-6)
    assert call.programs(4) == 128 < 132 < call.places and call.default == 8
    assert times[8] == pytest.approx(times[4], rel=1e-6)


def test_more_states_cost_more():
    call = model.DecodeCall(65_536, 8, 8, 8, 128, "A100")
    costs = [time.states for _, time in call.curve()]
    assert costs == sorted(costs) and costs[-1] > 2 * costs[0]
    few_bytes = model.DecodeCall(65_536, 1, 1, 1, 16, "H200").curve()
    assert [time.states for _, time in few_bytes] == [
        math.ceil(n / splits.states_at_once(16)) * model.LATENCY for n, _ in few_bytes
    ]


def test_a_record_is_drawn_only_with_its_own_call():
    lab = SplitLab(1000, 2, record=[(1, 30.5), (3, 20), (64, 19.0)])
    made = [1, 3, model.actual_parts(16, 64)]
    assert lab.result["record"] == [[n, time] for n, time in zip(made, (30.5, 20.0, 19.0), strict=True)]
    assert not lab.result["other_record"]
    lab.parts, lab.order = 3, "tree"
    assert len(lab.result["record"]) == 3
    lab.d = 64
    assert lab.result["record"] == [] and lab.result["other_record"]
    lab.d = 128
    assert len(lab.result["record"]) == 3 and not lab.result["other_record"]
    assert SplitLab().result["record"] == [] and not SplitLab().result["other_record"]


def test_words():
    r = SplitLab().result
    assert r["words"] == [
        "8192 keys are 128 tiles of 64, in 8 parts of 16.",
        "64 programs on the 132 multiprocessors of the H200: 68 of these have nothing to do, 52%.",
        "By the model 18\u00a0µs, 5.4 times as fast as one part. "
        "None is faster than decode's 16 parts: 13.8\u00a0µs.",
    ]
    assert r["merges"] == (
        "In a row: 7 merges, all one after another. The kernel merges up to 128 parts in one step."
    )
    assert r["equal"].startswith("Merged, O and lse equal attention in one go, up to rounding: ")
    asked = SplitLab(1000, 256, order="tree").result
    assert asked["words"][0].endswith("256 parts were requested; with at most 1 tile in each, 16 are enough.")
    assert asked["merges"] == "As a tree: 15 merges, no more than 4 one after another."
    assert "with at most 10 tiles in each, 13 are enough" in SplitLab(parts=14).result["words"][0]
    one = SplitLab(1, 1).result
    assert one["words"][0] == "1 key is 1 tile of 64, in one part."
    assert one["merges"] == "There is one part, and nothing to merge."
    assert "all are busy, in one wave." in SplitLab(parts=32).result["words"][1]
    assert SplitLab(B=64).result["words"][1].endswith("264 at a time: 16 waves, 136 in the last.")


@pytest.mark.parametrize(
    "setting", [{}, {"B": 64}, {"parts": 16}, {"N_k": 100}, {"gpu": "A100", "N_k": 40_000}], ids=str
)
def test_the_fastest_number_of_parts_is_marked_where_it_is_named(setting):
    times, words = (SplitLab(**setting).result[name] for name in ("times", "words"))
    curve = dict(times["curve"])
    least = min(curve.values())
    named = re.search(r"(\d+) parts? (?:is|are) fastest", words[2])
    assert times["best"] == (int(named[1]) if named else None)
    told = [times["now"]["total"], curve[times["default"]]]
    assert curve[times["best"]] == least if named else min(told) == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize("order", ["row", "tree"])
def test_the_weight_of_a_part_is_the_product_of_the_factors_below_it(order):
    """The first line says that alpha_s is the factor of a part, whatever the order of the merges."""
    nodes = part_states.merged(part_states.states(1000, 7), order)
    counts = {len(nodes.states) - 1: 1.0}
    for k in reversed(range(len(nodes.children))):
        node = len(nodes.states) - len(nodes.children) + k
        for child, alpha in zip(nodes.children[k], nodes.alphas[node], strict=True):
            counts[child] = counts[node] * alpha
    m = np.array([state.m for state in nodes.states]).ravel()
    expected = np.exp(m - m[-1])
    np.testing.assert_allclose([counts[k] for k in range(7)], expected[:7], rtol=1e-12)


def test_it_can_be_sent_to_the_page():
    lab = SplitLab(1000, 3)
    rest = {name: value for name, value in lab.result.items() if name != "buffer"}
    assert json.loads(json.dumps(rest)) == rest
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab)
    assert base64.b64decode(data["image/png"]) == lab.figure().png()


BAD = [
    (dict(N_k=0), "N_k is 0; pass a whole number from 1 to 65536."),
    (dict(N_k=70_000), "N_k is 70000; pass a whole number"),
    (dict(parts=2.5), "parts is 2.5; pass a whole number from 1 to 256."),
    (dict(parts=None), "parts is None; pass a whole number"),
    (dict(order="random"), "order is 'random'; pass one of 'row', 'tree'."),
    (dict(B=True), "B is True; pass a whole number from 1 to 64."),
    (dict(H_k=65), "H_k is 65"),
    (dict(group=0), "group is 0"),
    (dict(d=256), "d is 256; pass a whole number from 16 to 128."),
    (dict(gpu="T4"), "gpu is 'T4'; pass one of 'A100', 'H100', 'H200', 'RTX 4090'."),
    (dict(gpu=3), "gpu is 3; pass one of"),
    (dict(record=3), "record is 3; pass a list of (parts, microseconds), e.g. [(1, 64.5), (8, 12.3)]."),
    (dict(record=[(1, 2, 3)]), "record has (1, 2, 3) in it; pass a list"),
    (dict(record=[(0, 2.0)]), "a number of parts in record is 0; pass a whole number from 1 to 256."),
    (dict(record=[(1, float("nan"))]), "record has a time of nan in it"),
    (dict(record=[(1, -1)]), "record has a time of -1 in it"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=str)
def test_a_sentence_says_what_cannot_be_shown(change, sentence):
    lab = SplitLab(**change)
    assert lab.problem.startswith(sentence) and lab.problem.endswith(".")
    assert repr(lab) == f"SplitLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    "change",
    [dict(N_k=1000), dict(parts=32), dict(order="tree"), dict(B=2, gpu="H100"), dict(N_k=37, parts=5)],
    ids=str,
)
def test_changes_from_the_page(change):
    lab = SplitLab()
    results = []
    lab.observe(lambda change: results.append(change.new), names="result")
    lab.set_state(change)
    assert len(results) == 1 and lab.refused == ""
    expected = SplitLab(**change)
    assert lab.result == expected.result and repr(lab) == repr(expected)


@pytest.mark.parametrize(
    "change", [dict(N_k=0), dict(parts=257), dict(order="x"), dict(gpu="T4"), dict(d=8)], ids=str
)
def test_a_later_request_that_is_refused_changes_nothing(change):
    lab = SplitLab(1000, 3)
    before = lab.result
    ((name, value),) = change.items()
    lab.set_state(change)
    assert lab.refused.endswith(f"It stays {before['setting'][name]!r}.")
    assert lab.result is before and getattr(lab, name) == before["setting"][name]
    lab.B = 2
    assert lab.refused == "" and lab.result["setting"]["B"] == 2


def test_repr():
    assert repr(SplitLab(1000, 256, order="tree", gpu="A100")) == (
        "SplitLab(N_k=1000, parts=256, order='tree', B=1, H_k=8, group=4, d=128, gpu='A100': 16 parts, "
        "lse = 8.834, O = (−0.04950, −0.0009918, −0.02931, −0.02638); "
        "128 programs in 1 wave, 9.434 µs by the model)"
    )


def test_the_model_has_the_times_of_the_record():
    """With few programs, which cannot use the memory's bandwidth, and with enough to keep the whole GPU busy."""
    run = json.loads((Path(__file__).parents[2] / "notebooks/data/h200_decode.json").read_text(encoding="utf-8"))
    for row in run["parts"]:
        call = model.DecodeCall(row["N"], row["B"], row["H_k"], row["H"] // row["H_k"], 128, "H200")
        time = call.time(model.actual_parts(model.tiles_of(row["N"]), row["parts"])).total
        if row["parts"] <= 33:
            assert time == pytest.approx(row["us"] / 1e6, rel=0.1), row["parts"]
