"""What the interpreter accepts the compiler may refuse: every kernel compiled for two GPUs that are not here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARED_MEMORY = {
    80: 163 * 1024,
    90: 227 * 1024,
}  # bytes; CUDA C++ Programming Guide, compute capabilities


@pytest.fixture(scope="module")
def reports():
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compile_only"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_every_kernel_compiles_and_fits(reports):
    kernels = {(r["kernel"], r["capability"]) for r in reports}
    names = ["softmax", "_flash", "_flash_exp2", "_flash_causal", "forward"]
    assert kernels == {(name, capability) for name in names for capability in (80, 90)}
    for report in reports:
        assert report["shared"] <= SHARED_MEMORY[report["capability"]], report


def test_nothing_spills_by_default_in_16_bit(reports):
    forward = [r for r in reports if r["kernel"] == "forward" and r["dtype"] != "float32"]
    checked = [r for r in forward if r["capability"] == 90 or not r["descriptors"]]
    assert {(r["d"], r["dtype"]) for r in checked} >= {(d, t) for d in (64, 128) for t in ("float16", "bfloat16")}
    assert not [r for r in checked if r["spilled"]]


def test_hopper_multiplies_with_wgmma(reports):
    checked = [
        r for r in reports if r["kernel"] == "forward" and r["dtype"] != "float32" and r["capability"] == 90
    ]
    assert checked and all(r["wgmma"] for r in checked)


def test_fp32_products_are_ieee(reports):
    checked = [r for r in reports if r["kernel"] == "forward" and r["dtype"] == "float32"]
    assert checked and not any(r["tf32"] for r in checked)
