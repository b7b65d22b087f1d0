"""`pytest -p flashlib.checks.compare FOLDER`, on a folder outside of the repository and from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbval")
from nbformat.v4 import new_code_cell, new_notebook  # noqa: E402

from flashlib.checks.classroom import course  # noqa: E402
from flashlib.checks.engine import solutions  # noqa: E402
from tools import workspace  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
N = 5  # code cells of Softmax that are run: two of them print
STUB, CHECK = "b830f7e2", "002b137d"  # of scores_for
NONSENSE = "def print(*args):\n    __import__('builtins').print('nonsense')"
IPYTHON = "get_config().InlineBackend.figure_formats = {'svg'}"
ERROR = "def print(*args):\n    __import__('sys').stderr.write('nonsense')"
pytestmark = pytest.mark.process


def start():
    """Return a copy of the first cells of Softmax, and of one exercise."""
    nb = nbformat.read(course.FOLDER / "01_softmax.ipynb", as_version=4)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    cells = code[:N] + [cell for cell in code if cell.id in (STUB, CHECK)]
    return workspace.without_outputs(new_notebook(cells=cells, metadata={"flashlib": {"made_from": "before"}}))


def with_cell(source):
    nb = start()
    nb.cells.insert(1, new_code_cell(source, id="of-mine"))
    return nb


def answered(text):
    nb = start()
    nb.cells[N].source = text
    return nb


def edited():
    nb = start()
    nb.cells[3].source = "print('changed')"
    return nb


def without_ids(nb):
    """Return the notebook as nbstripout leaves it by default."""
    for n, cell in enumerate(nb.cells):
        cell.id = str(n)
    return nb


def drawn():
    """Return a notebook with a cell that draws, which the learner's settings of matplotlib would enlarge."""
    nb = nbformat.read(course.FOLDER / "01_softmax.ipynb", as_version=4)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    at = next(n for n, cell in enumerate(code) if "<Figure size" in str(cell.outputs))
    return workspace.without_outputs(new_notebook(cells=code[: at + 1]))


NOTEBOOKS = {
    "control": start,
    "nonsense": lambda: with_cell(NONSENSE),
    "elsewhere": lambda: with_cell(ERROR),
    "right": lambda: answered(solutions.text("scores_for")),
    "wrong": lambda: answered("def my_scores_for(p):\n    return p"),
    "edited": edited,
    "stripped": lambda: without_ids(start()),
    "strippednonsense": lambda: without_ids(with_cell(NONSENSE)),
    "strippedwrong": lambda: without_ids(answered("def my_scores_for(p):\n    return p")),
    "drawn": drawn,
    "other": lambda: new_notebook(cells=[new_code_cell("print(1)")]),
}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return what pytest prints for all notebooks, run once."""
    folder, elsewhere = (tmp_path_factory.mktemp(name) for name in ("mine", "elsewhere"))
    learner = folder / "workspace"  # where progress would be kept
    learner.mkdir()
    for name, make in NOTEBOOKS.items():
        nbformat.write(make(), learner / f"{name}.ipynb")
    (learner / "broken.ipynb").write_text("{")
    (learner / "._hidden.ipynb").write_text("{")
    (learner / "test_mine.py").write_text("def test():\n    assert False, 'a test of the learner'")
    (learner / "conftest.py").write_text("1 / 0")
    settings = elsewhere / "settings"
    (settings / "profile_default").mkdir(parents=True)
    (settings / "profile_default" / "ipython_config.py").write_text(IPYTHON)
    (settings / "matplotlibrc").write_text("figure.dpi: 220\nfont.family: a font that is nowhere\n")
    (learner / "matplotlibrc").write_text("figure.dpi: 150\n")
    before = files(folder)
    command = [sys.executable, "-m", "pytest", "-p", "flashlib.checks.compare", "-rpf", "--color=no", str(learner)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FLASHLIB_PROGRESS": str(learner / "progress.json")}
    env |= {"IPYTHONDIR": str(settings), "MATPLOTLIBRC": str(settings / "matplotlibrc")}
    done = subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert files(folder) == before, "nothing of the learner's is written"
    return done.stdout


def failed(ran, name):
    """Return the numbers of the failed cells of a notebook, of which all cells were run."""
    result = rf"^(PASSED|FAILED) .*\b{name}\.ipynb::Cell (\d+)"
    found = {int(number): outcome for outcome, number in re.findall(result, ran, re.MULTILINE)}
    assert sorted(found) == list(range(len(NOTEBOOKS[name]().cells))), f"{name}: {found}\n{ran}"
    return [number for number, outcome in sorted(found.items()) if outcome == "FAILED"]


@pytest.mark.parametrize("name", ["control", "right", "edited", "other", "stripped", "drawn"])
def test_unchanged_outputs_pass(ran, name):
    assert failed(ran, name) == [], ran


@pytest.mark.parametrize("name", ["nonsense", "elsewhere", "strippednonsense"])
def test_cells_that_print_nonsense_fail(ran, name):
    """Their sources are unchanged: a name that they use was redefined above them."""
    assert failed(ran, name) == [3, 4]


def test_a_failure_shows_the_expected_and_the_actual_output(ran):
    stored = nbformat.read(course.FOLDER / "01_softmax.ipynb", as_version=4)
    text = next(cell for cell in stored.cells if cell.id == start().cells[2].id).outputs[0].text
    expected = "\n".join(f"    {line}" for line in text.splitlines())
    assert f"expected, as the course stores it:\n{expected}\ngot:\n    nonsense\n" in ran


@pytest.mark.parametrize("name", ["wrong", "strippedwrong"])
def test_a_wrong_answer_fails_with_the_sentence_of_its_check(ran, name):
    assert failed(ran, name) == [N + 1]
    assert "scores_for: right or not solved yet\ngot:\n    wrong: " in ran


def test_the_summary_lists_what_was_not_compared(ran):
    said = ran.partition("compared with the course =")[2].splitlines()
    about = {name: next(n for n, line in enumerate(said) if f"{name}.ipynb: " in line) for name in NOTEBOOKS}
    assert "not of the course" in said[about["other"]]
    assert "earlier version of the course" in said[about["control"] + 1]
    changed = said[about["edited"] + 2]
    assert changed.strip() == f"changed: not compared: Cell 3 ({start().cells[3].id})"
    assert "your own: run, not compared: Cell 1 (of-mine)" in "\n".join(said)
    found = said[about["strippednonsense"] :]
    assert found[0].partition(": ")[2] == said[about["control"]].partition(": ")[2], "as many are compared"
    assert "found by their sources" in "".join(found[:5]) and "Cell 1 (1)" in "".join(found[:5])
    assert "not a notebook that can be read" in ran
    assert "a test of the learner" not in ran and "._hidden" not in ran


@pytest.mark.parametrize(
    "given", ["no notebook of the course", "no notebook", "changed cells alone", "two processes"]
)
def test_a_run_that_has_compared_nothing_fails_and_says_so(tmp_path, given):
    nb = new_notebook(cells=[new_code_cell("print(1)")])
    if given == "changed cells alone":
        nb = start()
        for cell in nb.cells:
            cell.source += "\nNone"
    if given != "no notebook":
        nbformat.write(nb, tmp_path / "mine.ipynb")
    options = ["-n", "2"] if given == "two processes" else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "flashlib.checks.compare", *options, str(tmp_path)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1 and "Nothing was compared, so this run fails" in done.stdout, (
        done.stdout + done.stderr
    )
    assert "failed" not in done.stdout.splitlines()[-1], "it is not a cell that fails"
