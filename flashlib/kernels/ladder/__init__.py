"""Numbered, frozen versions of the forward kernel, one idea more in each; chapters show them line by line.

     r1_eager        standard attention in PyTorch, S and P stored
     r2_softmax      scale, mask and softmax in one kernel; S and P still stored
     r3_flash        the loop of `tiled` in Triton, every tile masked; nothing of size N_q x N_k is stored
     r4_exp2         scores in base 2, the scale folded in
     r5_causal       hidden tiles skipped, the mask applied only where it cuts
     6 and 7         no files: r5 with larger tiles and more warps, then with more pipeline stages
     r8_descriptors  tiles loaded through tensor descriptors, by TMA where the GPU has it
     9               for use: `kernels.forward`

Each has `attention(Q, K, V, *, causal, scale)`, from rung 3 on also with `B_r, B_c, num_warps, num_stages`, and a
kernel to read. `kernels.ablations.forward` is r5 with a switch for each of FlashAttention-2's three ideas.
`plain_backward` is the backward pass as r3 is the forward pass, and no rung.
`python -m flashlib.bench.ladder` times them all.
"""

from collections.abc import Callable

import torch
import triton
from triton import KernelInterface

from flashlib.inputs import check_counts, resolve_scale
from flashlib.kernels.launch.inputs import (
    check_attention,
    check_kernel_blocks,
    check_powers_of_two,
    kernel_input,
    on_device_of,
)
from flashlib.types import Attention

MAX_HEADS = 65535  # the grid's second axis


def launch(
    kernel: KernelInterface, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool,
    scale: float | None, B_r: int, B_c: int, num_warps: int = 4, num_stages: int = 1, parallel_rows: bool = True,
    describe: Callable[[torch.Tensor, int], object] = lambda X, rows: X, switches: dict | None = None,
) -> Attention:  # fmt: skip
    """Check the inputs, run a rung's kernel with one program for each row block of each head, return O and lse.

    Shapes, dtypes and errors as in `kernels.forward.attention`, but d is one of 16, 32, 64, 128, and K and V have
    the heads of Q. Inputs that are not contiguous are copied.
    num_stages: tiles of K and V in flight; 1, so that pipelining is a separate rung.
    parallel_rows=False: one program for each head. describe: returns the kernel's argument for a tensor X that it
    loads `rows` rows at a time. switches: more compile-time arguments of the kernel.
    """
    check_attention(Q, K, V, causal)
    check_kernel_blocks(B_r=B_r, B_c=B_c)
    check_powers_of_two(1, 16, num_warps=num_warps)
    check_counts(at_least=1, num_stages=num_stages)
    scale = resolve_scale(scale, Q.shape[-1])
    B, H, N_q, d = Q.shape
    if B * H > MAX_HEADS:
        raise ValueError(f"B * H is {B * H}; this kernel takes at most {MAX_HEADS}: use kernels.forward")
    q, k, v = (kernel_input(X).contiguous() for X in (Q, K, V))
    o = torch.empty_like(q)
    lse = torch.empty(B, H, N_q, dtype=torch.float32, device=q.device)
    if q.numel():
        tensors = (describe(X, int(rows)) for X, rows in ((q, B_r), (k, B_c), (v, B_c), (o, B_r)))
        grid = (triton.cdiv(N_q, B_r) if parallel_rows else 1, B * H)
        sizes = {"D": d, "B_R": int(B_r), "B_C": int(B_c), "CAUSAL": bool(causal), **(switches or {})}
        options = {"num_warps": int(num_warps), "num_stages": int(num_stages)}
        # S * scale_log2e - shift must not become one instruction: it rounds once, shift was rounded before, so
        # the largest score of a row would not give exp2(0), which shows from 1e5 on: see `kernels.forward`.
        options["enable_fp_fusion"] = False
        with on_device_of(q):
            kernel[grid](*tensors, lse, N_q, K.shape[2], scale, **sizes, **options)
    return Attention(o.to(Q.dtype), lse)
