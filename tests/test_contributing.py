"""CONTRIBUTING is true: its examples work, its lists are complete, and what it names exists."""

import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
pytest.importorskip("cloudpickle")

from flashlib import naive, tiled  # noqa: E402
from flashlib.checks.engine import mistake_tables  # noqa: E402
from flashlib.checks.engine.exercises import EXERCISES, examine_answer  # noqa: E402
from tests import masked, oracle  # noqa: E402
from tools import new_exercise, results  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DATA = ROOT / "notebooks" / "data"
SHOWN = re.compile(r"In\s+`([\w/.]+)`:\n\n(```+)\w*\n(.*?)\2\n", re.DOTALL)  # a file's name and its text
FILES = {name: text for name, _, text in SHOWN.findall(TEXT)}
COMMAND = re.compile(r"^(?:\.venv/bin/)?python (.+)$", re.MULTILINE)
REGISTERED = ")  # fmt: skip\n"  # the end of CHAPTERS
COPIED = "flashlib", "tools", "tests", "conftest.py", "pyproject.toml"


def section(title):
    """Return the text of a section."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_package_and_module_is_named():
    """The folders of widgets and of chapters are left out: each says itself what it is."""
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
    links = re.findall(r"\]\((?!http|#|\w+\.ipynb)([^)]+)\)", text)
    for name in {*code, *links} - FILES.keys():
        if not re.search("temperature|NAME", name):
            assert (ROOT / name).exists(), name


def test_every_section_that_is_linked_exists():
    titles = {title.lower().replace(" ", "-") for title in re.findall("^## (.+)$", TEXT, re.MULTILINE)}
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert links and set(links) <= titles


def test_every_module_and_test_in_a_command_exists():
    commands = COMMAND.findall(TEXT)
    modules = [words[1] for words in map(shlex.split, commands) if words[0] == "-m"]
    assert len(commands) > 10 and not [name for name in modules if not importlib.util.find_spec(name)]
    paths = re.findall(r" (tests/[\w/.]+)", "\n".join(commands))
    assert paths and not [path for path in paths if not (ROOT / path).exists()]


def test_every_make_target_that_is_named_exists():
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:`|^)make ([a-z-]+)", TEXT, re.MULTILINE)
    assert len(named) > 5 and set(named) <= set(targets)


def test_the_provenance_of_all_data_is_given():
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
    rows = re.findall(r"^\| `([\w.]+)` .*\| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) > 20
    for name, said in rows:
        assert said == (", ".join(c.title for c in results.readers(name)) or "no chapter"), name


def test_the_mistake_that_is_added_is_named(monkeypatch, tmp_path):
    example = r"table `\[(\w+)\]` of `flashlib/[\w/]+/mistakes.txt`:\n\n```\n(.*?)```"
    ((name, rows),) = re.findall(example, section("A mistake"), re.DOTALL)
    (tmp_path / "mistakes.txt").write_text(f"[added]\n{rows}")
    found = {}
    mistake_tables.read(tmp_path / "mistakes.txt", found)
    ((mistake,),) = [tuple(table.values()) for table in found.values()]
    tables = mistake_tables.tables()
    assert f"-k {name}\n" in section("A mistake") and mistake.id not in tables[name] and mistake.ways
    for way in mistake.ways:
        answer = EXERCISES[name].known.program.edited(way).function
        assert examine_answer(name, answer, 4711).mistake == "value", "it has no name yet"
        with monkeypatch.context() as patch:
            patch.setattr(mistake_tables, "tables", lambda: {**tables, name: tables[name] | found["added"]})
            assert examine_answer(name, answer, 4711).mistake == mistake.id


def test_the_commands_for_an_exercise_are_those_that_the_tool_prints():
    first, *others = COMMAND.findall(section("An exercise in a chapter that exists"))
    module, number, name = first.removeprefix("-m ").split()
    assert module == new_exercise.__name__
    printed = new_exercise.NEXT.replace("NUMBER", number).replace("NAME", name)
    assert f"```\n{printed}```\n" in TEXT and others == COMMAND.findall(printed)


def test_the_mask_is_right_with_what_is_shown(rng):
    """In NumPy: the same class is among the masks that kernels are tested with."""
    names = {"__name__": "flashlib.masks.dilated"}
    exec(FILES["flashlib/masks/dilated.py"], names)
    case = masked.Case(names["Dilated"](3), lambda r, c: (r - c) % 3 == 0)
    Q, K, V = (rng.normal(size=(n, 4)) for n in (7, 13, 13))
    O, lse = masked.attention(Q, K, V, case)
    for module, blocks in ((naive, {}), (tiled, {"B_r": 4, "B_c": 3})):
        given = module.attention(Q, K, V, mask=case.mask, **blocks)
        oracle.assert_close(given.O, O, rounding=1e-13)
        oracle.assert_close(given.lse, lse, rounding=1e-13)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of what the course is made of, with the files that the text shows and the notebook Online softmax."""
    root = tmp_path_factory.mktemp("course")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "browser"))
        else:
            shutil.copy(ROOT / name, root / name)
    (root / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "03_online_softmax.ipynb", root / "notebooks")
    for name, text in FILES.items():
        path = root / name
        if path.exists():
            assert path.name == "chapters.py", f"{name} is the example's in CONTRIBUTING: take another name"
            old = path.read_text(encoding="utf-8")
            assert old.count(REGISTERED) == 1
            text = old.replace(REGISTERED, text + REGISTERED)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def run(root, *arguments):
    """Run Python in a folder; return what it printed."""
    env = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def in_course(course):
    """Return a function that runs Python in the copy, to whose notebooks the new chapter was added."""
    run(course, "make_99.py")
    return functools.partial(run, course)


@pytest.mark.process
def test_a_new_chapter_becomes_a_notebook_and_a_solved_one(in_course):
    made = in_course("-m", "tools.notebooks", "--chapter", "99")
    assert "99_temperature.ipynb" in made and "solutions/99_temperature.ipynb" in made and "failed" not in made


@pytest.mark.process
def test_the_known_mistakes_of_a_new_chapter_are_named(in_course):
    """Right answers are accepted, wrong ones named, and each mistake is shown."""
    assert "-    z = x / T\n+    z = x * T\n" in in_course("-m", "flashlib.checks.mistakes", "99")
    tests = in_course("-m", "pytest", "-q", "tests/checks/test_answers.py", "-k", "tempered")
    assert "2 right answers accepted, 7 wrong answers named" in tests
    in_course("-m", "pytest", "-q", "tests/checks/test_gaps.py", "-k", "tempered or filled or tables")


@pytest.mark.process
def test_a_new_exercise_works_before_anything_is_filled_in(in_course):
    commands = [
        shlex.split(command) for command in COMMAND.findall(section("An exercise in a chapter that exists"))
    ]
    begin, show, answers, *_ = commands
    in_course(*begin)
    assert "==== lse_step: TODO\n" in in_course(*show)
    assert "2 right answers accepted, 5 wrong answers named" in in_course(*answers)
    in_course("-m", "pytest", "-q", "tests/checks/test_gaps.py", "-k", "lse_step or filled or tables")
