"""The kernels of decoding, which `decode` launches: `_partial` for a part of the keys, then `_merge`.

The keys of a sequence are split into parts, so that a few queries occupy the whole GPU. A program streams one part
past the rows of one head of K and V, that is, the new queries of all query heads of its group, and writes a State:
m, l and O_acc. `_merge` merges the States of a row, in any order. The GPU decides how many parts
a sequence has, from the lengths in its memory: parts are about equally long, and the grid does not depend on
lengths, so one CUDA graph serves all of them.

Source: Dao and others, Flash-Decoding (2023); pages: Kwon and others, PagedAttention (2023).
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from flashlib.kernels.forward import LOG2_E
from flashlib.kernels.masking import device_side

FEW = tl.constexpr(8)  # the most pages of a tile that are looked up a tile ahead, one by one
AFTER_O = tl.constexpr(4)  # numbers of a State after O_acc: m, l, and two that keep States in units of 16 bytes


class Sequences(NamedTuple):
    """The sequences of a cache: lengths (None: all are full), their number, new rows of each, and its capacity.

    shared: keys at the beginning that are left out. left: keys before a row's own that it sees. parts: how many
    there should be for one head in all sequences; there are at most B - 1 more.
    """

    lengths_ptr: Any
    B: Any
    N_q: Any
    capacity: Any
    shared: Any
    left: Any
    parts: Any


class At(NamedTuple):
    """Where rows of a head of K or V are, in elements: of the head, of each page, of each row of a page."""

    head: Any
    page: Any
    row: Any


class Extras(NamedTuple):
    """Pointers to numbers of each sequence, or None: how many keys of padding come first, and its slopes.

    stride: from a sequence's slopes to the next one's, 0 if all have the same.
    """

    padding: Any
    slopes: Any
    stride: Any


class Stored(NamedTuple):
    """A head of the cache: pointers to K, V, scales (or None) and the pages of a sequence, and its offsets.

    own: the number of a sequence in a contiguous cache.
    """

    K_ptr: Any
    V_ptr: Any
    k_scale_ptr: Any
    v_scale_ptr: Any
    table: Any
    own: Any
    k_at: At
    v_at: At
    s_at: At


class DecodeRows(NamedTuple):
    """The rows of a program: q, its unit or None, sequence b; each row's head, position r and ancestors as bits.

    slopes: each row's, of ALiBi, or None.
    """

    q: Any
    q_unit: Any
    b: Any
    h: Any
    r: Any
    bits: Any
    slopes: Any


class Bounds(NamedTuple):
    """The bounds of what rows see: the sequence's length, how many tokens are not new, and keys around r."""

    length: Any
    past: Any
    shared: Any
    left: Any
    right: Any


@triton.jit
def _tiles(sequences, b, B_C: tl.constexpr):
    """Return the lengths of sequences b, the first tile that the rows of each see, and how many tiles it has."""
    length = tl.zeros_like(b) + sequences.capacity
    if sequences.lengths_ptr is not None:
        length = tl.load(sequences.lengths_ptr + b, mask=b < sequences.B, other=0)
        length = tl.minimum(tl.maximum(length, 0), sequences.capacity).to(tl.int32)
    first = tl.maximum(length - sequences.N_q - sequences.left, sequences.shared) // B_C
    return length, first, tl.where(b < sequences.B, tl.maximum(tl.cdiv(length, B_C) - first, 0), 0)


@triton.jit
def _parts(sequences, B_C: tl.constexpr, B_P: tl.constexpr):
    """Return how many parts each of B_P sequences has, and how many it has together with those before it."""
    b = tl.arange(0, B_P)
    _, _, tiles = _tiles(sequences, b, B_C)
    own = tl.where(b < sequences.B, _own(tiles, tl.sum(tiles), sequences.parts), 0)
    return own, tl.cumsum(own)


@triton.jit
def _own(tiles, in_all, parts):
    """Return how many parts sequences with these numbers of tiles have: at least one, as rows may see nothing."""
    most = tl.maximum(tl.cdiv(in_all, parts), 1)
    return tl.maximum(tl.cdiv(tiles, most), 1)


