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
README = ROOT / "README.md"
START_HERE = ROOT / "notebooks" / "00_start_here.ipynb"
PEERS = {
    "ours": "ours",
    "sdpa_cudnn": "SDPA cuDNN",
    "flex": "FlexAttention",
    "sdpa_flash": "SDPA flash",
    "eager": "eager",
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
    lines = [
        f"TFLOP/s of the {name} pass, {record['dtype']}, B N = 16384, H d = 2048, on an {record['gpu']} "
        f"(torch {record['torch']}, Triton {record['triton']}, {record['date']}):",
        "",
        "| d | causal | N | " + " | ".join(PEERS.values()) + " | ours / SDPA flash |",
        "|---" * (len(PEERS) + 4) + "|",
    ]
    ratios = []
    for row in record["rows"]:
        speed = row["tflops"]
        ratios.append(speed["ours"] / speed["sdpa_flash"])
        cells = [str(row["d"]), "yes" if row["causal"] else "no", str(row["N"])]
        cells += ["-" if speed[name] is None else f"{speed[name]:.0f}" for name in PEERS]
        lines.append("| " + " | ".join([*cells, f"{ratios[-1]:.2f}"]) + " |")
    mean = math.prod(ratios) ** (1 / len(ratios))
    return "\n".join([*lines, "", f"The geometric mean of the last column is {mean:.2f}.\n"])


def readme(text) -> str:
    """Return the text of the README with today's tables."""
    runs = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in RECORDS.items()}
    text = replaced(text, "speed", "\n".join(speed(name, record) for name, record in runs.items()))
    return replaced(text, "chapters", chapters(link=False))


def start_here(nb):
    """Return the notebook of chapter 00 with today's table."""
    (cell,) = (cell for cell in nb.cells if _start("chapters") in cell.source)
    cell.source = replaced(cell.source, "chapters", chapters(link=True))
    return nb


def replaced(text, name, made) -> str:
    """Return the text with what was made in place of what stands between the comments of that name."""
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
