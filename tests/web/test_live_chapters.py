"""The cells of the chapters print what is stored in any order: backwards, at random, twice."""

import json
import os
import random
import subprocess
import sys

import pytest

pytest.importorskip("traitlets")

from flashlib.chapters import CHAPTERS  # noqa: E402
from tools import notebooks  # noqa: E402
from web.live import cells, parts  # noqa: E402

# The kernel with its stand-ins, in a new Python process: each question is a line, and so is each answer.
KERNEL = """
import json, sys
from web.live.inside import kernel
out = sys.stdout
page = kernel.begin(sys.stdin.readline(), lambda *event: None)
for line in sys.stdin:
    print(page.ask(line)[0], file=out, flush=True)
"""


def orders(ids):
    """Return the ids backwards, at random, and each twice."""
    rng = random.Random(0)
    return [*ids[::-1], *rng.sample(ids, len(ids)), *(id for id in ids for _ in range(2))]


def printed(outputs):
    return "".join(one["text"] for one in outputs if one["kind"] == "out").strip()


@pytest.mark.process
@pytest.mark.parametrize("chapter", [one for one in CHAPTERS if parts.is_live(one)], ids=lambda one: one.slug)
def test_a_cell_prints_its_stored_output_whatever_ran_before(chapter):
    nb = notebooks.read(parts.ROOT / "notebooks" / f"{chapter.slug}.ipynb")
    told = cells.of_chapter(nb.cells)
    stored = {cell.id: cell for cell in nb.cells}
    asked = [one["id"] for one in told if not one["missing"] and "checks." not in stored[one["id"]].source]
    questions = [
        {"do": "run", "cell": id, "sources": {c: stored[c].source for c in stored}} for id in orders(asked)
    ]
    lines = [json.dumps(told), *map(json.dumps, questions)]
    ran = subprocess.run(
        [sys.executable, "-c", KERNEL], input="\n".join(lines) + "\n", capture_output=True, text=True,
        cwd=parts.ROOT / "notebooks", env={**os.environ, "PYTHONPATH": str(parts.ROOT)},
    )  # fmt: skip
    assert not ran.returncode, ran.stderr
    for question, line in zip(questions, ran.stdout.splitlines(), strict=True):
        answer, cell = json.loads(line), stored[question["cell"]]
        assert not any(one["raised"] for one in answer["first"]), answer
        texts = [o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout"]
        assert printed(answer["outputs"]) == "".join(texts).strip(), cell.id
