"""Run code that may hang or kill its process in a separate process, under a time limit."""

import builtins
import contextlib
import importlib
import io
import multiprocessing
import multiprocessing.util
import os
import pickle
import queue
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flashlib.language.phrases import and_list
from flashlib.learner import changed_modules, containment, fresh_modules, pickling, starting
from flashlib.learner.error_text import cut, error_text

START_LIMIT = 120  # seconds for the process to start, including its imports
WALL_LIMIT = 60  # seconds for code that sleeps or waits; more if the limit on computing is longer
ANSWER_FILE = "<answer>"  # the file name of an answer that is in no file
PACKAGE = str(Path(__file__).parents[1])
SLACK = 1.0  # seconds of computing beyond the limit, after which a process that did not end by itself is ended
LONGEST = 2**28  # bytes of a message
PRINTED = 4000  # characters of the printed text that are kept
AS_NUMPY_STARTS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
FOLDER_LIMIT = 60  # bytes: the path of a socket has at most 104, and two names follow the temporary folder's


class NotEnded(Exception):
    """The code did not end in time, or its process died.

    sentence: what happened. at: the last text sent with `announce`, or "".
    """

    def __init__(self, sentence: str, at: str) -> None:
        super().__init__(sentence)
        self.sentence, self.at = sentence, at


class RaisedByAnswer(Exception):
    """The learner's own code raised an exception, which the text describes."""


def call(function: Callable, *arguments: object, limit: float) -> tuple[Any, str]:
    """Return (function(*arguments), what it printed), run in another process within `limit` seconds of computing.

    Functions defined in a notebook, Triton kernels included, are sent by value, with the globals they use. They
    run in a new empty folder, and processes that they leave behind are ended; files that they write elsewhere are
    neither counted nor removed. Raises pickling.CannotBeSent; NotEnded; OSError if the process cannot start;
    RaisedByAnswer if a function passed to `function` raised; else RuntimeError with the traceback.
    """
    parcel = pickling.dumps((function, arguments))
    if not starting.is_possible():
        return _called_here(parcel, limit)
    here, there = (context := _context()).Pipe()
    ended, status = context.Pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = context.Process(target=_child, args=(there, status, folder, limit, parcel), daemon=True)
        with starting.without_main():
            process.start()
        there.close()
        status.close()
        try:
            return _received(here, ended, process, limit, folder)
        finally:
            _end(process, folder)
            ended.close()


def _received(connection, ended, process, limit, folder):
    """Return the result that a process sends."""
    at, started, most, wall = "", False, float("inf"), max(WALL_LIMIT, limit)
    end = time.monotonic() + START_LIMIT
    try:
        for kind, value in _messages(connection, ended, lambda: containment.end(process.pid, folder)):
            if kind == "started" and not started:
                started, end = True, time.monotonic() + wall
                most = containment.computed(process.pid) + limit + SLACK
            elif kind == "at":
                at = value[:PRINTED]
            elif kind in OUTCOMES:
                return _result(kind, value, at)
            elif kind != "look":
                raise NotEnded(INVALID_DATA, at)
            elif sentence := containment.excess(process.pid, folder, most):
                raise NotEnded(sentence, at)
            if time.monotonic() > end:
                raise NotEnded(f"did not end within {wall:g} seconds: it waits, or is slow", at)
    except _InvalidMessage:
        raise NotEnded(INVALID_DATA, at) from None
    code = _exit_code(process, ended)
    if code is None:
        raise NotEnded(INVALID_DATA, at)
    if code == -COMPUTED:
        raise NotEnded(f"did not end within {limit:g} seconds", at)
    if not started:
        raise ChildProcessError(containment.death(code))
    raise NotEnded(f"ended its process: {containment.death(code)}", at)


OUTCOMES = ("done", "raised", "raised by the answer", "changed")  # the last message of a process is one of these


def _result(kind, value, at):
    """Return the result of a process with this outcome, or raise the exception that the outcome stands for."""
    if kind == "raised by the answer":
        raise RaisedByAnswer(value)
    if kind == "raised":
        raise RuntimeError(value)
    if kind == "changed":
        raise NotEnded(f"changes {value}, which its check uses too: give yours a different name", at)
    return value


