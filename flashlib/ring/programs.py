"""What a rank sends, receives and computes, and in which order: each program is a generator.

ring        K and V go round, one rank at a time; the next copy runs while the tiles of this hop are computed
all_gather  every rank sends its K and V to all others, then computes

Both merge a rank's own keys first, then those of the previous rank, and so on, so both give the same bits. In the
backward pass dK and dV go round behind K and V; each rank adds its share, and the last one sends them home.

Source: Liu and others, Ring Attention with Blockwise Transformers (2023); all-gather as in Llama Team, The Llama 3
Herd of Models (2024), section 3.3.2.
"""

from collections.abc import Generator

import numpy as np

from flashlib.ring.commands import BufferContent, Command, Compute, Receive, Send, Wait
from flashlib.ring.rank import Rank
from flashlib.types import Attention, Grads

Forward = Generator[Command, None, Attention]
Backward = Generator[Command, None, Grads]


def ring(me: Rank) -> Forward:
    """A rank of a ring, with two buffers besides its own K and V: one is read while the other is filled."""
    here, spare, state = me.own, [me.buffer("kv[0]"), me.buffer("kv[1]")], me.nothing()
    for hop in range(me.P):
        coming = spare[hop % 2]
        if me.goes(hop):
            yield Send(me.next, here)
        if me.comes(hop + 1):
            yield Receive(me.previous, coming)
        source = me.source(hop)
        if me.sees(source):
            new, n_tiles = me.partial(source, *here.arrays)
            state = me.merged(state, new)
            yield Compute(source, n_tiles, state)
        yield Wait()
        here = coming
    return me.finish(state)


def ring_backward(me: Rank) -> Backward:
    """A rank of a ring, backward: dK and dV follow K and V one copy behind, and the last rank sends them home."""
    here, spare, delta = me.own, [me.buffer("kv[0]"), me.buffer("kv[1]")], me.delta()
    into, out, home = me.buffer("dkv in"), me.buffer("dkv out"), me.buffer("dkv home")
    dQ, own = np.zeros(me.Q.shape, me.lse.dtype), None
    for hop in range(me.P):
        source, coming = me.source(hop), spare[hop % 2]
        if me.goes(hop):
            yield Send(me.next, here)
        if me.comes(hop + 1):
            yield Receive(me.previous, coming)
        if hop == 0 or me.comes(hop):
            K, V = here.arrays
            new, n_tiles = me.gradients(source, K, V, delta)
            dQ = dQ + new.dQ
            if n_tiles:
                yield Compute(source, n_tiles, dQ)
            own = (yield from _pass_on(me, hop, new[1:], into, out)) or own
        if me.comes(hop + 1):
            yield Receive(me.previous, into)
        if hop == 0 and 0 < me.lasts < me.P - 1:
            yield Receive((me.r + me.lasts) % me.P, home)
        yield Wait(here)
        yield Wait(coming)
        here = coming
    if me.lasts == me.P - 1 > 0:  # from the previous rank, after all else that it sends
        yield Receive(me.previous, home)
    yield Wait()
    return _grads(me, dQ, own or home.arrays)


def _pass_on(me, hop, share, into, out):
    """Add this rank's share to the dK and dV that arrived, and send them on or home; return what stays here."""
    source = me.source(hop)
    if hop:
        yield Wait(into)
        share = tuple(a + b for a, b in zip(into.arrays, share, strict=True))
    elif not me.goes(hop):
        return share
    yield Wait(out)
    out.put(share, BufferContent("dKV", source))
    yield Send(me.next if me.goes(hop) else source, out)
    return None


def all_gather(me: Rank) -> Forward:
    """A rank that first gets all K and V: no copy overlaps with tiles, and all of them take memory."""
    held, state = (yield from _gathered(me)), me.nothing()
    for hop in range(me.P):
        source = me.source(hop)
        if me.sees(source):
            new, n_tiles = me.partial(source, *held[source].arrays)
            state = me.merged(state, new)
            yield Compute(source, n_tiles, state)
    return me.finish(state)


def _gathered(me):
    """Send K and V to all other ranks and receive theirs; return {rank: the buffer with its K and V}."""
    held = {me.r: me.own}
    for hop in range(1, me.P):
        source = me.source(hop)
        held[source] = me.buffer(f"kv[{source}]")
        yield Send((me.r + hop) % me.P, me.own)
        yield Receive(source, held[source])
    yield Wait()
    return held


def _grads(me, dQ, dKV):
    """Return the gradients in the rank's dtype, rounded once, at the end."""
    return Grads(*(X.astype(me.dtype) for X in (dQ, *dKV)))
