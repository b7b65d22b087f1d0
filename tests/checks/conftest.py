import pytest


class Matrix:
    """What the checks said of solutions and wrong answers in this run."""

    def __init__(self):
        self.solved, self.named = set(), {}

    def accepted(self, exercise):
        self.solved.add(exercise.name)

    def rejected(self, mutant):
        self.named.setdefault(mutant.exercise, []).append(mutant.name)


MATRIX = Matrix()


@pytest.fixture
def matrix():
    return MATRIX


def pytest_terminal_summary(terminalreporter):
    if not MATRIX.named:
        return
    terminalreporter.section("exercises: solution accepted, wrong answers named")
    for name, mutants in MATRIX.named.items():
        solution = "ok" if name in MATRIX.solved else "--"
        terminalreporter.line(f"{name:20} {solution}  {len(mutants):2}  {', '.join(mutants)}")
    total = sum(map(len, MATRIX.named.values()))
    terminalreporter.line(f"{len(MATRIX.solved)} solutions accepted, {total} wrong answers named")