def _messages(connection, ended, end):
    """Yield each message of a process as (kind, value) until it ends, and ("look", "") every LOOK seconds.

    end: called once it has ended. The processes that it started hold the connection too, which closes with the
    last of them.
    """
    sent: queue.Queue = queue.Queue(8)  # small, so that a flood of messages waits in the process that sends it
    threading.Thread(target=_pass_on, args=(connection, sent), daemon=True).start()
    look, until = time.monotonic() + containment.LOOK, None
    while until is None or time.monotonic() < until:
        with contextlib.suppress(queue.Empty):
            message = sent.get(timeout=max(0, look - time.monotonic()))
            if message is None:
                return
            yield _message(message)
        if time.monotonic() >= look:
            if until is None and ended.poll():
                end()
                until = time.monotonic() + containment.END_LIMIT  # its last message may still be in transit
            yield "look", ""
            look = time.monotonic() + containment.LOOK


def _exit_code(process, ended):
    """Return the exit code of a process, from its keeper if there is one; None if the process still runs."""
    with contextlib.suppress(EOFError, OSError):
        if ended.poll(containment.END_LIMIT):
            return ended.recv()
    process.join(1)
    return process.exitcode


INVALID_DATA = "its process sent invalid data: do not write to the file descriptors of the check"


def _pass_on(connection, sent):
    """Put the messages of a connection into a queue, then None: half a message would block its reader.

    It also closes the connection. If another thread did, a later call's connection could get the same descriptor
    while this thread still reads from it.
    """
    with connection, contextlib.suppress(queue.Full):  # the queue is no longer read
        with contextlib.suppress(EOFError, OSError):  # closed, or an invalid length
            while True:
                sent.put(connection.recv_bytes(LONGEST), timeout=60)
        sent.put(None, timeout=60)


class _InvalidMessage(Exception):
    """The data received is not a message."""


def _message(sent):
    """Return received data as (kind, value); raises _InvalidMessage if it is not a message."""
    try:
        kind, value = _Unpickler(io.BytesIO(sent)).load()
    except Exception:  # a pickle from the learner's code may raise anything
        raise _InvalidMessage from None
    text = value[1] if kind == "done" and isinstance(value, tuple) and len(value) == 2 else value
    if not (isinstance(kind, str) and isinstance(text, str)):
        raise _InvalidMessage
    return kind, value


