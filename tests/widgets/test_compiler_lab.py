"""CompilerLab shows what `compiler.compiled` reports for the same settings, and ends unneeded processes."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.widgets.compiler_lab import CompilerLab, kernel_facts, words
from flashlib.widgets.compiler_lab import compiler_lab as module
from flashlib.widgets.compiler_lab.choices import SETTINGS, SIZES

compiled = pytest.importorskip(
    "flashlib.kernels.compiler.compiled", exc_type=ImportError
)  # no Triton, no compiler

from flashlib.kernels.compiler import client, occupancy, registry  # noqa: E402
from flashlib.widgets.compiler_lab import background  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LONG = {"B_r": 256, "B_c": 256, "dtype": "float32", "num_warps": 4}  # takes a minute, and never finishes here
FAILS = {"d": 16, "B_r": 256, "B_c": 256, "num_warps": 16, "num_stages": 1}  # quick


@pytest.fixture
def lab():
    lab = CompilerLab(d=64)
    yield lab
    lab.close()


def ask(lab, **settings):
    for name, value in settings.items():
        setattr(lab, name, value)
    lab.wait()


def begin(lab, **settings):
    """Request something slow, and return the process that works on it."""
    for name, value in settings.items():
        setattr(lab, name, value)
    assert lab.work["state"] == "compiling"
    deadline = time.monotonic() + 30
    while not ((job := lab._job) and job._wanted._end):  # until the last settings are being compiled
        assert time.monotonic() < deadline, "it was not begun, or has ended"
        time.sleep(0.01)
    return client._compiler.process


def texts(lab):
    return {row["name"]: row["text"] for row in lab.result["takes"]}


def counts(lab):
    return {row["name"]: row["counts"] for row in lab.result["instructions"]}


def test_it_shows_the_report_of_its_settings():
    lab = CompilerLab(d=64, causal=True, B_c=64)
    report = compiled.report(d=64, causal=True, B_c=64)
    assert lab.report is report and lab.work["state"] == "done" and lab.failed == ""
    assert texts(lab)["registers of a thread"] == f"{report.registers} of 255"
    assert texts(lab)["programs on a multiprocessor"] == str(report.programs)
    in_loop, in_all = report.counts("sass", loop=True), report.counts("sass")
    assert {name: row[1::2] for name, row in counts(lab).items()} == {
        name: [in_loop[name], in_all[name]] for name in in_all if in_all[name]
    }
    assert f"{report.shared:,} bytes" in repr(lab)
    assert lab._repr_mimebundle_()[0]["text/plain"] == repr(lab)
    json.dumps(lab.get_state()["result"])


@pytest.mark.process
def test_the_last_of_many_changes_is_shown(lab):
    wanted = {"d": 64, "B_r": 32, "num_warps": 2, "capability": 80, "dtype": "float16"}
    ask(lab, **wanted)
    assert lab.report == compiled.report(**wanted)
    assert lab.result["asked"] == lab.settings and lab.work["asked"] == lab.settings
    assert "mma.sync" in counts(lab) and "wgmma" not in counts(lab)


def test_settings_that_a_kernel_does_not_take_are_not_passed():
    lab = CompilerLab(d=64, descriptors=True, num_warps=8)
    ask(lab, kernel="r5_causal")
    assert "descriptors" not in lab.settings and lab.settings["num_warps"] == 8
    assert lab.report == compiled.report(kernel="r5_causal", d=64, num_warps=8)
    ask(lab, kernel="softmax")
    taken = {name: takes for name, _, takes in lab.offered["kernel"]}
    assert set(lab.settings) == set(taken["softmax"]) == {"kernel", "d", "dtype", "capability"}
    assert lab.report == compiled.report(kernel="softmax", d=64)
    assert all(None not in row for row in counts(lab).values())


def test_only_the_whole_kernel_is_counted_if_it_has_no_loop():
    lab, report = CompilerLab(kernel="merge", d=64), compiled.report(kernel="merge", d=64)
    assert lab.report == report and set(lab.settings) == {"kernel", "d", "dtype", "capability"}
    whole = [report.counts(kind) for kind in ("ptx", "sass")]
    assert counts(lab)["ex2"] == [None, None, *(one["ex2"] for one in whole)] and whole[0]["ex2"] > 0
    assert all(row[:2] == [None, None] for row in counts(lab).values())
    listing = lab.result["listings"]["ptx"]
    assert (listing["loop"], listing["counted"], listing["lines"][0]) == ("", {}, 0) and listing["lines"][1] > 50
    assert "–" in lab.figure().texts


def test_all_kernels_and_gpus_are_offered(lab):
    assert [name for name, *_ in lab.offered["kernel"]] == list(registry.kernels())
    groups = {name: group for name, group, _ in lab.offered["kernel"]}
    assert {name for name, group in groups.items() if group == "Hopper"} == {
        "hopper_forward", "hopper_backward", "hopper_r1_alike", "hopper_r2_producer", "hopper_r3_consumers",
        "hopper_r3_turns", "hopper_r4_overlap", "hopper_r5_registers", "hopper_r6_persistent",
        "hopper_backward_r1_alike", "hopper_backward_r2_producer", "hopper_backward_r3_two_consumers",
        "hopper_backward_r4_half_columns", "hopper_backward_r5_in_order", "hopper_backward_r6_reducer",
    }  # fmt: skip
    assert groups["r8_descriptors"] == "rungs" and groups["backward_dq"] == "in flashlib"
    assert {c for c, *_ in lab.offered["capability"]} == set(occupancy.MULTIPROCESSORS)


@pytest.mark.compiles
def test_the_passes_of_the_backward_are_shown():
    lab = CompilerLab(d=64, kernel="backward_dkv")
    assert f"CompilerLab(backward_dkv, d = 64, bfloat16, for H100 and H200; tile {lab.report.B_r} x" in repr(lab)
    ask(lab, kernel="backward_fused", B_c=32)
    assert lab.report == compiled.report(kernel="backward_fused", d=64, B_c=32)
    assert "TMA add" in counts(lab) and lab.result["listings"]["ptx"]["loop"]
    assert set(lab.settings) == set(SETTINGS)


def test_a_hopper_kernel_has_its_tile_slots_and_registers_per_role():
    lab = CompilerLab(kernel="hopper_forward", d=64)
    assert "hopper_forward, d = 64, bfloat16, for H100 and H200; tile 192 x 128, 16 warps, 4 stages" in repr(lab)
    names = list(texts(lab))
    assert names[:4] == ["registers of a thread", "in the producer", "in 2 consumers", "in 1 consumer"]
    *_, one = sorted(lab.report.roles, key=lambda role: role.given)
    assert texts(lab)["in 1 consumer"] == f"{one.used} of {one.given}"
    assert lab.result["takes"][0]["note"] == words.HANDED_OVER and not any(
        row["bad"] for row in lab.result["takes"]
    )
    assert counts(lab)["mbarrier wait"][:2] == [3, 3] and counts(lab)["setmaxnreg"][2] > 0
    ask(lab, kernel="hopper_r4_overlap")  # all roles have the same number
    assert not lab.report.roles and list(texts(lab))[1].startswith("bytes") and not lab.result["takes"][0]["note"]
    assert "setmaxnreg" not in counts(lab) and "mbarrier wait" in counts(lab)
    ask(lab, capability=80)
    assert lab.work["state"] == "failed" and "not Hopper's (9, 0)" in lab.failed


def test_an_amd_gpu_is_described_in_amds_terms():
    asked = {"d": 64, "causal": True, "capability": "gfx942"}
    lab, report = CompilerLab(**asked), compiled.report(**asked)
    assert lab.report == report and lab.failed == ""
    said = ", for MI300X; tile 128 x 64, 4 wavefronts, 2 stages, pointers: ", f" {report.shared:,} bytes of LDS, "
    assert all(words in repr(lab) for words in (*said, "VGPRs", "on a compute unit"))
    assert texts(lab)["VGPRs of a thread"] == f"{report.registers} of 512"
    with_agprs = kernel_facts.takes(replace(report, registers=292, agprs=36))
    assert with_agprs[0]["note"] == "36 of them are AGPRs, for products" and not lab.result["takes"][0]["note"]
    assert {"LDS of a program", "wavefronts on a compute unit"} < texts(lab).keys()
    everything = json.dumps([lab.result[part] for part in ("takes", "verdicts", "instructions")])
    assert not any(word in everything for word in ("warp", "multiprocessor", "shared memory", "PTX"))
    assert list(lab.result["listings"]) == ["ttgir", "amdgcn"] and lab.result["columns"] == ["AMDGCN"]
    assert counts(lab)["MFMA"] == [report.counts("amdgcn", loop=loop)["MFMA"] for loop in (True, False)]
    assert "AMDGCN" in lab.figure().texts and "SASS" not in lab.figure().texts
    ask(lab, capability=90)
    assert lab.result["columns"] == ["PTX", "SASS"] and "warps on a multiprocessor" in texts(lab)
    ask(lab, kernel="hopper_forward", capability="gfx942")
    assert lab.work["state"] == "failed" and "for Hopper, an NVIDIA GPU" in lab.failed


@pytest.mark.parametrize("kind", ["ttgir", "ptx", "sass"])
def test_a_listing_shows_its_loop_and_on_request_all_of_it(lab, kind, monkeypatch):
    listing, loop = lab.result["listings"][kind], lab.report.loop(kind)
    assert listing["loop"] == loop and listing["lines"][0] == len(loop.splitlines())
    if kind != "ttgir":
        lines = {name: len(its) for name, its in listing["counted"].items()}
        counted = {name: n for name, n in lab.report.counts(kind, loop=True).items() if n}
        assert lines == counted and counted
    sent = []
    monkeypatch.setattr(CompilerLab, "send", lambda self, told, buffers: sent.append((told, buffers)))
    lab._hear(lab, {"ask": "listing", "kind": kind}, [])
    assert sent == [({"kind": kind, "number": lab.result["number"]}, [getattr(lab.report, kind).encode()])]


def test_a_listing_too_long_for_a_page_is_cut(monkeypatch):
    monkeypatch.setattr(kernel_facts, "MAX_LOOP", 10)
    monkeypatch.setattr(kernel_facts, "MAX_LINES", 20)
    lab = CompilerLab(d=64)
    listing, n = lab.result["listings"]["ptx"], len(lab.report.loop("ptx").splitlines())
    assert listing["loop"].splitlines()[9:] == [
        lab.report.loop("ptx").splitlines()[9],
        f"... and {n - 10:,} lines more",
    ]
    assert max(sum(listing["counted"].values(), []), default=0) < 10 and listing["lines"][0] == n
    assert len(kernel_facts.whole(lab.report, "ptx").splitlines()) == 21


def test_a_kernel_that_does_not_fit_and_spills_is_marked():
    lab = CompilerLab(B_r=128, B_c=128, num_warps=4, num_stages=4)
    bad = {row["name"] for row in lab.result["takes"] if row["bad"]}
    assert bad == {"bytes of a thread that spill", "shared memory of a program", "programs on a multiprocessor"}
    does_not_fit, spilled, ptxas = lab.result["verdicts"]
    assert "does not fit" in does_not_fit["text"] and does_not_fit["bad"]
    assert f"{lab.report.spilled:,} bytes" in spilled["text"] and spilled["bad"]
    assert "serialized" in ptxas["text"], "ptxas says so"
    assert not any(verdict["bad"] for verdict in words.verdicts(compiled.report(d=64)))


def test_a_first_refusal_of_the_compiler_is_reported_and_can_be_corrected():
    lab = CompilerLab(**FAILS)
    assert lab.report is None and lab.result == {} and lab.work["state"] == "failed"
    assert "Insufficient registers" in lab.failed and lab.work["why"] == lab.failed and lab.failed in repr(lab)
    assert lab.figure().texts == [f"▲ {lab.failed}"]
    ask(lab, B_r=64, B_c=64, num_warps=4, num_stages=2)
    assert lab.report == compiled.report(d=16, B_r=64, B_c=64, num_warps=4, num_stages=2)
    assert lab.failed == "" and lab.work["state"] == "done"


def test_the_last_result_stays_when_one_fails(lab):
    report, result = lab.report, lab.result
    ask(lab, B_r=48)
    assert lab.report is report and lab.result is result
    assert lab.work["state"] == "failed" and "B_r is 48" in lab.work["why"] and "B_r = 48" in lab.work["words"]
    assert repr(lab) == f"CompilerLab({lab.failed}; what is shown is for {words.summary(report)})"
    ask(lab, B_r=None)
    assert lab.work["state"] == "done" and repr(lab) == f"CompilerLab({words.summary(report)})"


@pytest.mark.parametrize("wrong", [{"kernel": "r9"}, {"capability": 70}, {"dtype": "int8"}], ids=str)
def test_a_later_setting_that_is_not_offered_is_refused(lab, wrong):
    ask(lab, **wrong)
    assert lab.work["state"] == "failed" and str(*wrong.values()) in lab.failed and lab.report.d == 64


@pytest.mark.process
def test_cancelling_ends_the_process_and_keeps_the_result(lab):
    result = lab.result
    process = begin(lab, **LONG)
    lab._hear(lab, {"ask": "cancel"}, [])
    assert lab.work["state"] == "cancelled" and lab.result is result
    assert repr(lab).startswith("CompilerLab(cancelled; what is shown is for forward, d = 64, bfloat16")
    assert process.wait(20) < 0
    ask(lab, dtype="bfloat16", B_r=None, B_c=None, num_warps=None)
    assert lab.work["state"] == "done" and lab.report.num_warps == compiled.report(d=64).num_warps


@pytest.mark.process
def test_a_cancelled_request_can_be_repeated(lab):
    begin(lab, **LONG)
    lab.cancel()
    lab._hear(lab, {"ask": "again"}, [])
    assert lab.work["state"] == "compiling"


@pytest.mark.process
def test_a_newer_request_ends_a_slow_one(lab, monkeypatch):
    monkeypatch.setattr(background, "PATIENCE", 0.3)
    process = begin(lab, **LONG)
    lab.set_state({"dtype": "bfloat16", "B_r": 32, "B_c": None, "num_warps": None})  # as the page sends it
    lab.wait()
    assert process.wait(20) < 0
    assert lab.work["state"] == "done" and lab.report == compiled.report(d=64, B_r=32)


def test_a_cached_result_is_shown_without_compiling(lab, monkeypatch):
    ask(lab, B_c=64)
    monkeypatch.setattr(module, "AT_ONCE", 30)
    states = []
    lab.observe(lambda change: states.append(change.new["state"]), "work")
    lab.B_c = None
    assert states == ["done"]


@pytest.mark.process
def test_a_closed_lab_leaves_no_running_process(lab):
    process = begin(lab, **LONG)
    lab.close()
    assert process.wait(20) < 0


@pytest.mark.process
def test_python_ends_at_once_and_leaves_no_process():
    code = (
        "import time\n"
        "from flashlib.kernels.compiler import client\n"
        "from flashlib.widgets.compiler_lab import CompilerLab\n"
        "lab = CompilerLab(d=64)\n"
        f"lab.set_state({LONG!r})\n"
        "while not client._compiler.process:\n"
        "    time.sleep(0.01)\n"
        "print(client._compiler.process.pid, time.time())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    pid, end = done.stdout.split()
    assert time.time() - float(end) < 20
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("wrong", [{"d": 8}, {"B_r": 48}, {"kernel": "r9"}, {"causal": 1}, {"d": "64"}], ids=str)
def test_a_sentence_in_place_of_the_lab_says_what_is_wrong(wrong):
    lab = CompilerLab(**wrong)
    with pytest.raises((TypeError, ValueError)) as told:
        compiled.report(**wrong)
    assert lab.problem == str(told.value) and repr(lab) == f"CompilerLab({lab.problem})"


def test_an_unknown_keyword_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'stages'"):
        CompilerLab(stages=2)


@pytest.mark.compiles
def test_a_size_that_is_not_offered_is_accepted():
    assert 80 not in SIZES["d"]
    lab = CompilerLab(d=np.int64(80))
    assert lab.report.d == 80 == lab.d


def test_the_picture_holds_the_key_numbers():
    lab = CompilerLab(B_r=128, B_c=128, num_warps=4, num_stages=4)
    picture = lab.figure()
    for row in lab.result["takes"]:
        assert ("▲ " if row["bad"] else "") + row["text"] in picture.texts
    assert lab.result["title"] in picture.texts
    assert f"{lab.report.counts('sass')['spill']:,}" in picture.texts
    assert picture.png() == lab.figure().png()


@pytest.mark.process
def test_without_triton_it_says_so():
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "from flashlib.widgets.compiler_lab import CompilerLab\n"
        "print(CompilerLab().problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Triton is not installed")
