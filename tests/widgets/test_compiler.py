"""What CompilerLab shows is what `kernels.compiled` says of the same settings."""

import subprocess
import sys

import pytest

pytest.importorskip("ipywidgets")

from flashlib.widgets.compiler import CompilerLab
from flashlib.widgets.compiler.lab import CHOICES

compiled = pytest.importorskip("flashlib.kernels.compiled", exc_type=ImportError)  # no Triton, no compiler


def ask(lab, **settings):
    for name, value in settings.items():
        lab._controls[name].value = value
    lab.wait()


def test_it_shows_the_report_of_its_settings():
    lab = CompilerLab(d=64, causal=True, B_c=64)
    assert lab.report is compiled.report(d=64, causal=True, B_c=64)
    for number in (lab.report.registers, lab.report.shared, lab.report.programs):
        assert f">{number:,}</td>" in lab._result.value
    assert f"{lab.report.shared:,} bytes" in repr(lab)
    assert lab._repr_mimebundle_()["text/plain"] == repr(lab)


def test_of_many_changes_the_last_one_is_shown():
    lab = CompilerLab(d=64)
    ask(lab, B_r=32, num_warps=2, capability=80, dtype="float16")
    wanted = {"d": 64, "B_r": 32, "num_warps": 2, "capability": 80, "dtype": "float16"}
    assert lab.report == compiled.report(**wanted)
    assert "mma.sync" in lab._result.value and "wgmma" not in lab._result.value
    assert "compiling" not in lab._state.value


def test_what_a_kernel_does_not_take_is_disabled_and_not_asked_for():
    lab = CompilerLab(d=64, descriptors=True, num_warps=8)
    ask(lab, kernel="r5_causal")
    assert lab._controls["descriptors"].disabled and not lab._controls["num_warps"].disabled
    assert lab.report == compiled.report(kernel="r5_causal", d=64, num_warps=8)
    ask(lab, kernel="softmax")
    assert {name for name, control in lab._controls.items() if not control.disabled} == {
        *("kernel", "d", "dtype", "capability")
    }
    assert lab.report == compiled.report(kernel="softmax", d=64)


def test_the_passes_of_the_backward_are_shown():
    lab = CompilerLab(d=64, kernel="backward_dkv")
    assert f"CompilerLab(backward_dkv, d = 64, bfloat16, for H100 and H200; tile {lab.report.B_r} x" in repr(lab)
    ask(lab, kernel="backward_fused", B_c=32)
    assert lab.report == compiled.report(kernel="backward_fused", d=64, B_c=32)
    assert "TMA add" in lab._result.value and "The loop over tiles" in lab._listing.value
    assert not any(control.disabled for control in lab._controls.values())


@pytest.mark.parametrize("kind", ["ttgir", "ptx", "sass"])
def test_the_listing_is_the_loop_with_all_of_it_in_a_fold(kind):
    lab = CompilerLab(d=64)
    lab._kind.value = kind
    assert lab._listing.value.index("<pre") < lab._listing.value.index("<details>")
    n = len(lab.report.loop(kind).splitlines())
    assert f"{n:,} lines of {kind.upper()}" in lab._listing.value


def test_a_kernel_that_does_not_fit_is_marked():
    lab = CompilerLab(B_r=128, B_c=128, num_warps=4, num_stages=4)
    assert "does not fit" in lab._result.value and "flash-compiler-over" in lab._result.value
    assert "serialized" in lab._result.value, "ptxas says so"


def test_what_the_compiler_refuses_is_said_and_the_controls_stay():
    lab = CompilerLab(B_r=256, B_c=256, num_warps=16, num_stages=5, causal=True)
    assert lab.report is None and "Insufficient registers" in lab.refused
    assert "flash-compiler-failed" in lab._state.value and lab.refused in repr(lab)
    ask(lab, B_r=64, B_c=64, num_warps=4, num_stages=2)
    assert lab.report == compiled.report(B_r=64, B_c=64, num_warps=4, num_stages=2, causal=True)
    assert lab.refused == ""


@pytest.mark.parametrize("wrong", [{"d": 8}, {"B_r": 48}, {"kernel": "r9"}, {"causal": 1}, {"d": "64"}], ids=str)
def test_what_is_wrong_is_said_in_its_place(wrong):
    lab = CompilerLab(**wrong)
    with pytest.raises((TypeError, ValueError)) as told:
        compiled.report(**wrong)
    assert lab.problem == str(told.value) and repr(lab) == f"CompilerLab({lab.problem})"


def test_an_unknown_keyword_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'stages'"):
        CompilerLab(stages=2)


def test_a_size_that_is_not_offered_is_taken():
    assert 80 not in CHOICES["d"]
    lab = CompilerLab(d=80)
    assert lab.report.d == 80 == lab._controls["d"].value


def test_without_triton_it_says_so():
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "from flashlib.widgets.compiler import CompilerLab\n"
        "print(CompilerLab().problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Triton is not installed")
