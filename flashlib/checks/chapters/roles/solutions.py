"""Solutions of the exercises on roles."""

from flashlib.pipeline import Arrive, Copy, Expect, Finish, Product, Wait


# exercise: producer
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        free = g // stages % 2 ^ 1
        yield Wait(ring.empty[s], free)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# exercise: consumer
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])


# exercise: in_turns
def my_in_turns(me, consumers, n, turn, products, softmax):
    after = (me + 1) % consumers
    for u in range(n):
        phase = u % 2 ^ (me == 0)  # for its first turn consumer 0 waits for nobody
        yield Wait(turn[me], phase)
        yield from products(u)
        yield Arrive(turn[after])
        yield Finish()
        yield from softmax(u)


# exercise: overlapped
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    def scores(g):
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)

    def output(g):
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)

    yield Wait(q.full[0], 0)
    yield from scores(0)
    yield Finish()
    yield Arrive(k.empty[0])
    yield from softmax(0)
    for g in range(1, n):
        yield from scores(g)
        yield from output(g - 1)
        yield Finish(1)  # S of tile g is there; P V of the tile before may still run
        yield Arrive(k.empty[g % len(k.slots)])
        yield from softmax(g)
        yield Finish()
        yield Arrive(v.empty[(g - 1) % len(v.slots)])
    yield from output(n - 1)
    yield Finish()
    yield Arrive(v.empty[(n - 1) % len(v.slots)])


# exercise: ring_phase
def my_ring_phase(g, stages):
    slot, full = g % stages, g // stages % 2  # the round is g // stages
    return slot, full, full ^ 1
