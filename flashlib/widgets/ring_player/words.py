"""The sentences of RingPlayer."""

from collections.abc import Iterable

from flashlib.language.phrases import by_number, counted
from flashlib.pictures.number_text import number
from flashlib.ring import KINDS, FaultKind, RingFault
from flashlib.widgets.ring_player.record import RingTimeline, moments
from flashlib.widgets.ring_player.runs import B

ROUNDING = 1e-6  # of O and lse in fp64, at most
LAYOUTS = {
    "contiguous": "one piece of the sequence to each rank",
    "striped": "every P-th token to the same rank",
    "zigzag": "a piece from the front and one from the back to each rank",
}


def summary(sums: dict, fault: RingFault | None) -> str:
    """Return a sentence on the outcome of a run."""
    if fault:
        copies = counted(sums["copies"], "copy", "copies")
        return f"{fault.kind.capitalize()} at time {time(sums['total'])}, after {copies}."
    rest = f"Ranks are idle for {percent(sums['idle'])} of it and send {sums['sent']} bytes"
    return f"It takes {time(sums['total'])}. {rest}; {hidden(sums)}."


def _range(low, high):
    return low if low == high else f"{low} to {high}"


def totals(compare: list[dict]) -> str:
    """Return a sentence with the time of each layout, or how it goes wrong."""
    found = [f"{one['layout']} {one['fault'] or time(one['sums']['total'])}" for one in compare]
    return f"Time of each layout: {', '.join(found)}"


def hidden(sums: dict) -> str:
    """Return how much of the copying is hidden under tiles."""
    share = sums["hidden"]
    if share is None:
        return "copies take no time" if sums["copies"] else "nothing is copied"
    if share > 1 - 1e-9:
        return "every copy is hidden under tiles"
    return f"{percent(share)} of copying is hidden under tiles"


def why(setting: dict, found: RingTimeline) -> str:
    """Return how long a hop's tiles and its copy take, which determines what is hidden."""
    takes = [time(stop - start) for *_, start, stop, _ in sorted(found.copies, key=lambda one: one[4] - one[3])]
    tiles = sorted({one[4] for own in found.computes for one in own})
    if not takes or not tiles:
        return f"A tile is {B} rows by {B} keys."
    work = _range(*(time(n * setting["tile"]) for n in (tiles[0], tiles[-1])))
    copy = _range(takes[0], takes[-1])
    sizes = _range(*(str(n) for n in (tiles[0], tiles[-1])))
    tiles_of = "tile" if sizes == "1" else "tiles"
    return (
        f"A hop is {sizes} {tiles_of} of {B} rows by {B} keys; at a time of {time(setting['tile'])} a tile, "
        f"it takes {work}. To copy the {about(setting)} tokens of a rank takes {copy}."
    )


def about(setting: dict) -> str:
    low, more = divmod(setting["N"], setting["ranks"])
    return f"{low} to {low + 1}" if more else f"{low}"


def is_wrong(difference: float | None) -> bool:
    """Return whether O and lse differ from one process by more than rounding, or by NaN."""
    return difference is not None and not difference < ROUNDING


def equal(difference: float | None) -> str:
    """Return a sentence on whether the ranks' O and lse equal those of one process."""
    if difference is None:
        return "The run did not finish, so there is no O."
    if is_wrong(difference):
        return f"O and lse of the ranks differ from one process by {number(difference)}: that is wrong."
    if difference == 0:
        return "O and lse of the ranks equal one process to the last bit."
    return f"O and lse of the ranks equal one process to {number(difference)}, which is rounding."


def at_moments(found: RingTimeline, fault: RingFault | None) -> list[list]:
    """Return [time, sentence] for each moment at which something begins or ends."""
    P = len(found.computes)
    sentences = []
    for at in moments(found):
        parts = [*_ends(found, at, P), *_begins(found, at, P)]
        if fault and at == found.end:
            parts = [f"{fault.kind}, {KINDS[fault.kind]}"]
        elif at == found.total and not fault:
            parts.append("all is done")
        sentences.append([at, f"{'; '.join(parts) or 'nothing has begun yet'}."])
    return sentences


def _ends(found, at, P):
    hops: dict[int, list[int]] = {}
    for r, own in enumerate(found.computes):
        for _, hop, _, stop, tiles in own:
            if stop == at and tiles:
                hops.setdefault(hop, []).append(r)
    came = [to for _, to, _, _, stop, _ in found.copies if stop == at]
    yield from (f"{ranks(who, P)} merged hop {hop}" for hop, who in sorted(hops.items()))
    if came:
        yield f"keys came to {ranks(came, P)}"


def _begins(found, at, P):
    hops: dict[int, list[int]] = {}
    for r, own in enumerate(found.computes):
        for _, hop, start, _, tiles in own:
            if start == at and tiles:
                hops.setdefault(hop, []).append(r)
    for hop, who in sorted(hops.items()):
        names, keys = ranks(who, P), _keys(hop)
        yield by_number(len(who), f"{names} begins hop {hop}, {keys}", f"{names} begin hop {hop}, {keys}")
    going = [to for _, to, _, start, stop, _ in found.copies if start == at < stop]
    if going:
        yield f"copies to {ranks(going, P)} begin"
    idle = [r for r, own in enumerate(found.idle) if any(start == at for start, _, _ in own)]
    if idle and at < found.total:
        yield _idle(idle, P)


def _idle(idle, P):
    names = ranks(idle, P)
    return by_number(len(idle), f"{names} has nothing to compute", f"{names} have nothing to compute")


def _keys(hop):
    if hop == 0:
        return "own keys"
    return "keys from the rank before" if hop == 1 else f"keys from {hop} ranks back"


def between_moments(found: RingTimeline) -> list[str]:
    """Return what goes on from each moment until the next, in the present tense."""
    return [f"{'; '.join(_on(found, at)) or 'nothing is on'}." for at in moments(found)]


def _on(found, at):
    P = len(found.computes)
    hops: dict[int, list[int]] = {}
    for r, own in enumerate(found.computes):
        for _, hop, start, stop, tiles in own:
            if start <= at < stop and tiles:
                hops.setdefault(hop, []).append(r)
    for hop, who in sorted(hops.items()):
        names, keys = ranks(who, P), _keys(hop)
        yield by_number(len(who), f"{names} computes hop {hop}, {keys}", f"{names} compute hop {hop}, {keys}")
    coming = [to for _, to, _, start, stop, _ in found.copies if start <= at < stop]
    if coming:
        yield f"K and V come to {ranks(coming, P)}"
    idle = [r for r, own in enumerate(found.idle) if any(start <= at < stop for start, stop, _ in own)]
    if idle:
        yield _idle(idle, P)


def fault(found: RingFault) -> list[str]:
    """Return a fault as sentences: for a deadlock, one for each rank, on whom it waits for."""
    if found.kind != FaultKind.DEADLOCK:
        return [f"{found.kind}, {KINDS[found.kind]}: {found.said}."]
    waits = found.said.removeprefix("nobody can go on: ").split("; ")
    return [f"{found.kind}, {KINDS[found.kind]}.", *(f"{one}." for one in waits)]


def ranks(some: Iterable[int], P: int) -> str:
    """Return ranks by name: "rank 3", "ranks 0, 2 and 3", "all ranks"."""
    who = sorted(set(some))
    if len(who) == P:
        return "all ranks"
    *first, last = map(str, who)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


def percent(share: float) -> str:
    return f"{round(100 * share, 1):g}%"


def time(x: float) -> str:
    """Return a time to four digits, without trailing zeros."""
    return f"{x:.4g}"
