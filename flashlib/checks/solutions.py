"""The solutions of the exercises, and what makes functions of them.

Each chapter has a file of them in `chapters`. In it, all after a line `# exercise: name` up to the next one is the
solution of that exercise, as a learner would write it into the cell tagged `stub:name`; it defines `my_name`. What
comes before the first such line are the imports that the chapter has made by then. The notebooks take the text.
"""

import linecache
import re
from functools import cache

from flashlib.checks import chapters

MARK = re.compile(r"^# exercise: (\w+)\n", re.MULTILINE)


@cache
def _sections():
    """Return {exercise: (imports, text)} of all chapters."""
    found = {}
    for path in chapters.files("solutions.py"):
        imports, *sections = MARK.split(path.read_text(encoding="utf-8"))
        for name, text in zip(sections[::2], sections[1::2], strict=True):
            found[name] = imports, text.strip("\n")
    return found


def names():
    """Return the names of the exercises that have a solution."""
    return list(_sections())


def text(name):
    """Return the text of the solution of the exercise `name`."""
    return _sections()[name][1]


def build(name, text):
    """Return the function `my_name` that `text` defines, run after the imports of the solution of `name`."""
    imports, _ = _sections()[name]
    file = f"<{name} {hash(text):x}>"
    source = f"{imports}\n{text}\n"
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)  # Triton and tracebacks read it
    namespace = {"__name__": "__learner__"}
    exec(compile(source, file, "exec"), namespace)
    return namespace[f"my_{name}"]


def solution(name):
    """Return the solution of the exercise `name`, a function."""
    return build(name, text(name))
