"""Numbers that a chapter tells in its text are those of the table or the record that they come from."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from flashlib.gpus import GPUS, KB, MB  # noqa: E402
from flashlib.widgets import EightBitsLab  # noqa: E402
from flashlib.widgets.split_lab import model  # noqa: E402
from tools import notebooks  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def cells(chapter):
    (path,) = notebooks.chapters(FOLDER, chapter)
    return notebooks.read(path).cells


def text(chapter, cell_id):
    return next(cell.source for cell in cells(chapter) if cell.id == cell_id)


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


CLAIMS = "fc1282a5"  # what was claimed of eight bits, and what to remember
EIGHT_BITS = json.loads((FOLDER / "data" / "h200_fp8.json").read_text(encoding="utf-8"))


def speeds_of_eight_bits(name, **of):
    """Return the speeds of a name at the sizes with these values."""
    return [row["tflops"][name] for row in EIGHT_BITS["rows"] if all(row[key] == of[key] for key in of)]


def errors_of_eight_bits(kind, name):
    return [row["error"][name] for row in EIGHT_BITS["errors"] if row["kind"] == kind]


def told(values, digits=0):
    """Return "smallest to largest", as a text says it."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_errors_in_eight_bits_are_those_of_the_record():
    cudnn, ours, bf16 = (
        errors_of_eight_bits("channel means", name) for name in ("cudnn_fp8", "fp8", "sdpa_cudnn")
    )
    said = text("18", "measured-kinds")
    assert f"is {cudnn[0] / ours[0]:.0f} times ours" in said
    assert f"and at 16,384 keys {cudnn[-1] / ours[-1]:.0f} times" in said
    assert "a third larger than that of bf16" in said and ours[-1] / bf16[-1] == pytest.approx(4 / 3, abs=0.05)
    assert "a quarter of the error" in said
    for name, other in zip(
        errors_of_eight_bits("plain", "int8"), errors_of_eight_bits("plain", "fp8"), strict=True
    ):
        assert name / other == pytest.approx(3 / 4, abs=0.03)
    cudnn, ours = (errors_of_eight_bits("outliers", name) for name in ("cudnn_fp8", "fp8"))
    assert cudnn == sorted(cudnn) and ours == sorted(ours, reverse=True)
    ratios = [one / other for one, other in zip(cudnn, ours, strict=True)]
    assert f"is {told(ratios, 1)} times ours" in text("18", CLAIMS)


def test_speeds_in_eight_bits_are_those_of_the_record():
    said, long = text("18", "measured-costs"), {"N": 16384}
    share = {
        causal: [
            100 * (1 - whole / alone)
            for whole, alone in zip(
                speeds_of_eight_bits("fp8_whole", causal=causal, **long),
                speeds_of_eight_bits("fp8", causal=causal, **long),
                strict=True,
            )
        ]
        for causal in (False, True)
    }
    assert f"it is {told(share[False])} % of the whole, or {told(share[True])} % with a causal mask" in said
    short = {"N": 4096, "causal": True}
    pairs = zip(
        speeds_of_eight_bits("fp8_whole", **short), speeds_of_eight_bits("sdpa_cudnn", **short), strict=True
    )
    assert all(whole < bf16 for whole, bf16 in pairs)
    one, two = (speeds_of_eight_bits(name, d=128, **long) for name in ("one_level", "fp8"))
    assert f"{told([100 * (x / y - 1) for x, y in zip(one, two, strict=True)])} % faster with one sum" in said
    (table,) = (cell for cell in cells("18") if "costs in the loop" in cell.source)
    assert "some 5 % of the time" in table.source
    assert all(100 * (1 - y / x) == pytest.approx(5, abs=1) for x, y in zip(one, two, strict=True))
    claims = text("18", CLAIMS)
    (fastest,) = speeds_of_eight_bits("fp8", d=256, causal=False, **long)
    whole = [speeds_of_eight_bits("fp8_whole", d=d, causal=False, **long)[0] / 1e3 for d in (256, 128, 64)]
    assert f"had {fastest / 1e3:.2f} on an H200" in claims
    assert "With the pass it is {:.2f}, at $d = 128$ {:.2f}, and at $d = 64$ {:.2f}.".format(*whole) in claims
    ratios = [x / y for x, y in zip(speeds_of_eight_bits("fp8"), speeds_of_eight_bits("sdpa_cudnn"), strict=True)]
    assert f"is {told(ratios, 1)} times as fast as one in sixteen" in claims


def test_the_lab_marks_the_speeds_of_what_is_chosen():
    (cell,) = (cell for cell in cells("18") if "EightBitsLab(record" in cell.source)
    words = {"one_level": ("e4m3", "13 bits"), "fp8": ("e4m3", "two levels"), "int8": ("int8", "two levels")}
    for name, (qk, sums) in words.items():
        assert f'"{name}": "{EightBitsLab(N=256, qk=qk, sums=sums).result["way"]}"' in cell.source


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
