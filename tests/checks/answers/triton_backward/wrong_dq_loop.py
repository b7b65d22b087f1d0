"""Wrong answers: see `tests.checks.answers`."""


# dq_loop, delta_missing: a while loop
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    acc = tl.zeros((B_R, D), tl.float32)
    last = i * B_R + tl.arange(0, B_R) + N_k - N_q
    c = tl.arange(0, B_C)
    j = 0
    while j * B_C < tl.minimum(i * B_R + B_R + N_k - N_q, N_k):
        n = j * B_C + c
        at = n[:, None] * D + tl.arange(0, D)
        k, v = tl.load(K + at, n[:, None] < N_k, 0.0), tl.load(V + at, n[:, None] < N_k, 0.0)
        s = tl.dot(q * scale, tl.trans(k), input_precision="ieee")
        ds = tl.exp(s - lse[:, None]) * tl.dot(do, tl.trans(v), input_precision="ieee") * scale
        ds = tl.where(n[None, :] <= last[:, None], ds, 0.0)
        acc = tl.dot(ds.to(k.dtype), k, acc, input_precision="ieee")
        j += 1
    return acc


# dq_loop, hidden_read: all tiles, in another style
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    acc = tl.zeros((B_R, D), tl.float32)
    r = i * B_R + tl.arange(0, B_R)[:, None]
    lse = tl.where(lse == float("-inf"), float("inf"), lse)
    for j in range(tl.cdiv(N_k, B_C)):
        n = j * B_C + tl.arange(0, B_C)
        at, ok = n[:, None] * D + tl.arange(0, D), n[:, None] < N_k
        k, v = tl.load(K + at, mask=ok, other=0), tl.load(V + at, mask=ok, other=0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(r + N_k - N_q >= n[None, :], s, float("-inf"))
        ds = tl.exp(s - lse[:, None]) * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        acc += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    return acc * scale


# dq_loop, hidden_read: tiles are loaded, and then skipped
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r = i * B_R + tl.arange(0, B_R)[:, None] + N_k - N_q
    for start in range(0, N_k, B_C):
        n = start + tl.arange(0, B_C)
        at, ok = n[:, None] * D + tl.arange(0, D), n[:, None] < N_k
        k, v = tl.load(K + at, mask=ok, other=0), tl.load(V + at, mask=ok, other=0)
        if start < (i + 1) * B_R + N_k - N_q:
            P = tl.exp(tl.dot(q, k.T, input_precision="ieee") * scale - lse[:, None])
            P = tl.where(n[None, :] <= r, P, 0.0)
            dS = P * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
            dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# dq_loop, no_mask: keys past the end are hidden, and no others
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    lse = tl.where(lse == -float("inf"), float("inf"), lse)
    for start in range(0, tl.minimum((i + 1) * B_R + N_k - N_q, N_k), B_C):
        n = start + tl.arange(0, B_C)
        at, ok = n[:, None] * D + tl.arange(0, D), n < N_k
        k, v = tl.load(K + at, mask=ok[:, None], other=0), tl.load(V + at, mask=ok[:, None], other=0)
        S = tl.where(ok[None, :], tl.dot(q, k.T, input_precision="ieee") * scale, -float("inf"))
        dS = tl.exp(S - lse[:, None]) * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# dq_loop, unseen_nan: hidden scores of -1e9
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r, d = i * B_R + tl.arange(0, B_R), tl.arange(0, D)[None, :]
    for start in range(0, tl.minimum((i + 1) * B_R + N_k - N_q, N_k), B_C):
        n = start + tl.arange(0, B_C)
        k = tl.load(K + n[:, None] * D + d, mask=n[:, None] < N_k, other=0)
        v = tl.load(V + n[:, None] * D + d, mask=n[:, None] < N_k, other=0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale
        S = tl.where(n[None, :] <= r[:, None] + N_k - N_q, S, -1e9)
        dS = tl.exp(S - lse[:, None]) * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale


# dq_loop, read_past: V is wrapped round, K is read too far
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    dq = tl.zeros((B_R, D), tl.float32)
    r, d = i * B_R + tl.arange(0, B_R), tl.arange(0, D)[None, :]
    for start in range(0, tl.minimum((i + 1) * B_R + N_k - N_q, N_k), B_C):
        n = start + tl.arange(0, B_C)
        k = tl.where(n[:, None] < N_k, tl.load(K + n[:, None] * D + d), 0.0).to(q.dtype)
        v = tl.load(V + (n % N_k)[:, None] * D + d)
        P = tl.exp(tl.dot(q, k.T, input_precision="ieee") * scale - lse[:, None])
        dS = P * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dS = tl.where(n[None, :] <= r[:, None] + N_k - N_q, dS, 0.0)
        dq += tl.dot(dS.to(k.dtype), k, input_precision="ieee")
    return dq * scale
