"""Wrong answers: see `tests.checks.answers`."""


# inner_loop, not_rescaled: l and O_acc added to, not rescaled
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    neg = float("-inf")
    logits = tl.dot(q, tl.trans(k), input_precision="ieee") * scale + tl.where(visible, 0.0, neg)
    m = tl.maximum(m, tl.max(logits, 1))
    p = tl.where(visible, tl.exp(logits - m[:, None]), 0.0)
    return m, l + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc=O_acc, input_precision="ieee")


# inner_loop, tile_rescaled: the new tile rescaled too
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    qk = tl.where(visible, scale * tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
    m_new = tl.maximum(m, tl.max(qk, 1))
    safe = tl.where(m_new > float("-inf"), m_new, 0.0)
    p = tl.exp(qk - safe[:, None])
    alpha = tl.exp(m - safe)
    l = (l + tl.sum(p, 1)) * alpha
    O_acc = (O_acc + tl.dot(p.to(v.dtype), v, input_precision="ieee")) * alpha[:, None]
    return m_new, l, O_acc


# inner_loop, alpha_upside_down: a first draft without a guard
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.where(visible, tl.dot(q, k.T, input_precision="ieee") * scale, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    p = tl.exp(s - new[:, None])
    fix = tl.exp(new - m)
    return new, fix * l + tl.sum(p, 1), fix[:, None] * O_acc + tl.dot(p.to(v.dtype), v, input_precision="ieee")


# inner_loop, tf32: products in a helper, by default
@triton.jit
def times(a, b):
    return tl.dot(a, b)


@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.where(visible, times(q, k.T) * scale, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    shift = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp(s - shift[:, None])
    keep = tl.exp(m - shift)
    return new, keep * l + tl.sum(p, 1), keep[:, None] * O_acc + times(p.to(v.dtype), v)


# inner_loop, l_of_16_bits: P in the dtype of v for both sums
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    s = tl.where(visible, tl.dot(q, k.T, None, "ieee") * scale, float("-inf"))
    new = tl.maximum(m, tl.max(s, 1))
    shift = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp(s - shift[:, None]).to(v.dtype)
    keep = tl.exp(m - shift)
    return new, keep * l + tl.sum(p.to(tl.float32), 1), tl.dot(p, v, O_acc * keep[:, None], "ieee")


# causal_split, one_cut_tile: one cut tile
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    first_row = i * B_R
    n_full = max(first_row + (N_k - N_q) + 1, 0) // B_C
    return n_full * B_C, (n_full + 1) * B_C


# causal_split, end_not_clipped: rounded up and not clipped
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    lo = i * B_R + N_k - N_q
    hi = lo + B_R
    full = tl.where(lo >= 0, (lo + 1) // B_C, 0) * B_C
    return full, tl.where(hi > 0, tl.cdiv(hi, B_C), 0) * B_C


# causal_split, full_0: everything masked
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    last = i * B_R + B_R - 1 + N_k - N_q
    return 0, tl.minimum(last + 1, N_k)


# causal_split, hidden_computed: one tile at least
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    past = N_k - N_q
    full = max(0, i * B_R + past + 1) // B_C * B_C
    tiles = max(1, tl.cdiv(min(N_k, (i + 1) * B_R + past), B_C))
    return full, tiles * B_C


# padded, input_written: Q scaled in place, and the default scale
def my_padded(Q, K, V):
    d = Q.shape[-1]
    n = next(n for n in (16, 32, 64, 128) if n >= d)
    Q *= math.sqrt(n / d)
    big = [torch.zeros(*X.shape[:-1], n, dtype=X.dtype, device=X.device) for X in (Q, K, V)]
    for new, X in zip(big, (Q, K, V)):
        new[..., :d] = X
    return r5_causal.attention(*big).O[..., :d]


# padded, scale_padded: always 128, the default scale
def my_padded(Q, K, V):
    d = Q.shape[-1]
    zeros = lambda X: torch.cat([X, X.new_zeros(*X.shape[:3], 128 - d)], dim=-1)
    return r5_causal.attention(zeros(Q), zeros(K), zeros(V)).O.narrow(-1, 0, d)


# padded, not_rung_5: PyTorch
def my_padded(Q, K, V):
    S = Q.float() @ K.float().transpose(-1, -2) / math.sqrt(Q.shape[-1])
    return (torch.softmax(S, -1) @ V.float()).to(Q.dtype)


# padded, not_rung_5: the kernel for use, which takes any d
def my_padded(Q, K, V):
    from flashlib.kernels import forward

    n = max(16, triton.next_power_of_2(Q.shape[-1])) - Q.shape[-1]
    Q_, K_, V_ = (torch.nn.functional.pad(X, (0, n)) for X in (Q, K, V))
    return forward.attention(Q_, K_, V_, scale=Q.shape[-1] ** -0.5).O[..., : Q.shape[-1]]


# padded, not_rung_5: PyTorch's own attention
def my_padded(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(Q, K, V)


# attention, matrix: scores of all heads by a kernel, the rest by PyTorch
@triton.jit
def scores_kernel(
    Q_ptr, K_ptr, S_ptr, N_q, N_k, scale, D: tl.constexpr, B: tl.constexpr, CAUSAL: tl.constexpr
):
    head = tl.program_id(2)
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + (head * N_q + r[:, None]) * D + d[None, :], mask=r[:, None] < N_q, other=0.0)
    k = tl.load(K_ptr + (head * N_k + c[:, None]) * D + d[None, :], mask=c[:, None] < N_k, other=0.0)
    s = tl.dot(q, k.T, input_precision="ieee") * scale
    if CAUSAL:
        s = tl.where(c[None, :] <= r[:, None] + N_k - N_q, s, -float("inf"))
    here = (r[:, None] < N_q) & (c[None, :] < N_k)
    tl.store(S_ptr + (head * N_q + r[:, None]) * N_k + c[None, :], s, mask=here)


def my_attention(Q, K, V, causal):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    S = torch.empty((B, H, N_q, N_k), dtype=torch.float32, device=Q.device)
    grid = (triton.cdiv(N_q, 32), triton.cdiv(N_k, 32), B * H)
    scores_kernel[grid](Q, K, S, N_q, N_k, 1 / math.sqrt(d), D=d, B=32, CAUSAL=causal)
    lse = torch.logsumexp(S, dim=-1)
    P = torch.exp(S - lse.nan_to_num(neginf=0.0)[..., None])
    return (P @ V.float()).to(Q.dtype), lse


# alibi, no_kernel: PyTorch, a matrix of penalties, causal top-left
def my_alibi(Q, K, V, slope):
    N_q, N_k = Q.shape[2], K.shape[2]
    r = torch.arange(N_q, device=Q.device)[:, None]
    c = torch.arange(N_k, device=Q.device)[None, :]
    S = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1]) - slope * (r - c)
    P = S.masked_fill(c > r, -torch.inf).softmax(dim=-1).nan_to_num()
    return P @ V


# alibi, no_kernel: PyTorch, all right
def my_alibi(Q, K, V, slope):
    N_q, N_k = Q.shape[2], K.shape[2]
    far = torch.arange(N_q)[:, None] + N_k - N_q - torch.arange(N_k)[None, :]
    far = far.to(Q.device)
    S = torch.einsum("bhrd,bhcd->bhrc", Q, K) / math.sqrt(Q.shape[-1]) - slope * far
    return S.masked_fill(far < 0, -torch.inf).softmax(dim=-1).nan_to_num() @ V


# alibi, matrix: a kernel that loads its penalties from a matrix
@triton.jit
def biased_kernel(
    Q_ptr, K_ptr, V_ptr, bias_ptr, O_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    head = tl.program_id(1)
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    d = tl.arange(0, D)
    at = (head * N_q + r[:, None]) * D + d[None, :]
    q = tl.load(Q_ptr + at, mask=r[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -1e30, tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    acc = tl.zeros((B_R, D), tl.float32)
    for start in range(0, N_k, B_C):
        c = start + tl.arange(0, B_C)
        kv = (head * N_k + c[:, None]) * D + d[None, :]
        k = tl.load(K_ptr + kv, mask=c[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + kv, mask=c[:, None] < N_k, other=0.0)
        here = (r[:, None] < N_q) & (c[None, :] < N_k)
        bias = tl.load(bias_ptr + r[:, None] * N_k + c[None, :], mask=here, other=-float("inf"))
        s = tl.dot(q, k.T, input_precision="ieee") * scale + bias
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(m - new)
        l = keep * l + tl.sum(p, 1)
        acc = keep[:, None] * acc + tl.dot(p, v, input_precision="ieee")
        m = new
    tl.store(O_ptr + at, acc / tl.where(l == 0, 1, l)[:, None], mask=r[:, None] < N_q)


def my_alibi(Q, K, V, slope):
    Q, K, V = (X.contiguous() for X in (Q, K, V))
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    far = torch.arange(N_q)[:, None] + N_k - N_q - torch.arange(N_k)[None, :]
    bias = torch.where(far < 0, -float("inf"), -slope * far.float()).to(Q.device)
    O = torch.empty_like(Q)
    biased_kernel[(triton.cdiv(N_q, 16), B * H)](Q, K, V, bias, O, N_q, N_k, d**-0.5, D=d, B_R=16, B_C=16)
    return O


# alibi, course_kernel: two more columns, and a kernel of the course
def my_alibi(Q, K, V, slope):
    from flashlib.kernels import forward

    d, N_q, N_k = Q.shape[3], Q.shape[2], K.shape[2]
    q, k, v = (torch.nn.functional.pad(X.contiguous(), (0, 64 - d % 64)) for X in (Q, K, V))
    q[..., d] = 1.0
    k[..., d] = slope * math.sqrt(d) * torch.arange(N_k, device=K.device)
    return forward.attention(q, k, v, causal=True, scale=1 / math.sqrt(d)).O[..., :d].contiguous()


# alibi, last_stride: strides passed, but not that of the last axis
@triton.jit
def strided_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, qb, qh, qn, kb, kh, kn, vb, vh, vn, ob, oh, on, H, N_q, N_k, scale, slope,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    r = tl.program_id(0) * B_R + tl.arange(0, B_R)
    d = tl.arange(0, D)
    q = tl.load(Q_ptr + b * qb + h * qh + r[:, None] * qn + d[None, :], mask=r[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    acc = tl.zeros((B_R, D), tl.float32)
    for start in range(0, N_k, B_C):
        c = start + tl.arange(0, B_C)
        k = tl.load(K_ptr + b * kb + h * kh + c[:, None] * kn + d[None, :], mask=c[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + b * vb + h * vh + c[:, None] * vn + d[None, :], mask=c[:, None] < N_k, other=0.0)
        far = r[:, None] + N_k - N_q - c[None, :]
        s = tl.dot(q, k.T, input_precision="ieee") * scale - slope * far
        s = tl.where((far >= 0) & (c[None, :] < N_k), s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        shift = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp(s - shift[:, None])
        keep = tl.exp(m - shift)
        l = keep * l + tl.sum(p, 1)
        acc = keep[:, None] * acc + tl.dot(p, v, input_precision="ieee")
        m = new
    o = O_ptr + b * ob + h * oh + r[:, None] * on + d[None, :]
    tl.store(o, acc / tl.where(l == 0, 1, l)[:, None], mask=r[:, None] < N_q)


def my_alibi(Q, K, V, slope):
    B, H, N_q, d = Q.shape
    O = torch.empty(B, H, N_q, d, dtype=Q.dtype, device=Q.device)
    strides = [n for X in (Q, K, V, O) for n in X.stride()[:3]]
    grid = (triton.cdiv(N_q, 16), B * H)
    strided_kernel[grid](Q, K, V, O, *strides, H, N_q, K.shape[2], d**-0.5, slope, D=d, B_R=16, B_C=16)
    return O
