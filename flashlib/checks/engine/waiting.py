"""A sentence for a learner who has to wait: shown while something takes long, and gone when it ends."""

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE = 2.0  # seconds without a sentence
COMPILING = "Compiling your kernel for a GPU. The first time, this takes up to half a minute."


@contextlib.contextmanager
def told(sentence: str) -> Iterator[None]:
    """Show a sentence while this context lasts, if it lasts longer than PATIENCE.

    In a notebook it disappears at the end; elsewhere it is a line. Where a tool executes a notebook, nothing is
    shown, so that nothing is stored.
    """
    kernel = _kernel()
    if kernel and not _is_a_learners(kernel):
        yield
        return
    ends: list[Callable[[], object]] = []

    def show():
        ends.append(_displayed(sentence) if kernel else _printed(sentence))

    of_cell = contextvars.copy_context()  # so that it is displayed below the cell that waits
    timer = threading.Timer(PATIENCE, of_cell.run, [show])
    timer.daemon = True  # Python does not wait for it at its end
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for end in ends:
            end()


def _kernel():
    """Return the kernel of a notebook if this process is one, else None."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None)


def _is_a_learners(kernel: Any) -> bool:
    """Return whether a learner ran the cell: one that a tool runs may not ask for input."""
    return kernel.get_parent("shell").get("content", {}).get("allow_stdin", False)


def _displayed(sentence):
    """Display a sentence, and return a function that removes it."""
    from IPython.display import display  # here: a check outside a notebook does not need it

    grey = f'<div style="color: var(--jp-ui-font-color2, #616161)">{sentence}</div>'
    handle = display({"text/plain": sentence, "text/html": grey}, raw=True, display_id=True)
    return lambda: handle.update({}, raw=True)


def _printed(sentence):
    print(sentence, file=sys.stderr, flush=True)
    return lambda: None
