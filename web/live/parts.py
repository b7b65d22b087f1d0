"""The files that Python needs on a page: those of all chapters, those of kernels, and the data that cells read.

Pyodide's core and its wheel of NumPy are expected in one folder: the one in the environment variable PYODIDE, for
example an unpacked release of Pyodide, or else .venv/pyodide, which `python -m tools.pyodide` fills. The version
is in package.json, and the wheel's name and hash are in Pyodide's own list of packages.
"""

import gzip
import hashlib
import importlib.metadata
import json
import os
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

from web.live import kernel_files, lacking

ROOT = Path(__file__).resolve().parents[2]
CORE = "pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"
LOCK = "pyodide-lock.json"
SLOWER = 3  # an answer may take this many times as long on a page as elsewhere before it is stopped
COURSE = "course.zip"
KERNELS = "kernels.zip"  # only for pages with cells that need it
PACKAGES = "traitlets", "cloudpickle"  # pure Python, taken from the environment that builds
WORD = re.compile(r"\w+")
TEXTS = ".txt", ".json"  # files that modules read
EMPTY = ".js", ".css"  # files of widgets that their classes read; the page has them already
THEN = 1980, 1, 1, 0, 0, 0  # so that the same files make the same archive


class Missing(Exception):
    """Pyodide is not where it is expected, or has a different version."""


class Part(NamedTuple):
    """A file that Python on a page needs. size: in bytes; packed: in bytes as sent, since hosts compress text."""

    name: str
    size: int
    packed: int


def folder():
    """Return the folder where Pyodide is expected."""
    return Path(os.environ.get("PYODIDE") or ROOT / ".venv" / "pyodide")


def version():
    """Return the version of Pyodide that the course uses."""
    return json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]["pyodide"]


def numpy_wheel(place):
    """Return the Path of NumPy's wheel in a folder with Pyodide."""
    return place / _packages(place)["numpy"]["file_name"]


def check(place):
    """Raise Missing, which says what to do, unless a folder has all of the right Pyodide."""
    names = [*CORE, LOCK]
    lost = [name for name in names if not (place / name).is_file()]
    if not lost:
        found = json.loads((place / LOCK).read_text(encoding="utf-8"))["info"]["version"]
        if found != version():
            raise Missing(f"{place} has Pyodide {found}, and package.json names {version()}")
        wheel = numpy_wheel(place)
        lost = [] if wheel.is_file() else [wheel.name]
        found = "" if lost else hashlib.sha256(wheel.read_bytes()).hexdigest()
        if not lost and found != _packages(place)["numpy"]["sha256"]:
            raise Missing(f"{wheel} has the hash {found}, not the one in {LOCK}")
    if lost:
        raise Missing(f"{place} has no {', '.join(lost)}: run python -m tools.pyodide")


def write(place):
    """Write the parts of all chapters to a folder; return the Part of each, in the order they are needed."""
    source = folder()
    check(source)
    place.mkdir(parents=True)
    wheel = numpy_wheel(source)
    for name in (*CORE, wheel.name):
        (place / name).write_bytes((source / name).read_bytes())
    (place / LOCK).write_text(json.dumps(_lock(source)), encoding="utf-8")
    write_course(place / COURSE)
    return [part(place, name) for name in (*CORE, LOCK, wheel.name, COURSE)]


def write_kernels(place):
    """Write the part with kernels: Triton's Python, the stand-ins, and flashlib's modules that need them."""
    _write_archive(place / KERNELS, kernel_files.files() | _modules(_only_with_kernels))
    return part(place, KERNELS)


def no_kernels():
    """Return why kernels cannot run on the site's pages, in words, or "" if they can."""
    try:
        kernel_files.files()
    except kernel_files.NoTriton as reason:
        return str(reason)
    return ""


def write_data(place, running):
    """Write the files that cells read, if they are not there yet; return the Part of each."""
    source = "\n".join(cell.source for cell in running)
    words = set(WORD.findall(source))  # of a record a cell may say the name alone
    files = sorted((ROOT / "notebooks" / "data").iterdir())
    names = [f"data/{x.name}" for x in files if x.name in source or (x.suffix == ".json" and x.stem in words)]
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes((ROOT / "notebooks" / name).read_bytes())
    return [part(place, name) for name in names]


def _packages(place):
    return json.loads((place / LOCK).read_text(encoding="utf-8"))["packages"]


def _lock(place):
    """Return the list of Pyodide's packages, cut down to NumPy."""
    found = json.loads((place / LOCK).read_text(encoding="utf-8"))
    return found | {"packages": {"numpy": found["packages"]["numpy"]}}


def part(place, name):
    """Return the Part that a file in a folder is."""
    content = (place / name).read_bytes()
    return Part(name, len(content), len(gzip.compress(content)))


def write_course(path):
    """Write the archive of the other Python code: flashlib, what runs on the page, and what both need."""
    _write_archive(path, _course())


def _write_archive(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in sorted(files.items()):
            info = zipfile.ZipInfo(name, THEN)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=9)


def _course():
    """Return {name in the archive: content}."""
    found = _modules(lambda module: not lacking.of_flashlib(module))
    for path in (ROOT / "flashlib").rglob("*"):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in EMPTY:
            found[name] = b""
        elif path.suffix in TEXTS or _is_read(path):
            found[name] = path.read_bytes()
    for name in ("web/__init__.py", "web/live/__init__.py", *_inside()):
        found[name] = (ROOT / name).read_bytes()
    for package in PACKAGES:
        for file in importlib.metadata.files(package) or ():
            if file.suffix == ".py" or "license" in file.name.lower():
                found[file.as_posix()] = file.locate().read_bytes()
    return found


def _modules(wanted):
    """Return {name in the archive: content} of the modules of flashlib that are wanted."""
    paths = [path for path in (ROOT / "flashlib").rglob("*.py") if not _is_read(path) and wanted(module_of(path))]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}


def _only_with_kernels(module):
    return lacking.of_flashlib(module) and not lacking.of_flashlib(module, kernels=True)


def _is_read(path):
    """Return whether a module has solutions: these are read as text, and import what they need when they run."""
    return path.suffix == ".py" and path.name.startswith("solutions") and "chapters" in path.parts


def module_of(path):
    """Return the name of a module of flashlib."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _inside():
    return [path.relative_to(ROOT).as_posix() for path in (ROOT / "web" / "live" / "inside").glob("*.py")]