@triton.jit
def _task(sequences, part, B_C: tl.constexpr, B_P: tl.constexpr):
    """Return a part's sequence, the sequence's first part, number of parts and length, and the part's tiles.

    A sequence with 0 parts does not exist: the grid is for the most parts that there can be. If all are full, they
    have as many parts each; if there is only one sequence, it is known before its length has arrived.
    """
    if sequences.lengths_ptr is None:
        length, first, tiles = _tiles(sequences, 0 * part, B_C)
        each_has = _own(tiles, tiles * sequences.B, sequences.parts)
        b = part // each_has
        first_part, n = b * each_has, tl.where(b < sequences.B, each_has, 0)
    elif B_P == 1:
        b, first_part = 0 * part, 0 * part
        length, first, tiles = _tiles(sequences, b, B_C)
        n = _own(tiles, tiles, sequences.parts)
        n = tl.where(part < n, n, 0)
    else:
        own, ends = _parts(sequences, B_C, B_P)
        b = tl.sum((ends <= part).to(tl.int32))
        its = tl.arange(0, B_P) == b
        n, first_part = tl.sum(tl.where(its, own, 0)), tl.sum(tl.where(its, ends - own, 0))
        length, first, tiles = _tiles(sequences, b, B_C)
    # Part k begins at tiles * k // n. Computed like this it fits 32 bits, in which divisions are much faster.
    k, divisor = part - first_part, tl.maximum(n, 1)
    each, more = tiles // divisor, tiles % divisor
    begin = first + each * k + more * k // divisor
    return b, first_part, n, length, begin, first + each * (k + 1) + more * (k + 1) // divisor


SIZES = [
    *(f"{X}_{axis}" for X in "qkv" for axis in "bhn"), "s_b", "s_h", "table_b", "B", "H_k", "group", "N_q",
    "capacity", "shared", "left", "right", "parts",
]  # fmt: skip


