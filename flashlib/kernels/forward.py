"""FlashAttention-2, forward pass, in Triton.

One program computes one row block of O: it holds Q_i, streams K and V past it, and keeps m, l and O_acc in
registers. Three things differ from `tiled`. Scores are kept in base 2, since the hardware has exp2 and not exp:
scale * log2(e) is folded into the one multiplication that every score needs anyway. Keys are streamed in two
parts: whole tiles that every row of the block sees, without a mask, then the tiles cut by the causal mask or by
the end of K. And a row block is computed twice if its scores turn out to be huge.

Why twice: the compiler makes one instruction of S * scale_log2e - m, which rounds once, while m was rounded
before. So the maximum itself does not give 2^0 but 2^r, where r is what m lost in rounding: nothing for ordinary
scores, and up to 2^32 for scores of 1e9. The second time m is subtracted first, which is exact. It takes one
instruction more for each score, 2 % of the time on an H200, so not every call does it. Calls that load tiles
through pointers do: registers would not suffice for both ways.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from flashlib.inputs import resolve_scale
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import (
    as_autocast,
    check_attention,
    check_no_gradient,
    check_readable,
    kernel_dtype,
    kernel_input,
    on_device_of,
    ready,
    resolve_out_dtype,
    uncompiled,
)
from flashlib.kernels.launch.load_store import HeadDims, Keys, load, load_k, load_v, store, strides
from flashlib.kernels.masking import biases, device_side, dropout, prepare
from flashlib.kernels.masking.device_side import MaskArgs
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.sparsity import sparsity_of
from flashlib.masks import Mask
from flashlib.types import Attention

LOG2_E = tl.constexpr(math.log2(math.e))
HEAD_DIMS = range(16, 257)
FUSED = tl.constexpr(4096.0)  # scores in base 2 up to which a fused multiply-add is right: see `_forward`


@uncompiled
def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: Mask | None = None,
    scale: float | None = None, B_r: int | None = None, B_c: int | None = None, num_warps: int | None = None,
    num_stages: int | None = None, descriptors: bool | None = None, out_dtype: torch.dtype | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row.

    Q: (B, H_q, N_q, d); K: (B, H_k, N_k, d); V: (B, H_k, N_k, d_v); all float16, bfloat16 or float32, any N_q and
    N_k, any strides, d and d_v from 16 to 256. H_q is a multiple of H_k: query head h reads head
    h // (H_q / H_k) of K and V (GQA; MQA if H_k = 1). O: (B, H_q, N_q, d_v), the dtype of Q; lse: (B, H_q, N_q),
    fp32. fp32 products are IEEE, not tf32. Any finite scores, from 0 to 1e30 in size. Under torch.autocast, Q, K
    and V are cast to its dtype.
    causal: query r sees key c if c <= r + N_k - N_q (aligned bottom-right). A row that sees no key gives O = 0
    and lse = -inf. mask: one of `flashlib.masks`, for any sizes; with causal, what both see. Tiles that it hides
    are not computed. The first call with a mask and sizes prepares it (`masking.prepare`) on the current stream:
    make a mask once, and pass it again. A mask of a function without a kernel is prepared in each call, and in
    each replay of a CUDA graph, where the function must look up tensors on the GPU. Before a graph is captured,
    call this once with the same sizes; and keep the mask as long as the graph, since its numbers on the GPU are
    freed with it. torch.compile does not trace it.
    B_r, B_c: powers of two from 16 to 256; num_warps, num_stages: Triton's. Default: `tile_sizes.default`.
    descriptors: load tiles through tensor descriptors (TMA on Hopper and later) or through pointers; default:
    descriptors for 16-bit tensors where the GPU has TMA, alignment allows it and the problem is not small.
    out_dtype: of O, torch.float32 or None for the dtype of Q. If keys come in parts, as in a ring, O of each part
    is merged by its lse; were it rounded to 16 bits each time, the error would grow with the number of parts.
    Raises TypeError or ValueError for anything else, before any work, and ValueError where the given tiles do
    not fit the GPU.
    Source: FlashAttention-2, Algorithm 1; grouped heads: Ainslie and others, GQA (2023).
    """
    Q, K, V = as_autocast(Q, K, V)
    mask = prepare.mask_of_call(mask)
    plan = plan_of(Q, K, V, causal, mask, B_r, B_c, num_warps, num_stages, descriptors, out_dtype)
    check_no_gradient(Q=Q, K=K, V=V, **biases.tensors_by_name(mask))
    return run(Q, K, V, resolve_scale(scale, Q.shape[-1]), plan, mask=mask)


