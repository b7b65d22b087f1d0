"""Write the speed tables of the README from the recorded runs: python tools/speed_table.py"""

import json
import math
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "notebooks" / "data"
RECORDS = {"forward": DATA / "h200_forward.json", "backward": DATA / "h200_backward.json"}
README = ROOT / "README.md"
START, END = "<!-- speed: made by tools/speed_table.py -->\n", "<!-- end of speed -->"
PEERS = {
    "ours": "ours",
    "sdpa_cudnn": "SDPA cuDNN",
    "flex": "FlexAttention",
    "sdpa_flash": "SDPA flash",
    "eager": "eager",
}


def table(name, record) -> str:
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


def updated(readme, records) -> str:
    """Return the README's text with the tables in their place; records: by the name of the pass."""
    before, _, rest = readme.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the README has no lines {START!r} and {END!r}")
    tables = "\n".join(table(name, record) for name, record in records.items())
    return before + START + tables + END + after


def recorded() -> dict:
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in RECORDS.items()}


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8"), recorded()), encoding="utf-8")
