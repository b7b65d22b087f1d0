"""Right answers to the exercises in Gluon, in other styles: see `tests.checks.answers`."""


# gluon_producer: parities that are flipped
@gluon.jit
def fill(desc, at, full, slot):
    mbarrier.expect(full, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, full, slot)


@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    STAGES: gl.constexpr = k[0].type.shape[0]
    fill(q_desc, [b, h, row, 0], q[1].index(0), q[0].index(0))
    fill(q_desc, [b, h, row + 64, 0], q[1].index(1), q[0].index(1))
    s = 0
    parity = 1
    start = 0
    for _ in range(n):
        mbarrier.wait(k[2].index(s), parity)
        fill(k_desc, [b, h, start, 0], k[1].index(s), k[0].index(s))
        mbarrier.wait(v[2].index(s), parity)
        fill(v_desc, [b, h, start, 0], v[1].index(s), v[0].index(s))
        start += k_desc.block_shape[2]
        s += 1
        if s == STAGES:
            s = 0
            parity = parity ^ 1


# gluon_producer: V is asked for first, and Q after the first tiles
@gluon.jit
def my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, b, h, row, n):
    q_slots, q_full = q
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.shape[0]
    for g in range(n):
        s = g % STAGES
        free = 1 - (g // STAGES) % 2
        mbarrier.wait(v_empty.index(s), free)
        mbarrier.expect(v_full.index(s), v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [b, h, g * v_desc.block_shape[2], 0], v_full.index(s), v_slots.index(s))
        mbarrier.wait(k_empty.index(s), free)
        mbarrier.expect(k_full.index(s), k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [b, h, g * k_desc.block_shape[2], 0], k_full.index(s), k_slots.index(s))
        if g == 0:
            for c in gl.static_range(2):
                mbarrier.expect(q_full.index(c), q_desc.block_type.nbytes)
                tma.async_copy_global_to_shared(q_desc, [b, h, row + 64 * c, 0], q_full.index(c), q_slots.index(c))


# consumer_step: the scale in the exponent, and V waited for early
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    S_LAYOUT: gl.constexpr = m.type.layout.parent
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    s = g % STAGES
    mbarrier.wait(k_full.index(s), (g // STAGES) % 2)
    mbarrier.wait(v_full.index(s), (g // STAGES) % 2)
    K = k_slots.index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), gl.zeros([64, B_C], gl.float32, S_LAYOUT), use_acc=False, is_async=True)
    S = warpgroup_mma_wait(num_outstanding=0, deps=(S,))
    mbarrier.arrive(k_empty.index(s))
    keys = g * B_C + gl.arange(0, B_C, layout=gl.SliceLayout(0, S_LAYOUT))
    S = gl.where(keys[None, :] >= limits[:, None], -float("inf"), S)
    larger = gl.maximum(m, gl.max(S, 1) * scale_log2e)
    used = gl.maximum(larger, -1.0e38)
    alpha = gl.exp2(m - used)
    P = gl.exp2(S * scale_log2e - used[:, None])
    to_operand: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    P_low = gl.convert_layout(P.to(k_slots.dtype), to_operand)
    O_acc *= gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT))[:, None]
    O_acc = warpgroup_mma(P_low, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    l = l * alpha + gl.sum(P, 1)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return larger, l, O_acc


# hopper_attention: tiles of 64 keys, from the last to the first, and O stored by the threads
@gluon.jit
def made(desc, n: gl.constexpr, readers: gl.constexpr):
    slots = gl.allocate_shared_memory(desc.dtype, [n] + desc.block_shape, desc.layout)
    full = mbarrier.allocate_mbarrier(batch=n)
    empty = mbarrier.allocate_mbarrier(batch=n)
    for s in gl.static_range(n):
        mbarrier.init(full.index(s), count=1)
        mbarrier.init(empty.index(s), count=readers)
    return slots, full, empty


@gluon.jit
def load(desc, b, h, start, ring, s):
    mbarrier.expect(ring[1].index(s), desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [b, h, start, 0], ring[1].index(s), ring[0].index(s))


@gluon.jit
def bringer(qs, ks, vs, q_desc, k_desc, v_desc, b, h, block, n):
    STAGES: gl.constexpr = ks[0].type.shape[0]
    load(q_desc, b, h, block * 128, qs, 0)
    load(q_desc, b, h, block * 128 + 64, qs, 1)
    for g in range(n):
        s = g % STAGES
        mbarrier.wait(ks[2].index(s), (g // STAGES + 1) & 1)
        load(k_desc, b, h, (n - 1 - g) * 64, ks, s)
        mbarrier.wait(vs[2].index(s), (g // STAGES + 1) & 1)
        load(v_desc, b, h, (n - 1 - g) * 64, vs, s)


@gluon.jit
def multiplier(
    qs, ks, vs, O_ptr, lse_ptr, scale, head, block, n, N_q, N_k, CAUSAL: gl.constexpr, C: gl.constexpr,
):  # fmt: skip
    STAGES: gl.constexpr = ks[0].type.shape[0]
    D: gl.constexpr = ks[0].type.shape[4]
    S_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    O_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    rows = block * 128 + C * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, S_L))
    cols = gl.arange(0, 64, layout=gl.SliceLayout(0, S_L))
    m = gl.full([64], -1.0e38, gl.float32, gl.SliceLayout(1, S_L))
    l = gl.zeros([64], gl.float32, gl.SliceLayout(1, S_L))
    O = gl.zeros([64, D], gl.float32, O_L)
    mbarrier.wait(qs[1].index(C), 0)
    for g in range(n):
        s = g % STAGES
        parity = (g // STAGES) & 1
        mbarrier.wait(ks[1].index(s), parity)
        S = warpgroup_mma(
            qs[0].index(C).reshape([64, D]), ks[0].index(s).reshape([64, D]).permute((1, 0)),
            gl.zeros([64, 64], gl.float32, S_L), use_acc=False, is_async=True,
        )  # fmt: skip
        S = warpgroup_mma_wait(0, deps=(S,))
        mbarrier.arrive(ks[2].index(s))
        keys = (n - 1 - g) * 64 + cols
        seen = keys[None, :] < N_k
        if CAUSAL:
            seen = seen & (keys[None, :] - rows[:, None] <= N_k - N_q)
        S = gl.where(seen, S * scale, -float("inf"))
        m_new = gl.maximum(m, gl.max(S, 1))
        a = gl.exp2(m - m_new)
        P = gl.exp2(S - m_new[:, None])
        m = m_new
        l = l * a + gl.sum(P, 1)
        mbarrier.wait(vs[1].index(s), parity)
        O = O * gl.convert_layout(a, gl.SliceLayout(1, O_L))[:, None]
        P_op = gl.convert_layout(P.to(ks[0].dtype), gl.DotOperandLayout(operand_index=0, parent=O_L, k_width=2))
        O = warpgroup_mma(P_op, vs[0].index(s).reshape([64, D]), O, is_async=True)
        O = warpgroup_mma_wait(0, deps=(O,))
        mbarrier.arrive(vs[2].index(s))
    some = l > 0.0
    lse = gl.where(some, (m + gl.log2(gl.where(some, l, 1.0))) / 1.4426950408889634, -float("inf"))
    gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
    inverse = gl.where(some, 1.0 / gl.where(some, l, 1.0), 0.0)
    O = O * gl.convert_layout(inverse, gl.SliceLayout(1, O_L))[:, None]
    O_rows = block * 128 + C * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, O_L))
    O_cols = gl.arange(0, D, layout=gl.SliceLayout(0, O_L))
    at = (head * N_q + O_rows)[:, None] * D + O_cols[None, :]
    gl.store(O_ptr + at, O.to(ks[0].dtype), mask=O_rows[:, None] < N_q)


@gluon.jit
def kernel(
    q_desc, k_desc, v_desc, O_ptr, lse_ptr, scale, H, N_q, N_k, T_r, CAUSAL: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    qs = made(q_desc, 2, 1)
    ks = made(k_desc, STAGES, 2)
    vs = made(v_desc, STAGES, 2)
    fence_async_shared()
    head = gl.program_id(0) // T_r
    block = gl.program_id(0) % T_r
    n = (N_k + 63) // 64
    if CAUSAL:
        n = gl.maximum(gl.minimum(n, (block * 128 + 191 + N_k - N_q) // 64), 0)
    gl.warp_specialize([
        (multiplier, (qs, ks, vs, O_ptr, lse_ptr, scale, head, block, n, N_q, N_k, CAUSAL, 0)),
        (multiplier, (qs, ks, vs, O_ptr, lse_ptr, scale, head, block, n, N_q, N_k, CAUSAL, 1)),
        (bringer, (qs, ks, vs, q_desc, k_desc, v_desc, head // H, head % H, block, n)),
    ], [4, 1], [240, 24])  # fmt: skip


def my_hopper_attention(Q, K, V, causal):
    B, H, N_q, d = Q.shape
    O, lse = Q.new_empty(Q.shape), torch.empty(B, H, N_q, device=Q.device)

    def desc(X):
        layout = gl.NVMMASharedLayout.get_default_for([1, 1, 64, d], gl.bfloat16)
        return TensorDescriptor.from_tensor(X.contiguous(), [1, 1, 64, d], layout)

    T_r = -(-N_q // 128)
    kernel[(T_r * B * H,)](
        desc(Q), desc(K), desc(V), O, lse, d**-0.5 * math.log2(math.e), H, N_q, K.shape[2], T_r, CAUSAL=causal,
        STAGES=4, num_warps=4,
    )  # fmt: skip
    return O, lse


# hopper_attention: my producer and step by name, a grid of one axis, and each role counts the tiles
@gluon.jit
def tiles_seen(row, N_q, N_k, B_C: gl.constexpr, CAUSAL: gl.constexpr):
    end = gl.minimum(row + 128 + N_k - N_q, N_k) if CAUSAL else N_k
    return gl.maximum((end + B_C - 1) // B_C, 1)


@gluon.jit
def bring(q, k, v, q_desc, k_desc, v_desc, H, N_q, N_k, T_r, CAUSAL: gl.constexpr):
    B_C: gl.constexpr = k[0].type.shape[3]
    row = gl.program_id(0) % T_r * 128
    n = tiles_seen(row, N_q, N_k, B_C, CAUSAL)
    head = gl.program_id(0) // T_r
    my_gluon_producer(q, k, v, q_desc, k_desc, v_desc, head // H, head % H, row, n)


@gluon.jit
def compute(
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
        m, l, O_acc = my_consumer_step(g, q_mat, k, v, m, l, O_acc, limits, scale_log2e)
    l_safe = gl.where(l == 0, 1.0, l)
    O = O_acc / gl.convert_layout(l_safe, gl.SliceLayout(1, O_LAYOUT), assert_trivial=True)[:, None]
    q_mat.store(O.to(q_slots.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(o_desc, [head // H, head % H, row, 0], q_slots.index(ME))
    lse = (m + gl.log2(l)) * 0.6931471805599453
    gl.store(lse_ptr + head * N_q + rows, lse, mask=rows < N_q)
    tma.store_wait(0)


@gluon.jit
def kernel_of_roles(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r,
    STAGES: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    q = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots = tiles.slots(k_desc, STAGES)
    k_full = tiles.barriers(STAGES, 1)
    k_empty = tiles.barriers(STAGES, 2)
    v_slots = tiles.slots(v_desc, STAGES)
    v_full = tiles.barriers(STAGES, 1)
    v_empty = tiles.barriers(STAGES, 2)
    fence_async_shared()
    k, v = (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    gl.warp_specialize([
        (compute, (q, k, v, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r, CAUSAL, 0)),
        (compute, (q, k, v, o_desc, lse_ptr, scale_log2e, H, N_q, N_k, T_r, CAUSAL, 1)),
        (bring, (q, k, v, q_desc, k_desc, v_desc, H, N_q, N_k, T_r, CAUSAL)),
    ], [4, 1], [240, 24])  # fmt: skip


def my_hopper_attention(Q, K, V, causal):
    B, H, N_q, d = Q.shape
    O = torch.empty((B, H, N_q, d), dtype=Q.dtype, device=Q.device)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    T_r = triton.cdiv(N_q, 128)
    kernel_of_roles[(T_r * B * H,)](
        by_head(Q.contiguous(), 64), by_head(K.contiguous(), 128), by_head(V.contiguous(), 128), by_head(O, 64), lse,
        math.log2(math.e) / math.sqrt(d), H, N_q, K.shape[2], T_r, STAGES=2, CAUSAL=causal, num_warps=4,
    )  # fmt: skip
    return O, lse


# consumer_step: the keys in two halves, the first of which is rounded while the other is multiplied
@gluon.jit
def half_of_S(q, K, start, LAYOUT: gl.constexpr):
    HALF: gl.constexpr = K.shape[0] // 2
    K_T = K.slice(start, HALF).permute((1, 0))
    return warpgroup_mma(q, K_T, gl.zeros([64, HALF], gl.float32, LAYOUT), use_acc=False, is_async=True)


@gluon.jit
def hidden_above(S, first, limits, scale, LAYOUT: gl.constexpr):
    keys = first + gl.arange(0, S.shape[1], layout=gl.SliceLayout(0, LAYOUT))
    limits = gl.convert_layout(limits, gl.SliceLayout(1, LAYOUT))
    return gl.where(keys[None, :] < limits[:, None], S * scale, -float("inf"))


@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[3]
    D: gl.constexpr = k_slots.type.shape[4]
    HALF: gl.constexpr = B_C // 2
    S_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HALF, 16])
    O_L: gl.constexpr = O_acc.type.layout
    TO_P: gl.constexpr = gl.DotOperandLayout(0, O_L, 2)
    s = g % STAGES
    mbarrier.wait(k_full.index(s), (g // STAGES) & 1)
    K = k_slots.index(s).reshape([B_C, D])
    left_begun = half_of_S(q, K, 0, S_L)
    right_begun = half_of_S(q, K, HALF, S_L)
    left = warpgroup_mma_wait(1, deps=(left_begun,))
    left = hidden_above(left, g * B_C, limits, scale_log2e, S_L)
    m_old = gl.convert_layout(m, gl.SliceLayout(1, S_L))
    m_left = gl.maximum(m_old, gl.max(left, 1))
    right = warpgroup_mma_wait(0, deps=(right_begun,))
    mbarrier.arrive(k_empty.index(s))
    right = hidden_above(right, g * B_C + HALF, limits, scale_log2e, S_L)
    m_new = gl.maximum(m_left, gl.max(right, 1))
    used = gl.maximum(m_new, -1.0e38)
    alpha = gl.exp2(m_old - used)
    P_left = gl.exp2(left - used[:, None])
    P_right = gl.exp2(right - used[:, None])
    sums = gl.sum(P_left, 1) + gl.sum(P_right, 1)
    l = gl.convert_layout(alpha, l.type.layout) * l + gl.convert_layout(sums, l.type.layout)
    mbarrier.wait(v_full.index(s), (g // STAGES) & 1)
    V = v_slots.index(s).reshape([B_C, D])
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_L))[:, None]
    P_left = gl.convert_layout(P_left.to(v_slots.dtype), TO_P)
    P_right = gl.convert_layout(P_right.to(v_slots.dtype), TO_P)
    half_begun = warpgroup_mma(P_left, V.slice(0, HALF), O_acc, is_async=True)
    O_begun = warpgroup_mma(P_right, V.slice(HALF, HALF), half_begun, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
    mbarrier.arrive(v_empty.index(s))
    return gl.convert_layout(m_new, m.type.layout), l, O_acc


# hopper_attention: a causal S under the softmax before it, any other behind P V
@gluon.jit
def begin_S(g, q, k, LAYOUT: gl.constexpr):
    slots, full, _ = k
    s = g % slots.type.shape[0]
    B_C: gl.constexpr = slots.type.shape[3]
    mbarrier.wait(full.index(s), (g // slots.type.shape[0]) & 1)
    K_T = slots.index(s).reshape([B_C, slots.type.shape[4]]).permute((1, 0))
    return warpgroup_mma(q, K_T, gl.zeros([64, B_C], gl.float32, LAYOUT), use_acc=False, is_async=True)


@gluon.jit
def begin_PV(g, P, v, alpha, O_acc):
    slots, full, _ = v
    s = g % slots.type.shape[0]
    LAYOUT: gl.constexpr = O_acc.type.layout
    mbarrier.wait(full.index(s), (g // slots.type.shape[0]) & 1)
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, LAYOUT))[:, None]
    P = gl.convert_layout(P.to(slots.dtype), gl.DotOperandLayout(0, LAYOUT, 2))
    V = slots.index(s).reshape([slots.type.shape[3], slots.type.shape[4]])
    return warpgroup_mma(P, V, O_acc, is_async=True)


@gluon.jit
def softmax_of(S, g, m, l, limits, scale_log2e):
    LAYOUT: gl.constexpr = S.type.layout
    keys = g * S.shape[1] + gl.arange(0, S.shape[1], layout=gl.SliceLayout(0, LAYOUT))
    S = gl.where(keys[None, :] < limits[:, None], S * scale_log2e, -float("inf"))
    m_new = gl.maximum(m, gl.max(S, 1))
    used = gl.where(m_new == -float("inf"), 0.0, m_new)
    alpha = gl.exp2(m - used)
    P = gl.exp2(S - used[:, None])
    return P, m_new, l * alpha + gl.sum(P, 1), alpha


@gluon.jit
def overlapping(
    q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL: gl.constexpr, ME: gl.constexpr,
    S_FIRST: gl.constexpr,
):  # fmt: skip
    q_slots, q_full = q
    STAGES: gl.constexpr = k[0].type.shape[0]
    B_C: gl.constexpr = k[0].type.shape[3]
    D: gl.constexpr = k[0].type.shape[4]
    S_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    start = row + 64 * ME
    rows = start + gl.arange(0, 64, layout=gl.SliceLayout(1, S_L))
    limits = gl.minimum(rows + 1 + N_k - N_q, N_k) if CAUSAL else rows * 0 + N_k
    m = gl.full([64], -float("inf"), gl.float32, gl.SliceLayout(1, S_L))
    l = gl.zeros([64], gl.float32, gl.SliceLayout(1, S_L))
    O_acc = gl.zeros([64, D], gl.float32, O_L)
    q_tile = q_slots.index(ME).reshape([64, D])
    mbarrier.wait(q_full.index(ME), 0)
    if n > 0:
        S = warpgroup_mma_wait(0, deps=(begin_S(0, q_tile, k, S_L),))
        mbarrier.arrive(k[2].index(0))
        P, m, l, alpha = softmax_of(S, 0, m, l, limits, scale_log2e)
        for g in range(1, n):
            if S_FIRST:
                S_begun = begin_S(g, q_tile, k, S_L)
                O_begun = begin_PV(g - 1, P, v, alpha, O_acc)
                S = warpgroup_mma_wait(1, deps=(S_begun,))
                mbarrier.arrive(k[2].index(g % STAGES))
                P, m, l, alpha = softmax_of(S, g, m, l, limits, scale_log2e)
                O_acc = warpgroup_mma_wait(0, deps=(O_begun,))
                mbarrier.arrive(v[2].index((g - 1) % STAGES))
            else:
                O_begun = begin_PV(g - 1, P, v, alpha, O_acc)
                S_begun = begin_S(g, q_tile, k, S_L)
                O_acc = warpgroup_mma_wait(1, deps=(O_begun,))
                mbarrier.arrive(v[2].index((g - 1) % STAGES))
                O_acc, S = warpgroup_mma_wait(0, deps=(O_acc, S_begun))
                mbarrier.arrive(k[2].index(g % STAGES))
                P, m, l, alpha = softmax_of(S, g, m, l, limits, scale_log2e)
        O_acc = warpgroup_mma_wait(0, deps=(begin_PV(n - 1, P, v, alpha, O_acc),))
        mbarrier.arrive(v[2].index((n - 1) % STAGES))
    divisor = gl.where(l == 0.0, 1.0, l)
    head = b * gl.num_programs(1) + h
    gl.store(lse_ptr + head * N_q + rows, (m + gl.log2(divisor)) * 0.6931471805599453, mask=rows < N_q)
    O = O_acc / gl.convert_layout(divisor, gl.SliceLayout(1, O_L))[:, None]
    q_tile.store(O.to(q_slots.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(o_desc, [b, h, start, 0], q_slots.index(ME))
    tma.store_wait(0)


@gluon.jit
def overlapped_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2e, N_q, N_k,
    STAGES: gl.constexpr, CAUSAL: gl.constexpr, S_FIRST: gl.constexpr,
):  # fmt: skip
    B_C: gl.constexpr = k_desc.block_shape[2]
    b, h = gl.program_id(2), gl.program_id(1)
    row = gl.program_id(0) * 128
    q = tiles.slots(q_desc, 2), tiles.barriers(2, 1)
    k_slots, k_full, k_empty = tiles.slots(k_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    v_slots, v_full, v_empty = tiles.slots(v_desc, STAGES), tiles.barriers(STAGES, 1), tiles.barriers(STAGES, 2)
    k, v = (k_slots, k_full, k_empty), (v_slots, v_full, v_empty)
    fence_async_shared()
    end = gl.minimum(row + 128 + N_k - N_q, N_k) if CAUSAL else N_k
    n = gl.maximum((end + B_C - 1) // B_C, 0)
    gl.warp_specialize([
        (overlapping, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 0, S_FIRST)),
        (overlapping, (q, k, v, o_desc, lse_ptr, scale_log2e, b, h, row, n, N_q, N_k, CAUSAL, 1, S_FIRST)),
        (my_gluon_producer, (q, k, v, q_desc, k_desc, v_desc, b, h, row, n)),
    ], [4, 1], [240, 24])  # fmt: skip


def overlapped_attention(Q, K, V, causal, S_FIRST):
    B, H, N_q, d = Q.shape
    O = torch.empty((B, H, N_q, d), dtype=Q.dtype, device=Q.device)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    described = [by_head(X.contiguous(), rows) for X, rows in ((Q, 64), (K, 128), (V, 128), (O, 64))]
    overlapped_kernel[(triton.cdiv(N_q, 128), H, B)](
        *described, lse, math.log2(math.e) / math.sqrt(d), N_q, K.shape[2], STAGES=2, CAUSAL=causal, S_FIRST=S_FIRST,
        num_warps=4,
    )  # fmt: skip
    return O, lse


def my_hopper_attention(Q, K, V, causal):
    return overlapped_attention(Q, K, V, causal, S_FIRST=causal)
