"""The wheel has all of flashlib and nothing else, and can be imported without a checkout."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools", minversion="77")

ROOT = Path(__file__).parents[1]
PAPERS = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")
BUILT_FROM = (*PAPERS, "flashlib", "tests", "tools")  # the last two must stay out
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
IMPORT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import flashlib, flashlib.tiled, flashlib.checks
from flashlib.checks.engine import mistake_tables, solutions
print(json.dumps({
    "files": sorted({m.__file__ for name, m in sys.modules.items() if name.partition(".")[0] == "flashlib"}),
    "exercises": len(flashlib.checks.EXERCISES),
    "solutions": len(solutions.names()),
    "without_table": sorted(flashlib.checks.EXERCISES.keys() - mistake_tables.tables().keys()),
}))
"""


def _copied(names, target):
    """Copy from the checkout, so that building leaves nothing in it."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(ROOT / name, target / name)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    _copied(BUILT_FROM, source)
    done = subprocess.run([sys.executable, "-c", BUILD, str(built)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = built.glob("*.whl")
    return path


def test_the_wheel_has_flashlib_and_nothing_else(wheel):
    """Each of its modules, tables, scripts and style sheets; no answers and no tests."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "flashlib").rglob("[!.]*.*") if "__pycache__" not in path.parts]
    assert names == {path.relative_to(ROOT).as_posix() for path in files}
    assert not [name for name in names if Path(name).name.startswith(("wrong", "right", "answers", "test"))]


@pytest.mark.process
def test_the_wheel_imports_without_the_checkout(wheel, tmp_path):
    pytest.importorskip("cloudpickle")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    run = [sys.executable, "-I", "-W", "error", "-c", IMPORT, str(tmp_path)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(Path(file).is_relative_to(tmp_path) for file in found["files"])
    assert found["exercises"] == found["solutions"] > 0
    assert not found["without_table"], "each exercise has its table of mistakes"
