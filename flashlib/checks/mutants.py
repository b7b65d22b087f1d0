"""Wrong answers, each with the diagnosis that it must get. A test holds that it does.

A mutant is the solution with some of its text exchanged, so that one reads at once what is wrong with it, or a
text of its own where that would hide it.
"""

from dataclasses import dataclass, field
from functools import cache

from flashlib.checks import chapters, solutions


@dataclass(frozen=True)
class Mutant:
    """A wrong answer.

    exercise: whose. name: what is wrong with it, in a few words. diagnosis: a part of the sentence that the check
    must answer. edits: {text of the solution: what stands there instead}, each occurring once. text: in place of
    edits, a whole answer.
    """

    exercise: str
    name: str
    diagnosis: str
    edits: dict[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def source(self):
        """The text of the wrong answer."""
        text = self.text or solutions.text(self.exercise)
        for old, new in self.edits.items():
            if (n := text.count(old)) != 1:
                raise ValueError(f"{self.exercise}, {self.name}: {old!r} is there {n} times, not once")
            text = text.replace(old, new)
        return text.strip("\n")

    @property
    def function(self):
        """The wrong answer."""
        return solutions.build(self.exercise, self.source)


@cache
def all_mutants():
    """Return all Mutants, in the order of the chapters."""
    return [mutant for module in chapters.modules("wrong.py") for mutant in module.MUTANTS]
