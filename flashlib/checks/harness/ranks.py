"""Programs of a rank that a learner writes: generators of commands, which all ranks of a ring run with numbers.

An answer is right if the results of all ranks are right, in every order of events that is tried, and if the ranks
send, hold and wait no more than necessary. Known mistakes are recognised by the results and by a text that records
what each rank did between its waits.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flashlib import ring, tiled
from flashlib.checks.engine import Known, Outcome, Verdict, announce, diagnose, random_cases
from flashlib.checks.engine.cases import UNSOLVED, Case, Finding, Tried, attempt, find_problem
from flashlib.checks.engine.diagnosis import is_found
from flashlib.checks.engine.value_text import describe_value
from flashlib.language.phrases import and_list
from flashlib.learner.error_text import cut
from flashlib.ring import commands
from flashlib.types import Attention, Grads

if TYPE_CHECKING:
    from flashlib.widgets import RingPlayer

MOST = 400  # commands of a rank
TILE = 2  # rows and keys
TIMES = ring.Times(tile=1.0, byte=0.004)  # then a copy takes about as long as the computation that it overlaps
SLOW = 1.1  # relative to the time of the solution
SHOWN = 14  # events: the last ones
OUTPUTS = "what the ranks do", "what they return"


class RankSizes(NamedTuple):
    """The sizes of a case: N tokens on P ranks. large: whether scores are near 1000 in size."""

    P: int
    N: int
    layout: str
    causal: bool
    large: bool = False

    def __str__(self):
        mask = "a causal mask" if self.causal else "no mask"
        words = f"{self.P} ranks, {self.N} tokens, {self.layout}, {mask}"
        return f"{words}, scores near 1000 and -1000" if self.large else words

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return Q, K, V and dO of one head, in fp64."""
        Q, K, V, dO = np.random.default_rng(self.N).standard_normal((4, self.N, 3))
        return Q * (1000 if self.large else 1), K, V, dO


class RankTask(NamedTuple):
    """The requirements for the programs of an answer.

    backward: whether they compute gradients. timed: whether copies must overlap with computation. blocks: how many
    of the largest buffers a rank may hold in addition to its own.
    """

    backward: bool
    timed: bool
    blocks: float

    def model(self, answer: Callable) -> Callable[..., tuple]:
        """Return a function of the sizes of a case that returns what the ranks do, and what they return."""

        def model(*sizes):
            try:
                return self.played(answer, RankSizes(*sizes))[:2]
            except Finding as found:
                return _given_back(found)

        return model

    def played(self, answer: Callable, problem: RankSizes, seed: int | None = None) -> tuple[str, np.ndarray, Any]:
        """Return what the ranks did, as text, the numbers that they returned, and the RingRun."""
        options = {**self.options(problem), "program": self.program(answer), "seed": seed}
        run = ring.events(*problem.arrays()[:3], **options)
        fault = f"\n{run.fault.kind}" if run.fault else ""
        numbers = np.concatenate([X.ravel() for X in run.result]) if run.result else np.zeros(0)
        return run_text(run) + fault, numbers, run

    def options(self, problem: RankSizes) -> dict:
        """Return the arguments of `ring.events` other than Q, K, V and the program."""
        options = {"causal": problem.causal, "B_r": TILE, "B_c": TILE}
        after = None
        if self.backward:
            Q, K, V, dO = problem.arrays()
            after = *tiled.attention(Q, K, V, **options), dO  # type: ignore[arg-type]
        return {**options, "ranks": problem.P, "layout": problem.layout, "after": after, "times": TIMES}

    def program(self, answer: Callable) -> Callable:
        """Return the answer's program of a rank, with checks."""

        def program(me):
            made = answer(me)
            if not hasattr(made, "__next__"):
                raise Finding("no_generator", given="nothing" if made is None else describe_value(made))
            return _checked(made, me, self.backward)

        return program


def _checked(made: Generator, me: ring.Rank, backward: bool) -> Generator:
    """Pass on a rank's commands; raise Finding for an invalid command or result."""
    for _ in range(MOST):
        try:
            command = next(made)
        except StopIteration as stop:
            _check_result(stop.value, me, backward)
            return stop.value
        try:
            commands.check(command, me.r, me.P)
        except (TypeError, ValueError) as error:
            raise Finding("no_command", said=cut(str(error))) from None
        yield command
    raise Finding("endless", n=MOST)


