"""Who waits for whom: what each rank has begun to send and receive, and the line at which it is."""

import contextlib
import functools
import importlib
import linecache
import os
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from flashlib.language.phrases import and_list

OWN = os.path.dirname(os.path.abspath(__file__))
ANYONE = -1  # a rank receives from
POINT_TO_POINT = {"send": "dst", "isend": "dst", "recv": "src", "irecv": "src"}

_begun: Counter = Counter()  # {("send" or "recv", peer): how many calls this process has begun}
_inside = threading.local()


class CallSite(NamedTuple):
    """Where a rank is.

    line, text, function: the innermost line outside torch. call: the function of torch.distributed that it is in,
    or "". group: the ranks of that call's group. begun: [(kind, peer, how many)], the sends and receives begun so
    far.
    """

    line: int
    text: str
    function: str
    call: str
    group: tuple[int, ...]
    begun: list


@contextlib.contextmanager
def calls_counted() -> Iterator[None]:
    """Count the calls of isend, irecv, send and recv in this process, by peer."""
    import torch.distributed as dist

    modules = dist, importlib.import_module("torch.distributed.distributed_c10d")
    originals = [(module, name, getattr(module, name)) for module in modules for name in POINT_TO_POINT]
    counting = {name: _counting(name, getattr(dist, name)) for name in POINT_TO_POINT}
    _begun.clear()
    for module, name, _ in originals:
        setattr(module, name, counting[name])  # P2POp needs the same function in both modules
    try:
        yield
    finally:
        for module, name, original in originals:
            setattr(module, name, original)


def _counting(name, original):
    """Return a function of torch.distributed that counts its calls; send, which calls isend, counts once."""
    peer = POINT_TO_POINT[name]

    @functools.wraps(original)
    def counted(*arguments, **options):
        if getattr(_inside, "a_call", False):
            return original(*arguments, **options)
        _inside.a_call = True
        try:
            _begun[name.removeprefix("i"), _peer(peer, arguments, options)] += 1
            return original(*arguments, **options)
        finally:
            _inside.a_call = False

    return counted


def _peer(name, arguments, options):
    """Return the rank that a call sends to or receives from."""
    import torch.distributed as dist

    peer = options.get(name, arguments[1] if len(arguments) > 1 else None)
    in_group = options.get(f"group_{name}", arguments[4] if len(arguments) > 4 else None)
    if peer is None and in_group is not None:
        group = options.get("group", arguments[2] if len(arguments) > 2 else None)
        peer = dist.get_global_rank(group or dist.group.WORLD, in_group)
    return ANYONE if peer is None else int(peer)


def site_of(frame: FrameType | None) -> CallSite:
    """Return the CallSite of the innermost frame of the main thread."""
    return _site([(frame, line) for frame, line in traceback.walk_stack(frame)])


def site_of_error(error: BaseException) -> CallSite:
    """Return the CallSite at which an error was raised."""
    return _site([(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)][::-1])


def _site(frames):
    """Return the CallSite of frames with their lines, given from the innermost outwards."""
    call, group = "", ()
    for frame, line in frames:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if module == "torch.distributed.distributed_c10d":
            call, group = code.co_name, _group(frame)
        elif not (module.startswith(("torch.", "threading")) or code.co_filename.startswith(OWN)):
            return CallSite(line, _text(code.co_filename, line), code.co_name, call, group, _counts())
    return CallSite(0, "", "", call, group, _counts())


def _text(file, line):
    """Return a line of a file, or "" if its text is not known.

    The main thread may be changing what `linecache` holds, so that it returns None. That must not end the thread
    that reports where a rank is.
    """
    lines = linecache.getlines(file) or []
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def _counts():
    return [(kind, peer, count) for (kind, peer), count in list(_begun.items())]


def _group(frame):
    """Return the ranks of the group that was passed to a function of torch.distributed."""
    dist = sys.modules["torch.distributed"]
    group = frame.f_locals.get("group")
    try:
        return tuple(dist.get_process_group_ranks(group))
    except Exception:  # the group no longer exists, or the argument is not a group
        return ()


def sentence(rank: int, sites: dict[int, CallSite], returned: set[int]) -> str:
    """Return what a rank is doing, and for whom it waits. sites: {rank: CallSite}, as far as they are known."""
    site = sites[rank]
    where = f"line {site.line} of {site.function}" if site.line else "no line"
    where += f": {site.text}" if site.text else ""
    if not _waits(site):
        return f"rank {rank} computes, at {where}" if site.text else f"rank {rank} is at {where}"
    names = and_list(_awaited(rank, sites, returned))
    return f"rank {rank} waits for {names}, at {where}" if names else f"rank {rank} waits, at {where}"


def is_held(rank: int, sites: dict[int, CallSite], returned: set[int]) -> bool:
    """Return whether a rank waits for another that, by the calls all have begun, does not answer it."""
    return _waits(sites[rank]) and bool(_awaited(rank, sites, returned))


def _waits(site):
    return bool(site.call or ".wait(" in site.text)


def _awaited(rank, sites, returned):
    """Return in words the ranks for which a rank waits, as far as the calls that all have begun show it."""
    call, group = sites[rank].call, sites[rank].group
    if call not in ("", "wait", "batch_isend_irecv", *POINT_TO_POINT):
        absent = [r for r in group if r != rank and (r in returned or r not in sites or sites[r].call != call)]
        return [f"rank {r} (returned)" if r in returned else f"rank {r} (not in {call})" for r in absent]
    begun = {r: Counter({(kind, peer): n for kind, peer, n in site.begun}) for r, site in sites.items()}
    found = []
    for (kind, peer), count in sorted(begun[rank].items()):
        if call in POINT_TO_POINT and kind not in call:
            continue
        if peer == ANYONE:
            if sum(begun[rank][kind, r] for r in (ANYONE, *begun)) > sum(
                of["send", rank] for of in begun.values()
            ):
                found.append("whoever sends to it")
        elif peer in begun and count > _answers(begun[peer], kind, rank):
            missing = f"rank {peer} (does not receive from it)"
            if kind == "recv":
                missing = f"rank {peer} (has not sent to it)"
            found.append(f"rank {peer} (returned)" if peer in returned else missing)
    return found


def _answers(begun, kind, rank):
    """Return how many of a rank's sends, or of its receives, another rank can have answered at most."""
    return begun["recv", rank] + begun["recv", ANYONE] if kind == "send" else begun["send", rank]
