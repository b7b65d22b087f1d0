"""The reports of `compiled` agree with ptxas, and depend on a kernel's tile as they must."""

import inspect
import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise, product
from pathlib import Path

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import client, compiled, listings, registry
from flashlib.kernels.compiler.makers import NVIDIA
from flashlib.kernels.launch import tile_sizes

PASSES = {"backward_dkv": 4, "backward_dq": 3, "backward_fused": 5}  # products of tiles in each
TILE = {"B_r": 64, "B_c": 64, "num_warps": 4, "num_stages": 2, "d": 64, "dtype": "bfloat16"}
ROOT = Path(__file__).parents[3]


def ptxas(report):
    """The output of ptxas for the PTX of a report: (registers, spilled)."""
    from triton.backends.nvidia.compiler import get_ptxas  # not before flashlib.kernels

    target = re.search(r"\.target (\w+)", report.ptx)[1]
    options = (
        ["--regAllocOptLevel=2"] if "regAllocOptLevel" in inspect.getsource(inspect.getmodule(get_ptxas)) else []
    )
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(report.ptx)
        file.flush()
        command = [get_ptxas(report.capability).path, "-v", *options, f"--gpu-name={target}", file.name]
        told = subprocess.run([*command, "-o", os.devnull], capture_output=True, text=True, check=True).stderr
    return int(re.search(r"Used (\d+) registers", told)[1]), int(re.search(r"(\d+) bytes spill stores", told)[1])


@pytest.mark.compiles
@pytest.mark.parametrize(
    "request_",
    [
        TILE | {"capability": 90},
        TILE | {"capability": 80},
        {"kernel": "r5_causal", "d": 64, "causal": True},
    ],
    ids=str,
)
def test_registers_and_spills_are_those_of_ptxas(request_):
    report = compiled.report(**request_)
    assert (report.registers, report.spilled) == ptxas(report)
    assert report.registers <= NVIDIA.max_registers


def test_the_report_says_what_was_compiled():
    report = compiled.report(**TILE, causal=True, descriptors=False)
    assert {name: getattr(report, name) for name in TILE} == TILE
    assert (report.causal, report.descriptors, report.capability) == (True, False, 90)
    chosen = compiled.report(d=64, causal=True, sass=False)
    assert None not in (chosen.B_r, chosen.B_c, chosen.num_warps, chosen.num_stages, chosen.descriptors)
    named = {name: getattr(chosen, name) for name in TILE}
    assert compiled.report(causal=True, **named, descriptors=chosen.descriptors, sass=False) == chosen


@pytest.mark.compiles
@pytest.mark.parametrize("kernel", PASSES)
def test_a_report_of_the_backward_is_about_the_launch_of_this_pass(kernel):
    asked = {"B_r": 32, "B_c": 64, "num_warps": 8, "num_stages": 1, "descriptors": False}
    report = compiled.report(kernel=kernel, d=64, **asked, sass=False)
    assert {name: getattr(report, name) for name in asked} == asked
    assert registry.options_of(kernel) == {"causal", *asked}
    table = tile_sizes.HOPPER_BACKWARD[128]._asdict()[kernel.removeprefix("backward_")]
    chosen = compiled.report(kernel=kernel, d=128, causal=True, sass=False)
    assert (chosen.B_r, chosen.B_c, chosen.num_warps, chosen.num_stages) == table
    assert chosen.descriptors is True


@pytest.mark.parametrize("capability, by_default", [(80, False), (90, True)])
def test_the_requested_gpu_decides_whether_descriptors_are_used(capability, by_default):
    report = compiled.report(d=64, causal=True, capability=capability, sass=False)
    assert report.descriptors is by_default
    assert bool(report.counts("ptx")["TMA"]) is by_default


@pytest.mark.compiles
def test_a_larger_tile_never_takes_less_shared_memory():
    for name, sizes in {"B_r": (64, 128), "B_c": (32, 64), "d": (32, 64)}.items():
        small, large = (compiled.report(**TILE | {name: size}, sass=False).shared for size in sizes)
        assert small < large, name


@pytest.mark.compiles
def test_each_additional_stage_takes_a_tile_of_K_and_one_of_V():
    asked = [TILE | {"num_stages": stages, "descriptors": False} for stages in (2, 3, 4)]
    shared = [compiled.report(**options, sass=False).shared for options in asked]
    assert [large - small for small, large in pairwise(shared)] == [2 * 64 * 64 * 2] * 2


@pytest.mark.compiles
def test_128_by_128_spills_on_4_warps_and_less_on_8():
    asked = {"kernel": "r8_descriptors", "d": 128, "capability": 90, "B_r": 128, "B_c": 128}  # as in Speed
    four, eight = (compiled.report(**asked, num_warps=warps, num_stages=3) for warps in (4, 8))
    assert four.spilled > eight.spilled
    assert four.registers == NVIDIA.max_registers
    assert four.counts("sass", loop=True)["spill"] > 0
    assert any("wgmma" in note for note in four.notes)


