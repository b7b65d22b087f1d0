"""Wrong answers to the exercises on roles that only particular cases catch: see `tests.checks.answers`."""


# ring_phase, first_round_only: two rounds alone
def my_ring_phase(g, stages):
    full = int(g >= stages)
    return g % stages, full, 1 - full


# ring_phase, powers_of_2: bitwise, for powers of two
def my_ring_phase(g, stages):
    n = stages.bit_length() - 1
    return g % stages, g >> n & 1, (g >> n & 1) ^ 1


# producer, waits_next_slot: waits for a slot's successor
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        yield Wait(ring.empty[(s + 1) % stages], g // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, wait_wrong: wait of the tile before
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        if g:
            yield Wait(ring.empty[(g - 1) % stages], (g - 1) // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, waits_slot_0: waits always for slot 0
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        yield Wait(ring.empty[0], g // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, wait_wrong: one parity too early
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        yield Wait(ring.empty[s], 1 if g < 2 * stages else g // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, expect_early: Expect first
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(n):
        s = g % stages
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Wait(ring.empty[s], g // stages % 2 ^ 1)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, wait_wrong: prefetches one slot too many
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(min(n, stages + 1)):
        yield Expect(ring.full[g % stages], ring.slots[0].n_bytes)
        yield Copy(f"K{g}", ring.slots[g % stages], ring.full[g % stages])
    for g in range(stages + 1, n):
        s = g % stages
        yield Wait(ring.empty[s], g // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# producer, left_behind: first fills all slots
def my_producer(n, ring):
    stages = len(ring.slots)
    for g in range(stages):
        yield Expect(ring.full[g], ring.slots[g].n_bytes)
        yield Copy(f"K{g}", ring.slots[g], ring.full[g])
    for g in range(stages, n):
        s = g % stages
        yield Wait(ring.empty[s], g // stages % 2 ^ 1)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])


# consumer, slow: releases all slots at the end, as if n were a multiple
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for s in range(len(k.slots)):
        yield Wait(k.full[s], 0)
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
        if g >= len(k.slots):
            yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])


# consumer, no_Q: an order for slots
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s = min(g, len(k.slots) - 1) if g < len(k.slots) else g % len(k.slots)
        t = g % len(v.slots)
        yield Wait(k.full[s], (g // len(k.slots)) % 2)
        yield Product(f"S{g}", ((k.slots[s], f"K{g}"),), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        yield Wait(v.full[t], (g // len(v.slots)) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])


# in_turns, all_begin: nobody waits first
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], (u + 1) % 2)
        yield from products(u)
        yield Arrive(turn[(me + 1) % consumers])
        yield Finish()
        yield from softmax(u)


# in_turns, turn_late: hands on after the softmax
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], u % 2 ^ (me == 0))
        yield from products(u)
        yield Finish()
        yield from softmax(u)
        yield Arrive(turn[(me + 1) % consumers])


# in_turns, deadlock: two for one
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], u % 2 ^ (me == 0))
        yield from products(u)
        if consumers > 1:
            yield Arrive(turn[(me + 1) % consumers])
        yield Finish()
        yield from softmax(u)


# overlapped, not_overlapped: no tile but the first two
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])
