"""`tools.new_exercise` writes an exercise that works, with a part in every file that needs one, or nothing."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("cloudpickle")

from flashlib.chapters import named  # noqa: E402
from flashlib.checks.engine import mistake_tables  # noqa: E402
from flashlib.checks.engine.program import ProgramText  # noqa: E402
from tests.checks import test_gaps  # noqa: E402
from tools import exercise_template, new_exercise, notebooks, solved  # noqa: E402

ROOT = new_exercise.ROOT
NUMPY, TRITON = named("online_softmax"), named("triton_first_steps")
LONG = "n" * new_exercise.LONGEST
RUFF = shutil.which("ruff", path=Path(sys.executable).parent)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Return a function that copies the files of a chapter that the tool needs to a folder, and returns that."""

    def copied(of):
        for part in new_exercise.parts(ROOT, of, "new"):
            if part.path.exists():
                target = tmp_path / part.path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(part.path, target)
        return tmp_path

    monkeypatch.setattr(new_exercise, "ROOT", tmp_path)
    return copied


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["new_exercise", *arguments])
    new_exercise.main()


def texts(root):
    return {path: path.read_text(encoding="utf-8") for path in root.rglob("*.*")}


@pytest.mark.parametrize("of", [NUMPY, TRITON], ids=lambda c: c.name)
def test_each_part_is_added_and_nothing_else_changes(of, course, monkeypatch, capsys):
    root = course(of)
    before = texts(root)
    run(monkeypatch, of.number, LONG)
    after, printed = texts(root), capsys.readouterr().out
    *files, notebook = new_exercise.parts(root, of, LONG)
    assert {path for path in after if after[path] != before.get(path)} == {
        *(part.path for part in files),
        notebook.path,
    }
    for path, what, text in files:
        assert after[path].startswith(before.get(path, "")) and after[path].endswith(text)
        assert "TODO" in text and f"{path.relative_to(root).as_posix()}: {what}" in printed
    python = [path for path in after if path.suffix == ".py"]
    for path in python:
        ast.parse(after[path])
    ours = [path for path in python if "chapters" in path.parts]
    for command in (["check"], ["format", "--check"]):
        config = ["--no-cache", "--config", ROOT / "pyproject.toml"]
        done = subprocess.run([RUFF, *command, *config, *ours], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_notebook_has_three_cells_more_as_make_notebooks_stores_them(course, monkeypatch):
    root = course(NUMPY)
    (path,) = root.glob("notebooks/*")
    before = notebooks.read(path)
    run(monkeypatch, "03", "lse_step")
    nb = notebooks.read(path)
    nbformat.validate(nb)
    assert notebooks.to_text(notebooks.normalise(nb)) == path.read_text(encoding="utf-8")
    at = next(n for n, cell in enumerate(nb.cells) if "exercise:lse_step" in notebooks.tags(cell))
    text, stub, call = nb.cells[at : at + 3]
    assert nb.cells[:at] + nb.cells[at + 3 :] == before.cells
    assert "### Exercise: TODO\n\n*5 minutes · easy*\n" in text.source
    assert solved.SOLUTION.search(text.source)[2] == exercise_template.SOLUTION.replace("NAME", "lse_step")
    assert notebooks.tags(stub) == ["stub:lse_step"] and "def my_lse_step(x):" in stub.source
    assert call.source == "checks.lse_step(my_lse_step)"


def test_a_part_that_is_taken_away_is_named(course, monkeypatch):
    root = course(NUMPY)
    before = texts(root)
    run(monkeypatch, "03", "lse_step")
    after = texts(root)
    for part in new_exercise.parts(root, NUMPY, "lse_step"):
        if part.path in before:
            part.path.write_text(before[part.path], encoding="utf-8")
        else:
            part.path.unlink()
        with pytest.raises(
            SystemExit, match=rf"lse_step is taken: it is in .*, but not in [\w/]*{part.path.name} "
        ):
            run(monkeypatch, "03", "lse_step")
        part.path.write_text(after[part.path], encoding="utf-8")
    with pytest.raises(SystemExit, match="lse_step is taken: it is in [^ ]*(, [^ ]*){6}: pass a different name"):
        run(monkeypatch, "03", "lse_step")
    assert texts(root) == after


@pytest.mark.parametrize(
    "of, name, words",
    [
        ("99", "lse_step", "there is no chapter '99' with exercises; pass the number or the name of one: 01 "),
        ("00", "lse_step", "there is no chapter '00' with exercises"),
        ("03", "2nd", "'2nd' cannot name an exercise: pass a Python name of small letters"),
        ("03", "lse-step", "'lse-step' cannot name an exercise"),
        ("03", "class", "'class' cannot name an exercise"),
        ("03", f"{LONG}n", "with at most 25 characters"),
        ("03", "alpha", "alpha is taken: it is in flashlib/checks/chapters/one_pass/exercises.py, .*: pass a"),
        (
            "03",
            "one_by_one",
            "one_by_one is taken: it is in flashlib/checks/chapters/online_softmax/mistakes.txt",
        ),
        ("03", "merging", "merging is taken: it is in flashlib/.*/exercises_merging.py"),
        ("03", "max", "max already means something in Python or in flashlib.checks"),
        ("03", "engine", "engine already means something"),
        ("03", "mistakes", "mistakes already means something"),
        ("03", "random_cases", "random_cases already means something"),
        ("03", "left_out", "left_out already means something"),
    ],
)
def test_a_bad_chapter_or_name_is_refused_before_anything_is_written(of, name, words, monkeypatch):
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: pytest.fail("something was written"))
    with pytest.raises(SystemExit, match=words):
        run(monkeypatch, of, name)


def test_the_template_works(tmp_path):
    """In the second case of the check, each wrong answer gives a different number."""
    right = ProgramText(exercise_template.SOLUTION, {})
    tables = {}
    (tmp_path / "mistakes.txt").write_text(exercise_template.MISTAKES)
    mistake_tables.read(tmp_path / "mistakes.txt", tables)
    wrong = [right.edited(way).function for mistake in tables["NAME"].values() for way in mistake.ways]
    x = np.array([1.0, 3.0])
    assert right.function(x) == ProgramText(exercise_template.RIGHT, {}).function(x) == 2
    assert len({2, *(answer(x) for answer in wrong)}) == 5
    assert (
        ProgramText(exercise_template.WRONG, {}).function(x) == 3
        and "NAME, no_smallest:" in exercise_template.WRONG
    )
    assert list(exercise_template.KINDS) == list(test_gaps.KINDS)
