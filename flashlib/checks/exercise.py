"""Exercise: what stands behind `checks.merge(my_merge)`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from flashlib.chapters import chapter
from flashlib.checks import chapters, process, progress_file
from flashlib.checks.verdict import Verdict

LIMIT = 4.0  # seconds for an answer in NumPy or in Triton's interpreter
COMPILED_LIMIT = 60.0  # seconds where kernels are compiled for a GPU

EXERCISES: dict[str, "Exercise"] = {}
"""All exercises by name, in the order of the chapters."""


@dataclass(frozen=True)
class Exercise:
    """An exercise of the course: called with an answer, it returns a Verdict and never raises.

    name: that of the check; a notebook has a cell tagged `exercise:name` with its text and one tagged `stub:name`.
    chapter: the slug of that notebook.
    examine: takes the answer and returns a Verdict without a name; it runs in a process of its own.
    minutes, difficulty: what the text says it takes; difficulty is easy, medium or hard.
    """

    name: str
    chapter: str
    title: str
    minutes: int
    difficulty: str
    examine: Callable

    def __call__(self, answer) -> Verdict:
        """Return the Verdict on an answer, and keep in the progress file that it was right."""
        if not callable(answer):
            given = f"a {type(answer).__name__} was passed"
            return Verdict(self.name, "wrong", f"{given}; pass the function itself, without parentheses")
        try:
            verdict, printed = process.call(_examine, self.name, answer, limit=self._limit())
            verdict = replace(verdict, exercise=self.name, printed=printed, answer=answer)
        except process.NotEnded as error:
            details = (("input", error.at),) if error.at else ()
            verdict = Verdict(self.name, "wrong", error.sentence, details)
        except process.CannotBeSent as error:
            sentence = f"it uses something that cannot be sent to the process that checks it: {error}"
            verdict = Verdict(self.name, "not checked", sentence)
        except RuntimeError as error:
            sentence = "the check itself failed; this is a mistake in the course, not in your answer"
            verdict = Verdict(self.name, "not checked", sentence, (("traceback", str(error)),))
        return progress_file.keep(verdict)

    @property
    def triton(self) -> bool:
        """Whether answers are kernels, or stand beside some."""
        return "triton" in chapter(self.chapter).needs

    @property
    def heading(self):
        """What its text in the notebook starts with."""
        return f"**{self.title}** · {self.minutes} minutes · {self.difficulty}"

    def _limit(self):
        if not self.triton:
            return LIMIT
        from flashlib import kernels

        return LIMIT if kernels.INTERPRETED else COMPILED_LIMIT


def _examine(name, answer):
    return EXERCISES[name].examine(answer)


def exercise(*, title, minutes, difficulty):
    """Return a decorator that makes an Exercise of the function that examines its answers.

    It belongs to the chapter in whose folder that function stands.
    """

    def make(examine):
        slug = chapters.slug_of(examine.__module__)
        made = Exercise(examine.__name__, slug, title, minutes, difficulty, examine)
        EXERCISES[made.name] = made
        return made

    return make
