"""What the interpreter accepts the compiler may refuse: every kernel compiled for two GPUs that are not here."""

import itertools

import pytest

from flashlib.kernels import HEAD_DIMS, compiled

CAPABILITIES = (80, 90)
DTYPES = ("float16", "bfloat16", "float32")
BOTH = (False, True)
PASSES = ("backward_dkv", "backward_dq", "backward_fused")
RUNGS = sorted(set(compiled.kernels()) - {"forward", *PASSES, "softmax"})

# Bytes of a thread, of the default tiles in 16 bit under a causal mask. The others compiled below spill none.
SPILLED = {
    (90, "backward_dkv", 256): 168,
    (90, "backward_dq", 256): 52,
    (90, "backward_fused", 128): 236,
    (90, "backward_fused", 256): 176,
}


@pytest.fixture(scope="module")
def reports():
    asked = [dict(kernel="softmax", d=1000, dtype="float32")]
    asked += [dict(kernel=rung, d=128, dtype="float16", causal=True) for rung in RUNGS]
    asked = [request | {"capability": capability} for request in asked for capability in CAPABILITIES]
    sizes = [(d, causal) for d in (*HEAD_DIMS, 256) for causal in BOTH if causal or d in (64, 128)]
    for capability, dtype, (d, causal) in itertools.product(CAPABILITIES, DTYPES, sizes):
        if dtype == "bfloat16" and (d not in (64, 128) or not causal):
            continue  # differs from float16 in little more than its name
        if dtype == "float32" and (d not in (16, 64, 256) or not causal):
            continue  # its tiles are small at every d
        by_default = capability >= 90 and dtype != "float32"
        also = d == 64 and causal  # allowed everywhere, so it must compile everywhere
        for descriptors in BOTH if by_default or also else (False,):
            asked.append(dict(d=d, dtype=dtype, causal=causal, descriptors=descriptors, capability=capability))
    return [compiled.report(**request, sass=False) for request in asked]


@pytest.fixture(scope="module")
def passes():
    sizes = [*itertools.product(CAPABILITIES, (64, 128)), (80, 16), (90, 256)]
    asked = [dict(dtype="float16", d=d, capability=capability) for capability, d in sizes]
    asked.append(dict(dtype="float32", d=64, capability=90))
    asked = [r | {"causal": True} for r in asked] + [dict(dtype="float16", d=d, capability=90) for d in (64, 128)]
    return [compiled.report(kernel=name, **r, sass=False) for r in asked for name in PASSES]


def test_every_kernel_compiles_and_fits(reports):
    names = {"forward", "softmax", *RUNGS}
    assert {"r3_flash", "r4_exp2", "r5_causal"} <= names
    assert {(r.kernel, r.capability) for r in reports} == set(itertools.product(names, CAPABILITIES))
    assert [r for r in reports if not r.fits] == []


def test_nothing_spills_by_default_in_16_bit(reports):
    forward = [r for r in reports if r.kernel == "forward" and r.dtype != "float32"]
    checked = [r for r in forward if r.capability == 90 or not r.descriptors]
    assert {(r.d, r.dtype) for r in checked} >= {(d, t) for d in (64, 128) for t in ("float16", "bfloat16")}
    assert [r for r in checked if r.spilled] == []


def test_hopper_multiplies_with_wgmma(reports):
    checked = [r for r in reports if r.kernel == "forward" and r.dtype != "float32" and r.capability == 90]
    assert checked and all(r.counts("ptx")["wgmma"] for r in checked)


def test_fp32_products_are_ieee(reports):
    checked = [r for r in reports if r.kernel == "forward" and r.dtype == "float32"]
    assert checked and not any("tf32" in r.ptx for r in checked)


def test_every_backward_pass_compiles_and_fits(passes):
    assert {(r.kernel, r.capability) for r in passes} == set(itertools.product(PASSES, CAPABILITIES))
    assert [r for r in passes if not r.fits] == []


def test_backward_passes_spill_no_more_than_is_known(passes):
    checked = {(r.capability, r.kernel, r.d): r.spilled for r in passes if r.dtype == "float16" and r.causal}
    assert checked.keys() > SPILLED.keys()
    assert {key: spilled for key, spilled in checked.items() if spilled > SPILLED.get(key, 0)} == {}


def test_products_of_tiles_run_while_others_do_on_hopper(reports, passes):
    """What ptxas does not understand it serializes: a product is awaited before the next, and it says so."""
    of_use = [r for r in (*reports, *passes) if r.kernel in ("forward", *PASSES)]
    checked = [r for r in of_use if r.capability == 90 and r.dtype != "float32"]
    assert {r.kernel for r in checked} == {"forward", *PASSES}
    assert [(r.kernel, r.d, r.causal) for r in checked if any("serialized" in note for note in r.notes)] == []


def test_backward_passes_multiply_with_wgmma_on_hopper_and_in_fp32_with_ieee_products(passes):
    for r in passes:
        assert bool(r.counts("ptx")["wgmma"]) is (r.capability == 90 and r.dtype == "float16")
        assert "tf32" not in r.ptx


@pytest.mark.parametrize("kernel", PASSES)
def test_backward_passes_fit_a_gpu_whose_tensor_cores_triton_does_not_use(kernel):
    assert compiled.report(kernel=kernel, d=256, dtype="float16", causal=True, capability=75, sass=False).fits


@pytest.mark.parametrize("d", [64, 128, 256])
def test_the_default_fits_a_gpu_whose_tensor_cores_triton_does_not_use(d):
    report = compiled.report(d=d, dtype="float16", causal=True, capability=75, sass=False)
    assert report.fits and report.spilled == 0
