"""Who waits for whom: what a rank has begun to send and to receive, and the line at which it stands."""

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

_begun: Counter = Counter()  # of this process: {("send" or "recv", peer): how many}
_inside = threading.local()


class Place(NamedTuple):
    """Where a rank stands.

    line, text, function: the innermost line that is not of torch's. call: the function of torch.distributed that
    it is in, or "". group: the ranks of the group of that call. begun: [(kind, peer, how many)] so far.
    """

    line: int
    text: str
    function: str
    call: str
    group: tuple[int, ...]
    begun: list


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Note in this process what isend, irecv, send and recv begin, and with whom."""
    import torch.distributed as dist

    places = dist, importlib.import_module("torch.distributed.distributed_c10d")
    kept = [(place, name, getattr(place, name)) for place in places for name in POINT_TO_POINT]
    noting = {name: _noting(name, getattr(dist, name)) for name in POINT_TO_POINT}
    _begun.clear()
    for place, name, _ in kept:
        setattr(place, name, noting[name])  # P2POp wants the same function in both
    try:
        yield
    finally:
        for place, name, original in kept:
            setattr(place, name, original)


def _noting(name, original):
    """Return a function of torch.distributed that notes its calls; send calls isend, which counts once."""
    peer = POINT_TO_POINT[name]

    @functools.wraps(original)
    def noting(*arguments, **options):
        if getattr(_inside, "a_call", False):
            return original(*arguments, **options)
        _inside.a_call = True
        try:
            _begun[name.removeprefix("i"), _peer(peer, arguments, options)] += 1
            return original(*arguments, **options)
        finally:
            _inside.a_call = False

    return noting


def _peer(name, arguments, options):
    """Return the rank that a call sends to or receives from."""
    import torch.distributed as dist

    peer = options.get(name, arguments[1] if len(arguments) > 1 else None)
    in_group = options.get(f"group_{name}", arguments[4] if len(arguments) > 4 else None)
    if peer is None and in_group is not None:
        group = options.get("group", arguments[2] if len(arguments) > 2 else None)
        peer = dist.get_global_rank(group or dist.group.WORLD, in_group)
    return ANYONE if peer is None else int(peer)


def place_of(frame: FrameType | None) -> Place:
    """Return the Place of a frame of the main thread, the innermost."""
    return _place([(frame, line) for frame, line in traceback.walk_stack(frame)])


def place_of_error(error: BaseException) -> Place:
    """Return the Place at which an error was raised."""
    return _place([(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)][::-1])


def _place(frames):
    """Return the Place of frames with their lines, the innermost first."""
    call, group = "", ()
    for frame, line in frames:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if module == "torch.distributed.distributed_c10d":
            call, group = code.co_name, _group(frame)
        elif not (module.startswith(("torch.", "threading")) or code.co_filename.startswith(OWN)):
            return Place(line, _text(code.co_filename, line), code.co_name, call, group, _counts())
    return Place(0, "", "", call, group, _counts())


def _text(file, line):
    """Return a line of a file, or "" where its text is not known.

    The main thread may be changing what `linecache` holds, which then may be None. That must not end the thread
    which reports where a rank is.
    """
    lines = linecache.getlines(file) or []
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def _counts():
    return [(kind, peer, count) for (kind, peer), count in list(_begun.items())]


def _group(frame):
    """Return the ranks of the group that a function of torch.distributed was given."""
    dist = sys.modules["torch.distributed"]
    group = frame.f_locals.get("group")
    try:
        return tuple(dist.get_process_group_ranks(group))
    except Exception:  # no group any more, or an argument that is none
        return ()


def sentence(rank: int, places: dict[int, Place], returned: set[int]) -> str:
    """Return what a rank does, and for whom it waits; places: of all ranks of which one is known."""
    place = places[rank]
    where = f"line {place.line} of {place.function}" if place.line else "no line"
    where += f": {place.text}" if place.text else ""
    if not _waits(place):
        return f"rank {rank} computes, at {where}" if place.text else f"rank {rank} is at {where}"
    names = and_list(_awaited(rank, places, returned))
    return f"rank {rank} waits for {names}, at {where}" if names else f"rank {rank} waits, at {where}"


def is_held(rank: int, places: dict[int, Place], returned: set[int]) -> bool:
    """Return whether a rank waits for one that, as far as all have begun, gives it nothing."""
    return _waits(places[rank]) and bool(_awaited(rank, places, returned))


def _waits(place):
    return bool(place.call or ".wait(" in place.text)


def _awaited(rank, places, returned):
    """Return in words each rank that one waits for, as far as what all have begun says so."""
    call, group = places[rank].call, places[rank].group
    if call not in ("", "wait", "batch_isend_irecv", *POINT_TO_POINT):
        absent = [r for r in group if r != rank and (r in returned or r not in places or places[r].call != call)]
        return [f"rank {r} (returned)" if r in returned else f"rank {r} (not in {call})" for r in absent]
    begun = {r: Counter({(kind, peer): n for kind, peer, n in place.begun}) for r, place in places.items()}
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
    """Return how many of a rank's messages, or of its calls to receive, another one has answered, at most."""
    return begun["recv", rank] + begun["recv", ANYONE] if kind == "send" else begun["send", rank]
