"""Right answers by readers: see `tests.checks.answers`."""


# consumer_step: limits compared after the scale, P before alpha
@gluon.jit


def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    phase = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), phase)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    S = warpgroup_mma(q, k_slots.index(s).reshape([B_C, D]).permute((1, 0)), zero, use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S,))
    mbarrier.arrive(k_empty.index(s))
    S = S * scale_log2e
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.where(cols[None, :] < limits[:, None], S, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    used = gl.where(m_new == -float("inf"), 0.0, m_new)
    P = gl.exp2(S - used[:, None])
    alpha = gl.exp2(m - used)
    l = l * alpha + gl.sum(P, 1)
    mbarrier.wait(v_full.index(s), phase)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT))[:, None]
    P = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return m_new, l, O_acc


# consumer_step: a tile of K has a name, P after alpha
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    p = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), p)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    K = k_slots.index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), zero, use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S,))
    mbarrier.arrive(k_empty.index(s))
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.where(cols[None, :] < limits[:, None], S * scale_log2e, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    shift = gl.where(m_new == -float("inf"), 0.0, m_new)
    alpha = gl.exp2(m - shift)
    P = gl.exp2(S - shift[:, None])
    l = l * alpha + gl.sum(P, 1)
    mbarrier.wait(v_full.index(s), p)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT), assert_trivial=True)[:, None]
    P = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT, assert_trivial=True)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return m_new, l, O_acc


# hopper_attention: the solution's step and producer, and roles from the notebook's helpers
@gluon.jit


def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    for c in range(2):
        tiles.fetch(q_desc, [b, h, row + 64 * c, 0], q_slots.index(c), q_full.index(c))
    for g in range(n):
        s = g % STAGES
        free = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), free)
        tiles.fetch(k_desc, [b, h, g * B_C, 0], k_slots.index(s), k_full.index(s))
        mbarrier.wait(v_empty.index(s), free)
        tiles.fetch(v_desc, [b, h, g * B_C, 0], v_slots.index(s), v_full.index(s))


@gluon.jit


def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    phase = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), phase)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    S = warpgroup_mma(q, k_slots.index(s).reshape([B_C, D]).permute((1, 0)), zero, use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S,))
    mbarrier.arrive(k_empty.index(s))
    S = S * scale_log2e
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.where(cols[None, :] < limits[:, None], S, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    used = gl.where(m_new == -float("inf"), 0.0, m_new)
    P = gl.exp2(S - used[:, None])
    alpha = gl.exp2(m - used)
    l = l * alpha + gl.sum(P, 1)
    mbarrier.wait(v_full.index(s), phase)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT))[:, None]
    P = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return m_new, l, O_acc


@gluon.jit
def attention_consumer(
    q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL: gl.constexpr, ME: gl.constexpr,
):
    q_slots, q_full = q
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    start = row + 64 * ME
    rows = start + gl.arange(0, 64, layout=BY_ROW)
    if CAUSAL:
        limits = gl.minimum(rows + 1 + N_k - N_q, N_k)
    else:
        limits = gl.full([64], N_k, gl.int32, BY_ROW)
    m = gl.full([64], -float("inf"), gl.float32, BY_ROW)
    l = gl.zeros([64], gl.float32, BY_ROW)
    O_acc = gl.zeros([64, D], gl.float32, O_LAYOUT)
    mbarrier.wait(q_full.index(ME), 0)
    q_tile = q_slots.index(ME).reshape([64, D])
    for g in range(n):
        m, l, O_acc = my_consumer_step(g, q_tile, k, v, m, l, O_acc, limits, scale_log2e)
    lse = (m + gl.log2(l)) * 0.6931471805599453
    head = b * gl.num_programs(1) + h
    gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
    l = gl.where(l == 0, 1.0, l)
    O = O_acc / gl.convert_layout(l, gl.SliceLayout(1, O_LAYOUT))[:, None]
    q_tile.store(O.to(o_desc.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(o_desc, [b, h, start, 0], q_slots.index(ME))
    tma.store_wait(0)


@gluon.jit
def hopper_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, N_q, N_k, STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):
    B_C: gl.constexpr = k_desc.block_shape[2]
    b, h = gl.program_id(2), gl.program_id(1)
    row = gl.program_id(0) * 128
    q = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    v = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    fence_async_shared()
    end = gl.minimum(row + 128 + N_k - N_q, N_k) if CAUSAL else N_k
    n = (end + B_C - 1) // B_C
    gl.warp_specialize([
        (attention_consumer, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 0)),
        (attention_consumer, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 1)),
        (my_gluon_producer, (q, k, v, q_desc, k_desc, v_desc, b, h, row, n)),
    ], [4, 1], [240, 24])


def my_hopper_attention(Q, K, V, causal):
    Q, K, V = (X.contiguous() for X in (Q, K, V))
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    lse = torch.empty(B, H, N_q, dtype=torch.float32, device=Q.device)
    grid = (triton.cdiv(N_q, 128), H, B)
    hopper_kernel[grid](
        by_head(Q, 64), by_head(K, 128), by_head(V, 128), by_head(O, 64), lse,
        math.log2(math.e) / math.sqrt(d), N_q, N_k, 2, causal, num_warps=4,
    )
    return O, lse


