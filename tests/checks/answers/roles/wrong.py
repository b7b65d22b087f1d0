"""Wrong answers to the exercises on roles: see `tests.checks.answers`."""


# producer, phase_of_tile: a phase that turns each time
def my_producer(n, ring):
    phase = 1
    for g in range(n):
        s = g % len(ring.slots)
        yield Wait(ring.empty[s], phase)
        yield Expect(ring.full[s], ring.slots[s].n_bytes)
        yield Copy(f"K{g}", ring.slots[s], ring.full[s])
        phase ^= 1


# producer, phase_exchanged: divmod, and the round's parity
def my_producer(n, ring):
    for g in range(n):
        turn, s = divmod(g, len(ring.slots))
        yield from (Wait(ring.empty[s], turn & 1), Expect(ring.full[s], ring.slots[s].n_bytes))
        yield Copy("K" + str(g), ring.slots[s], ring.full[s])


# producer, no_generator: a list
def my_producer(n, ring):
    return [Wait(ring.empty[0], 1) for g in range(n)]


# producer, endless: the loop has no end
def my_producer(n, ring):
    g = 0
    while True:
        yield Wait(ring.empty[0], 1)


# producer, no_command: strings
def my_producer(n, ring):
    for g in range(n):
        yield f"Copy K{g}"


# consumer, slots_of_K: one slot and one parity for both
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        turn, s = divmod(g, len(k.slots))
        yield Wait(k.full[s], turn & 1)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        yield Wait(v.full[s], turn & 1)
        yield Product(f"PV{g}", ((v.slots[s], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[s])


# consumer, rescale_missing: V first, and no rescaling
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield from softmax(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])


# consumer, softmax_twice: once with V and once without
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield from softmax(g)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish()
        yield Arrive(v.empty[t])


# consumer, product_unknown: a name of its own beside the others
def my_consumer(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    yield Product("Q", ((q.slots[0], "Q"),), flops)
    yield Finish()
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
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


# consumer, three_faults: faulty_consumer
def my_consumer(n, q, k, v, flops, softmax, rescale):
    for g in range(n):
        yield Wait(q.full[0], g % 2)
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(k.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish(1)
        yield Arrive(v.empty[t])


# consumer, two_faults: Q mended
def my_consumer(n, q, k, v, flops, softmax, rescale):
    for g in range(n):
        yield Wait(q.full[0], 0)
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(k.slots) & 1)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish(1)
        yield Arrive(v.empty[t])


# consumer, two_faults_Q: Finish mended
def my_consumer(n, q, k, v, flops, softmax, rescale):
    for g in range(n):
        yield Wait(q.full[0], g & 1)
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(k.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
        yield Finish(0)
        yield Arrive(v.empty[t])


# in_turns, back: Python's index -1
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], (u + 1) % 2 if me == 0 else u % 2)
        yield from products(u)
        yield Arrive(turn[me - 1])
        yield Finish()
        yield from softmax(u)


# in_turns, turn_late: handed on once the first product is done
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], (u + 1) % 2 if me == 0 else u % 2)
        for product in products(u):
            yield product
        yield Finish(1)
        yield Arrive(turn[(me + 1) % consumers])
        yield Finish()
        yield from softmax(u)


# in_turns, products_twice: the first turn is issued again
def my_in_turns(me, consumers, n, turn, products, softmax):
    for u in range(n):
        yield Wait(turn[me], (u + 1) % 2 if me == 0 else u % 2)
        yield from products(u)
        yield from products(u)
        yield Arrive(turn[(me + 1) % consumers])
        yield Finish()
        yield from softmax(u)


# overlapped, not_overlapped: the plain consumer
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s, t = g % len(k.slots), g % len(v.slots)
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


# overlapped, left_behind: the last round is forgotten by a loop that ends with S
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    yield Wait(q.full[0], 0)
    for g in range(n):
        s, t = g % len(k.slots), (g - 1) % len(v.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        yield Finish()
        yield Arrive(k.empty[s])
        if g > 0:
            yield Arrive(v.empty[t])
        yield from softmax(g)
        yield Wait(v.full[g % len(v.slots)], g // len(v.slots) % 2)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[g % len(v.slots)], f"V{g}"),), flops)


# overlapped, slow: S of the next tile runs under the softmax, which has to wait for K of that tile
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    def scores(g):
        s = g % len(k.slots)
        yield Wait(k.full[s], g // len(k.slots) % 2)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)

    yield Wait(q.full[0], 0)
    yield from scores(0)
    for g in range(n):
        yield Finish()
        yield Arrive(k.empty[g % len(k.slots)])
        if g > 0:
            yield Arrive(v.empty[(g - 1) % len(v.slots)])
        if g + 1 < n:
            yield from scores(g + 1)
        yield from softmax(g)
        yield from rescale(g)
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)
    yield Finish()
    yield Arrive(v.empty[(n - 1) % len(v.slots)])


# overlapped, K_wait_early: the next K is waited for at the end of a round, before V is released
def my_overlapped(n, q, k, v, flops, softmax, rescale):
    def arrived(g):
        return Wait(k.full[g % len(k.slots)], g // len(k.slots) % 2)

    def output(g):
        t = g % len(v.slots)
        yield Wait(v.full[t], g // len(v.slots) % 2)
        yield from rescale(g)
        yield Product(f"PV{g}", ((v.slots[t], f"V{g}"),), flops)

    yield Wait(q.full[0], 0)
    yield arrived(0)
    for g in range(n):
        s = g % len(k.slots)
        yield Product(f"S{g}", ((q.slots[0], "Q"), (k.slots[s], f"K{g}")), flops)
        if g:
            yield from output(g - 1)
        yield Finish(1 if g else 0)
        yield Arrive(k.empty[s])
        yield from softmax(g)
        if g < n - 1:
            yield arrived(g + 1)
        if g:
            yield Finish()
            yield Arrive(v.empty[(g - 1) % len(v.slots)])
    yield from output(n - 1)
    yield Finish()
    yield Arrive(v.empty[(n - 1) % len(v.slots)])


# overlapped, K_wait_early: V is released in the next round, after its K was waited for
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
    for g in range(n):
        yield from scores(g)
        if g > 1:
            yield Finish(1)
            yield Arrive(v.empty[(g - 2) % len(v.slots)])
        if g:
            yield from output(g - 1)
        yield Finish(1 if g else 0)
        yield Arrive(k.empty[g % len(k.slots)])
        yield from softmax(g)
    yield Finish()
    if n > 1:
        yield Arrive(v.empty[(n - 2) % len(v.slots)])
    yield from output(n - 1)
    yield Finish()
    yield Arrive(v.empty[(n - 1) % len(v.slots)])