@pytest.mark.compiles
def test_the_compiler_adds_two_groups_of_warps_only_where_it_is_asked_for_roles():
    asked = {"d": 64, "capability": 90, "B_r": 128, "B_c": 64, "num_warps": 4, "num_stages": 2, "sass": False}
    for causal in (False, True):
        roles = compiled.report(kernel="warp_specialised", causal=causal, **asked)
        plain = compiled.report(kernel="without_warp_specialize", causal=causal, **asked)
        assert (roles.num_warps, plain.num_warps) == (12, 4)
        assert roles.counts("ptx")["setmaxnreg"] and not plain.counts("ptx")["setmaxnreg"]


def test_each_generation_has_its_own_product():
    hopper, ampere = (compiled.report(**TILE, capability=capability) for capability in (90, 80))
    for kind in ("ptx", "sass"):
        assert hopper.counts(kind)["wgmma"] and not hopper.counts(kind)["mma.sync"]
        assert ampere.counts(kind)["mma.sync"] and not ampere.counts(kind)["wgmma"]
    assert ampere.counts("ptx")["cp.async"] and not ampere.counts("ptx")["TMA"]
    assert hopper.counts("ptx")["TMA"] and not hopper.counts("ptx")["cp.async"]


@pytest.mark.compiles
def test_ptxas_makes_one_instruction_of_each_product():
    for capability in (80, 90):
        report = compiled.report(**TILE, capability=capability)
        for name in ("wgmma", "mma.sync", "ldmatrix", "ex2"):
            assert report.counts("ptx", loop=True)[name] == report.counts("sass", loop=True)[name]


@pytest.mark.parametrize("kind", ["ttgir", "ptx", "sass"])
def test_the_inner_loop_is_the_one_without_a_mask(kind):
    report = compiled.report(**TILE, causal=True, descriptors=False)
    whole, loop = getattr(report, kind), report.loop(kind)
    assert loop and loop in whole
    assert 2 * len(loop.splitlines()) < len(whole.splitlines())
    products, _ = listings.PRODUCTS[kind]
    assert (
        len(re.findall(products, whole)) >= 2 * len(re.findall(products, loop)) > 0
    )  # the masked loop has them, too
    assert whole.index(loop) < len(whole) // 2
    mask = {"ttgir": "cmpi sle", "ptx": "0fFF800000", "sass": "-INF"}[kind]
    assert loop.count(mask) < whole.count(mask)


@pytest.mark.compiles
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("kernel", PASSES)
def test_the_loop_of_a_backward_pass_makes_its_products_and_P_once(kernel, capability, causal):
    report = compiled.report(kernel=kernel, d=64, causal=causal, capability=capability)
    masked = {"ttgir": r"arith\.select .*tensor<\d+x\d+xi1", "ptx": "0fFF800000", "sass": "-INF"}
    for kind, mask in masked.items():
        assert not re.search(mask, report.loop(kind))
        # Without a causal mask only dQ's pass has a masked loop, for the end of K: the N_k here is whole tiles.
        assert bool(re.search(mask, getattr(report, kind))) is (causal or kernel == "backward_dq")
    products, _ = listings.PRODUCTS["ttgir"]
    assert len(re.findall(products, report.loop("ttgir"))) == PASSES[kernel]
    for kind in ("ptx", "sass"):
        assert report.counts(kind, loop=True)["ex2"] == report.B_r * report.B_c // (32 * report.num_warps)


