"""Wrong answers of a reader who did not see the tables, producers of chapter 13: see `tests.checks.answers`."""


# gluon_producer, parity_tile: a parity for each tile
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
        p = (g & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, parity_empty: the parity with which a consumer waits
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
        p = (g // STAGES) & 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, keys_back: from the last tile to the first
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
        p = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, (n - 1 - g) * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, (n - 1 - g) * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, refilled: one wait for both tiles
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
        p = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, Q_one: the same rows for both
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, head, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [head, row, 0], q_full.index(c), q_slots.index(c))
    for g in range(n):
        s = g % STAGES
        p = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, own_copy: Q is waited for
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
    mbarrier.wait(q_full.index(0), 0)
    mbarrier.wait(q_full.index(1), 0)
    for g in range(n):
        s = g % STAGES
        p = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [head, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [head, g * B_C, 0], v_full.index(s), v_slots.index(s))
