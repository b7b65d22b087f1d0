"""The kernels of the backward pass, which `backward` launches: `_prepare`, then `_dkv` and `_dq`.

`_dkv` computes its tiles transposed, keys by queries, so that P^T and dS^T are the left factors of their products
and need not leave the registers. Scores are in base 2, as in `forward`.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from flashlib.kernels.forward import LOG2_E
from flashlib.kernels.launch.load_store import Keys, Strides, add, load, load_k, load_v, store, strides
from flashlib.kernels.masking import device_side, dropout


def _with_strides(*tensors, also):
    """Return a jit for a kernel that takes the strides of these tensors: one compiled kernel serves all sizes."""
    names = [f"{X}_{axis}" for X in tensors for axis in "bhn"]
    return triton.jit(do_not_specialize=[*names, *also], do_not_specialize_on_alignment=["group"])


@triton.jit
def row_sums(
    O, dO, strides_o, strides_do, b, h, start, N, d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Return rowsum(dO * O) of rows start to start + ROWS of head (b, h)."""
    o = load(O, strides_o, b, h, start, N, d, D, ROWS, True, False).to(tl.float32)
    do = load(dO, strides_do, b, h, start, N, d, D, ROWS, True, False).to(tl.float32)
    return tl.sum(o * do, axis=1)


