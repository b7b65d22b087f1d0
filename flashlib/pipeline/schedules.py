"""The orders in which things may happen: all of them for a small program, many at random for a larger one.

A schedule is a list of who goes next: a role executes a command, or a unit completes its work. As nobody knows how
long a copy takes or which warp the hardware picks, a program is correct only if it is correct under every
schedule. What a role yields does not depend on the schedule. So a state consists of how far each role is, and of a
`MultiprocessorState`. All states are visited in the order of their distance from the start, so the first fault
found has the shortest schedule.
"""

import gc
import random
from collections.abc import Callable
from contextlib import contextmanager
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.language.phrases import counted
from flashlib.pipeline import commands as c
from flashlib.pipeline.deadlock import deadlock
from flashlib.pipeline.multiprocessor import Flight, MultiprocessorState, PipelineFault, PipelineFaultKind

WAITS = {c.Wait, c.Finish, c.FinishStores}
QUIET = {c.Compute, c.Finish, c.FinishStores}  # that no other role can notice


class Action(NamedTuple):
    """Something that happened: a role's command or, with `flight`, its completion by a unit."""

    role: str
    command: object
    flight: Flight | None = None


class Report(NamedTuple):
    """The result of a search.

    fault: a PipelineFault or None; actions: the schedule that leads to it, including the last action. states: how
    many different states were visited, if every schedule was tried (`all`); else 0. schedules: how many were tried
    at random.
    """

    fault: PipelineFault | None
    actions: list
    states: int
    schedules: int
    all: bool

    def __str__(self):
        if self.fault:
            actions = counted(len(self.actions), "action", "actions")
            return f"{self.fault.kind}, after {actions}: {self.fault.said}"
        how = f"all schedules, {self.states} states" if self.all else f"{self.schedules} random schedules"
        return f"right under {how}"


class Walk:
    """A program in progress: the state, and how many of its commands each role has executed.

    now: {role: its current command, or None}.
    """

    def __init__(self, program, lists=None):
        self.program, self.lists = program, c.expanded(program) if lists is None else lists
        self.at = dict.fromkeys(self.lists, 0)
        self.now = {role: next(iter(commands), None) for role, commands in self.lists.items()}
        self.state = MultiprocessorState(program, self.lists)

    def copy(self) -> "Walk":
        twin = object.__new__(Walk)
        twin.program, twin.lists, twin.state = self.program, self.lists, self.state.copy()
        twin.at, twin.now = self.at.copy(), self.now.copy()
        return twin

    def key(self) -> tuple:
        return (*self.at.values(), *self.state.key())

    def choices(self) -> list[Action]:
        """Return all actions that could happen next; of those that no other role can notice, only one."""
        found, may = [], self.state.may
        for role, command in self.now.items():
            if command is not None and (type(command) not in WAITS or may(role, command)):
                if type(command) in QUIET:
                    return [Action(role, command)]
                found.append(Action(role, command))
        for flight in self.state.ready():
            found.append(Action(flight.role, flight.command, flight))
        return found

    def take(self, action: Action) -> None:
        """Perform an action; raise PipelineFault if it must not happen."""
        role, command, flight = action
        if flight:
            self.state.complete(flight, self.now)
            return
        self.state.do(role, command, self.now)
        self.at[role] += 1
        if self.at[role] < len(self.lists[role]):
            self.now[role] = self.lists[role][self.at[role]]
            return
        self.now[role] = None
        self.state.end(role)
        if all(command is None for command in self.now.values()):
            self.state.end_all()

    def stop(self) -> None:
        """Raise PipelineFault if nothing can happen although a role has not ended."""
        stuck = {role: command for role, command in self.now.items() if command is not None}
        if stuck:
            raise deadlock(self.state, stuck, {role: self.lists[role][self.at[role] :] for role in stuck})


def check(program: c.Program, *, schedules: int = 1000, states: int = 20_000, seed: int = 0) -> Report:
    """Look for a schedule under which a program does what a kernel must never do.

    Every schedule is tried if there are at most `states` states; otherwise that many random schedules. Raises what
    `expanded` raises, and whatever a role raises.
    """
    check_counts(schedules=schedules, states=states, seed=seed)
    lists = c.expanded(program)
    try:
        with _no_garbage():
            return _all(program, lists, states)
    except _TooMany:
        return _random(program, lists, schedules, seed)


