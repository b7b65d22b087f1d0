"""Verify, time, record. Knows no algorithm: what is compared is decided in `__main__`."""

import datetime
import json
import platform
from pathlib import Path

import torch


def verify(name, given, exact, plain):
    """Raise AssertionError unless given's largest error is at most twice that of a plain implementation.

    given, plain: tensors of one dtype; exact: the same in fp64. NaN never passes.
    """
    error, bound = ((X.double() - exact).abs().max().item() for X in (given, plain))
    if not error <= 2 * bound:
        raise AssertionError(f"{name} is wrong: error {error:.3g}, at most {2 * bound:.3g} accepted")


def median_ms(run, *, rep_ms=200) -> float:
    """Return the median time of run() on the GPU, in milliseconds: warmed up, events, L2 cleared in between."""
    import triton  # not before flashlib.kernels, which chooses between compiler and interpreter

    return triton.testing.do_bench(run, warmup=50, rep=rep_ms, return_mode="median")


def environment() -> dict:
    """Return what every recorded number stands on: device, versions and date."""
    import triton

    return {
        "gpu": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": datetime.date.today().isoformat(),
    }


def write(path, record):
    """Write a record as JSON, one row a line, so that a new run is a readable diff."""
    head = {key: value for key, value in record.items() if key != "rows"}
    rows = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    text = json.dumps(head, indent=1).rstrip("}\n") + ',\n "rows": [\n' + rows + "\n ]\n}\n"
    json.loads(text)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
