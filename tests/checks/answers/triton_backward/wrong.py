"""Wrong answers: see `tests.checks.answers`."""


# delta_kernel, one_row: one row a program
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0)
    o = tl.load(O_ptr + row * D + tl.arange(0, D)).to(tl.float32)
    do = tl.load(dO_ptr + row * D + tl.arange(0, D)).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(o * do))


# delta_kernel, sum_in_fp16: a loop over the columns, in fp16
@triton.jit
def my_delta_kernel(out, grad, result, n, D: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = r < n
    total = tl.zeros((ROWS,), out.dtype.element_ty)
    for c in range(D):
        total += tl.load(out + r * D + c, mask=ok, other=0.0) * tl.load(grad + r * D + c, mask=ok, other=0.0)
    tl.store(result + r, total, mask=ok)


# delta_kernel, mean: another style
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, D)[None, :]
    a = tl.load(O_ptr + r * D + c, mask=r < N_q, other=0).to(tl.float32)
    b = tl.load(dO_ptr + r * D + c, mask=r < N_q, other=0).to(tl.float32)
    mean = tl.sum(a * b / D, axis=1, keep_dims=True)
    tl.store(delta_ptr + r, mean, mask=r < N_q)


# delta_kernel, outside: a tl.where in place of a mask
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.where(offs_m[:, None] < N_q, tl.load(O_ptr + rows), 0.0).to(tl.float32)
    do = tl.where(offs_m[:, None] < N_q, tl.load(dO_ptr + rows), 0.0).to(tl.float32)
    tl.store(delta_ptr + offs_m, tl.sum(o * do, axis=1), mask=offs_m < N_q)


# delta_kernel, outside: one of two loads, by a helper
@triton.jit
def product(a, b):
    return tl.sum(a.to(tl.float32) * b.to(tl.float32), axis=1)


@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = offs_m[:, None] * D + tl.arange(0, D)[None, :]
    do = tl.load(dO_ptr + rows, mask=(offs_m < N_q)[:, None], other=0.0)
    tl.store(delta_ptr + offs_m, product(tl.load(O_ptr + rows), do), mask=offs_m < N_q)


# delta_kernel, sixteen_numbers: 16 in place of D
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows, inside = offs_m[:, None] * D + tl.arange(0, 16), offs_m < N_q
    o = tl.load(O_ptr + rows, inside[:, None], 0.0).to(tl.float32)
    do = tl.load(dO_ptr + rows, inside[:, None], 0.0).to(tl.float32)
    tl.store(delta_ptr + offs_m, tl.sum(o * do, axis=1), inside)


# delta_kernel, sixteen_rows: 16 in place of ROWS
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    offs_m = tl.program_id(0) * 16 + tl.arange(0, 16)
    rows, inside = offs_m[:, None] * D + tl.arange(0, D), offs_m < N_q
    o = tl.load(O_ptr + rows, inside[:, None], 0.0).to(tl.float32)
    do = tl.load(dO_ptr + rows, inside[:, None], 0.0).to(tl.float32)
    tl.store(delta_ptr + offs_m, tl.sum(o * do, axis=1), inside)


# dkv_loop, dS_not_transposed: tiles of queries by keys
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros_like(k).to(tl.float32), tl.zeros_like(v).to(tl.float32)
    d = tl.arange(0, D)
    for i in range(tl.cdiv(N_q, B_R)):
        r = i * B_R + tl.arange(0, B_R)
        at, ok = r[:, None] * D + d, (r < N_q)[:, None]
        q, do = tl.load(Q + at, ok, 0.0), tl.load(dO + at, ok, 0.0)
        lse, delta = tl.load(L + r, r < N_q, 0.0), tl.load(Delta + r, r < N_q, 0.0)
        p = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv, input_precision="ieee")
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None]) * scale
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")
    return dk, dv


