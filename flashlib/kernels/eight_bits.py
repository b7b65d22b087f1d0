"""Attention in eight bits, in Triton: Q K^T in e4m3 or int8, P V in e4m3 or in 16 bits, for GPUs that have them.

Q, K and V come from `quantise`. It differs from `forward` in this: a score is a product of quantised rows times a
factor of the row; V is read transposed, as products in eight bits require; P times 256 is rounded to e4m3, so that
small weights are not lost; each tile's P V begins at zero and is added in fp32 (two-level sums), since the tensor
cores of Ada and Hopper keep 13 bits of a sum of eight-bit products; and V's mean is added at the end.

Triton's interpreter rounds to e4m3 wrongly: numbers beyond 448 wrap around, and ties are rounded wrongly. So the
kernel rounds P itself there, and numbers of a format are stored in fp32, see `_rounded`.
Source: SageAttention (Zhang and others, 2024); two-level sums: DeepSeek-V3 (2024), section 3.3.2.
"""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.inputs import resolve_scale
from flashlib.kernels import INTERPRETED
from flashlib.kernels.launch import planning, which_gpu
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_attention,
    check_no_gradient,
    check_readable,
    kernel_input,
    on_device_of,
)
from flashlib.kernels.quantise import FORMATS, QuantisedQKV, quantised
from flashlib.types import Attention

HEAD_DIMS = (32, 64, 128, 256)
DTYPES = (torch.float16, torch.bfloat16)
LOG_2 = tl.constexpr(math.log(2))
PORTABLE = "flashlib.kernels.forward.attention"
PLANS = planning.Plans()


class EightBitsPlan(NamedTuple):
    launch: planning.Launch


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    qk: str = "e4m3", pv: str | None = "e4m3", rotated: bool = True, centred: bool = True,
) -> Attention:  # fmt: skip
    """Return O, in the dtype of Q, and lse, computed in eight bits.

    Q (B, H, N_q, d), K and V (B, H_k, N_k, d): float16 or bfloat16, finite; d = d_v 32, 64, 128 or 256; any
    strides. qk: "e4m3" or "int8". pv: "e4m3", or None: P and V in 16 bits. rotated, centred: as in `quantised`.
    e4m3 requires an NVIDIA GPU of compute capability 8.9 or later, int8 with 16 bits one of 8.0.
    Raises TypeError or ValueError for others, at once.
    """
    Q, K, V = as_autocast(Q, K, V)
    check(Q, K, V, causal, qk, pv)
    scale = resolve_scale(scale, Q.shape[-1])
    O = torch.zeros(Q.shape, dtype=Q.dtype, device=Q.device)
    lse = torch.full(Q.shape[:3], -math.inf, dtype=torch.float32, device=Q.device)
    if not Q.numel() or not K.shape[2]:  # no rows, or no keys that they could see
        return Attention(O, lse)
    small = quantised(Q, K, V, qk=qk, rotated=rotated, centred=centred)
    return of_quantised(small, V if pv is None else None, O, lse, causal, scale)


def of_quantised(
    small: QuantisedQKV, V: torch.Tensor | None, O: torch.Tensor, lse: torch.Tensor, causal: bool, scale: float
) -> Attention:
    """Write O and lse for the result of `quantised`, and return them; V: None, or V in 16 bits to use instead."""
    q, k, v = (_readable(X) for X in (small.Q, small.K, small.V if V is None else kernel_input(V)))
    o = O.float() if INTERPRETED else O
    key = PLANS.key((q, k, v, o), causal, V is None)
    plan = PLANS.get(key) or PLANS.keep(key, _plan(q, k, v, bool(causal), V is None))
    with on_device_of(q):
        plan.launch(q, k, v, o, lse, *small[3:], scale * math.log2(math.e))
    return Attention(o.to(O.dtype), lse)


def check(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, qk: str, pv: str | None) -> None:
    """Raise TypeError or ValueError for what the kernel does not take."""
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True, differentiable=True)
    check_no_gradient(Q=Q, K=K, V=V)
    check_readable(Q=Q, K=K, V=V)
    if Q.dtype not in DTYPES:
        raise ValueError(f"Q is {Q.dtype}; this kernel takes float16 and bfloat16: call {PORTABLE}")
    if qk not in FORMATS:
        raise ValueError(f"qk is {qk!r}; pass one of {', '.join(FORMATS)}, the format of Q and K")
    if pv not in ("e4m3", None):
        raise ValueError(f"pv is {pv!r}; pass 'e4m3', or None for P and V in 16 bits")
    if INTERPRETED:
        return
    capability = which_gpu.capability(Q.device)
    if capability < (8, 9) and (capability < (8, 0) or "e4m3" in (qk, pv)):
        found = f"compute capability {capability}" if capability > (0, 0) else "a maker other than NVIDIA"
        mend = "pass qk='int8' and pv=None" if capability >= (8, 0) else f"call {PORTABLE}"
        raise ValueError(f"Q is on a GPU of {found}, and e4m3 takes one of 8.9 or later: {mend}")


def _readable(X):
    """Return X as a kernel reads it: the interpreter cannot read e4m3."""
    return X.float() if INTERPRETED and X.dtype == torch.float8_e4m3fn else X


