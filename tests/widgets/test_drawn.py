"""Bars and boxes in the pictures of widgets have the right sizes and places."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.pictures.inks import INK, NEGATIVE, POSITIVE, READ, WRITTEN
from flashlib.widgets import (
    EightBitsLab,
    MaskLab,
    OnlineSoftmaxLab,
    OverflowLab,
    PagesLab,
    PipelinePlayer,
    RingPlayer,
    ServeLab,
    SplitLab,
    TilingLab,
    TripsPlayer,
)
from flashlib.widgets.eight_bits_lab import figure as of_eight_bits
from flashlib.widgets.mask_lab import figure as of_masks
from flashlib.widgets.ring_player import figure as of_rings
from flashlib.widgets.serve_lab import figure as of_servers
from flashlib.widgets.split_lab import figure as of_parts
from tests.pictures.places import Places


@pytest.fixture
def drawn(monkeypatch):
    """A function that draws a widget's picture and returns its boxes as an array for each ink."""
    places = Places(monkeypatch)

    def boxes(widget, *at):
        widget.figure(*at)
        assert not places.outside()
        inks = {ink for *_, ink in places.boxes}
        return {ink: np.array([box for *box, of in places.boxes if of == ink], float) for ink in inks}

    return boxes


def unit(sizes, numbers):
    """Return the pixels per unit, which must be the same for all."""
    sizes, numbers = np.array(sizes), np.array(numbers, float)
    assert len(sizes) == len(numbers) and numbers.any()
    one = sizes.sum() / numbers.sum()
    assert one > 0 and np.allclose(sizes, one * numbers, atol=1e-6 * one * numbers.max())
    return one


TILINGS = (
    {}, {"causal": True, "order": "fa1", "N": 1000, "B_r": 48, "capacity": 48}, {"B_r": 256, "B_c": 256},
)  # fmt: skip
MASKS = ("causal", {}), ("documents", {"also": "causal", "N_q": 37, "N_k": 50, "B_r": 5, "B_c": 7})


@pytest.mark.parametrize("setting", TILINGS, ids=str)
def test_bytes_of_a_tiling(drawn, setting):
    lab = TilingLab(**setting)
    boxes, traffic = drawn(lab), lab.result["traffic"].values()
    read, written = (boxes[ink][boxes[ink][:, 3] == 14] for ink in (READ, WRITTEN))
    one = unit(read[:, 2], [of["read"] for of in traffic])
    assert np.allclose(written[:, 2], [max(one * of["written"], 1) for of in traffic])
    assert np.allclose(written[:, :2], np.column_stack([read[:, 0] + read[:, 2], read[:, 1]]))
    pieces = np.concatenate([found[found[:, 3] == 28] for found in boxes.values() if len(found)])
    pieces = pieces[np.argsort(pieces[:, 0])]
    sram = lab.result["sram"]
    one = unit(pieces[:, 2], list(sram["pieces"].values()))
    assert one * max(sram["held"], sram["room"]) == pytest.approx(440), "the larger one is as wide as the panel"
    assert np.allclose(np.diff(pieces[:, 0]), pieces[:-1, 2]), "side by side"


@pytest.mark.parametrize("kind, setting", MASKS, ids=str)
def test_scores_of_a_mask(drawn, kind, setting):
    lab = MaskLab(kind, **setting)
    boxes, result = drawn(lab), lab.result
    wide, high = of_masks.cell(result["setting"]["N_q"], result["setting"]["N_k"])
    scores, lengths = result["scores"], result["lengths"] or []

    def cells(ink):
        """How many scores the boxes of an ink cover in the picture of S, not in the row of documents above it."""
        own = boxes[ink][(boxes[ink][:, 0] < 344) & (boxes[ink][:, 1] >= 48 - 1e-9)]
        assert (own[:, :2].min(axis=0) >= (22 - 1e-9, 48 - 1e-9)).all()
        return (own[:, 2] * own[:, 3]).sum() / (wide * high)

    assert cells(of_masks.SEEN) == pytest.approx(scores["seen"])
    assert cells(of_masks.COMPUTED) == pytest.approx(scores["computed"])
    bars = boxes[of_masks.SEEN][boxes[of_masks.SEEN][:, 0] == 716]
    unit(bars[:, 2], [*(row["ratio"] for row in result["against"]), scores["seen"] / scores["computed"]])
    above = boxes[of_masks.COMPUTED][boxes[of_masks.COMPUTED][:, 3] == 13]
    assert np.allclose(above[:, 2], wide * np.array(lengths))


