"""The known mistakes of an exercise, and how they are tried."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from flashlib.checks.engine.cases import Finding
from flashlib.checks.engine.mistake_tables import Mistake, table
from flashlib.checks.engine.program import ProgramText
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.language.texts import say_value


@dataclass(frozen=True)
class Known:
    """The known mistakes of an exercise.

    table: the name of its table of mistakes. program: the right ProgramText; a mistake is an edit of it. variants:
    edits of the program that are not mistakes, or a common one; mistakes are tried together with each of them too.
    model: turns the function of a program into a function of a case's arguments; not needed if it is one. guesses:
    further Mistakes, derived from the answer's results.
    """

    table: str
    program: Any = None
    variants: Iterable[str] = ()
    model: Any = None
    guesses: tuple[Mistake, ...] = ()

    def mistakes(self) -> tuple[Mistake, ...]:
        """Return the Mistakes in its table, in order, and the guesses."""
        return (*table(self.table).values(), *self.guesses)

    def sentence(self, id: str, **fields: Any) -> str:
        """Return the sentence of a row; raises KeyError if there is no such row."""
        sentence = table(self.table)[id].sentence
        return sentence.format(**{name: say_value(x) for name, x in fields.items()}) if fields else sentence

    def wrong(self, id: str, *details: tuple[str, str], **fields: Any) -> Verdict:
        """Return the Verdict for a row, with details; fields: the row's."""
        return Verdict("", Outcome.WRONG, self.sentence(id, **fields), details, mistakes=(id,))

    def verdict(self, finding: Finding, *details: tuple[str, str]) -> Verdict:
        """Return the Verdict for a Finding, with details."""
        return self.wrong(finding.id, *details, **finding.fields)

    def function(self, program: ProgramText) -> Callable:
        """Return the function of an edited program."""
        return self.model(program.function) if self.model else program.function
