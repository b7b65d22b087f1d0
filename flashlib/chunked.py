"""Memory-efficient attention in plain PyTorch, chunk by chunk: O(N) memory without a custom kernel.

It appeared half a year before FlashAttention, and computes the same (m, l, O_acc) for each chunk of keys. But each
of its lines is a kernel that loads its operands and stores its result, so it saves memory, not loads and stores.
And as in the paper, the results of all chunks are kept and merged at the end, whereas FlashAttention merges each
into the previous ones.

Source: Rabe and Staats, Self-attention Does Not Need O(n^2) Memory (2021), Figure 1.
"""

import torch

from flashlib.inputs import check_block_sizes, check_causal, check_shapes, check_tensors, resolve_scale
from flashlib.types import Attention

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def attention(
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    *,
    B_r: int = 1024,
    B_c: int = 1024,
    causal: bool = False,
    scale: float | None = None,
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row; at most B_r x B_c scores exist at a time.

    Q: (B, H, N_q, d); K, V: (B, H, N_k, d); all float16, bfloat16, float32 or float64, on one device.
    O: the shape and dtype of Q; lse: (B, H, N_q). Computes in fp32 (fp64 for fp64 inputs).
    B_r, B_c: rows of Q and of K/V in a chunk. causal, and a row that sees no key: as in `torch_ref.attention`.
    Raises TypeError or ValueError for other shapes, dtypes, devices, chunk sizes, causal or scale.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)")
    check_block_sizes(B_r=B_r, B_c=B_c)
    B_r, B_c = int(B_r), int(B_c)  # small NumPy integers would overflow
    check_causal(causal)
    scale = resolve_scale(scale, Q.shape[-1])
    dtype = torch.promote_types(Q.dtype, torch.float32)
    O, lse = torch.zeros_like(Q), torch.full_like(Q[..., 0], -torch.inf, dtype=dtype)
    past = K.shape[2] - Q.shape[2] if causal else K.shape[2]  # keys that the first query sees before its own
    for r in range(0, Q.shape[2] if K.shape[2] else 0, B_r):
        Q_i = Q[:, :, r : r + B_r].to(dtype) * scale
        rows = slice(r, r + B_r)
        O[:, :, rows], lse[:, :, rows] = row_chunk(Q_i, K, V, B_c, past + r)
    return Attention(O, lse)


def row_chunk(
    Q_i: torch.Tensor, K: torch.Tensor, V: torch.Tensor, B_c: int, past: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return O and lse of one chunk of rows, whose row r sees the keys c <= r + past."""
    parts = []
    for c in range(0, K.shape[2], B_c):
        K_j, V_j = K[:, :, c : c + B_c].to(Q_i.dtype), V[:, :, c : c + B_c].to(Q_i.dtype)
        parts.append(chunk_summary(Q_i @ K_j.mT, V_j, past - c))
    m_j, l_j, O_j = map(torch.stack, zip(*parts, strict=True))  # (T_c, B, H, B_r[, d])
    m = m_j.amax(dim=0)
    weight = torch.exp(m_j - m.masked_fill(m == -torch.inf, 0))  # (T_c, B, H, B_r)
    l = (weight * l_j).sum(dim=0)
    divisor = l.masked_fill(l == 0, 1)  # a row that sees no key: O = 0, lse = -inf
    return (weight[..., None] * O_j).sum(dim=0) / divisor[..., None], m + divisor.log()


def chunk_summary(
    S: torch.Tensor, V_j: torch.Tensor, past: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return m, l and O_acc of the scores S of one chunk of keys, masked to c <= r + past."""
    if past < S.shape[-1] - 1:  # the first row does not see the last key
        visible = torch.ones(S.shape[-2:], dtype=torch.bool, device=S.device).tril(past)
        S = S.masked_fill(~visible, -torch.inf)
    m = S.amax(dim=-1)
    P = torch.exp(S - m.masked_fill(m == -torch.inf, 0)[..., None])
    return m, P.sum(dim=-1), P @ V_j
