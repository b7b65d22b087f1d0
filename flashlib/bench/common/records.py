"""Note what the kernels of a recorded row were compiled to, and tell whether that has changed since.

A row has "kernels", a list of what `kernels.compiler.compiled` said of each of our kernels that was timed:

    kernel, d, causal, shape  which one, and (B, H_q, H_k, N)
    asked                     the options that the call was given; the kernel chose the others
    config                    [B_r, B_c, num_warps, num_stages] of the launch
    sass, ttgir               hashes of the code that ran, and of the TTGIR that it was made from. Names and
                              comments do not change them. In one version of Triton the same TTGIR becomes the
                              same SASS, and takes much less time to make.
"""

import functools
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from flashlib.bench.common import harness

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "notebooks" / "data"
CAPABILITY = 90  # of the GPU of the records


class Notes:
    """Adds "kernels" to rows while the GPU works on: the compiler is a process of its own, without the GPU.

    capability: of the GPU that is timed.
    """

    def __init__(self, capability: int | str = CAPABILITY) -> None:
        import flashlib.kernels.compiler.compiled  # noqa: F401  # not first in a thread, beside other imports in this one

        self.capability, self.pool, self.waiting = capability, ThreadPoolExecutor(1), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown(wait=False, cancel_futures=True)

    def add(self, row: dict, size: dict, asked: dict[str, dict]) -> None:
        """Note in a row what the kernels in `asked`, {kernel: options}, are compiled to.

        size: d, causal and shape, as `compiled.launch` takes them.
        """
        row["kernels"] = []
        for kernel, options in asked.items():
            entry = {"kernel": kernel, **size, "asked": options}
            row["kernels"].append(entry)
            self.waiting.append((entry, self.pool.submit(launched, entry, self.capability)))

    def finish(self) -> None:
        """Wait for all entries; an entry gets the reason if the compiler fails."""
        for entry, future in self.waiting:
            try:
                entry |= future.result()
            except Exception as error:  # the times are right all the same
                entry["reason"] = harness.reason(error)
                harness.say(f"{entry['kernel']} is not known as compiled: {entry['reason']}")
        self.waiting.clear()


def launched(entry: dict, capability: int | str = CAPABILITY) -> dict:
    """Return config, ttgir and sass of the call that an entry describes."""
    config = _launch(entry, "config", capability).config
    found = _launch(_alike(entry | {"config": config}), "sass", capability)
    if not found.sass:
        raise RuntimeError("Triton's disassembler, nvdisasm, is missing")
    return found._asdict()


def _launch(entry, until, capability=CAPABILITY):
    from flashlib.kernels.compiler import compiled  # not before it is needed: Triton may not be installed

    size = {name: entry[name] for name in ("kernel", "d", "causal", "shape")}
    return compiled.launch(**size, **entry["asked"], capability=capability, until=until)


def _alike(entry) -> dict:
    """Return one call for all that run the same code: Triton only knows of what N is a multiple.

    Up to 4096 keys the Hopper kernel chooses by N.
    """
    from flashlib.kernels.compiler import registry

    _, H_q, H_k, N = entry["shape"]
    config = dict(zip(("B_r", "B_c", "num_warps", "num_stages"), entry["config"], strict=True))
    taken = registry.options_of(entry["kernel"])  # the Hopper kernel chooses by itself
    config = {name: value for name, value in config.items() if name in taken}
    asked = {"shape": [1, H_q, H_k, N if N % 1024 else min(N, 4096)], "asked": config | entry["asked"]}
    return {name: entry[name] for name in ("kernel", "d", "causal")} | asked


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
        if has_notes(row):
            yield from _noted(row, f"{row['rung']}, causal = {row['causal']}")


def _of_rows(record):
    for part in ("rows", "more", "rungs"):
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


def has_notes(row: dict) -> bool:
    """Return whether a row of a ladder says what was compiled: the best of each rung with tiles, at d = 128."""
    stored = row["rung"] in ("r1_eager", "r2_softmax", "b1_eager")
    return row["part"] in ("ladder", "wait") and row["best"] and row["d"] == 128 and not stored


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
    Record("h200_hopper_backward.json", "flashlib.bench.hopper_backward", _of_rows),
    Record("h200_hopper_backward_256.json", "flashlib.bench.hopper_backward", _of_rows, "--wide"),
    Record("h200_hopper_backward_ladder.json", "flashlib.bench.hopper_backward_ladder", _of_rows),
    Record("h200_timelines.json", "flashlib.bench.timelines", _of_rows),
    Record("h200_ring.json", "flashlib.bench.ring", _of_ring),
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
        config = _launch(entry, "config").config
        if config != entry["config"]:
            said.append(f"{what}: launched with {entry['config']}, and today it would be {config}")
        elif code and _ttgir(json.dumps(_alike(entry))) != entry["ttgir"]:
            if launched(entry)["sass"] != entry["sass"]:
                said.append(f"{what}: its code has changed")
    return said


@functools.cache
def _ttgir(entry: str) -> str:
    return _launch(json.loads(entry), "ttgir").ttgir


def pinned_triton() -> str:
    """Return the version of Triton in requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("triton=="))
    return line.removeprefix("triton==").partition(";")[0].strip()
