"""The roles of our Hopper kernel, `kernels.hopper.forward`, without the numbers in the tiles.

The table at the top of that file says who arrives at each barrier, who waits there and for which phase. A test
runs both and compares their commands one by one. Source: FlashAttention-3 (Shah and others, 2024), Algorithms 1
and 2, and section 3.1 for turns (ping-pong).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.pipeline import commands as c

ROWS = 64  # rows of Q that a group of four warps multiplies at once: wgmma's m
OPERATIONS = (("scale, max", "fma", 2), ("exp", "exp", 1), ("sum, round", "fma", 1.5))  # for each score


class Sizes(NamedTuple):
    """rows: of Q, for each consumer. d: head dimension. B_c: keys in a tile. element: bytes of a number."""

    rows: int = ROWS
    d: int = 128
    B_c: int = 128
    element: int = 2

    @property
    def q_bytes(self) -> int:
        return self.rows * self.d * self.element

    @property
    def kv_bytes(self) -> int:
        return self.B_c * self.d * self.element

    @property
    def flops(self) -> int:
        """The FLOPs of each of the two products of a tile."""
        return 2 * self.rows * self.B_c * self.d


SIZES, SIZES_ALIKE = Sizes(), Sizes(rows=2 * ROWS)


class Shared(NamedTuple):
    """Slots and barriers of a program; `q`, `o` and `turn` have one per consumer."""

    q: list
    q_full: list
    q_empty: list
    k: list
    k_full: list
    k_empty: list
    v: list
    v_full: list
    v_empty: list
    turn: list
    o: list

    @property
    def slots(self) -> tuple:
        return (*self.q, *self.k, *self.v, *([] if self.o is self.q else self.o))

    @property
    def full(self) -> tuple:
        return (*self.q_full, *self.k_full, *self.v_full)

    @property
    def barriers(self) -> tuple:
        return (*self.full, *self.q_empty, *self.k_empty, *self.v_empty, *self.turn)


def shared(sizes: Sizes, *, consumers: int = 2, stages: int = 2, in_place: bool = False) -> Shared:
    """Return the shared memory of a program: rings of `stages` tiles of K and V. in_place: O replaces Q."""
    check_counts(at_least=1, consumers=consumers, stages=stages)
    q = c.Ring.of("q", consumers, sizes.q_bytes)
    k = c.Ring.of("k", stages, sizes.kv_bytes, consumers)
    v = c.Ring.of("v", stages, sizes.kv_bytes, consumers)
    o = q.slots if in_place else c.ring("o", consumers, sizes.q_bytes)
    return Shared(*q, *k, *v, c.barriers("turn", consumers), o)


def producer(blocks: Sequence[int], memory: Shared, *, K_first: bool = False) -> Iterator[c.Command]:
    """Load Q, and K and V tile by tile, whenever a slot is free.

    blocks: the number of key tiles for each row block. K_first: the first K of a block is loaded before its Q.
    """
    stages, g = len(memory.k), 0
    for t, n in enumerate(blocks):
        if not K_first:
            yield from _fetch_Q(memory, t)
        for j in range(n):
            s, free = g % stages, g // stages % 2 ^ 1
            yield c.Wait(memory.k_empty[s], free)
            yield from _fetch(f"K{g}", memory.k[s], memory.k_full[s])
            if K_first and j == 0:
                yield from _fetch_Q(memory, t)
            yield c.Wait(memory.v_empty[s], free)
            yield from _fetch(f"V{g}", memory.v[s], memory.v_full[s])
            g += 1


def _fetch_Q(memory, t):
    for at, slot in enumerate(memory.q):
        yield c.Wait(memory.q_empty[at], t % 2 ^ 1)
        yield from _fetch(f"Q{t}.{at}", slot, memory.q_full[at])


def _fetch(tile, slot, full):
    yield c.Expect(full, slot.n_bytes)
    yield c.Copy(tile, slot, full)


def consumer(
    blocks: Sequence[int],
    memory: Shared,
    me: int,
    sizes: Sizes,
    *,
    turns: bool = True,
    overlap: bool = True,
) -> Iterator[c.Command]:
    """Compute the consumer's rows of each row block.

    turns: consumers issue their products one after another (ping-pong). overlap: a turn's S is issued before P V
    of the previous tile, and the softmax of S runs during that P V; otherwise after both.
    """
    g = u = 0
    for t, n in enumerate(blocks):
        last = g + n - 1
        yield c.Wait(memory.q_full[me], t % 2)
        yield _wait(memory.k_full, g)
        yield _scores(memory, me, t, g, sizes)
        yield c.Finish()
        yield c.Arrive(_at(memory.k_empty, g))
        yield from softmax(g, sizes)
        if n > 1:
            yield _wait(memory.k_full, g + 1)
        for i in range(g + 1, last + 1):
            if turns:
                yield c.Wait(memory.turn[me], u % 2 ^ (me == 0))
            yield from (_overlapped if overlap else _in_order)(memory, me, t, i, last, sizes, turns)
            u += 1
        yield from _output(memory, last, sizes)
        yield c.Finish()
        yield c.Arrive(_at(memory.v_empty, last))
        yield from _store(memory, me, t, last)
        if memory.o is memory.q:
            yield c.FinishStores()  # O is stored where Q was
        if n == 1 or memory.o is memory.q:  # no turn has freed Q's slot
            yield c.Arrive(memory.q_empty[me])
        g += n
    yield c.FinishStores()


def _overlapped(memory, me, t, g, last, sizes, turns):
    yield _scores(memory, me, t, g, sizes)
    yield from _output(memory, g - 1, sizes)
    if turns:
        yield _next_turn(memory, me)
    yield c.Finish(1)
    yield from _release(memory, me, g, last)
    yield from softmax(g, sizes)
    if g < last:
        yield _wait(memory.k_full, g + 1)
    yield c.Finish()
    yield c.Arrive(_at(memory.v_empty, g - 1))


def _in_order(memory, me, t, g, last, sizes, turns):
    yield from _output(memory, g - 1, sizes)
    yield _scores(memory, me, t, g, sizes)
    if turns:
        yield _next_turn(memory, me)
    yield c.Finish()
    yield from _release(memory, me, g, last)
    yield c.Arrive(_at(memory.v_empty, g - 1))
    yield from softmax(g, sizes)
    if g < last:
        yield _wait(memory.k_full, g + 1)


def _release(memory, me, g, last):
    """Once S of tile g is done, K's slot is free, and after the block's last S also Q's, unless O goes there."""
    yield c.Arrive(_at(memory.k_empty, g))
    if g == last and memory.o is not memory.q:
        yield c.Arrive(memory.q_empty[me])