# hopper_attention: no helper of the notebook, a grid of one axis
@gluon.jit
def gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
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
        p = ((g // STAGES) & 1) ^ 1
        mbarrier.wait(k_empty.index(s), p)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * B_C, 0], k_full.index(s), k_slots.index(s))
        mbarrier.wait(v_empty.index(s), p)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * B_C, 0], v_full.index(s), v_slots.index(s))


@gluon.jit
def consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    p = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), p)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    K = k_slots.index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), zero, use_acc=False, is_async=True)
    S = warpgroup_mma_wait(0, deps=(S,))
    mbarrier.arrive(k_empty.index(s))
    cols = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.where(cols[None, :] < limits[:, None], S * scale_log2e, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    shift = gl.where(m_new == -float("inf"), 0.0, m_new)
    alpha = gl.exp2(m - shift)
    P = gl.exp2(S - shift[:, None])
    l = l * alpha + gl.sum(P, 1)
    mbarrier.wait(v_full.index(s), p)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT), assert_trivial=True)[:, None]
    P = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT, assert_trivial=True)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return m_new, l, O_acc


@gluon.jit
def tiles_seen(row, N_q, N_k, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    end = gl.minimum(row + 128 + N_k - N_q, N_k) if CAUSAL else N_k
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def producer_role(q, k, v, q_desc, k_desc, v_desc, H, N_q, N_k, T_r, CAUSAL: gl.constexpr):
    B_C: gl.constexpr = k[0].type.shape[3]
    head = gl.program_id(0) // T_r
    row = gl.program_id(0) % T_r * 128
    n = tiles_seen(row, N_q, N_k, B_C, CAUSAL)
    gluon_producer(q, k, v, q_desc, k_desc, v_desc, head // H, head % H, row, n)


@gluon.jit
def consumer_role(
    q, k, v, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r, CAUSAL: gl.constexpr, ME: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = q
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    BY_ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    head = gl.program_id(0) // T_r
    row = gl.program_id(0) % T_r * 128
    n = tiles_seen(row, N_q, N_k, B_C, CAUSAL)
    row = row + 64 * ME
    rows = row + gl.arange(0, 64, layout=BY_ROW)
    limits = gl.minimum(rows + 1 + N_k - N_q, N_k) if CAUSAL else gl.full([64], N_k, gl.int32, BY_ROW)
    m = gl.full([64], -float("inf"), gl.float32, BY_ROW)
    l = gl.zeros([64], gl.float32, BY_ROW)
    O_acc = gl.zeros([64, D], gl.float32, O_LAYOUT)
    mbarrier.wait(q_full.index(ME), 0)
    q_mat = q_slots.index(ME).reshape([64, D])
    for g in range(n):
        m, l, O_acc = consumer_step(g, q_mat, k, v, m, l, O_acc, limits, scale_log2e)
    l_safe = gl.where(l == 0, 1.0, l)
    O = O_acc / gl.convert_layout(l_safe, gl.SliceLayout(1, O_LAYOUT), assert_trivial=True)[:, None]
    q_mat.store(O.to(q_slots.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(o_desc, [head // H, head % H, row, 0], q_slots.index(ME))
    lse = (m + gl.log2(l)) * 0.6931471805599453
    gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
    tma.store_wait(0)


@gluon.jit
def kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r,
    STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q_slots = gl.allocate_shared_memory(q_desc.dtype, [2] + q_desc.block_shape, q_desc.layout)
    k_slots = gl.allocate_shared_memory(k_desc.dtype, [STAGES] + k_desc.block_shape, k_desc.layout)
    v_slots = gl.allocate_shared_memory(v_desc.dtype, [STAGES] + v_desc.block_shape, v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(2):
        mbarrier.init(q_full.index(c), count=1)
    for s in gl.static_range(STAGES):
        mbarrier.init(k_full.index(s), count=1)
        mbarrier.init(v_full.index(s), count=1)
        mbarrier.init(k_empty.index(s), count=2)
        mbarrier.init(v_empty.index(s), count=2)
    fence_async_shared()
    q = q_slots, q_full
    k = k_slots, k_full, k_empty
    v = v_slots, v_full, v_empty
    gl.warp_specialize([
        (consumer_role, (q, k, v, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r, CAUSAL, 0)),
        (consumer_role, (q, k, v, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r, CAUSAL, 1)),
        (producer_role, (q, k, v, q_desc, k_desc, v_desc, H, N_q, N_k, T_r, CAUSAL)),
    ], [4, 1], [240, 24])


def my_hopper_attention(Q, K, V, causal):
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    B_C = 128
    dtype = gl.float16 if Q.dtype == torch.float16 else gl.bfloat16
    O = torch.empty((B, H, N_q, d), dtype=Q.dtype, device=Q.device)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    def described(X, rows):
        X = X.contiguous()
        layout = gl.NVMMASharedLayout.get_default_for([1, 1, rows, d], dtype)
        return TensorDescriptor(X, list(X.shape), list(X.stride()), [1, 1, rows, d], layout)
    T_r = triton.cdiv(N_q, 128)
    kernel[(T_r * B * H,)](
        described(Q, 64), described(K, B_C), described(V, B_C), described(O, 64), lse,
        math.log2(math.e) / math.sqrt(d), H, N_q, N_k, T_r, STAGES=2, CAUSAL=causal, num_warps=4)
    return O, lse
