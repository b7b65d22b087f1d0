"""The portable kernels compile for AMD GPUs without changes. None was ever run there."""

import json
import os
import subprocess
import sys

import pytest

from flashlib.kernels.compiler import compiled, listings, registry
from flashlib.kernels.compiler.makers import AMD

GPUS = {"gfx942": "MI300X", "gfx950": "MI355X"}
PASSES = ("forward", "backward_dkv", "backward_dq", "backward_fused")
OTHERS = sorted(name for name in registry.kernels() if not name.startswith("hopper_") and name not in PASSES)


def requests():
    """Yield the arguments of `compiled.report`."""
    for capability in GPUS:
        for kernel in PASSES:
            for dtype in ("bfloat16", "float16"):
                for d in (64, 128, 256):
                    yield dict(kernel=kernel, d=d, dtype=dtype, causal=True, capability=capability)
            yield dict(kernel=kernel, d=80, dtype="float32", capability=capability)
    for kernel in OTHERS:
        yield dict(kernel=kernel, d=64, capability="gfx942")


def words(asked):
    return " ".join(map(str, asked.values()))


@pytest.mark.compiles
@pytest.mark.parametrize("asked", list(requests()), ids=words)
def test_a_kernel_compiles_fits_and_spills_nothing(asked):
    r = compiled.report(**asked)
    assert (r.maker, r.ptx, r.sass, r.notes) == (AMD, "", "", ())
    assert r.fits and r.programs > 0 and r.spilled == 0 == r.counts("amdgcn")["spill"]
    assert 0 <= r.agprs <= r.registers <= AMD.max_registers and r.registers > 0
    assert len(r.fingerprint) == 12 and r.amdgcn.rstrip().endswith("s_endpgm")
    assert not r.descriptors, "there is no TMA"
    if r.kernel in PASSES:
        products, counts = r.counts("amdgcn", loop=True)["MFMA"], r.counts("amdgcn")
        assert 0 < products <= counts["MFMA"]
        # Each thread computes its part of P once per tile; a row's rescaling comes on top.
        assert r.counts("amdgcn", loop=True)["exp"] >= r.B_r * r.B_c // (AMD.lanes * r.num_warps)
        assert "xf32" not in r.amdgcn, "fp32 products are IEEE"
        assert bool(counts["atomic add"]) is (r.kernel == "backward_fused")


@pytest.mark.process
@pytest.mark.parametrize("capability", GPUS)
def test_packs_and_writers_of_caches_compile_without_spills(capability):
    command = [sys.executable, "-m", "tests.kernels.compiler.compiled_rest", capability]
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 4 and not any(made["spilled"] or not made["fits"] for made in found), found


@pytest.mark.compiles
def test_with_twice_the_wavefronts_registers_spill():
    """Two wavefronts of a program on one SIMD have half of its registers each; so tiles use 4, not 8."""
    asked = dict(kernel="backward_dkv", d=256, capability="gfx942")
    four, eight = (compiled.report(**asked, num_warps=n) for n in (4, 8))
    assert compiled.report(**asked) == four and four.spilled == 0 < four.agprs
    assert eight.registers == 256 and eight.spilled > 0 and eight.counts("amdgcn")["spill"] > 0


@pytest.mark.parametrize("kernel", [name for name in registry.kernels() if name.startswith("hopper_")])
def test_kernels_for_hopper_are_refused(kernel):
    with pytest.raises(ValueError, match=f"'gfx942', and {kernel} is for Hopper.*pass 90"):
        compiled.report(kernel=kernel, d=64, capability="gfx942")


@pytest.mark.parametrize("kind", AMD.kinds)
def test_listings_have_no_locations_and_no_comments(kind):
    text = listings.readable(kind, SAMPLE[kind])
    assert text.splitlines() == LINES[kind]


SAMPLE = {
    "ttgir": "#loc = loc(unknown)\nmodule { %0 = arith.constant 0 loc(#loc1)\n}",
    "amdgcn": """\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
_forward:                               ; @_forward
.Lfunc_begin0:
\t.loc\t1 183 0 prologue_end            ; forward.py:183:0
; %bb.1:
.LBB0_2:                                ; %.lr.ph
\tv_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]
\ts_cbranch_scc1 .LBB0_2
.Ltmp1:
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\tnothing of this
""",
}
LINES = {
    "ttgir": ["module { %0 = arith.constant 0", "}"],
    "amdgcn": [
        ".LBB0_2:",
        "    v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]",
        "    s_cbranch_scc1 .LBB0_2",
        "    s_endpgm",
    ],
}


def test_the_loop_is_found_by_its_label():
    text = listings.readable("amdgcn", SAMPLE["amdgcn"])
    assert listings.inner_loop("amdgcn", text).splitlines() == LINES["amdgcn"][:3]
    assert listings.lines("amdgcn", text, "MFMA") == LINES["amdgcn"][1].strip()
