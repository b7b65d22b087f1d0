"""Wrong answers to the exercises in Gluon, written out: see `tests.checks.answers`."""


# gluon_producer, no_slot: as if shared memory had room for all tiles
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    for c in gl.static_range(2):
        mbarrier.expect(q[1].index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q[1].index(c), q[0].index(c))
    for g in range(n):
        mbarrier.expect(k[1].index(g), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * k_desc.block_shape[2], 0], k[1].index(g), k[0].index(g))
        mbarrier.expect(v[1].index(g), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * v_desc.block_shape[2], 0], v[1].index(g), v[0].index(g))


# gluon_producer, refilled: one wait for both, after K was asked for
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    for c in gl.static_range(2):
        mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q_full.index(c), q_slots.index(c))
    slots: gl.constexpr = k_slots.type.shape[0]
    tile: gl.constexpr = k_slots.type.shape[3]
    for g in range(n):
        s = g % slots
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * tile, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), (g // slots + 1) & 1)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * tile, 0], v_full.index(s), v_slots.index(s))


# gluon_producer, parity_empty: the round's parity, as a consumer waits
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    for c in gl.static_range(2):
        mbarrier.expect(q[1].index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q[1].index(c), q[0].index(c))
    phase = 0
    s = 0
    for g in range(n):
        for ring, desc in gl.static_range(0):
            pass
        mbarrier.wait(k[2].index(s), phase)
        mbarrier.expect(k[1].index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * k_desc.block_shape[2], 0], k[1].index(s), k[0].index(s))
        mbarrier.wait(v[2].index(s), phase)
        mbarrier.expect(v[1].index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * v_desc.block_shape[2], 0], v[1].index(s), v[0].index(s))
        s = s + 1
        if s == k[0].type.shape[0]:
            s = 0
            phase = 1 - phase


