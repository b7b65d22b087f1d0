"""Roles of a pipeline that a learner writes: generators of commands, run together with the course's other roles.

The commands of a role do not depend on when it runs, so an answer is represented by the list of its commands,
which also identifies known mistakes. It is right if its program is right under every schedule, or under many
random ones if there are too many, and if it does all of its work.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flashlib.checks.engine import Known, Outcome, Verdict, announce, diagnose, random_cases
from flashlib.checks.engine.cases import UNSOLVED, Case, Finding, Tried, attempt
from flashlib.checks.engine.diagnosis import is_found
from flashlib.checks.engine.value_text import describe_value
from flashlib.learner.error_text import cut
from flashlib.pipeline import Compute, PipelineFault, Program, commands, run, schedules

if TYPE_CHECKING:
    from flashlib.widgets import PipelinePlayer

NOTHING = Compute("nothing", "fma", 0)  # stands for a role that yields nothing
MOST = 2000  # commands of a role
SEARCH = {"states": 1500, "schedules": 60}
SHOWN = 12  # actions of a schedule: the last ones
SLOW = 1.1  # relative to the time of the solution, at the speeds of the units


def _as_it_is(program: Program, found: Finding) -> Finding:  # noqa: ARG001
    return found


class RoleTask(NamedTuple):
    """The requirements for the roles of an answer.

    program: takes the answer and the arguments of a case, plain values, and returns the Program with its roles.
    names: of the arguments. drawn: for random cases, the lower bounds of the arguments and the exclusive upper
    bounds. work: takes the fixed Program and the arguments, and raises Finding unless all work is done; None: the
    other roles check that. cause: takes the fixed Program and the Finding of a schedule, and returns the Finding
    about its cause. All are module-level functions, so that a Verdict can be pickled.
    """

    program: Callable[..., Program]
    names: tuple
    drawn: tuple
    work: Callable[..., None] | None = None
    cause: Callable[[Program, Finding], Finding] = _as_it_is

    def model(self, answer: Callable) -> Callable[..., str]:
        """Return a function of a case's arguments that returns the commands of an answer's program, as text."""
        return lambda *arguments: program_text(fixed(self.program(answer, *arguments)))

    def words(self, arguments: tuple) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(self.names, arguments, strict=True))


def examine(answer: Callable, cases: Sequence[tuple], known: Known, task: RoleTask) -> Verdict:
    """Return the Verdict on an answer; cases: a tuple of arguments for each, the smallest first."""

    def draw(rng):
        return Case("", tuple(map(int, rng.integers(*task.drawn))), None)

    cases = [Case("", one, None) for one in cases] + random_cases.cases(draw)
    right = [fixed(task.program(known.program.function, *case.arguments)) for case in cases]
    cases = [case._replace(expected=program_text(program)) for case, program in zip(cases, right, strict=True)]
    shown: Any = None  # the first wrong case
    tried, schedule = [], []  # its schedule
    for case, solution in zip(cases, right, strict=True):
        announce(task.words, case.arguments)
        result = attempt(lambda case=case: _looked_at(fixed(task.program(answer, *case.arguments))))
        if result is UNSOLVED:
            return Verdict("", Outcome.NOT_SOLVED, "")
        problem, actions = result, []
        if not isinstance(result, Finding):
            program, result, problem = result
            if not problem:
                problem, actions = _fault(program, case.arguments, task, solution)
        tried.append(Tried(case, result, problem))
        if problem and shown is None:
            shown, schedule = tried[-1], actions
        if is_found(tried[-1]):  # then no known mistake is tried
            break
    if shown is None:
        return Verdict("", Outcome.RIGHT, f"in all {len(cases)} programs, under every schedule that was tried")
    if all(isinstance(one.result, str) and f": {command_text(NOTHING)}" in one.result for one in tried):
        return known.wrong("yields_nothing")
    verdict, arguments = diagnose(known, tried) or known.verdict(shown.problem), shown.case.arguments
    details = [("program", task.words(arguments) + shown.case.words)]
    details += [("schedule", schedule_text(schedule))] if schedule else []
    can_run = shown.problem.id != "no_command" and not isinstance(shown.result, Finding)
    return replace(verdict, details=tuple(details), run=PlayedRoles(task, arguments) if can_run else None)


class PlayedRoles(NamedTuple):
    """A run that a Verdict can play: an answer's program for these arguments."""

    task: RoleTask
    arguments: tuple

    def play(self, answer: Callable) -> "PipelinePlayer":
        """Return a PipelinePlayer of the schedule that goes wrong, if there is one."""
        from flashlib.widgets import PipelinePlayer  # here: checks do not need widgets

        program = fixed(self.task.program(answer, *self.arguments))
        report = schedules.check(program, **SEARCH)
        return PipelinePlayer(program, report=report if report.fault else None)


def fixed(program: Program) -> Program:
    """Return a program whose roles replay the commands that they yield now; raise Finding if one cannot."""
    lists = {role: _listed(make) for role, make in program.roles.items()}
    return program._replace(roles={role: partial(iter, found) for role, found in lists.items()})


def _listed(make):
    given = make()
    if not hasattr(given, "__next__"):
        raise Finding("no_generator", given="nothing" if given is None else describe_value(given))
    found = list(islice(given, MOST + 1)) or [NOTHING]
    if len(found) > MOST:
        raise Finding("endless", n=MOST)
    return found


def program_text(program: Program) -> str:
    """Return all commands of a fixed program, one on each line."""
    return "\n".join(f"{role}: {command_text(one)}" for role, make in program.roles.items() for one in make())


def _looked_at(program):
    """Return a fixed program, its text, and a Finding if a command is invalid, else None.

    Objects that an answer yields may raise when they are inspected.
    """
    found = None
    try:
        commands.expanded(program)
    except (TypeError, ValueError) as error:
        found = Finding("no_command", said=cut(str(error)))
    return program, program_text(program), found


def command_text(command: object) -> str:
    """Return a command as Python code, or a description of anything else."""
    if not isinstance(command, commands.COMMANDS):
        return describe_value(command)
    values = [value.item() if isinstance(value, np.generic) else value for value in command]
    defaults = command._field_defaults
    while values and _is_default(values[-1], defaults.get(command._fields[len(values) - 1], _REQUIRED)):
        values.pop()
    return f"{type(command).__name__}({', '.join(map(repr, values))})"


_REQUIRED = object()


def _is_default(value, default) -> bool:
    return type(value) is type(default) and value == default


def _fault(program, arguments, task, solution):
    """Return what is wrong with a program, a Finding or None, and the schedule that shows it, or []."""
    report = schedules.check(program, **SEARCH)
    if report.fault:
        return task.cause(program, _finding(report.fault)), report.actions
    try:
        if task.work:
            task.work(program, *arguments)
        times = run(program).clocks / run(solution).clocks
    except Finding as found:
        return found, []
    except PipelineFault as fault:  # which did not occur in the schedules that were tried
        return _finding(fault), []
    return (Finding("slow", times=f"{times:.2f}") if times > SLOW else None), []


def _finding(fault):
    return Finding(fault.kind.id, said=fault.said)


def schedule_text(actions: list) -> str:
    """Return the end of a schedule as text, one action on each line."""
    lines = [
        f"{n}. {a.role}: {command_text(a.command) if a.flight is None else f'done: {command_text(a.command)}'}"
        for n, a in enumerate(actions, start=1)
    ]
    return "\n".join((["..."] if len(lines) > SHOWN else []) + lines[-SHOWN:])
