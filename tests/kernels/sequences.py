"""Standard attention of packed sequences, one after the other, with windows, soft caps, slopes and dropout."""

import torch


def attention(Q, K, V, cu_q, cu_k, *, window=(None, None), cap=None, slopes=None, dropped=None, p=0, scale=None):
    """Return O and lse in the dtype of Q. dropped: (H_q, n_q, n_k) each; slopes: (H_q,) or (B, H_q)."""
    group = Q.shape[1] // max(K.shape[1], 1)
    outputs = [(Q[:0, :, :1] * V[:0].repeat_interleave(group, dim=1), Q[:0, :, 0] * 1.0)]
    for b, (rows, keys) in enumerate(zip(cu_q.diff().tolist(), cu_k.diff().tolist(), strict=True)):
        q = Q[cu_q[b] : cu_q[b + 1]].transpose(0, 1)  # (H, n_q, d)
        k, v = (X[cu_k[b] : cu_k[b + 1]].repeat_interleave(group, dim=1).transpose(0, 1) for X in (K, V))
        S = q @ k.mT * (scale or Q.shape[-1] ** -0.5)
        S = S if cap is None else cap * torch.tanh(S / cap)
        r = torch.arange(rows, device=Q.device)[:, None] + keys - rows
        c = torch.arange(keys, device=Q.device)
        if slopes is not None:
            own = slopes if slopes.ndim == 1 else slopes[b]
            S = S - own.to(Q.dtype)[:, None, None] * (r - c).abs()
        left, right = window
        hidden = torch.zeros_like(r - c, dtype=torch.bool)
        hidden = hidden if left is None else hidden | (c < r - left)
        hidden = hidden if right is None else hidden | (c > r + right)
        S = S.masked_fill(hidden, -torch.inf)
        lse = torch.logsumexp(S, -1) if keys else S.new_full(S.shape[:2], -torch.inf)
        P = torch.exp(S - lse.nan_to_num(neginf=0.0)[..., None]).masked_fill(hidden, 0.0)
        if dropped is not None:
            P = P.masked_fill(dropped[b], 0.0) / (1 - p)
        outputs.append(((P @ v).transpose(0, 1), lse.mT))
    return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))
