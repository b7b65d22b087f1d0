"""Roles that a learner writes: the check explains any mistake in words, and plays the run that goes wrong."""

import inspect
import re
from functools import reduce
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cloudpickle")

from flashlib import checks  # noqa: E402
from flashlib.checks.chapters.roles import exercises, questions  # noqa: E402
from flashlib.checks.engine import ProgramText, random_cases, solutions  # noqa: E402
from flashlib.checks.harness import roles  # noqa: E402
from flashlib.pipeline import Wait  # noqa: E402
from tests.checks import answers  # noqa: E402

ROLES = ("producer", "consumer", "in_turns", "overlapped")
MINE = [answer for answer in answers.right() if answer.exercise in ROLES]
MINE += [answers.Answer(name, "", "solution", solutions.program(name)) for name in ROLES]
TASKS = {  # RoleTasks, and arguments of a program
    "producer": (exercises.PRODUCER, (2, 1, 1)),
    "consumer": (exercises.CONSUMER, (2, 1, 1)),
    "in_turns": (exercises.TURNS, (2, 2)),
    "overlapped": (exercises.OVERLAPPED, (2, 1, 1)),
}
BODIES = {  # of an answer that is not a right role, and the mistake that must be named
    "no_generator": ("return 3", "return [1, 2]", "return lambda: iter([])", "return None"),
    "yields_nothing": ("yield from ()", "return iter([])"),
    "endless": ("while True: yield Finish()", "import itertools; yield from itertools.repeat(Finish(0))"),
    "no_command": (
        "yield 1", "yield None", "yield Finish", "yield Finish(-1)", "yield Finish('all')", "yield Arrive(3)",
        "yield Wait(None, 0)", "yield Product('S0', 7, 1)", "yield Product('S0', (), float('nan'))",
        "yield Product('S0', (), 1, ('S9',))", "yield (Finish() for _ in range(3))",
    ),
    "raises": (
        "yield Wait(1)", "yield Finish(); raise OSError", "raise KeyError('s')", "yield Unprintable()",
        "yield Finish(Unprintable())",
    ),
}  # fmt: skip


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


def answer_of(name, body):
    """Return an answer to the exercise `name` that accepts any arguments."""
    names = {**solutions.program(name).names, "Unprintable": Unprintable}
    return ProgramText(f"def my_{name}(*arguments):\n    {body}", names).function


def examined(name, answer, seed=4711):
    """Return the Verdict of a check that runs in this process."""
    random_cases.use(seed)
    exercise = checks.EXERCISES[name]
    return exercise.examine(answer, exercise.known)


# "few" are the last two of each mistake, and the objects that are not commands.
CASES = [
    ("few" if body in (*bodies[-2:], "yield 1") else "all", id, body)
    for id, bodies in BODIES.items()
    for body in bodies
]


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize("amount, mistake, body", CASES)
def test_an_answer_that_is_not_a_role_is_explained(name, amount, mistake, body):
    verdict = examined(name, answer_of(name, body))
    assert (verdict.outcome, verdict.mistake) == ("wrong", mistake), f"\n{verdict}"
    assert "{" not in repr(verdict)


@pytest.mark.parametrize("name", ROLES)
def test_a_stub_is_not_solved_yet(name):
    assert examined(name, answer_of(name, "raise NotImplementedError")).outcome == "not solved yet"
    assert examined(name, answer_of(name, "yield Finish(); raise NotImplementedError")).outcome == "not solved yet"


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("answer", MINE, ids=lambda a: f"{a.exercise}-{a.words}".replace(" ", "_"))
def test_a_right_answer_is_right_whatever_is_drawn(answer, amount):
    """Each answer is checked with five of twenty seeds, and an exercise with all; "few": one seed each."""
    task, _ = TASKS[answer.exercise]
    known = checks.EXERCISES[answer.exercise].known
    place = [other for other in MINE if other.exercise == answer.exercise].index(answer)
    for seed in range(place % 4, {"few": 4, "all": 20}[amount], 4):
        random_cases.use(seed)
        verdict = roles.examine(answer.program.function, [], known, task)
        assert verdict.outcome == "right", f"seed {seed}:\n{verdict}"


