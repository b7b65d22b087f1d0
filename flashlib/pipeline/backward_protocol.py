"""The roles of our Hopper backward, `kernels.hopper.backward`, without the numbers in the tiles.

The table at the top of that file says who arrives at each barrier, who waits there and for which phase. A test
runs both and compares their commands one by one. Source: FlashAttention-2, Algorithm 2; FlashAttention-3 (Shah and
others, 2024), appendix B.1, for the roles.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.pipeline import commands as c

CONSUMERS = 2
KEYS = 64  # of each
RINGS = "rows_full", "do_full", "empty", "ds_full"  # a barrier for each of two slots
BARRIERS = (
    "kv_full", "k_done", *(f"{name}[{s}]" for name in RINGS for s in range(2)),
    *(f"{name}[{at}]" for name in ("dq_full", "dq_empty", "landed") for at in range(2)),
)  # fmt: skip
OF_BOTH = {"k_done", "empty[0]", "empty[1]", "ds_full[0]", "ds_full[1]"}  # a phase takes one arrival from each


class BackwardSizes(NamedTuple):
    """d: head dimension, 64 or 128. half: the rows of a product, and the columns that it computes of dQ."""

    d: int = 128
    half: int = 64
    element: int = 2

    @property
    def halves(self) -> int:
        """The number of halves in the rows of a tile of Q and dO; dQ has its numbers in two halves."""
        return 2 if self.d == self.half else 1

    @property
    def rows(self) -> int:
        return self.halves * self.half

    @property
    def flops(self) -> int:
        """The FLOPs of a product of one half of the rows with one consumer's keys."""
        return 2 * KEYS * self.half * self.d


SIZES = BackwardSizes()


class BackwardShared(NamedTuple):
    """Slots and barriers of a program.

    kv: K of both consumers, then V; qo: two of Q, then two of dO; rows: of lse, then of delta; ds: two for each
    consumer's dS, in halves; dq: each consumer's half of dQ; landing: sums of half a tile added by others.
    """

    kv: list
    qo: list
    rows: list
    ds: list
    dq: list
    landing: list
    barriers: dict


def shared(sizes: BackwardSizes) -> BackwardShared:
    """Return the shared memory of a program."""
    tile = sizes.rows * sizes.d * sizes.element
    return BackwardShared(
        c.ring("kv", 2 * CONSUMERS, KEYS * sizes.d * sizes.element),
        c.ring("qo", 4, tile),
        c.ring("rows", 4, sizes.rows * 4),
        c.ring("ds", 2 * CONSUMERS * sizes.halves, KEYS * sizes.half * sizes.element),
        c.ring("dq", CONSUMERS, sizes.half * sizes.half * 4),
        c.ring("landing", 2, sizes.half * sizes.half * 4),
        {name: c.Barrier(name, CONSUMERS if name in OF_BOTH else 1) for name in BARRIERS},
    )


