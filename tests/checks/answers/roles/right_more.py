"""More right answers to the exercises on roles and rings: see `tests.checks.answers`."""


# ring_phase: divmod, and bits
def my_ring_phase(g, stages):
    n, slot = divmod(g, stages)
    return slot, n & 1, (n & 1) ^ 1


# ring_phase: counters, as a kernel keeps them that has no division
def my_ring_phase(g, stages):
    slot = full = 0
    for _ in range(g):
        slot += 1
        if slot == stages:
            slot, full = 0, 1 - full
    return [slot, full, 1 - full]


# ring_phase: two rings in a row, of which the second has parity 1
def my_ring_phase(g, stages):
    place = g % (2 * stages)
    full = int(place >= stages)
    return place - stages * full, full, int(not full)


# ring_phase: a list, and bits
def my_ring_phase(g, stages):
    n = (g - g % stages) // stages
    return [g % stages, n & 1, ~n & 1]


# producer: commands from a helper, with a phase for each slot
def my_producer(n, ring):
    phases = [1] * len(ring.slots)

    def tile(g, s):
        return [Wait(ring.empty[s], phases[s]), Expect(ring.full[s], ring.slots[s].n_bytes), Copy(f"K{g}", ring.slots[s], ring.full[s])]

    for g in range(n):
        s = g % len(phases)
        yield from tile(g, s)
        phases[s] ^= 1


# producer: rounds and slots
def my_producer(n, ring):
    free = 1
    for g in range(n):
        s = g % len(ring.slots)
        yield Wait(ring.empty[s], free)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])
        if s == len(ring.slots) - 1:
            free ^= 1


# producer: no wait in the first round
def my_producer(n, ring):
    S = len(ring.slots)
    for g in range(n):
        r, s = divmod(g, S)
        if r:
            yield Wait(ring.empty[s], (r - 1) % 2)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy("K%d" % g, ring.slots[s], ring.full[s])


# in_turns: a flag
def my_in_turns(me, consumers, n, turn, products, softmax):
    parity = 1 if me == 0 else 0
    for u in range(n):
        yield Wait(turn[me], parity)
        parity = 1 - parity
        for command in products(u):
            yield command
        yield Arrive(turn[0 if me + 1 == consumers else me + 1])
        yield Finish()
        yield from softmax(u)
