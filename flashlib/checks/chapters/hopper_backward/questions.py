"""The questions on the backward for Hopper."""

from functools import partial

from flashlib import pipeline
from flashlib.checks.engine.prediction import Question
from flashlib.pipeline import backward_protocol

HALF, AS_OFTEN, TWICE = "half as often", "as often", "twice as often"
NOTHING, DEADLOCK, REPLACED = "nothing", "deadlock", "dS is replaced before both have read it"


def _one_slot_of_dS(tiles=3):
    """Return what goes wrong in the backward pass if each consumer's dS has one slot, not two."""
    memory = backward_protocol.shared(backward_protocol.SIZES)
    own = memory.ds[: backward_protocol.CONSUMERS]
    slots = (*memory.kv, *memory.qo, *memory.rows, *own, *memory.dq)
    memory = memory._replace(ds=own * 2)
    roles = {"producer": partial(backward_protocol.producer, tiles, memory)}
    for me in range(backward_protocol.CONSUMERS):
        of = partial(backward_protocol.consumer, tiles, memory, me, backward_protocol.SIZES)
        roles[f"consumer {me}"] = of
    roles["reducer"] = partial(backward_protocol.reducer, tiles, memory)
    program = pipeline.Program(roles, tuple(memory.barriers.values()), slots)
    fault = pipeline.check(program, states=0, schedules=30).fault
    return NOTHING if not fault else DEADLOCK if fault.kind == "deadlock" else REPLACED


QUESTIONS = [
    Question(
        "hopper_adds",
        lambda: {"r3": TWICE, "r4": AS_OFTEN},
        "in rung 2 the tensor cores sum over all 128 keys of a program, which then adds once to each number. In "
        "rung 3 they sum over 64, and both consumers add. In rung 4 they sum over 128 again, and a number is in "
        "the columns of one consumer.",
        hint="Over how many keys do the tensor cores sum before a consumer adds? And how many consumers of a "
        "program add to the same column?",
        choices=(HALF, AS_OFTEN, TWICE),
        wrong={
            ("r3", HALF): "each consumer sums over fewer keys than in rung 2, so more is left to add",
            ("r3", AS_OFTEN): "both consumers of a program add to each number, where rung 2 has one",
            ("r4", HALF): "rung 2 too sums over 128 keys before it adds, since its consumer has all of them",
            ("r4", TWICE): "each consumer adds to its own half of the columns",
        },
        labels={"r3": "rung 3", "r4": "rung 4"},
    ),
    Question(
        "hopper_ds_slot",
        _one_slot_of_dS,
        "a consumer that is done with tile g goes on to tile g + 1 and stores its dS, while the other may still "
        "multiply with dS of tile g. With two slots that cannot happen. A consumer stores dS(g) only after it "
        "waited for dS(g - 1) of both, which each stored after its products with dS(g - 2).",
        hint="One consumer is done with its half of dQ, and the other is slow. What does the fast one store next, "
        "and where?",
        choices=(NOTHING, DEADLOCK, REPLACED),
        wrong={
            NOTHING: "nothing says that the other consumer has read dS(g) before dS(g + 1) is stored",
            DEADLOCK: "no wait is added, and each comes as soon as before",
        },
    ),
]
