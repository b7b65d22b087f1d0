"""A rank: a process that joins the group, runs the function, and sends back its result or its error."""

import contextlib
import os
import sys
import threading
from multiprocessing.connection import Connection

from flashlib.learner import containment, pickling
from flashlib.ring.processes import failure_report, packing, waits
from flashlib.ring.processes.job import Job

# gloo listens on one interface: unless it is named, on the one that the host's name resolves to
LOOPBACK = {"linux": "lo", "darwin": "lo0", "win32": "Loopback Pseudo-Interface 1"}

here = False
"""Whether this process is a rank that `run` started."""


def main(connection: Connection, rank: int, job: Job, store: str, printed: str, copies: list) -> None:
    """Be a rank until the launcher ends it: its sockets must stay open while other ranks work."""
    global here
    here = True
    for copy in copies:
        copy.close()
    containment.end_with_parent()
    if hasattr(os, "setsid"):
        os.setsid()
    _redirect(printed)
    sender = _Sender(connection)
    try:
        _enter(job)
        _join(rank, job, store)
        os.truncate(printed, 0)  # drop gloo's message that it is connected
        _wait_for_all()
        sender.send(("joined", None))
        threading.Thread(target=_answer, args=(connection, sender), daemon=True).start()
        before = {*sys.modules}
        with waits.calls_counted():
            function, arguments = pickling.loads(job.parcel)
            packed = packing.pack(function(*arguments))
            message = "returned", (packed, waits.site_of(None))
        if rank == 0:
            sender.send(("imported", [name for name in sys.modules if name not in before and _is_slow(name)]))
    except BaseException as error:  # SystemExit too: the run ends and reports it
        message = "raised", failure_report.raised(error)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the function may have replaced the stream
            stream.flush()
    sender.send(message)
    threading.Event().wait()


class _Sender:
    """Sends messages from two threads."""

    def __init__(self, connection):
        self.connection, self.lock = connection, threading.Lock()

    def send(self, message: tuple) -> None:
        with self.lock:
            self.connection.send(message)


def _redirect(printed):
    """Write all output, that of libraries too, to a file: it keeps the last words of a rank that dies."""
    file = os.open(printed, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
    sys.stdout, sys.stderr = (
        open(n, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False) for n in (1, 2)
    )


def _enter(job):
    """Take over the folder, path and environment of the asking process."""
    os.environ.clear()
    os.environ.update(job.environment)
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = LOOPBACK.get(sys.platform, "lo")
    sys.path[:] = job.path
    with contextlib.suppress(OSError):
        os.chdir(job.folder)
    if job.parcel.has_kernels:
        import flashlib.kernels  # noqa: F401  before triton, which unpickling the function may import


def _join(rank, job, store):
    """Join the group. The ranks find each other through a file; only gloo listens on a socket."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # the ranks share the cores
    meeting, timeout = dist.FileStore(store, job.ranks), timedelta(seconds=job.seconds)
    meeting.set_timeout(timeout)
    dist.init_process_group(job.backend, store=meeting, rank=rank, world_size=job.ranks, timeout=timeout)


def _is_slow(name):
    """Return whether to import a module before forking the next ranks: some, such as optimizers, take seconds."""
    return name.startswith(("torch.", "triton")) and "inductor" not in name  # it starts processes


def _wait_for_all():
    """Wait until all have joined: if a rank died before, gloo would complain in all the others."""
    import torch.distributed as dist

    dist.barrier()


def _answer(connection, sender):
    """Answer the launcher with the line at which this rank is, and end with the launcher."""
    main = threading.main_thread().ident
    try:
        while True:
            connection.recv()
            sender.send(("site", waits.site_of(sys._current_frames().get(main))))
    except (EOFError, OSError):
        os._exit(1)
