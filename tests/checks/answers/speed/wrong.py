"""Wrong answers to the exercises about kernels: see `tests.checks.answers`."""


# base_2, m_unscaled: m kept unscaled, all else right
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    m_new = tl.maximum(m, tl.max(S, 1))
    safe = tl.where(m_new > float("-inf"), m_new, 0.0)
    alpha = tl.math.exp2((m - safe) * scale_log2e)
    p = tl.math.exp2((S - safe[:, None]) * scale_log2e)
    acc = tl.dot(p.to(v.dtype), v, acc=O_acc * alpha[:, None], input_precision="ieee")
    return m_new, l * alpha + tl.sum(p, 1), acc


# base_2, shift_for_m: what is subtracted is kept as m
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    top = tl.maximum(m, tl.max(S, axis=1) * scale_log2e)
    top = tl.where(top == -float("inf"), 0.0, top)
    P = tl.exp2(S * scale_log2e - top[:, None])
    alpha = tl.exp2(m - top)
    O_acc = O_acc * alpha[:, None] + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return top, l * alpha + tl.sum(P, axis=1), O_acc


# base_2, l_not_rescaled: l never rescaled, another style
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    S *= scale_log2e
    m_new = tl.maximum(m, tl.max(S, 1))
    hidden = m_new == float("-inf")
    p = tl.where(hidden[:, None], 0.0, tl.exp2(S - m_new[:, None]))
    O_acc *= tl.where(hidden, 1.0, tl.exp2(m - m_new))[:, None]
    O_acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return m_new, l + tl.sum(p, 1), O_acc


# base_2, base_e_in_alpha: no guard, and e in alpha
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    s2 = S * scale_log2e
    new = tl.maximum(m, tl.max(s2, 1))
    p = tl.exp2(s2 - new[:, None])
    keep = tl.exp(m - new)
    return new, keep * l + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, O_acc * keep[:, None], input_precision="ieee")


# base_2, tf32: a dot of a helper, the default precision
@triton.jit
def weighted(p, v, acc):
    return tl.dot(p.to(v.dtype), v, acc)


@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    new = tl.maximum(m, tl.max(S, 1) * scale_log2e)
    safe = tl.where(new == float("-inf"), 0.0, new)
    keep = tl.exp2(m - safe)
    p = tl.exp2(S * scale_log2e - safe[:, None])
    return new, keep * l + tl.sum(p, 1), weighted(p, v, O_acc * keep[:, None])


# base_2, l_of_16_bits: one P for both sums
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    new = tl.maximum(m, tl.max(S, 1) * scale_log2e)
    safe = tl.where(new == float("-inf"), 0.0, new)
    keep = tl.exp2(m - safe)
    p = tl.exp2(S * scale_log2e - safe[:, None]).to(v.dtype)
    l = keep * l + tl.sum(p.to(tl.float32), 1)
    return new, l, tl.dot(p, v, O_acc * keep[:, None], input_precision="ieee")


# lse_from_base_2, power_made: powers made, one by one
def my_lse_from_base_2(m_2, l):
    lse = np.empty_like(l)
    for r in range(len(l)):
        lse[r] = np.log(l[r] * np.float64(2) ** m_2[r])
    return lse


# lse_from_base_2, no_key_number: a large number in masked rows
def my_lse_from_base_2(m_2, l):
    seen = l != 0
    out = np.full(len(l), -1e30)
    out[seen] = m_2[seen] / np.log2(np.e) + np.log(l[seen])
    return out


# lse_from_base_2, no_key_nan: nan of 0 * log(0) where l is 0
def my_lse_from_base_2(m_2, l):
    seen = (l > 0).astype(float)
    with np.errstate(all="ignore"):
        return m_2 * math.log(2) + seen * np.log(l)


# lse_from_base_2, no_key_0: nan_to_num
def my_lse_from_base_2(m_2, l):
    out = np.zeros(l.shape)
    out[l > 0] = (m_2[l > 0] + np.log2(l[l > 0])) * math.log(2)
    return out


# lse_from_base_2, ln2_rounded: ln 2 to six digits
def my_lse_from_base_2(m_2, l):
    LN_2 = 0.693147
    return np.array([m * LN_2 + np.log(x) for m, x in zip(m_2, l)])


