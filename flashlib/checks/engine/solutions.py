"""The solutions of the exercises, and what makes functions of them.

Each chapter has a file of them in `chapters`, or several, `solutions*.py`. In it, all after a line
`# exercise: name` up to the next one is the solution of that exercise, as a learner would write it into the cell
tagged `stub:name`; it defines `my_name`. What comes before the first such line are the imports that the chapter
has made by then. The notebooks take the text.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property

from flashlib.checks.engine import folders
from flashlib.checks.engine.program import Program

MARK = re.compile(r"^# exercise: (\w+)\n", re.MULTILINE)


@cache
def _sections():
    """Return {exercise: (imports, text)} of all chapters."""
    found = {}
    for path in folders.files("solutions*.py"):
        imports, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, text in zip(sections[::2], sections[1::2], strict=True):
            found[name] = imports, text.strip("\n")
    return found


def names() -> list[str]:
    """Return the names of the exercises that have a solution."""
    return list(_sections())


def text(name: str) -> str:
    """Return the text of the solution of the exercise `name`."""
    return program(name).source


@cache
def program(name: str) -> Program:
    """Return the solution of the exercise `name` as a Program, whose edits are wrong answers; else KeyError."""
    if name not in _sections():
        raise KeyError(
            f"the exercise {name} has no solution: write it below a line `# exercise: {name}` in "
            "flashlib/checks/chapters/NAME/solutions.py, where NAME is a chapter of flashlib/chapters.py"
        )
    imports, solution = _sections()[name]
    return Program(solution, Imported(name, imports))


class Imported(Mapping):
    """The names that a text of imports gives, which is run when the first is asked for: Triton may be missing."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    @cached_property
    def names(self) -> dict:
        found: dict = {}
        exec(compile(self.text, f"<imports of {self.name}>", "exec"), found)
        return found

    def __getitem__(self, name):
        return self.names[name]

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


def build(name: str, text: str) -> Callable:
    """Return the function `my_name` that `text` defines, run after the imports of the solution of `name`."""
    return Program(text, program(name).names).function


def solution(name: str) -> Callable:
    """Return the solution of the exercise `name`, a function."""
    return program(name).function