def _plan(Q, K, V, causal, eight_v):
    (B, H, N_q, d), (H_k, N_k) = Q.shape, K.shape[1:3]
    large = not INTERPRETED and which_gpu.capability(Q.device) >= (9, 0)
    B_R = 64 if INTERPRETED or d == 256 else 128
    B_C = 128 if large and d < 256 else 64
    T_r = triton.cdiv(N_q, B_R)
    sizes = *V.stride()[:3], H, H // H_k, N_q, N_k, T_r
    constants = {"D": d, "B_R": B_R, "B_C": B_C, "CAUSAL": causal, "EIGHT_V": eight_v, "EMULATED": INTERPRETED}
    config = {"num_warps": 8, "num_stages": 3 if large else 2}
    return EightBitsPlan(planning.Launch(_attention, T_r * B * H, sizes, constants, config))


@triton.jit
def _rounded(P):
    """Return P, from 0 to 448, rounded to e4m3 but still in fp32: 8 numbers from each power of two to the next."""
    power = P.to(tl.int32, bitcast=True) & 0x7F800000
    power = tl.maximum(power.to(tl.float32, bitcast=True), 0.015625)  # below 2^-6 the spacing stays the same
    large = power * 1572864.0  # 1.5 * 2^20: adding it keeps three bits after the first
    return (P + large) - large


@triton.jit(do_not_specialize=["H", "group", "N_q", "N_k", "T_r"])
def _attention(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, Q_scale_ptr, Q_taken_ptr, K_scale_ptr, V_scale_ptr, V_mean_ptr,
    scale_log2e, v_b, v_h, v_n, H, group, N_q, N_k, T_r,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr, EIGHT_V: tl.constexpr,
    EMULATED: tl.constexpr,
):  # fmt: skip
    """Compute a row block of a head; the longest blocks come first."""
    i, head = T_r - 1 - tl.program_id(0) % T_r, (tl.program_id(0) // T_r).to(tl.int64)
    of_kv = head // H * (H // group) + head % H // group
    P_LOG2: tl.constexpr = 8.0 if EIGHT_V else 0.0  # of the largest weight
    rows, cols, channels = i * B_R + tl.arange(0, B_R), tl.arange(0, B_C), tl.arange(0, D)
    inside = rows < N_q
    q = tl.load(Q_ptr + (head * N_q + rows)[:, None] * D + channels[None, :], mask=inside[:, None], other=0.0)
    factor = tl.load(Q_scale_ptr + head * N_q + rows, mask=inside, other=1.0)
    factor *= tl.load(K_scale_ptr + of_kv) * scale_log2e
    limits = tl.minimum(rows + 1 + N_k - N_q, N_k) if CAUSAL else tl.zeros_like(rows) + N_k
    end = tl.minimum((i + 1) * B_R + N_k - N_q, N_k) if CAUSAL else N_k

    O = tl.zeros((B_R, D), tl.float32)
    shift, l = tl.full((B_R,), -float("inf"), tl.float32), tl.zeros((B_R,), tl.float32)
    at_k = K_ptr + of_kv * N_k * D + cols[:, None] * D + channels[None, :]
    if EIGHT_V:  # its rows are channels, padded to whole tiles
        at_v = V_ptr + (head // H) * v_b + (head % H // group) * v_h + channels[:, None] * v_n + cols[None, :]
    else:
        at_v = V_ptr + (head // H) * v_b + (head % H // group) * v_h + cols[:, None] * v_n + channels[None, :]
    for start in range(0, end, B_C):
        k = tl.load(at_k + start * D, mask=(start + cols)[:, None] < N_k, other=0.0)
        S = tl.dot(q, tl.trans(k), out_dtype=tl.int32 if k.dtype == tl.int8 else tl.float32).to(tl.float32)
        S = tl.where((start + cols)[None, :] < limits[:, None], S, -float("inf"))
        new = tl.maximum(shift, tl.max(S, 1) * factor - P_LOG2)
        used = tl.maximum(new, -3.0e38)  # rows that have seen nothing yet: -inf - (-inf) would be nan
        alpha = tl.exp2(shift - used)
        P = tl.exp2(S * factor[:, None] - used[:, None])
        l = l * alpha + tl.sum(P, 1)
        if EIGHT_V:
            v = tl.trans(tl.load(at_v + start))
            P = _rounded(P) if EMULATED else P.to(tl.float8e4nv)
            product = tl.dot(P, v, max_num_imprecise_acc=B_C)  # otherwise the compiler makes the sum begin at O
        else:
            v = tl.load(at_v + start * v_n, mask=(start + cols)[:, None] < N_k, other=0.0)
            product = tl.dot(P.to(v.dtype), v)
        O = O * alpha[:, None] + product
        shift = new

    unseen = l == 0.0
    divisor = tl.where(unseen, 1.0, l)
    O = O / divisor[:, None]
    if EIGHT_V:
        mean = tl.load(V_mean_ptr + of_kv * D + channels)[None, :]
        O = O * tl.load(V_scale_ptr + of_kv) + mean * tl.where(unseen, 0.0, 1.0)[:, None]
    tl.store(O_ptr + (head * N_q + rows)[:, None] * D + channels[None, :], O, mask=inside[:, None])
    taken = tl.load(Q_taken_ptr + head * N_q + rows, mask=inside, other=0.0) * scale_log2e
    tl.store(Lse_ptr + head * N_q + rows, (shift + tl.log2(divisor) + taken) * LOG_2, mask=inside)
