"""Rung 8, the kernel with roles and the same without them are verified and timed; in the interpreter."""

import pytest
import torch

from flashlib import kernels
from flashlib.bench import bandwidth, ladder, warp_specialised


@pytest.mark.parametrize("causal", [False, True])
def test_every_kernel_is_timed_with_its_own_options(causal, clock):
    torch.manual_seed(0)
    problem = ladder.LadderProblem(1, 2, 80, 16, causal, device=kernels.DEVICE)
    problem.head_flops = 15 * 10**9  # so many that what a row says of them is not rounded to 0
    rows = ladder.climb(problem, warp_specialised.RUNGS, "roles")
    names = ["r8_descriptors", "warp_specialised", "without_warp_specialize", "ours"]
    assert [row["rung"] for row in rows if row["best"]] == names
    assert all(row["ms"] and row["flop_per_byte"] > 0 for row in rows), "each was verified and timed"
    with_roles = [row["options"] for row in rows if row["rung"] == "warp_specialised"]
    assert {(options["B_r"], options["num_warps"]) for options in with_roles} == {(128, 4)}
    alone, plain = ([row["options"] for row in rows if row["rung"] == name] for name in (names[0], names[2]))
    assert alone == plain and {options["num_warps"] for options in alone} == {4, 8}


def test_the_cache_is_measured_by_warps_and_by_tma(monkeypatch):
    monkeypatch.setattr(ladder, "climb", lambda problem, rungs, part, notes: [])
    monkeypatch.setattr(ladder, "LadderProblem", lambda *size: size)
    for name, gigabytes in (("l2_read", 7), ("l2_copy", 9)):
        found = gigabytes * 10**9, 1.0
        monkeypatch.setattr(bandwidth, name, lambda found=found: found)
    rows = warp_specialised.measure((64,))
    assert [(row["rung"], row["gb_per_s"]) for row in rows] == [("l2_read", 7000.0), ("l2_copy", 9000.0)]
