"""The exercises on roles: what the warps of a Hopper kernel do, and who waits for whom."""

from collections.abc import Callable, Iterator
from functools import partial

from flashlib.checks.engine import Finding, Known, Verdict, exercise, solutions
from flashlib.checks.harness import roles
from flashlib.language.phrases import and_list
from flashlib.pipeline import (
    Arrive,
    Compute,
    Copy,
    Expect,
    Finish,
    Product,
    Program,
    Ring,
    Wait,
    barriers,
    protocol,
)
from flashlib.pipeline.commands import Command
from flashlib.pipeline.protocol import Sizes

SIZES = Sizes(d=128, B_c=128)


# ---- a producer


def producer_program(answer: Callable, n: int, stages: int, readers: int) -> Program:
    ring = Ring.of("k", stages, SIZES.kv_bytes, readers)
    made: dict[str, Callable] = {"producer": partial(answer, n, ring)}
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


def producer_cause(program: Program, found: Finding) -> Finding:
    """Return a Finding about a wrong or missing wait if each tile is expected and copied once; else `found`."""
    done = list(program.roles["producer"]())
    expected = [one.barrier.name for one in done if isinstance(one, Expect)]
    arrived = [one.barrier.name for one in done if isinstance(one, Arrive)]
    copied = [one.barrier.name for one in done if isinstance(one, Copy)]
    if found.id in ("too_many_arrivals", "overwritten", "two_phases_ahead") and expected == copied and not arrived:
        return Finding("wait_wrong", **found.fields)
    return found


PRODUCER = roles.RoleTask(
    producer_program, ("tiles", "slots", "consumers"), ((1, 1, 1), (14, 6, 4)), cause=producer_cause
)


@exercise(
    title="A producer", minutes=20, difficulty="medium", program=solutions.program("producer"),
    model=PRODUCER.model,
)  # fmt: skip
def producer(answer: Callable, known: Known) -> Verdict:
    fixed = [(1, 1, 1), (2, 2, 1), (2, 1, 1), (2, 4, 1), (3, 2, 1), (5, 3, 2), (6, 2, 2), (9, 4, 3), (7, 1, 2)]
    return roles.examine(answer, fixed, known, PRODUCER)


# ---- a consumer


def consumer_program(answer: Callable, n: int, k_slots: int, v_slots: int) -> Program:
    q = Ring.of("q", 1, SIZES.q_bytes)
    k, v = Ring.of("k", k_slots, SIZES.kv_bytes), Ring.of("v", v_slots, SIZES.kv_bytes)
    made: dict[str, Callable] = {
        "producer": partial(_bring, n, q, k, v),
        "consumer": partial(answer, n, q, k, v, SIZES.flops, softmax, rescale),
    }
    barriers = [barrier for ring in (q, k, v) for barrier in (*ring.full, *ring.empty)]
    return Program(made, tuple(barriers), (*q.slots, *k.slots, *v.slots))


def _bring(n, q, k, v):
    """Copy Q, then K and V tile by tile; then wait until all slots are free, as the next row block would."""
    yield Expect(q.full[0], SIZES.q_bytes)
    yield Copy("Q", q.slots[0], q.full[0])
    for g in range(n):
        for name, ring in (("K", k), ("V", v)):
            s = yield from _free(ring, g)
            yield Expect(ring.full[s], SIZES.kv_bytes)
            yield Copy(f"{name}{g}", ring.slots[s], ring.full[s])
    for ring in (k, v):
        for g in range(n, n + len(ring.slots)):
            yield from _free(ring, g)


