"""An answer, its cases and the verdict on it; the names here are for chapters and harnesses."""

from flashlib.checks.engine import random_cases
from flashlib.checks.engine.cases import Case, Finding, Measured, SideFinding, attempt, inspected, raised
from flashlib.checks.engine.diagnosis import diagnose
from flashlib.checks.engine.examination import examine
from flashlib.checks.engine.exercises import exercise
from flashlib.checks.engine.known_mistakes import Known
from flashlib.checks.engine.program import ProgramText, defined, written
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner.process import announce

__all__ = [
    "Case", "Finding", "Known", "Measured", "Outcome", "ProgramText", "SideFinding", "Verdict", "announce",
    "attempt", "defined", "diagnose", "examine", "exercise", "inspected", "raised", "random_cases", "written",
]  # fmt: skip
