"""What tests need that is not always there: Chromium, node and the packages of models."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OLDEST = 18  # of node, as Debian 12 has it


def missing(reason):
    """Skip for this reason, or fail where REQUIRE_TOOLS is set, as in CI, where missing tests go unnoticed."""
    if os.environ.get("REQUIRE_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)


def package(name, otherwise):
    """Skip a module of tests whose package is not installed, or fail; see missing."""
    if find_spec(name) is None:
        if os.environ.get("REQUIRE_TOOLS"):
            pytest.fail(f"{name} is not installed: {otherwise}")
        pytest.skip(f"{name} is not installed: {otherwise}", allow_module_level=True)


def node() -> str:
    """Return the path of node; where there is none that is new enough, see missing."""
    path = shutil.which("node")
    if path is None:
        missing(f"There is no node here, of version {OLDEST} or later, to run the JavaScript of the widgets")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST:
        missing(f"The JavaScript of the widgets is tested with node {OLDEST} or later; this is {version}")
    return path


def tsc() -> list:
    """Return the command that starts TypeScript's checker; where it is not installed, see missing."""
    path = ROOT / "node_modules" / "typescript" / "bin" / "tsc"
    if not path.exists():
        missing("TypeScript is not installed, which checks the types of the widgets' JavaScript: run make check")
    return [node(), str(path)]
