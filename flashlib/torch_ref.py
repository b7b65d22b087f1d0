"""Standard attention on torch tensors (B, H, N, d): what the kernels are held against.

With fp64 inputs it is the oracle; with the kernel's own, the plain implementation in the same precision.
"""

import torch

from flashlib.state import Attention, check_causal, check_shapes, check_tensors, resolve_scale

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def attention(Q, K, V, *, causal=False, scale=None) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row.

    Q: (B, H, N_q, d); K, V: (B, H, N_k, d); all float16, bfloat16, float32 or float64, on one device.
    O: the shape and dtype of Q; lse: (B, H, N_q). Computes in fp32 (fp64 for fp64 inputs) and rounds S, P and
    O to the dtype of Q, as attention does that stores them.
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right; torch's is_causal is top-left). A
    row that sees no key gives O = 0 and lse = -inf.
    Raises TypeError or ValueError for other shapes, dtypes, devices, causal or scale.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)")
    check_causal(causal)
    scale = resolve_scale(scale, Q.shape[-1])
    dtype = torch.promote_types(Q.dtype, torch.float32)
    N_q, N_k = Q.shape[2], K.shape[2]

    S = (Q.to(dtype) @ K.to(dtype).mT * scale).to(Q.dtype).to(dtype)  # (B, H, N_q, N_k)
    if causal:
        visible = torch.ones(N_q, N_k, dtype=torch.bool, device=Q.device).tril(N_k - N_q)
        S = S.masked_fill(~visible, -torch.inf)
    lse = S.logsumexp(dim=-1)  # (B, H, N_q)
    shift = lse.masked_fill(lse == -torch.inf, 0)  # -inf - (-inf) would be nan
    P = torch.exp(S - shift[..., None]).to(Q.dtype)  # (B, H, N_q, N_k)
    O = (P.to(dtype) @ V.to(dtype)).to(Q.dtype)  # (B, H, N_q, d)
    return Attention(O, lse)
