"""Right answers to the exercises about kernels in other styles: see `tests.checks.answers`."""


# base_2: scaled first, masked rows by tl.where, the precision as the fourth argument
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    S *= scale_log2e
    new = tl.maximum(m, tl.max(S, 1))
    nothing = new == float("-inf")
    keep = tl.where(nothing, 0.0, tl.exp2(m - new))
    p = tl.where(nothing[:, None], 0.0, tl.exp2(S - new[:, None]))
    acc = tl.dot(p.to(v.dtype), v, O_acc * keep[:, None], "ieee")
    return new, l * keep + tl.sum(p, axis=1), acc


# base_2: v in fp32 for the product, a finite shift
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    new = tl.maximum(m, tl.max(S, 1) * scale_log2e)
    shift = tl.maximum(new, -1e30)
    keep = tl.math.exp2(m - shift)
    p = tl.math.exp2(S * scale_log2e - shift[:, None])
    l = tl.fma(l, keep, tl.sum(p, 1))
    return new, l, O_acc * keep[:, None] + tl.dot(p, v.to(tl.float32), None, "ieee")


# lse_from_base_2: row by row
def my_lse_from_base_2(m_2, l):
    rows = [m / math.log2(math.e) + math.log(x) if x else -math.inf for m, x in zip(m_2.tolist(), l.tolist())]
    return np.array(rows)


# lse_from_base_2: l guarded, ln 2 by its digits
def my_lse_from_base_2(m_2, l):
    return (m_2 + np.log2(np.where(l == 0, 1.0, l))) * 0.6931471805599453


# lse_from_base_2: logaddexp2
def my_lse_from_base_2(m_2, l):
    with np.errstate(divide="ignore"):
        return np.logaddexp2(m_2 + np.log2(l), -np.inf) / np.log2(np.exp(1))


# lse_from_base_2: in place in a copy
def my_lse_from_base_2(m_2, l):
    lse = np.full_like(m_2, -np.inf)
    np.log(l, out=lse, where=l > 0)
    lse += m_2 * np.log(2.0)
    return lse


# tail: a loop that goes once, a mask that is added
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    whole = N_k - N_k % B_C
    at = tl.arange(0, B_C)[:, None] * D + tl.arange(0, D)[None, :]
    for start in range(0, whole, B_C):
        S = tl.dot(q, tl.trans(tl.load(K_ptr + start * D + at)), None, "ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + start * D + at), scale_log2e)
    for start in range(whole, N_k, B_C):
        left = tl.arange(0, B_C) < N_k - start
        k = tl.load(K_ptr + start * D + at, left[:, None], 0.0)
        v = tl.load(V_ptr + start * D + at, left[:, None], 0.0)
        S = tl.dot(q, tl.trans(k), None, "ieee") + tl.where(left, 0.0, float("-inf"))[None, :]
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail: one loop, the mask in the last tile alone
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    d = tl.arange(0, D)
    for start in range(0, N_k, B_C):
        n = start + tl.arange(0, B_C)
        at = n[:, None] * D + d[None, :]
        if start + B_C <= N_k:
            k, v = tl.load(K_ptr + at), tl.load(V_ptr + at)
            S = tl.dot(q, k.T, input_precision="ieee")
        else:
            k = tl.load(K_ptr + at, mask=n[:, None] < N_k, other=0.0)
            v = tl.load(V_ptr + at, mask=n[:, None] < N_k, other=0.0)
            S = tl.where(n[None, :] < N_k, tl.dot(q, k.T, input_precision="ieee"), -1e30)
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc


# tail: rows past the end read from row 0 again
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    d = tl.arange(0, D)[None, :]
    for j in range(N_k // B_C):
        at = (j * B_C + tl.arange(0, B_C))[:, None] * D + d
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
    if N_k % B_C != 0:
        n = N_k // B_C * B_C + tl.arange(0, B_C)
        at = (n % N_k)[:, None] * D + d
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        S = tl.where(n[None, :] < N_k, S, -float("inf"))
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
    return m, l, O_acc


# tail: the tail first
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    first = N_k % B_C
    d = tl.arange(0, D)[None, :]
    if first > 0:
        n = tl.arange(0, B_C)
        at = n[:, None] * D + d
        k = tl.load(K_ptr + at, mask=n[:, None] < first, other=0.0)
        v = tl.load(V_ptr + at, mask=n[:, None] < first, other=0.0)
        S = tl.where(n[None, :] < first, tl.dot(q, k.T, input_precision="ieee"), -float("inf"))
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    for start in range(first, N_k, B_C):
        at = (start + tl.arange(0, B_C))[:, None] * D + d
        S = tl.dot(q, tl.load(K_ptr + at).T, input_precision="ieee")
        m, l, O_acc = update(S, m, l, O_acc, tl.load(V_ptr + at), scale_log2e)
    return m, l, O_acc
