"""Run a function on several ranks, from a notebook or a script, and under torchrun on those that are there."""

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
from flashlib.ring.processes import joined, told, values, waits, ways
from flashlib.ring.processes import rank as one_rank
from flashlib.ring.processes.job import Job
from flashlib.ring.processes.ways import Way

START_LIMIT = 120  # seconds for the launcher to import what is needed, and for the ranks to join
GRACE = 0.5  # seconds for further ranks to fail too, after the first
MOST = 64  # ranks: each is a process
PATIENCE = 0.9  # the part of the run's limit after which a rank that waits for another gives up
LOOK, STILL = (
    0.5,
    4,
)  # seconds between two looks at where ranks stand, and after how many equal ones they are stuck
METHOD = "fork" if sys.platform == "linux" else "spawn"  # macOS has libraries that do not survive a fork


def run(
    function: Callable, *arguments: object, ranks: int | None = None, seconds: float = 60, backend: str = "gloo"
) -> list[Any]:
    """Run function(*arguments) on each of some ranks, and return the list of what they returned.

    function: asks torch.distributed for its rank and for their number; it may be one of a notebook's cell, and it
    and what it uses are copied to each rank. It returns None, numbers, text, tensors, arrays, or lists, tuples,
    dicts, Attention and Grads of them. ranks: 4, or as many as torchrun has started. seconds: how long they may
    take. backend: of the group, as torch.distributed names it.

    What a rank prints is shown with its number when all have ended. The ranks are processes of their own that
    listen on this host alone and end with the run. Under torchrun this process is one of the ranks, and `seconds`
    says how long one waits for another.

    Raises RankError if a rank raises or dies, RanksWait if they take too long: it says who waits for whom;
    pickling.CannotBeSent if the function uses what cannot be copied; ValueError for numbers that make no sense.
    """
    if one_rank.here:
        raise RuntimeError("this process is a rank already: call run() once, outside of the function that it runs")
    if not (isinstance(seconds, int | float) and 0 < seconds < float("inf")):
        raise ValueError(f"seconds is {seconds!r}; give a number above 0, such as 60")
    if ranks is not None and (type(ranks) is not int or not 1 <= ranks <= MOST):
        raise ValueError(f"ranks is {ranks!r}; give a whole number from 1 to {MOST}")
    if joined.started():
        return joined.run(function, arguments, ranks, seconds, backend)
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
        raise told.failure(outcome)
    return [values.unpack(outcome.returned[number]) for number in range(outcome.ranks)]


_one_at_a_time = threading.Lock()


def _outcome(job, seconds):
    """Return the Outcome of a run and what each rank has printed."""
    way = ways.to_launcher()
    try:
        way.runs = True
        way.send(job)
        outcome = _Watch(way, told.Outcome(job.ranks, seconds, {}, {}, {})).complete()
        return outcome, _printed(way)
    except (EOFError, OSError) as error:
        ways.close()
        raise ChildProcessError(
            "the process that starts the ranks has died; run() again starts another"
        ) from error
    except BaseException:  # an interrupt
        _end_ranks(way)
        raise


def _end_ranks(way):
    """End the ranks of a run that is broken off, and the launcher too if a message to or from it is broken."""
    try:
        if way.amid:
            raise EOFError
        _show(_printed(way))
    except BaseException:  # another interrupt too
        ways.close()


def _show(printed):
    for number, text in enumerate(printed):
        for line in text.splitlines():
            print(f"rank {number} | {line}")


class _Watch:
    """Takes in what the ranks of a run send, until it is complete, time is up or no rank can go on.

    Time counts once all have joined. After a first failure, or when time is up, all have a moment to tell of
    theirs, or where they stand. Until then they are asked now and then: all may wait for ever.
    """

    def __init__(self, way: Way, outcome: told.Outcome) -> None:
        self.way, self.outcome = way, outcome
        self.end, self.look = time.monotonic() + START_LIMIT, float("inf")
        self.joined, self.asked, self.rounds, self.before = 0, False, 0, {}

    def complete(self) -> told.Outcome:
        """Return the Outcome."""
        outcome = self.outcome
        while len(outcome.returned) + len(outcome.ended) < outcome.ranks:
            if message := self.way.receive(min(self.end, self.look)):
                self.take(*message)
            elif time.monotonic() < self.end:
                if self.is_stuck():
                    return outcome._replace(stuck=True)
                self.way.send(("where",))
                self.look = time.monotonic() + LOOK
            elif self.asked:
                break
            if not self.asked and (outcome.ended or time.monotonic() >= self.end):
                self.way.send(("where",))
                self.asked, self.end, self.look = True, time.monotonic() + GRACE, float("inf")
        return outcome

    def take(self, what: str, *values: Any) -> None:
        """Take in one message."""
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
            outcome.returned[number], outcome.places[number] = value
        elif kind == "place" and not ended:
            outcome.places[number] = value
        elif kind in ("raised", "died") and not ended:
            outcome.ended[number] = value
            outcome.places.pop(number, None)

    def is_stuck(self) -> bool:
        """Return whether each rank that goes on has for some time waited for one that waits or has returned."""
        outcome = self.outcome
        going = {rank: place for rank, place in outcome.places.items() if rank not in outcome.returned}
        waiting = [waits.is_held(rank, outcome.places, {*outcome.returned}) for rank in going]
        known = len(going) == outcome.ranks - len(outcome.returned)
        self.rounds = self.rounds + 1 if known and all(waiting) and going == self.before else 0
        self.before = going
        return self.rounds >= STILL


def _printed(way):
    """Have all ranks end, and return what each has printed."""
    way.send(("end",))
    while True:
        message = way.receive(time.monotonic() + START_LIMIT)
        if not message:
            raise EOFError
        if message[0] == "ended":
            way.runs = False
            return message[1]
