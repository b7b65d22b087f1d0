"""The numbers of the model's machine are the measured ones, and results that follow from them are close."""

import json
from pathlib import Path
from statistics import mean, median

import pytest

from flashlib import pipeline as p
from flashlib.pipeline import measured, protocol, timeline

DATA = Path(__file__).parents[2] / "notebooks" / "data"
RECORDED = json.loads((DATA / "h200_clocks.json").read_text(encoding="utf-8"))
UNITS = {(row["what"], row.get("beside"), row.get("d"), row.get("B_c")): row for row in RECORDED["rows"]}
SHAPES = [(d, B_c) for d in (128, 64) for B_c in (64, 128)]

GROUPS = ("1 products", "softmax", "softmax under a product")


def clocks(what, beside, d, B_c):
    return UNITS[what, beside, d, B_c]["clocks"]


def test_measured_speeds_are_those_of_the_record():
    copies = median(UNITS["copies", "all multiprocessors", *shape]["bytes"] for shape in SHAPES)
    first = clocks("first tile 0 seen", "all multiprocessors", 128, 64)
    finish, slower = [], []
    for d, B_c in SHAPES:
        alone, flops = clocks("softmax", "nothing", d, B_c), protocol.Sizes(d=d, B_c=B_c).flops
        product = clocks("1 products", "nothing", d, B_c)
        finish.append(product - flops / p.MACHINE.tensor)
        busy = 1 - finish[-1] / product  # the part of its time in which the other group multiplies
        beside = clocks("softmax", "1 products", d, B_c)
        slower += [alone / clocks("softmax", "softmax", d, B_c), (alone - (1 - busy) * beside) / (busy * beside)]
        in_turn = alone + product
        assert clocks("softmax under a product", "nothing", d, B_c) == pytest.approx(in_turn, rel=0.12)
    assert p.MACHINE.under == 0
    assert copies == pytest.approx(p.MACHINE.copy, rel=0.01)
    assert first - 64 * 128 * 2 / p.MACHINE.copy == pytest.approx(p.MACHINE.arrives, rel=0.01)
    assert median(finish) == pytest.approx(p.MACHINE.finish, rel=0.01)
    assert median(slower) == pytest.approx(p.MACHINE.beside, rel=0.01)
    assert UNITS["turn", None, None, None]["clocks"] == pytest.approx(p.MACHINE.arrival, rel=0.01)
    assert set(timeline.SOURCES) == set(p.Machine._fields)


def group(kind, sizes, times):
    """The role of a group in `bench.hopper_units`: products, softmaxes, or a softmax during a product."""
    for g in range(times):
        if kind != "products":
            yield p.Compute(f"rescale {g}", "fma", sizes.rows * sizes.d)
        if kind != "softmax":
            yield p.Product(f"S{g}", (), sizes.flops)
        if kind != "products":
            yield from (p.Compute(c.name, c.unit, c.amount) for c in protocol.softmax(g, sizes))
        if kind != "softmax":
            yield p.Finish()


@pytest.mark.parametrize("what, beside, d, B_c", [key for key in UNITS if key[0] in GROUPS])
def test_a_group_takes_the_measured_time_alone_and_beside_another(what, beside, d, B_c):
    """The model's clocks are off by at most a quarter."""
    first, other = what.removeprefix("1 "), beside.removeprefix("1 ")
    sizes, times = protocol.Sizes(d=d, B_c=B_c), 40
    roles = {"first": lambda: group(first, sizes, times)}
    if other != "nothing":
        roles["other"] = lambda: group(other, sizes, times if first == other else 8 * times)
    line = p.run(p.Program(roles, (), ()))
    takes = max(span.end for span in line.spans if span.role == "first") / times
    assert takes == pytest.approx(clocks(what, beside, d, B_c), rel=0.25)


def test_the_model_uses_the_tensor_cores_as_the_ladder_does():
    """At d = 128 all but rung 3 are within 10 percent of what was recorded, less what the marks cost."""
    rows = json.loads((DATA / "h200_timelines.json").read_text(encoding="utf-8"))["rows"]
    off = {}
    for row in (row for row in rows if row["d"] == 128):
        marks = row["ms"]["marked"] / row["ms"]["plain"]
        real = mean(measured.timeline(row, k).use() for k in range(len(row["programs"]))) * marks
        off[row["rung"]] = p.run(measured.program(row, 0)).use() / real - 1
    off.pop("forward", None)  # no rung of its own
    assert len(off) == 7 and all(abs(part) < (0.15 if "r3" in rung else 0.1) for rung, part in off.items()), off


def test_a_softmax_takes_its_exponentials_and_less_than_its_share_of_the_program():
    rows = json.loads((DATA / "h200_timelines.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        exponentials = row["B_r"] // row["consumers"] * row["B_c"] / timeline.MACHINE.exp
        for line in (measured.timeline(row, 0), p.run(measured.program(row, 0))):
            clocks = measured.softmaxes(line)
            assert len(clocks) == row["consumers"], row["rung"]
            most = line.clocks / sum(row["programs"][0]["blocks"])
            assert all(exponentials < one < most for one in clocks), row["rung"]
