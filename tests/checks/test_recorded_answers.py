"""Answers to questions about measurements agree with the records, and with the notebooks' stored outputs."""

import json
import re
from itertools import pairwise

import pytest

pytest.importorskip("nbformat")
from flashlib.chapters import named  # noqa: E402
from flashlib.checks.engine.prediction import questions  # noqa: E402
from tests.bench import recorded  # noqa: E402
from tools import notebooks, tables  # noqa: E402


def record(name):
    return json.loads((recorded.DATA / f"{name}.json").read_text(encoding="utf-8"))


def answer(name):
    return questions()[name].answer()


def chapter(name):
    return notebooks.read(tables.START_HERE.with_name(f"{named(name).slug}.ipynb"))


def test_one_pass_or_two():
    (row,) = (
        row for row in record("h200_backward")["rows"] if (row["N"], row["d"], row["causal"]) == (16384, 128, True)
    )
    speeds = row["tflops"]
    assert answer("grads_faster") == ("two passes" if speeds["ours"] > speeds["ours_fused"] else "one pass")


def test_the_lead_of_a_ring_over_all_gather():
    """With each of the recorded heads and passes."""
    leads: dict = {}
    for row in record("h200_ring")["rows"]:
        if row["left"] is None and row["documents"] is None:
            lead = row["efficiency"]["ring_copy_engines"] / row["efficiency"]["all_gather"]
            leads.setdefault((row["H"], row["pass"]), {})[row["N"] // row["ranks"]] = lead
    assert len(leads) == 4
    for lead in leads.values():
        from_8192 = [lead[n] for n in sorted(lead) if n >= 8192]
        assert max(lead) == 65536 and from_8192 == sorted(from_8192, reverse=True)
        assert from_8192[0] - 1 > 3 * (from_8192[-1] - 1)
    assert answer("ring_lead") == "it shrinks"


def test_the_largest_step_of_the_ladder():
    found = {}
    for name, causal in (("no_mask", False), ("causal", True)):
        best = {}
        for row in record("h200_ladder")["rows"]:
            if (
                row["part"] == "ladder"
                and row["best"]
                and (row["d"], row["causal"], row["N"]) == (128, causal, 4096)
            ):
                best[row["rung"]] = row["tflops"]
        gains = {rung: best[rung] / best[before] for before, rung in zip(best, list(best)[1:], strict=False)}
        found[name] = max(questions()["speed_largest_step"].choices, key=gains.get)
    assert found == answer("speed_largest_step")


def test_what_the_steps_to_a_hopper_kernel_gain():
    """Without a mask at d = 128, for each N."""
    rows = [row for row in record("h200_hopper_ladder")["rungs"] if row["d"] == 128 and not row["causal"]]
    assert len(rows) > 1
    for row in rows:
        speeds = {name.removeprefix("hopper_"): speed for name, speed in row["tflops"].items()}
        gains = {rung: speeds[rung] / speeds[before] for before, rung in pairwise(speeds)}
        assert gains.keys() == set(questions()["roles_steps"].choices)
        slower, *_, most = sorted(gains, key=gains.get)
        assert {"most": most, "slower": slower} == answer("roles_steps")
        assert sum(gain < 1 for gain in gains.values()) == 1


def test_the_launches_of_rung_8_in_their_order():
    """The fastest is given in the text, and is not a choice."""
    speeds = {}
    for row in record("h200_ladder")["rows"]:
        if (row["part"], row["rung"], row["d"], row["causal"]) == ("ladder", "r8_descriptors", 128, False):
            speeds[" ".join(map(str, row["options"].values()))] = row["tflops"]
    fastest, second, *_, slowest = sorted(speeds, key=speeds.get, reverse=True)
    assert answer("speed_ranking") == {"second": second, "slowest": slowest}
    assert {fastest, *questions()["speed_ranking"].choices} == speeds.keys()
    (asked,) = (cell.source for cell in chapter("speed").cells if "comes second, and which is" in cell.source)
    assert fastest in asked


def test_which_repair_costs_most_if_left_out():
    rotation, levels, means = questions()["left_out"].choices
    left_out = {rotation: "not rotated", levels: "one_level", means: "not centred"}
    errors = {row["kind"]: row["error"] for row in record("h200_fp8")["errors"] if row["N"] == 16384}
    found = {}
    for part, kind in questions()["left_out"].labels.items():
        *others, found[part] = sorted(left_out, key=lambda idea: errors[kind][left_out[idea]])
        assert errors[kind][left_out[found[part]]] > 2 * max(errors[kind][left_out[other]] for other in others)
    assert answer("left_out") == found


def test_both_losses_to_three_digits():
    nb = notebooks.read(tables.START_HERE.with_name("11_triton_backward.ipynb"))
    (printed,) = (
        output.text for cell in nb.cells for output in cell.get("outputs", [])
        if "step     ours     SDPA" in output.get("text", "")
    )  # fmt: skip
    pairs = re.findall(r"^ +\d +(\d\.\d{3}) +(\d\.\d{3})$", printed, re.MULTILINE)
    assert len(pairs) == 8 and answer("grads_same_losses") == all(one == other for one, other in pairs)


def test_the_bandwidth_of_the_l2_cache():
    from flashlib.checks.chapters.roofline.questions import L2_READ

    (row,) = (row for row in record("h200_ladder")["rows"] if row["rung"] == "l2_read")
    assert L2_READ == pytest.approx(row["gb_per_s"] * 1e9)


def test_what_a_launch_gains_is_what_the_record_says():
    """Each speed of `name_the_limit`, and that the move of its solution gains the most."""
    from flashlib.checks.chapters.speed import exercises_limits, solutions_limits

    found: dict = {}
    for row in record("h200_limits")["rows"]:
        found.setdefault(row["launch"], {})[row["limit"]] = row["tflops"]
    assert found == exercises_limits.SPEEDS
    for letter in found:
        named = solutions_limits.my_name_the_limit(letter)
        assert named == exercises_limits.largest(letter)
        assert exercises_limits.gain(letter, named) >= exercises_limits.ENOUGH


def test_where_the_head_of_real_models_looks():
    (cell,) = (cell for cell in chapter("real_models").cells if cell.id == "ab46621b")
    said = cell.outputs[0].text
    weights = [
        float(re.search(rf"it was {words} +' it': ' animal' ([\d.]+)", said)[1])
        for words in ("too wide", "too tired")
    ]
    assert weights == [answer("pronoun_head")] * 2