@_with_strides("o", "do", also=("H", "N_q"))
def _delta(
    O, dO, Delta_ptr, o_b, o_h, o_n, do_b, do_h, do_n, H, N_q,
    d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Write rowsum(dO * O) of each row, from which `_prepare` can make delta."""
    T = tl.cdiv(N_q, ROWS)
    i, head = tl.program_id(0) % T, tl.program_id(0) // T
    offs_m = i * ROWS + tl.arange(0, ROWS)
    strides_o, strides_do = strides(o_b, o_h, o_n, UNIT), strides(do_b, do_h, do_n, UNIT)
    delta = row_sums(O, dO, strides_o, strides_do, head // H, head % H, i * ROWS, N_q, d, D, ROWS)
    tl.store(Delta_ptr + head.to(tl.int64) * N_q + offs_m, delta, mask=offs_m < N_q)


@_with_strides("o", "do", also=("H", "N_q", "N_padded"))
def _prepare(
    O, dO, Sums_ptr, Lse_ptr, dLse_ptr, Lse2_ptr, Delta_ptr, o_b, o_h, o_n, do_b, do_h, do_n, H, N_q, N_padded,
    d: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Write lse2 and delta of each row for the passes; rows past N_q contribute nothing.

    lse2: lse in base 2, inf for a row that sees no key, so that 2^(S - lse2) is 0. delta: rowsum(dO * O) minus the
    gradient of lse, since both are multiplied by P: dS = P * (dP - rowsum(dO * O) + dlse). Sums: that rowsum, if
    `_delta` computed it.
    """
    T = N_padded // ROWS
    i, head = tl.program_id(0) % T, tl.program_id(0) // T
    offs_m = i * ROWS + tl.arange(0, ROWS)
    saved, padded = head.to(tl.int64) * N_q + offs_m, head.to(tl.int64) * N_padded + offs_m
    lse = tl.load(Lse_ptr + saved, mask=offs_m < N_q, other=-float("inf"))
    lse2 = tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E)
    # The rounding error of a huge lse could make P huge; with this P is at most 2^4.
    lse2 += tl.maximum(tl.abs(lse2) * 2.0**-20 - 4.0, 0.0)
    tl.store(Lse2_ptr + padded, lse2)
    if Sums_ptr is None:
        strides_o, strides_do = strides(o_b, o_h, o_n, UNIT), strides(do_b, do_h, do_n, UNIT)
        delta = row_sums(O, dO, strides_o, strides_do, head // H, head % H, i * ROWS, N_q, d, D, ROWS)
    else:
        delta = tl.load(Sums_ptr + saved, mask=offs_m < N_q, other=0.0)
    if dLse_ptr is not None:
        delta -= tl.load(dLse_ptr + saved, mask=offs_m < N_q, other=0.0)
    tl.store(Delta_ptr + padded, delta)


class Queries(NamedTuple):
    """A head of Q, dO and dQ that is streamed past keys.

    Pointers or descriptors (dQ: None if nothing is added to it), lse2 and delta of its rows, strides, head (b, h),
    and its number of rows.
    """

    Q: Any
    dO: Any
    dQ: Any
    lse2_ptr: Any
    delta_ptr: Any
    strides_q: Strides
    strides_do: Strides
    strides_dq: Strides
    b: Any
    h: Any
    N: Any


class KeyBlock(NamedTuple):
    """K_j and V_j, their positions, and the limits of the rows that see each, or None."""

    k: Any
    v: Any
    offs: Any
    limits: Any


@_with_strides("q", "k", "v", "do", "dk", "dv", "dq", also=("H_k", "N_q", "N_k"))
def _dkv(
    Q, K, V, dO, dQ, Lse2_ptr, Delta_ptr, dK, dV, scale,  # dQ: sums in fp32, or None
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, do_b, do_h, do_n,
    dk_b, dk_h, dk_n, dv_b, dv_h, dv_n, dq_b, dq_h, dq_n,
    H_k, group, N_q, N_k, N_padded, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    UNIT: tl.constexpr, CUT: tl.constexpr,  # CUT: whether the mask or the end of K cuts any tile
):  # fmt: skip
    strides_q, strides_k, strides_v = (
        strides(q_b, q_h, q_n, UNIT),
        strides(k_b, k_h, k_n, UNIT),
        strides(v_b, v_h, v_n, UNIT),
    )
    strides_do, strides_dq = strides(do_b, do_h, do_n, UNIT), strides(dq_b, dq_h, dq_n, UNIT)
    T_c = tl.cdiv(N_k, B_C)
    p, head = tl.program_id(0) % T_c, tl.program_id(0) // T_c
    j = p  # under a causal mask the first blocks are the longest
    if MASK.variant is not None:
        p, head = device_side.program_order(MASK, mask_args, T_c)
        j = device_side.block(MASK, mask_args, head // H_k, p, T_c, False)
    b, h_k = head // H_k, head % H_k
    k = load(K, strides_k, b, h_k, j * B_C, N_k, DIMS.d, DIMS.D, B_C, True, DESCRIPTORS)  # (B_C, D)
    v = load(V, strides_v, b, h_k, j * B_C, N_k, DIMS.d_v, DIMS.D_V, B_C, True, DESCRIPTORS)  # (B_C, D_V)
    dk = tl.zeros((B_C, DIMS.D), tl.float32)
    dv = tl.zeros((B_C, DIMS.D_V), tl.float32)
    offs_n = j * B_C + tl.arange(0, B_C)

    past = N_k - N_q  # keys before the first query's own
    see_some = tl.maximum(j * B_C - past, 0) // B_R * B_R if MASK.causal else 0  # the first row that may see a key
    see_all = tl.cdiv(tl.maximum((j + 1) * B_C - 1 - past, 0), B_R) * B_R if MASK.causal else 0
    if CUT:
        if (j + 1) * B_C > N_k:
            see_all = N_q  # no row sees what is past the end of K
    else:
        tl.assume(N_q > 0)  # otherwise a path leads around the loop, and ptxas makes each product in it wait
    limits = None
    if MASK.variant is not None:
        if MASK.variant.bounds is not None:
            limits = MASK.variant.bounds(mask_args.bounds, b, offs_n, N_q, N_k)
    keys = KeyBlock(k, v, offs_n, limits)
    LATE: tl.constexpr = DIMS.D != 64 and (CUT or DIMS.D > 128)
    for g in range(group):
        h = h_k * group + g
        rows = (b.to(tl.int64) * H_k * group + h) * N_padded
        if MASK.variant is None:
            counted = None
            cut, whole = (see_some, tl.minimum(see_all, N_q)), (see_all, N_q)
        else:  # tiles are numbered, the cut ones first
            counted, n_cut, n = device_side.tiles(MASK, mask_args, b, h, p, j, N_k, N_q, N_k, B_C, B_R, True)
            cut, whole = (0, n_cut), (n_cut, n)
        queries = Queries(
            Q, dO, dQ, Lse2_ptr + rows, Delta_ptr + rows, strides_q, strides_do, strides_dq, b, h, N_q
        )
        if CUT:
            dk, dv = _stream_rows(
                dk,
                dv,
                keys,
                queries,
                cut,
                counted,
                N_k,
                scale,
                mask_args,
                DIMS,
                B_R,
                True,
                MASK,
                DESCRIPTORS,
                LATE,
            )
        dk, dv = _stream_rows(
            dk, dv, keys, queries, whole, counted, N_k, scale, mask_args, DIMS, B_R, False, MASK, DESCRIPTORS, LATE
        )
    store(dK, dk * scale, strides(dk_b, dk_h, dk_n, UNIT), b, h_k, j * B_C, N_k, DIMS.d, DIMS.D, B_C)
    store(dV, dv, strides(dv_b, dv_h, dv_n, UNIT), b, h_k, j * B_C, N_k, DIMS.d_v, DIMS.D_V, B_C)


@triton.jit
def _stream_rows(
    dk, dv, keys, queries, span, counted, N_k, scale, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, MASKED: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    LATE: tl.constexpr,
):  # fmt: skip
    """Add the contribution of rows to dk and dv. span: first row and end; for a variant, numbers of tiles.

    LATE: lse2 and delta are loaded where they are needed, as no registers are free to hold them earlier.
    At d = 64 there are enough.
    """
    begin, end = span
    b, h, N_q = queries.b, queries.h, queries.N
    for at in range(begin, end, B_R if MASK.variant is None else 1):
        start = at if MASK.variant is None else device_side.start(MASK, counted, at, B_R, MASKED)
        offs_m = start + tl.arange(0, B_R)
        q = load(
            queries.Q, queries.strides_q, b, h, start, N_q, DIMS.d, DIMS.D, B_R, True, DESCRIPTORS
        )  # (B_R, D)
        do = load(queries.dO, queries.strides_do, b, h, start, N_q, DIMS.d_v, DIMS.D_V, B_R, True, DESCRIPTORS)
        if not LATE:
            lse2, delta = tl.load(queries.lse2_ptr + offs_m), tl.load(queries.delta_ptr + offs_m)  # (B_R,)
        S_T = tl.dot(keys.k, q.T, input_precision="ieee")  # (B_C, B_R)
        dP_T = tl.dot(keys.v, do.T, input_precision="ieee")  # if after dv, the loop would wait for both at once
        if MASK.variant is not None:
            r, c = (offs_m + N_k - N_q)[None, :], keys.offs[:, None]
        factor = scale * LOG2_E
        if MASK.scored:
            slope = device_side.slopes(MASK, mask_args, S_T * scale, b, h, r, c)
            S_T = device_side.changed(MASK, mask_args, S_T * scale, b, h, r, c)
            factor = LOG2_E
        if MASKED:
            visible = (keys.offs < N_k)[:, None]
            if MASK.causal:
                visible &= keys.offs[:, None] <= (offs_m + N_k - N_q)[None, :]
            if MASK.variant is not None:
                visible = device_side.seen(MASK, mask_args, visible, offs_m[None, :], keys.limits, b, h, r, c)
            S_T = tl.where(visible, S_T, -float("inf"))
        if LATE:
            lse2, delta = tl.load(queries.lse2_ptr + offs_m), tl.load(queries.delta_ptr + offs_m)
        P_T = tl.exp2(S_T * factor - lse2[None, :])
        weights = P_T
        if MASK.drops:
            factors = dropout.factors(mask_args.dropout, b, h, r, c)
            weights = P_T * factors
            dP_T *= factors
        dv = tl.dot(weights.to(do.dtype), do, acc=dv, input_precision="ieee")
        dS_T = P_T * (dP_T - delta[None, :])
        if MASK.scored:
            dS_T *= slope
        dS_T = dS_T.to(q.dtype)
        dk = tl.dot(dS_T, q, acc=dk, input_precision="ieee")
        if queries.dQ is not None:
            dq = tl.dot(dS_T.T, keys.k, input_precision="ieee")  # (B_R, D), without scale
            add(queries.dQ, dq, queries.strides_dq, b, h, start, N_q, DIMS.d, DIMS.D, B_R, DESCRIPTORS)
    return dk, dv


class BackwardRows(NamedTuple):
    """Rows of head (b, h) past which keys are streamed.

    Q_i, dO_i, lse2, delta, their positions r, and the limits of what each sees, or None.
    """

    q: Any
    do: Any
    lse2: Any
    delta: Any
    b: Any
    h: Any
    r: Any
    limits: Any


@_with_strides("q", "k", "v", "do", "dq", also=("H_k", "N_q", "N_k"))
def _dq(
    Q, K, V, dO, Lse2_ptr, Delta_ptr, dQ, scale,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, do_b, do_h, do_n, dq_b, dq_h, dq_n,
    H_k, group, N_q, N_k, N_padded, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
    IN_REGISTERS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    strides_q, strides_do = strides(q_b, q_h, q_n, UNIT), strides(do_b, do_h, do_n, UNIT)
    strides_k, strides_v = strides(k_b, k_h, k_n, UNIT), strides(v_b, v_h, v_n, UNIT)
    T_r = tl.cdiv(N_q, B_R)
    p, head = tl.program_id(0) % T_r, tl.program_id(0) // T_r
    i = p
    if MASK.causal:
        i = T_r - 1 - i  # the longest rows first, as in `forward`
    if MASK.variant is not None:
        p, head = device_side.program_order(MASK, mask_args, T_r)
        i = device_side.block(MASK, mask_args, head // (H_k * group), p, T_r, True)
    b, h = head // (H_k * group), head % (H_k * group)
    offs_m = i * B_R + tl.arange(0, B_R)
    q = load(Q, strides_q, b, h, i * B_R, N_q, DIMS.d, DIMS.D, B_R, True, DESCRIPTORS)  # (B_R, D)
    do = load(dO, strides_do, b, h, i * B_R, N_q, DIMS.d_v, DIMS.D_V, B_R, True, DESCRIPTORS)  # (B_R, D_V)
    if IN_REGISTERS:
        # Triton leaves a loaded left factor in shared memory, where each product reads it. A sum is in registers.
        q += 0.0
        do += 0.0
    rows = head.to(tl.int64) * N_padded + offs_m
    lse2, delta = tl.load(Lse2_ptr + rows), tl.load(Delta_ptr + rows)  # (B_R,)
    dq = tl.zeros((B_R, DIMS.D), tl.float32)

    past = N_k - N_q  # keys before the first query's own
    whole, cut, counted = device_side.key_ranges(MASK, mask_args, b, h, p, i, N_q, N_k, B_R, B_C)
    limits = None
    if MASK.variant is not None:
        if MASK.variant.bounds is not None:
            limits = MASK.variant.bounds(mask_args.bounds, b, offs_m, N_q, N_k)
    # r and the head of K and V are computed for each stream: if no tile is cut, they are not kept
    dq = _stream_keys(
        dq, BackwardRows(q, do, lse2, delta, b, h, offs_m + past, limits),
        Keys(K, V, strides_k, strides_v, h // group, N_k), whole, counted, scale, mask_args,
        DIMS, B_C, False, MASK, DESCRIPTORS,
    )  # fmt: skip
    dq = _stream_keys(
        dq, BackwardRows(q, do, lse2, delta, b, h, offs_m + past, limits),
        Keys(K, V, strides_k, strides_v, h // group, N_k), cut, counted, scale, mask_args,
        DIMS, B_C, True, MASK, DESCRIPTORS,
    )  # fmt: skip
    store(dQ, dq * scale, strides(dq_b, dq_h, dq_n, UNIT), b, h, i * B_R, N_q, DIMS.d, DIMS.D, B_R)


@triton.jit
def _stream_keys(
    dq, rows, keys, span, counted, scale, mask_args,
    DIMS: tl.constexpr, B_C: tl.constexpr, MASKED: tl.constexpr, MASK: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Add the contribution of keys to dq. span: as in `forward._stream`."""
    begin, end = span
    for at in range(begin, end, B_C if MASK.variant is None else 1):
        start = at if MASK.variant is None else device_side.start(MASK, counted, at, B_C, MASKED)
        k = load_k(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D)
        v = load_v(keys, rows.b, start, DIMS, B_C, MASKED, DESCRIPTORS)  # (B_C, D_V)
        S = tl.dot(rows.q, k.T, input_precision="ieee")  # (B_R, B_C)
        dP = tl.dot(rows.do, v.T, input_precision="ieee")
        offs_n = start + tl.arange(0, B_C)
        if MASK.variant is not None:
            r, c = rows.r[:, None], offs_n[None, :]
        factor = scale * LOG2_E
        if MASK.scored:
            slope = device_side.slopes(MASK, mask_args, S * scale, rows.b, rows.h, r, c)
            S = device_side.changed(MASK, mask_args, S * scale, rows.b, rows.h, r, c)
            factor = LOG2_E
        if MASKED:
            visible = (offs_n < keys.N)[None, :]
            if MASK.causal:
                visible &= offs_n[None, :] <= rows.r[:, None]
            if MASK.variant is not None:
                visible = device_side.seen(MASK, mask_args, visible, c, rows.limits, rows.b, rows.h, r, c)
            S = tl.where(visible, S, -float("inf"))
        P = tl.exp2(S * factor - rows.lse2[:, None])
        if MASK.drops:
            dP *= dropout.factors(mask_args.dropout, rows.b, rows.h, r, c)
        dS = P * (dP - rows.delta[:, None])
        if MASK.scored:
            dS *= slope
        dq = tl.dot(dS.to(k.dtype), k, acc=dq, input_precision="ieee")
    return dq
