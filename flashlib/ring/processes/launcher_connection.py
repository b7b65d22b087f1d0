"""The connection to the launcher, a process that is started once and ends with this one."""

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any

from flashlib.learner import containment, starting
from flashlib.ring.processes import launcher

STEP = 0.2  # seconds: on Windows an interrupt does not end the wait for a message


@dataclass
class LauncherConnection:
    """The connection to a launcher.

    owner: the process that started the launcher; this one may be a fork of it. broken: whether a message is half
    sent or half received, as it is after an interrupt. has_ranks: whether the launcher may have ranks running.
    """

    owner: int
    process: Any
    connection: Connection
    broken: bool = False
    has_ranks: bool = False

    def send(self, message: object) -> None:
        self.broken = True
        self.connection.send(message)
        self.broken = False

    def receive(self, end: float) -> tuple | None:
        """Return a message, or None if none comes until a time."""
        while not self.connection.poll(min(STEP, max(0, end - time.monotonic()))):
            if time.monotonic() >= end:
                return None
        self.broken = True
        message = self.connection.recv()
        self.broken = False
        return message


_connection: LauncherConnection | None = None


def connect() -> LauncherConnection:
    """Return the connection to the launcher; start the launcher if none is running."""
    global _connection
    if _connection and (_connection.owner != os.getpid() or not _connection.process.is_alive()):
        close()
    if not _connection:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=launcher.serve, args=(there,), name="ranks")
        with starting.without_main():
            process.start()
        there.close()
        _connection = LauncherConnection(os.getpid(), process, here)
        # Not atexit, which processes started by multiprocessing skip: they would wait for the launcher forever.
        util.Finalize(None, close, exitpriority=100)
    return _connection


def close() -> None:
    """End the launcher, and with it all that it has started."""
    global _connection
    if not _connection:
        return
    closing, _connection = _connection, None
    closing.connection.close()
    if closing.owner == os.getpid():
        if closing.has_ranks:  # the launcher ends them first
            closing.process.join(containment.END_LIMIT)
        closing.process.kill()
        closing.process.join()
