"""Rung 8 of the ladder, written so that Triton's compiler gives its warps roles: producer and consumers.

With warp_specialize=True the compiler (Triton 3.7, for Hopper) makes three groups of four warps. One requests
tiles, the others compute, each with half of the program's rows. It cannot do this to rung 8. It needs

    one loop       With two loops it fails, and with a branch in the loop it assigns no roles. So a causal mask is
                   applied to every tile that is not hidden; rung 8 masks only those that the mask cuts.
    two axes       It halves the tiles of Q and O, but no descriptor with an axis for heads, and none that the host
                   makes: with those it fails. So each program makes descriptors of its head.
    four warps     With eight it assigns no roles.
    128 rows       With 64 it can halve nothing, and both consumers compute the same rows.

**It is not right.** Without roles O equals fp64, in the interpreter, which ignores the option, and on an H200.
With roles and three stages O is nan on an H200 (Triton 3.7.1), for a reason that is not known. So it was never
timed.
"""

import contextvars
import math

import torch
import triton
import triton.language as tl

from flashlib.kernels.ladder import launch
from flashlib.kernels.launch.inputs import check_kernel_blocks
from flashlib.types import Attention

LOG2_E = tl.constexpr(math.log2(math.e))


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    B_r: int = 128, B_c: int = 64, num_warps: int = 4, num_stages: int = 2, warp_specialize: bool = True,
) -> Attention:  # fmt: skip
    """Return Attention(O, lse); see `ladder.launch`. Source: FlashAttention-2, Algorithm 1."""
    check_kernel_blocks(B_c=B_c)
    masked = causal or K.shape[-2] % B_c != 0
    options: dict = {"B_r": B_r, "B_c": B_c, "num_warps": num_warps, "num_stages": num_stages}
    options["switches"] = {"MASKED": masked, "WARP_SPECIALIZE": warp_specialize}

    def run():
        triton.set_allocator(_room)
        return launch(_flash_specialised, Q, K, V, causal=causal, scale=scale, **options)

    return contextvars.copy_context().run(run)  # an allocator that a caller has set stays


def _room(size, alignment, stream):
    """Return memory for the descriptors that programs make."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


@triton.jit
def _flash_specialised(
    Q_ptr, K_ptr, V_ptr, O_ptr, Lse_ptr, N_q, N_k, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    MASKED: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    Q, O = _of_head(Q_ptr, head, N_q, B_R, D), _of_head(O_ptr, head, N_q, B_R, D)
    K, V = _of_head(K_ptr, head, N_k, B_C, D), _of_head(V_ptr, head, N_k, B_C, D)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = Q.load([i * B_R, 0])
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    last_visible = offs_m + past
    scale_log2e = scale * LOG2_E
    for start in tl.range(0, seen_by_any, B_C, warp_specialize=WARP_SPECIALIZE):
        k = K.load([start, 0])
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C), not scaled yet
        if MASKED:
            offs_n = start + tl.arange(0, B_C)
            visible = offs_n[None, :] <= last_visible[:, None] if CAUSAL else (offs_n < N_k)[None, :]
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2(m_old - shift)
        P = tl.exp2(S * scale_log2e - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        v = V.load([start, 0])
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O.store([i * B_R, 0], (O_acc / divisor[:, None]).to(O_ptr.dtype.element_ty))
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + head * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _of_head(X_ptr, head, N, ROWS: tl.constexpr, D: tl.constexpr):
    """Return a descriptor of one head's (N, d), for tiles of ROWS rows."""
    return tl.make_tensor_descriptor(X_ptr + head * N * D, [N, D], [D, 1], [ROWS, D])
