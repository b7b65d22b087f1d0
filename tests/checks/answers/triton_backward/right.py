"""Right answers in other styles: see `tests.checks.answers`."""


# delta_kernel: row by row, if it is there
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    for r in range(ROWS):
        row = tl.program_id(0) * ROWS + r
        if row < N_q:
            at = row * D + tl.arange(0, D)
            tl.store(delta_ptr + row, tl.sum(tl.load(O_ptr + at).to(tl.float32) * tl.load(dO_ptr + at)))


# delta_kernel: rows past the end are those from 0 on
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = (r % N_q)[:, None] * D + tl.arange(0, D)
    total = tl.sum(tl.load(O_ptr + at).to(tl.float32) * tl.load(dO_ptr + at).to(tl.float32), 1)
    tl.store(delta_ptr + r, total, r < N_q)


# delta_kernel: a whole block without masks, a helper that is called
@triton.jit
def rowsum(a, b):
    return tl.sum(a.to(tl.float32) * b.to(tl.float32), axis=1)


@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    r = first + tl.arange(0, ROWS)
    at = r[:, None] * D + tl.arange(0, D)[None, :]
    if first + ROWS <= N_q:
        tl.store(delta_ptr + r, rowsum(tl.load(O_ptr + at), tl.load(dO_ptr + at)))
    else:
        ok = r < N_q
        o, do = tl.load(O_ptr + at, ok[:, None]), tl.load(dO_ptr + at, ok[:, None])
        tl.store(delta_ptr + r, rowsum(o, do), mask=ok)


# delta_kernel: column by column, rows kept inside
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for e in range(D):
        at = tl.minimum(r, N_q - 1) * D + e
        total += tl.load(O_ptr + at).to(tl.float32) * tl.load(dO_ptr + at).to(tl.float32)
    tl.store(delta_ptr + r, total, mask=r < N_q)


# dkv_loop: tiles of queries by keys, rows taken modulo N_q
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    for start in range(0, N_q, B_R):
        r = start + tl.arange(0, B_R)
        at = (r % N_q)[:, None] * D + tl.arange(0, D)[None, :]
        q, do, lse, delta = tl.load(Q + at), tl.load(dO + at), tl.load(L + r % N_q), tl.load(Delta + r % N_q)
        P = tl.exp(tl.dot(q, k.T, None, "ieee") * scale - lse[:, None])
        P = tl.where(r[:, None] < N_q, P, 0.0)
        dS = P * (tl.dot(do, v.T, None, "ieee") - delta[:, None])
        dv = tl.dot(P.to(do.dtype).T, do, dv, "ieee")
        dk = tl.dot(dS.to(q.dtype).T, q, dk, "ieee")
    return dk * scale, dv


# dkv_loop: base 2; whole tiles without masks, the last with one, in a helper
@triton.jit
def tile(q, do, lse, delta, k, v, dk, dv, scale):
    log2e: tl.constexpr = 1.4426950408889634
    P = tl.exp2(tl.dot(k, q.T, input_precision="ieee") * (scale * log2e) - (lse * log2e)[None, :])
    dS = P * (tl.dot(v, do.T, input_precision="ieee") - delta[None, :])
    dv = tl.dot(P.to(do.dtype), do, dv, input_precision="ieee")
    return tl.dot(dS.to(q.dtype), q, dk, input_precision="ieee"), dv


@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    whole = N_q // B_R * B_R
    for start in range(0, whole, B_R):
        r = start + tl.arange(0, B_R)
        at = r[:, None] * D + tl.arange(0, D)
        dk, dv = tile(
            tl.load(Q + at), tl.load(dO + at), tl.load(L + r), tl.load(Delta + r), k, v, dk, dv, scale
        )
    if whole < N_q:
        r = whole + tl.arange(0, B_R)
        at, ok = r[:, None] * D + tl.arange(0, D), r < N_q
        q, do = tl.load(Q + at, ok[:, None], 0.0), tl.load(dO + at, ok[:, None], 0.0)
        lse, delta = tl.load(L + r, ok, 0.0), tl.load(Delta + r, ok, 0.0)
        dk, dv = tile(q, do, lse, delta, k, v, dk, dv, scale)
    return dk * scale, dv


