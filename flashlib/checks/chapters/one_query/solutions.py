"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import torch
import triton
import triton.language as tl


# exercise: cache_tokens
def my_cache_tokens(layers, H_k, d, itemsize, room):
    of_token = 2 * layers * H_k * d * itemsize  # K and V
    return of_token, room // of_token


# exercise: split_keys
def my_split_keys(lengths, B_c, parts):
    tiles = [-(-N // B_c) for N in lengths]
    most = max(1, -(-sum(tiles) // parts))  # tiles of a part
    work = []
    for b, n in enumerate(tiles):
        own = max(1, -(-n // most))  # one at least, to say that nothing is seen
        work += [(b, n * k // own, n * (k + 1) // own) for k in range(own)]
    return work


# exercise: merge_parts
def my_merge_parts(m, l, O_acc):
    m_all = m.max()
    if m_all == -np.inf:  # no part has seen a key
        return np.zeros(O_acc.shape[1]), -np.inf
    w = np.exp(m - m_all)  # (S,)
    l_all = w @ l
    return w @ O_acc / l_all, m_all + np.log(l_all)


# exercise: decode_part
@triton.jit
def my_decode_part(
    Q_ptr, K_ptr, V_ptr, lengths_ptr, m_ptr, l_ptr, O_ptr, N, H_k, group, parts, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    part, h_k, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    inside = r < group
    head = (b * H_k + h_k) * group + r  # of Q
    q = tl.load(Q_ptr + head[:, None] * D + offs_d[None, :], mask=inside[:, None], other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    length = tl.load(lengths_ptr + b)
    tiles = tl.cdiv(length, B_C)
    for j in range(tiles * part // parts, tiles * (part + 1) // parts):
        c = j * B_C + tl.arange(0, B_C)
        rows = ((b * H_k + h_k).to(tl.int64) * N + c)[:, None] * D + offs_d[None, :]  # a cache may be large
        k = tl.load(K_ptr + rows, mask=(c < length)[:, None], other=0.0)
        v = tl.load(V_ptr + rows, mask=(c < length)[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale
        S = tl.where((c < length)[None, :], S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))  # each tile has a key, so it is finite
        alpha = tl.exp(m_old - m)
        P = tl.exp(S - m[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    at = head * parts + part
    tl.store(m_ptr + at, m, mask=inside)
    tl.store(l_ptr + at, l, mask=inside)
    tl.store(O_ptr + at[:, None] * D + offs_d[None, :], O_acc, mask=inside[:, None])


# exercise: decode_cache, with decode_part
@triton.jit
def merge_kernel(m_ptr, l_ptr, acc_ptr, O_ptr, lse_ptr, parts, D: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0)  # a head of a sequence
    s, offs_d = tl.arange(0, PARTS), tl.arange(0, D)
    at = row * parts + s
    m = tl.load(m_ptr + at, mask=s < parts, other=-float("inf"))
    l = tl.load(l_ptr + at, mask=s < parts, other=0.0)
    O_acc = tl.load(acc_ptr + at[:, None] * D + offs_d[None, :], mask=(s < parts)[:, None], other=0.0)
    m_all = tl.max(m, axis=0)
    shift = tl.where(m_all == -float("inf"), 0.0, m_all)  # no part has seen a key
    w = tl.exp(m - shift)
    l_all = tl.sum(w * l, axis=0)
    divisor = tl.where(l_all == 0.0, 1.0, l_all)
    O = tl.sum(w[:, None] * O_acc, axis=0) / divisor
    tl.store(O_ptr + row * D + offs_d, O.to(O_ptr.dtype.element_ty))
    tl.store(lse_ptr + row, m_all + tl.log(divisor))


def my_decode_cache(Q, K, V, lengths, parts):
    (B, H_q, D), (_, H_k, N, _) = Q.shape, K.shape
    group = H_q // H_k
    m, l = torch.empty(2, B, H_q, parts, device=Q.device)
    O_acc = torch.empty(B, H_q, parts, D, device=Q.device)
    O, lse = torch.empty_like(Q), torch.empty(B, H_q, device=Q.device)
    B_R = max(16, triton.next_power_of_2(group))  # fewer rows are padded to 16
    B_C = 32 if Q.dtype == torch.float32 else 64
    sizes = N, H_k, group, parts, D**-0.5
    my_decode_part[(parts, H_k, B)](Q, K, V, lengths, m, l, O_acc, *sizes, D=D, B_R=B_R, B_C=B_C)
    merge_kernel[(B * H_q,)](m, l, O_acc, O, lse, parts, D=D, PARTS=triton.next_power_of_2(parts))
    return O, lse