@triton.jit(do_not_specialize=SIZES)
def _partial(
    Q_ptr, K_ptr, V_ptr, K_scale_ptr, V_scale_ptr, Lengths_ptr, Table_ptr, States_ptr, Sink_ptr, O_ptr, Lse_ptr,
    scale_log2e,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, s_b, s_h,  # strides; b: of pages, where there are pages
    table_b, B, H_k, group, N_q, capacity, shared, left, right, parts, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, B_P: tl.constexpr, MASK: tl.constexpr,
    TREE: tl.constexpr, PAGE: tl.constexpr, COMPUTE: tl.constexpr, UNIT: tl.constexpr,  # q, k, v strides in UNITs
    PAIRS: tl.constexpr, EARLY: tl.constexpr, FINISH: tl.constexpr,
):  # fmt: skip
    """Write O_acc, m and l, the States of the rows of one head of K and V for one part of the keys.

    m is in units of the products q . k, or of changed scores times log2(e), so that it can be subtracted exactly.
    FINISH: the only part of a sequence writes O and lse instead, and `_merge` leaves the sequence out.
    TREE: mask_args.bounds are Ancestors.
    PAIRS: V is in fp8, and two of its columns are read as one number.
    EARLY: a kernel may start before the last one has ended, and then waits inside: this one for the kernels that
    write Q and the cache, `_merge` for this one.
    """
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    T_r = tl.cdiv(group * N_q, B_R)
    block, h_k, part = tl.program_id(0) % T_r, tl.program_id(0) // T_r % H_k, tl.program_id(0) // T_r // H_k
    sequences = Sequences(Lengths_ptr, B, N_q, capacity, shared, left, parts)
    b, _, n, length, begin, end = _task(sequences, part, B_C, B_P)
    row = block * B_R + tl.arange(0, B_R)
    inside = row < group * N_q
    i, h = row % N_q, tl.minimum(h_k * group + row // N_q, (h_k + 1) * group - 1)
    at = (b.to(tl.int64) * q_b + h.to(tl.int64) * q_h + i.to(tl.int64) * q_n) * UNIT
    Q_i = _rows(Q_ptr, at, inside & (b < B), DIMS.d, DIMS.D, True)  # (B_R, D); on its way before n is known
    if n > 0:
        q, q_unit = _in_units(Q_i, COMPUTE, K_scale_ptr is not None)
        table, bits = Table_ptr, tl.zeros((B_R,), tl.int32)
        if PAGE > 0:
            table += b.to(tl.int64) * table_b
        if TREE:
            bits = tl.load(mask_args.bounds.bits + b * mask_args.bounds.stride + i)
        first, own, slopes = shared, b, None
        if PAGE == 0:
            if Table_ptr is not None:
                own = tl.load(Table_ptr + b)
        if mask_args.order is not None:
            if mask_args.order.padding is not None:
                first = tl.maximum(shared, tl.load(mask_args.order.padding + b))
                begin = tl.minimum(tl.maximum(begin, first // B_C), end)
            if mask_args.order.slopes is not None:
                slopes = tl.load(mask_args.order.slopes + b * mask_args.order.stride + h)[:, None]
        rows = DecodeRows(q, q_unit, b, h[:, None], (length - N_q + i)[:, None], bits[:, None], slopes)
        k_at = At(h_k.to(tl.int64) * k_h * UNIT, k_b.to(tl.int64) * UNIT, k_n.to(tl.int64) * UNIT)
        v_at = At(h_k.to(tl.int64) * v_h * UNIT, v_b.to(tl.int64) * UNIT, v_n.to(tl.int64) * UNIT)
        s_at = At(h_k.to(tl.int64) * s_h, s_b.to(tl.int64), 1)
        keys = Stored(K_ptr, V_ptr, K_scale_ptr, V_scale_ptr, table, own, k_at, v_at, s_at)
        m, l, O_acc = _attend(
            rows, keys, begin, end, Bounds(length, length - N_q, first, left, right), scale_log2e, mask_args,
            DIMS, B_R, B_C, PAGE, PAIRS, TREE, MASK,
        )  # fmt: skip
        cols = tl.arange(0, DIMS.D_V)
        stored = inside[:, None] & (cols < DIMS.d_v)[None, :]
        if FINISH and n == 1:
            SCORED: tl.constexpr = MASK.scored or slopes is not None
            O, lse = _finished(m, l, O_acc, 1.0 if SCORED else scale_log2e, Sink_ptr, h)
            known = (b.to(tl.int64) * H_k * group + h) * N_q + i
            o = O_ptr + known[:, None] * DIMS.d_v + cols[None, :]
            tl.store(o, O.to(O_ptr.dtype.element_ty), mask=stored)
            tl.store(Lse_ptr + known, lse, mask=inside)
        else:
            state = States_ptr + ((part.to(tl.int64) * H_k * group + h) * N_q + i) * (DIMS.d_v + AFTER_O)
            tl.store(state[:, None] + cols[None, :], O_acc, mask=stored)
            tl.store(state + DIMS.d_v, m, mask=inside)
            tl.store(state + DIMS.d_v + 1, l, mask=inside)


@triton.jit
def _finished(m, l, O_acc, factor, Sink_ptr, h):
    """Return O, (rows, columns), and lse of rows of heads h from their States, and a sink if there is one."""
    divisor = tl.where(l == 0.0, 1.0, l)  # a row that saw no key: O = 0, lse = -inf
    O, lse2 = O_acc / divisor[:, None], m * factor + tl.log2(divisor)
    if Sink_ptr is not None:  # not in units of m, in which it may overflow
        sink2 = tl.minimum(tl.load(Sink_ptr + h) * LOG2_E, 3e38)
        largest = tl.maximum(lse2, sink2)
        shift = tl.where(largest == -float("inf"), 0.0, largest)
        weights = tl.exp2(lse2 - shift) + tl.exp2(sink2 - shift)  # 1 or more; 0 if there is neither
        O *= (tl.exp2(lse2 - shift) / tl.where(weights == 0.0, 1.0, weights))[:, None]
        lse2 = largest + tl.log2(tl.maximum(weights, 1.0))
    return O, lse2 / LOG2_E


@triton.jit
def _in_units(q, COMPUTE: tl.constexpr, FP8: tl.constexpr):
    """Return q in the dtype of products and each row's unit, a power of two, (B_R, 1) or None.

    fp8 becomes fp16 in one instruction and bf16 in three, two of them slow. In fp16, rows whose largest number is
    about 2^14 keep every digit that matters to their products.
    """
    if FP8 and COMPUTE == tl.float16:
        largest = tl.max(tl.abs(q.to(tl.float32)), axis=1)
        power = (largest.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
        unit = tl.maximum(power * 2.0**-14, 2.0**-126)
        return (q.to(tl.float32) * (1.0 / unit)[:, None]).to(COMPUTE), unit[:, None]
    else:
        return q.to(COMPUTE), None


@triton.jit
def _attend(
    rows, keys, begin, end, bounds, scale_log2e, mask_args,
    DIMS: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr, PAGE: tl.constexpr, PAIRS: tl.constexpr,
    TREE: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Return m, l and O_acc of rows after tiles begin to end: tiles that all rows see first, then the cut ones."""
    length, past = bounds.length, bounds.past
    # From the first key of the last row on, up to the last key of the first row.
    whole, after = tl.cdiv(tl.maximum(length - 1 - bounds.left, bounds.shared), B_C), length // B_C
    if TREE:
        after = tl.minimum(past // B_C, after)
    else:
        after = tl.minimum((past + 1 + bounds.right) // B_C, after)
    if len(MASK.variant.seen) > 0:
        after = begin
    whole = tl.minimum(tl.maximum(whole, begin), end)
    after = tl.minimum(tl.maximum(after, whole), end)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R, B_C if B_R == 16 else 1), tl.float32)  # few rows: summed over keys at the end
    O_acc = tl.zeros((B_R, DIMS.D_V // 2 if PAIRS else DIMS.D_V), tl.float32)
    O_odd = O_acc if PAIRS else None
    m, l, O_acc, O_odd = _stream(
        m, l, O_acc, O_odd, rows, keys, whole, 0, whole, after - whole, bounds, scale_log2e, mask_args,
        DIMS, B_C, PAGE, PAIRS, False, TREE, MASK,
    )  # fmt: skip
    n = whole - begin + end - after
    if B_R == 16 and not PAIRS:
        if n > 0:  # most parts have no such tile, and short ones are slowed down by what a loop prepares
            m, l, O_acc, _ = _stream(
                m, l, O_acc, O_odd, rows, keys, begin, whole - begin, after, n, bounds, scale_log2e, mask_args,
                DIMS, B_C, PAGE, PAIRS, True, TREE, MASK,
            )  # fmt: skip
    else:  # without `if`, with which registers spill
        m, l, O_acc, O_odd = _stream(
            m, l, O_acc, O_odd, rows, keys, begin, whole - begin, after, n, bounds, scale_log2e, mask_args,
            DIMS, B_C, PAGE, PAIRS, True, TREE, MASK,
        )  # fmt: skip
    if PAIRS:
        O_acc = tl.join(O_acc, O_odd).reshape(B_R, DIMS.D_V)
    return m, tl.sum(l, axis=1), O_acc


@triton.jit
def _stream(
    m, l, O_acc, O_odd, rows, keys, begin, n_left, after, n, bounds, scale_log2e, mask_args,
    DIMS: tl.constexpr, B_C: tl.constexpr, PAGE: tl.constexpr, PAIRS: tl.constexpr, CUT: tl.constexpr,
    TREE: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Update m, l and O_acc with n tiles: n_left from `begin` on, and the others from `after` on."""
    length, k_at, v_at, s_at = bounds.length, keys.k_at, keys.v_at, keys.s_at
    low = tl.maximum(bounds.past - bounds.left, bounds.shared)
    SCORED: tl.constexpr = MASK.scored or rows.slopes is not None
    factor = 1.0 if SCORED else scale_log2e
    pages = _pages(keys.table, _tile(0, begin, n_left, after, CUT), low, length, B_C, PAGE)
    for t in range(n):
        tile = _tile(t, begin, n_left, after, CUT)
        page, first, row = _where(keys.table, pages, keys.own, tile, low, length, B_C, PAGE)
        pages = _pages(keys.table, _tile(t + 1, begin, n_left, after, CUT), low, length, B_C, PAGE)  # a tile ahead
        c = tile * B_C + tl.arange(0, B_C)
        inside = (c >= low) & (c < length)  # other rows may not exist, or hold NaN
        k_first = k_at.head + page * k_at.page + first * k_at.row + row * k_at.row
        k = _rows(keys.K_ptr, k_first, inside, DIMS.d, DIMS.D, CUT).to(rows.q.dtype)  # (B_C, D)
        v_first = v_at.head + page * v_at.page + first * v_at.row + row * v_at.row
        v, v_odd = _values(keys.V_ptr, v_first, inside, DIMS.d_v, DIMS.D_V, rows.q.dtype, PAIRS, CUT)
        S = tl.dot(rows.q, k.T, input_precision="ieee")  # (B_R, B_C)
        if rows.q_unit is not None:
            S *= rows.q_unit
        if keys.k_scale_ptr is not None:
            at = s_at.head + page * s_at.page + first + row
            S *= tl.load(keys.k_scale_ptr + at, mask=inside, other=0.0)[None, :]
        if SCORED:
            scaled = S * (scale_log2e / LOG2_E)
            S = device_side.changed(MASK, mask_args, scaled, rows.b, rows.h, rows.r, c[None, :])
            if rows.slopes is not None:
                S -= rows.slopes * tl.abs((rows.r - c[None, :]).to(tl.float32))
            S *= LOG2_E
        if CUT:
            visible = (c >= tl.maximum(rows.r - bounds.left, bounds.shared)) & (c < length)[None, :]
            if TREE:
                node = c[None, :] - bounds.past
                visible &= (node < 0) | (((rows.bits >> tl.maximum(node, 0)) & 1) != 0)
            else:
                visible &= c[None, :] <= rows.r + bounds.right
            if len(MASK.variant.seen) > 0:
                visible &= device_side.all_see(MASK, mask_args, rows.b, rows.h, rows.r, c[None, :])
            S = tl.where(visible, S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))
        shift = tl.where(m == -float("inf"), 0.0, m)  # -inf - (-inf) would be nan
        alpha = tl.exp2((m_old - shift) * factor)
        P = tl.exp2((S - shift[:, None]) * factor)
        l = alpha[:, None] * l + (P if l.shape[1] == B_C else tl.sum(P, axis=1, keep_dims=True))
        if keys.v_scale_ptr is not None:
            at = s_at.head + page * s_at.page + first + row
            P *= tl.load(keys.v_scale_ptr + at, mask=inside, other=0.0)[None, :]
        if rows.q_unit is not None:  # in fp16 P times a scale needs a unit, or it may be too large or small
            unit = tl.maximum(tl.max(P, axis=1) * 2.0**-8, 2.0**-126)[:, None]
            P = (P * (1.0 / unit)).to(rows.q.dtype)
            O_acc = alpha[:, None] * O_acc + unit * tl.dot(P, v)
            if PAIRS:
                O_odd = alpha[:, None] * O_odd + unit * tl.dot(P, v_odd)
        else:
            O_acc = tl.dot(P.to(rows.q.dtype), v, acc=alpha[:, None] * O_acc, input_precision="ieee")
    return m, l, O_acc, O_odd


@triton.jit
def _tile(t, begin, n_left, after, CUT: tl.constexpr):
    """Return tile t of a stream: n_left of them from `begin` on, and the others from `after` on."""
    if CUT:
        return tl.where(t < n_left, begin + t, after + t - n_left)
    else:
        return begin + t


@triton.jit
def _pages(table, tile, low, length, B_C: tl.constexpr, PAGE: tl.constexpr):
    """Return the pages of a tile, if they are few; no entries are read for keys before `low` or past `length`."""
    pages = ()
    if PAGE > 0 and PAGE * FEW >= B_C:
        for k in tl.static_range(tl.cdiv(B_C, PAGE)):
            first = tile * B_C + k * PAGE  # of the keys in question
            seen_there = (first < length) & (first + tl.minimum(B_C, PAGE) > low)
            pages = pages + (tl.load(table + first // PAGE, mask=seen_there, other=0),)
    return pages


@triton.jit
def _where(table, pages, own_sequence, tile, low, length, B_C: tl.constexpr, PAGE: tl.constexpr):
    """Return the pages of a tile's keys, and their rows in them as two summands; PAGE 0: a sequence is a page."""
    own = tl.arange(0, B_C)
    none = tl.zeros((), tl.int64)
    c = tile * B_C + own
    if PAGE == 0:
        return own_sequence.to(tl.int64), tile.to(tl.int64) * B_C, own
    elif len(pages) == 0:
        inside = (c >= low) & (c < length)
        return tl.load(table + c // PAGE, mask=inside, other=0).to(tl.int64), none, c % PAGE
    elif len(pages) == 1:
        return pages[0].to(tl.int64), (tile * B_C % PAGE).to(tl.int64), own
    else:
        page = tl.zeros((B_C,), tl.int32)
        for k in tl.static_range(len(pages)):
            page = tl.where(own // PAGE == k, pages[k], page)
        return page.to(tl.int64), none, own % PAGE


@triton.jit
def _values(
    V_ptr, at, inside, d_v: tl.constexpr, D_V: tl.constexpr, dtype: tl.constexpr, PAIRS: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Return rows of V, (B_C, D_V), and None; if PAIRS, its even and its odd columns, (B_C, D_V / 2) each.

    A product needs two rows of a column in one register. Shared memory can be read like that in units of 16 bits
    but not of 8.
    """
    if PAIRS:
        v = _rows(V_ptr.to(tl.pointer_type(tl.int16)), at // 2, inside, d_v // 2, D_V // 2, MASKED)
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 t; .reg .b16 lo, hi;
            prmt.b32 t, $2, 0, 0x3120;
            mov.b32 {lo, hi}, t;
            cvt.rn.f16x2.e4m3x2 $0, lo;
            cvt.rn.f16x2.e4m3x2 $1, hi;
            }""",
            "=r,=r,r", [v], dtype=(tl.float16, tl.float16), is_pure=True, pack=2,
        )  # fmt: skip
    else:
        return _rows(V_ptr, at, inside, d_v, D_V, MASKED).to(dtype), None


@triton.jit
def _rows(X_ptr, at, inside, d: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr):
    """Return the rows that begin at these elements, (rows, D), 0 past d and, if MASKED, where not `inside`."""
    cols = tl.arange(0, D)
    ptrs = X_ptr + at[:, None] + cols[None, :]
    if MASKED:
        return tl.load(ptrs, mask=inside[:, None] & (cols < d)[None, :], other=0.0)
    elif d < D:
        return tl.load(ptrs, mask=(cols < d)[None, :], other=0.0)
    else:
        return tl.load(ptrs)


@triton.jit(
    do_not_specialize=[
        *(f"o_{axis}" for axis in "bhn"), "B", "H", "N_q", "capacity", "shared", "left", "parts",
    ],
)  # fmt: skip
def _merge(
    States_ptr, Prior_O_ptr, Prior_lse_ptr, Sink_ptr, Lengths_ptr, O_ptr, Lse_ptr, scale_log2e,
    o_b, o_h, o_n, B, H, N_q, capacity, shared, left, parts,
    d_v: tl.constexpr, D_V: tl.constexpr, B_C: tl.constexpr, B_P: tl.constexpr, SCORED: tl.constexpr,
    COLS: tl.constexpr,  # of O that a program writes
    JOINED: tl.constexpr,  # States at a time
    EARLY: tl.constexpr,  # as in `_partial`: the States are complete only after the wait
    FINISH: tl.constexpr,  # as in `_partial`
):  # fmt: skip
    """Write O and lse of rows. A row has one or several programs; if few rows have States, a program several rows.

    Ends at once if every sequence is one part, which `_partial` has written.
    """
    own, ends = _parts(Sequences(Lengths_ptr, B, N_q, capacity, shared, left, parts), B_C, B_P)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    if not FINISH or tl.max(own) > 1:
        rows = B * H * N_q
        BLOCKS: tl.constexpr = D_V // COLS
        for turn in range(tl.cdiv(rows * BLOCKS - tl.program_id(0), tl.num_programs(0))):
            place = tl.program_id(0) + turn * tl.num_programs(0)
            block, row = place % BLOCKS, place // BLOCKS
            i, h, b = row % N_q, row // N_q % H, row // N_q // H
            its = tl.arange(0, B_P) == b
            n, end = tl.sum(tl.where(its, own, 0)), tl.sum(tl.where(its, ends, 0))
            o = O_ptr + b.to(tl.int64) * o_b + h.to(tl.int64) * o_h + i.to(tl.int64) * o_n
            if not FINISH or n > 1:
                _join(
                    States_ptr, Prior_O_ptr, Prior_lse_ptr, Sink_ptr, o, Lse_ptr, 1.0 if SCORED else scale_log2e,
                    b, h, i, B, H, N_q, end - n, end, block, d_v, COLS, JOINED,
                )  # fmt: skip


@triton.jit
def _join(
    States_ptr, Prior_O_ptr, Prior_lse_ptr, Sink_ptr, o, Lse_ptr, factor, b, h, i, B, H, N_q, begin, end, block,
    d_v: tl.constexpr, COLS: tl.constexpr, JOINED: tl.constexpr,
):  # fmt: skip
    """Write a block of columns of a row of O to o, from States begin to end; with the first block, lse too.

    The State of the `shared` keys is merged too, and a sink.
    """
    cols = block * COLS + tl.arange(0, COLS)
    m, l = tl.full((1,), -float("inf"), tl.float32), tl.zeros((1,), tl.float32)
    O_acc = tl.zeros((COLS,), tl.float32)
    if Prior_O_ptr is not None:  # the sequences one after the other, as `decode` computes them
        known = (h.to(tl.int64) * B + b) * N_q + i
        m = tl.maximum(m, tl.load(Prior_lse_ptr + known) * (LOG2_E / factor))
        l = tl.where(m == -float("inf"), 0.0, 1.0)
        O_acc += tl.load(Prior_O_ptr + known * d_v + cols, mask=cols < d_v, other=0.0)
    for first in range(begin, end, JOINED):
        part = first + tl.arange(0, JOINED)
        inside = part < end
        state = States_ptr + ((part.to(tl.int64) * H + h) * N_q + i) * (d_v + AFTER_O)
        m_state = tl.load(state + d_v, mask=inside, other=-float("inf"))
        l_state = tl.load(state + d_v + 1, mask=inside, other=0.0)
        seen = inside[:, None] & (cols < d_v)[None, :]
        O_state = tl.load(state[:, None] + cols[None, :], mask=seen, other=0.0)  # (JOINED, COLS)
        m_old = m
        m = tl.maximum(m_old, tl.max(m_state, axis=0))
        shift = tl.where(m == -float("inf"), 0.0, m)
        alpha, weight = tl.exp2((m_old - shift) * factor), tl.exp2((m_state - shift) * factor)
        l = alpha * l + tl.sum(weight * l_state, axis=0)
        O_acc = alpha * O_acc + tl.sum(weight[:, None] * O_state, axis=0)
    O, lse = _finished(m, l, O_acc[None, :], factor, Sink_ptr, h + tl.zeros((1,), tl.int32))
    tl.store(o + cols[None, :], O.to(o.dtype.element_ty), mask=(cols < d_v)[None, :])
    row = (b.to(tl.int64) * H + h) * N_q + i + tl.arange(0, 1)
    tl.store(Lse_ptr + row, lse, mask=(row >= 0) & (block == 0))