# dkv_loop: row by row, without tl.dot
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    for r in range(N_q):
        q, do = tl.load(Q + r * D + tl.arange(0, D)), tl.load(dO + r * D + tl.arange(0, D))
        q, do = q.to(tl.float32), do.to(tl.float32)
        P = tl.exp(tl.sum(k * q[None, :], 1) * scale - tl.load(L + r))
        dS = P * (tl.sum(v * do[None, :], 1) - tl.load(Delta + r)) * scale
        dv += P[:, None] * do[None, :]
        dk += dS[:, None] * q[None, :]
    return dk, dv


# dkv_loop: lse past the end is inf, pointers that move on
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    left = N_q
    r = tl.arange(0, B_R)
    at = r[:, None] * D + tl.arange(0, D)[None, :]
    while left > 0:
        q = tl.load(Q + at, mask=(r < left)[:, None], other=0.0)
        do = tl.load(dO + at, mask=(r < left)[:, None], other=0.0)
        lse = tl.load(L + r, mask=r < left, other=float("inf"))
        delta = tl.load(Delta + r, mask=r < left, other=0.0)
        P = tl.exp(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - lse)
        dv += tl.dot(P.to(do.dtype), do, input_precision="ieee")
        dS = scale * P * (tl.dot(v, tl.trans(do), input_precision="ieee") - delta)
        dk += tl.dot(dS.to(q.dtype), q, input_precision="ieee")
        Q += B_R * D
        dO += B_R * D
        L += B_R
        Delta += B_R
        left -= B_R
    return dk, dv


# dq_loop: base 2, lse prepared, as in flashlib
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    log2e: tl.constexpr = 1.4426950408889634
    dq = tl.zeros((B_R, D), tl.float32)
    lse2 = tl.where(lse == -float("inf"), 0.0, lse * log2e)
    r, d = i * B_R + tl.arange(0, B_R), tl.arange(0, D)[None, :]
    for start in range(0, tl.minimum((i + 1) * B_R + N_k - N_q, N_k), B_C):
        n = start + tl.arange(0, B_C)
        k = tl.load(K + n[:, None] * D + d, mask=n[:, None] < N_k, other=0)
        v = tl.load(V + n[:, None] * D + d, mask=n[:, None] < N_k, other=0)
        S2 = tl.dot(q, k.T, input_precision="ieee") * (scale * log2e)
        P = tl.where(n[None, :] <= r[:, None] + N_k - N_q, tl.exp2(S2 - lse2[:, None]), 0.0)
        dS = P * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# dq_loop: two loops, whole tiles without masks and the others with both
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r, d, past = i * B_R + tl.arange(0, B_R), tl.arange(0, D)[None, :], N_k - N_q
    whole = tl.maximum(tl.minimum(i * B_R + past + 1, N_k), 0) // B_C * B_C
    for start in range(0, whole, B_C):
        n = start + tl.arange(0, B_C)
        k, v = tl.load(K + n[:, None] * D + d), tl.load(V + n[:, None] * D + d)
        P = tl.exp(tl.dot(q, k.T, None, "ieee") * scale - lse[:, None])
        dS = P * (tl.dot(do, v.T, None, "ieee") - delta[:, None])
        dq = tl.dot(dS.to(k.dtype), k, dq, "ieee")
    for start in range(whole, tl.minimum((i + 1) * B_R + past, N_k), B_C):
        n = start + tl.arange(0, B_C)
        k = tl.load(K + n[:, None] * D + d, n[:, None] < N_k, 0.0)
        v = tl.load(V + n[:, None] * D + d, n[:, None] < N_k, 0.0)
        S = tl.dot(q, k.T, None, "ieee") * scale
        P = tl.where((n[None, :] <= r[:, None] + past) & (n[None, :] < N_k), tl.exp(S - lse[:, None]), 0.0)
        dS = P * (tl.dot(do, v.T, None, "ieee") - delta[:, None])
        dq = tl.dot(dS.to(k.dtype), k, dq, "ieee")
    return dq * scale


