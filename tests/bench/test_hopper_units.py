"""The kernels that measure units do the work that is timed, without spills, and in their stated order."""

import re

import pytest

from flashlib.bench import hopper_units
from flashlib.kernels.compiler import client, compiled
from tests.bench import calls_of_hopper_units

NAMES = {"SR_CLOCKLO": "c", "HGMMA": "p", "WARPGROUP.DEPBAR": "f", "MUFU.EX2": "e"}


def made(what, d, B_c):
    asked = {"kernel": what, "d": d, "dtype": "bfloat16", "causal": False, "capability": 90}
    options = {"what": what, "B_c": B_c}
    call = {"module": calls_of_hopper_units.__name__, "call": "attention", "launched": None, "options": options}
    return compiled.from_answer(client.compile_for_gpu(asked | call | {"shape": None, "until": "sass"}), **asked)


@pytest.mark.compiles
@pytest.mark.parametrize("what", calls_of_hopper_units.LAUNCHES)
@pytest.mark.parametrize("d, B_c", [(128, 128), (64, 64)])
def test_no_kernel_spills_or_is_serialized(what, d, B_c):
    report = made(what, d, B_c)
    assert report.spilled == 0 and report.notes == ()


@pytest.mark.compiles
@pytest.mark.parametrize("d, B_c", [(128, 128), (128, 64), (64, 128), (64, 64)])
def test_a_softmax_runs_between_the_issue_of_a_product_and_the_wait(d, B_c):
    sass = made("under", d, B_c).sass
    if not sass:
        pytest.skip("the disassembler is missing")
    order = "".join(NAMES[name] for name in re.findall("|".join(map(re.escape, NAMES)), sass))
    assert re.fullmatch(r"e+c+p+ce+cf+c", order), order


@pytest.mark.gpu
@pytest.mark.parametrize("what", ["products", "softmax", "under", "two"])
def test_a_group_computes_what_it_is_timed_for(what):
    """`hopper_units.group` raises if a sum is wrong."""
    assert calls_of_hopper_units.LAUNCHES[what](128, 64) > 0
    with pytest.raises(AssertionError, match="a group's sum is"):
        hopper_units.check(
            1.0,
            "products",
            1,
            1,
            hopper_units.rand(4, 8),
            hopper_units.rand(4, 8),
            hopper_units.rand(4, 4).float(),
        )
