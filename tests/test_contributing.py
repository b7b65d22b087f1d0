"""CONTRIBUTING says what is there: its worked example works, and its lists are whole."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
pytest.importorskip("cloudpickle")

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DATA = ROOT / "notebooks" / "data"
SHOWN = re.compile(r"In\s+`([\w/.]+)`:\n\n(```+)\w*\n(.*?)\2\n", re.DOTALL)  # a file's name and its text
REGISTERED = ")  # fmt: skip\n"  # the end of CHAPTERS
COPIED = "flashlib", "tools", "tests", "conftest.py", "pyproject.toml"


def test_every_package_and_module_is_named():
    """The folders of widgets and of chapters are not: each says itself what it is."""
    folders = [path for path in (ROOT / "flashlib").rglob("[!_.]*") if path.is_dir()]
    inside = [path.relative_to(ROOT / "flashlib") for path in [*folders, *(ROOT / "flashlib").glob("[!_]*.py")]]
    rooms = {path.with_suffix("").as_posix() for path in inside if "__pycache__" not in path.parts}
    rooms = {room for room in rooms if not re.match("(widgets|checks/chapters)/", room)}
    cells = re.findall(r"^\| (`[^|]+`) \|", TEXT.partition("## The house")[2], re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)}
    assert {room for room in rooms if not any(f"{name}/".startswith(f"{room}/") for name in named)} == set()
    assert named <= rooms


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", "docs/hopper-model.md"])
def test_every_file_that_is_named_exists(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    code = re.findall(r"`((?:flashlib|tests|notebooks|tools)/[\w/.]*)`", text)
    links = re.findall(r"\]\((?!http)([^)]+)\)", text)
    for name in {*code, *links}:
        if not re.search("temperature|NAME", name):
            assert (ROOT / name).exists(), name


def test_every_make_target_that_is_named_exists():
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:`|^)make ([a-z-]+)", TEXT, re.MULTILINE)
    assert len(named) > 5 and set(named) <= set(targets)


def test_the_provenance_of_all_data_is_told():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    commands = dict(re.findall(r"^\| `([\w.]+)` \| `python -m (.+?)`", text, re.MULTILINE))
    assert {path.name for path in DATA.iterdir()} == {*commands, "shakespeare.txt", "README.md"}
    assert "`shakespeare.txt` is no record" in text
    for name, command in commands.items():
        module, *options = command.split()
        assert options[-2:] == ["--out", f"notebooks/data/{name}"]
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), command


def test_the_provenance_of_data_names_the_chapters_that_read_it():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    chapters = {path.name[:2]: path.read_text(encoding="utf-8") for path in DATA.parent.glob("*.ipynb")}
    for name, said in re.findall(r"^\| `([\w.]+)` .*\| ([\d, ]+) \|$", text, re.MULTILINE):
        assert said.split(", ") == [number for number, nb in sorted(chapters.items()) if f"data/{name}" in nb], (
            name
        )


@pytest.fixture(scope="module")
def with_chapter_99(tmp_path_factory):
    """Return a function that runs Python in a copy of the repository to which the text's example was added."""
    root = tmp_path_factory.mktemp("course")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "browser"))
        else:
            shutil.copy(ROOT / name, root / name)
    (root / "notebooks").mkdir()
    for name, _, text in SHOWN.findall(TEXT):
        path = root / name
        if path.exists():
            assert path.name == "chapters.py", f"{name} is the example's in CONTRIBUTING: take another name"
            old = path.read_text(encoding="utf-8")
            assert old.count(REGISTERED) == 1
            text = old.replace(REGISTERED, text + REGISTERED)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(*arguments):
        env = os.environ | {"PYTHONPATH": str(root)}
        done = subprocess.run([sys.executable, *arguments], cwd=root, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("make_99.py")
    return run


@pytest.mark.process
def test_the_example_becomes_a_notebook_and_a_solved_one(with_chapter_99):
    made = with_chapter_99("-m", "tools.notebooks", "--chapter", "99")
    assert "99_temperature.ipynb" in made and "solutions/99_temperature.ipynb" in made and "failed" not in made


@pytest.mark.process
def test_the_known_mistakes_of_the_example_are_named(with_chapter_99):
    """Right answers are accepted, wrong ones named, and each mistake is shown."""
    assert "-    z = x / T\n+    z = x * T\n" in with_chapter_99("-m", "flashlib.checks.mistakes", "99")
    tests = with_chapter_99("-m", "pytest", "-q", "tests/checks/test_answers.py", "-k", "tempered")
    assert "2 right answers accepted, 7 wrong answers named" in tests