def test_a_drawn_program_that_is_wrong_is_shown_with_its_seed():
    task, _ = TASKS["producer"]
    known = checks.EXERCISES["producer"].known
    random_cases.use(4711)
    wrong = known.program.edited("for g in range(n + 1):").function
    verdict = roles.examine(wrong, [], known, task)
    assert verdict.mistake == "one_more" and dict(verdict.details)["program"].endswith("(drawn with seed 4711)")


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("name", ROLES)
def test_the_same_seed_draws_the_same_cases(name):
    def arguments(seed):
        seen = []

        def look(*given):
            seen.append(re.sub(r" at 0x\w+", "", repr(given)))
            yield from solutions.solution(name)(*given)

        assert examined(name, look, seed).right
        return seen

    one, other = arguments(1), arguments(2)
    assert arguments(1) == one and one != other


@pytest.mark.parametrize("name", ROLES)
def test_a_fault_is_played(name):
    barrier = "arguments[3][0]" if name == "in_turns" else "arguments[1].full[0]"
    body = f"yield Finish(); yield Wait({barrier}, 0); yield Wait({barrier}, 1)"
    verdict = examined(name, answer_of(name, body))
    assert verdict.mistake == "deadlock" and "schedule" in dict(verdict.details), f"\n{verdict}"
    player = verdict.run.play(answer_of(name, body))
    assert "deadlock" in repr(player)


def test_the_end_of_a_long_schedule_is_listed():
    actions = [SimpleNamespace(role="producer", command=n, flight=n % 2 or None) for n in range(roles.SHOWN + 3)]
    first, *others = roles.schedule_text(actions).splitlines()
    assert first == "..." and len(others) == roles.SHOWN and others[0].startswith("4. producer: done: ")
    assert roles.schedule_text(actions[1:3]) == "1. producer: done: the number 1\n2. producer: the number 2"


@pytest.mark.parametrize("name", ROLES)
def test_a_right_program_is_played_as_it_runs(name):
    player = roles.PlayedRoles(*TASKS[name]).play(solutions.solution(name))
    assert "deadlock" not in repr(player)


def test_a_verdict_from_another_process_plays_its_fault(monkeypatch):
    pytest.importorskip("anywidget")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    answer = solutions.program("consumer").edited("yield Arrive(v.empty[t]) -> pass").function
    verdict = checks.consumer(answer, seed=4711)
    assert verdict.mistake == "no_release_V"
    assert "deadlock" in repr(verdict.play()) and shown == [verdict]


def test_nothing_is_played_where_there_is_no_program():
    verdict = checks.producer(answer_of("producer", "yield 1"), seed=4711)
    assert verdict.mistake == "no_command" and verdict.run is None and verdict.play() is verdict


def test_numbers_of_numpy_are_shown_as_numbers():
    wait = Wait("full 0", np.int64(1))
    assert roles.command_text(wait) == roles.command_text(Wait("full 0", 1)) == "Wait('full 0', 1)"
    assert roles.command_text(Wait("full 0", np.arange(2))).startswith("Wait('full 0', array(")
    known = checks.EXERCISES["producer"].known
    task, _ = TASKS["producer"]
    counted = known.program.function

    def answer(*arguments):
        for command in counted(*arguments):
            yield command._replace(phase=np.int64(command.phase)) if isinstance(command, Wait) else command

    random_cases.use(0)
    assert roles.examine(answer, [(2, 1, 1)], known, task).outcome == "right"


def test_each_mend_of_the_faulty_consumer_changes_the_verdict():
    """In whatever order its three lines are mended, as lines of the loop."""
    mends = {
        "Q": ("q.full[0], g % 2", "q.full[0], 0"),
        "V": ("v.full[t], g // len(k.slots)", "v.full[t], g // len(v.slots)"),
        "Finish": ("Finish(1)", "Finish()"),
    }
    text = inspect.getsource(questions.faulty_consumer).replace("faulty_consumer", "my_consumer")
    text = f"from collections.abc import Callable, Iterator\nfrom typing import Any\n{text}"
    named = {}
    for size in range(len(mends) + 1):
        for mended in combinations(mends, size):
            program = reduce(lambda so_far, name: so_far.replace(*mends[name]), mended, text)
            verdict = examined("consumer", ProgramText(program, solutions.program("consumer").names).function)
            named[frozenset(mended)] = verdict.mistake
    rows = checks.EXERCISES["consumer"].known.mistakes()
    edits = {row.id for row in rows if row.ways}
    for mended, mistake in named.items():
        assert (mistake in edits) == (len(mended) < len(mends)), (mended, mistake)
        assert all(named[mended - {one}] != mistake for one in mended), mended