def alike(blocks: Sequence[int], memory: Shared, sizes: Sizes) -> Iterator[c.Command]:
    """Do everything in one role: request the tiles, multiply, compute the softmax. All warps do the same."""
    stages, g = len(memory.k), 0
    for t, n in enumerate(blocks):
        yield from _fetch(f"Q{t}.0", memory.q[0], memory.q_full[0])
        for i in range(g, min(g + stages, g + n)):
            yield from _fetch_both(memory, i)
        yield c.Wait(memory.q_full[0], t % 2)
        for i in range(g, g + n):
            yield _wait(memory.k_full, i)
            yield _scores(memory, 0, t, i, sizes)
            yield c.Finish()
            yield from softmax(i, sizes)
            yield from _output(memory, i, sizes)
            yield c.Finish()
            if i + stages < g + n:  # its slots are free: the products that read them are done
                yield from _fetch_both(memory, i + stages)
        yield from _store(memory, 0, t, g + n - 1)
        g += n
    yield c.FinishStores()


def _fetch_both(memory, g):
    s = g % len(memory.k)
    yield from _fetch(f"K{g}", memory.k[s], memory.k_full[s])
    yield from _fetch(f"V{g}", memory.v[s], memory.v_full[s])


def _at(ring, g):
    return ring[g % len(ring)]


