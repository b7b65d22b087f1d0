"""FlashAttention-2, backward pass, in Triton: dQ, dK and dV, with P made again tile by tile from lse.

There are two ways. By default each gradient has a pass of its own, which sums it in registers and writes it once:
`_dkv` holds K_j and V_j and streams Q and dO past them, `_dq` holds Q_i and dO_i and streams K and V. Nothing
depends on the order in which programs run, at the price of seven matrix products a tile. Or `_dkv` does it all: it
multiplies each tile of dS by K_j too and adds that to dQ in HBM. These are five products, and sums in whatever
order programs come.

`_dkv` computes its tiles transposed, keys by queries, as then P^T and dS^T stand on the left of their products and
need not leave the registers. Scores are in base 2, as in `forward`. A gradient is stored through pointers: that is
done once, and to make a descriptor for it would take the CPU longer than the GPU gains.
"""

import torch
import triton
import triton.language as tl

from flashlib.kernels import INTERPRETED, MAX_BLOCK, as_launched, check_attention, on_device_of, tuned
from flashlib.kernels.forward import HEAD_DIMS, LOG2_E
from flashlib.kernels.tiles import add, describe, launch_options, load, resolve_descriptors, store, told_what_fits
from flashlib.state import Grads, check_gradient_inputs, check_tensors, resolve_scale

ROWS = 32  # of a program that prepares


def backward(
    Q, K, V, O, lse, dO, *, dlse=None, causal=False, scale=None, deterministic=True,
    B_r=None, B_c=None, num_warps=None, num_stages=None, descriptors=None,
) -> Grads:  # fmt: skip
    """Return the gradients of sum(dO * O) + sum(dlse * lse) with respect to Q, K and V.

    Q, K, V, causal, scale, descriptors: as in `forward.attention`, which returned O and lse for them; in the
    interpreter, one pass takes no descriptors.
    dO: the shape, dtype and device of Q and O. dlse: (B, H_q, N_q), fp32, as lse; None for zeros.
    dQ, dK, dV: the shape and dtype of Q, K and V; a head of K and V sums over the query heads that read it.
    deterministic: two passes, the same bits every time; else one pass that adds to dQ in HBM, in fp32.
    B_r, B_c, num_warps, num_stages: of each pass, as in `forward.attention`. Default: `tuned.backward`.
    Raises TypeError or ValueError for anything else, before any work, and ValueError where tiles that were asked
    for do not fit the GPU.
    Source: FlashAttention-2, Algorithm 2; the default replaces its additions to dQ by a pass for dQ.
    """
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True)
    check_saved(Q, O, dO, lse, dlse)
    scale = resolve_scale(scale, Q.shape[-1])
    if not isinstance(deterministic, bool):
        raise TypeError(f"deterministic is {deterministic!r}; pass True for two passes, False for one that adds")
    asked = launch_options(B_r, B_c, num_warps, num_stages)
    q, k, v, o, do = map(as_launched, (Q, K, V, O, dO))
    descriptors = resolve_descriptors(descriptors, q, k, v, do)
    if INTERPRETED and descriptors and not deterministic:
        raise ValueError(
            "descriptors=True with deterministic=False: Triton's interpreter knows no addition through a "
            "descriptor; leave descriptors out"
        )
    problem = problem_of(q, k, causal, scale, descriptors)
    configs = tuned.backward(problem["D"], q.dtype, descriptors, q.device, **asked)

    contiguous = {"memory_format": torch.contiguous_format}
    dk, dv = (torch.empty_like(X, **contiguous) for X in (k, v))
    with on_device_of(q):
        lse2, delta = launch_prepare(o, do, lse, dlse, problem)
        if deterministic:
            dq = torch.empty_like(q, **contiguous)
            _launch_dkv(q, k, v, do, lse2, delta, dk, dv, None, problem, configs.dkv)
            launch_dq(q, k, v, do, lse2, delta, dq, problem, configs.dq)
        else:
            dq = torch.zeros_like(q, dtype=torch.float32, **contiguous)
            _launch_dkv(q, k, v, do, lse2, delta, dk, dv, dq, problem, configs.fused)
            dq *= scale
    return Grads(dq.to(Q.dtype), dk.to(K.dtype), dv.to(V.dtype))


