"""Below the table of a learner's kernels two sentences say what is good, or what to do."""

import dataclasses
import sys

import pytest

from flashlib import bench, kernels
from flashlib.bench import learner, learner_resources
from flashlib.bench.common import harness
from flashlib.bench.kernel_table import KernelTable
from flashlib.bench.learner import FunctionKind
from flashlib.bench.learner_resources import KernelReport
from flashlib.kernels import INTERPRETED
from flashlib.kernels.compiler import client, learner_kernels
from flashlib.kernels.compiler.compiled import Compiled


def report(kernel="my_kernel", registers=124, spilled=0, shared=40960, num_warps=4, capability=90, ttgir=""):
    """A made-up report for the H100: 4 programs fit by registers, 5 by shared memory, 16 by warps."""
    of_fields = {field.name: None for field in dataclasses.fields(Compiled)}
    given = {"kernel": kernel, "registers": registers, "spilled": spilled, "shared": shared}
    return Compiled(**of_fields | given | {"num_warps": num_warps, "capability": capability, "ttgir": ttgir})


def sentences(*yours):
    """Return the sentences on some kernels of a learner, next to one of ours that spills and does not fit."""
    reports = [KernelReport("d = 64", "yours", one) for one in yours]
    ours = KernelReport("d = 64", "ours", report("ours", spilled=999, shared=2**20))
    return learner_resources.table([*reports, ours], "Attention", 90).sentences


def test_it_is_good_if_nothing_spills_and_several_programs_fit():
    spills, programs = sentences(report())
    assert spills == "No spills: every number that your threads hold has a register."
    assert programs.startswith(
        "4 programs of yours fit on a multiprocessor at a time (d = 64), limited by registers."
    )
    assert "That is good: while one waits for memory, another computes." in programs


def test_numbers_that_spill_are_counted_and_the_remedy_is_named():
    spills, _ = sentences(report(), report(spilled=1040), report(spilled=8))
    assert "1,040 bytes of each of your threads have no register" in spills
    assert "smaller tiles" in spills and "num_warps" in spills


@pytest.mark.parametrize(
    "kernel, n, limit",
    [
        ({"registers": 255}, 2, "registers"),
        ({"shared": 100_000}, 2, "shared memory"),
        ({"registers": 32, "shared": 0, "num_warps": 8}, 8, "registers and warps"),
        ({"registers": 255, "shared": 100_000}, 2, "registers and shared memory"),
    ],
)
def test_what_limits_the_programs_is_named(kernel, n, limit):
    _, programs = sentences(report(**kernel))
    assert programs.startswith(
        f"{n} programs of yours fit on a multiprocessor at a time (d = 64), limited by {limit}."
    )


@pytest.mark.parametrize(
    "shared, beginning, remedy",
    [
        (
            200_000,
            "1 program of yours fits",
            "load tiles ahead (num_stages), or choose smaller tiles, which leave room",
        ),
        (300_000, "No program of yours fits", "Choose smaller tiles, or load fewer ahead (num_stages)."),
    ],
)
def test_fewer_than_two_programs_are_not_praised(shared, beginning, remedy):
    _, programs = sentences(report(shared=shared))
    assert programs.startswith(beginning) and "limited by shared memory" in programs and remedy in programs
    assert "good" not in programs


def test_one_program_with_roles_is_enough():
    _, programs = sentences(report(shared=200_000, ttgir="ttg.warp_specialize(%0)"))
    assert programs.startswith("1 program of yours fits") and "limited by shared memory" in programs
    assert "the producer loads ahead" in programs and "num_stages" not in programs


def test_the_kernel_of_which_the_fewest_fit_is_named_if_there_are_several():
    _, programs = sentences(report("part_kernel", shared=100_000), report("merge_kernel"))
    assert "2 programs of yours fit on a multiprocessor at a time (part_kernel, d = 64)" in programs


def test_a_table_that_follows_is_shown_below():
    second = KernelTable("Second", ("", "n"), [("b", 20)], ("A sentence.",))
    assert repr(KernelTable("First", ("", "n"), [("a", 1)], then=second)) == (
        "First\n   n\na  1\n\nSecond\n    n\nb  20\n\nA sentence."
    )


@pytest.mark.parametrize("here, compiled_for", [(75, 75), (120, 90), ("gfx942", "gfx942")])
def test_on_a_gpu_the_speeds_come_first_and_resources_are_those_on_it_if_it_is_known(
    here, compiled_for, monkeypatch
):
    kind = FunctionKind(
        "", lambda _, capability: KernelTable(f"for {capability}"), lambda _: KernelTable("speeds")
    )
    monkeypatch.setattr(kernels, "INTERPRETED", False)
    monkeypatch.setattr(harness, "capability", lambda: here)
    monkeypatch.setitem(learner.KINDS, 4, kind)
    assert repr(bench.mine(lambda Q, K, V, causal: Q)) == f"speeds\n\nfor {compiled_for}"


@pytest.mark.skipif(not INTERPRETED, reason="where there is a GPU, kernels are timed")
@pytest.mark.parametrize("why", ["Cannot find ptxas", "module 'triton' has no attribute 'x'"])
def test_a_compiler_that_fails_is_reported_in_a_sentence(why, monkeypatch):
    def reports(*given, **size):
        raise client.CompileError(why)

    monkeypatch.setattr(learner_kernels, "reports", reports)
    said = repr(bench.mine(lambda Q, K, V, causal: Q))
    assert said == f"The compiler cannot tell what becomes of your kernel: {why}"


def test_where_triton_is_missing_a_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "flashlib.kernels", None)
    monkeypatch.delattr(sys.modules["flashlib"], "kernels")
    said = repr(bench.mine(lambda Q, K, V, causal: Q))
    assert said.startswith("Nothing is compiled here: ") and len(said.splitlines()) == 1
