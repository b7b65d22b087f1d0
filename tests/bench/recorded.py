"""The records of our kernels, and what has changed since they were made."""

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from flashlib.bench.common import records

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "notebooks" / "data"


class Record(NamedTuple):
    """A recorded run.

    module: the one of flashlib.bench that makes it; options: the words on its command line. entries(record): its
    notes, as (place, entry, code): entry is None where nothing was noted; code: whether the compiled code is
    compared, or only the options that were chosen.
    """

    file: str
    module: str
    entries: Callable
    options: str = ""

    @property
    def command(self) -> str:
        words = ("python -m", self.module, self.options, f"--out notebooks/data/{self.file}")
        return " ".join(filter(None, words))

    def read(self) -> dict:
        return json.loads((DATA / self.file).read_text(encoding="utf-8"))


def _noted(row, place):
    for entry in row.get("kernels") or [None]:
        yield place, entry, True


def _of_tables(record):
    for name in ("rows", "more"):
        for row in record.get(name, []):
            size = f"d = {row['d']}, causal = {row['causal']}, N = {row['N']}"
            for place, entry, _ in _noted(row, size):  # no table shows the fused pass at these sizes
                yield place, entry, not entry or entry["kernel"] != "backward_fused"


def _of_ladder(record):
    for row in record["rows"]:
        if records.has_notes(row):
            yield from _noted(row, f"{row['rung']}, causal = {row['causal']}")


def _of_rows(record):
    for part in ("rows", "more", "grouped", "rungs"):
        for row in record.get(part, []):
            name = row.get("rung", part)
            yield from _noted(row, f"{name}, d = {row['d']}, causal = {row.get('causal', False)}, N = {row['N']}")


def _of_ring(record):
    for row in record["rows"]:
        if "kernels" in row:  # those of a whole sequence, at the row of both passes
            yield from _noted(row, f"{row['ranks']} ranks, {row['H']}/{row['H_k']} heads, N = {row['N']}")


def _of_gpt(record):
    yield from _noted(record["runs"][0], "the GPT")


def _of_models(record):
    for row in record["rows"]:
        if (row["pass"], row["N"]) == ("step", 4096):  # from there on it is the same code
            yield from _noted(row, f"a step of {row['N']} tokens")


RECORDS = [
    Record("h200_forward.json", "flashlib.bench", _of_tables),
    Record("h200_backward.json", "flashlib.bench", _of_tables, "--backward"),
    Record("h200_ladder.json", "flashlib.bench.ladder", _of_ladder),
    Record("h200_backward_ladder.json", "flashlib.bench.backward_ladder", _of_ladder),
    Record("h200_gpt.json", "flashlib.bench.gpt", _of_gpt),
    Record("h200_hopper.json", "flashlib.bench.hopper", _of_rows),
    Record("h200_fp8.json", "flashlib.bench.fp8", _of_rows),
    Record("h200_models.json", "flashlib.bench.models", _of_models),
    Record("h200_hopper_ladder.json", "flashlib.bench.hopper_ladder", _of_rows),
    Record("h200_hopper_rescaling.json", "flashlib.bench.hopper_rescaling", _of_rows),
    Record("h200_hopper_backward.json", "flashlib.bench.hopper_backward", _of_rows),
    Record("h200_hopper_backward_256.json", "flashlib.bench.hopper_backward", _of_rows, "--wide"),
    Record("h200_hopper_backward_ladder.json", "flashlib.bench.hopper_backward_ladder", _of_rows),
    Record("h200_timelines.json", "flashlib.bench.timelines", _of_rows),
    Record("h200_ring.json", "flashlib.bench.ring", _of_ring),
    Record("h200_ring_4.json", "flashlib.bench.ring", _of_ring, "--ranks 4"),
]


def outdated(record: dict, noted: Iterable[tuple[str, dict | None, bool]], pinned: str) -> list[str]:
    """Return what has changed since, a sentence for each change.

    record: as read; noted: its `entries`; pinned: the version of Triton that it must be made with.
    """
    if record["triton"] != pinned:
        return [f"it was made with Triton {record['triton']}, and requirements.txt pins {pinned}"]
    said = []
    for place, entry, code in noted:
        if entry is None or "sass" not in entry:
            said.append(f"{place}: it does not say what was compiled" + (f": {entry['reason']}" if entry else ""))
            continue
        what = f"{entry['kernel']} at {place}"
        config = records.launch(entry, "config").config
        if config != entry["config"]:
            said.append(f"{what}: launched with {entry['config']}, and today it would be {config}")
        elif code and _ttgir(json.dumps(records.representative(entry))) != entry["ttgir"]:
            if records.launched(entry)["sass"] != entry["sass"]:
                said.append(f"{what}: its code has changed")
    return said


@functools.cache
def _ttgir(entry: str) -> str:
    return records.launch(json.loads(entry), "ttgir").ttgir


def pinned_triton() -> str:
    """Return the version of Triton in requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("triton=="))
    return line.removeprefix("triton==").partition(";")[0].strip()
