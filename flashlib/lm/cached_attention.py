"""Attention of new tokens over a cache: K and V are written into pages, and Q attends to all that is there.

`gathered` uses plain PyTorch, which is quick on a laptop, and `kernels` uses our kernels.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from flashlib.cache import Cache
from flashlib.lm.rotary import rotate


class NewTokens(NamedTuple):
    """New tokens of B sequences, n for each, that have slots in a cache but no K and V there yet.

    lengths: (B,), including the new ones; positions: (B, n); rotary: cos and sin, (context, d / 2), fp32.
    """

    cache: Cache
    sequences: list
    slots: np.ndarray  # (B n, 2)
    lengths: torch.Tensor
    positions: torch.Tensor
    table: torch.Tensor
    rotary: tuple

    def stored(self, layer: int) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]]:
        """Return a layer's arguments for a kernel: K, V, lengths and table, and by name the scales of fp8."""
        scales = {"k_scale": self.cache.k_scale, "v_scale": self.cache.v_scale}
        of_layer = {name: X[layer] for name, X in scales.items() if X is not None}
        return (self.cache.K[layer], self.cache.V[layer], self.lengths, self.table), of_layer


def gathered(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, layer: int, new: NewTokens) -> torch.Tensor:
    """Write K and V (B, H_k, n, d) of new tokens; return O of Q (B, H_q, n, d) over each sequence, gathered."""
    cos, sin = (X[new.positions][:, None] for X in new.rotary)  # (B, 1, n, d / 2)
    Q, K = rotate(Q, cos, sin), rotate(K, cos, sin)
    k, v = (X.transpose(0, 1).flatten(1, 2) for X in (K, V))  # (H_k, B n, d)
    new.cache.write(new.slots, k, v, layer)
    O = []
    for q, sequence in zip(Q, new.sequences, strict=True):
        k, v = (torch.as_tensor(X).to(q.dtype) for X in new.cache.gather(sequence, layer))  # (H_k, N, d)
        n, N = q.shape[1], k.shape[1]
        seen = torch.ones(n, N, dtype=torch.bool, device=q.device).tril(N - n)
        O.append(scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen, enable_gqa=True))
    return torch.cat(O)


def kernels(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, layer: int, new: NewTokens) -> torch.Tensor:
    """Do the same as `gathered` with our kernels (interpreted on a CPU), which read K and V in the pages."""
    from flashlib.kernels import append, decode  # imported late: Triton may not be installed

    stored, scales = new.stored(layer)
    append.append(K, V, *stored, rotary=new.rotary, **scales)
    return decode.attention(append.rotate(Q, new.lengths, new.rotary), *stored, causal=True, **scales).O