def _free(ring, g):
    """Wait until tile g has a slot, and return its number."""
    stages = len(ring.slots)
    yield Wait(ring.empty[g % stages], g // stages % 2 ^ 1)
    return g % stages


def softmax(g: int) -> Iterator[Command]:
    """Turn S of tile g into P."""
    return protocol.softmax(g, SIZES)


def rescale(g: int) -> Iterator[Command]:
    """Multiply O_acc by alpha of tile g."""
    return protocol.rescale(g, SIZES)


def consumer_work(program: Program, n: int, k_slots: int, v_slots: int) -> None:  # noqa: ARG001
    """Raise Finding unless a consumer does the work of each tile once, in order, and releases each slot once."""
    done = list(program.roles["consumer"]())
    wanted = {f"S{g}": ["Q", f"K{g}"] for g in range(n)} | {f"PV{g}": [f"V{g}"] for g in range(n)}
    products = [one for one in done if isinstance(one, Product)]
    for product in products:
        _check_product(product, wanted)
    names = [one.name for one in done if isinstance(one, Product | Compute)]
    _check_once([product.name for product in products], wanted, "product")
    for g in range(n):
        steps = [f"{operation} {g}" for operation, _, _ in protocol.OPERATIONS]
        _check_once(names, steps, "softmax", g)
        if g:  # O_acc is 0 before tile 0: it need not be rescaled
            _check_once(names, [f"rescale {g}"], "rescale", g)
        rescaled = names.index(f"rescale {g}") if f"rescale {g}" in names else names.index(f"PV{g}")
        if names.index(steps[-1]) > names.index(f"PV{g}"):
            raise Finding("softmax_late", g=g)
        if rescaled > names.index(f"PV{g}"):
            raise Finding("rescale_late", g=g)
        if rescaled < names.index(steps[-1]):
            raise Finding("rescale_early", g=g)
    _check_releases(done, n)


def _check_product(product, wanted):
    if product.name not in wanted:
        raise Finding("product_unknown", name=product.name)
    tiles = [tile for _, tile in product.reads]
    if sorted(tiles) != sorted(wanted[product.name]):
        given, right = and_list(tiles) or "nothing", and_list(wanted[product.name])
        raise Finding("product_reads", name=product.name, given=given, right=right)
    if product.flops != SIZES.flops:
        raise Finding("product_amount", name=product.name, given=product.flops)


def _check_once(names, wanted, kind, g=None):
    """Raise Finding unless each wanted name occurs once. g: the tile, for the sentence of the mistake."""
    for name in wanted:
        if (times := names.count(name)) != 1:
            raise Finding(f"{kind}_twice" if times else f"{kind}_missing", name=name, g=g)


def _check_releases(done, n):
    arrivals = [one.barrier.name for one in done if isinstance(one, Arrive)]
    for name in ("k", "v"):
        times = sum(arrival.startswith(f"{name}_empty") for arrival in arrivals)
        if times != n:
            raise Finding("releases", name=name, times=times, n=n)


CONSUMER = roles.RoleTask(
    consumer_program, ("tiles", "slots of K", "slots of V"), ((1, 1, 1), (9, 5, 5)), consumer_work
)
RINGS = [
    (1, 1, 1),
    (2, 1, 1),
    (2, 2, 2),
    (2, 4, 3),
    (3, 1, 2),
    (3, 2, 1),
    (4, 2, 2),
    (5, 3, 2),
    (6, 2, 4),
    (7, 4, 3),
]


# right too, and the shortest way to mend faulty_consumer
Q_AT_EACH_TILE = (
    "yield Wait(q.full[0], 0)\n    for g in range(n): -> for g in range(n):\n        yield Wait(q.full[0], 0)"
)


@exercise(
    title="A consumer with three faults", minutes=30, difficulty="medium", program=solutions.program("consumer"),
    variants=(Q_AT_EACH_TILE,), model=CONSUMER.model,
)  # fmt: skip
def consumer(answer: Callable, known: Known) -> Verdict:
    return roles.examine(answer, RINGS, known, CONSUMER)


# ---- turns


def turns_program(answer: Callable, n: int, consumers: int) -> Program:
    turn = barriers("turn", consumers)
    made: dict[str, Callable] = {
        f"consumer {me}": partial(answer, me, consumers, n, turn, partial(_products, me, consumers), _softmax)
        for me in range(consumers)
    }
    return Program(made, tuple(turn), ())


def _products(me, consumers, u):
    """Issue both products of a consumer's turn u: P V of a tile, and S of the next."""
    for name in (f"PV{u}", f"S{u + 1}"):
        yield Product(name, (), SIZES.flops, turn=u * consumers + me)


def _softmax(u):
    """Turn S of turn u into P, once both of its results are there."""
    for command in protocol.softmax(u + 1, SIZES):
        yield command._replace(needs=(f"PV{u}", f"S{u + 1}"))


def turns_work(program: Program, n: int, consumers: int) -> None:  # noqa: ARG001
    """Raise Finding unless each consumer takes all its turns, and hands each on before it waits."""
    for make in program.roles.values():
        names, late = [], False  # late: whether one of the products of this turn was waited for
        for one in make():
            if isinstance(one, Product | Finish):
                late = isinstance(one, Finish)
            if isinstance(one, Arrive):
                if late:
                    raise Finding("turn_late")
            names += [one.name] if isinstance(one, Product | Compute) else []
        for u in range(n):
            _check_once(names, [f"PV{u}", f"S{u + 1}"], "products", u)
            _check_once(names, [f"{operation} {u + 1}" for operation, _, _ in protocol.OPERATIONS], "softmax", u)


TURNS = roles.RoleTask(turns_program, ("turns", "consumers"), ((2, 1), (8, 4)), turns_work)


@exercise(
    title="Turns (ping-pong)", minutes=25, difficulty="medium", program=solutions.program("in_turns"),
    model=TURNS.model,
)  # fmt: skip
def in_turns(answer: Callable, known: Known) -> Verdict:
    fixed = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (2, 3), (4, 2), (5, 3)]
    return roles.examine(answer, fixed, known, TURNS)


# ---- a consumer that overlaps


def overlapped_work(program: Program, n: int, k_slots: int, v_slots: int) -> None:
    """Raise Finding unless it does a consumer's work, and each softmax but one overlaps with a product."""
    consumer_work(program, n, k_slots, v_slots)
    pending, alone = 0, set()
    for one in program.roles["consumer"]():
        if isinstance(one, Product):
            pending += 1
        elif isinstance(one, Finish):
            pending = min(pending, one.pending)
        elif isinstance(one, Compute) and one.unit == "exp" and not pending:
            alone.add(one.name)
    if len(alone) > 1:
        raise Finding("not_overlapped", n=len(alone), all=n)


def overlapped_cause(program: Program, found: Finding) -> Finding:
    """Return a Finding about K waited for before the only slot of V is released, if that hangs; else `found`."""
    done = list(enumerate(program.roles["consumer"]()))
    waits = [n for n, one in done if isinstance(one, Wait) and one.barrier.name.startswith("k_full")]
    releases = [n for n, one in done if isinstance(one, Arrive) and one.barrier.name.startswith("v_empty")]
    early = any(wait < release for wait, release in zip(waits[2:], releases, strict=False))  # K of g, V of g - 2
    one_slot = len({done[n][1].barrier for n in releases}) == 1
    if found.id == "deadlock" and early and one_slot and len(waits) == len(releases):
        return Finding("K_wait_early", **found.fields)
    return found


OVERLAPPED = CONSUMER._replace(work=overlapped_work, cause=overlapped_cause)


@exercise(
    title="The next product under this softmax", minutes=55, difficulty="hard",
    program=solutions.program("overlapped"), model=OVERLAPPED.model,
)  # fmt: skip
def overlapped(answer: Callable, known: Known) -> Verdict:
    return roles.examine(answer, RINGS, known, OVERLAPPED)
