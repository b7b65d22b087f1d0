"""Right answers to the exercises with numbers, in other styles: see `tests.checks.answers`."""


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


# register_budget: what the producer gives up is added
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // 128 // (consumers + 1) & ~7
    given = launch + (launch - producer) // consumers // 8 * 8
    return given, d // 2 + B_c // 2 + B_c // 4


# register_budget: a search, in multiples of 8
def my_register_budget(consumers, producer, d, B_c):
    launch = max(8 * n for n in range(33) if 8 * n * 128 * (consumers + 1) <= 2**16)
    most = (consumers + 1) * launch
    given = 0
    while consumers * (given + 8) + producer <= most:
        given += 8
    bits = 64 * (32 * d + 32 * B_c + 16 * B_c)
    return [given, bits // 32 // 128]


# register_budget: bytes, and remainders
def my_register_budget(consumers, producer, d, B_c):
    each = 256 * 1024 // 4 // ((consumers + 1) * 4 * 32)
    each -= each % 8
    left = ((consumers + 1) * each - producer) // consumers
    needed, _ = divmod(64 * (4 * d + 6 * B_c), 4 * 128)
    return left - left % 8, needed


# block_order: divmod twice
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    row, column = divmod(place, section)
    return n * section + column, T_r - row - 1


# block_order: the list itself
def my_block_order(tile, T_r, section):
    order = []
    while len(order) <= tile:
        first = len(order) // T_r
        for i in range(T_r - 1, -1, -1):
            order += [(first + h, i) for h in range(section)]
    return order[tile]


# block_order: without the place, since a section has a multiple of `section` tiles
def my_block_order(tile, T_r, section):
    return [tile // (section * T_r) * section + tile % section, T_r - 1 - tile // section % T_r]
