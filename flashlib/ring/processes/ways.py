"""The way to the launcher: a process of its own, started once and ended with this one."""

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any

from flashlib.learner import containment, starting
from flashlib.ring.processes import launcher

STEP = 0.2  # seconds: on Windows no interrupt comes while a connection is waited for


@dataclass
class Way:
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


_way: Way | None = None


def to_launcher() -> Way:
    """Return the way to the launcher, which is started if there is none."""
    global _way
    if _way and (_way.owner != os.getpid() or not _way.process.is_alive()):
        close()
    if not _way:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=launcher.serve, args=(there,), name="ranks")
        with starting.without_main():
            process.start()
        there.close()
        _way = Way(os.getpid(), process, here)
        # In place of atexit, which a process that multiprocessing made leaves out: it would wait for the launcher.
        util.Finalize(None, close, exitpriority=100)
    return _way


def close() -> None:
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
