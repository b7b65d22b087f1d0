"""Checks of the learner's answers: `checks.merge(my_merge)` answers with a Verdict and never raises.

    checks.NAME(my_NAME)       is the answer to an exercise right, and if not, what is the mistake?
    checks.predict(NAME, x)    is a prediction right, and why?
    checks.progress()          which exercises are solved
    python -m flashlib.checks FOLDER   a table of the verdicts in the notebooks of a class
    pytest -p flashlib.checks.compare FOLDER   their notebooks, compared with what the course stores

An answer runs in a process of its own under a time limit; nothing leaves the machine. What a chapter asks is in
`chapters`, a folder for each.
"""

from flashlib.checks.classroom.progress_table import progress
from flashlib.checks.engine import folders
from flashlib.checks.engine.exercises import EXERCISES
from flashlib.checks.engine.prediction import predict

folders.modules("exercises*.py")  # each registers its exercises
__all__ = ["EXERCISES", "predict", "progress", *EXERCISES]  # noqa: PLE0604
globals().update(EXERCISES)  # checks.merge, checks.fa2, ...