class ForwardPlan(NamedTuple):
    """A call of `attention`, except its tensors and its scale. launch: None if no row sees a key.

    O, lse: shape and strides of each. out_dtype: of O. ready: whether the kernel takes Q, K and V as they are.
    """

    launch: planning.Launch | None
    descriptors: bool
    dims: HeadDims
    O: tuple
    lse: tuple
    out_dtype: torch.dtype
    ready: bool


PLANS = planning.PlansOfMasks()


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, mask: Mask | None, *asked: Any
) -> ForwardPlan:
    """Return the plan for these tensors; raise what `attention` raises, except about gradients."""
    plans = PLANS.of(mask)
    key = plans.key((Q, K, V, *biases.tensors_read(mask)), causal, *asked)
    if found := plans.get(key):
        return found
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True, differentiable=True, values=True)
    check_readable(Q=Q, K=K, V=V)
    checked = prepare.checked_mask(mask, bool(causal), Q, K)
    sparsity = sparsity_of(*checked, Q.shape[2], K.shape[2])
    masking = functools.partial(prepare.prepared_mask, *checked)
    return plans.keep(key, plan(Q, K, V, causal, masking, sparsity, *asked))


def plan(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, masking: Callable,
    sparsity: tile_sizes.Sparsity, B_r: int | None = None, B_c: int | None = None, num_warps: int | None = None,
    num_stages: int | None = None, descriptors: bool | None = None, out_dtype: torch.dtype | None = None,
    tokens_first: bool = False,
) -> ForwardPlan:  # fmt: skip
    """Return the plan for tensors that were checked.

    masking: `prepare.prepared_mask` for one mask, a function of PassSizes.
    tokens_first: Q, K and V are one sequence of packed tokens, and `run` gets and returns (N, H, d).
    """
    asked = planning.launch_options(B_r, B_c, num_warps, num_stages)
    out_dtype = resolve_out_dtype(out_dtype, Q.dtype)
    q, k, v = map(kernel_input, (Q, K, V))
    descriptors = planning.resolve_descriptors(
        descriptors, k, v, worthwhile=q.numel() * k.shape[2] >= tile_sizes.SMALL
    )
    (B, H, N_q, d), (H_k, N_k) = q.shape, k.shape[1:3]
    dims = HeadDims.of(d, v.shape[3])
    config = tile_sizes.default(
        dims.widest, q.dtype, descriptors, q.device,
        causal=causal, N_q=N_q, N_k=N_k, heads=B * H, sparsity=sparsity, **asked,
    )  # fmt: skip
    o = planning.laid_out((B, H, N_q, v.shape[3]), tokens_first)
    outputs = _outputs(o, tokens_first)
    empty = ForwardPlan(None, descriptors, dims, outputs[0], outputs[1], out_dtype, ready(Q, K, V))
    if not q.numel() or sparsity.keys == 0:
        return empty
    unit, strides = planning.in_units(q, k, v, o)
    mask_args, code = masking(PassSizes(B, H, N_q, N_k, config.B_R, config.B_C, q.device))
    constants = {"DIMS": dims, "MASK": code, "DESCRIPTORS": descriptors, "UNIT": unit}
    # Triton 3.7 makes warps wait for each other before the tile loaded last is used. With more warps than a
    # product takes, the top of the loop, where no warp is ahead, is better than the middle of the softmax.
    constants["V_FIRST"] = config.num_warps > 4
    sizes = *strides, H, H // max(H_k, 1), N_q, N_k, mask_args
    grid = triton.cdiv(N_q, config.B_R) * B * H
    launch = planning.Launch(_forward, grid, sizes, constants, config._asdict())
    return empty._replace(launch=launch)


