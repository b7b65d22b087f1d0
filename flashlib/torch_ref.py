"""Standard attention on torch tensors (B, H, N, d), with which the kernels are compared.

With fp64 inputs it is the oracle; with the kernel's inputs, the plain implementation in the same precision.
"""

import torch

from flashlib import masks
from flashlib.inputs import check_shapes, check_tensors, resolve_scale
from flashlib.types import Attention

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def attention(
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    *,
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row.

    Q: (B, H, N_q, d); K: (B, H_k, N_k, d); V: (B, H_k, N_k, d_v); all float16, bfloat16, float32 or float64, on
    one device. H: a multiple of H_k; each head of K and V serves H / H_k consecutive heads of Q.
    O: (B, H, N_q, d_v), the dtype of Q; lse: (B, H, N_q). Computes in fp32 (fp64 for fp64 inputs) and rounds S, P
    and O to the dtype of Q, like an attention that stores them. Autocast, and torch's setting for the precision of
    fp32 products, have no effect. causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right;
    torch's is_causal is top-left). mask: one of flashlib.masks; combined with causal, the scores that both see;
    autograd tracks the tensors that it reads. A row that sees no key gives O = 0 and lse = -inf. Raises TypeError
    or ValueError for other shapes, dtypes, devices, causal, mask or scale.
    """
    check_tensors(DTYPES, Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=True, values=True)
    (B, H, N_q, _), N_k = Q.shape, K.shape[2]
    mask = masks.fitted(mask, causal, B, H, N_q, N_k)
    scale = resolve_scale(scale, Q.shape[-1])
    dtype = torch.promote_types(Q.dtype, torch.float32)
    K, V = (X.repeat_interleave(H // max(X.shape[1], 1), dim=1) for X in (K, V))  # one for each head of Q
    b, h, i, c = (torch.arange(n, device=Q.device) for n in (B, H, N_q, N_k))
    place = masks.Place(N_q, N_k, b[:, None, None, None], h[:, None, None])
    at = place, i[:, None] + place.past, c

    S = mask.score(_product(Q.to(dtype), K.to(dtype).mT) * scale, *at)  # (B, H, N_q, N_k)
    S = S.to(Q.dtype).to(dtype)
    if mask.conjuncts():  # a plain Mask hides nothing
        S = S.masked_fill(~mask.sees(*at), -torch.inf)
    lse = S.logsumexp(dim=-1)  # (B, H, N_q)
    shift = lse.masked_fill(lse == -torch.inf, 0)  # -inf - (-inf) would be nan
    P = torch.exp(S - shift[..., None]).to(Q.dtype)  # (B, H, N_q, N_k)
    O = _product(P.to(dtype), V.to(dtype)).to(Q.dtype)  # (B, H, N_q, d_v)
    return Attention(O, lse)


def _product(A, B):
    """Return A @ B in their dtype; computed in fp64, including gradients, if torch would use less than fp32."""
    return A @ B if _exact(A.device.type) else (A.double() @ B.double()).to(A.dtype)


def _exact(device):
    """Return whether fp32 products are computed in fp32: not under autocast, nor if torch is set to use less."""
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # the setting differs for one type of device
        return False
