"""The roles of the Hopper kernel in eight bits, as `kernels.hopper.fp8` has them, without the numbers in tiles.

The producer and the shared memory are those of `protocol`. A consumer's turn has another order: it makes P of the
tile before at its beginning, and waits for V of a tile at the end of the turn that computed its S.
"""

import functools
from collections.abc import Callable, Iterator, Sequence

from flashlib.pipeline import commands as c
from flashlib.pipeline import protocol


def consumer(
    blocks: Sequence[int], memory: protocol.Shared, me: int, sizes: protocol.Sizes, *, turns: bool, under: bool
) -> Iterator[c.Command]:
    """Compute the consumer's rows of each row block.

    blocks: tiles of keys of each. turns: consumers issue their products one after the other. under: the maxima of
    S are found under P V of the tile before; else after both.
    """
    g = u = 0
    for t, n in enumerate(blocks):
        last = g + n - 1
        yield c.Wait(memory.q_full[me], t % 2)
        yield _wait(memory.k_full, g)
        yield _scores(memory, me, t, g, sizes)
        yield c.Finish()
        yield c.Arrive(_at(memory.k_empty, g))
        if n == 1:
            yield c.Arrive(memory.q_empty[me])
        yield _wait(memory.v_full, g)
        for i in range(g + 1, last + 1):
            yield from protocol.softmax(i - 1, sizes)
            yield _wait(memory.k_full, i)
            if turns:
                yield c.Wait(memory.turn[me], u % 2 ^ (me == 0))
            yield from _turn(memory, me, t, i, last, sizes, turns, under)
            u += 1
        yield from protocol.softmax(last, sizes)
        yield _output(memory, last, sizes)
        yield c.Finish()
        yield c.Arrive(_at(memory.v_empty, last))
        yield c.FinishStores()  # the copy unit has read the last O
        yield c.Write(f"O{t}.{me}", memory.o[me], (f"PV{last}",))
        yield c.Fence()
        yield c.Store(f"O{t}.{me}", memory.o[me])
        g += n
    yield c.FinishStores()


def _turn(memory, me, t, g, last, sizes, turns, under):
    yield _scores(memory, me, t, g, sizes)
    yield _output(memory, g - 1, sizes)
    if turns:
        yield c.Arrive(memory.turn[(me + 1) % len(memory.turn)])
    yield c.Finish(1)
    yield c.Arrive(_at(memory.k_empty, g))
    if g == last:
        yield c.Arrive(memory.q_empty[me])
    if not under:
        yield c.Finish()
    yield _wait(memory.v_full, g)
    if under:
        yield c.Finish()
    yield c.Arrive(_at(memory.v_empty, g - 1))


def _at(ring, g):
    return ring[g % len(ring)]


def _wait(full, g):
    return c.Wait(_at(full, g), g // len(full) % 2)


def _scores(memory, me, t, g, sizes):
    return c.Product(f"S{g}", ((memory.q[me], f"Q{t}.{me}"), (_at(memory.k, g), f"K{g}")), sizes.flops)


def _output(memory, g, sizes):
    return c.Product(f"PV{g}", ((_at(memory.v, g), f"V{g}"),), sizes.flops)


def program(
    blocks: Sequence[int], sizes: protocol.Sizes, *, consumers: int = 2, stages: int = 2, turns: bool = True,
    under: bool = True,
) -> c.Program:  # fmt: skip
    """Return a producer and its consumers; options as in `consumer`, sizes with element=1."""
    protocol.check_blocks(blocks)
    if stages < 2:
        raise ValueError("stages is 1, and V of a tile is waited for before V of the last is released; pass 2")
    memory = protocol.shared(sizes, consumers=consumers, stages=stages)
    roles: dict[str, Callable] = {"producer": functools.partial(protocol.producer, blocks, memory)}
    for me in range(consumers):
        roles[f"consumer {me}"] = functools.partial(consumer, blocks, memory, me, sizes, turns=turns, under=under)
    return c.Program(roles, memory.barriers, memory.slots)
