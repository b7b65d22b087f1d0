"""Roles of an interpreted kernel: threads of which one runs at a time, up to its next command."""

import threading
from collections.abc import Callable
from typing import Any, cast


class Role(threading.Thread):
    """A thread that stops at each command until it is told to go on."""

    def __init__(self, name: str, function: Callable, args: tuple) -> None:
        super().__init__(daemon=True)
        self.role, self.function, self.args = name, function, args
        self.command: Any = None
        self.failed: BaseException | None = None
        self.act: Callable[[], object] | None = None
        self.mine, self.theirs, self.products = threading.Semaphore(0), threading.Semaphore(0), []
        self.given_up = False
        self.stored = 0  # numbers, to global memory
        self.warps: int | None = None  # None: not known, and not asked for
        self.state: Any = None

    def run(self) -> None:
        self.mine.acquire()
        try:
            if not self.given_up:
                self.function(*self.args)
        except GivenUp:
            pass
        except BaseException as error:
            self.failed = error
        self.command = None
        self.theirs.release()

    def go_on(self) -> None:
        """Let it run up to its next command, or its end."""
        self.mine.release()
        self.theirs.acquire()
        if self.failed:
            raise self.failed

    def say(self, command: object, act: Callable[[], object] | None) -> None:
        self.command, self.act = command, act
        self.theirs.release()
        self.mine.acquire()
        if self.given_up:
            raise GivenUp


class GivenUp(BaseException):
    """Ends a thread whose program was given up."""


def current() -> Role:
    """Return the role that runs."""
    return cast(Role, threading.current_thread())


def say(command: object, act: Callable[[], object] | None = None) -> None:
    """Hand a command to the schedule; act: what to do when a unit completes it."""
    current().say(command, act)
