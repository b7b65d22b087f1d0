"""The gradient of tensors that changes of scores read: a separate pass, which `bias_gradients` launches.

It holds Q_i and dO_i and streams K and V past them, as the pass for dQ does, and computes dS again, with two
products per tile. So the other passes keep all their registers, and callers without such gradients pay nothing.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from flashlib.kernels.forward import LOG2_E
from flashlib.kernels.launch.load_store import Keys, load, load_k, load_v, strides
from flashlib.kernels.masking import device_side


class BiasRows(NamedTuple):
    """Rows of head (b, h) past which keys are streamed, as in `backward_passes`."""

    q: Any
    do: Any
    lse2: Any
    delta: Any
    b: Any
    h: Any
    r: Any
    limits: Any


@triton.jit(
    do_not_specialize=[*(f"{X}_{axis}" for X in ("q", "k", "v", "do") for axis in "bhn"), "H_k", "N_q", "N_k"],
    do_not_specialize_on_alignment=["group"],
)
def _dbias(
    Q, K, V, dO, Lse2_ptr, Delta_ptr, scale,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, do_b, do_h, do_n,
    H_k, group, N_q, N_k, N_padded, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """Add to the gradients of a mask's biases, or measure what there is to add: see `looked_up.add`."""
    strides_q, strides_do = strides(q_b, q_h, q_n, UNIT), strides(do_b, do_h, do_n, UNIT)
    strides_k, strides_v = strides(k_b, k_h, k_n, UNIT), strides(v_b, v_h, v_n, UNIT)
    T_r = tl.cdiv(N_q, B_R)
    p, head = device_side.program_order(MASK, mask_args, T_r)
    i = device_side.block(MASK, mask_args, head // (H_k * group), p, T_r, True)
    b, h = head // (H_k * group), head % (H_k * group)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = load(Q, strides_q, b, h, i * B_R, N_q, DIMS.d, DIMS.D, B_R, True, DESCRIPTORS)  # (B_R, D)
    do = load(dO, strides_do, b, h, i * B_R, N_q, DIMS.d_v, DIMS.D_V, B_R, True, DESCRIPTORS)  # (B_R, D_V)
    rows = head.to(tl.int64) * N_padded + offs_m
    lse2, delta = tl.load(Lse2_ptr + rows), tl.load(Delta_ptr + rows)  # (B_R,)
    whole, cut, counted = device_side.key_ranges(MASK, mask_args, b, h, p, i, N_q, N_k, B_R, B_C)
    limits = None
    if MASK.variant.bounds is not None:
        limits = MASK.variant.bounds(mask_args.bounds, b, offs_m, N_q, N_k)
    of_rows = BiasRows(q, do, lse2, delta, b, h, offs_m + N_k - N_q, limits)
    keys = Keys(K, V, strides_k, strides_v, h // group, N_k)
    _stream(of_rows, keys, whole, counted, scale, mask_args, DIMS, B_C, False, MASK, DESCRIPTORS)
    _stream(of_rows, keys, cut, counted, scale, mask_args, DIMS, B_C, True, MASK, DESCRIPTORS)


@triton.jit
def _stream(
    rows, keys, span, counted, scale, mask_args,
    DIMS: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add the contribution of keys. span: numbers of tiles, the first and the one after the last."""
    begin, end = span
    for at in range(begin, end):
        start = device_side.start(MASK, counted, at, B_C, MASKED)
        k = load_k(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        v = load_v(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D_V)
        S = tl.dot(rows.q, k.T, input_precision="ieee") * scale  # (B_R, B_C)
        dP = tl.dot(rows.do, v.T, input_precision="ieee")
        offs_n = start + tl.arange(0, B_C)
        r, c = rows.r[:, None], offs_n[None, :]
        after = device_side.changed(MASK, mask_args, S, rows.b, rows.h, r, c)
        if MASKED:
            visible = (offs_n < keys.N)[None, :]
            visible = device_side.seen(MASK, mask_args, visible, c, rows.limits, rows.b, rows.h, r, c)
            after = tl.where(visible, after, -float("inf"))
        P = tl.exp2(after * LOG2_E - rows.lse2[:, None])
        dS = P * (dP - rows.delta[:, None])
        device_side.add_to_biases(MASK, mask_args, S, dS, rows.b, rows.h, r, c)
