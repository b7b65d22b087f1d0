"""The process that starts the ranks of each run. It has imported torch, so that a fork of it is a rank at once.

It outlives its runs, and ends with the process that started it, however that one ends. Between two runs it has no
child processes: whatever a run leaves is ended, processes in other sessions too (except on Linux, only the process
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
from flashlib.ring.processes import failure_report
from flashlib.ring.processes import rank as rank_process
from flashlib.ring.processes.job import Job

LOOK = 0.05  # seconds between two checks whether a rank has died
PRINTED = 20_000  # characters kept of what a rank printed
LAST = 600  # characters kept of its end, which is also what an error report gets


def serve(connection: Connection) -> None:
    """Run jobs until the other end of the connection is closed."""
    if hasattr(os, "setsid"):
        os.setsid()  # an interrupt goes to the process that waits, and that process says what ends
    containment.adopt_orphans()
    with contextlib.suppress(EOFError, OSError):
        while True:
            _run(connection, connection.recv())


_to_import: list[str] = []  # modules that ranks had to import: after the run they are imported for the next ones


def _run(connection, job):
    """Run a job: pass on ("rank", number, kind, value) messages, then send ("ended", what each rank printed)."""
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
    for name in _to_import:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    _to_import.clear()


def _reap():
    """Reap the processes that ranks left behind, which this process has adopted and ended."""
    with contextlib.suppress(ChildProcessError):
        while hasattr(os, "WNOHANG") and os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _pass_on(connection, ranks):
    """Pass on messages from ranks, and questions to them, until ("end",) arrives."""
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
    """The process of one rank, as the launcher sees it."""

    def __init__(self, number: int, job: Job, upward: Connection, earlier: list) -> None:
        context: Any = multiprocessing.get_context(job.method)
        self.number, self.open, self.dead = number, True, False
        self.file = os.path.join(job.meeting, f"printed-{number}")
        self.connection, there = context.Pipe()
        # a fork copies all open connections, and a closed end is noticed only once no copy is left
        copies = [upward, self.connection, *(rank.connection for rank in earlier)] if job.method == "fork" else []
        arguments = there, number, job, os.path.join(job.meeting, "store"), self.file, copies
        self.process = context.Process(target=rank_process.main, args=arguments)
        self.process.start()
        there.close()

    def pass_on(self, connection: Connection) -> None:
        """Pass on one message from the rank."""
        try:
            kind, value = self.connection.recv()
        except Exception:  # closed, or overwritten by the learner's function
            self.open = False
        else:
            if kind == "imported":
                _to_import.extend(value)
            else:
                connection.send(("rank", self.number, kind, value))

    def ask(self, question: tuple) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(question)

    def look(self, connection: Connection) -> None:
        """Report that the rank has died, once, after passing on all that it sent."""
        if self.dead or self.process.exitcode is None:
            return
        self.dead = True
        with contextlib.suppress(OSError):
            while self.open and self.connection.poll():
                self.pass_on(connection)
        self.open = False
        died = failure_report.RankDied(self.process.exitcode, self.printed()[-LAST:])
        connection.send(("rank", self.number, "died", died))

    def end(self) -> None:
        containment.end_group(self.process.pid)
        self.process.kill()
        self.process.join()
        self.connection.close()

    def printed(self) -> str:
        """Return what the rank printed, shortened in the middle."""
        with contextlib.suppress(OSError), open(self.file, encoding="utf-8", errors="replace") as file:
            text = file.read(PRINTED)
            size = os.path.getsize(self.file)
            if size > len(text.encode()) + LAST:
                file.seek(size - LAST)
                return f"{text}\n[...]\n{file.read()}"
            return text + file.read()
        return ""
