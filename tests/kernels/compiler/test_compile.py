"""The compiler may refuse what the interpreter accepts: every kernel is compiled for GPUs, present or not."""

import itertools
import json
import os
import subprocess
import sys

import pytest

from flashlib.kernels.compiler import compiled, registry
from flashlib.kernels.launch.inputs import HEAD_DIMS

CAPABILITIES = (90, 80)
PASSES = ("backward_dkv", "backward_dq", "backward_fused")
HOPPER = {name for name in registry.kernels() if name.startswith("hopper_")}  # see test_hopper_compiled, _ladder
RUNGS = sorted(set(registry.kernels()) - {"forward", *PASSES, "softmax", "merge"} - HOPPER)

# Bytes of a thread, for the default tiles in 16 bits under a causal mask. The others compiled below spill none.
SPILLED = {
    (90, "backward_dkv", 256): 168,
    (90, "backward_dq", 256): 52,
    (90, "backward_fused", 128): 236,
    (90, "backward_fused", 256): 176,
}


def requests():
    """Yield the arguments of `compiled.report`; descriptors: None if the kernel chooses."""
    for capability in CAPABILITIES:
        yield dict(kernel="softmax", capability=capability, dtype="float32", d=1000)
        for dtype, d in (("bfloat16", 64), ("float32", 80)):
            yield dict(kernel="merge", capability=capability, dtype=dtype, d=d)
        for rung in RUNGS:
            yield dict(kernel=rung, capability=capability, dtype="bfloat16", d=64, causal=True)
    for d in (*HEAD_DIMS, 256):
        yield from _forward(90, "bfloat16", d, True, *((None, False) if d in (64, 128) else (None,)))
        yield from _forward(80, "bfloat16", d, True, None)
    for d in (64, 128):
        yield from _forward(90, "bfloat16", d, False, None, False)
        yield from _forward(90, "float16", d, True, None)
        yield from _forward(75, "float16", d, True, None)  # Triton does not use the tensor cores of this GPU
    for capability in CAPABILITIES:  # allowed on all of them, so they must compile for all
        yield from _forward(capability, "float32", 16, True, True)
    yield from _forward(80, "bfloat16", 16, True, True)
    yield from _forward(80, "float16", 64, False, None)
    for d in (64, 256):
        yield from _forward(90, "float32", d, True, None)
    yield from _forward(80, "float32", 64, True, None)
    for kernel in PASSES:
        for capability, d in (*itertools.product(CAPABILITIES, (64, 128)), (90, 256)):
            yield dict(kernel=kernel, capability=capability, dtype="bfloat16", d=d, causal=True)
        yield dict(kernel=kernel, capability=75, dtype="float16", d=64, causal=True)
        yield dict(kernel=kernel, capability=90, dtype="float32", d=64, causal=True)
        for d in (64, 128):
            yield dict(kernel=kernel, capability=90, dtype="bfloat16", d=d, causal=False)


def _forward(capability, dtype, d, causal, *ways):
    asked = dict(kernel="forward", capability=capability, dtype=dtype, d=d, causal=causal)
    return [asked | ({} if descriptors is None else {"descriptors": descriptors}) for descriptors in ways]


REQUESTS = list(requests())
FEW = {  # bytes, by capability and case
    (90, "fp8 in pages of 256"): 64,  # tiles of 128 keys spill them, and are faster than tiles of 64
    (90, "slopes of each"): 16,  # in one pass of three, with tiles that are the fastest without slopes
    (90, "all at once"): 8,
    (80, "bits, d = 128"): 20,  # tiles chosen on Hopper, where they spill none
}


def words(asked):
    return " ".join(f"{k}={v}" for k, v in asked.items() if k != "kernel") if isinstance(asked, dict) else asked


@pytest.mark.compiles(each="kernel")
@pytest.mark.parametrize("kernel, asked", [(asked["kernel"], asked) for asked in REQUESTS], ids=words)
def test_a_kernel_compiles_fits_and_multiplies_as_it_should(kernel, asked):
    listed = asked["d"] == 64 and asked["dtype"] == "bfloat16"  # in test_compiled, and compiled once for both
    r = compiled.report(**asked, sass=listed)
    half, hopper, a_pass = r.dtype != "float32", r.capability == 90, r.kernel in PASSES
    assert r.fits and r.registers > 0 and r.ttgir and r.ptx
    assert [bool(r.loop(kind)) for kind in ("ttgir", "ptx")] == [kernel != "merge"] * 2
    if kernel == "merge":  # it reads each number once, and computes the weights of a row
        assert r.spilled == 0 and r.counts("ptx")["ex2"] and not any(r.counts("ptx", loop=True).values())
    if a_pass and half and r.causal and r.capability != 75:
        assert r.spilled <= SPILLED.get((r.capability, r.kernel, r.d), 0)
    if r.kernel == "forward" and half and (hopper or not r.descriptors):
        assert r.spilled == 0
    if r.kernel == "forward" or a_pass:
        assert bool(r.counts("ptx")["wgmma"]) is (hopper and half)
        assert half or "tf32" not in r.ptx, "fp32 products are IEEE"
    if (r.kernel == "forward" or a_pass) and hopper and half:
        # If ptxas does not understand a loop, it waits for each product before the next, and says so.
        assert not any("serialized" in note for note in r.notes)


def test_every_kernel_is_compiled_for_both_generations():
    asked = {(request["kernel"], request["capability"]) for request in REQUESTS}
    assert asked >= set(itertools.product(set(registry.kernels()) - HOPPER, CAPABILITIES))
    assert {"r3_flash", "r4_exp2", "r5_causal"} <= set(RUNGS)
    sizes = {(r["capability"], r["kernel"], r["d"]) for r in REQUESTS if r.get("causal")}
    assert sizes > SPILLED.keys()


@pytest.mark.process
@pytest.mark.parametrize("module", ["compiled_variants", "compiled_decode", "compiled_sequences"])
def test_masks_and_caches_compile_without_spills(module):
    others = (80, "gfx942") if module != "compiled_sequences" else ()
    for capability in (90, *others):
        command = [sys.executable, "-m", f"tests.kernels.compiler.{module}", str(capability)]
        environment = os.environ | {"TRITON_INTERPRET": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        spilled = {(capability, made["case"]): made["spilled"] for made in found if made["spilled"]}
        assert found and all(n <= FEW.get(case, 0) for case, n in spilled.items()), spilled
        assert [made for made in found if made["notes"] or not made["fits"]] == []
        assert [made for made in found if made.get("in_flight", 1) == 0] == []  # keys are loaded ahead
