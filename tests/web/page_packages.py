"""The packages that a page with kernels has, in a folder: for a process of CPython that lacks torch and Triton."""

from pathlib import Path

import cloudpickle
import numpy as np
import traitlets

from web.live import kernel_files
from web.live.parts import ROOT


def write(place: Path) -> Path:
    """Return a folder with the stand-ins, Triton's own files, what is in Python alone, NumPy, and the course.

    Start Python with -S, so that it has no other packages. The folder is called site-packages, since checks tell a
    learner's code from that of packages by this name.
    """
    folder = place / "site-packages"
    for name, content in kernel_files.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for package in (np, traitlets, cloudpickle):
        of_it = Path(package.__file__).parent
        for found in (of_it, of_it.with_name(f"{of_it.name}.libs")):  # numpy.libs: what NumPy is linked with
            if found.exists():
                (folder / found.name).symlink_to(found)
    for name in ("flashlib", "web"):
        (folder / name).symlink_to(ROOT / name)
    return folder
