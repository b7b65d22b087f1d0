"""Right answers by readers: see `tests.checks.answers`."""


# decode: a grid of three axes, and the merge all at once
@triton.jit
def part_kernel(
    Q_ptr, K_ptr, V_ptr, lengths_ptr, table_ptr, m_ptr, l_ptr, acc_ptr,
    H_k, group, page, most, parts, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    part = tl.program_id(0)
    h_k = tl.program_id(1)
    b = tl.program_id(2)
    length = tl.load(lengths_ptr + b)
    tiles = tl.cdiv(length, B_C)
    first = tiles * part // parts
    end = tiles * (part + 1) // parts
    r = tl.arange(0, B_R)
    offs_d = tl.arange(0, D)
    in_group = r < group
    head = (b * H_k + h_k).to(tl.int64) * group + r
    q = tl.load(Q_ptr + head[:, None] * D + offs_d[None, :], mask=in_group[:, None], other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    acc = tl.zeros((B_R, D), tl.float32)
    for j in range(first, end):
        c = j * B_C + tl.arange(0, B_C)
        there = c < length
        p = tl.load(table_ptr + b.to(tl.int64) * most + c // page, mask=there, other=0).to(tl.int64)
        rows = ((p * H_k + h_k) * page + c % page)[:, None] * D + offs_d[None, :]
        k = tl.load(K_ptr + rows, mask=there[:, None], other=0.0)
        v = tl.load(V_ptr + rows, mask=there[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale
        S = tl.where(there[None, :], S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        alpha = tl.exp(m_old - m)
        P = tl.exp(S - m[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        acc = alpha[:, None] * acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    at = head * parts + part
    tl.store(m_ptr + at, m, mask=in_group)
    tl.store(l_ptr + at, l, mask=in_group)
    tl.store(acc_ptr + at[:, None] * D + offs_d[None, :], acc, mask=in_group[:, None])


@triton.jit
def merge_kernel(m_ptr, l_ptr, acc_ptr, O_ptr, lse_ptr, parts, D: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, PARTS)
    offs_d = tl.arange(0, D)
    ok = s < parts
    m = tl.load(m_ptr + row * parts + s, mask=ok, other=-float("inf"))
    l = tl.load(l_ptr + row * parts + s, mask=ok, other=0.0)
    acc = tl.load(acc_ptr + (row * parts + s)[:, None] * D + offs_d[None, :], mask=ok[:, None], other=0.0)
    M = tl.max(m, axis=0)
    shift = tl.where(M == -float("inf"), 0.0, M)
    w = tl.exp(m - shift)
    L = tl.sum(w * l, axis=0)
    divisor = tl.where(L == 0.0, 1.0, L)
    O = tl.sum(w[:, None] * acc, axis=0) / divisor
    tl.store(O_ptr + row * D + offs_d, O.to(O_ptr.dtype.element_ty))
    tl.store(lse_ptr + row, M + tl.log(divisor))


def my_decode(Q, K, V, lengths, table, parts):
    B, H_q, d = Q.shape
    _, H_k, page, _ = K.shape
    group = H_q // H_k
    B_R = max(16, triton.next_power_of_2(group))
    B_C = 32
    m = torch.empty((B, H_q, parts), device=Q.device, dtype=torch.float32)
    l = torch.empty_like(m)
    acc = torch.empty((B, H_q, parts, d), device=Q.device, dtype=torch.float32)
    O = torch.empty_like(Q)
    lse = torch.empty((B, H_q), device=Q.device, dtype=torch.float32)
    part_kernel[(parts, H_k, B)](
        Q, K, V, lengths, table, m, l, acc, H_k, group, page, table.shape[1], parts, d**-0.5,
        D=d, B_R=B_R, B_C=B_C,
    )
    merge_kernel[(B * H_q,)](m, l, acc, O, lse, parts, D=d, PARTS=triton.next_power_of_2(parts))
    return O, lse
