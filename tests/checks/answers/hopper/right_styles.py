"""Right answers in further styles: see `tests.checks.answers`."""


# register_budget: in threads
def my_register_budget(consumers, producer, d, B_c):
    threads = 128 * (consumers + 1)
    launch = 65536 // threads & ~7
    given = (threads * launch - 128 * producer) // (128 * consumers) & ~7
    return given, (64 * d + 64 * B_c + 32 * B_c) >> 7


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