def test_scores_and_terms_of_a_row(drawn):
    row = np.array([-2.33, 1.0, -1.165, 2.0, 0.5])
    for at in range(len(row)):
        boxes, seen = drawn(OnlineSoftmaxLab(row), at), row[: at + 1]
        bars = np.concatenate([boxes[ink] for ink in (POSITIVE, NEGATIVE) if ink in boxes])
        bars = bars[bars[:, 1] + bars[:, 3] < 250]  # without the key
        bars = bars[np.argsort(bars[:, 0])]
        scores, terms = bars[bars[:, 0] < 340], bars[bars[:, 0] > 340]
        unit(scores[:, 3], np.abs(seen))
        zero = scores[:, 1] + scores[:, 3] * (seen > 0)
        assert np.allclose(zero, zero[0])
        unit(terms[:, 3], np.append(np.exp(seen - seen.max()), np.zeros(len(row) - at - 1)))
        foot = terms[:, 1] + terms[:, 3]
        assert np.allclose(foot, foot[0])


@pytest.mark.parametrize("x, offsets", [(11, (-2, -1, 0)), (-17, (-5, -3.5, 0, 1))])
def test_terms_on_the_axis_of_a_format(drawn, x, offsets):
    lab = OverflowLab(x, offsets=offsets)
    bars = drawn(lab)[INK]
    bars = bars[bars[:, 3] == 12]
    result = lab.result
    numbers = np.frombuffer(result["buffer"], "<f8")
    logs = np.array([*numbers[: result["n"]], numbers[-2]])
    low, high = (end + result["shift"] for end in result["range"])
    one = unit(bars[:, 2], np.abs(np.clip(logs, low, high)))
    assert one * (high - low) == pytest.approx(840)
    ends = np.where(logs > 0, bars[:, 0], bars[:, 0] + bars[:, 2])
    assert np.allclose(ends, ends[0]), "all begin at exp(0)"


def test_parts_and_programs_of_a_split(drawn):
    lab = SplitLab(65_536, 101, B=2)
    boxes, result = drawn(lab), lab.result
    parts = np.concatenate([boxes[ink] for ink in (of_parts.LIGHT, of_parts.DARK)])
    parts = parts[np.argsort(parts[:, 0])]
    keys = np.diff(result["ranges"], axis=1).ravel()
    unit(parts[:, 2], keys)
    assert np.allclose(parts[1:, 0], parts[:-1, 0] + parts[:-1, 2])
    busy, chip = boxes[of_parts.BUSY], result["chip"]
    assert (busy[:, 3] == 15).sum() == min(chip["programs"], chip["places"])
    weights = busy[busy[:, 1] < 100]
    states = np.exp([state.m for state in lab.states])
    unit(weights[:, 3], states)
    assert np.allclose(weights[:, 1] + weights[:, 3], 92) and np.allclose(weights[:, 0], parts[:, 0])


def test_bytes_of_trips_on_one_scale(drawn):
    player = TripsPlayer()
    boxes = drawn(player)
    bars = np.concatenate([boxes[ink][boxes[ink][:, 3] == 18] for ink in (READ, WRITTEN)])
    bars = bars[np.lexsort((bars[:, 0], bars[:, 1]))]
    trips = [trip for side in ("standard", "flash") for trip in player.frames[side]["trips"]]
    unit(bars[:, 2] + 1, [sum(move[3] for move in trip["moves"]) for trip in trips])  # 1: the gap to the next
    loads = {tuple(bar) for bar in boxes[READ]}
    assert [tuple(bar) in loads for bar in bars] == [trip["loads"] for trip in trips]


@pytest.mark.parametrize("setting", [{}, {"qk": "int8", "mean": "positive", "N": 4096}], ids=str)
def test_causes_and_sizes_of_eight_bits(drawn, setting):
    lab = EightBitsLab(**setting)
    boxes, result = drawn(lab), lab.result
    alone = {}
    for ink, cause in zip(of_eight_bits.INKS, result["causes"], strict=True):
        bars = boxes[ink][(boxes[ink][:, 3] == 8) & (boxes[ink][:, 0] == 14)]
        alone[cause["name"]] = bars[:, 2].sum(), cause["error"]
    wide, errors = np.array([*alone.values()]).T
    one = unit(wide[wide > 2], errors[wide > 2])
    stack = np.concatenate([found[found[:, 3] == 20] for found in boxes.values()])
    assert stack[:, 2].sum() == pytest.approx(one * result["total"], rel=1e-6), "as long as the error of all"
    assert np.allclose(np.sort(stack[:, 2]) / stack[:, 2].sum(), np.sort([c["part"] for c in result["causes"]]))
    for k, rounding in enumerate(result["rounding"]):
        foot = 42 + 98 * k + 22 + of_eight_bits.SIZE[1]
        bars = boxes[of_eight_bits.BUSY]
        bars = bars[(np.abs(bars[:, 1] + bars[:, 3] - foot) < 1e-6) & (bars[:, 0] >= of_eight_bits.LEFT)]
        unit(bars[:, 3], rounding["bars"])


