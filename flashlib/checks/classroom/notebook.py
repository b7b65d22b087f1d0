"""Execute a notebook in a fresh kernel that can be terminated if it hangs."""

import os
import subprocess
import sys
from pathlib import Path

from flashlib.environment import for_notebooks


def execute(text: str, folder: str | Path, *, cell_timeout: int, timeout: float) -> str:
    """Return the text of the notebook `text`, executed from top to bottom with `folder` as working directory.

    nbconvert runs in a separate process. Errors in cells become outputs. cell_timeout, timeout: seconds for a cell
    and for the notebook. Raises TimeoutError, or RuntimeError with nbconvert's message, if it does not finish.
    """
    command = [
        *(sys.executable, "-m", "nbconvert", "--stdin", "--stdout", "--to=notebook", "--execute"),
        "--allow-errors",
        f"--ExecutePreprocessor.timeout={cell_timeout}",
        "--ExecutePreprocessor.kernel_name=python3",
        "--ExecutePreprocessor.record_timing=False",
    ]
    try:
        done = subprocess.run(
            command,
            input=text,
            cwd=folder,
            timeout=timeout,
            capture_output=True,
            encoding="utf-8",
            env=for_notebooks(dict(os.environ)),
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"did not end within {timeout} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        start = max((n for n, line in enumerate(lines) if line.startswith("nbclient.exceptions.")), default=-1)
        raise RuntimeError("\n".join(lines[start:]))  # without nbconvert's traceback
    return done.stdout
