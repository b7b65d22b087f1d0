"""An answer, its cases, and the verdict on it; what chapters and harnesses take of it stands here."""

from flashlib.checks.engine import random_cases
from flashlib.checks.engine.cases import Beside, Case, Finding, Measured, attempt, noted, raised
from flashlib.checks.engine.diagnosis import diagnose
from flashlib.checks.engine.examination import examine
from flashlib.checks.engine.exercises import exercise
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.program import Program, defined, written
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner.process import announce

__all__ = [
    "Beside", "Case", "Finding", "Known", "Measured", "Outcome", "Program", "Verdict", "announce", "attempt",
    "defined", "diagnose", "random_cases", "examine", "exercise", "noted", "raised", "written",
]  # fmt: skip
