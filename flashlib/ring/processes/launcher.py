"""The process that starts the ranks of each run: it has torch already, so that a fork of it is a rank at once.

It outlives its runs, and ends with the process that started it, however that ends. Between two runs nothing is
below it: all that a run left is ended, processes in a session of their own too (elsewhere than on Linux, the
groups of the ranks).
"""

import contextlib
import importlib
import multiprocessing
import os
import shutil
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any

from flashlib.learner import containment
from flashlib.ring.processes import rank as one_rank
from flashlib.ring.processes import told
from flashlib.ring.processes.job import Job

LOOK = 0.05  # seconds between two looks at whether a rank has died
PRINTED = 20_000  # characters that are kept of what a rank printed
LAST = 600  # characters of them that an error shows


def serve(connection: Connection) -> None:
    """Do what is asked for until the other end is closed."""
    if hasattr(os, "setsid"):
        os.setsid()  # an interrupt is for who waits, and that one says what ends
    containment.adopt_orphans()
    with contextlib.suppress(EOFError, OSError):
        while True:
            _run(connection, connection.recv())


_later: list[str] = []  # modules that ranks had to import: the next ones shall have them


def _run(connection, job):
    """Run a job: send ("rank", number, kind, value) as it comes, at last ("ended", what each has printed)."""
    printed: list[str] = []
    try:
        os.environ.update(job.environment, OPENBLAS_NUM_THREADS="1")  # no threads, as it is forked
        for name in job.modules:
            importlib.import_module(name)
        ranks: list[_Rank] = []
        os.mkdir(job.meeting, mode=0o700)
        try:
            for number in range(job.ranks):
                ranks.append(_Rank(number, job, connection, ranks))
            _pass_on(connection, ranks)
        finally:
            for rank in ranks:
                rank.end()
            containment.end_below(os.getpid())
            _reap()
            printed = [rank.printed() for rank in ranks]
            shutil.rmtree(job.meeting, ignore_errors=True)
    except EOFError:
        raise
    except Exception:
        connection.send(("failed", traceback.format_exc()))
        connection.recv()  # ("end",)
    connection.send(("ended", printed))
    for name in _later:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    _later.clear()


def _reap():
    """Let go of the processes that ranks left behind, which came here and were ended."""
    with contextlib.suppress(ChildProcessError):
        while hasattr(os, "WNOHANG") and os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _pass_on(connection, ranks):
    """Pass on what ranks send, and to them a question, until ("end",) comes."""
    while True:
        here = {rank.connection: rank for rank in ranks if rank.open}
        for ready in wait([connection, *here], LOOK):
            if ready is not connection:
                here[ready].pass_on(connection)
            elif (asked := connection.recv()) == ("end",):
                return
            else:
                for rank in here.values():
                    rank.ask(asked)
        for rank in ranks:
            rank.look(connection)


class _Rank:
    """The process of one rank, seen from the launcher."""

    def __init__(self, number: int, job: Job, upward: Connection, earlier: list) -> None:
        context: Any = multiprocessing.get_context(job.method)
        self.number, self.open, self.dead = number, True, False
        self.file = os.path.join(job.meeting, f"printed-{number}")
        self.connection, there = context.Pipe()
        # a fork has copies of all that is open, and an end is seen where no copy is left
        copies = [upward, self.connection, *(rank.connection for rank in earlier)] if job.method == "fork" else []
        arguments = there, number, job, os.path.join(job.meeting, "store"), self.file, copies
        self.process = context.Process(target=one_rank.main, args=arguments)
        self.process.start()
        there.close()

    def pass_on(self, connection: Connection) -> None:
        """Pass on one message."""
        try:
            kind, value = self.connection.recv()
        except Exception:  # it is closed, or the learner's function wrote to it
            self.open = False
        else:
            if kind == "imported":
                _later.extend(value)
            else:
                connection.send(("rank", self.number, kind, value))

    def ask(self, question: tuple) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(question)

    def look(self, connection: Connection) -> None:
        """Tell of the rank's death, once, after all that it sent."""
        if self.dead or self.process.exitcode is None:
            return
        self.dead = True
        with contextlib.suppress(OSError):
            while self.open and self.connection.poll():
                self.pass_on(connection)
        self.open = False
        died = told.Died(self.process.exitcode, self.printed()[-LAST:])
        connection.send(("rank", self.number, "died", died))

    def end(self) -> None:
        containment.end_group(self.process.pid)
        self.process.kill()
        self.process.join()
        self.connection.close()

    def printed(self) -> str:
        """Return what it printed, shortened in the middle."""
        with contextlib.suppress(OSError), open(self.file, encoding="utf-8", errors="replace") as file:
            text = file.read(PRINTED)
            size = os.path.getsize(self.file)
            if size > len(text.encode()) + LAST:
                file.seek(size - LAST)
                return f"{text}\n[...]\n{file.read()}"
            return text + file.read()
        return ""
