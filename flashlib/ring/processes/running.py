"""Run a function on several ranks, from a notebook or a script, and under torchrun on those that are there."""

import atexit
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from flashlib.learner import containment, pickling, starting
from flashlib.ring.processes import joined, launcher, told, values
from flashlib.ring.processes import rank as one_rank

START_LIMIT = 120  # seconds for the launcher to import what is needed, and for the ranks to join
GRACE = 0.5  # seconds for further ranks to fail too, after the first
MOST = 64  # ranks: each is a process
PATIENCE = 0.9  # the part of the run's limit after which a rank that waits for another gives up
STEP = 0.2  # seconds: on Windows no interrupt comes while a connection is waited for
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
    job = launcher.Job(parcel, ranks or 4, PATIENCE * seconds, backend, tuple(modules), METHOD, *around)
    with _one_at_a_time:
        outcome, printed = _outcome(job, seconds)
    _show(printed)
    if len(outcome.returned) < outcome.ranks:
        raise told.failure(outcome)
    return [values.unpack(outcome.returned[number]) for number in range(outcome.ranks)]


_one_at_a_time = threading.Lock()


def _outcome(job, seconds):
    """Return the Outcome of a run and what each rank has printed."""
    way = _launcher()
    try:
        way.runs = True
        way.send(job)
        outcome = _attended(way, told.Outcome(job.ranks, seconds, {}, {}, {}))
        return outcome, _printed(way)
    except (EOFError, OSError) as error:
        _end_launcher()
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
        _end_launcher()


def _show(printed):
    for number, text in enumerate(printed):
        for line in text.splitlines():
            print(f"rank {number} | {line}")


def _attended(way, outcome):
    """Return the Outcome of a run, complete once all have returned or have failed, or time is up.

    Time counts once all have joined. After the first failure others have a moment to tell of theirs, or where they
    stand.
    """
    end, asked, joined = time.monotonic() + START_LIMIT, False, 0
    while len(outcome.returned) + len(outcome.ended) < outcome.ranks:
        message = way.receive(end)
        if message and message[2:3] == ("joined",):
            joined += 1
            if joined == outcome.ranks and not asked:
                end = time.monotonic() + outcome.seconds
        elif message and message[0] == "failed":
            raise RuntimeError(f"the ranks could not be started:\n{message[1]}")
        elif message:
            _enter(outcome, *message[1:])
        elif asked:
            break
        if not asked and (not message or outcome.ended):
            way.send(("where",))
            end, asked = time.monotonic() + GRACE, True
    return outcome


def _enter(outcome, number, kind, value):
    """Enter what a rank has sent; of its first word on its end, as it dies after that when all is over."""
    if kind == "place":
        outcome.places.setdefault(number, value)
    elif kind == "returned":
        outcome.returned[number], outcome.places[number] = value
    elif number not in outcome.ended and number not in outcome.returned:
        outcome.ended[number] = value
        outcome.places.pop(number, None)


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


@dataclass
class _Way:
    """The way to a launcher.

    owner: the process that has started it, of which this one may be a fork. amid: whether a message is half sent
    or half received, which an interrupt leaves so. runs: whether there may be ranks.
    """

    owner: int
    process: Any
    connection: Connection
    amid: bool = False
    runs: bool = False

    def send(self, message: object) -> None:
        self.amid = True
        self.connection.send(message)
        self.amid = False

    def receive(self, end: float) -> tuple | None:
        """Return a message, or None if none comes until a time."""
        while not self.connection.poll(min(STEP, max(0, end - time.monotonic()))):
            if time.monotonic() >= end:
                return None
        self.amid = True
        message = self.connection.recv()
        self.amid = False
        return message


_way: _Way | None = None


def _launcher():
    """Return the way to the launcher, which is started if there is none."""
    global _way
    if _way and (_way.owner != os.getpid() or not _way.process.is_alive()):
        _end_launcher()
    if not _way:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=launcher.serve, args=(there,), name="ranks")
        with starting.without_main():
            process.start()
        there.close()
        _way = _Way(os.getpid(), process, here)
    return _way


@atexit.register
def _end_launcher():
    """End the launcher, and with it what it has started."""
    global _way
    if not _way:
        return
    way, _way = _way, None
    way.connection.close()
    if way.owner == os.getpid():
        if way.runs:  # it ends the ranks first
            way.process.join(containment.END_LIMIT)
        way.process.kill()
        way.process.join()