@pytest.mark.compiles
def test_only_the_fused_pass_adds_to_memory():
    """A tile of dQ, 64 x 64: each of 128 threads adds one number at a time, or the copy unit all at once."""
    expected = {(80, "backward_fused"): (0, 64 * 64 // 128), (90, "backward_fused"): (1, 0)}
    for capability, kernel in product((80, 90), PASSES):
        report = compiled.report(kernel=kernel, d=64, capability=capability)
        for kind in ("ptx", "sass"):
            counts = report.counts(kind, loop=True)
            assert (counts["TMA add"], counts["atomic add"]) == expected.get((capability, kernel), (0, 0))


def test_one_thread_does_its_share_of_every_score():
    """In the loop: P = exp2(S - m) and alpha, for one of 128 threads' share of B_r x B_c scores and B_r rows."""
    counts = compiled.report(**TILE).counts("ptx", loop=True)
    assert counts["ex2"] == 64 * 64 // 128 + 2  # a thread has two rows of the tile


@pytest.mark.compiles
@pytest.mark.parametrize("d", [64, 256])
def test_the_default_fits_a_gpu_with_less_shared_memory(d):
    report = compiled.report(d=d, capability=89, sass=False)
    assert report.fits and report.programs >= 1
    assert report.sass == ""


def test_a_program_that_does_not_fit_is_reported():
    report = compiled.report(B_r=128, B_c=128, num_stages=4, num_warps=8, sass=False)
    assert report.shared > GPUS["H100"].block_sram
    assert not report.fits and report.programs == 0


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (
            {"kernel": "r9"},
            r"kernel is 'r9'; accepted are forward, backward_dkv, .*, softmax, merge, r2.*, hopper_forward",
        ),
        ({"dtype": "int8"}, r"dtype is 'int8'; accepted are float16, bfloat16, float32"),
        ({"capability": 91}, r"capability is 91; accepted are 75, 80, 89, 90"),
        ({"B_r": 48}, r"B_r is 48; the kernel takes 16, 32, 64, 128, 256"),
        ({"num_warps": 3}, r"num_warps is 3; the kernel takes 1, 2, 4, 8, 16"),
        ({"num_stages": 0}, r"num_stages is 0"),
        ({"num_stages": 99}, r"num_stages is 99; at most 8"),
        (
            {"kernel": "r3_flash", "descriptors": True},
            r"descriptors is True; r3_flash has no such option: leave it out",
        ),
        ({"kernel": "softmax", "causal": True}, r"causal is True; softmax has no mask: leave it out"),
        ({"d": 0}, r"d is 0"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_before_any_work(wrong, sentence, monkeypatch):
    monkeypatch.setattr(client._compiler, "ask", lambda request: pytest.fail("it was compiled"))
    with pytest.raises(ValueError, match=sentence):
        compiled.report(**wrong)


@pytest.mark.parametrize("wrong", [{"d": "64"}, {"B_r": 64.0}, {"causal": 1}, {"descriptors": 1}], ids=str)
def test_wrong_types_are_refused(wrong):
    with pytest.raises(TypeError):
        compiled.report(**wrong)


def test_an_error_of_the_kernel_is_passed_on_unchanged():
    with pytest.raises(ValueError, match="d is 80; the kernel takes 16, 32, 64, 128: pad Q, K and V"):
        compiled.report(kernel="r3_flash", d=80)


@pytest.mark.compiles
def test_an_error_of_ptxas_is_reported_in_a_sentence(own_compiler):
    with pytest.raises(client.CompileError, match="ptxas.* refused it: Insufficient registers") as told:
        compiled.report(B_r=256, B_c=256, num_warps=16, num_stages=5, causal=True)
    assert "\n" not in str(told.value)
    assert compiled.report(**TILE).registers, "and the next one is answered"


@pytest.mark.process
def test_a_compilation_that_takes_too_long_is_given_up(monkeypatch, own_compiler):
    monkeypatch.setattr(client, "TIME_LIMIT", 0.01)
    with pytest.raises(client.CompileError, match="took longer than 0.01 seconds: choose smaller tiles"):
        compiled.report(d=32, num_stages=5, sass=False)
    monkeypatch.undo()
    assert compiled.report(d=32, num_stages=5, sass=False).registers, "and the next one is answered"


@pytest.mark.compiles
def test_a_dead_compiler_is_reported_with_its_last_words(monkeypatch, own_compiler):
    client._compiler.stop()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(client.CompileError, match="ended without an answer; it last said: nothing"):
        compiled.report(d=32, num_stages=6, sass=False)


def test_an_answer_is_kept(monkeypatch):
    report = compiled.report(**TILE)
    monkeypatch.setattr(client._compiler, "ask", lambda request: pytest.fail("compiled twice"))
    assert compiled.report(**TILE) is report


@pytest.mark.process
def test_without_the_disassembler_the_rest_is_reported(monkeypatch, own_compiler):
    client._compiler.stop()
    monkeypatch.setenv("TRITON_NVDISASM_PATH", "/nowhere")
    report = compiled.report(d=16, num_stages=2)
    client._compiler.stop()
    assert report.registers > 0 and report.ptx


@pytest.mark.process
def test_no_process_is_left_behind(own_compiler):
    code = (
        "from flashlib.kernels.compiler import client, compiled\n"
        "compiled.report(d=16, sass=False)\n"
        "print(client._compiler.process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


@pytest.mark.compiles
def test_only_the_first_pass_over_scores_uses_the_fused_multiply_add():
    """S * scale - m as one instruction is wrong for huge scores; the interpreter has no such instruction."""
    chosen = {"d": 64, "causal": True}
    twice, once = (compiled.report(**chosen, descriptors=descriptors) for descriptors in (None, False))
    rung = compiled.report(kernel="r5_causal", d=64, causal=True)
    assert [report.ttgir.count("scf.for ") for report in (twice, once, rung)] == [4, 2, 2]
    assert twice.counts("sass", loop=True)["fma"] >= twice.B_r * twice.B_c // (32 * twice.num_warps)
    assert once.counts("sass", loop=True)["fma"] <= 4 and rung.counts("sass", loop=True)["fma"] == 0
    assert twice.counts("sass")["fma"] < 3 * twice.counts("sass", loop=True)["fma"], "in two of its four loops"
