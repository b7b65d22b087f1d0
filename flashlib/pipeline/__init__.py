"""A model of the warps of a Hopper kernel that runs on any computer: who waits for whom, and how long it takes.

In a Hopper kernel each warp has a role. A producer requests tiles from the copy unit; groups of warps multiply
them and compute the softmax; barriers in shared memory signal when a tile has arrived and when its slot is free.
Here the roles are Python generators that yield what they do, see `commands`.

    commands        what a role yields; Barrier, Slot, Program
    multiprocessor  what these do to barriers, slots and units, and what must never happen
    deadlock        the sentence on roles that wait for each other
    schedules       `check`: every order in which it may happen, or many at random; the shortest that goes wrong
    timeline        `run`: the one order that the speeds of a multiprocessor's units give, in clocks
    protocol        the roles of our kernels; backward_protocol: those of the backward
    measured        timelines of real kernels, from the clocks that they wrote
"""

from flashlib.pipeline.commands import (
    Arrive,
    Barrier,
    Compute,
    Copy,
    Expect,
    Fence,
    Finish,
    FinishStores,
    Product,
    Program,
    Read,
    Ring,
    Slot,
    Store,
    Wait,
    Write,
    barriers,
    ring,
)
from flashlib.pipeline.multiprocessor import KINDS, PipelineFault, PipelineFaultKind
from flashlib.pipeline.schedules import Report, check
from flashlib.pipeline.timeline import MACHINE, Machine, Timeline, run

__all__ = [
    "KINDS", "MACHINE", "Arrive", "Barrier", "Compute", "Copy", "Expect", "Fence", "Finish", "FinishStores",
    "Machine", "PipelineFault", "PipelineFaultKind", "Product", "Program", "Read", "Report", "Ring", "Slot",
    "Store", "Timeline", "Wait", "Write", "barriers", "check", "ring", "run",
]  # fmt: skip
