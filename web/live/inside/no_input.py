"""Code on a page that waits for a line of input gets an error, which says what to do instead."""

import builtins
import contextlib
import getpass
import io
import sys

SENTENCE = (
    "a page cannot wait for input while a cell runs. In place of input() or getpass(), write the value into the "
    'code: x = "5". In place of a debugger, print what you want to see: print(m, l)'
)


class StdinNotImplementedError(NotImplementedError):
    """Code asked for input where there is none. The name is IPython's."""


def _refuse(*arguments, **options):  # noqa: ARG001
    raise StdinNotImplementedError(SENTENCE)


class NoInput(io.TextIOBase):
    """Replaces sys.stdin: there is nothing to read, now or later."""

    def readable(self):
        return True

    def _refuse(self, *arguments, **options):  # noqa: ARG002
        _refuse()

    read = readline = readlines = __next__ = _refuse


@contextlib.contextmanager
def refused():
    """A context in which input, getpass, sys.stdin and breakpoint raise StdinNotImplementedError."""
    places = (
        (builtins, "input", _refuse), (getpass, "getpass", _refuse), (sys, "stdin", NoInput()),
        (sys, "breakpointhook", _refuse),
    )  # fmt: skip
    before = [(where, name, getattr(where, name)) for where, name, _ in places]
    for where, name, value in places:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
