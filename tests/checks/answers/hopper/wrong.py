"""Wrong answers to the exercises with numbers: see `tests.checks.answers`."""


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


# register_budget, other_group: 32 threads throughout
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // (32 * (consumers + 1)) // 8 * 8
    given = (launch * (consumers + 1) - producer) // consumers // 8 * 8
    return given, d // 2 + B_c // 2 + B_c // 4


# register_budget, not_subtracted: shared among consumers, as if the producer kept none
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // (128 * (consumers + 1)) // 8 * 8
    given = launch + launch // consumers
    return given - given % 8, (d + B_c + B_c // 2) // 2


# register_budget, difference_to_each: what the producer gives up
def my_register_budget(consumers, producer, d, B_c):
    start = 65536 // (128 + 128 * consumers)
    start -= start % 8
    return start + start - producer, d // 2 + B_c // 2 + B_c // 4


# register_budget, all_of_them: without the number at launch
def my_register_budget(consumers, producer, d, B_c):
    left = 65536 - producer * 128
    return left // consumers // 128 // 8 * 8, d // 2 + B_c * 3 // 4


# register_budget, keeps_one_warp: threads of warps
def my_register_budget(consumers, producer, d, B_c):
    warps = 4 * consumers + 4
    launch = 2048 // warps // 8 * 8
    given = (warps * launch - producer) // (4 * consumers)
    return given & -8, (2 * d + 3 * B_c) // 4


# register_budget, no_S: P takes the place of S
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers // 8 * 8
    numbers_32, numbers_16 = 64 * d, 64 * B_c
    return given, (numbers_32 + numbers_16 // 2) // 128


# register_budget, P_in_fp32 and given_not_rounded: two at once
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers
    return given, 64 * (d + 2 * B_c) // 128


# register_budget, float: halves
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers // 8 * 8
    return given, 0.5 * d + 0.75 * B_c


# block_order, head_by_head: heads outside, row blocks inside
def my_block_order(tile, T_r, section):
    order = []
    while len(order) <= tile:
        first = len(order) // T_r
        order += [(first + h, i) for h in range(section) for i in reversed(range(T_r))]
    return order[tile]


# block_order, shortest_first: range from 0
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    row, column = divmod(place, section)
    return n * section + column, row


# block_order, no_sections: the first section again and again
def my_block_order(tile, T_r, section):
    order = [(h, T_r - 1 - i) for i in range(T_r) for h in range(section)]
    return order[tile % len(order)]


# block_order, not_reduced: the section counted in the row block
def my_block_order(tile, T_r, section):
    row, column = divmod(tile, section)
    return row // T_r * section + column, T_r - 1 - row


# block_order, section_number: n for n * section
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    return n + place % section, T_r - 1 - place // section


# block_order, unsorted: as without a mask
def my_block_order(tile, T_r, section):
    return divmod(tile, T_r)


# block_order, one_more: from T_r down to 1
def my_block_order(tile, T_r, section):
    row = tile % (section * T_r) // section
    return tile // section // T_r * section + tile % section, [*range(T_r, 0, -1)][row]
