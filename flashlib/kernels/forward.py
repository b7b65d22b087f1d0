"""FlashAttention-2, forward pass, in Triton.

One program computes one row block of O: it holds Q_i, streams K and V past it, and keeps m, l and O_acc in
registers. Two things differ from `tiled`. Scores are kept in base 2, since the hardware has exp2 and not exp:
scale * log2(e) is folded into the one multiplication that every score needs anyway. And keys are streamed in two
parts: whole tiles that every row of the block sees, without a mask, then the tiles cut by the causal mask or by
the end of K.
"""

import math

import torch
import triton
import triton.language as tl

from flashlib.kernels import as_launched, check_attention, on_device_of, tuned
from flashlib.kernels.tiles import describe, launch_options, load, resolve_descriptors, store, told_what_fits
from flashlib.state import Attention, resolve_scale

LOG2_E = tl.constexpr(math.log2(math.e))
HEAD_DIMS = range(16, 257)


def attention(
    Q, K, V, *, causal=False, scale=None, B_r=None, B_c=None, num_warps=None, num_stages=None, descriptors=None
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row.

    Q: (B, H_q, N_q, d); K, V: (B, H_k, N_k, d); all float16, bfloat16 or float32, any N_q and N_k, any strides, d
    from 16 to 256. H_q is a multiple of H_k: query head h reads head h // (H_q / H_k) of K and V (GQA; MQA if
    H_k = 1). O: the shape and dtype of Q; lse: (B, H_q, N_q), fp32. fp32 products are IEEE, not tf32.
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right). A row that sees no key gives O = 0
    and lse = -inf.
    B_r, B_c: powers of two from 16 to 256; num_warps, num_stages: Triton's. Default: `tuned.default`.
    descriptors: load tiles through tensor descriptors (TMA on Hopper and later) or through pointers; default:
    descriptors for 16-bit tensors where the GPU has TMA and their alignment allows it.
    Raises TypeError or ValueError for anything else, before any work, and ValueError where tiles that were asked
    for do not fit the GPU.
    Source: FlashAttention-2, Algorithm 1; grouped heads: Ainslie and others, GQA (2023).
    """
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True)
    scale = resolve_scale(scale, Q.shape[-1])
    asked = launch_options(B_r, B_c, num_warps, num_stages)
    q, k, v = map(as_launched, (Q, K, V))
    descriptors = resolve_descriptors(descriptors, q, k, v)
    B, H, N_q, d = q.shape
    D = max(16, triton.next_power_of_2(d))
    sizes = {"causal": bool(causal), "N_q": N_q, "N_k": K.shape[2], "heads": B * H}
    config = tuned.default(D, q.dtype, descriptors, q.device, **sizes, **asked)._asdict()

    o = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(B, H, N_q, dtype=torch.float32, device=q.device)
    if q.numel():
        strides = [X.stride()[:3] for X in (q, k, v, o)]
        group, N_k = H // max(K.shape[1], 1), K.shape[2]
        o_out = o
        if descriptors:
            q, o_out = (describe(X, config["B_R"], D) for X in (q, o))
            k, v = (describe(X, config["B_C"], D) for X in (k, v))
        grid = (-(-N_q // config["B_R"]) * B * H,)
        with on_device_of(lse), told_what_fits(config):
            _forward[grid](
                q, k, v, o_out, lse, *strides, H, group, N_q, N_k, scale * LOG2_E.value,
                d=d, D=D, CAUSAL=bool(causal), DESCRIPTORS=descriptors, **config,
            )  # fmt: skip
    return Attention(o.to(Q.dtype), lse)


@triton.jit
def _forward(
    Q, K, V, O, Lse_ptr,  # Q, K, V, O: pointers, or tensor descriptors
    strides_q, strides_k, strides_v, strides_o,  # of batch, head and row; of the last axis it is 1
    H, group, N_q, N_k, scale_log2e,
    d: tl.constexpr, D: tl.constexpr,  # D: d rounded up to a power of two
    B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    T_r = tl.cdiv(N_q, B_R)
    i = tl.program_id(0) % T_r
    if CAUSAL:
        i = T_r - 1 - i  # the longest rows first: short ones fill the gaps at the end
    b = tl.program_id(0) // T_r // H
    h = tl.program_id(0) // T_r % H
    h_k = h // group  # the head of K and V
    offs_m = i * B_R + tl.arange(0, B_R)

    q = load(Q, strides_q, b, h, i * B_R, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    m, l, O_acc = _stream(
        q, K, V, m, l, O_acc, 0, full, offs_m + past,
        strides_k, strides_v, b, h_k, N_k, scale_log2e, d, D, B_C, False, CAUSAL, DESCRIPTORS,
    )  # fmt: skip
    m, l, O_acc = _stream(
        q, K, V, m, l, O_acc, full, seen_by_any, offs_m + past,
        strides_k, strides_v, b, h_k, N_k, scale_log2e, d, D, B_C, True, CAUSAL, DESCRIPTORS,
    )  # fmt: skip

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    store(O, O_acc / divisor[:, None], strides_o, b, h, i * B_R, N_q, d, D, B_R, DESCRIPTORS)
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + (b.to(tl.int64) * H + h) * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _stream(
    q, K, V, m, l, O_acc, start_k, end_k, last_visible,
    strides_k, strides_v, b, h, N_k, scale_log2e,
    d: tl.constexpr, D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Bring m, l and O_acc of a row block past keys start_k to end_k; row r sees keys up to last_visible[r]."""
    for start in range(start_k, end_k, B_C):
        # Loaded together, the two tiles are awaited once. To await v again after the softmax costs up to a tenth.
        k = load(K, strides_k, b, h, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        v = load(V, strides_v, b, h, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C)
        if MASKED:
            offs_n = start + tl.arange(0, B_C)
            visible = (offs_n < N_k)[None, :]
            if CAUSAL:
                visible &= offs_n[None, :] <= last_visible[:, None]
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2(m_old - shift)
        P = tl.exp2(S * scale_log2e - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = tl.dot(P.to(v.dtype), v, acc=alpha[:, None] * O_acc, input_precision="ieee")
    return m, l, O_acc
