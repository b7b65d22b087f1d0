"""Wrong answers of a reader who did not see the tables, steps of chapter 13: see `tests.checks.answers`."""


# consumer_step, early_release: K is released first
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    D: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    p = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), p)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    K = k_slots.index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), zero, use_acc=False, is_async=True)
    mbarrier.arrive(k_empty.index(s))
    S = warpgroup_mma_wait(0, deps=(S,))
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


# consumer_step, shift_unguarded: the new maximum is the shift
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    D: gl.constexpr = k_slots.type.shape[3]
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
    shift = m_new
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


# consumer_step, operand: P only gets its type
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    D: gl.constexpr = k_slots.type.shape[3]
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
    P = P.to(v_slots.dtype)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    return m_new, l, O_acc


# consumer_step, unwaited: what the wait returns is lost
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    D: gl.constexpr = k_slots.type.shape[3]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B_C, 16])
    O_LAYOUT: gl.constexpr = O_acc.type.layout
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    s = g % STAGES
    p = (g // STAGES) & 1
    mbarrier.wait(k_full.index(s), p)
    zero = gl.zeros([64, B_C], gl.float32, S_LAYOUT)
    K = k_slots.index(s).reshape([B_C, D])
    S = warpgroup_mma(q, K.permute((1, 0)), zero, use_acc=False, is_async=True)
    warpgroup_mma_wait(0, deps=(S,))
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


# consumer_step, O_rescaled_late: after P V
@gluon.jit
def my_consumer_step(g, q, k, v, m, l, O_acc, limits, scale_log2e):
    k_slots, k_full, k_empty = k
    v_slots, v_full, v_empty = v
    STAGES: gl.constexpr = k_slots.type.shape[0]
    B_C: gl.constexpr = k_slots.type.shape[2]
    D: gl.constexpr = k_slots.type.shape[3]
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
    P = gl.convert_layout(P.to(v_slots.dtype), P_LAYOUT, assert_trivial=True)
    O_acc = warpgroup_mma(P, v_slots.index(s).reshape([B_C, D]), O_acc, is_async=True)
    O_acc = warpgroup_mma_wait(0, deps=(O_acc,))
    mbarrier.arrive(v_empty.index(s))
    O_acc = O_acc * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT), assert_trivial=True)[:, None]
    return m_new, l, O_acc