def _wait(full, g):
    return c.Wait(_at(full, g), g // len(full) % 2)


def _next_turn(memory, me):
    return c.Arrive(memory.turn[(me + 1) % len(memory.turn)])


def _scores(memory, me, t, g, sizes):
    return c.Product(f"S{g}", ((memory.q[me], f"Q{t}.{me}"), (_at(memory.k, g), f"K{g}")), sizes.flops)


def softmax(g: int, sizes: Sizes) -> Iterator[c.Compute]:
    """Turn S of a tile into P, which takes longer than it seems with 16 exponentials per clock."""
    for name, unit, each in OPERATIONS:
        yield c.Compute(f"{name} {g}", unit, each * sizes.rows * sizes.B_c, (f"S{g}",))


def rescale(g: int, sizes: Sizes) -> Iterator[c.Compute]:
    """Multiply O_acc by alpha of a tile."""
    yield c.Compute(f"rescale {g}", "fma", sizes.rows * sizes.d, (f"PV{g - 1}",) if g else ())


def _output(memory, g, sizes):
    """Wait for V of a tile, rescale O_acc and add P V."""
    yield _wait(memory.v_full, g)
    yield from rescale(g, sizes)
    yield c.Product(f"PV{g}", ((_at(memory.v, g), f"V{g}"),), sizes.flops)


def _store(memory, me, t, last):
    yield c.FinishStores()  # the copy unit has read the previous O
    yield c.Write(f"O{t}.{me}", memory.o[me], (f"PV{last}",))
    yield c.Fence()
    yield c.Store(f"O{t}.{me}", memory.o[me])


def check_blocks(blocks: Sequence[int]) -> None:
    """Raise TypeError or ValueError unless each row block sees an integer number of tiles, at least one."""
    if not isinstance(blocks, list | tuple) or not blocks:
        raise TypeError(f"blocks is {blocks!r}; pass a list of how many tiles of keys each row block sees")
    for t, n in enumerate(blocks):
        check_counts(at_least=1, **{f"blocks[{t}]": n})


def program(
    blocks: Sequence[int],
    sizes: Sizes = SIZES,
    *,
    consumers: int = 2,
    stages: int = 2,
    turns: bool = True,
    overlap: bool = True,
    in_place: bool = False,
    K_first: bool = False,
) -> c.Program:
    """Return a producer and its consumers. blocks: how many tiles of keys each row block sees, in order.

    turns, overlap: as in `consumer`. in_place: O is stored from Q's slot, as at d = 256, where there is no space
    for both. K_first: as in `producer`; the finished kernel does so, the rungs do not.
    """
    check_blocks(blocks)
    if overlap and stages < 2:
        raise ValueError(
            "stages is 1, and K of the next tile is waited for before V of the last is released; pass 2"
        )
    memory = shared(sizes, consumers=consumers, stages=stages, in_place=in_place)
    roles: dict[str, Callable] = {"producer": functools.partial(producer, blocks, memory, K_first=K_first)}
    for me in range(consumers):
        one = functools.partial(consumer, blocks, memory, me, sizes, turns=turns, overlap=overlap)
        roles[f"consumer {me}"] = one
    used = memory.barriers if turns else memory.barriers[: -len(memory.turn)]
    return c.Program(roles, used, memory.slots)


def program_alike(blocks: Sequence[int], sizes: Sizes = SIZES_ALIKE, *, stages: int = 2) -> c.Program:
    """Return a program in which all warps do the same."""
    check_blocks(blocks)
    memory = shared(sizes, consumers=1, stages=stages)
    return c.Program({"warps": functools.partial(alike, blocks, memory, sizes)}, memory.full, memory.slots)
