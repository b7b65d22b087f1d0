"""Run code that may hang or kill its process in a process of its own, under a time limit."""

import contextlib
import io
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any

from flashlib.learner import pickling

START_LIMIT = 120  # seconds for the process to start, with whatever it must import
WALL_LIMIT = 60  # seconds for code that sleeps or waits; more where the limit of computing is longer
PRINTED = 4000  # characters of what is printed that are kept
FOLDER_LIMIT = 60  # bytes: the path of a socket has at most 104, and two names stand below the temporary folder


class NotEnded(Exception):
    """The code did not end in time, or its process died.

    sentence: what happened. at: what was last announced with `announce`, or "".
    """

    def __init__(self, sentence: str, at: str) -> None:
        super().__init__(sentence)
        self.sentence, self.at = sentence, at


def call(function: Callable, *arguments: object, limit: float) -> tuple[Any, str]:
    """Return (function(*arguments), what it printed), run in another process within `limit` seconds of computing.

    Functions defined in a notebook are sent by value, with the globals they use; Triton kernels too. They run in
    an empty folder of their own, and processes that they leave behind are ended. Raises pickling.CannotBeSent,
    NotEnded, or RuntimeError with the traceback if `function` itself raised.
    """
    parcel = pickling.dumps((function, arguments))
    here, there = (context := _context()).Pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = context.Process(target=_child, args=(there, folder, limit, parcel), daemon=True)
        with _no_main():
            process.start()
        there.close()
        try:
            return _received(here, process, limit)
        finally:
            _end(process)
            here.close()


def _received(connection, process, limit):
    """Return what a process sends as its result."""
    at, wall = "", max(WALL_LIMIT, limit)
    end = time.monotonic() + START_LIMIT
    try:
        while True:
            if not connection.poll(max(0, end - time.monotonic())):
                raise NotEnded(f"did not end within {wall:g} seconds: it waits, or is slow", at)
            kind, value = connection.recv()
            if kind == "started":
                end = time.monotonic() + wall
            elif kind == "at":
                at = value
            elif kind == "raised":
                raise RuntimeError(value)
            else:
                return value
    except (EOFError, ConnectionResetError):
        process.join()
        if process.exitcode == -COMPUTED:
            raise NotEnded(f"did not end within {limit:g} seconds", at) from None
        raise NotEnded(f"ended its process: {_death(process.exitcode)}", at) from None


COMPUTED = getattr(signal, "SIGPROF", 0)  # what ends a process whose computing takes too long, where there is such


def _end(process):
    """End a process and those that it has started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def announce(words: str) -> None:
    """Tell the process that waits what is done next, so that it can name it if this process ends."""
    if _connection:
        _connection.send(("at", words))


@contextlib.contextmanager
def _no_main():
    """Hide `__main__` from multiprocessing, which would run its file again in the new process.

    A script must not run twice, and Triton's interpreter leaves the name of a file of its own in a notebook's.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _context():
    """Return the multiprocessing context: a server that has imported what is needed and forks, or a new Python."""
    if "forkserver" not in multiprocessing.get_all_start_methods() or not sockets_fit():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # torch takes seconds to import; flashlib.kernels would ask for a GPU, which no fork could use after it
    slow = ["torch", "triton"] if "flashlib.kernels" in sys.modules else []
    context.set_forkserver_preload(["flashlib.checks", *slow])
    return context


def sockets_fit() -> bool:
    """Have multiprocessing make its folder for sockets where its path is short; return whether it is.

    A forkserver listens at such a socket. TMPDIR may be of any length, and names a folder too long for one.
    """
    usual = tempfile.gettempdir()
    for folder in (usual, "/tmp", "/var/tmp", "/dev/shm"):
        if len(os.fsencode(folder)) <= FOLDER_LIMIT and os.access(folder, os.W_OK | os.X_OK):
            tempfile.tempdir = folder
            break
    try:  # it is made once
        made = multiprocessing.util.get_temp_dir()
    finally:
        tempfile.tempdir = usual
    return len(os.fsencode(os.path.dirname(made))) <= FOLDER_LIMIT


_connection = None


def _child(connection, folder, limit, parcel):
    """Run what was sent and send what comes out."""
    global _connection
    _connection = connection
    if hasattr(os, "setsid"):
        os.setsid()
    os.chdir(folder)
    printed = _Printed()
    try:
        warnings.simplefilter("ignore")
        if parcel.has_kernels:
            import flashlib.kernels  # noqa: F401  before triton, which may come with what was sent
        function, arguments = pickling.loads(parcel)
        connection.send(("started", None))
        if COMPUTED:
            signal.signal(COMPUTED, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, limit)
        with contextlib.redirect_stdout(printed):
            result = function(*arguments)
        message = "done", (result, printed.getvalue())
    except BaseException:  # SystemExit too: a learner's exit() does not end a check
        message = "raised", traceback.format_exc()
    connection.send(message)


class _Printed(io.StringIO):
    """Keeps the first PRINTED characters."""

    def write(self, text):
        room = PRINTED - self.tell()
        super().write(text[:room])
        return len(text)


def _death(code):
    """Return in words how a process died."""
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    if name in ("SIGSEGV", "SIGBUS"):
        return f"{name}, it read or wrote memory that is not its own"
    return f"{name}" + (", perhaps out of memory" if name == "SIGKILL" else "")