# tail, whole_masked: every tile masked
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + tl.arange(0, D)[None, :]
        k = tl.load(K_ptr + cols, mask=(offs_n < N_k)[:, None], other=0.0)
        v = tl.load(V_ptr + cols, mask=(offs_n < N_k)[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") + tl.where(offs_n < N_k, 0.0, float("-inf"))[None, :]
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail, zeros_counted: zeros counted, in a second loop
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    n_full = N_k // B_C
    lanes = tl.arange(0, B_C)
    tile = lanes[:, None] * D + tl.arange(0, D)[None, :]
    for j in range(n_full):
        k = tl.load(K_ptr + j * B_C * D + tile)
        v = tl.load(V_ptr + j * B_C * D + tile)
        m, l, O_acc = update(tl.dot(q, tl.trans(k), input_precision="ieee"), m, l, O_acc, v, scale_log2e)
    for j in range(n_full, tl.cdiv(N_k, B_C)):
        inside = (lanes + j * B_C < N_k)[:, None]
        k = tl.load(K_ptr + j * B_C * D + tile, inside, 0.0)
        v = tl.load(V_ptr + j * B_C * D + tile, inside, 0.0)
        m, l, O_acc = update(tl.dot(q, tl.trans(k), input_precision="ieee"), m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail, whole_masked: a mask on S in every tile, loads without
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    d = tl.arange(0, D)
    for start in range(0, N_k, B_C):
        n = start + tl.arange(0, B_C)
        at = n[:, None] * D + d[None, :]
        if start + B_C <= N_k:
            k, v = tl.load(K_ptr + at), tl.load(V_ptr + at)
        else:
            k = tl.load(K_ptr + at, mask=n[:, None] < N_k, other=0.0)
            v = tl.load(V_ptr + at, mask=n[:, None] < N_k, other=0.0)
        S = tl.where(n[None, :] < N_k, tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail, whole_masked: whole tiles masked in a helper
@triton.jit
def tile(q, K_ptr, V_ptr, m, l, O_acc, n, N_k, scale_log2e, update, D: tl.constexpr):
    at = n[:, None] * D + tl.arange(0, D)[None, :]
    k = tl.load(K_ptr + at, n[:, None] < N_k, 0.0)
    v = tl.load(V_ptr + at, n[:, None] < N_k, 0.0)
    S = tl.where(n[None, :] < N_k, tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
    return update(S, m, l, O_acc, v, scale_log2e)


@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    for start in range(0, N_k, B_C):
        n = start + tl.arange(0, B_C)
        m, l, O_acc = tile(q, K_ptr, V_ptr, m, l, O_acc, n, N_k, scale_log2e, update, D)
    return m, l, O_acc


# tail, whole_masked: the last tile masked, though whole
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    d = tl.arange(0, D)
    last = (tl.cdiv(N_k, B_C) - 1) * B_C
    for start in range(0, last, B_C):
        at = (start + tl.arange(0, B_C))[:, None] * D + d[None, :]
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
    if N_k > 0:
        n = last + tl.arange(0, B_C)
        at = n[:, None] * D + d[None, :]
        k = tl.load(K_ptr + at, mask=n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + at, mask=n[:, None] < N_k, other=0.0)
        S = tl.where(n[None, :] < N_k, tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail, outside: loads by a helper that has no mask
@triton.jit
def rows(ptr, n, N_k, D: tl.constexpr):
    X = tl.load(ptr + n[:, None] * D + tl.arange(0, D)[None, :])
    return tl.where(n[:, None] < N_k, X, 0.0)


@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    for start in range(0, N_k // B_C * B_C, B_C):
        at = (start + tl.arange(0, B_C))[:, None] * D + tl.arange(0, D)[None, :]
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
    for start in range(N_k // B_C * B_C, N_k, B_C):
        n = start + tl.arange(0, B_C)
        S = tl.dot(q, rows(K_ptr, n, N_k, D).T, input_precision="ieee")
        S = tl.where(n[None, :] < N_k, S, float("-inf"))
        m, l, O_acc = update(S, m, l, O_acc, rows(V_ptr, n, N_k, D), scale_log2e)
    return m, l, O_acc