# dq_loop: keys taken modulo N_k, dS hidden rather than P
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r = i * B_R + tl.arange(0, B_R)[:, None]
    end, start = (i + 1) * B_R + N_k - N_q, 0
    while start < end and start < N_k:
        n = start + tl.arange(0, B_C)
        at = (n % N_k)[:, None] * D + tl.arange(0, D)[None, :]
        k, v = tl.load(K + at), tl.load(V + at)
        dS = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        dS *= tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None]
        dS = tl.where((n <= r + N_k - N_q) & (n < N_k), dS * scale, 0.0)
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
        start += B_C
    return dq


# dq_loop: V has no other, as dS is chosen afterwards
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r = i * B_R + tl.arange(0, B_R)[:, None]
    for start in range(0, tl.minimum((i + 1) * B_R + N_k - N_q, N_k), B_C):
        n = start + tl.arange(0, B_C)
        at, inside = n[:, None] * D + tl.arange(0, D)[None, :], (n < N_k)[:, None]
        k, v = tl.load(K + at, mask=inside, other=0.0), tl.load(V + at, mask=inside)
        P = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        dS = P * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        dS = tl.where((n <= r + N_k - N_q) & (n < N_k), dS, 0.0)
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# dq_loop: key by key
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    last = i * B_R + tl.arange(0, B_R) + N_k - N_q
    for c in range(tl.minimum((i + 1) * B_R + N_k - N_q, N_k)):
        k = tl.load(K + c * D + tl.arange(0, D)).to(tl.float32)[None, :]
        v = tl.load(V + c * D + tl.arange(0, D)).to(tl.float32)[None, :]
        P = tl.where(c <= last, tl.exp(tl.sum(q * k, axis=1) * scale - lse), 0.0)
        dq += (P * (tl.sum(do * v, axis=1) - delta))[:, None] * k
    return scale * dq


# grouped: a loop over query heads
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d), np.float64 if dK.dtype == np.float64 else np.float32)
    for h in range(H_q):
        out[:, h * H_k // H_q] += dK[:, h]
    return out


# grouped: reduceat
def my_grouped(dK, H_k):
    X = dK.astype(np.promote_types(dK.dtype, "f4"))
    return np.add.reduceat(X, range(0, X.shape[1], X.shape[1] // H_k), axis=1)


# grouped: heads stacked, einsum
def my_grouped(dK, H_k):
    group = dK.shape[1] // H_k
    X = dK.astype(np.float32) if dK.dtype == np.float16 else dK
    return np.stack([np.einsum("bhne->bne", X[:, h * group : (h + 1) * group]) for h in range(H_k)], axis=1)


# dq_loop: the next tile is loaded before this one is used
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K_ptr, V_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):
    past = N_k - N_q
    r = i * B_R + tl.arange(0, B_R)
    e = tl.arange(0, D)
    end = tl.minimum(N_k, i * B_R + B_R + past)
    dq = tl.zeros((B_R, D), tl.float32)
    c = tl.arange(0, B_C)
    k = tl.load(K_ptr + c[:, None] * D + e[None, :], mask=(c < end)[:, None], other=0.0)
    v = tl.load(V_ptr + c[:, None] * D + e[None, :], mask=(c < end)[:, None], other=0.0)
    for start in range(0, end, B_C):
        c = start + tl.arange(0, B_C)
        n = c + B_C
        k_next = tl.load(K_ptr + n[:, None] * D + e[None, :], mask=(n < end)[:, None], other=0.0)
        v_next = tl.load(V_ptr + n[:, None] * D + e[None, :], mask=(n < end)[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale
        P = tl.where(c[None, :] <= r[:, None] + past, tl.exp(S - lse[:, None]), 0.0)
        dS = P * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
        k, v = k_next, v_next
    return dq * scale


# delta_kernel: block pointers
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0)
    o = tl.make_block_ptr(O_ptr, (N_q, D), (D, 1), (i * ROWS, 0), (ROWS, D), (1, 0))
    do = tl.make_block_ptr(dO_ptr, (N_q, D), (D, 1), (i * ROWS, 0), (ROWS, D), (1, 0))
    x = tl.load(o, boundary_check=(0,)).to(tl.float32) * tl.load(do, boundary_check=(0,)).to(tl.float32)
    to = tl.make_block_ptr(delta_ptr, (N_q,), (1,), (i * ROWS,), (ROWS,), (0,))
    tl.store(to, tl.sum(x, 1), boundary_check=(0,))