def producer(n: int, memory: BackwardShared) -> Iterator[c.Command]:
    """Load K and V once, and n tiles of rows whenever a slot is free."""
    kv, qo, rows, barriers = memory.kv, memory.qo, memory.rows, memory.barriers
    full = barriers["kv_full"]
    yield c.Expect(full, sum(slot.n_bytes for slot in kv))
    for at in range(CONSUMERS):
        yield c.Copy(f"K{at}", kv[at], full)
        yield c.Copy(f"V{at}", kv[CONSUMERS + at], full)
    for g in range(n):
        s = g % 2
        yield c.Wait(barriers[f"empty[{s}]"], g // 2 % 2 ^ 1)
        for name, of_row, slot, number, barrier in (
            (f"Q{g}", f"lse{g}", qo[s], rows[s], barriers[f"rows_full[{s}]"]),
            (f"dO{g}", f"delta{g}", qo[2 + s], rows[2 + s], barriers[f"do_full[{s}]"]),
        ):
            yield c.Expect(barrier, slot.n_bytes + number.n_bytes)
            yield c.Copy(name, slot, barrier)
            yield c.Copy(of_row, number, barrier)


def consumer(n: int, memory: BackwardShared, me: int, sizes: BackwardSizes) -> Iterator[c.Command]:
    """Sum dK and dV of the consumer's keys over n tiles, and compute its half of each dQ."""
    kv, barriers = memory.kv, memory.barriers
    yield c.Wait(barriers["kv_full"], 0)
    if sizes.halves == 2:  # K and V are loaded into registers
        yield c.Read(f"K{me}", kv[me])
        yield c.Read(f"V{me}", kv[CONSUMERS + me])
    for g in range(n):
        yield from (_step if sizes.halves == 1 else _step_of_halves)(memory, me, g, sizes)
        yield from _hand_over(memory, me, g)
    yield c.Arrive(barriers["k_done"])
    yield from _store(f"dV{me}", kv[CONSUMERS + me], (f"dV{n - 1}",))
    yield c.Wait(barriers["k_done"], 0)
    yield from _store(f"dK{me}", kv[me], (f"dK{n - 1}",))
    yield c.FinishStores()


def reducer(n: int, memory: BackwardShared) -> Iterator[c.Command]:
    """Let the copy unit add each half of n tiles of dQ to the sums in HBM."""
    for g in range(n):
        for at in range(CONSUMERS):
            yield c.Wait(memory.barriers[f"dq_full[{at}]"], g % 2)
            yield c.Store(f"dQ{g}.{at}", memory.dq[at])
            yield c.FinishStores()
            yield c.Arrive(memory.barriers[f"dq_empty[{at}]"])


def finisher(halves: int, memory: BackwardShared) -> Iterator[c.Command]:
    """Write this many half tiles of another unit's dQ, while the sums of the next one are being loaded."""
    yield from _bring(memory, 0)
    for half in range(halves):
        if half + 1 < halves:
            yield from _bring(memory, half + 1)
        yield c.Wait(memory.barriers[f"landed[{half % 2}]"], half // 2 % 2)
        yield c.Read(f"sums {half}", memory.landing[half % 2])


def _bring(memory, half):
    slot, landed = memory.landing[half % 2], memory.barriers[f"landed[{half % 2}]"]
    yield c.Expect(landed, slot.n_bytes)
    yield c.Copy(f"sums {half}", slot, landed)


def _step(memory, me, g, sizes):
    s, there, barriers = g % 2, g // 2 % 2, memory.barriers
    k, v = (memory.kv[me], f"K{me}"), (memory.kv[CONSUMERS + me], f"V{me}")
    q, do = (memory.qo[s], f"Q{g}"), (memory.qo[2 + s], f"dO{g}")
    yield c.Wait(barriers[f"rows_full[{s}]"], there)
    yield c.Product(f"S{g}", (k, q), sizes.flops)
    yield c.Wait(barriers[f"do_full[{s}]"], there)
    yield c.Product(f"dP{g}", (v, do), sizes.flops)
    yield c.Read(f"lse{g}", memory.rows[s])
    yield c.Finish(1)
    yield from _weights(g, f"S{g}", sizes)
    yield c.Product(f"dV{g}", (do,), sizes.flops)
    yield c.Read(f"delta{g}", memory.rows[2 + s])
    yield c.Finish(1)
    yield from _changes(g, f"dP{g}", sizes)
    yield c.Write(f"dS{g}.{me}", memory.ds[s * 2 + me], (f"S{g}", f"dP{g}"))
    yield c.Fence()
    yield c.Arrive(barriers[f"ds_full[{s}]"])
    yield c.Product(f"dK{g}", (q,), sizes.flops)
    yield c.Finish()
    yield c.Arrive(barriers[f"empty[{s}]"])
    yield c.Wait(barriers[f"ds_full[{s}]"], there)
    for at in range(CONSUMERS):
        reads = (memory.ds[s * 2 + at], f"dS{g}.{at}"), (memory.kv[at], f"K{at}")
        yield c.Product(f"dQ{g}.{at}", reads, sizes.flops // 2)
    yield c.Finish()


def _step_of_halves(memory, me, g, sizes):
    """Process a tile of 128 rows at d = 64: products of one half of them run during the softmax of the other."""
    s, there, barriers = g % 2, g // 2 % 2, memory.barriers
    q, do = (memory.qo[s], f"Q{g}"), (memory.qo[2 + s], f"dO{g}")

    def begin(name, *reads):
        return c.Product(name, reads, sizes.flops)

    yield c.Wait(barriers[f"rows_full[{s}]"], there)
    yield begin(f"S{g}", q)
    yield c.Wait(barriers[f"do_full[{s}]"], there)
    yield begin(f"dP{g}", do)
    yield begin(_of_half(1, f"S{g}"), q)
    for half in range(2):
        S, dP = _of_half(half, f"S{g}"), _of_half(half, f"dP{g}")
        yield c.Read(f"lse{g}", memory.rows[s])
        yield c.Finish(2 + half)
        yield from _weights(g, S, sizes)
        yield begin(f"dV{g}", do)
        yield c.Read(f"delta{g}", memory.rows[2 + s])
        yield c.Finish(2)
        yield from _changes(g, dP, sizes)
        yield c.Write(_of_half(half, f"dS{g}.{me}"), memory.ds[s * 4 + me * 2 + half], (S, dP))
        if not half:
            yield begin(_of_half(1, f"dP{g}"), do)
        else:
            yield c.Fence()
            yield c.Arrive(barriers[f"ds_full[{s}]"])
        yield begin(f"dK{g}", q)
    yield c.Wait(barriers[f"ds_full[{s}]"], there)
    for at in range(CONSUMERS):
        dS = _of_half(me, f"dS{g}.{at}")
        reads = (memory.ds[s * 4 + at * 2 + me], dS), (memory.kv[at], f"K{at}")
        yield c.Product(f"dQ{g}.{at}", reads, sizes.flops)
    yield c.Finish(2)
    yield c.Arrive(barriers[f"empty[{s}]"])
    yield c.Finish()


def _of_half(half, name):
    """Return the name of a tile or product for one half of the rows; the second half is computed later."""
    return f"later {name}" if half else name


def _weights(g, needs, sizes):
    """P = exp(S - lse)."""
    yield c.Compute(f"exp {g}", "exp", KEYS * sizes.half, (needs,))


def _changes(g, needs, sizes):
    """dS = P * (dP - delta)."""
    yield c.Compute(f"dS {g}", "fma", 2 * KEYS * sizes.half, (needs,))


def _hand_over(memory, me, g):
    yield c.Wait(memory.barriers[f"dq_empty[{me}]"], g % 2 ^ 1)
    yield c.Write(f"dQ{g}.{me}", memory.dq[me], tuple(f"dQ{g}.{at}" for at in range(CONSUMERS)))
    yield c.Fence()
    yield c.Arrive(memory.barriers[f"dq_full[{me}]"])


def _store(tile, slot, needs):
    yield c.Write(tile, slot, needs)
    yield c.Fence()
    yield c.Store(tile, slot)


def program(n: int, sizes: BackwardSizes = SIZES, finished: int = 0) -> c.Program:
    """Return a producer, two consumers, a reducer and a finisher.

    n: how many tiles of rows see the program's keys; finished: how many half tiles of dQ it makes from the sums of
    others.
    """
    check_counts(at_least=1, n=n)
    check_counts(at_least=0, finished=finished)
    memory = shared(sizes)
    roles: dict[str, Callable] = {"producer": functools.partial(producer, n, memory)}
    for me in range(CONSUMERS):
        roles[f"consumer {me}"] = functools.partial(consumer, n, memory, me, sizes)
    roles["reducer"] = functools.partial(reducer, n, memory)
    if finished:
        roles["finisher"] = functools.partial(finisher, finished, memory)
    slots = (*memory.kv, *memory.qo, *memory.rows, *memory.ds, *memory.dq, *memory.landing)
    return c.Program(roles, tuple(memory.barriers.values()), slots)
