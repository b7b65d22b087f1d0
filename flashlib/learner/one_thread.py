"""Run a program with NumPy on one thread: NumPy asks how many threads to use only when it is loaded."""

import os
import sys

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")


def run(program: str) -> str:
    """Return what a Python program prints in a process of its own; raise RuntimeError with what went wrong."""
    import subprocess  # only here: a web page, which imports this module, has no processes

    run = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **ONE_THREAD}, capture_output=True, text=True
    )
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return run.stdout
