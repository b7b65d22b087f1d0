"""The questions on the backward for Hopper."""

from functools import partial

from flashlib import pipeline
from flashlib.checks.engine.prediction import Question
from flashlib.pipeline import backward_protocol

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
        lambda: {"own": 4096 // backward_protocol.KEYS, "both": 4096 // (2 * backward_protocol.KEYS)},
        "4096 / 64 = 64 consumers see a row, and each adds to all its columns. If the tensor cores sum over the "
        "keys of both consumers first, a program adds once to each number: 4096 / 128 = 32 times.",
        hint="How many consumers see a row of Q, and in how many programs are they? How many of those in a "
        "program add to the same column?",
        wrong={
            ("own", 32): "in each of the 32 programs two consumers add to each number",
            ("own", 128): "a consumer has 64 keys, and the tensor cores sum over them",
            ("own", 4096): "the tensor cores sum over a consumer's keys before it adds",
            ("both", 64): "a number is in one half of the columns, which one consumer of a program computes",
            ("both", 16): "a program has 128 keys, those of both consumers together",
            ("both", 4096): "the tensor cores sum over 128 keys before a consumer adds",
        },
        labels={"own": "each adds what its own keys contribute", "both": "half the columns each"},
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
