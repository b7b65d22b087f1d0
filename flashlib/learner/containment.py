"""Limit a process and everything that it starts, and end them all.

On Linux, even for root: a keeper process forks the worker, and all processes that the worker leaves behind, even
in their own session, become children of the keeper. Their number, their memory and the files in their folder are
checked every LOOK seconds. On macOS the processes of the group are ended, on Windows the worker; there only its
time is limited.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

LOOK = 0.1  # seconds
END_LIMIT = 5.0  # seconds to end them; one that runs as another user stays
PROCESSES = 32
MEMORY = 8.0  # GiB for all processes, or half of what the machine has
FILES = 1.0  # GiB in their folder
DEATH_SIGNAL, SUBREAPER = 1, 36  # of prctl: the signal when a parent dies; orphaned descendants become children
LINUX = sys.platform == "linux"


def enter(connection: Connection, status: Connection) -> None:
    """Continue in a new process under a keeper or, where there is none, in this one.

    connection: used by the worker to send, not by the keeper. status: where the keeper sends the worker's exit
    code, before it waits for its own end.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    if not LINUX:
        return
    adopt_orphans()
    worker = os.fork()
    if not worker:
        status.close()
        return
    connection.close()
    ended = 0
    while ended != worker:
        ended, code = os.wait()
    with contextlib.suppress(OSError, EOFError):
        status.send(os.waitstatus_to_exitcode(code))
        status.recv()  # until the other end is closed
    os._exit(0)


def adopt_orphans() -> None:
    """Make orphaned descendants of this process its children, on Linux."""
    if LINUX:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Make this process end when the one that started it ends, however that happens, on Linux."""
    if LINUX:
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def excess(keeper: int, folder: str, seconds: float) -> str:
    """Return a sentence about how the processes below `keeper` exceed the limits, or "".

    seconds: of computing, for each process, if they do not end themselves.
    """
    if not LINUX:
        return ""
    processes = _below(keeper)
    if (used := max(map(_computed, processes), default=0.0)) > seconds:
        return f"computed for {used:.0f} seconds and did not end"
    if len(processes) > PROCESSES:
        return f"ran {len(processes)} processes at once; up to {PROCESSES} are accepted"
    page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    accepted = min(MEMORY, pages * page / 2**31)
    if (used := sum(map(_resident, processes)) * page / 2**30) > accepted:
        return f"used {used:.2f} GiB of memory; up to {accepted:.2f} are accepted"
    if (used := _size(folder) / 2**30) > FILES:
        return f"wrote {used:.2f} GiB of files; up to {FILES:.2f} are accepted"
    return ""


def computed(keeper: int) -> float:
    """Return the most seconds of computing of any process below `keeper`; 0 except on Linux."""
    return max(map(_computed, _below(keeper)), default=0.0) if LINUX else 0.0


def _computed(process):
    with contextlib.suppress(OSError):
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def end(keeper: int, folder: str) -> None:
    """End a process, all below it and all in its folder."""
    _end_all(lambda: {*_below(keeper), *_inside(folder)})
    end_group(keeper)


def end_below(process: int) -> None:
    """End all processes below a process, but not the process itself, on Linux."""
    _end_all(lambda: {*_below(process)})


def end_group(process: int) -> None:
    """End a process that leads a group, and the rest of its group, where groups exist."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)


def _end_all(found):
    """Stop, then end, the processes that `found()` returns, until it finds none; a stopped one starts none."""
    until = time.monotonic() + END_LIMIT
    while LINUX and time.monotonic() < until and (processes := found()):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)


def death(code: int | None) -> str:
    """Return a description of how a process died."""
    if code is None or code >= 0:
        return f"exit code {code}"
    name = next((s.name for s in signal.Signals if s == -code), f"signal {-code}")
    if name in ("SIGSEGV", "SIGBUS"):
        return f"{name}, it read or wrote memory that is not its own"
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name


def _below(process):
    """Return the ids of the living processes below one."""
    children: dict = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append((int(name), state))
    found, left = [], [process]
    while left:
        below = children.get(left.pop(), [])
        left += [child for child, _ in below]
        found += [child for child, state in below if state not in "ZX"]
    return found


def _inside(folder):
    """Return the ids of the processes that work in a folder; if their keeper is gone, they are below no other."""
    folder, found = os.path.realpath(folder), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"{os.readlink(f'/proc/{name}/cwd')}/".startswith((f"{folder}/", f"{folder} ")):  # " (deleted)"
                found.append(int(name))
    return found


def _resident(process):
    """Return the number of a process's memory pages that are not backed by a file."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
    except (OSError, ValueError):
        return 0
    return resident - shared


def _size(folder):
    """Return how many bytes the files below a folder take on disk."""
    total = 0
    for here, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(here, name)).st_blocks * 512
    return total
