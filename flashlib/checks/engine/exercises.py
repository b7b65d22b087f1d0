"""Exercise: the object behind `checks.merge(my_merge)`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from numbers import Integral

from flashlib.chapters import NEEDS, chapter
from flashlib.checks.engine import (
    compiling,
    folders,
    mistake_tables,
    progress_file,
    random_cases,
    solutions,
)
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.program import ProgramText, out_of_reach, written
from flashlib.checks.engine.value_text import describe_value, show
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.earlier import GONE
from flashlib.learner import process
from flashlib.learner.pickling import CannotBeSent
from flashlib.learner.stubs import is_stub

LIMIT = 4.0  # seconds of computing for an answer in NumPy or in Triton's interpreter, by default
COMPILED_LIMIT = 60.0  # seconds where kernels are compiled for a GPU

EXERCISES: dict[str, "Exercise"] = {}
"""All exercises by name, in the order of the chapters."""


@dataclass(frozen=True)
class Exercise:
    """An exercise of the course: called with an answer, it returns a Verdict and never raises.

    name: the name of the check; a notebook has a cell tagged `exercise:name` with the text of the exercise, and
    one tagged `stub:name`. chapter: the slug of that notebook.
    examine: takes the answer and a Known, and returns a Verdict without a name; it runs in a separate process.
    known: a Known, whose table has the name of the exercise.
    minutes, difficulty: as the text gives them; difficulty is easy, medium or hard. limit: seconds of computing
    when nothing is compiled; None: LIMIT. optional: whether its section is. needs: keys of
    `flashlib.chapters.NEEDS` without which it cannot be checked, while others of its chapter can.
    """

    name: str
    chapter: str
    title: str
    minutes: int
    difficulty: str
    examine: Callable
    known: Known
    limit: float | None = None
    optional: bool = False
    needs: tuple[str, ...] = ()

    def __call__(self, answer, seed=None) -> Verdict:
        """Return the Verdict on an answer; if it is right, record that in the progress file.

        seed: a whole number from 0, for the cases that are drawn at random; by default it is drawn too.
        """
        return progress_file.record(self._verdict(answer, random_cases.new_seed() if seed is None else seed))

    def _verdict(self, answer, seed):
        if not callable(answer):
            return replace(self.known.wrong("no_function", given=describe_value(answer)), exercise=self.name)
        if not isinstance(seed, Integral) or seed < 0:
            sentence = f"seed is {show(seed)}; pass a whole number from 0, or none"
            return Verdict(self.name, Outcome.NOT_CHECKED, sentence)
        if is_stub(answer):
            return Verdict(self.name, Outcome.NOT_SOLVED, "", answer=answer)
        if obstacles := self.obstacles():
            return Verdict(self.name, Outcome.NOT_CHECKED, obstacles[0])
        verdict = self.judged(_examine, self.name, answer, seed)
        return replace(compiling.compiled(verdict).printable(), answer=answer)

    def judged(self, function: Callable, *arguments: object) -> Verdict:
        """Return the Verdict that a function returns when run in a separate process; never raises."""
        return replace(self._judged(function, *arguments), exercise=self.name).printable()

    def _judged(self, function, *arguments):
        try:
            verdict, printed = process.call(function, *arguments, limit=self._limit())
            if not (isinstance(verdict, Verdict) and verdict.is_sound()):
                return Verdict("", Outcome.WRONG, process.INVALID_DATA, mistakes=("not_ended",))
            return replace(verdict, printed=printed)
        except process.RaisedByAnswer as error:
            return self.known.wrong("raises", error=error)
        except process.NotEnded as error:
            details = (("input", error.at),) if error.at else ()
            return Verdict("", Outcome.WRONG, error.sentence, details, mistakes=("not_ended",))
        except CannotBeSent as error:
            sentence = f"it uses something that cannot be sent to the process that checks it: {error}"
            return Verdict("", Outcome.NOT_CHECKED, sentence)
        except OSError as error:
            return Verdict("", Outcome.NOT_CHECKED, f"the process that checks it cannot start: {error}")
        except RuntimeError as error:
            sentence = "the check itself failed; this is a mistake in the course, not in your answer"
            return Verdict("", Outcome.NOT_CHECKED, sentence, (("traceback", str(error)),))

    def obstacles(self) -> list[str]:
        """Return why it cannot be checked on this machine, as a sentence for each missing need; [] if it can."""
        return [NEEDS[need].otherwise for need in self.needs if not NEEDS[need].is_here()]

    @property
    def triton(self) -> bool:
        """Whether answers are kernels or launch them."""
        of_it = chapter(self.chapter)
        return "triton" in of_it.needs + of_it.more_needs * self.optional

    @property
    def on_route(self) -> bool:
        """Whether the exercise is on the route."""
        return chapter(self.chapter).on_route and not self.optional

    @property
    def heading(self) -> str:
        """The beginning of its text in the notebook."""
        return f"### Exercise: {self.title}\n\n*{self.minutes} minutes · {self.difficulty}*"

    def _limit(self):
        limit = self.limit or LIMIT
        if not self.triton or find_spec("triton") is None:  # the chapter's exercises in NumPy do not need it
            return limit
        from flashlib import kernels

        return limit if kernels.INTERPRETED else COMPILED_LIMIT


def _examine(name, answer, seed):
    """Return the Verdict, with the launches that are still to be compiled."""
    with compiling.noting():
        return compiling.with_launches(_examined(name, answer, seed))


def _examined(name, answer, seed):
    random_cases.use(seed)
    exercise = EXERCISES[name]
    run = out_of_reach(answer)
    if run is not answer:  # a verdict uses the exercise's names of the arguments, whatever the answer calls them
        twin = solutions.build(name, solutions.text(name))  # the solution itself must stay out of reach
        run.__signature__ = inspect.signature(twin)
    return exercise.examine(run, exercise.known)


def examine_answer(name: str, answer: object, seed: int) -> Verdict:
    """Return the Verdict on an answer, examined in this process; its launches are not compiled."""
    if not callable(answer):
        return EXERCISES[name].known.wrong("no_function", given=describe_value(answer))
    return _examined(name, answer, seed)


def gone(name: str) -> Verdict:
    """Return the Verdict on any answer to an exercise that went, which says where it is now."""
    now = EXERCISES[GONE[name]]
    sentence = f"{name} is no exercise of its own any more; checks.{now.name}, in {now.chapter}, took its place"
    return Verdict(name, Outcome.NOT_CHECKED, sentence)


def exercise(
    *, title: str, minutes: int, difficulty: str, program: ProgramText | Callable[..., ProgramText] = written,
    variants: tuple[str, ...] = (), model: Callable | None = None, limit: float | None = None,
    optional: bool = False, needs: tuple[str, ...] = (),
) -> Callable[[Callable], Exercise]:  # fmt: skip
    """Return a decorator that turns the function that examines answers into an Exercise.

    The exercise belongs to the chapter in whose folder that function is defined. program: the right ProgramText,
    whose edits are the known mistakes; or a function that makes it from the text at the top of the table of
    mistakes. With neither, the program of an exercise in NumPy is its solution. variants, model: see Known. limit,
    optional, needs: see Exercise.
    """

    def make(examine):
        name, slug = examine.__name__, folders.slug_of(examine.__module__)
        if name not in mistake_tables.tables():
            raise ValueError(
                f"the exercise {name} has no table [{name}] of its mistakes: write one in mistakes.txt"
            )
        right = program if isinstance(program, ProgramText) else None
        if text := mistake_tables.tables()[name].program:
            right = program(text)
        elif right is None and "triton" not in chapter(slug).needs:
            right = solutions.program(name)
        known = Known(name, right, variants, model)
        EXERCISES[name] = Exercise(name, slug, title, minutes, difficulty, examine, known, limit, optional, needs)
        return EXERCISES[name]

    return make
