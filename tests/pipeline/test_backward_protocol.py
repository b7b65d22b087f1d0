"""The protocol of the Hopper backward: right under all schedules tried, wrong without any of its parts."""

import random
from functools import partial

import pytest

from flashlib import pipeline as p
from flashlib.pipeline import backward_protocol as protocol
from flashlib.pipeline import commands
from flashlib.pipeline.schedules import Chance, Walk, played


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_it_is_right_under_random_schedules(n, d, amount):
    schedules = {"few": 30, "all": 10_000 // 6}[amount]
    report = p.check(
        protocol.program(n, protocol.BackwardSizes(d=d), finished=n), states=0, schedules=schedules, seed=n
    )
    assert report.fault is None, report


def without(program, role, command):
    """Return the program without the commands of a role that are like this one, as text."""

    def rest(make):
        yield from (one for one in make() if str(one) != command)

    return program._replace(roles=program.roles | {role: partial(rest, program.roles[role])})


def parts(d):
    """Return (role, command) of each wait, arrival and fence of a program of four tiles, once.

    But for the producer's first waits, which pass at once: nothing has been brought yet.
    """
    program = protocol.program(4, protocol.BackwardSizes(d=d), finished=4)
    kinds = p.Wait, p.Arrive, p.Expect, p.Fence, p.FinishStores
    found = [(role, str(one)) for role, make in program.roles.items() for one in make() if isinstance(one, kinds)]
    first = [("producer", f"Wait(barrier=empty[{s}], phase=1)") for s in range(2)]
    return [part for part in dict.fromkeys(found) if part not in first]


def goes_wrong(program, schedules=100):
    """Return whether one of many schedules ends in a fault. `check` would take long to find the shortest."""
    lists, numbers = commands.expanded(program), random.Random(0)
    for _ in range(schedules):
        chance = Chance(numbers)
        who = lambda one: one.flight.number if one.flight else one.role  # noqa: E731
        if played(Walk(program, lists), lambda choices: chance.pick(choices, who))[1]:  # noqa: B023
            return True
    return False


@pytest.mark.parametrize("amount, d", [("few", 128), ("all", 64)])
def test_it_is_wrong_without_any_of_its_waits_and_arrivals(amount, d):
    program = protocol.program(4, protocol.BackwardSizes(d=d), finished=4)
    for role, command in parts(d):
        assert goes_wrong(without(program, role, command)), (
            f"{role} without {command} goes wrong under no schedule"
        )


def test_a_tile_must_have_arrived_before_threads_read_it():
    slot = p.ring("numbers", 1, 64)[0]

    def early():
        yield p.Read("lse0", slot)

    report = p.check(p.Program({"one": early}, (), (slot,)))
    assert report.fault.kind is p.PipelineFaultKind.READ_TOO_EARLY and "a load of lse0 of one" in report.fault.said