@pytest.mark.parametrize("setting", [{}, {"scenario": "too few pages", "batch": 3}], ids=str)
def test_tokens_and_slots_of_a_server(drawn, setting):
    lab = ServeLab(**setting)
    boxes, result = drawn(lab), lab.result
    lanes = [lane for run in result["runs"] for lane in run["lanes"]]
    tokens = boxes[WRITTEN][(boxes[WRITTEN][:, 3] == of_servers.HIGH - 8) & (boxes[WRITTEN][:, 0] < 900)]
    wide = of_servers.WIDE / result["steps"]
    steps = (tokens[:, 0] - of_servers.LABEL - 1) / wide
    assert np.allclose(steps, steps.round()) and np.allclose(tokens[:, 2], wide - 1)
    shown = [sorted(steps[tokens[:, 1] == y].round().astype(int).tolist()) for y in np.unique(tokens[:, 1])]
    expected = [[step for step, letter in enumerate(lane) if letter == "d"] for lane in lanes]
    assert shown == [lane for lane in expected if lane]
    read = boxes[READ][boxes[READ][:, 3] == of_servers.HIGH - 2]
    assert len(read) == sum(len(parts) for run in result["runs"] for parts in run["parts"])
    foot = boxes[WRITTEN][boxes[WRITTEN][:, 3] == 3]
    assert len(foot) == sum(wrote for run in result["runs"] for parts in run["parts"] for *_, wrote in parts)


def test_spans_of_a_pipeline(drawn):
    player = PipelinePlayer()
    boxes, result = drawn(player), player.result
    (program,) = result["programs"]
    spans = [span for row in program["rows"] for span in row["spans"]]
    copies = np.array([(start, end) for kind, _, start, end, _ in spans if kind in ("copy", "fill")])
    found = boxes[READ][boxes[READ][:, 1] < boxes[READ][:, 1].max()]  # without the key
    assert len(found) == len(copies)
    order = np.lexsort((found[:, 2], found[:, 0])), np.lexsort((np.diff(copies)[:, 0], copies[:, 0]))
    found, copies = found[order[0]], copies[order[1]]
    one = unit(found[:, 2], np.diff(copies)[:, 0])
    assert np.allclose(found[:, 0] - found[0, 0], one * (copies[:, 0] - copies[0, 0]), atol=0.01)


@pytest.mark.parametrize("setting", [{}, {"ranks": 7, "N": 37, "layout": "striped", "token": 1}], ids=str)
def test_scores_and_bars_of_a_ring(drawn, setting):
    player = RingPlayer(**setting)
    boxes, r = drawn(player), player.result
    P, N = player.ranks, player.N
    fills = np.concatenate([found for ink, found in boxes.items() if ink not in (INK, READ)])
    scores, bars = fills[fills[:, 0] < 284], fills[fills[:, 0] > 300]
    cell = of_rings.SIDE / N
    assert (scores[:, 2] * scores[:, 3]).sum() / cell**2 == pytest.approx(N * (N + 1) / 2)
    spans = np.array([one[2:4] for own in r["computes"] for one in own])
    order, wanted = np.lexsort((bars[:, 0], bars[:, 1])), np.arange(len(spans))
    scale = of_rings.WIDE / r["end"]
    assert np.allclose(bars[order][:, 0], of_rings.LABEL + scale * spans[wanted, 0])
    assert np.allclose(bars[order][:, 2] + 1, scale * np.diff(spans)[:, 0])
    assert len(np.unique(bars[:, 1])) == P
    unit(np.sort(boxes[READ][:, 2]), np.sort([stop - start for *_, start, stop, _ in r["copies"]]))


def test_rows_of_pages(drawn):
    lab = PagesLab("fork and copy on write")
    for at, frame in enumerate(lab.result["frames"]):
        boxes = drawn(lab, at)
        written = sum(end - first for _, first, end in frame["written"])
        assert len(boxes.get(WRITTEN, ())) == written
        filled = sum((found[:, 3] == 13).sum() for ink, found in boxes.items() if ink not in (INK, WRITTEN))
        assert filled == sum(frame["filled"]) - written
