"""Write the tables of the README and of chapter 00: python -m tools.tables

The chapters come from `flashlib.chapters`, their times from the notebooks, the speeds from the recorded runs. Each
table stands between two comments that say so, and a test holds that it is up to date.
"""

import json
import math
from pathlib import Path

from flashlib.chapters import CHAPTERS
from tools import minutes, notebooks

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "notebooks" / "data"
RECORDS = {"forward": DATA / "h200_forward.json", "backward": DATA / "h200_backward.json"}
HOPPER = DATA / "h200_hopper.json"
README = ROOT / "README.md"
START_HERE = ROOT / "notebooks" / "00_start_here.ipynb"
PEERS = {
    "ours": "ours",
    "sdpa_cudnn": "SDPA cuDNN",
    "flex": "FlexAttention",
    "sdpa_flash": "SDPA flash",
    "eager": "eager",
}
HOPPER_PEERS = {
    "hopper": "chapter 13",
    "ours": "chapter 10",
    "sdpa_cudnn": "SDPA cuDNN",
    "fa4": "FlashAttention-4",
}


def chapters(*, link) -> str:
    """Return the chapters as a table in Markdown; link: for chapter 00, whose neighbours the others are."""
    lines = ["| | chapter | the idea | time, exercises included |", "|---|---|---|---|"]
    in_all = minutes.Minutes(0, 0, 0)
    for c in CHAPTERS:
        if link and c.slug == START_HERE.stem:
            continue
        takes = minutes.of(notebooks.read(START_HERE.with_name(f"{c.slug}.ipynb")))
        in_all += takes
        title = f"[{c.title}]({c.slug}.ipynb)" if link else c.title
        lines.append(f"| {c.number} | {title} | {c.idea} | {takes.rounded().all} min |")
    hours, core = round(in_all.all / 60), round((in_all.all - in_all.optional) / 60)
    lines.append(f"| | **in all** | without the sections that are marked optional: {core} hours | {hours} hours |")
    return "\n".join(lines) + "\n"


def speed(name, record) -> str:
    """Return a recorded pass as a table in Markdown: TFLOP/s, and ours over SDPA's flash."""
    ratios = over(record["rows"], "ours", "sdpa_flash")
    table = tflops(name, record, record["dtype"], PEERS, {"ours / SDPA flash": ratios})
    return f"{table}\nThe geometric mean of the last column is {mean(ratios):.2f}.\n"


def hopper(record) -> str:
    """Return the kernel of chapter 13 beside others, in a run of its own: TFLOP/s, and the means of its ratios."""
    (dtype,) = {row["dtype"] for row in record["rows"]}
    table = tflops("forward", record, dtype, HOPPER_PEERS, {})
    means = [
        f"{mean(over(record['rows'], 'hopper', name)):.2f} times that of {title}"
        for name, title in HOPPER_PEERS.items()
        if name != "hopper"
    ]
    return f"{table}\nIn the geometric mean, the speed of chapter 13 is {', '.join(means[:-1])} and {means[-1]}.\n"


def tflops(name, record, dtype, peers, more) -> str:
    """Return TFLOP/s of `peers`, {name: title}, at the usual sizes; more: {title: ratios}, the last columns."""
    lines = [
        f"TFLOP/s of the {name} pass, {dtype}, B N = 16384, H d = 2048, on an {record['gpu']} "
        f"(torch {record['torch']}, Triton {record['triton']}, {record['date']}):",
        "",
        "| d | causal | N | " + " | ".join([*peers.values(), *more]) + " |",
        "|---" * (3 + len(peers) + len(more)) + "|",
    ]
    for at, row in enumerate(record["rows"]):
        speeds = [row["tflops"][name] for name in peers]
        cells = [str(row["d"]), "yes" if row["causal"] else "no", str(row["N"])]
        cells += ["-" if speed is None else f"{speed:.0f}" for speed in speeds]
        lines.append("| " + " | ".join([*cells, *(f"{ratios[at]:.2f}" for ratios in more.values())]) + " |")
    return "\n".join(lines) + "\n"


def over(rows, name, peer) -> list:
    """Return the ratio of two speeds in each row."""
    return [row["tflops"][name] / row["tflops"][peer] for row in rows]


def mean(ratios) -> float:
    return math.prod(ratios) ** (1 / len(ratios))


def readme(text) -> str:
    """Return the text of the README with today's tables."""
    runs = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in RECORDS.items()}
    text = replaced(text, "speed", "\n".join(speed(name, record) for name, record in runs.items()))
    text = replaced(text, "hopper", hopper(json.loads(HOPPER.read_text(encoding="utf-8"))))
    return replaced(text, "chapters", chapters(link=False))


def start_here(nb):
    """Return the notebook of chapter 00 with today's table."""
    (cell,) = (cell for cell in nb.cells if _start("chapters") in cell.source)
    cell.source = replaced(cell.source, "chapters", chapters(link=True))
    return nb


def replaced(text, name, made) -> str:
    """Return the text with `made` between the comments of that name."""
    before, _, rest = text.partition(_start(name))
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not end:
        raise ValueError(f"there are no lines {_start(name)!r} and '<!-- end of {name} -->' in the text")
    return f"{before}{_start(name)}\n{made}{end}{after}"


def _start(name):
    return f"<!-- {name}: made by tools/tables.py -->"


if __name__ == "__main__":
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    START_HERE.write_text(notebooks.to_text(start_here(notebooks.read(START_HERE))), encoding="utf-8")
