"""Python as a page has it, in a new process of CPython: with what is in the archives, and no other packages."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

from web.live import parts

# Modules of the standard library that ask which system this is come first.
BEGIN = """
import sys, sysconfig, subprocess, multiprocessing, tempfile, asyncio, platform, numpy
sysconfig.get_config_vars()
SITE = {site!r}
sys.path[:] = [SITE, *(path for path in sys.path if "site-packages" not in path and path not in ("", {root!r}))]
sys.platform = "emscripten"
import json
"""
KERNEL = """
from web.live.inside import kernel
out = sys.stdout
page = kernel.begin(sys.stdin.readline(), lambda *event: None)
for line in sys.stdin:
    print(page.ask(line)[0], file=out, flush=True)
"""


def unpacked(folder: Path, kernels: bool) -> Path:
    """Unpack the archives that a page fetches into a folder, and return the one in it with packages."""
    site = folder / "site-packages"
    parts.write_course(folder / parts.COURSE)
    if kernels:
        parts.write_kernels(folder)
    for name in (parts.COURSE, parts.KERNELS)[: 1 + kernels]:
        with zipfile.ZipFile(folder / name) as archive:
            archive.extractall(site)
    numpy = Path(np.__file__).parent
    for place in (numpy, numpy.with_name("numpy.libs")):
        if place.exists():
            (site / place.name).symlink_to(place)
    (site / "notebooks").mkdir()
    (site / "notebooks" / "data").symlink_to(parts.ROOT / "notebooks" / "data")
    return site


def run(site: Path, code: str, given: str) -> str:
    """Run code with the packages of a page and this as its input; return what it prints."""
    begin = BEGIN.format(site=str(site), root=str(parts.ROOT))
    ran = subprocess.run(
        [sys.executable, "-c", begin + code], input=given, capture_output=True, text=True, cwd=site / "notebooks",
        env={**os.environ, "FLASHLIB_PROGRESS": "off", "PYTHONPATH": ""},
    )  # fmt: skip
    assert not ran.returncode, ran.stderr
    return ran.stdout


def answers(site: Path, told: list, questions: list) -> list:
    """Return the answers of the kernel of a page to questions. told: what the page knows about its cells."""
    lines = run(site, KERNEL, "\n".join(map(json.dumps, [told, *questions])) + "\n")
    return [json.loads(line) for line in lines.splitlines()]