# gluon_producer, nobody_arrives: K and V of a tile at one barrier
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    for c in gl.static_range(2):
        mbarrier.expect(q[1].index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q[1].index(c), q[0].index(c))
    STAGES: gl.constexpr = k[0].type.shape[0]
    for g in range(n):
        s = g % STAGES
        at = [b, h, g * k_desc.block_shape[2], 0]
        mbarrier.wait(k[2].index(s), (g // STAGES + 1) & 1)
        mbarrier.wait(v[2].index(s), (g // STAGES + 1) & 1)
        mbarrier.expect(k[1].index(s), k_desc.block_type.nbytes + v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, at, k[1].index(s), k[0].index(s))
        tma.async_copy_global_to_shared(v_desc, at, k[1].index(s), v[0].index(s))


# gluon_producer, keys_back: as the ladder's producer does
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    for c in gl.static_range(2):
        mbarrier.expect(q[1].index(c), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q[1].index(c), q[0].index(c))
    STAGES: gl.constexpr = k[0].type.shape[0]
    for g in range(n):
        s = g % STAGES
        at = [b, h, (n - g - 1) * k_desc.block_shape[2], 0]
        mbarrier.wait(k[2].index(s), (g // STAGES + 1) & 1)
        mbarrier.expect(k[1].index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, at, k[1].index(s), k[0].index(s))
        mbarrier.wait(v[2].index(s), (g // STAGES + 1) & 1)
        mbarrier.expect(v[1].index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, at, v[1].index(s), v[0].index(s))


# gluon_producer, not_gluon: the decorator is missing
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    for c in range(2):
        mbarrier.expect(q[1].index(c), q_desc.block_type.nbytes)


# consumer_step, operand: P goes straight into the product
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    STAGES: gl.constexpr = k[0].type.shape[0]
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    s = g % STAGES
    p = (g // STAGES) & 1
    mbarrier.wait(k[1].index(s), p)
    K = k[0].index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), gl.zeros([64, B_C], gl.float32, S_L), use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S,)) * scale_log2e
    mbarrier.arrive(k[2].index(s))
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_L))
    S = gl.where(cols[None, :] < limits[:, None], S, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    safe = gl.where(m_new == -float("inf"), 0.0, m_new)
    P = gl.exp2(S - safe[:, None])
    alpha = gl.exp2(m - safe)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_acc.type.layout))[:, None]
    mbarrier.wait(v[1].index(s), p)
    O_acc = warpgroup_mma(P.to(v[0].dtype), v[0].index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v[2].index(s))
    return m_new, l * alpha + gl.sum(P, 1), O_acc


# consumer_step, unwaited: the mask comes before the wait
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    STAGES: gl.constexpr = k[0].type.shape[0]
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_L: gl.constexpr = m.type.layout.parent
    s = g % STAGES
    mbarrier.wait(k[1].index(s), (g // STAGES) & 1)
    K = k[0].index(s).reshape([B_C, D]).permute((1, 0))
    S = warpgroup_mma(q, K, gl.zeros([64, B_C], gl.float32, S_L), use_acc=False, is_async=True) * scale_log2e
    S = warpgroup_mma_wait(0, deps=(S,))
    return m, l, O_acc


# consumer_step, not_rescaled: O_acc is only added to
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    STAGES: gl.constexpr = k[0].type.shape[0]
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_L: gl.constexpr = m.type.layout.parent
    O_L: gl.constexpr = O_acc.type.layout
    s = g % STAGES
    mbarrier.wait(k[1].index(s), (g // STAGES) & 1)
    mbarrier.wait(v[1].index(s), (g // STAGES) & 1)
    K = k[0].index(s).reshape([B_C, D]).permute((1, 0))
    begun = warpgroup_mma(q, K, gl.zeros([64, B_C], gl.float32, S_L), use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(begun,)) * scale_log2e
    mbarrier.arrive(k[2].index(s))
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_L))
    S = gl.where(cols[None, :] < limits[:, None], S, -float("inf"))
    before = m
    m = gl.maximum(m, gl.max(S, 1))
    safe = gl.where(m == -float("inf"), 0.0, m)
    P = gl.exp2(S - safe[:, None])
    l = l * gl.exp2(before - safe) + gl.sum(P, 1)
    P = gl.convert_layout(P.to(v[0].dtype), gl.DotOperandLayout(0, O_L, 2))
    begun = warpgroup_mma(P, v[0].index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(begun,))
    mbarrier.arrive(v[2].index(s))
    return m, l, O_acc


# consumer_step, nobody_arrives: the slots are never given back
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    STAGES: gl.constexpr = k[0].type.shape[0]
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_L: gl.constexpr = m.type.layout.parent
    O_L: gl.constexpr = O_acc.type.layout
    s = g % STAGES
    mbarrier.wait(k[1].index(s), (g // STAGES) & 1)
    mbarrier.wait(v[1].index(s), (g // STAGES) & 1)
    K = k[0].index(s).reshape([B_C, D]).permute((1, 0))
    begun = warpgroup_mma(q, K, gl.zeros([64, B_C], gl.float32, S_L), use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(begun,)) * scale_log2e
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_L))
    S = gl.where(cols[None, :] < limits[:, None], S, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    safe = gl.where(m_new == -float("inf"), 0.0, m_new)
    P = gl.exp2(S - safe[:, None])
    alpha = gl.exp2(m - safe)
    P_op = gl.convert_layout(P.to(v[0].dtype), gl.DotOperandLayout(0, O_L, 2))
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_L))[:, None]
    begun = warpgroup_mma(P_op, v[0].index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(begun,))
    return m_new, l * alpha + gl.sum(P, 1), O_acc


# hopper_attention, no_launch: PyTorch does it
def my_hopper_attention(Q, K, V, causal):
    S = Q.float() @ K.float().mT / math.sqrt(Q.shape[-1])
    return (S.softmax(-1) @ V.float()).to(Q.dtype), S.logsumexp(-1)


# hopper_attention, no_roles: all warps alike, with one tile of all keys
@gluon.jit
def alone(q_desc, k_desc, O_ptr, lse_ptr, N_q, D: gl.constexpr):
    L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    slot = gl.allocate_shared_memory(q_desc.dtype, q_desc.block_shape, q_desc.layout)
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    fence_async_shared()
    mbarrier.expect(full, q_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(q_desc, [0, 0, 0, 0], full, slot)
    mbarrier.wait(full, 0)
    q = slot.reshape([64, D]).load(L)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, L))
    cols = gl.arange(0, D, layout=gl.SliceLayout(0, L))
    gl.store(O_ptr + rows[:, None] * D + cols[None, :], q)
    gl.store(lse_ptr + rows, gl.zeros([64], gl.float32, gl.SliceLayout(1, L)))


def my_hopper_attention(Q, K, V, causal):
    B, H, N, d = Q.shape
    O, lse = torch.empty_like(Q), torch.empty(B, H, N, device=Q.device)
    layout = gl.NVMMASharedLayout.get_default_for([1, 1, 64, d], gl.float16)
    desc = [TensorDescriptor.from_tensor(X.contiguous(), [1, 1, 64, d], layout) for X in (Q, K)]
    alone[(1,)](*desc, O, lse, N, D=d, num_warps=4)
    return O, lse


# hopper_attention, nobody_arrives: a consumer waits for tiles that nobody brings
@gluon.jit
def waiting(full):
    mbarrier.wait(full.index(0), 0)


@gluon.jit
def idle(full):
    pass


@gluon.jit
def useless(q_desc):
    full = mbarrier.allocate_mbarrier(batch=1)
    mbarrier.init(full.index(0), count=1)
    fence_async_shared()
    gl.warp_specialize([(waiting, (full,)), (waiting, (full,)), (idle, (full,))], [4, 1])


def my_hopper_attention(Q, K, V, causal):
    d = Q.shape[-1]
    layout = gl.NVMMASharedLayout.get_default_for([1, 1, 64, d], gl.float16)
    useless[(1,)](TensorDescriptor.from_tensor(Q.contiguous(), [1, 1, 64, d], layout), num_warps=4)
    return torch.empty_like(Q), torch.empty(Q.shape[:3])


# hopper_attention, course_kernel: ours does it
def my_hopper_attention(Q, K, V, causal):
    from flashlib.kernels.hopper.ladder import r2_producer

    O, lse = torch.empty_like(Q), torch.empty(Q.shape[:3])
    r2_producer._with_producer[(1,)](Q, K, V, O, lse)
    return O, lse


# hopper_attention, input_written: O goes where Q was
@gluon.jit
def writes(q_desc, D: gl.constexpr):
    slot = gl.allocate_shared_memory(q_desc.dtype, q_desc.block_shape, q_desc.layout)
    slot.reshape([64, D]).store(gl.full([64, D], 0.0, q_desc.dtype, gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])))
    fence_async_shared()
    tma.async_copy_shared_to_global(q_desc, [0, 0, 0, 0], slot)
    tma.store_wait(0)


def my_hopper_attention(Q, K, V, causal):
    d = Q.shape[-1]
    layout = gl.NVMMASharedLayout.get_default_for([1, 1, 64, d], gl.float16)
    writes[(1,)](TensorDescriptor.from_tensor(Q, [1, 1, 64, d], layout), D=d, num_warps=4)
    return Q.clone(), torch.zeros(Q.shape[:3])
