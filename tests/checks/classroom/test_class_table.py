"""A table for a class: one notebook that hangs or crashes is one failed row."""

import json
import subprocess
import sys

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbconvert")
from nbformat.v4 import new_code_cell, new_notebook  # noqa: E402

from flashlib.checks.classroom import class_table  # noqa: E402
from flashlib.checks.engine import solutions  # noqa: E402
from flashlib.checks.engine.verdict import MIME  # noqa: E402

IMPORTS = "import numpy as np\nfrom flashlib import checks"
RIGHT = f"{solutions.text('online_step')}\nchecks.online_step(my_online_step)"
WRONG = "checks.online_step(lambda m, l, x_j: (m, l))"
OTHER_WAY = f"""from flashlib.checks import scores_for
{solutions.text("scores_for")}
print(scores_for(my_scores_for));"""
NOTEBOOKS = {
    "anna/03.ipynb": (IMPORTS, RIGHT, OTHER_WAY, "# never run: checks.merge(f)"),
    "bert/03.ipynb": (IMPORTS, WRONG, "import time; time.sleep(1000)", RIGHT),
    "carl/03.ipynb": (IMPORTS, "1 / 0", "checks.online_step(my_online_step)"),
    "dora/03.ipynb": (IMPORTS, RIGHT, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "emil/03.ipynb": ("print('nothing')",),
}
FORGED = {"exercise": "online_step", "outcome": "right", "sentence": "in all\nmine"}


def _forged(path):
    """Write a notebook that stores verdicts in cells that are not run, and data that are not a verdict."""
    cells = [new_code_cell(""), new_code_cell("checks.online_step(f)"), nbformat.v4.new_markdown_cell("so")]
    cells[1].metadata.tags = ["skip-execution"]
    stored = [{"output_type": "display_data", "metadata": {}, "data": {MIME: data}} for data in (FORGED, {"x": 1})]
    nb = json.loads(json.dumps(new_notebook(cells=cells)))
    for cell in nb["cells"]:
        cell["outputs"] = stored
    path.write_text(json.dumps(nb))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name, sources in NOTEBOOKS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), folder / name)
    (folder / "fritz.ipynb").write_text("{")
    _forged(folder / "ilse.ipynb")
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_table, "CELL_TIMEOUT", 8)
        found = [row for some in class_table.run(folder) for row in some]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before, "left as they were"
    return {(row.notebook, row.exercise): row for row in found}


def test_a_notebook_has_a_row_for_each_exercise(tmp_path):
    cells = [new_code_cell(source) for source in (IMPORTS, RIGHT, "1 / 0", "checks.merge(my_merge)")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "03.ipynb")
    found = [row for rows in class_table.run(tmp_path) for row in rows]
    assert [(row.exercise, row.outcome) for row in found] == [("online_step", "right"), ("merge", "no verdict")]
    assert class_table.table(found).splitlines()[-1] == "1 of 2 exercises right"


@pytest.mark.process
def test_verdicts(rows):
    assert rows["anna/03.ipynb", "online_step"].outcome == "right"
    words = "the last verdict counts, and the cell that hung is interrupted"
    assert rows["bert/03.ipynb", "online_step"].outcome == "right", words
    said = "cell 1 raised ZeroDivisionError: division by zero"
    assert rows["carl/03.ipynb", "online_step"][2:] == ("no verdict", said)


@pytest.mark.process
def test_what_fails_is_one_row(rows):
    assert rows["dora/03.ipynb", ""][2:] == ("failed", "DeadKernelError: Kernel died")
    assert rows["emil/03.ipynb", ""].outcome == "no exercises"
    assert rows["fritz.ipynb", ""].outcome == "failed"
    assert len(rows) == 9


@pytest.mark.process
def test_any_way_to_call_a_check_counts(rows):
    assert rows["anna/03.ipynb", "scores_for"].outcome == "right"
    assert rows["anna/03.ipynb", "merge"][2:] == ("no verdict", "its check was not run")


@pytest.mark.process
def test_what_a_notebook_stores_does_not_count(rows):
    assert rows["ilse.ipynb", "online_step"].outcome == "no verdict"


@pytest.mark.process
def test_table(rows):
    lines = class_table.table(list(rows.values())).splitlines()
    assert lines[0].split() == ["notebook", "exercise", "outcome"]
    assert lines[-1] == "3 of 6 exercises right, 2 notebooks failed"
    assert len(lines) == 11


@pytest.mark.process
def test_a_folder_without_notebooks_is_told(tmp_path):
    for folder, said in [(tmp_path, "no notebook"), (tmp_path / "gone", "not a folder")]:
        command = [sys.executable, "-m", "flashlib.checks", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1
