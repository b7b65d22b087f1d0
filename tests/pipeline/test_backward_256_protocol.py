"""The protocols of the passes at d = 256: right under all schedules that are tried, wrong without any part."""

import pytest

from flashlib import pipeline as p
from flashlib.pipeline import backward_256_protocol as protocol
from tests.pipeline.test_backward_protocol import goes_wrong, without

PASSES = {"dkv": protocol.dkv, "dq": protocol.dq}


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_it_is_right_under_random_schedules(n, name, amount):
    schedules = {"few": 30, "all": 10_000 // 6}[amount]
    report = p.check(PASSES[name](n), states=0, schedules=schedules, seed=n)
    assert report.fault is None, report


# Waits that another implies; they stand there for who reads them. Q(g + 1) comes when dP(g) was begun, from dO(g);
# P(g) when S(g) was done, from Q(g).
IMPLIED = {("consumer 0", f"Wait(barrier=do_full[{s}], phase={1 - s})") for s in (0, 1)}
IMPLIED |= {("consumer 1", f"Wait(barrier=q_full[{s}], phase={phase})") for s in (0, 1) for phase in (0, 1)}


def parts(program):
    """Return (role, command) of each wait, arrival and fence, once, but for waits that pass at once, the first."""
    kinds = p.Wait, p.Arrive, p.Expect, p.Fence, p.FinishStores
    found = [(role, str(one)) for role, make in program.roles.items() for one in make() if isinstance(one, kinds)]
    passed = "q_empty[0]", "q_empty[1]", "do_empty[0]", "do_empty[1]", "k_empty[0]", "k_empty[1]", "v_empty"
    first = {("producer", f"Wait(barrier={name}, phase=1)") for name in passed}
    return [part for part in dict.fromkeys(found) if part not in first]


@pytest.mark.parametrize("name", PASSES)
def test_it_is_wrong_without_any_of_its_waits_and_arrivals(name):
    program = PASSES[name](4)
    for role, command in parts(program):
        wrong = goes_wrong(without(program, role, command))
        assert wrong != ((role, command) in IMPLIED), f"{role} without {command}: wrong is {wrong}"
