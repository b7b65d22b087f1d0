"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import torch
import triton
import triton.language as tl


# exercise: alibi_tile
def my_alibi_tile(S_ij, rows, cols, past, slope):
    r, c = np.ogrid[rows, cols]
    return S_ij - slope * np.abs(r + past - c)


# exercise: capped_gradient
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)  # (B_r, B_c)
    shift = np.where(lse_i == -np.inf, 0, lse_i)  # (B_r,)
    P_ij = np.exp(np.where(seen, cap * t, -np.inf) - shift[:, None])
    dS_ij = P_ij * (dP_ij - delta_i[:, None])  # of the capped scores
    return dS_ij * (1 - t**2)


# exercise: sink
def my_sink(O, lse, sink):
    lse_new = np.logaddexp(lse, sink)
    return O * np.exp(lse - lse_new)[:, None], lse_new


# exercise: capped
@triton.jit
def my_capped(S, visible, cap):
    t = 1 - 2 / (tl.exp(2 * S / cap) + 1)  # tanh(S / cap); 1 where exp overflows, -1 where it underflows
    return tl.where(visible, cap * t, -float("inf"))


# exercise: dropout
@triton.jit
def my_dropout(P, dP, delta, seed, head, offs_m, offs_n, N_q, N_k, p):
    place = (head.to(tl.int64) * N_q + offs_m[:, None]) * N_k + offs_n[None, :]  # (B_R, B_C)
    Z = tl.where(tl.rand(seed, place) >= p, 1 / (1 - p), 0.0)
    dS = P * (Z * dP - delta[:, None])
    return Z * P, dS


# exercise: variant
@triton.jit
def one_tile(
    q, K_ptr, V_ptr, m, l, O_acc, b, h, r, j, N_k, scale,
    D: tl.constexpr, B_C: tl.constexpr, CUT: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):  # fmt: skip
    offs_n = j * B_C + tl.arange(0, B_C)
    cols = offs_n[:, None] * D + tl.arange(0, D)[None, :]  # (B_C, D)
    k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
    c = offs_n[None, :]
    S = SCORE(tl.dot(q, k.T, input_precision="ieee") * scale, b, h, r, c)  # (B_R, B_C)
    visible = c < N_k  # a whole tile may reach past the last key too
    if CUT:
        visible &= SEEN(b, h, r, c)
    S = tl.where(visible, S, -float("inf"))
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1))
    shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
    alpha = tl.exp(m_old - shift)
    P = tl.exp(S - shift[:, None])
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc


@triton.jit
def table_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, n_whole_ptr, whole_ptr, n_cut_ptr, cut_ptr, H, N_q, N_k, T_c, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, SEEN: tl.constexpr, SCORE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    b, h = head // H, head % H
    offs_m = i * B_R + tl.arange(0, B_R)
    rows = (head * N_q + offs_m[:, None]) * D + tl.arange(0, D)[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    r = offs_m[:, None] + N_k - N_q  # positions
    K_ptr += head * N_k * D
    V_ptr += head * N_k * D
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    for n in range(tl.load(n_whole_ptr + i)):
        j = tl.load(whole_ptr + i * T_c + n)
        m, l, O_acc = one_tile(q, K_ptr, V_ptr, m, l, O_acc, b, h, r, j, N_k, scale, D, B_C, False, SEEN, SCORE)
    for n in range(tl.load(n_cut_ptr + i)):
        j = tl.load(cut_ptr + i * T_c + n)
        m, l, O_acc = one_tile(q, K_ptr, V_ptr, m, l, O_acc, b, h, r, j, N_k, scale, D, B_C, True, SEEN, SCORE)

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    tl.store(O_ptr + rows, (O_acc / divisor[:, None]).to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    tl.store(Lse_ptr + head * N_q + offs_m, m + tl.log(divisor), mask=offs_m < N_q)


def my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    T_r, T_c = triton.cdiv(N_q, B_R), triton.cdiv(N_k, B_C)
    table_kernel[(T_r, B * H)](
        Q, K, V, O, lse, *table, H, N_q, N_k, T_c, d**-0.5,
        D=d, B_R=B_R, B_C=B_C, SEEN=SEEN, SCORE=SCORE, num_stages=2, num_warps=8 if B_R > 64 else 4,
    )  # fmt: skip
    return O, lse
