"""Verdict: what a check answers."""

import html
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from flashlib.language.texts import say
from flashlib.learner.error_text import cut

LONGEST = 20_000  # characters of a text
MIME = "application/vnd.flashlib.verdict+json"


class Outcome(StrEnum):
    """What becomes of an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_SOLVED = "not solved yet"
    NOT_ANSWERED = "not answered yet"
    NOT_CHECKED = "not checked"


STYLES = {  # colour of the bar, mark
    Outcome.RIGHT: ("var(--jp-success-color1, #2e7d32)", "✓"),
    Outcome.WRONG: ("var(--jp-error-color1, #c62828)", "✗"),
    Outcome.NOT_SOLVED: ("var(--jp-border-color1, #888)", "○"),
    Outcome.NOT_ANSWERED: ("var(--jp-border-color1, #888)", "○"),
    Outcome.NOT_CHECKED: ("var(--jp-warn-color1, #b26a00)", "!"),
}


@dataclass(frozen=True)
class Verdict:
    """What a check says of an answer.

    exercise: its name. sentence: the diagnosis, or why it is right. details: pairs of a label and a text, such as
    the smallest failing input, what was expected and what was given. printed: what the answer printed. mistakes:
    the ids of what is wrong with it, rows of the table of its exercise; two where it makes two at once. run: an
    object whose play(answer) returns a player of the run that fails, or None. launches: of a right answer, what is
    still to be compiled: see `compiling`. answer: what was checked.
    """

    exercise: str
    outcome: Outcome
    sentence: str
    details: tuple[tuple[str, str], ...] = ()
    printed: str = ""
    mistakes: tuple[str, ...] = ()
    run: Any = None
    launches: Any = field(default=None, repr=False, compare=False)
    answer: Any = field(default=None, repr=False, compare=False)

    @property
    def right(self) -> bool:
        return self.outcome == Outcome.RIGHT

    @property
    def mistake(self) -> str:
        """The ids of what is wrong with it as text, "" if there are none."""
        return " and ".join(self.mistakes)

    @property
    def data(self) -> dict[str, str]:
        """What a program may want to know of it, for JSON."""
        known = {"mistake": self.mistake} if self.mistakes else {}
        return {"exercise": self.exercise, "outcome": str(self.outcome), "sentence": self.sentence, **known}

    def __repr__(self):
        details = [(say(label), text) for label, text in self.details]
        width = max((len(label) for label, _ in details), default=0) + 1
        outcome = say(str(self.outcome))
        lines = [f"{outcome}: {self.sentence}" if self.sentence else outcome]
        for label, text in details:
            first, *others = text.splitlines() or [""]
            lines.append(f"  {label + ':':{width}} {first}")
            lines += [f"  {'':{width}} {line}" for line in others]
        if self.printed:
            lines += ["  it printed:", *(f"    {line}" for line in self.printed.splitlines())]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        colour, mark = STYLES[self.outcome]
        head, *rest = repr(self).splitlines()
        outcome = say(str(self.outcome))
        sentence = head.removeprefix(f"{outcome}: ") if self.sentence else ""
        title = outcome.capitalize() + (":" if sentence else "")
        parts = [
            f'<div style="border-left: 4px solid {colour}; padding: 2px 0 2px 12px">',
            f"<div>{mark} <b>{title}</b> {html.escape(sentence)}</div>",
            f'<pre style="margin: 6px 0 0">{html.escape(chr(10).join(rest))}</pre>' if rest else "",
            "</div>",
        ]
        return {"text/plain": repr(self), "text/html": "".join(parts), MIME: self.data}

    def is_sound(self) -> bool:
        """Return whether its fields are of their types: one that comes from an answer's process may be forged."""
        if not {f.name for f in fields(self)} <= vars(self).keys():
            return False
        pairs = isinstance(self.details, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in self.details)
        if not pairs or not isinstance(self.mistakes, tuple) or not isinstance(self.outcome, Outcome):
            return False
        texts = [self.sentence, *self.mistakes, *(text for pair in self.details for text in pair)]
        return all(isinstance(text, str) for text in texts)

    def printable(self) -> "Verdict":
        """Return the verdict with its texts cut, and what has no UTF-8, halves of a character, written out."""
        details = tuple((_encoded(label), _encoded(text)) for label, text in self.details)
        return replace(self, sentence=_encoded(self.sentence), details=details, printed=_encoded(self.printed))

    def with_details(self, *details: tuple[str, str]) -> "Verdict":
        """Return the verdict with further details at its end."""
        return replace(self, details=(*self.details, *details))

    def play(self) -> Any:
        """Return the failing run in a player, below the verdict; the verdict itself if there is none."""
        if self.run is None:
            return self
        from IPython.display import display  # here: a check outside a notebook does without it

        display(self)
        return self.run.play(self.answer)


def _encoded(text):
    return cut(text, LONGEST).encode("utf-8", "backslashreplace").decode()
