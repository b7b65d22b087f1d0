"""The error report of a failed run: which rank raised or died, and where the other ranks were waiting."""

import os
import traceback
from typing import NamedTuple

from flashlib.learner import containment
from flashlib.learner.error_text import LONGEST, cut
from flashlib.ring.processes import waits

HIDDEN = ("flashlib/ring/processes/", "torch/distributed/c10d_logger.py")  # files left out of tracebacks
LOST, TIMED_OUT = ("Connection closed by peer", "Connection reset by peer", "Broken pipe"), "Timed out waiting"
OVERRUN = "Received data size doesn't match expected size"  # gloo then ends the process
TOO_MUCH = (
    "it was sent more bytes than its tensor holds; give a send and its recv tensors of the same size and dtype"
)


class RankError(RuntimeError):
    """A rank raised, or its process died. rank: the first that did."""

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class RanksWait(RankError):
    """The ranks did not end in time; the text says who waits for whom."""


class RankRaised(NamedTuple):
    """An error that a rank raised.

    summary: its type and text. traceback: without the lines of the machinery. cause: "own"; "lost" if the rank
    only noticed that another one had ended; "timed out" if it waited for another one for too long. site: where it
    raised.
    """

    summary: str
    traceback: str
    cause: str
    site: waits.CallSite


class RankDied(NamedTuple):
    """How a rank's process ended. code: its exit code. printed: the last output, that of libraries included."""

    code: int | None
    printed: str


def raised(error: BaseException) -> RankRaised:
    """Return what a rank reports of an error that it raised."""
    report = traceback.TracebackException.from_exception(error)
    _shorten(report)
    summary = cut("".join(report.format_exception_only()).strip())
    site, why = waits.site_of_error(error), cause(error)
    if why != "own":
        site = site._replace(call=site.call or "wait")
    return RankRaised(summary, cut("".join(report.format()), 20 * LONGEST), why, site)


def _shorten(report):
    """Leave out the frames of HIDDEN files, and name a cell's file <cell>: its real name changes with each run."""
    frames = [frame for frame in report.stack if not any(n in frame.filename.replace("\\", "/") for n in HIDDEN)]
    for frame in frames:
        if frame.line and not os.path.exists(frame.filename):
            frame.filename = "<cell>"
    report.stack = traceback.StackSummary.from_list(frames)
    for earlier in filter(None, (report.__cause__, report.__context__)):
        _shorten(earlier)


def cause(error: BaseException) -> str:
    """Return "own", or how another rank brought an error about: "lost" or "timed out"."""
    text = str(error) if isinstance(error, RuntimeError) else ""
    if "gloo" not in text:
        return "own"
    if TIMED_OUT in text:
        return "timed out"
    return "lost" if any(words in text for words in LOST) else "own"


class RunOutcome(NamedTuple):
    """What is known about the ranks of a run.

    returned: {rank: what it returned, packed}. ended: {rank: RankRaised or RankDied}. sites: {rank: CallSite} of
    those that returned or are still running. stuck: whether no rank can go on.
    """

    ranks: int
    seconds: float
    returned: dict
    ended: dict
    sites: dict
    stuck: bool = False


def failure(outcome: RunOutcome) -> RankError:
    """Return the error of a run in which not all ranks returned."""
    ended = outcome.ended
    own = {rank: end for rank, end in ended.items() if isinstance(end, RankDied) or end.cause == "own"}
    late = {rank: end for rank, end in ended.items() if rank not in own}
    if not own and (not late or any(end.cause == "timed out" for end in late.values())):
        sites = {rank: end.site for rank, end in late.items()}  # gloo then closes the connections to others too
        return _waiting(outcome._replace(sites=outcome.sites | sites))
    first = min(own or ended)
    end = ended[first]
    if isinstance(end, RankDied):
        text = f"rank {first} ended its process: {containment.death(end.code)}"
        return RankError(f"{text}: {TOO_MUCH}" if OVERRUN in end.printed else text, first)
    same = sorted(
        rank for rank, other in own.items() if isinstance(other, RankRaised) and other.summary == end.summary
    )
    return RankError(
        f"{_ranks(same or [first])} raised {end.summary}\n\nOn rank {first}:\n{end.traceback.rstrip()}", first
    )


def _ranks(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _waiting(outcome):
    """Return the error of a run in which ranks wait or compute for too long."""
    late = [rank for rank in range(outcome.ranks) if rank not in outcome.returned]
    lines = ["no rank can go on:" if outcome.stuck else f"not all ranks ended within {outcome.seconds:g} seconds:"]
    for rank in late:
        if rank in outcome.sites:
            lines.append(f"- {waits.sentence(rank, outcome.sites, {*outcome.returned})}")
        else:
            lines.append(f"- rank {rank} gives no answer")
    lines += [f"- {_ranks(sorted(outcome.returned))} returned"] if outcome.returned else []
    return RanksWait("\n".join(lines), min(late))
