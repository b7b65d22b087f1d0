"""Right answers to the whole backward pass in other styles: see `tests.checks.answers`."""


# backward_pass: one pass, parts of dQ added atomically, tiles of queries by keys
@triton.jit
def one_pass(Q, K, V, dO, L, De, dQ, dK, dV, N, M, scale, D: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    h = tl.program_id(0)
    e = tl.arange(0, D)[None, :]
    n = tl.program_id(1) * B + tl.arange(0, B)
    at = (h * M + n[:, None]) * D + e
    k = tl.load(K + at, mask=n[:, None] < M, other=0.0)
    v = tl.load(V + at, mask=n[:, None] < M, other=0.0)
    dk = tl.zeros((B, D), tl.float32)
    dv = tl.zeros((B, D), tl.float32)
    for t in range(0, tl.cdiv(N, B)):
        m = t * B + tl.arange(0, B)
        to = (h * N + m[:, None]) * D + e
        q = tl.load(Q + to, mask=m[:, None] < N, other=0.0)
        g = tl.load(dO + to, mask=m[:, None] < N, other=0.0)
        l = tl.load(L + h * N + m, mask=m < N, other=float("inf"))
        de = tl.load(De + h * N + m, mask=m < N, other=0.0)
        see = (n < M)[None, :] & (m < N)[:, None]
        if C:
            see = see & (n[None, :] - (M - N) <= m[:, None])
        P = tl.where(see, tl.exp2((tl.dot(q, tl.trans(k), input_precision="ieee") * scale - l[:, None]) * 1.4426950408889634), 0.0)
        dS = P * (tl.dot(g, tl.trans(v), input_precision="ieee") - de[:, None]) * scale
        dv = tl.dot(tl.trans(P).to(g.dtype), g, acc=dv, input_precision="ieee")
        dk = tl.dot(tl.trans(dS).to(q.dtype), q, acc=dk, input_precision="ieee")
        tl.atomic_add(dQ + to, tl.dot(dS.to(k.dtype), k, input_precision="ieee"), mask=m[:, None] < N)
    tl.store(dK + at, dk, mask=n[:, None] < M)
    tl.store(dV + at, dv, mask=n[:, None] < M)


def my_backward_pass(Q, K, V, O, lse, dO, causal):
    (B, H, N, d), M = Q.shape, K.shape[2]
    de = torch.einsum("bhnd,bhnd->bhn", dO.float(), O.float())
    dQ = torch.zeros(Q.shape, dtype=torch.float32, device=Q.device)
    dK, dV = torch.empty_like(K), torch.empty_like(V)
    one_pass[(B * H, triton.cdiv(M, 16))](Q, K, V, dO, lse, de, dQ, dK, dV, N, M, d**-0.5, D=d, B=16, C=causal)
    return dQ.to(Q.dtype), dK, dV
