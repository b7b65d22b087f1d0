"""Each of the six launches is timed as it is, and after each move; in the interpreter."""

import pytest
import torch

from flashlib import kernels
from flashlib.bench import ladder, limits


@pytest.mark.parametrize("letter", limits.LAUNCHES)
def test_a_launch_is_timed_as_it_is_and_after_each_move(letter, clock):
    torch.manual_seed(0)
    launch = limits.LAUNCHES[letter]
    problem = ladder.LadderProblem(1, 2, 80, 16, False, device=kernels.DEVICE)
    rows = limits.timed(letter, launch, problem)
    assert [row["limit"] for row in rows] == [None, *launch.moves]
    assert rows[0]["rung"] == launch.rung and rows[0]["options"] == launch.options
    for row in rows:
        assert row["launch"] == letter and row["ms"], row
        assert (row["rung"], row["options"]) != (launch.rung, launch.options) or row["limit"] is None


def test_a_move_changes_what_its_limit_is_about():
    for launch in limits.LAUNCHES.values():
        for limit, (_, options) in launch.moves.items():
            before = launch.options
            if limit == limits.LOADS:
                assert options == before | {"num_stages": before["num_stages"] + 1}
            elif limit == limits.REGISTERS:
                assert options == before | {"num_warps": 2 * before["num_warps"]}
            elif limit == limits.SHARED:
                assert options == before | {"num_stages": before["num_stages"] - 1}


@pytest.mark.parametrize("letter", "CDEF")
def test_a_launch_of_one_kernel_is_timed_after_each_move_that_fits(letter):
    launch = limits.LAUNCHES[letter]
    left_out = {limits.LOADS, limits.REGISTERS, limits.SHARED} - launch.moves.keys()
    assert left_out == ({limits.LOADS} if letter == "E" else set())
