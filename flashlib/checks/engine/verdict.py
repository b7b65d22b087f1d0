"""Verdict: the result of a check."""

import html
import unicodedata
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from flashlib.language.texts import say
from flashlib.learner.error_text import cut

LONGEST = 20_000  # characters of a text
# The punctuation between texts, which differs from language to language.
LABEL, SENTENCE = "{0}:", "{0}: {1}"
AND = "and"  # between ids, which are the same in every language
MIME = "application/vnd.flashlib.verdict+json"


class Outcome(StrEnum):
    """The outcome of a check."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_SOLVED = "not solved yet"
    NOT_ANSWERED = "not answered yet"
    NOT_CHECKED = "not checked"


GRID = "margin: 6px 0 0 2ch; display: grid; grid-template-columns: max-content auto; column-gap: 1ch"
STYLES = {  # colour of the bar, mark
    Outcome.RIGHT: ("var(--jp-success-color1, #2e7d32)", "✓"),
    Outcome.WRONG: ("var(--jp-error-color1, #c62828)", "✗"),
    Outcome.NOT_SOLVED: ("var(--jp-border-color1, #888)", "○"),
    Outcome.NOT_ANSWERED: ("var(--jp-border-color1, #888)", "○"),
    Outcome.NOT_CHECKED: ("var(--jp-warn-color1, #b26a00)", "!"),
}


@dataclass(frozen=True)
class Verdict:
    """What a check says about an answer.

    exercise: its name. sentence: the diagnosis, or why it is right. details: pairs of a label and a text, such as
    the smallest failing input, the expected result and the given one. printed: what the answer printed. mistakes:
    the ids of its mistakes, rows in the table of its exercise; two if it makes two at once. run: an object whose
    play(answer) returns a player of the run that fails, or None. launches: the launches of a right answer that are
    still to be compiled: see `compiling`. answer: the object that was checked.
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
        """The ids of its mistakes as text, "" if there are none."""
        return (" " + AND + " ").join(self.mistakes)

    @property
    def data(self) -> dict[str, str]:
        """The verdict for programs, as JSON data."""
        known = {"mistake": self.mistake} if self.mistakes else {}
        return {"exercise": self.exercise, "outcome": str(self.outcome), "sentence": self.sentence, **known}

    def __repr__(self):
        details = self._details()
        width = max((_columns(label) for label, _ in details), default=0)
        outcome = say(str(self.outcome))
        lines = [say(SENTENCE).format(outcome, self.sentence) if self.sentence else outcome]
        for label, text in details:
            first, *others = text.splitlines() or [""]
            lines.append(f"  {label}{' ' * (width - _columns(label))} {first}")
            lines += [f"  {' ' * width} {line}" for line in others]
        if self.printed:
            lines += [f"  {_label('it printed')}", *(f"    {line}" for line in self.printed.splitlines())]
        return "\n".join(lines)

    def _details(self):
        return [(_label(label), text) for label, text in self.details]

    def _repr_mimebundle_(self, include=None, exclude=None):
        colour, mark = STYLES[self.outcome]
        outcome = say(str(self.outcome)).capitalize()
        title = say(LABEL).format(outcome) if self.sentence else outcome
        details = self._details() + ([(_label("it printed"), self.printed.rstrip())] if self.printed else [])
        rows = "".join(
            f"<span>{html.escape(label)}</span><span>{html.escape(text)}</span>" for label, text in details
        )
        parts = [
            f'<div style="border-left: 4px solid {colour}; padding: 2px 0 2px 12px">',
            f"<div>{mark} <b>{title}</b> {html.escape(self.sentence)}</div>",
            f'<pre style="{GRID}">{rows}</pre>' if rows else "",
            "</div>",
        ]
        return {"text/plain": repr(self), "text/html": "".join(parts), MIME: self.data}

    def is_sound(self) -> bool:
        """Return whether its fields have their types: a verdict from an answer's process may be forged."""
        if not {f.name for f in fields(self)} <= vars(self).keys():
            return False
        pairs = isinstance(self.details, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in self.details)
        if not pairs or not isinstance(self.mistakes, tuple) or not isinstance(self.outcome, Outcome):
            return False
        texts = [self.sentence, *self.mistakes, *(text for pair in self.details for text in pair)]
        return all(isinstance(text, str) for text in texts)

    def printable(self) -> "Verdict":
        """Return the verdict with long texts cut, and lone surrogates, which UTF-8 cannot encode, escaped."""
        details = tuple((_encoded(label), _encoded(text)) for label, text in self.details)
        return replace(self, sentence=_encoded(self.sentence), details=details, printed=_encoded(self.printed))

    def with_details(self, *details: tuple[str, str]) -> "Verdict":
        """Return the verdict with further details at its end."""
        return replace(self, details=(*self.details, *details))

    def play(self) -> Any:
        """Return the failing run in a player, below the verdict; the verdict itself if there is none."""
        if self.run is None:
            return self
        from IPython.display import display  # here: a check outside a notebook does not need it

        display(self)
        return self.run.play(self.answer)


def _label(text):
    return say(LABEL).format(say(text))


def _columns(text):
    """Return the width of a text in columns: one for each letter, two for a Chinese character."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _encoded(text):
    return cut(text, LONGEST).encode("utf-8", "backslashreplace").decode()
