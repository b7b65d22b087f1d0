"""The exercises of chapter 13 on roles: what the warps of a Hopper kernel do, and who waits for whom."""

from functools import partial

from flashlib.checks import drawn, roles, solutions
from flashlib.checks.exercise import exercise
from flashlib.pipeline import Arrive, Finish, Product, Program, Ring, Wait
from flashlib.pipeline.protocol import Sizes

SIZES = Sizes(d=128, B_c=128)


# ---- a producer


def producer_program(answer, n, stages, readers):
    ring = Ring.of("k", stages, SIZES.kv_bytes, readers)
    made = {"producer": partial(answer, n, ring)}
    made |= {f"consumer {me}": partial(_reader, n, ring) for me in range(readers)}
    return Program(made, (*ring.full, *ring.empty), tuple(ring.slots))


def _reader(n, ring):
    """Read tile after tile, as a consumer does."""
    for g in range(n):
        s = g % len(ring.slots)
        yield Wait(ring.full[s], g // len(ring.slots) % 2)
        yield Product(f"S{g}", ((ring.slots[s], f"K{g}"),), SIZES.flops)
        yield Finish()
        yield Arrive(ring.empty[s])


def producer_work(program, n, stages, readers):  # noqa: ARG001
    """Nothing more: the consumers wait for each tile."""


PRODUCER = roles.Task(producer_program, ("tiles", "slots", "consumers"), producer_work)


@exercise(
    title="A producer", minutes=15, difficulty="medium", program=solutions.program("producer"),
    model=PRODUCER.model,
)  # fmt: skip
def producer(answer, known):
    fixed = [(1, 1, 1), (2, 2, 1), (2, 1, 1), (3, 2, 1), (5, 3, 2), (6, 2, 2), (9, 4, 3), (7, 1, 2)]
    return roles.examine(answer, fixed + drawn.tuples(_any_ring), known, PRODUCER)


def _any_ring(rng):
    return tuple(map(int, rng.integers((1, 1, 1), (14, 6, 4))))
