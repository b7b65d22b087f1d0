"""Code with which an answer breaks flashlib's checks, including later ones in the same process.

The whole text runs in a page, so `outcomes` has its own imports.
"""

SPOILERS = {
    "the code of a function": """
    from flashlib.checks.engine import equality
    equality.same.__code__ = (lambda given, expected, tolerance, size=0.0: True).__code__
""",
    "a method": """
    from flashlib.checks.engine import Verdict
    make = Verdict.__init__
    Verdict.__init__ = lambda self, exercise, outcome, *rest, **more: make(self, exercise, "right", *rest, **more)
""",
    "a table": """
    from flashlib.checks.engine import Verdict, exercises
    object.__setattr__(exercises.EXERCISES["online_step"], "examine", lambda *a: Verdict("", "right", ""))
""",
    "what finds a problem": """
    from flashlib.checks.engine import cases
    cases.find_problem.__code__ = (lambda result, case, outputs=(), nan="": None).__code__
""",
    "a module that a cell has imported": """
    EQUALITY.same.__code__ = (lambda given, expected, tolerance, size=0.0: True).__code__
""",
    "a class of a cell": """
    Spoils().spoil()
""",
}

CELL = """
class Spoils:
    def spoil(self):
        EQUALITY.same.__code__ = (lambda given, expected, tolerance, size=0.0: True).__code__
"""


def outcomes(spoilers, cell):
    """Return {name: [outcome of a wrong answer, of a right one]}, each checked after an answer that spoils."""
    import numpy as np

    from flashlib import checks
    from flashlib.checks.engine import equality, solutions

    found, space = {}, {"__name__": "__main__", "np": np, "EQUALITY": equality}
    exec(cell, space)
    for name, lines in spoilers.items():
        exec(f"def my_online_step(m, l, x_j):{lines}\n    return m, l", space)
        checks.online_step(space["my_online_step"], seed=1)
        exec("def my_online_step(m, l, x_j): return m, l", space)
        wrong = checks.online_step(space["my_online_step"], seed=1)
        right = checks.online_step(solutions.program("online_step").function, seed=1)
        found[name] = [str(wrong.outcome), str(right.outcome)]
    return found
