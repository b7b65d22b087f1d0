"""More right answers: promotion by NumPy, helpers, loops: see `tests.checks.answers`."""


# tflops: NumPy's numbers, and a helper for the factor
def my_tflops(B, H, N, d, causal, ms):
    def factor(causal):
        return {False: 4, True: 2}[bool(causal)]

    return np.float64(factor(causal)) * B * H * d * np.square(float(N)) / np.float64(ms) / 1e9


# programs: divmod, and a dictionary of what each resource allows
def my_programs(registers, shared, num_warps):
    units, rest = divmod(registers * 32, 256)
    used = {"registers": (units + bool(rest)) * 256 * num_warps, "shared": shared + (1 << 10), "warps": num_warps}
    have = {"registers": 1 << 16, "shared": 228 << 10, "warps": 64}
    return min(divmod(have[name], used[name])[0] for name in have)


# base_2: the mask as weights of 0, and sums by dot
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    S2 = S * scale_log2e
    m_new = tl.maximum(tl.max(S2, 1), m)
    seen = m_new > -float("inf")
    alpha = tl.where(seen, tl.exp2(m - tl.where(seen, m_new, 0.0)), 1.0)
    P = tl.where(seen[:, None], tl.exp2(S2 - tl.where(seen, m_new, 0.0)[:, None]), 0.0)
    O_acc *= alpha[:, None]
    O_acc += tl.dot(P.to(v.dtype), v, input_precision="ieee")
    l *= alpha
    l += tl.sum(P, 1)
    return m_new, l, O_acc


# lse_from_base_2: a mask that is written in place
def my_lse_from_base_2(m_2, l):
    lse = m_2 * np.log(2)
    seen = l != 0
    lse[seen] += np.log(l[seen])
    lse[~seen] = -np.inf
    return lse


# tail: pointers that move, and a tail of its own helper
@triton.jit
def masked_tile(q, K_ptr, V_ptr, at, inside):
    k = tl.load(K_ptr + at, mask=inside[:, None], other=0.0)
    v = tl.load(V_ptr + at, mask=inside[:, None], other=0.0)
    return tl.where(inside[None, :], tl.dot(q, k.T, input_precision="ieee"), float("-inf")), v


@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    n = tl.arange(0, B_C)
    at = n[:, None] * D + tl.arange(0, D)[None, :]
    for _ in range(N_k // B_C):
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
        K_ptr += B_C * D
        V_ptr += B_C * D
    left = N_k % B_C
    if left > 0:
        S, v = masked_tile(q, K_ptr, V_ptr, at, n < left)
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc
