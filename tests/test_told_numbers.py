"""Numbers that a chapter tells in its text are those of the table or the record that they come from."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib.gpus import GPUS, KB, MB  # noqa: E402
from flashlib.widgets.split_lab import model  # noqa: E402
from tools import notebooks  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def text(chapter, cell_id):
    (path,) = notebooks.chapters(FOLDER, chapter)
    return next(cell.source for cell in notebooks.read(path).cells if cell.id == cell_id)


def test_the_sram_of_the_articles_beside_that_of_a_gpu():
    a100, h200, told = GPUS["A100"], GPUS["H200"], text("07", "articles")
    numbers = [
        f"{a100.sram_bandwidth / 1e12:.1f} TB/s, {a100.sram_bandwidth / a100.bandwidth:.1f} times",
        f"{a100.sram_bandwidth / a100.sms / 1e9:.0f} GB/s",
        f"{h200.sram_bandwidth / 1e12:.1f} TB/s, {h200.sram_bandwidth / h200.bandwidth:.0f} times",
        f"{a100.sms * 192 * KB / MB:.2f} MB",
        f"{a100.sram // KB} KB of it",
        f"gets {a100.block_sram // KB}.",
        f"{a100.all_sram / MB:.1f} MB",
    ]
    assert [number for number in numbers if number not in told] == []


def test_how_many_programs_it_takes_is_what_the_record_says():
    run = json.loads((FOLDER / "data" / "h200_decode.json").read_text(encoding="utf-8"))
    rows = [(row["H_k"] * row["parts"], row) for row in run["parts"]]
    each = [2 * row["N"] * row["H_k"] * 128 * 2 / row["us"] / 1e3 / n for n, row in rows if n <= 64]  # GB/s
    in_flight, told = 4 * 64 * 128 * 2, text("15", "measured-more")
    assert f"{min(each):.0f} to {max(each):.0f} GB/s" in told
    assert f"{in_flight / max(each) / 1e3:.1f} to {in_flight / min(each) / 1e3:.1f} µs" in told
    assert f"$t$ = {1e6 * model.LATENCY:.1f} µs" in told
    assert f"{run['copy_gbs']} GB/s" in told
    (programs,) = map(int, re.findall(r"it takes about (\d+)", told))
    assert programs == round(run["copy_gbs"] / (in_flight / model.LATENCY / 1e9))


def test_what_is_told_of_rings_is_what_the_record_says():
    run = json.loads((FOLDER / "data" / "h200_ring.json").read_text(encoding="utf-8"))
    rows = [row for row in run["rows"] if row["left"] is None and row["documents"] is None]
    two, four = ([row for row in rows if row["ranks"] == P and row["N"] // P >= 8192] for P in (2, 4))
    odd = max(two, key=lambda row: row["efficiency"]["ring_contiguous"])
    told = text("16", "measured-steps")
    assert f"the line with {odd['efficiency']['ring_contiguous']:.2f}" in told
    assert f"the ring has {odd['efficiency']['ring_copy_engines']:.2f} there" in told
    assert all(row["efficiency"]["ring_contiguous"] < 2 / 3 for row in two if row is not odd)
    assert all(row["efficiency"]["ring_contiguous"] < 4 / 7 for row in four)
    short = {}
    for row in four:
        size = row["N"], row["H"], row["pass"]
        (before,) = (row for row in two if (row["N"], row["H"], row["pass"]) == size)
        best = max(row["efficiency"][name] for name in ("ring", "ring_copy_engines"))
        if best < before["predicted"]["4"]:
            short[size] = best / before["predicted"]["4"]
    assert {N // 4 for N, _, _ in short} == {8192} and min(short, key=short.get) == (32768, 16, "both")
    assert "It fails with 8,192 tokens in a rank, most of all in both passes with 16 heads" in text(
        "16", "measured-end"
    )
    for row in rows:
        assert row["error"]["ring_copy_engines"] <= 1.02 * row["error"]["one_gpu"], "The error is that of one GPU"
    for row in two + four:  # in the forward pass there is no gain by NCCL, and often a loss
        gain = row["ms"]["ring_in_turn"] / row["ms"]["ring"]
        assert gain < 1.02 if row["pass"] == "forward" else gain > 0.98
