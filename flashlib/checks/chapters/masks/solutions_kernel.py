"""The solution of the last exercise of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import torch
import triton
import triton.language as tl


# exercise: whole_tiles
@triton.jit
def list_kernel(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, n_whole_ptr, whole_ptr, N_q, N_k, T_c, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_m = i * B_R + tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    rows = (head * N_q + offs_m[:, None]) * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows, mask=offs_m[:, None] < N_q, other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    for n in range(tl.load(n_whole_ptr + i)):
        j = tl.load(whole_ptr + i * T_c + n)
        offs_n = j * B_C + tl.arange(0, B_C)
        cols = (head * N_k + offs_n[:, None]) * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        v = tl.load(V_ptr + cols, mask=offs_n[:, None] < N_k, other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        S = tl.where(offs_n[None, :] < N_k, S, -float("inf"))  # the last tile may reach past the last key
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        alpha = tl.exp(m_old - m)
        P = tl.exp(S - m[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")

    divisor = tl.where(l == 0.0, 1.0, l)  # an empty list: O = 0, lse = -inf
    tl.store(O_ptr + rows, (O_acc / divisor[:, None]).to(O_ptr.dtype.element_ty), mask=offs_m[:, None] < N_q)
    tl.store(Lse_ptr + head * N_q + offs_m, m + tl.log(divisor), mask=offs_m < N_q)


def my_whole_tiles(Q, K, V, n_whole, whole, B_R, B_C):
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    O = torch.empty_like(Q)
    lse = torch.empty((B, H, N_q), dtype=torch.float32, device=Q.device)
    T_r, T_c = whole.shape
    list_kernel[(T_r, B * H)](
        Q, K, V, O, lse, n_whole, whole, N_q, N_k, T_c, d**-0.5, D=d, B_R=B_R, B_C=B_C,
        num_warps=8 if B_R > 64 else 4,
    )  # fmt: skip
    return O, lse