class _TooMany(Exception):
    pass


@contextmanager
def _no_garbage():
    """Disable garbage collection: all of the many states are kept, and Python would scan them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _all(program, lists, most):
    start = Walk(program, lists)
    before = {start.key(): None}  # the state that led to each, and the action
    layer = [(start.key(), start)]
    while layer:
        following = []
        for key, walk in layer:
            choices = walk.choices()
            try:
                if not choices:
                    walk.stop()
                for action in choices:
                    last, then = action, walk if action is choices[-1] else walk.copy()
                    then.take(action)
                    if (reached := then.key()) not in before:
                        before[reached] = key, action
                        following.append((reached, then))
            except PipelineFault as fault:
                tail = [last] if choices else []
                return Report(fault, _path(before, key) + tail, len(before), 0, True)
            if len(before) > most:
                raise _TooMany
        layer = following
    return Report(None, [], len(before), 0, True)


def _path(before, key):
    actions = []
    while before[key] is not None:
        key, action = before[key]
        actions.append(action)
    return actions[::-1]


def _random(program, lists, schedules, seed):
    numbers = random.Random(seed)
    for n in range(schedules):
        chance = Chance(numbers)
        actions, fault = played(Walk(program, lists), lambda choices, chance=chance: chance.pick(choices, _who))
        if fault:
            return Report(*_shorter(program, lists, actions, fault)[::-1], 0, n + 1, False)
    return Report(None, [], 0, schedules, False)


def _who(action):
    return action.flight.number if action.flight else action.role


class Chance:
    """Picks who goes next in one schedule: the one with the highest priority.

    Roles and work in flight have random priorities, which now and then change for the one that goes. So some
    copies come very late and some roles run far ahead, which would almost never happen with a fair choice each
    time. Source: Burckhardt and others, A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs
    (2010).
    """

    def __init__(self, numbers, change=0.1):
        self.numbers, self.change, self.priorities = numbers, change, {}

    def pick(self, choices: list[Action], who: Callable[[Action], object]) -> Action:
        """Return one of the choices. who: a function that returns whom a choice belongs to."""
        highest, chosen = -1.0, choices[0]
        for choice in choices:
            priority = self.priorities.setdefault(who(choice), self.numbers.random())
            if priority > highest:
                highest, chosen = priority, choice
        if self.numbers.random() < self.change:
            del self.priorities[who(chosen)]
        return chosen


def played(walk: Walk, pick: Callable[[list[Action]], Action]) -> tuple[list[Action], PipelineFault | None]:
    """Return the actions of one schedule, in which `pick` chooses what happens next, and its fault or None."""
    actions = []
    try:
        while choices := walk.choices():
            actions.append(pick(choices))
            walk.take(actions[-1])
        walk.stop()
    except PipelineFault as fault:
        return actions, fault
    return actions, None


def _shorter(program, lists, actions, fault):
    """Return a schedule that leads to the same kind of fault, without unnecessary actions, and its PipelineFault.

    That PipelineFault may be about a different tile than the first one. A deadlock needs its whole schedule.
    """
    if fault.kind in (PipelineFaultKind.DEADLOCK, PipelineFaultKind.LEFT_BEHIND):
        return actions, fault
    size = len(actions) // 2
    while size:
        at = 0
        while at < len(actions):
            found, other = _replayed(program, lists, actions[:at] + actions[at + size :])
            if other and (other.kind, other.role) == (fault.kind, fault.role):
                actions, fault = found, other
            else:
                at += size
        size //= 2
    return actions, fault


def _replayed(program, lists, wanted):
    """Return the possible actions of a schedule, up to the first PipelineFault, and that PipelineFault or None."""
    walk, done = Walk(program, lists), []
    try:
        for action in wanted:
            now = next((choice for choice in walk.choices() if _same(choice, action)), None)
            if now:
                done.append(now)
                walk.take(now)
    except PipelineFault as fault:
        return done, fault
    return done, None


def _same(one, other):
    """Return whether two actions are the same; flights are numbered anew in each schedule."""
    return one[:2] == other[:2] and (one.flight is None) == (other.flight is None)
