"""Rung 2: one kernel between the two products, not three: it reads S once, scales, masks, and writes P."""

import torch
import triton
import triton.language as tl

from flashlib.inputs import resolve_scale
from flashlib.kernels.launch.inputs import check_attention, kernel_input, on_device_of
from flashlib.types import Attention

MAX_BLOCK = 4096  # scores of a row at a time; the second read finds them in cache


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> Attention:
    """Return Attention(O, lse); inputs and errors as in `ladder.launch`.

    S and P are stored in the dtype of Q; lse is computed from S as stored.
    Source: FlashAttention, Algorithm 0, with Milakov & Gimelshein (2018), Algorithm 3, over blocks of a row.
    """
    check_attention(Q, K, V, causal)
    scale = resolve_scale(scale, Q.shape[-1])
    S = kernel_input(Q @ K.mT)  # (B, H, N_q, N_k), not scaled yet
    P = torch.empty_like(S)
    lse = torch.empty(S.shape[:3], dtype=torch.float32, device=S.device)
    N_q, N_k = S.shape[2:]
    if lse.numel():
        block = min(triton.next_power_of_2(max(1, N_k)), MAX_BLOCK)
        with on_device_of(S):
            _softmax[(lse.numel(),)](S, P, lse, N_q, N_k, scale, BLOCK=block, CAUSAL=bool(causal))
    return Attention(P.to(Q.dtype) @ V, lse)


@triton.jit
def _softmax(S_ptr, P_ptr, Lse_ptr, N_q, N_k, scale, BLOCK: tl.constexpr, CAUSAL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    seen = tl.program_id(0) % N_q + 1 + N_k - N_q if CAUSAL else N_k  # keys that this row sees
    m = -float("inf")
    l = 0.0
    for start in range(0, N_k, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        inside = (offs < N_k) & (offs < seen)
        s = tl.load(S_ptr + row * N_k + offs, mask=inside, other=-float("inf")).to(tl.float32) * scale
        m_new = tl.maximum(m, tl.max(s, axis=0))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)  # -inf - (-inf) would be nan
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(s - shift), axis=0)
        m = m_new
    shift = tl.where(m == -float("inf"), 0.0, m)
    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: P = 0, lse = -inf
    for start in range(0, N_k, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        inside = (offs < N_k) & (offs < seen)
        s = tl.load(S_ptr + row * N_k + offs, mask=inside, other=-float("inf")).to(tl.float32) * scale
        P = tl.exp(s - shift) / divisor
        tl.store(P_ptr + row * N_k + offs, P.to(P_ptr.dtype.element_ty), mask=offs < N_k)
    tl.store(Lse_ptr + row, m + tl.log(divisor))