# dkv_loop, read_past: tiles of queries by keys, the tail not masked
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    d = tl.arange(0, D)
    for i in range(tl.cdiv(N_q, B_R)):
        r = i * B_R + tl.arange(0, B_R)
        at = r[:, None] * D + d
        q, do = tl.load(Q + at), tl.load(dO + at)
        lse, delta = tl.load(L + r), tl.load(Delta + r)
        p = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        p = tl.where((r < N_q)[:, None], p, 0.0)
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv, input_precision="ieee")
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None]) * scale
        dk = tl.dot(tl.trans(ds).to(q.dtype), q, dk, input_precision="ieee")
    return dk, dv


# dkv_loop, lse_along_keys: tiles of queries by keys, and lse as in the solution
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    for start in range(0, N_q, B_R):
        r = start + tl.arange(0, B_R)
        at, ok = r[:, None] * D + tl.arange(0, D), (r < N_q)[:, None]
        q, do = tl.load(Q + at, ok, 0.0), tl.load(dO + at, ok, 0.0)
        lse, delta = tl.load(L + r, r < N_q, 0.0), tl.load(Delta + r, r < N_q, 0.0)
        p = tl.exp(tl.dot(q, k.T, input_precision="ieee") * scale - lse[None, :])
        ds = p * (tl.dot(do, v.T, input_precision="ieee") - delta[:, None])
        dv += tl.dot(p.T.to(do.dtype), do, input_precision="ieee")
        dk += tl.dot(ds.T.to(q.dtype), q, input_precision="ieee")
    return dk * scale, dv


# dkv_loop, read_past: tl.where after the loads, which are not masked
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    for start in range(0, N_q, B_R):
        r = start + tl.arange(0, B_R)
        at, ok = r[:, None] * D + tl.arange(0, D), r < N_q
        q, do = tl.where(ok[:, None], tl.load(Q + at), 0.0), tl.where(ok[:, None], tl.load(dO + at), 0.0)
        lse, delta = tl.where(ok, tl.load(L + r), 0.0), tl.where(ok, tl.load(Delta + r), 0.0)
        q, do = q.to(k.dtype), do.to(k.dtype)
        p = tl.exp(tl.dot(k, q.T, input_precision="ieee") * scale - lse[None, :])
        ds = p * (tl.dot(v, do.T, input_precision="ieee") - delta[None, :])
        dv += tl.dot(p.to(do.dtype), do, input_precision="ieee")
        dk += tl.dot(ds.to(q.dtype), q, input_precision="ieee")
    return dk * scale, dv


# dkv_loop, half_in_base_2: exp2, with lse as it is
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    for start in range(0, N_q, B_R):
        r = start + tl.arange(0, B_R)
        at, ok = r[:, None] * D + tl.arange(0, D), (r < N_q)[:, None]
        q, do = tl.load(Q + at, ok, 0.0), tl.load(dO + at, ok, 0.0)
        lse, delta = tl.load(L + r, r < N_q, 0.0), tl.load(Delta + r, r < N_q, 0.0)
        p = tl.exp2(tl.dot(k, q.T, input_precision="ieee") * (scale * 1.4426950408889634) - lse[None, :])
        ds = p * (tl.dot(v, do.T, input_precision="ieee") - delta[None, :])
        dv += tl.dot(p.to(do.dtype), do, input_precision="ieee")
        dk += tl.dot(ds.to(q.dtype), q, input_precision="ieee")
    return dk * scale, dv


# grouped, first_head: by a slice
def my_grouped(dK, H_k):
    return dK[:, :: dK.shape[1] // H_k].astype(float)


# grouped, every_H_k_th: by slices
def my_grouped(dK, H_k):
    return np.stack([dK[:, h::H_k].astype(float).sum(axis=1) for h in range(H_k)], axis=1)


# grouped, last_head: overwritten in a loop
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d))
    for h in range(H_q):
        out[:, h // (H_q // H_k)] = dK[:, h]
    return out


# grouped, last_head: added up with an index
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d))
    out[:, np.arange(H_q) // (H_q // H_k)] += dK
    return out


# grouped, over_heads_of_K: axes counted from the end
def my_grouped(dK, H_k):
    B, H_q, *rest = dK.shape
    return np.add.reduce(dK.astype("f8").reshape(B, H_k, -1, *rest), axis=-4)
