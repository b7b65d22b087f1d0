"""The files with which kernels run on a page: Triton's own Python, and stand-ins for what is not Python.

Triton's files are those of the installed package, unchanged: the modules that its interpreter imports, with its
licence. `stand_ins/` has the rest: `libtriton` for the part in C++, `page_memory` for memory with addresses, and
`torch`. On the page they need no installation; TRITON_INTERPRET=1 must be set before Triton is imported.
"""

import importlib.metadata
from pathlib import Path

STAND_INS = Path(__file__).parent / "stand_ins"
PLACES = {"libtriton": "triton/_C/libtriton"}  # folder of a stand-in: where it is on the page, if not at the top
LICENCE = "triton/LICENSE"
MODULES = {  # folder of Triton: the modules in it that are imported
    "": "__init__ _utils errors knobs testing",
    "backends": "__init__ compiler driver",
    "compiler": "__init__ compiler errors",
    "language": "__init__ core math random semantic standard target_info",
    "language/extra": "__init__",
    "runtime": "__init__ _allocation _async_compile autotuner cache driver errors interpreter jit",
    "tools": "__init__ disasm tensor_descriptor",
}


class NoTriton(Exception):
    """Triton is not installed where the site is made."""


def files() -> dict[str, bytes]:
    """Return {name in the archive: content}; raise NoTriton if Triton is not installed."""
    return _of_triton() | _stand_ins()


def _of_triton():
    try:
        package = importlib.metadata.distribution("triton")
    except importlib.metadata.PackageNotFoundError:
        raise NoTriton("Triton is not installed here (there are packages for Linux only)") from None
    names = [Path("triton", folder, name + ".py") for folder, of_it in MODULES.items() for name in of_it.split()]
    found = {name.as_posix(): Path(package.locate_file(name)).read_bytes() for name in names}
    licences = [file for file in package.files or () if file.name == "LICENSE" and "licenses" in file.parts]
    return found | {LICENCE: Path(package.locate_file(licences[0])).read_bytes()}


def _stand_ins():
    found = {}
    for path in sorted(STAND_INS.rglob("*.py")):
        first, *rest = path.relative_to(STAND_INS).parts
        found["/".join([PLACES.get(first, first), *rest])] = path.read_bytes()
    return found