class _Unpickler(pickle.Unpickler):
    """Loads data and objects of flashlib, but calls nothing else: an answer can write to the pipe too."""

    def find_class(self, module, name):
        if (module, name) in PLAIN:
            return super().find_class(module, name)
        if module.split(".")[0] == "numpy" and name != "memmap":
            found = super().find_class(module, name)
            if isinstance(found, type) and issubclass(found, np.ndarray | np.dtype | np.generic):
                return found
        if module.split(".")[0] == "flashlib" and "." not in name:
            found = super().find_class(module, name)
            tasks = module.startswith(("flashlib.checks.chapters.", "flashlib.checks.harness."))
            if isinstance(found, type | types.FunctionType if tasks else type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not sent by a check")


PLAIN = {
    *(("builtins", name) for name in ("set", "frozenset", "complex", "slice", "range", "bytearray")),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
}  # fmt: skip

# The signal that ends a process whose computing takes too long, if the system has it.
COMPUTED = getattr(signal, "SIGPROF", 0)


def _end(process, folder):
    """End a process and all processes that it started."""
    containment.end(process.pid, folder)
    process.kill()
    process.join()


def announce(words: Callable[..., str], *arguments: object) -> None:
    """Send the waiting process a description of the next step, which it reports if this process ends.

    words(*arguments) returns the description; it is not called if no process waits.
    """
    if _connection:
        _connection.send(("at", words(*arguments)))


def _context():
    """Return the multiprocessing context: a server that forks after its imports, or a new Python each time."""
    if "forkserver" not in multiprocessing.get_all_start_methods() or not sockets_fit():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # torch takes seconds to import; flashlib.kernels would open the GPU, which no fork could then use
    slow = ["torch", "triton"] if "flashlib.kernels" in sys.modules else []
    context.set_forkserver_preload(["flashlib.checks", *slow])
    return context


def sockets_fit() -> bool:
    """Have multiprocessing create its folder for sockets at a short path; return whether the path is short enough.

    A forkserver listens at such a socket. TMPDIR may be of any length, and then its path is too long for a socket.
    """
    usual = tempfile.gettempdir()
    for folder in (usual, "/tmp", "/var/tmp", "/dev/shm"):
        if len(os.fsencode(folder)) <= FOLDER_LIMIT and os.access(folder, os.W_OK | os.X_OK):
            tempfile.tempdir = folder
            break
    try:  # the folder is created once
        made = multiprocessing.util.get_temp_dir()
    finally:
        tempfile.tempdir = usual
    return len(os.fsencode(os.path.dirname(made))) <= FOLDER_LIMIT


_connection = None


def _child(connection, status, folder, limit, parcel):
    """Run the function in the parcel and send its outcome."""
    global _connection
    _connection = connection
    containment.enter(connection, status)
    os.chdir(folder)
    builtins.__dict__.update(NOTEBOOK)
    warnings.simplefilter("ignore")

    def begin():
        connection.send(("started", ""))
        if COMPUTED:
            signal.signal(COMPUTED, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, limit)

    connection.send(_outcome(parcel, begin))


def _outcome(parcel, begin):
    """Call `begin()`, run the function in the parcel, and return the message about its outcome."""
    printed, modules = _Printed(), changed_modules.snapshot()
    try:
        if parcel.has_kernels:
            import flashlib.kernels  # noqa: F401  before triton, which the parcel may import
        function, arguments = pickling.loads(parcel)
        begin()
        with contextlib.redirect_stdout(printed):
            result = function(*arguments)
        message = "done", (result, printed.getvalue())
        changed = [*changed_modules.restored(modules)]
    except BaseException as error:  # SystemExit too: a learner's exit() must not end a check
        changed = [*changed_modules.restored(modules)]  # before the next line uses a changed function
        message = _raised(error, parcel.sources)
    return ("changed", and_list(changed[:3])) if changed else message


def watch(connection: Any) -> None:
    """Report the progress of calls to `connection.send`, where no process can be started, as in a web page.

    It gets ("started", the limit in seconds), ("at", words) and ("ended", ""). Nothing here ends code that runs
    too long: the watcher must end this process, and tell the next one with `was_ended`.
    """
    global _connection
    _connection = connection


def was_ended(sentence: str, at: str) -> None:
    """Make the next call raise NotEnded: the same call ran before, and its process was ended from outside."""
    _was_ended[:] = [(sentence, at)]


_was_ended: list[tuple[str, str]] = []


def _called_here(parcel, limit):
    """Do what `call` does, but in this process, with freshly loaded modules of flashlib."""
    if _was_ended:
        raise NotEnded(*_was_ended.pop())
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for context in (contextlib.chdir(folder), warnings.catch_warnings(), np.errstate(**AS_NUMPY_STARTS)):
            stack.enter_context(context)
        warnings.simplefilter("ignore")
        of_notebook, all_modules = vars(builtins), dict(sys.modules)
        before = {name: of_notebook.pop(name) for name in NOTEBOOK if name in of_notebook}
        of_notebook.update(NOTEBOOK)
        with fresh_modules.loaded():
            sent = _sent_by_new_modules(parcel, lambda: _tell("started", limit))
        for name in NOTEBOOK:
            del of_notebook[name]
        of_notebook.update(before)
        sys.modules.update(all_modules)
        _tell("ended", "")
    try:
        return _result(*_message(sent), "")
    except _InvalidMessage:
        raise NotEnded(INVALID_DATA, "") from None


def _sent_by_new_modules(parcel, begin):
    """Return the bytes that a process would send; the modules are the ones loaded now."""
    here = importlib.import_module(__name__)
    here.watch(_connection)
    message = here._outcome(parcel, begin)
    try:
        return pickle.dumps(message)
    except Exception:  # an empty message counts as invalid data
        return b""


def _tell(kind, value):
    if _connection:
        _connection.send((kind, value))


def _raised(error, files):
    """Return the message about an exception: the learner's if a line of theirs is in the traceback, else ours."""
    theirs = {ANSWER_FILE, *(file for file in files if not file.startswith(PACKAGE))}
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if theirs & set(frames[2:]):  # after the frames of this file and of the function that calls the answer
        return "raised by the answer", error_text(error)
    return "raised", cut(traceback.format_exc(), 10 * PRINTED)


def _display(*objects, **options):  # noqa: ARG001
    """Replace a notebook's display: print."""
    print(*objects)


class _Shell:
    """Replaces a notebook's shell; its magics do nothing."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


NOTEBOOK = {"display": _display, "get_ipython": _Shell}  # builtins that a notebook adds


class _Printed(io.StringIO):
    """Keeps the first PRINTED characters."""

    def write(self, text):
        room = PRINTED - self.tell()
        super().write(text[:room])
        return len(text)
