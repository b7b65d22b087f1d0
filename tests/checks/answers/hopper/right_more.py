"""More right answers in other forms: see `tests.checks.answers`."""


# ring_phase: a list, and bits
def my_ring_phase(g, stages):
    n = (g - g % stages) // stages
    return [g % stages, n & 1, ~n & 1]


# register_budget: by groups, with a helper that rounds down
def my_register_budget(consumers, producer, d, B_c):
    def down(x):
        return x - x % 8

    launch = down(512 // (consumers + 1))
    given = down(((consumers + 1) * launch - producer) // consumers)
    return [given, d // 2 + B_c // 2 + B_c // 4]


# block_order: three nested divisions
def my_block_order(tile, T_r, section):
    rest, h = divmod(tile, section)
    n, i = divmod(rest, T_r)
    return [n * section + h, T_r - i - 1]


# producer: commands from a helper, with a phase for each slot
def my_producer(n, ring):
    phases = [1] * len(ring.slots)

    def tile(g, s):
        return [Wait(ring.empty[s], phases[s]), Expect(ring.full[s], ring.slots[s].n_bytes), Copy(f"K{g}", ring.slots[s], ring.full[s])]

    for g in range(n):
        s = g % len(phases)
        yield from tile(g, s)
        phases[s] ^= 1


# gluon_producer: both waits of a tile come first
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, head, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [head, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    for g in range(n):
        s = g % STAGES
        parity = (g // STAGES + 1) & 1
        mbarrier.wait(k_empty.index(s), parity)
        mbarrier.wait(v_empty.index(s), parity)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer: no wait in the first round, and K a tile ahead of V
@gluon.jit
def bring(desc, head, start, slots, full, empty, g, STAGES: gl.constexpr):
    s = g % STAGES
    if g >= STAGES:
        mbarrier.wait(empty.index(s), (g // STAGES - 1) & 1)
    mbarrier.expect(full.index(s), desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [head, start, 0], full.index(s), slots.index(s))


@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, head, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [head, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    bring(k_desc, head, 0, k_slots, k_full, k_empty, 0, STAGES)
    for g in range(n):
        if g + 1 < n:
            bring(k_desc, head, (g + 1) * B_C, k_slots, k_full, k_empty, g + 1, STAGES)
        bring(v_desc, head, g * B_C, v_slots, v_full, v_empty, g, STAGES)
