"""The solutions of the exercises, as text and as functions.

They are in the files `solutions*.py` of each chapter, in `chapters`. The text between a line `# exercise: name`
and the next such line is the solution of that exercise, as a learner would write it into the cell tagged
`stub:name`; it defines `my_name`. Before the first such line are the imports that the chapter has made by then.
The notebooks contain this text. A solution that calls the solutions of earlier exercises names them in its line,
`# exercise: name, with one and other`.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from flashlib.checks.engine import folders
from flashlib.checks.engine.program import ProgramText

MARK = re.compile(r"^# exercise: (\w+)(?:, with ([\w ]+))?\n", re.MULTILINE)


class Section(NamedTuple):
    """A solution: the imports of its file, its text, and the exercises whose solutions it calls."""

    imports: str
    text: str
    parts: list[str]


@cache
def _sections():
    """Return {exercise: its Section} for all chapters."""
    found = {}
    for path in folders.files("solutions*.py"):
        imports, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, parts, text in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
            found[name] = Section(imports, text.strip("\n"), parts.split(" and ") if parts else [])
    return found


def names() -> list[str]:
    """Return the names of the exercises that have a solution."""
    return list(_sections())


def text(name: str) -> str:
    """Return the text of the solution of the exercise `name`, without the solutions that it calls."""
    program(name)  # raises if the solution is missing
    return _sections()[name].text


def imports(name: str) -> str:
    """Return the imports of the file with the solution of the exercise `name`."""
    program(name)
    return _sections()[name].imports


@cache
def program(name: str) -> ProgramText:
    """Return the solution of the exercise `name`, with those that it calls, as one ProgramText; raises KeyError.

    Its edits are wrong answers.
    """
    if name not in _sections():
        raise KeyError(
            f"the exercise {name} has no solution: write it below a line `# exercise: {name}` in "
            "flashlib/checks/chapters/NAME/solutions.py, where NAME is a chapter of flashlib/chapters.py"
        )
    imports, own, parts = _sections()[name]
    return ProgramText("\n\n\n".join([*(program(part).source for part in parts), own]), Imported(name, imports))


class Imported(Mapping):
    """The names that imports define. They run when the first name is needed, as Triton may be missing."""

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
    """Return the function `my_name` that `text` defines, run after the imports of the solution of `name`.

    It may call the solutions that this solution calls.
    """
    return ProgramText(text, globals_of(name)).function


def globals_of(name: str) -> Mapping:
    """Return the globals of the solution of `name` in its notebook: imports, and the solutions that it calls."""
    parts = {f"my_{part}": program(part).function for part in _sections()[name].parts}
    return {**program(name).names, **parts} if parts else program(name).names


def solution(name: str) -> Callable:
    """Return the solution of the exercise `name`, a function."""
    return program(name).function