def _outputs(o, tokens_first):
    """Return shape and strides of O and lse as `run` returns them. The kernel writes lse head after head."""
    lse = torch.empty(o.shape[:3], device="meta")
    outputs = (o[0].transpose(0, 1), lse[0].mT) if tokens_first else (o, lse)
    return [(tuple(X.shape), X.stride()) for X in outputs]


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, scale: float, plan: ForwardPlan,
    mask_args: MaskArgs | None = None, mask: Mask | None = None,
) -> Attention:  # fmt: skip
    """Do what `attention` does, by its plan; nothing is checked.

    mask_args: replace the plan's. mask: its biases are read, if it has any.
    """
    q, k, v = (Q, K, V) if plan.ready else map(kernel_input, (Q, K, V))
    o = q.new_empty_strided(*plan.O, dtype=kernel_dtype(plan.out_dtype))
    lse = q.new_empty_strided(*plan.lse, dtype=torch.float32)
    if plan.launch:
        if plan.descriptors:
            rows = plan.launch.config["B_C"]
            k, v = planning.describe(k, rows, plan.dims.D.value), planning.describe(v, rows, plan.dims.D_V.value)
        if mask is not None and mask.biased:
            mask_args = biases.filled(plan.launch.sizes[-1], map(biases.read, mask.biases))
        with on_device_of(q):
            plan.launch(q, k, v, o, lse, scale * LOG2_E.value, mask_args=mask_args)
    else:
        o.zero_()
        lse.fill_(-math.inf)
    return Attention(o if plan.ready else o.to(plan.out_dtype), lse)


class ForwardRows(NamedTuple):
    """Rows of head (b, h): Q_i, their positions r, and the limits of what each sees, or None."""

    q: Any
    b: Any
    h: Any
    r: Any
    limits: Any


@triton.jit(
    do_not_specialize=[
        *(f"{X}_{axis}" for X in "qkvo" for axis in "bhn"), "H", "N_q", "N_k",
    ],
    do_not_specialize_on_alignment=["group"],
)  # fmt: skip
def _forward(
    Q_ptr, K, V, O_ptr, Lse_ptr, scale_log2e,  # K, V: pointers, or tensor descriptors
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, o_b, o_h, o_n,  # strides of batch, head and row, in UNITs
    H, group, N_q, N_k, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    UNIT: tl.constexpr, V_FIRST: tl.constexpr,
):  # fmt: skip
    T_r = tl.cdiv(N_q, B_R)
    p, head = tl.program_id(0) % T_r, tl.program_id(0) // T_r
    i = p
    if MASK.causal:
        i = T_r - 1 - i  # the longest rows first: short ones fill the gaps at the end
    if MASK.variant is not None:
        p, head = device_side.program_order(MASK, mask_args, T_r)
        i = device_side.block(MASK, mask_args, head // H, p, T_r, True)
    b = head // H
    h = head % H
    h_k = h // group  # the head of K and V
    offs_m = i * B_R + tl.arange(0, B_R)
    keys = Keys(K, V, strides(k_b, k_h, k_n, UNIT), strides(v_b, v_h, v_n, UNIT), h_k, N_k)
    q = load(Q_ptr, strides(q_b, q_h, q_n, UNIT), b, h, i * B_R, N_q, DIMS.d, DIMS.D, B_R, True, False)  # (B_R, D)

    m, l, O_acc, largest = _attend(
        q, keys, b, h, p, i, offs_m, N_q, scale_log2e, mask_args,
        DIMS, B_R, B_C, MASK, DESCRIPTORS, V_FIRST, not DESCRIPTORS and not MASK.scored,
    )  # fmt: skip
    if DESCRIPTORS and not MASK.scored:
        if tl.max(largest) > FUSED:
            m, l, O_acc, largest = _attend(
                q, keys, b, h, p, i, offs_m, N_q, scale_log2e, mask_args,
                DIMS, B_R, B_C, MASK, DESCRIPTORS, V_FIRST, True,
            )  # fmt: skip

    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O = O_acc / divisor[:, None]
    store(O_ptr, O, strides(o_b, o_h, o_n, UNIT), b, h, i * B_R, N_q, DIMS.d_v, DIMS.D_V, B_R)
    lse = (m + tl.log2(divisor)) / LOG2_E
    tl.store(Lse_ptr + (b.to(tl.int64) * H + h) * N_q + offs_m, lse, mask=offs_m < N_q)


@triton.jit
def _attend(
    q, keys, b, h, p, i, offs_m, N_q, scale_log2e, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    V_FIRST: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Return m in base 2, l and O_acc of a row block, and the largest magnitude of each row's running maxima."""
    m = tl.full((B_R,), -float("inf"), tl.float32)
    lowest = tl.zeros((B_R,), tl.float32)  # of the maxima, since a huge negative one may be replaced
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, DIMS.D_V), tl.float32)

    past = keys.N - N_q  # keys before the first query's own
    whole, cut, counted = device_side.key_ranges(MASK, mask_args, b, h, p, i, N_q, keys.N, B_R, B_C)
    limits = None
    if MASK.variant is not None:
        if MASK.variant.bounds is not None:
            limits = MASK.variant.bounds(mask_args.bounds, b, offs_m, N_q, keys.N)
    state = m, lowest, l, O_acc
    # r is computed for each stream: if no tile is cut, it is not kept
    state = _stream(
        state, ForwardRows(q, b, h, offs_m + past, limits), keys, whole, counted, scale_log2e, mask_args,
        DIMS, B_C, False, MASK, DESCRIPTORS, V_FIRST, EXACT,
    )  # fmt: skip
    m, lowest, l, O_acc = _stream(
        state, ForwardRows(q, b, h, offs_m + past, limits), keys, cut, counted, scale_log2e, mask_args,
        DIMS, B_C, True, MASK, DESCRIPTORS, V_FIRST, EXACT,
    )  # fmt: skip
    if EXACT:
        m *= scale_log2e
    return m, l, O_acc, tl.maximum(m, -lowest)


