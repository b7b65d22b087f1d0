"""What is told when a run fails: one error, with the rank that it comes from and where the others stand."""

import os
import traceback
from typing import NamedTuple

from flashlib.learner import containment
from flashlib.learner.error_text import LONGEST, cut
from flashlib.ring.processes import waits

BELOW = ("flashlib/ring/processes/", "torch/distributed/c10d_logger.py")  # files whose lines help nobody
LOST, TIMED_OUT = ("Connection closed by peer", "Connection reset by peer", "Broken pipe"), "Timed out waiting"
OVERRUN = "Received data size doesn't match expected size"  # gloo, which then ends the process
TOO_MUCH = (
    "it was sent more bytes than its tensor holds; let a send and its recv have tensors of one size and dtype"
)


class RankError(RuntimeError):
    """A rank raised, or its process died. rank: the first that did."""

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class RanksWait(RankError):
    """The ranks did not end in time; the text says who waits for whom."""


class Raised(NamedTuple):
    """What a rank raised.

    said: the kind of error and its text. traceback: without the lines of what runs it. cause: "lost" if only the
    end of another rank was noticed, "timed out" if another was waited for, else "own". place: where.
    """

    said: str
    traceback: str
    cause: str
    place: waits.Place


class Died(NamedTuple):
    """How a rank's process ended. code: its exit code. printed: the last that it and libraries printed."""

    code: int | None
    printed: str


def raised(error: BaseException) -> Raised:
    """Return what a rank tells of an error that it raised."""
    shown = traceback.TracebackException.from_exception(error)
    _shorten(shown)
    said = cut("".join(shown.format_exception_only()).strip())
    place, why = waits.place_of_error(error), cause(error)
    if why != "own":
        place = place._replace(call=place.call or "wait")
    return Raised(said, cut("".join(shown.format()), 20 * LONGEST), why, place)


def _shorten(shown):
    """Leave out lines that help nobody, and call the file of a cell one; its name has numbers that change."""
    frames = [frame for frame in shown.stack if not any(n in frame.filename.replace("\\", "/") for n in BELOW)]
    for frame in frames:
        if frame.line and not os.path.exists(frame.filename):
            frame.filename = "<cell>"
    shown.stack = traceback.StackSummary.from_list(frames)
    for earlier in filter(None, (shown.__cause__, shown.__context__)):
        _shorten(earlier)


def cause(error: BaseException) -> str:
    """Return "own", or how another rank brought an error about: "lost" or "timed out"."""
    text = str(error) if isinstance(error, RuntimeError) else ""
    if "gloo" not in text:
        return "own"
    if TIMED_OUT in text:
        return "timed out"
    return "lost" if any(words in text for words in LOST) else "own"


class Outcome(NamedTuple):
    """What is known of the ranks of a run.

    returned: {rank: what it returned, packed}. ended: {rank: Raised or Died}. places: {rank: Place} of those that
    returned or go on. stuck: whether no rank can go on.
    """

    ranks: int
    seconds: float
    returned: dict
    ended: dict
    places: dict
    stuck: bool = False


def failure(outcome: Outcome) -> RankError:
    """Return the error of a run in which not all ranks returned."""
    ended = outcome.ended
    own = {rank: what for rank, what in ended.items() if isinstance(what, Died) or what.cause == "own"}
    late = {rank: what for rank, what in ended.items() if rank not in own}
    if not own and (not late or any(what.cause == "timed out" for what in late.values())):
        places = {rank: what.place for rank, what in late.items()}  # gloo then ends the connection to others too
        return _waiting(outcome._replace(places=outcome.places | places))
    first = min(own or ended)
    what = ended[first]
    if isinstance(what, Died):
        said = f"rank {first} ended its process: {containment.death(what.code)}"
        return RankError(f"{said}: {TOO_MUCH}" if OVERRUN in what.printed else said, first)
    same = sorted(rank for rank, other in own.items() if isinstance(other, Raised) and other.said == what.said)
    return RankError(
        f"{_who(same or [first])} raised {what.said}\n\nOn rank {first}:\n{what.traceback.rstrip()}", first
    )


def _who(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _waiting(outcome):
    """Return the error of a run in which ranks wait or compute for too long."""
    late = [rank for rank in range(outcome.ranks) if rank not in outcome.returned]
    lines = ["no rank can go on:" if outcome.stuck else f"not all ranks ended within {outcome.seconds:g} seconds:"]
    for rank in late:
        known = rank in outcome.places
        said = (
            waits.sentence(rank, outcome.places, {*outcome.returned}) if known else f"rank {rank} gives no answer"
        )
        lines.append(f"- {said}")
    lines += [f"- {_who(sorted(outcome.returned))} returned"] if outcome.returned else []
    return RanksWait("\n".join(lines), min(late))
