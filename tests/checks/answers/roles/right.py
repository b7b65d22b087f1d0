"""Right answers to the exercises on roles in other styles: see `tests.checks.answers`."""


# producer: a phase that turns when the ring is through
def my_producer(n, ring):
    s, phase = 0, 1
    for g in range(n):
        yield Wait(ring.empty[s], phase)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])
        s += 1
        if s == len(ring.slots):
            s, phase = 0, phase ^ 1


# producer: divmod, and a list of commands
def my_producer(n, ring):
    found = []
    for g in range(n):
        turn, s = divmod(g, len(ring.slots))
        found += [Wait(ring.empty[s], (turn + 1) % 2), Expect(ring.full[s], ring.slots[s].n_bytes)]
        found.append(Copy("K" + str(g), ring.slots[s], ring.full[s]))
    return iter(found)


# producer: cycle goes around the ring; the first round does not wait
def my_producer(n, ring):
    from itertools import cycle

    around = cycle(zip(*ring))
    for g in range(n):
        slot, full, empty = next(around)
        if g >= len(ring.slots):
            yield Wait(empty, (g // len(ring.slots) + 1) % 2)
        yield Expect(full, slot.n_bytes)
        yield Copy(f"K{g}", slot, full)


# consumer: counters and phases of its own, in a while loop
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    g = s = t = k_phase = v_phase = 0
    while g < n:
        yield Wait(k.full[s], k_phase)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield Wait(v.full[t], v_phase)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish(0)
        yield Arrive(v.empty[t])
        g, s, t = g + 1, s + 1, t + 1
        if s == len(k.slots):
            s, k_phase = 0, 1 - k_phase
        if t == len(v.slots):
            t, v_phase = 0, 1 - v_phase


# consumer: one helper for both products; O_acc is 0 before tile 0
def my_consumer(n, q, k, v, flops, softmax, rescale):
    def multiply(name, g, tile, ring, *others):
        turn, s = divmod(g, len(ring.slots))
        yield Wait(ring.full[s], turn & 1)
        yield Product(name, (*others, (ring.slots[s], tile)), flops)
        yield Finish()
        yield Arrive(ring.empty[s])

    yield Wait(q.full[0], 0)
    for g in range(n):
        yield from multiply(f"S{g}", g, f"K{g}", k, (q.slots[0], "Q"))
        yield from softmax(g)
        if g > 0:
            yield from rescale(g)
        yield from multiply(f"PV{g}", g, f"V{g}", v)


# consumer: K is released within the softmax, Q is waited for at each tile and released at the end
def my_consumer(n, q, k, v, flops, softmax, rescale):
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
        yield Wait(q.full[0], 0)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((k.slots[s], f"K{g}"), (q.slots[0], "Q")), flops)
        yield Finish()
        first, *others = softmax(g)
        yield first
        yield Arrive(k.empty[s])
        yield from others
        yield from rescale(g)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])
    yield Arrive(q.empty[0])


# in_turns: a phase that turns
def my_in_turns(me, consumers, n, turn, products, softmax):
    phase = 1 if me == 0 else 0
    for u in range(n):
        yield Wait(turn[me], phase)
        phase = 1 - phase
        yield from products(u)
        yield Arrive((turn * 2)[me + 1])
        yield Finish()
        yield from softmax(u)


# in_turns: consumer 0 does not wait for its first turn
def my_in_turns(me, consumers, n, turn, products, softmax):
    after = turn[me + 1] if me + 1 < consumers else turn[0]
    for u in range(n):
        if me:
            yield Wait(turn[me], u % 2)
        elif u:
            yield Wait(turn[0], (u - 1) % 2)
        first, second = products(u)
        yield first
        yield second
        yield Arrive(after)
        yield Finish()
        yield from softmax(u)


# in_turns: cycle of parities; the very last turn is nobody's to take, and kept
def my_in_turns(me, consumers, n, turn, products, softmax):
    from itertools import cycle, islice

    for u, phase in enumerate(islice(cycle([1, 0] if me == 0 else [0, 1]), n)):
        yield Wait(turn[me], phase)
        yield from products(u)
        if (u, me) != (n - 1, consumers - 1):
            yield Arrive(turn[(me + 1) % consumers])
        yield Finish(0)
        yield from softmax(u)


# overlapped: one loop, in which tile 0 and the end are special
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n + 1):
        s, t = g % len(k.slots), (g - 1) % len(v.slots)
        if g < n:
            yield Wait(k.full[s], g // len(k.slots) % 2)
            yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        if g > 0:
            yield Wait(v.full[t], (g - 1) // len(v.slots) % 2)
            yield from rescale(g - 1)
            yield Product(f"PV{g - 1}", ((v.slots[t], f"V{g - 1}"),), flops)
        if g < n:
            yield Finish(min(g, 1))
            yield Arrive(k.empty[s])
            yield from softmax(g)
        if g > 0:
            yield Finish()
            yield Arrive(v.empty[t])


# overlapped: rescaled while S runs, before V is waited for; slots and parities from a helper
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    def place(ring, g):
        turn, s = divmod(g, len(ring.slots))
        return ring.slots[s], Wait(ring.full[s], turn % 2), Arrive(ring.empty[s])

    yield Wait(q.full[0], 0)
    free = None
    for g in range(n):
        slot, there, done = place(k, g)
        yield there
        yield Product(f"S{g}", ((q.slots[0], "Q"), (slot, f"K{g}")), flops)
        if g:
            slot, there, free = place(v, g - 1)
            yield from rescale(g - 1)
            yield there
            yield Product(f"PV{g - 1}", ((slot, f"V{g - 1}"),), flops)
            yield Finish(1)
        else:
            yield Finish()
        yield done
        yield from softmax(g)
        if free:
            yield Finish()
            yield free
    slot, there, free = place(v, n - 1)
    yield from rescale(n - 1)
    yield there
    yield Product(f"PV{n - 1}", ((slot, f"V{n - 1}"),), flops)
    yield Finish()
    yield free


# overlapped: K and V are waited for together, and all commands of a round made beforehand
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    def there(ring, g):
        return Wait(ring.full[g % len(ring.slots)], (g // len(ring.slots)) % 2)

    def free(ring, g):
        return Arrive(ring.empty[g % len(ring.slots)])

    def scores(g):
        return Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[g % len(k.slots)], f"K{g}")), flops)

    def output(g):
        return Product(f"PV{g}", ((v.slots[g % len(v.slots)], f"V{g}"),), flops)

    yield from [Wait(q.full[0], 0), there(k, 0), scores(0), Finish(), free(k, 0), *softmax(0)]
    g = 1
    while g < n:
        yield from [there(v, g - 1), there(k, g), scores(g), *rescale(g - 1), output(g - 1)]
        yield from [Finish(1), free(k, g), *softmax(g), Finish(), free(v, g - 1)]
        g += 1
    yield from [there(v, n - 1), *rescale(n - 1), output(n - 1), Finish(), free(v, n - 1)]