@triton.jit
def _stream(
    state, rows, keys, span, counted, scale_log2e, mask_args,
    DIMS: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    V_FIRST: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Update m, l and O_acc of a row block with keys.

    span: first key and end; for a variant, numbers of tiles.
    EXACT: m is in units of S, not in base 2, and is subtracted before the scale is applied.
    """
    m, lowest, l, O_acc = state
    begin, end = span
    factor = 1.0 if MASK.scored else scale_log2e
    for at in range(begin, end, B_C if MASK.variant is None else 1):
        start = at if MASK.variant is None else device_side.start(MASK, counted, at, B_C, MASKED)
        # The loop waits once for both tiles. Another wait for v, after the softmax, costs up to a tenth.
        if V_FIRST:
            v = load_v(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D_V)
        k = load_k(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        if not V_FIRST:
            v = load_v(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)
        S = tl.dot(rows.q, k.T, input_precision="ieee")  # (B_R, B_C)
        offs_n = start + tl.arange(0, B_C)
        if MASK.variant is not None:
            r, c = rows.r[:, None], offs_n[None, :]
        if MASK.scored:
            scaled = S * (scale_log2e / LOG2_E)
            S = device_side.changed(MASK, mask_args, scaled, rows.b, rows.h, r, c) * LOG2_E
        if MASKED:
            visible = (offs_n < keys.N)[None, :]
            if MASK.causal:
                visible &= offs_n[None, :] <= rows.r[:, None]
            if MASK.variant is not None:
                visible = device_side.seen(MASK, mask_args, visible, c, rows.limits, rows.b, rows.h, r, c)
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        if EXACT:
            m = tl.maximum(m_old, tl.max(S, axis=1))
        else:
            m = tl.maximum(m_old, tl.max(S, axis=1) * factor)
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        if EXACT:
            alpha = tl.exp2((m_old - shift) * factor)
            P = tl.exp2((S - shift[:, None]) * factor)
        else:
            lowest = tl.minimum(lowest, shift)
            alpha = tl.exp2(m_old - shift)
            P = tl.exp2(S * factor - shift[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        if MASK.drops:
            P *= dropout.factors(mask_args.dropout, rows.b, rows.h, r, c)
        O_acc = tl.dot(P.to(v.dtype), v, acc=alpha[:, None] * O_acc, input_precision="ieee")
    return m, lowest, l, O_acc
