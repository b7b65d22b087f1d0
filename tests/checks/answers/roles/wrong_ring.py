"""Wrong answers on slots and phases of a ring: see `tests.checks.answers`."""


# ring_phase, both_full: one phase for both, as if the slots had been released before
def my_ring_phase(g, stages):
    n, slot = divmod(g, stages)
    phase = n & 1
    return slot, phase, phase


# ring_phase, parities_exchanged: counters that start at 1
def my_ring_phase(g, stages):
    slot, full = 0, 1
    for _ in range(g):
        slot = (slot + 1) % stages
        full ^= slot == 0
    return slot, int(full), int(full) ^ 1


# ring_phase, g_alone: turned with each tile
def my_ring_phase(g, stages):
    full = 0
    for _ in range(g):
        full ^= 1
    return g % stages, full, 1 - full


# ring_phase, next_tile: turned before the tile is taken
def my_ring_phase(g, stages):
    slot, full = -1, 0
    for _ in range(g + 1):
        slot = (slot + 1) % stages
        full ^= int(slot == stages - 1)
    return slot, full, 1 - full


# ring_phase, empty_no_parity: the round before
def my_ring_phase(g, stages):
    n = g // stages
    return g - n * stages, n % 2, n - 1


# ring_phase, bool: comparisons of numbers
def my_ring_phase(g, stages):
    odd = g // stages % 2 != 0
    return g % stages, odd, not odd


# ring_phase, float: a true quotient, rounded down
def my_ring_phase(g, stages):
    full = g / stages // 1 % 2
    return g % stages, full, 1 - full
