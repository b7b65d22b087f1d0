"""More right answers to the exercises in Gluon, in other forms: see `tests.checks.answers`."""


# gluon_producer: both waits of a tile come first
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    for g in range(n):
        s = g % STAGES
        parity = (g // STAGES + 1) & 1
        mbarrier.wait(k_empty.index(s), parity)
        mbarrier.wait(v_empty.index(s), parity)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * B_C, 0], k_full.index(s), k_slots.index(s))
        tma.async_copy_global_to_shared(v_desc, [b, h, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer: no wait in the first round, and K a tile ahead of V
@gluon.jit
def bring(desc, b, h, start, slots, full, empty, g, STAGES: gl.constexpr):
    s = g % STAGES
    if g >= STAGES:
        mbarrier.wait(empty.index(s), (g // STAGES - 1) & 1)
    mbarrier.expect(full.index(s), desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [b, h, start, 0], full.index(s), slots.index(s))


@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    bring(k_desc, b, h, 0, k_slots, k_full, k_empty, 0, STAGES)
    for g in range(n):
        if g + 1 < n:
            bring(k_desc, b, h, (g + 1) * B_C, k_slots, k_full, k_empty, g + 1, STAGES)
        bring(v_desc, b, h, g * B_C, v_slots, v_full, v_empty, g, STAGES)


# consumer_step: with the ladder's helpers
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    s = g % STAGES
    mbarrier.wait(k_full.index(s), (g // STAGES) & 1)
    S = warpgroup_mma_wait(0, deps=(tiles.scores(q, k_slots.index(s), m.type.layout.parent),))
    mbarrier.arrive(k_empty.index(s))
    S = tiles.masked(S * scale_log2e, g * B_C, limits)
    larger = gl.maximum(m, gl.max(S, 1))
    used = gl.maximum(larger, -3.0e38)
    alpha = gl.exp2(m - used)
    P = gl.exp2(S - used[:, None])
    mbarrier.wait(v_full.index(s), (g // STAGES) & 1)
    O_acc = O_acc * tiles.by_row(alpha, O_acc)
    P_low = tiles.operand(P, v_slots.dtype, O_acc.type.layout)
    begun = warpgroup_mma(P_low, tiles.matrix(v_slots.index(s)), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(begun,))
    mbarrier.arrive(v_empty.index(s))
    return larger, l * alpha + gl.sum(P, 1), O_acc