def check_saved(Q, O, dO, lse, dlse):
    """Raise TypeError or ValueError unless these fit Q."""
    rows = {"lse": lse} if dlse is None else {"lse": lse, "dlse": dlse}
    check_tensors((Q.dtype,), Q=Q, O=O, dO=dO)
    check_tensors((torch.float32,), **rows)
    check_gradient_inputs(Q, O, lse, dO, torch.float32)
    if dlse is not None and dlse.shape != lse.shape:
        raise ValueError(f"dlse has shape {tuple(dlse.shape)} and lse {tuple(lse.shape)}; they must be equal")
    if lse.device != Q.device:
        raise ValueError(f"lse is on {lse.device} and Q on {Q.device}; move them to one device")


def problem_of(q, k, causal, scale, descriptors) -> dict:
    """Return what the kernels of both passes are told of a problem."""
    (H, N_q, d), (H_k, N_k) = q.shape[1:], k.shape[1:3]
    return {
        "H_k": H_k, "group": H // max(H_k, 1), "N_q": N_q, "N_k": N_k,
        "N_padded": -(-N_q // MAX_BLOCK) * MAX_BLOCK, "scale": scale,
        "d": d, "D": max(16, triton.next_power_of_2(d)), "CAUSAL": bool(causal), "DESCRIPTORS": descriptors,
    }  # fmt: skip


def launch_prepare(o, do, lse, dlse, problem):
    """Return lse2 and delta, (B, H_q, N_padded): N_q rounded up to a multiple of every B_r."""
    B, H = o.shape[:2]
    sizes = {name: problem[name] for name in ("N_q", "N_padded", "d", "D")}
    lse2, delta = (torch.empty(B, H, sizes["N_padded"], dtype=torch.float32, device=o.device) for _ in range(2))
    if lse2.numel():
        strides = [X.stride()[:3] for X in (o, do)]
        dlse = dlse if dlse is None else dlse.contiguous()
        grid = (sizes["N_padded"] // ROWS * B * H,)
        _prepare[grid](o, do, lse.contiguous(), dlse, lse2, delta, *strides, H, **sizes, ROWS=ROWS)
    return lse2, delta


def _launch_dkv(q, k, v, do, lse2, delta, dk, dv, dq, problem, config):
    """Write dK and dV; add to dq, fp32, if it is not None, what dQ is without scale."""
    if not dk.numel():
        return
    strides = [X.stride()[:3] for X in (q, k, v, do, dk, dv, dk if dq is None else dq)]
    grid = (-(-k.shape[2] // config.B_C) * k.shape[0] * k.shape[1],)
    if problem["DESCRIPTORS"]:
        q, do, dq = (None if X is None else describe(X, config.B_R, problem["D"]) for X in (q, do, dq))
        k, v = (describe(X, config.B_C, problem["D"]) for X in (k, v))
    cut = problem["CAUSAL"] or problem["N_k"] % config.B_C != 0
    config = config._asdict()
    with told_what_fits(config):
        _dkv[grid](q, k, v, do, lse2, delta, dk, dv, dq, *strides, **problem, **config, CUT=cut)


def launch_dq(q, k, v, do, lse2, delta, dq, problem, config, in_registers=True):
    """Write dQ. in_registers: whether Q_i and dO_i are held there where they fit; d = 256 leaves no room."""
    if not dq.numel():
        return
    strides = [X.stride()[:3] for X in (q, k, v, do, dq)]
    grid = (-(-q.shape[2] // config.B_R) * q.shape[0] * q.shape[1],)
    if problem["DESCRIPTORS"]:
        q, do = (describe(X, config.B_R, problem["D"]) for X in (q, do))
        k, v = (describe(X, config.B_C, problem["D"]) for X in (k, v))
    config = config._asdict()
    with told_what_fits(config):
        in_registers = in_registers and problem["D"] <= 128
        _dq[grid](q, k, v, do, lse2, delta, dq, *strides, **problem, **config, IN_REGISTERS=in_registers)


@triton.jit
def _prepare(
    O, dO, Lse_ptr, dLse_ptr, Lse2_ptr, Delta_ptr, strides_o, strides_do, H, N_q, N_padded,
    d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write what the passes need of each row, in the form in which they need it; rows past N_q weigh nothing.

    lse2: lse in base 2, inf for a row that sees no key, so that 2^(S - lse2) is 0. delta: rowsum(dO * O), less the
    gradient of lse, since both come with P: dS = P * (dP - rowsum(dO * O) + dlse).
    """
    T = N_padded // ROWS
    i, head = tl.program_id(0) % T, tl.program_id(0) // T
    offs_m = i * ROWS + tl.arange(0, ROWS)
    saved, padded = head.to(tl.int64) * N_q + offs_m, head.to(tl.int64) * N_padded + offs_m
    lse = tl.load(Lse_ptr + saved, mask=offs_m < N_q, other=-float("inf"))
    tl.store(Lse2_ptr + padded, tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E))
    o = load(O, strides_o, head // H, head % H, i * ROWS, N_q, d, D, ROWS, True, False).to(tl.float32)
    do = load(dO, strides_do, head // H, head % H, i * ROWS, N_q, d, D, ROWS, True, False).to(tl.float32)
    delta = tl.sum(o * do, axis=1)
    if dLse_ptr is not None:
        delta -= tl.load(dLse_ptr + saved, mask=offs_m < N_q, other=0.0)
    tl.store(Delta_ptr + padded, delta)


@triton.jit
def _dkv(
    Q, K, V, dO, Lse2_ptr, Delta_ptr, dK, dV, dQ,  # dQ: sums in fp32, or None
    strides_q, strides_k, strides_v, strides_do, strides_dk, strides_dv, strides_dq,
    H_k, group, N_q, N_k, N_padded, scale,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, CUT: tl.constexpr,  # CUT: whether any tile is, by the mask or by the end of K
):  # fmt: skip
    T_c = tl.cdiv(N_k, B_C)
    j = tl.program_id(0) % T_c  # under a causal mask the first ones are the longest
    b, h_k = tl.program_id(0) // T_c // H_k, tl.program_id(0) // T_c % H_k
    k = load(K, strides_k, b, h_k, j * B_C, N_k, d, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    v = load(V, strides_v, b, h_k, j * B_C, N_k, d, D, B_C, True, DESCRIPTORS)  # (B_C, D)
    dk = tl.zeros((B_C, D), tl.float32)
    dv = tl.zeros((B_C, D), tl.float32)
    offs_n = j * B_C + tl.arange(0, B_C)

    past = N_k - N_q  # keys before the first query's own
    see_some = tl.maximum(j * B_C - past, 0) // B_R * B_R if CAUSAL else 0  # the first row that may see a key
    see_all = tl.cdiv(tl.maximum((j + 1) * B_C - 1 - past, 0), B_R) * B_R if CAUSAL else 0
    if (j + 1) * B_C > N_k:
        see_all = N_q  # no row sees what is past the end of K
    for g in range(group):
        h = h_k * group + g
        rows = (b.to(tl.int64) * H_k * group + h) * N_padded
        if CUT:
            dk, dv = _stream_rows(
                Q, dO, dQ, Lse2_ptr + rows, Delta_ptr + rows, k, v, dk, dv,
                see_some, tl.minimum(see_all, N_q), offs_n,
                strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale, d, D, B_R, True, CAUSAL, DESCRIPTORS,
            )  # fmt: skip
        dk, dv = _stream_rows(
            Q, dO, dQ, Lse2_ptr + rows, Delta_ptr + rows, k, v, dk, dv, see_all, N_q, offs_n,
            strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale, d, D, B_R, False, CAUSAL, DESCRIPTORS,
        )  # fmt: skip
    store(dK, dk * scale, strides_dk, b, h_k, j * B_C, N_k, d, D, B_C, False)
    store(dV, dv, strides_dv, b, h_k, j * B_C, N_k, d, D, B_C, False)


@triton.jit
def _stream_rows(
    Q, dO, dQ, Lse2_ptr, Delta_ptr, k, v, dk, dv, start_q, end_q, offs_n,
    strides_q, strides_do, strides_dq, b, h, N_q, N_k, scale,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add to dk and dv what rows start_q to end_q of head (b, h) of Q and dO contribute."""
    for start in range(start_q, end_q, B_R):
        offs_m = start + tl.arange(0, B_R)
        q = load(Q, strides_q, b, h, start, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        do = load(dO, strides_do, b, h, start, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
        lse2, delta = tl.load(Lse2_ptr + offs_m), tl.load(Delta_ptr + offs_m)  # (B_R,)
        S_T = tl.dot(k, q.T, input_precision="ieee")  # (B_C, B_R)
        dP_T = tl.dot(v, do.T, input_precision="ieee")  # made after dv, it would be awaited together with dv
        if MASKED:
            visible = (offs_n < N_k)[:, None]
            if CAUSAL:
                visible &= offs_n[:, None] <= (offs_m + N_k - N_q)[None, :]
            S_T = tl.where(visible, S_T, -float("inf"))
        P_T = tl.exp2(S_T * (scale * LOG2_E) - lse2[None, :])
        dv = tl.dot(P_T.to(do.dtype), do, acc=dv, input_precision="ieee")
        dS_T = (P_T * (dP_T - delta[None, :])).to(q.dtype)
        dk = tl.dot(dS_T, q, acc=dk, input_precision="ieee")
        if dQ is not None:
            dq = tl.dot(dS_T.T, k, input_precision="ieee")  # (B_R, D), without scale
            add(dQ, dq, strides_dq, b, h, start, N_q, d, D, B_R, DESCRIPTORS)
    return dk, dv


@triton.jit
def _dq(
    Q, K, V, dO, Lse2_ptr, Delta_ptr, dQ, strides_q, strides_k, strides_v, strides_do, strides_dq,
    H_k, group, N_q, N_k, N_padded, scale,
    d: tl.constexpr, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr, IN_REGISTERS: tl.constexpr,
):  # fmt: skip
    T_r = tl.cdiv(N_q, B_R)
    i = tl.program_id(0) % T_r
    if CAUSAL:
        i = T_r - 1 - i  # the longest rows first, as in `forward`
    head = tl.program_id(0) // T_r
    b, h = head // (H_k * group), head % (H_k * group)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = load(Q, strides_q, b, h, i * B_R, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
    do = load(dO, strides_do, b, h, i * B_R, N_q, d, D, B_R, True, DESCRIPTORS)  # (B_R, D)
    if IN_REGISTERS:
        # Triton leaves a loaded left side in shared memory; each product reads it there. A sum is in registers.
        q += 0.0
        do += 0.0
    rows = head.to(tl.int64) * N_padded + offs_m
    lse2, delta = tl.load(Lse2_ptr + rows), tl.load(Delta_ptr + rows)  # (B_R,)
    dq = tl.zeros((B_R, D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if CAUSAL else N_k
    seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if CAUSAL else N_k
    full = tl.maximum(seen_by_all, 0) // B_C * B_C
    dq = _stream_keys(
        q, do, K, V, lse2, delta, dq, 0, full, offs_m + past,
        strides_k, strides_v, b, h // group, N_k, scale, d, D, B_C, False, CAUSAL, DESCRIPTORS,
    )  # fmt: skip
    dq = _stream_keys(
        q, do, K, V, lse2, delta, dq, full, seen_by_any, offs_m + past,
        strides_k, strides_v, b, h // group, N_k, scale, d, D, B_C, True, CAUSAL, DESCRIPTORS,
    )  # fmt: skip
    store(dQ, dq * scale, strides_dq, b, h, i * B_R, N_q, d, D, B_R, False)


@triton.jit
def _stream_keys(
    q, do, K, V, lse2, delta, dq, start_k, end_k, last_visible,
    strides_k, strides_v, b, h_k, N_k, scale,
    d: tl.constexpr, D: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add to dq what keys start_k to end_k contribute; row r sees keys up to last_visible[r]."""
    for start in range(start_k, end_k, B_C):
        k = load(K, strides_k, b, h_k, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        v = load(V, strides_v, b, h_k, start, N_k, d, D, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        S = tl.dot(q, k.T, input_precision="ieee")  # (B_R, B_C)
        dP = tl.dot(do, v.T, input_precision="ieee")
        if MASKED:
            offs_n = start + tl.arange(0, B_C)
            visible = (offs_n < N_k)[None, :]
            if CAUSAL:
                visible &= offs_n[None, :] <= last_visible[:, None]
            S = tl.where(visible, S, -float("inf"))
        P = tl.exp2(S * (scale * LOG2_E) - lse2[:, None])
        dS = P * (dP - delta[:, None])
        dq = tl.dot(dS.to(k.dtype), k, acc=dq, input_precision="ieee")
    return dq
