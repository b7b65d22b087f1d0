"""Run a function on several ranks: on new processes, or on the ranks that torchrun has started."""

import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from flashlib.learner import pickling
from flashlib.ring.processes import (
    failure_report,
    launcher_connection,
    packing,
    under_torchrun,
    waits,
)
from flashlib.ring.processes import rank as rank_process
from flashlib.ring.processes.job import Job
from flashlib.ring.processes.launcher_connection import LauncherConnection

START_LIMIT = 120  # seconds for the launcher to import what is needed, and for the ranks to join
GRACE = 0.5  # seconds after the first failure in which other ranks may report theirs
MOST = 64  # ranks: each is a process
PATIENCE = 0.9  # the fraction of the run's limit after which a rank gives up waiting for another
LOOK = 0.5  # seconds between two looks at where the ranks are
STILL = 4  # equal looks in a row after which the ranks are stuck
METHOD = "fork" if sys.platform == "linux" else "spawn"  # some libraries of macOS do not survive a fork


def run(
    function: Callable, *arguments: object, ranks: int | None = None, seconds: float = 60, backend: str = "gloo"
) -> list[Any]:
    """Run function(*arguments) on each rank, and return the list of what the ranks returned.

    function: may be defined in a notebook's cell; it and all that it uses are copied to each rank, where it can
    ask torch.distributed for its rank and the number of ranks. It returns None, numbers, text, tensors, arrays, or
    lists, tuples, dicts, Attention and Grads of them. ranks: 4 by default, or as many as torchrun has started.
    seconds: how long the run may take. backend: of the group, as torch.distributed names it.

    What a rank prints is shown with its number when all have ended. Each rank is a separate process, which listens
    on this host only and ends with the run. Under torchrun this process is one of the ranks, and `seconds` is how
    long one rank waits for another.

    Raises RankError if a rank raises or dies; RanksWait, which says who waits for whom, if they take too long;
    pickling.CannotBeSent if the function uses something that cannot be copied; ValueError for invalid numbers.
    """
    if rank_process.here:
        raise RuntimeError("this process is a rank already: call run() outside the function that it runs")
    if not (isinstance(seconds, int | float) and 0 < seconds < float("inf")):
        raise ValueError(f"seconds is {seconds!r}; give a number above 0, such as 60")
    if ranks is not None and (type(ranks) is not int or not 1 <= ranks <= MOST):
        raise ValueError(f"ranks is {ranks!r}; give a whole number from 1 to {MOST}")
    if under_torchrun.started():
        return under_torchrun.run(function, arguments, ranks, seconds, backend)
    parcel = pickling.dumps((function, arguments))
    modules = ["torch", "torch.distributed", *(["triton"] if parcel.has_kernels else [])]
    around = {**os.environ}, [*sys.path], os.getcwd()
    meeting = os.path.join(tempfile.gettempdir(), f"ranks-{uuid.uuid4().hex}")
    job = Job(parcel, ranks or 4, PATIENCE * seconds, backend, tuple(modules), METHOD, meeting, *around)
    with _one_at_a_time:
        try:
            outcome, printed = _outcome(job, seconds)
        finally:
            shutil.rmtree(meeting, ignore_errors=True)
    _show(printed)
    if len(outcome.returned) < outcome.ranks:
        raise failure_report.failure(outcome)
    return [packing.unpack(outcome.returned[number]) for number in range(outcome.ranks)]


_one_at_a_time = threading.Lock()


def _outcome(job, seconds):
    """Return the RunOutcome of a job and what each rank has printed."""
    connection = launcher_connection.connect()
    try:
        connection.has_ranks = True
        connection.send(job)
        outcome = _Watch(connection, failure_report.RunOutcome(job.ranks, seconds, {}, {}, {})).complete()
        return outcome, _printed(connection)
    except (EOFError, OSError) as error:
        launcher_connection.close()
        raise ChildProcessError(
            "the process that starts the ranks has died; call run() again to start another"
        ) from error
    except BaseException:  # an interrupt
        _end_ranks(connection)
        raise


def _end_ranks(connection):
    """End the ranks of an interrupted run, and the launcher too if a message to or from it is incomplete."""
    try:
        if connection.broken:
            raise EOFError
        _show(_printed(connection))
    except BaseException:  # a second interrupt, for example
        launcher_connection.close()


def _show(printed):
    for number, text in enumerate(printed):
        for line in text.splitlines():
            print(f"rank {number} | {line}")


class _Watch:
    """Collects what the ranks of a run send, until the run is complete, time is up or no rank can go on.

    Time counts once all have joined. After a first failure, or when time is up, all ranks have a moment to report
    their own failure, or where they are. Before that they are asked now and then where they are, since all of them
    may be waiting forever.
    """

    def __init__(self, connection: LauncherConnection, outcome: failure_report.RunOutcome) -> None:
        self.connection, self.outcome = connection, outcome
        self.end, self.look = time.monotonic() + START_LIMIT, float("inf")
        self.joined, self.asked, self.rounds, self.before = 0, False, 0, {}

    def complete(self) -> failure_report.RunOutcome:
        """Return the RunOutcome when nothing more will come."""
        outcome = self.outcome
        while len(outcome.returned) + len(outcome.ended) < outcome.ranks:
            if message := self.connection.receive(min(self.end, self.look)):
                self.take(*message)
            elif time.monotonic() < self.end:
                if self.is_stuck():
                    return outcome._replace(stuck=True)
                self.connection.send(("where",))
                self.look = time.monotonic() + LOOK
            elif self.asked:
                break
            if not self.asked and (outcome.ended or time.monotonic() >= self.end):
                self.connection.send(("where",))
                self.asked, self.end, self.look = True, time.monotonic() + GRACE, float("inf")
        return outcome

    def take(self, what: str, *values: Any) -> None:
        """Record one message."""
        if what == "failed":
            raise RuntimeError(f"the ranks could not be started:\n{values[0]}")
        number, kind, value = values
        outcome = self.outcome
        ended = number in outcome.ended or number in outcome.returned
        if kind == "joined":
            self.joined += 1
            if self.joined == outcome.ranks and not self.asked:
                self.end, self.look = time.monotonic() + outcome.seconds, time.monotonic() + LOOK
        elif kind == "returned":
            outcome.returned[number], outcome.sites[number] = value
        elif kind == "site" and not ended:
            outcome.sites[number] = value
        elif kind in ("raised", "died") and not ended:
            outcome.ended[number] = value
            outcome.sites.pop(number, None)

    def is_stuck(self) -> bool:
        """Return whether every running rank has for some time waited for one that waits or has returned."""
        outcome = self.outcome
        running = {rank: site for rank, site in outcome.sites.items() if rank not in outcome.returned}
        waiting = [waits.is_held(rank, outcome.sites, {*outcome.returned}) for rank in running]
        all_known = len(running) == outcome.ranks - len(outcome.returned)
        self.rounds = self.rounds + 1 if all_known and all(waiting) and running == self.before else 0
        self.before = running
        return self.rounds >= STILL


def _printed(connection):
    """Have all ranks end, and return what each has printed."""
    connection.send(("end",))
    while True:
        message = connection.receive(time.monotonic() + START_LIMIT)
        if not message:
            raise EOFError
        if message[0] == "ended":
            connection.has_ranks = False
            return message[1]
