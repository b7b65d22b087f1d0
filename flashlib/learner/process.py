"""Run code that may hang or kill its process in a process of its own, under a time limit."""

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
from flashlib.learner import anew, containment, pickling, starting, tampering
from flashlib.learner.error_text import cut, error_text

START_LIMIT = 120  # seconds for the process to start, with whatever it must import
WALL_LIMIT = 60  # seconds for code that sleeps or waits; more where the limit of computing is longer
ANSWER_FILE = "<answer>"  # the name of an answer's text that has no file
PACKAGE = str(Path(__file__).parents[1])
SLACK = 1.0  # seconds of computing after which a process that did not end by itself is ended
LONGEST = 2**28  # bytes of a message
PRINTED = 4000  # characters of what is printed that are kept
AS_NUMPY_STARTS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
FOLDER_LIMIT = 60  # bytes: the path of a socket has at most 104, and two names stand below the temporary folder


class NotEnded(Exception):
    """The code did not end in time, or its process died.

    sentence: what happened. at: what was last announced with `announce`, or "".
    """

    def __init__(self, sentence: str, at: str) -> None:
        super().__init__(sentence)
        self.sentence, self.at = sentence, at


class RaisedByAnswer(Exception):
    """The learner's own code raised; the text says what."""


def call(function: Callable, *arguments: object, limit: float) -> tuple[Any, str]:
    """Return (function(*arguments), what it printed), run in another process within `limit` seconds of computing.

    Functions defined in a notebook are sent by value, with the globals they use; Triton kernels too. They run in
    an empty folder of their own, and processes that they leave behind are ended; files that they write elsewhere
    are neither counted nor removed. Raises pickling.CannotBeSent, NotEnded, OSError if it cannot start,
    RaisedByAnswer if a function that `function` was given raised, else RuntimeError with the traceback.
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
            here.close()
            ended.close()


def _received(connection, ended, process, limit, folder):
    """Return what a process sends as its result."""
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
                raise NotEnded(RUBBISH, at)
            elif sentence := containment.excess(process.pid, folder, most):
                raise NotEnded(sentence, at)
            if time.monotonic() > end:
                raise NotEnded(f"did not end within {wall:g} seconds: it waits, or is slow", at)
    except _Rubbish:
        raise NotEnded(RUBBISH, at) from None
    code = _exit_code(process, ended)
    if code is None:
        raise NotEnded(RUBBISH, at)
    if code == -COMPUTED:
        raise NotEnded(f"did not end within {limit:g} seconds", at)
    if not started:
        raise ChildProcessError(containment.death(code))
    raise NotEnded(f"ended its process: {containment.death(code)}", at)


OUTCOMES = ("done", "raised", "raised by the answer", "changed")  # with what a process ends


def _result(kind, value, at):
    """Return the result of a process whose outcome this is, or raise what it says."""
    if kind == "raised by the answer":
        raise RaisedByAnswer(value)
    if kind == "raised":
        raise RuntimeError(value)
    if kind == "changed":
        raise NotEnded(f"changes {value}, which its check uses too: give yours a name of its own", at)
    return value


def _messages(connection, ended, end):
    """Yield what a process sends as (kind, value) until its end, and ("look", "") every LOOK seconds.

    end: called once it has ended; those that it started have the connection too, which ends with the last of them.
    """
    sent: queue.Queue = queue.Queue(8)  # so that a flood of messages waits in the process that sends it
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
                until = time.monotonic() + containment.END_LIMIT  # its last message may still be on its way
            yield "look", ""
            look = time.monotonic() + containment.LOOK


def _exit_code(process, ended):
    """Return the exit code of a process, as its keeper sent it if there is one, or None if it runs."""
    with contextlib.suppress(EOFError, OSError):
        if ended.poll(containment.END_LIMIT):
            return ended.recv()
    process.join(1)
    return process.exitcode


RUBBISH = "its process sent something that is no verdict: leave the pipe of the check alone"


def _pass_on(connection, sent):
    """Put the messages of a connection into a queue, then None: half a message would hold up who reads it."""
    with contextlib.suppress(queue.Full):  # nobody reads it any more
        with contextlib.suppress(EOFError, OSError):  # closed, or a length that is none
            while True:
                sent.put(connection.recv_bytes(LONGEST), timeout=60)
        sent.put(None, timeout=60)


class _Rubbish(Exception):
    """What was sent is no message."""


def _message(sent):
    """Return what was sent as (kind, value); raises _Rubbish if it is no message."""
    try:
        kind, value = _Unpickler(io.BytesIO(sent)).load()
    except Exception:  # a pickle of the learner's may raise anything
        raise _Rubbish from None
    text = value[1] if kind == "done" and isinstance(value, tuple) and len(value) == 2 else value
    if not (isinstance(kind, str) and isinstance(text, str)):
        raise _Rubbish
    return kind, value


class _Unpickler(pickle.Unpickler):
    """Loads data and objects of flashlib, and calls nothing else: an answer can write to the pipe too."""

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

COMPUTED = getattr(signal, "SIGPROF", 0)  # what ends a process whose computing takes too long, where there is such


def _end(process, folder):
    """End a process and those that it has started."""
    containment.end(process.pid, folder)
    process.kill()
    process.join()


def announce(words: Callable[..., str], *arguments: object) -> None:
    """Tell the process that waits what is done next, so that it can name it if this process ends.

    words(*arguments) says it; nobody asks where nobody waits.
    """
    if _connection:
        _connection.send(("at", words(*arguments)))


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


def _child(connection, status, folder, limit, parcel):
    """Run what was sent and send what comes out."""
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
    """Run what was sent, once `begin()` was called; return the message on what comes out."""
    printed, modules = _Printed(), tampering.kept()
    try:
        if parcel.has_kernels:
            import flashlib.kernels  # noqa: F401  before triton, which may come with what was sent
        function, arguments = pickling.loads(parcel)
        begin()
        with contextlib.redirect_stdout(printed):
            result = function(*arguments)
        message = "done", (result, printed.getvalue())
        changed = [*tampering.changes(modules)]
    except BaseException as error:  # SystemExit too: a learner's exit() does not end a check
        changed = [*tampering.changes(modules)]  # before what follows uses it
        message = _raised(error, parcel.sources)
    return ("changed", and_list(changed[:3])) if changed else message


def watch(connection: Any) -> None:
    """Where no process can be started, as in a web page: tell `connection.send` of calls as they go on.

    It gets ("started", the limit in seconds), ("at", words) and ("ended", ""). Nothing here ends what does not
    end, so who watches ends this process, and says so with `was_ended` to the one that follows.
    """
    global _connection
    _connection = connection


def was_ended(sentence: str, at: str) -> None:
    """Have the next call raise NotEnded: it was made before, and its process was ended from outside."""
    _was_ended[:] = [(sentence, at)]


_was_ended: list[tuple[str, str]] = []


def _called_here(parcel, limit):
    """As `call`, in this process, with modules of flashlib that no answer has seen."""
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
        with anew.modules():
            sent = _sent_by_new_modules(parcel, lambda: _tell("started", limit))
        for name in NOTEBOOK:
            del of_notebook[name]
        of_notebook.update(before)
        sys.modules.update(all_modules)
        _tell("ended", "")
    try:
        return _result(*_message(sent), "")
    except _Rubbish:
        raise NotEnded(RUBBISH, "") from None


def _sent_by_new_modules(parcel, begin):
    """Return what a process would send, from modules that are loaded now."""
    here = importlib.import_module(__name__)
    here.watch(_connection)
    message = here._outcome(parcel, begin)
    try:
        return pickle.dumps(message)
    except Exception:  # it is no verdict, and says so when it is read
        return b""


def _tell(kind, value):
    if _connection:
        _connection.send((kind, value))


def _raised(error, files):
    """Return the message on an exception: the learner's, if it went through a line of theirs, or the course's."""
    theirs = {ANSWER_FILE, *(file for file in files if not file.startswith(PACKAGE))}
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if theirs & set(frames[2:]):  # after this file's, and that of the function that calls the answer
        return "raised by the answer", error_text(error)
    return "raised", cut(traceback.format_exc(), 10 * PRINTED)


def _display(*objects, **options):  # noqa: ARG001
    """Stand for a notebook's display: print."""
    print(*objects)


class _Shell:
    """Stands for a notebook's shell, whose magics do nothing here."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


NOTEBOOK = {"display": _display, "get_ipython": _Shell}  # builtins of a notebook


class _Printed(io.StringIO):
    """Keeps the first PRINTED characters."""

    def write(self, text):
        room = PRINTED - self.tell()
        super().write(text[:room])
        return len(text)
