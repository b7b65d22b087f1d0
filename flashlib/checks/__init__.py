"""Checks of the learner's answers: `checks.merge(my_merge)` returns a Verdict and never raises.

    checks.NAME(my_NAME)       is the answer to an exercise right, and if not, what is the mistake?
    checks.predict(NAME, x)    is a prediction right, and why?
    checks.progress()          which exercises are solved
    python -m flashlib.checks FOLDER   a table of the verdicts in the notebooks of a class
    pytest -p flashlib.checks.compare FOLDER   their notebooks, compared with what the course stores

An answer runs in a separate process under a time limit; nothing leaves the machine. The exercises and questions
of each chapter are in a folder of `chapters`.
"""

from collections.abc import Callable

from flashlib import earlier
from flashlib.checks.classroom.progress_table import progress
from flashlib.checks.engine import folders
from flashlib.checks.engine.exercises import EXERCISES, gone
from flashlib.checks.engine.prediction import predict

folders.modules("exercises*.py")  # each registers its exercises
__all__ = ["EXERCISES", "predict", "progress", *EXERCISES]  # noqa: PLE0604
globals().update(EXERCISES)  # checks.merge, checks.fa2, ...


def __getattr__(name: str) -> Callable:
    """Return what answers for an exercise that went: a notebook from before still calls `checks.NAME`."""
    if name in earlier.GONE:
        return lambda *answer, **options: gone(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
