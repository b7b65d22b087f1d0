"""The roles of an interpreted kernel: threads, of which one at a time runs up to its next command.

An order picks who goes next: a role, or a unit that completes its work. Its `pick(choices, who)` returns one of
the choices; `flashlib.pipeline.schedules.Chance` is an order too.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from flashlib.pipeline import commands as c
from flashlib.pipeline.deadlock import deadlock
from flashlib.pipeline.multiprocessor import Flight, MultiprocessorState


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
        self.sums = {False: 0, True: 0}  # numbers of the largest sum that a product begins, and adds to
        self.warps: int | None = None  # None: not known, not requested
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
        """Let it run to its next command, or to its end."""
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
    """Ends a thread whose program is abandoned."""


def current() -> Role:
    """Return the running role."""
    return cast(Role, threading.current_thread())


def say(command: object, act: Callable[[], object] | None = None) -> None:
    """Pass a command to the schedule; act: called when a unit completes it."""
    current().say(command, act)


class Order:
    """Picks a unit that has something to complete, else the first (or the last) role that can go on."""

    def __init__(self, last_first: bool) -> None:
        self.last_first = last_first

    def pick(self, choices: Sequence, who: Callable) -> Any:  # noqa: ARG002
        units = [one for one in choices if isinstance(one, Flight)]
        return units[0] if units else choices[-1 if self.last_first else 0]


def played(gl: Any, alike: Role, order: Any) -> None:
    """Run a kernel, which is a role itself or starts others, until all have ended. Raises Fault.

    gl: has `roles`, `barriers`, `slots`, and `said`, which collects the commands of each. order: picks who goes
    next.
    """
    alike.start()
    try:
        alike.go_on()  # to its first command; a kernel that starts roles ends there
    except BaseException:
        alike.join()
        raise
    threads = {role.role: role for role in gl.roles or [alike]}
    state = MultiprocessorState(
        c.Program({name: role.function for name, role in threads.items()}, tuple(gl.barriers), tuple(gl.slots)),
        list(threads),
    )
    for name, thread in threads.items():
        thread.state, gl.said[name] = state, []
    try:
        for role in gl.roles:
            role.start()
            role.go_on()
        _play(gl, threads, state, order)
    finally:
        for thread in threads.values():
            if thread.is_alive():
                thread.given_up = True
                thread.mine.release()
            if thread.ident is not None:  # it was started
                thread.join()


def _play(gl, threads, state, order):
    acts = {}
    while True:
        now = [role for role in threads.values() if role.command is not None]
        choices = [role for role in now if state.may(role.role, role.command)] + state.ready()
        if not choices:
            if now:
                for role in now:
                    gl.said[role.role].append(role.command)
                raise deadlock(state, {role.role: role.command for role in now})
            return
        chosen = order.pick(choices, _who)
        at = {role.role: role.command for role in now}
        if not isinstance(chosen, Role):
            acts.pop(chosen.number)()
            state.complete(chosen, at)
            continue
        gl.said[chosen.role].append(chosen.command)
        if flight := state.do(chosen.role, chosen.command, at):
            acts[flight.number] = chosen.act
        chosen.go_on()
        if chosen.command is None:
            state.end(chosen.role)
            if len(now) == 1:
                state.end_all()


def _who(choice):
    return choice.role if isinstance(choice, Role) else choice.number
