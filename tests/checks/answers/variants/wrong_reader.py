"""Wrong kernels of a reader who had not seen the table, for the last exercise of chapter 14."""


# variant, tail_in_whole: the end is masked in the cut loop alone
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)
    if CUT:
        S = tl.where(SEEN(b, h, r, c) & (c < N_k), S, -float("inf"))
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


# variant, rows_for_positions: N_k - N_q forgotten
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
    r = offs_m[:, None]
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


# variant, SEEN_in_whole: SEEN whatever CUT is
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)
    visible = c < N_k
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


# variant, SCORE_in_cut: SCORE below if CUT
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = tl.dot(q, k.T, input_precision="ieee") * scale
    if CUT:
        S = SCORE(S, b, h, r, c)
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


# variant, SCORE_after_hiding: SCORE after where
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = tl.dot(q, k.T, input_precision="ieee") * scale
    visible = c < N_k
    if CUT:
        visible = visible & SEEN(b, h, r, c)
    S = tl.where(visible, S, -float("inf"))
    S = SCORE(S, b, h, r, c)
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


# variant, head_of_the_grid: b is 0, h the program's number
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
    b, h = 0, head
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


# variant, strides: strides ignored
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
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    n_whole, whole, n_cut, cut = table
    O = torch.empty(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    _kernel[(triton.cdiv(N_q, B_R), B * H)](
        Q, K, V, O, lse, n_whole, whole, n_cut, cut, H, N_q, N_k, whole.shape[1], d**-0.5,
        D=d, B_R=B_R, B_C=B_C, SEEN=SEEN, SCORE=SCORE)
    return O, lse


# variant, nothing_seen: shift is m, in a step for both loops
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
    shift = m
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


# variant, empty_block: a program without tiles returns early
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
    if tl.load(nw_ptr + i) + tl.load(nc_ptr + i) == 0:
        return
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


# variant, SCORE_before_scale: scale after SCORE
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee"), b, h, r, c) * scale
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


# variant, place_for_tile: the first n_whole tiles
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
        j = t
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


# variant, table_of_T_r: row i begins at i * n_whole
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
        j = tl.load(w_ptr + i * tl.load(nw_ptr + i) + t)
        offs_n = j * B_C + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]
        m, l, O_acc = _step(
            q, K_ptr + cols, V_ptr + cols, m, l, O_acc, scale, b, h, r, offs_n, N_k, SEEN, SCORE, False)
    for t in range(0, tl.load(nc_ptr + i)):
        j = tl.load(c_ptr + i * tl.load(nc_ptr + i) + t)
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


# variant, all_places: all T_c places in both loops
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
    for t in range(0, T_c):
        j = tl.load(w_ptr + i * T_c + t)
        offs_n = j * B_C + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]
        m, l, O_acc = _step(
            q, K_ptr + cols, V_ptr + cols, m, l, O_acc, scale, b, h, r, offs_n, N_k, SEEN, SCORE, False)
    for t in range(0, T_c):
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


# variant, sums_begin_anew: m of its own for the second loop
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
    m = tl.full((B_R,), -float("inf"), tl.float32)
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


# variant, SCORE_in_base_2: log2(e) in the scale, lse brought back
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
    alpha = tl.exp2(m_old - shift)
    P = tl.exp2(S - shift[:, None])
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
    tl.store(Lse_ptr + head * N_q + offs_m, m * 0.6931471805599453 + tl.log(divisor), mask=offs_m < N_q)

def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    n_whole, whole, n_cut, cut = table
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    _kernel[(triton.cdiv(N_q, B_R), B * H)](
        Q, K, V, O, lse, n_whole, whole, n_cut, cut, H, N_q, N_k, whole.shape[1], d**-0.5 * 1.4426950408889634,
        D=d, B_R=B_R, B_C=B_C, SEEN=SEEN, SCORE=SCORE)
    return O, lse


# variant, row_of_counts: the count of whole tiles at the number of the head
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
    for t in range(0, tl.load(nw_ptr + head)):
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


# variant, sums_begin_anew: m and l of their own for the second loop
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
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
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


# variant, divided_by_lse: O_acc divided by lse
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
    O = O_acc / (m + tl.log(divisor))[:, None]
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


# variant, maximum_before_hiding: the maximum of all scores
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1))
    visible = c < N_k
    if CUT:
        visible = visible & SEEN(b, h, r, c)
    S = tl.where(visible, S, -float("inf"))
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


# variant, one_tile_alone: one whole tile
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
    for t in range(0, 1):
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


# variant, called_otherwise: SEEN without b
@triton.jit
def _step(q, k_ptrs, v_ptrs, m, l, O_acc, scale, b, h, r, offs_n, N_k,
          SEEN: tl.constexpr, SCORE: tl.constexpr, CUT: tl.constexpr):
    k = tl.load(k_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)
    visible = c < N_k
    if CUT:
        visible = visible & SEEN(h, r, c)
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
