"""Right answers by readers: see `tests.checks.answers`."""


# variant: a step for both loops, which takes whether its tile is cut
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)
    visible = c < N_k
    if CUT:
        visible = visible & SEEN(b, h, r, c)
    S = tl.where(visible, S, -float("inf"))
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1))
    shift = tl.where(m == -float("inf"), 0.0, m)
    alpha = tl.exp(m_old - shift)
    P = tl.exp(S - shift[:, None])
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc

@triton.jit
def _kernel(Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, nw_ptr, w_ptr, nc_ptr, c_ptr, H, N_q, N_k, T_c, scale,
            D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr):
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    b, h = head // H, head % H
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    r = offs_m[:, None] + N_k - N_q
    for t in range(0, tl.load(nw_ptr + i)):
        j = tl.load(w_ptr + i * T_c + t)
        offs_n = j * B_C + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]
        m, l, O_acc = _step(
            q, K_ptr + cols, V_ptr + cols, m, l, O_acc, scale, b, h, r, offs_n, N_k, SEEN, SCORE, False)
    for t in range(0, tl.load(nc_ptr + i)):
        j = tl.load(c_ptr + i * T_c + t)
        offs_n = j * B_C + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]
        m, l, O_acc = _step(
            q, K_ptr + cols, V_ptr + cols, m, l, O_acc, scale, b, h, r, offs_n, N_k, SEEN, SCORE, True)
    divisor = tl.where(l == 0.0, 1.0, l)
    O = O_acc / divisor[:, None]
    tl.store(O_ptr + rows, O.to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    tl.store(Lse_ptr + head * N_q + offs_m, m + tl.log(divisor), mask=offs_m < N_q)

def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    n_whole, whole, n_cut, cut = table
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    _kernel[(triton.cdiv(N_q, B_R), B * H)](
        Q, K, V, O, lse, n_whole, whole, n_cut, cut, H, N_q, N_k, whole.shape[1], d**-0.5,
        D=d, B_R=B_R, B_C=B_C, SEEN=SEEN, SCORE=SCORE)
    return O, lse
