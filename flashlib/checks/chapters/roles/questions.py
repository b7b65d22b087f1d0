"""The questions of Roles."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from flashlib import pipeline
from flashlib.checks.chapters.roles import exercises
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS
from flashlib.pipeline import Arrive, Finish, Product, Wait, protocol
from flashlib.pipeline.multiprocessor import MultiprocessorState, PipelineFaultKind

GPU = GPUS["H200"]
NOTHING, DEADLOCK, OVERWRITTEN = "nothing", "deadlock", "a tile is overwritten while it is read"
TOO_EARLY = "a tile is read before it is there"
HAPPENS = {
    PipelineFaultKind.DEADLOCK: DEADLOCK, PipelineFaultKind.OVERWRITTEN: OVERWRITTEN,
    PipelineFaultKind.READ_TOO_EARLY: TOO_EARLY,
}  # fmt: skip
STEPS = ("r2_producer", "r3_consumers", "r3_turns", "r4_overlap", "r5_registers", "r6_persistent")


def _passes_at_once():
    """Return for each parity whether a role gets past a barrier before any phase has completed."""
    barrier = pipeline.Barrier("b")
    state = MultiprocessorState(pipeline.Program({"role": None}, (barrier,), ()))
    return {f"parity_{phase}": state.may("role", pipeline.Wait(barrier, phase)) for phase in (0, 1)}


def _happens(roles, barriers, slots):
    """Return what goes wrong first under some schedule."""
    fault = pipeline.check(pipeline.Program(roles, tuple(barriers), tuple(slots))).fault
    return HAPPENS[fault.kind] if fault else NOTHING


def _fetched_early(tiles=4, stages=2):
    """Return what goes wrong if the producer does not wait for `empty`.

    The product of tile 0 may still be running when it requests tile `stages`.
    """
    slots, begun = pipeline.ring("k", stages, protocol.SIZES.kv_bytes), pipeline.Barrier("begun")
    full, empty = pipeline.barriers("full", stages), pipeline.barriers("empty", stages)

    def producer():
        for g in range(tiles):
            s = g % stages
            if g == stages:
                yield Wait(begun, 0)
            yield pipeline.Expect(full[s], slots[s].n_bytes)
            yield pipeline.Copy(f"K{g}", slots[s], full[s])

    def consumer():
        for g in range(tiles):
            s = g % stages
            yield Wait(full[s], g // stages % 2)
            yield Product(f"S{g}", ((slots[s], f"K{g}"),), protocol.SIZES.flops)
            if g == 0:
                yield Arrive(begun)
            yield Finish()
            yield Arrive(empty[s])

    return _happens({"producer": producer, "consumer": consumer}, (*full, *empty, begun), slots)


def _one_slot(tiles=4):
    """Return what goes wrong if the next product runs during the softmax, with rings of one slot."""
    memory = protocol.shared(protocol.SIZES, consumers=1, stages=1)
    roles = {
        "producer": partial(protocol.producer, [tiles], memory),
        "consumer": partial(protocol.consumer, [tiles], memory, 0, protocol.SIZES, turns=False),
    }
    return _happens(roles, memory.barriers, memory.slots)


def faulty_consumer(
    n: int, q: Any, k: Any, v: Any, flops: float, softmax: Callable, rescale: Callable
) -> Iterator:  # fmt: skip
    """The consumer with three faults that the chapter shows."""
    for g in range(n):
        yield Wait(q.full[0], g % 2)
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(k.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish(1)
        yield Arrive(v.empty[t])


def _first_fault():
    """Return what `check` reports about that consumer, for four tiles in two slots of K and three of V."""
    program = exercises.consumer_program(faulty_consumer, 4, 2, 3)
    return _happens(program.roles, program.barriers, program.slots)


def _first_turns():
    """Return the parity that each consumer waits for in its first turn."""
    memory = protocol.shared(protocol.SIZES)
    found = {}
    for me in range(2):
        waits = (c for c in protocol.consumer([2], memory, me, protocol.SIZES) if isinstance(c, pipeline.Wait))
        found[f"consumer_{me}"] = next(int(wait.phase) for wait in waits if wait.barrier is memory.turn[me])
    return found


QUESTIONS = [
    Question(
        "hopper_fresh",
        _passes_at_once,
        "phase 0 is under way, so whoever waits for it, with parity 0, waits. The phase before it would have "
        "parity 1, and counts as complete.",
        hint="The phase under way is number 0. What is its parity, and which of the waits lasts as long?",
        wrong={
            ("parity_0", True): "nobody has arrived, so phase 0 is not complete",
            ("parity_1", False): "a wait for parity 1 lasts while an odd phase is under way, and 0 is even",
        },
        labels={"parity_0": "Wait(b, 0) goes on at once", "parity_1": "Wait(b, 1) goes on at once"},
    ),
    Question(
        "hopper_two_phases",
        _fetched_early,
        "tile 2 goes into slot 0, where tile 0 is still read. Nothing stops the producer; the "
        "product reads some numbers of tile 0 and some of tile 2, and the result is wrong now and then.",
        hint="Into which slot does tile 2 go, and is that slot still in use?",
        choices=(NOTHING, DEADLOCK, OVERWRITTEN),
        wrong={
            NOTHING: "tile 2 goes into slot 0, which is still read",
            DEADLOCK: "a producer that never waits is never stuck",
        },
    ),
    Question(
        "roles_faults",
        _first_fault,
        "at tile 1 it waits until phase 1 of Q's barrier is over, but Q comes once, in phase 0. So it never "
        "reaches tile 2, where V would be read too early. The third fault would show at the end alone: P V of the "
        "last tile is not waited for. With these rings V's slots are filled again so late that nothing is "
        "overwritten.",
        hint="Three lines are wrong. For each, find the first tile at which it can do harm. Does the consumer get "
        "that far?",
        choices=(DEADLOCK, OVERWRITTEN, TOO_EARLY),
        wrong={
            OVERWRITTEN: "a slot of V is filled again only with tile 3, and the producer does not get there: the "
            "consumer has stopped before",
            TOO_EARLY: "with these rings the first tile that is read too early is V of tile 2: does the "
            "consumer get there?",
        },
    ),
    Question(  # as recorded in h200_hopper_ladder.json: tests/checks/test_recorded_answers.py compares
        "roles_steps",
        lambda: {"most": "r3_consumers", "slower": "r3_turns"},
        "the tensor cores had gaps, which a second consumer fills. Two consumers may fall into turns by "
        "themselves, and then waiting for one only costs time.",
        hint="When do the tensor cores have nothing to do, and which step gives them something? Which step adds "
        "a wait and no work?",
        choices=STEPS,
        wrong={
            ("most", "r2_producer"): "the copy unit had time to spare: tiles were there in time before",
            ("most", "r4_overlap"): "the second consumer fills most of these gaps already",
            ("most", "r5_registers"): "it is a large step, but not the largest",
            ("most", "r6_persistent"): "with thousands of keys a program's beginning and end are a small part",
            ("slower", "r4_overlap"): "it adds no wait, and at this size it gains a little",
            ("slower", "r2_producer"): "it gains little, but it gains",
            ("slower", "r6_persistent"): "it gains little, but it gains",
        },
        labels={"most": "gains most", "slower": "makes it slower"},
    ),
    Question(
        "hopper_one_slot",
        _one_slot,
        "the consumer releases the slot of V only after the next K is there. But the producer brings a V "
        "before that K, and for this V the slot must be free: each waits for the other. With two slots that V "
        "has room.",
        hint="Write down who waits for what once the consumer waits for K of the next tile. Which V must come "
        "before that K?",
        choices=(NOTHING, DEADLOCK, OVERWRITTEN),
        wrong={
            NOTHING: "before K of tile 2 the producer brings V of tile 1, for which V of tile 0 must be released",
            OVERWRITTEN: "each waits until a slot is free: nothing is overwritten",
        },
    ),
    Question(
        "hopper_turns",
        _first_turns,
        "consumer 0 waits with parity 1, which a new barrier lets pass, and consumer 1 with parity 0, for the "
        "first arrival at its barrier: that of consumer 0, once its products are issued.",
        hint="A wait goes on if the phase under way has another parity. Who must go on at once, and who must wait "
        "for an arrival?",
        wrong={
            (
                "consumer_0",
                0,
            ): "nobody arrives at turn[0] before consumer 1 has had its turn: both would wait for ever",
            ("consumer_1", 1): "a new barrier lets parity 1 pass, so consumer 1 would not wait for consumer 0",
        },
    ),
]
