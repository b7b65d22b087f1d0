"""Numbered, frozen versions of the forward kernel, one idea more in each; chapters show them line by line.

Rungs 1 and 2, eager attention and a fused softmax, are plain PyTorch and `kernels.softmax`.

    r3_flash     the loop of `tiled` in Triton, every tile masked
    r4_exp2      scores in base 2, the scale folded in
    r5_causal    hidden tiles skipped, the mask applied only where it cuts

Each has `attention(Q, K, V, *, causal, scale, B_r, B_c)` and a kernel to read. For use: `kernels.forward`.
"""

import torch
import triton

from flashlib.kernels import as_launched, check_attention, check_kernel_blocks, on_device_of
from flashlib.state import Attention, resolve_scale

MAX_HEADS = 65535  # the grid's second axis


def launch(kernel, Q, K, V, *, causal, scale, B_r, B_c) -> Attention:
    """Check the inputs, run a rung's kernel with one program for each row block of each head, return O and lse.

    Shapes, dtypes and errors as in `kernels.forward.attention`; inputs that are not contiguous are copied.
    """
    check_attention(Q, K, V, causal)
    check_kernel_blocks(B_r=B_r, B_c=B_c)
    scale = resolve_scale(scale, Q.shape[-1])
    B, H, N_q, d = Q.shape
    if B * H > MAX_HEADS:
        raise ValueError(f"B * H is {B * H}; this kernel takes at most {MAX_HEADS}: use kernels.forward")
    q, k, v = (as_launched(X).contiguous() for X in (Q, K, V))
    o = torch.empty_like(q)
    lse = torch.empty(B, H, N_q, dtype=torch.float32, device=q.device)
    if q.numel():
        grid = (triton.cdiv(N_q, B_r), B * H)
        sizes = {"D": d, "B_R": int(B_r), "B_C": int(B_c)}
        with on_device_of(q):
            kernel[grid](q, k, v, o, lse, N_q, K.shape[2], scale, **sizes, CAUSAL=bool(causal))
    return Attention(o.to(Q.dtype), lse)
