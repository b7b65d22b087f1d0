"""ProgramText: the text of a function, in which a mistake replaces a line or two."""

import inspect
import linecache
import re
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps

import numpy as np

HEAD = re.compile(r"(return|yield|for|while|if)\b|([\w.\[\]:, ]+?) [-+*/@]?= ")
TEXT = " -> "


@dataclass(frozen=True)
class ProgramText:
    """The text of a function and the names it may use.

    source: defines the function: the last one named my_..., or else the last of all. names: its globals. terms:
    {text: its replacement}, which rewrites the program in other terms, such as base 2 for base e; edits are
    translated too.
    """

    source: str
    names: Mapping = field(repr=False, compare=False)
    terms: dict = field(default_factory=dict)

    def edited(self, change: str) -> "ProgramText":
        """Return the program with lines or text replaced: "alpha = 1; O_acc / l -> O_acc".

        A line replaces the only one that assigns the same name or begins with the same keyword. A text must occur
        once; `\\n` in it is the end of a line. Put a text that begins or ends with a blank in backticks. Raises
        ValueError if there is no such line or text, or more than one.
        """
        source = self.source
        for part in self._translated(change).split("; "):
            source = _with_text(source, part) if TEXT in f"{part} " else _with_line(source, part)
        return ProgramText(source, self.names, self.terms)

    def in_terms(self, terms: dict[str, str], **names: object) -> "ProgramText":
        """Return the program in other terms, {text: its replacement}."""
        made = ProgramText(self.source, {**self.names, **names}, self.terms | terms)
        return ProgramText(made._translated(self.source), made.names, made.terms)

    @cached_property
    def function(self) -> Callable:
        """The function; raises SyntaxError if the text is not Python, LookupError while an answer runs."""
        if _answering:
            raise LookupError("solutions are out of reach while an answer is checked")
        file = f"<program {hash(self.source):x}>"
        lines = f"{self.source}\n".splitlines(keepends=True)
        linecache.cache[file] = (len(self.source) + 1, None, lines, file)  # for Triton and tracebacks
        namespace = {"__name__": "__program__", **self.names}
        exec(_compiled(self.source, file), namespace)
        names = re.findall(r"^def (\w+)\(", self.source, re.MULTILINE)
        return namespace[next((name for name in reversed(names) if name.startswith("my_")), names[-1])]

    def _translated(self, text):
        for term, other in self.terms.items():
            text = text.replace(term, other)
        return text


def defined(signature: str, *lines: str, **names: object) -> ProgramText:
    """Return the ProgramText `def signature:` of lines, each one or several; names: its globals besides np."""
    body = "\n".join(line.strip("\n") for line in lines)
    return ProgramText(f"def {signature}:\n{textwrap.indent(body, '    ')}", {"np": np} | names)


def written(text: str, **names: object) -> ProgramText:
    """Return the ProgramText of a text; names: its globals besides np."""
    return ProgramText(text.strip(), {"np": np} | names)


@lru_cache(maxsize=4096)
def _compiled(source, file):
    return compile(source, file, "exec")


@lru_cache(maxsize=4096)
def head(line: str) -> str | None:
    """Return what identifies a line: the name that it assigns, or its keyword."""
    found = HEAD.match(line.strip())
    return found and (found[1] or found[2])


def heads(change: str) -> set[str | None]:
    """Return the heads of the lines in a change; a replaced text has none."""
    return {head(part) for part in change.split("; ") if TEXT not in f"{part} "}


@lru_cache(maxsize=64)
def _lines(source):
    """Return the lines of a text, and {head: numbers of the lines with it}."""
    lines, known_by = tuple(source.splitlines()), {}
    for n, line in enumerate(lines):
        known_by.setdefault(head(line), []).append(n)
    return lines, known_by


def _with_line(source, new):
    lines, known_by = _lines(source)
    lines, at = list(lines), known_by.get(head(new), []) if head(new) else []
    if len(at) != 1:
        raise ValueError(f"{new!r} must replace one line; {len(at)} lines of the program match:\n{source}")
    old = lines[at[0]]
    lines[at[0]] = old[: len(old) - len(old.lstrip())] + new.strip()
    return "\n".join(lines)


def _with_text(source, part):
    old, _, new = f"{part} ".partition(TEXT)
    old, new = (_unquoted(text).replace("\\n", "\n") for text in (old, new[:-1]))
    if (n := source.count(old)) != 1:
        raise ValueError(f"{old!r} occurs {n} times, not once:\n{source}")
    return source.replace(old, new)


def _unquoted(text):
    """Return a text without the backticks that protect the blanks at its ends."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "`" else text


_answering = False


def out_of_reach(answer: Callable) -> Callable:
    """Return an answer that cannot use a ProgramText while it runs; generators and kernels are returned as is."""
    if not isinstance(answer, types.FunctionType) or inspect.isgeneratorfunction(answer):
        return answer

    @wraps(answer)
    def run(*arguments, **options):
        global _answering
        _answering = True
        try:
            return answer(*arguments, **options)
        finally:
            _answering = False

    return run