def _check_result(result, me, backward):
    if backward:
        expected, shapes = "Grads(dQ, dK, dV)", [X.shape for X in (me.Q, me.K, me.V)]
    else:
        expected, shapes = "me.finish(state), an Attention", [me.Q.shape, me.Q.shape[:-1]]
    given = "nothing" if result is None else describe_value(result)
    if isinstance(result, Grads if backward else Attention):
        if [np.shape(X) for X in result] == shapes:
            return
        given = f"arrays of shapes {', '.join(str(np.shape(X)) for X in result)}"
        expected = f"{expected} of shapes {', '.join(map(str, shapes))}"
    raise Finding("returns", rank=me.r, given=given, expected=expected)


def examine(answer: Callable, problems: Sequence[RankSizes], known: Known, task: RankTask) -> Verdict:
    """Return the Verdict on an answer. problems: sizes, the smallest first."""

    def draw(rng):
        P, causal = int(rng.integers(2, 6)), bool(rng.integers(2))
        layout = ("contiguous", "striped", "zigzag")[rng.integers(3)]
        return Case("", (P, int(rng.integers(2 * P, 26)), layout, causal), None)

    cases = [Case("", tuple(one), None) for one in problems] + random_cases.cases(draw)
    tried: list[Tried] = []
    shown: Any = None  # the first wrong case, and its RingRun
    for case in cases:
        problem = RankSizes(*case.arguments)
        announce(str, problem)
        right = task.played(known.program.function, problem)
        case = case._replace(words=f"{problem}{case.words}", expected=right[:2])
        found = attempt(lambda case=case, right=right: _looked_at(answer, case, task, right))
        if found is UNSOLVED:
            return Verdict("", Outcome.NOT_SOLVED, "")
        result, wrong, run = (found, found, None) if isinstance(found, Finding) else found
        tried.append(Tried(case, result, wrong))
        if wrong and shown is None:
            shown = tried[-1], run
        if is_found(tried[-1]):  # then no known mistake is tried
            break
    if shown is None:
        return Verdict("", Outcome.RIGHT, f"in all {len(cases)} rings, in every order that was tried")
    first, run = shown
    named = None if first.problem.id == "memory" else diagnose(known, tried, OUTPUTS)
    verdict = named or known.verdict(first.problem)
    details = [("ring", first.case.words), *_details(run, first.problem)]
    can_play = run is not None and not task.backward
    return replace(verdict, details=tuple(details), run=PlayedRanks(first.case.arguments) if can_play else None)


class PlayedRanks(NamedTuple):
    """A run that a Verdict can play: an answer as the program of every rank, in a ring of these sizes."""

    sizes: tuple

    def play(self, answer: Callable) -> "RingPlayer":
        """Return a RingPlayer, which shows where it goes wrong."""
        from flashlib.widgets import RingPlayer  # here: checks do not need widgets

        P, N, layout, causal = self.sizes[:4]
        return RingPlayer(P, max(N, 8), layout=layout, mask="causal" if causal else "none", program=answer)


def _details(run, problem):
    if run is None:
        return [("raised", problem.fields["error"])] if "error" in problem.fields else []
    said = [("at the end", run.fault.said)] if run.fault else []
    return [*said, ("events", _last_events(run))] if run.events else said


def _looked_at(answer, case, task, right):
    """Return the result of an answer in a case, what is wrong with it, or None, and the RingRun that shows it."""
    problem = RankSizes(*case.arguments)
    try:
        done, numbers, run = task.played(answer, problem)
    except Finding as found:
        return _given_back(found), found, None
    if run.fault:
        return (done, numbers), Finding(run.fault.kind.id, said=run.fault.said), run
    if wrong := find_problem(numbers, case._replace(expected=right[1])):
        return (done, numbers), wrong if wrong.id != "value" else _wrong_numbers(run, right[2]), run
    if not (late := _in_other_orders(answer, problem, task, right)):
        return (done, numbers), _wasted(run, right[2], task), run
    return (done, numbers), *late


def _given_back(found):
    """Return a stand-in for a result of the wrong type or shape: a known mistake may return the same."""
    if found.id != "returns":
        raise found
    return f"rank {found.fields['rank']} returns {found.fields['given']}", np.zeros(0)


def _wrong_numbers(run, right):
    names = [name for name, x, y in zip(run.result._fields, run.result, right.result, strict=True)
             if not np.allclose(x, y, rtol=1e-9, atol=1e-9)]  # fmt: skip
    near = all(np.allclose(x, y, rtol=1e-5, atol=1e-5) for x, y in zip(run.result, right.result, strict=True))
    return Finding("inexact" if near else "numbers", what=and_list(names) or "the result")


def _in_other_orders(answer, problem, task, right):
    """Return a Finding, and the RingRun, if the answer goes wrong in another order of events; else None."""
    done, numbers, run = task.played(answer, problem, seed=1)
    if run.fault:
        return Finding(run.fault.kind.id, said=run.fault.said), run
    if not np.allclose(numbers, right[1], rtol=1e-9, atol=1e-9):
        return _wrong_numbers(run, right[2]), run
    options = {name: x for name, x in task.options(problem).items() if name != "times"}
    try:
        report = ring.check(*problem.arrays()[:3], program=task.program(answer), **options, most=400, orders=2)
    except ValueError as error:
        return Finding("depends", said=cut(str(error))), run
    return (Finding(report.fault.kind.id, said=report.fault.said), run) if report.fault else None


def _wasted(run, right, task):
    """Return a Finding if ranks misreport work, or send, hold or wait more than needed; else None."""
    most = max(buffer.n_bytes for rank in right.ranks for buffer in rank.buffers[1:])
    # The largest, because in the other direction each rank passes on different blocks.
    sent = max(right.sent(r) for r in range(len(right.ranks)))
    for r, rank in enumerate(run.ranks):
        if run.tiles(r) != right.tiles(r):
            return Finding("no_compute", rank=r, given=run.tiles(r), expected=right.tiles(r))
        if (reported := _tiles_by_source(run, r)) != (true := _tiles_by_source(right, r)):
            source = next(s for s in sorted(reported | true) if reported.get(s) != true.get(s))
            given, expected = (" + ".join(map(str, hops.get(source, ["no"]))) for hops in (reported, true))
            return Finding("hops_said", rank=r, source=source, given=given, expected=expected)
        if run.sent(r) > sent:
            return Finding("bytes", rank=r, given=run.sent(r), expected=sent)
        if run.buffers(r) > (room := rank.own.n_bytes + int(task.blocks * most)):
            return Finding("memory", rank=r, given=run.buffers(r), expected=room)
        if not task.backward and not _keeps_own(rank):
            return Finding("own_lost", rank=r)
    times = max(event.stop for event in run.events) / max(event.stop for event in right.events)
    return Finding("slow", times=f"{times:.2f}") if task.timed and times > SLOW else None


def _keeps_own(rank):
    return all(np.array_equal(x, y) for x, y in zip(rank.own.arrays, (rank.K, rank.V), strict=True))


def _tiles_by_source(run, r):
    """Return {rank that the keys come from: [tiles of each Compute with them]}, without empty Computes."""
    found: dict[int, list[int]] = {}
    for event in run.events:
        if event.rank == r and event.kind == "compute" and event.tiles:
            found.setdefault(event.block.rank, []).append(event.tiles)
    return found


def run_text(run: ring.RingRun) -> str:
    """Return what each rank did, one line for each; the order of requests without a wait between does not show."""
    lines = []
    for r in range(len(run.ranks)):
        own = [event for event in run.events if event.rank == r and (event.kind in DONE or event.copies)]
        parts = [
            sorted(map(_short, group)) if asked else [*map(_short, group)]
            for asked, group in groupby(own, lambda event: event.kind in ASKED)
        ]
        lines.append(f"{r}: " + " ".join(word for part in parts for word in part))
    return "\n".join(lines)


ASKED = "send", "receive"
DONE: dict[str, Callable] = {
    "send": lambda event: f"to {event.other}",
    "receive": lambda event: f"from {event.other}",
    "compute": lambda event: f"with {event.block.rank} {event.tiles}",
}


def _short(event):
    return DONE[event.kind](event) if event.kind in DONE else "|"


def _last_events(run):
    """Return the last events as text, one on each line."""
    lines = [event_text(event) for event in run.events if event.kind != "wait" or event.copies]
    return "\n".join((["..."] if len(lines) > SHOWN else []) + lines[-SHOWN:])


def event_text(event: ring.Event) -> str:
    """Return when an event ended, and a sentence about it."""
    r, source = event.rank, event.block.rank if event.block else "?"
    sentence = {
        "send": f"rank {r} asks to send {event.buffer} to {event.other}",
        "receive": f"rank {r} asks to receive from {event.other} into {event.buffer}",
        "copy": f"rank {r} has sent {event.n_bytes} bytes to {event.other}",
        "wait": f"rank {r} has waited for {event.buffer or 'all copies'}",
        "compute": f"rank {r} has computed {event.tiles} tiles with the keys of {source}",
        "end": f"rank {r} ends",
    }[event.kind]
    return f"{event.stop:6.2f} {sentence}"
