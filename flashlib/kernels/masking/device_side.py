"""How a kernel applies a mask: which tiles are computed, which scores are seen, and how scores are changed.

A kernel gets a mask as two named tuples: `Masking`, which is compiled into it, and `MaskArgs`, the numbers that
its functions take. r is a position among the keys: row i of Q has position i + N_k - N_q. For a part of attention
(`masks.placed`) functions get positions in the whole, see `Lines`.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from flashlib.kernels.masking import looked_up

SPAN = tl.constexpr(8)  # numbers of a block in ORDER: the block, the results of `span_of`, and an unused one
HEADS = tl.constexpr(8)  # see `program_order`


class ScoreChange(NamedTuple):
    """A change of scaled scores S, and its derivative: @triton.jit functions of (S, h, r, c[, numbers]).

    at: None, or the function that says which entry of a tensor a score reads, see `looked_up`. The numbers are a
    Bias then, the functions take the entry in their place, and by_bias is the derivative with respect to it.
    """

    score: Any
    slope: Any
    at: Any = None
    by_bias: Any = None


class Variant(NamedTuple):
    """The functions of a mask that is more than causal, each @triton.jit.

    bounds: (numbers, b, x, N_q, N_k) -> first, end: the keys that row x sees, or the rows that see key x; None if
    a table lists the tiles. seen: conditions (b, h, r, c[, numbers]) that a score must satisfy if there is a
    table, all of them. scores: a ScoreChange for each mask that changes scores, in their order.
    """

    bounds: Any
    seen: tuple
    scores: tuple


class Masking(NamedTuple):
    """What is compiled into a kernel for its mask. causal: a constexpr. variant: None if there is no other mask.

    placed: whether some functions of the variant get positions in the whole. drops: whether weights are dropped;
    there is a variant then.
    """

    causal: tl.constexpr
    variant: Variant | None = None
    placed: tl.constexpr = tl.constexpr(False)
    drops: tl.constexpr = tl.constexpr(False)

    @property
    def scored(self) -> tl.constexpr:
        """Whether scores are changed."""
        return tl.constexpr(self.variant is not None and len(self.variant.scores) > 0)

    @property
    def biased(self) -> bool:
        """Whether changes of scores read tensors."""
        return self.variant is not None and any(change.at is not None for change in self.variant.scores)


class MaskArgs(NamedTuple):
    """The numbers of a Variant's functions, None for a function that takes none.

    order: of the blocks, None for a closed form. bounds: a Closed, Intervals or TileTable; in decoding, Ancestors
    or None. seen, scores: the numbers of each function, in order. seen_at, scores_at: the Lines of each, or None;
    empty unless the mask is placed. dropout: a `dropout.Dropout`, or None.
    """

    order: Any = None
    bounds: Any = None
    seen: tuple = ()
    scores: tuple = ()
    seen_at: tuple = ()
    scores_at: tuple = ()
    dropout: Any = None


class Line(NamedTuple):
    """The positions of a part's items in the whole: start + step * x for item x, plus jump from x = split on."""

    start: Any
    step: Any
    split: Any
    jump: Any


class Lines(NamedTuple):
    """The place of a part of attention in the whole. rows: for r, which counts from N_k - N_q of the part."""

    rows: Line
    keys: Line


class Closed(NamedTuple):
    """A window or a prefix: a row sees `left` keys before its own, `right` after it, and the first `prefix` keys.

    In a part left or right may be negative, and a row may see nothing.
    """

    left: Any
    right: Any
    prefix: Any


class Intervals(NamedTuple):
    """Bounds in memory: pointers to both bounds of each row (or key), batch stride, length, blocks of a batch."""

    first: Any
    end: Any
    stride: Any
    N: Any
    blocks: Any


class TileTable(NamedTuple):
    """Tiles to compute, in memory: for each block how many are cut, how many there are, and their numbers.

    counts, index: pointers. stride_b, stride_h: in blocks, of batch and head. most: tile numbers kept per block.
    """

    counts: Any
    index: Any
    stride_b: Any
    stride_h: Any
    most: Any


class Ancestors(NamedTuple):
    """The ancestors of each candidate of a tree, a bit each: a pointer, and the stride between sequences."""

    bits: Any
    stride: Any


@triton.jit
def window_keys(bounds, b, i, N_q, N_k):
    """Return the first key that row i sees and the one after the last; bounds: Closed."""
    r = i + N_k - N_q
    first = tl.maximum(r - bounds.left, 0)
    end = tl.minimum(tl.maximum(r + bounds.right + 1, bounds.prefix), N_k)
    return first, tl.maximum(end, 0)


@triton.jit
def window_rows(bounds, b, c, N_q, N_k):
    """Return the first row that sees key c and the one after the last: the inverse of `window_keys`."""
    past = N_k - N_q
    first = tl.where(c < bounds.prefix, 0, tl.maximum(c - bounds.right - past, 0))
    end = tl.minimum(c + bounds.left + 1 - past, N_q)
    return first, tl.where(c < N_k, tl.maximum(end, 0), 0)


@triton.jit
def loaded(bounds, b, x, N_q, N_k):
    """Return the bounds of x; bounds: Intervals."""
    first = tl.load(bounds.first + b * bounds.stride + x, mask=x < bounds.N, other=0)
    return first, tl.load(bounds.end + b * bounds.stride + x, mask=x < bounds.N, other=0)


@triton.jit
def program_order(MASK: tl.constexpr, mask_args, T):
    """Return the number of a program's block, of T, and its head.

    If an order of intervals is in memory, the longest blocks of HEADS heads come first, so that the last programs
    are short. With more heads at a time the L2 cache would not hold the keys that their blocks share. With a table
    one head comes after the other: its blocks may read all of K.
    """
    if MASK.variant.bounds is None:
        return tl.program_id(0) % T, tl.program_id(0) // T
    elif mask_args.order is None:
        return tl.program_id(0) % T, tl.program_id(0) // T
    else:
        first = tl.program_id(0) // (HEADS * T) * HEADS
        heads = tl.minimum(tl.num_programs(0) // T - first, HEADS)
        at = tl.program_id(0) - first * T
        return at // heads, first + at % heads


@triton.jit
def block(MASK: tl.constexpr, mask_args, b, p, T, REVERSED: tl.constexpr):
    """Return the p-th block of T, in an order that begins with those with the most tiles.

    For a closed form these are the last blocks of rows, or the first of keys.
    """
    if mask_args.order is None:
        return T - 1 - p if REVERSED else p
    elif MASK.variant.bounds is None:
        return tl.load(mask_args.order + p)
    else:
        return tl.load(mask_args.order + (b * mask_args.bounds.blocks + p) * SPAN)


@triton.jit
def key_ranges(
    MASK: tl.constexpr, mask_args, b, h, p, i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    """Return which keys block i of rows streams: whole tiles, from and to, then tiles that the mask or N_k cuts.

    For a variant these are tile numbers, and the third result is what `start` needs to count them. i is the
    p-th block of a program's head.
    """
    past = N_k - N_q  # keys before the first query's own
    if MASK.variant is None:
        seen_by_all = tl.minimum(i * B_R + past + 1, N_k) if MASK.causal else N_k
        seen_by_any = tl.minimum((i + 1) * B_R + past, N_k) if MASK.causal else N_k
        end_whole = tl.maximum(seen_by_all, 0) // B_C * B_C
        return (0, end_whole), (end_whole, seen_by_any), ()
    else:  # tiles are numbered, the cut ones first
        counted, n_cut, n = tiles(MASK, mask_args, b, h, p, i, N_q, N_q, N_k, B_R, B_C, False)
        return (n_cut, n), (0, n_cut), counted


@triton.jit
def tiles(
    MASK: tl.constexpr, mask_args, b, h, p, block, N_own, N_q, N_k, B_OWN: tl.constexpr, B: tl.constexpr,
    TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """Return which tiles a block of rows, or of keys, streams: first those that are cut, then whole ones.

    block: the p-th, with B_OWN of N_own rows (or keys, if TRANSPOSED) from block * B_OWN on. B: how many keys (or
    rows) a tile has. The result is what `start` needs to count the tiles, how many are cut, and how many there
    are.
    """
    bounds = mask_args.bounds
    if MASK.variant.bounds is None:
        at = b * bounds.stride_b + h * bounds.stride_h + block
        n_cut, n = tl.load(bounds.counts + 2 * at), tl.load(bounds.counts + 2 * at + 1)
        return (bounds.index + at.to(tl.int64) * bounds.most,), n_cut, n
    elif mask_args.order is not None:
        span = mask_args.order + (b * bounds.blocks + p) * SPAN
        begin, left, whole = tl.load(span + 1), tl.load(span + 2), tl.load(span + 3)
        after, n_cut, n = tl.load(span + 4), tl.load(span + 5), tl.load(span + 6)
        return (begin, left, whole, after, n_cut), n_cut, n
    else:
        return span_of(MASK.variant.bounds, bounds, b, block, N_own, N_q, N_k, B_OWN, B, TRANSPOSED)


@triton.jit
def span_of(
    BOUNDS: tl.constexpr, bounds, b, block, N_own, N_q, N_k, B_OWN: tl.constexpr, B: tl.constexpr,
    TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """Return the same as `tiles`, from bounds. The first tile of keys begins at the first key that is seen."""
    last = tl.minimum((block + 1) * B_OWN, N_own) - 1
    first_of_first, end_of_first = BOUNDS(bounds, b, block * B_OWN, N_q, N_k)
    first_of_last, end_of_last = BOUNDS(bounds, b, last, N_q, N_k)
    if TRANSPOSED:
        begin = first_of_first // B * B  # lse2 and delta are padded to whole tiles
        some = (block + 1) * B_OWN <= N_own  # otherwise no row sees the last keys, and their weights could be inf
    else:
        begin, some = first_of_first, True
    whole = begin + tl.cdiv(first_of_last - begin, B) * B
    after = begin + tl.maximum(end_of_first - begin, 0) // B * B
    some &= after > whole
    whole, after = tl.where(some, whole, begin), tl.where(some, after, begin)
    left = (whole - begin) // B
    n_cut = left + tl.cdiv(tl.maximum(end_of_last - after, 0), B)
    return (begin, left, whole, after, n_cut), n_cut, n_cut + (after - whole) // B


@triton.jit
def start(MASK: tl.constexpr, counted, k, B: tl.constexpr, CUT: tl.constexpr):
    """Return where tile k begins, of those that `tiles` counted. CUT: whether it is a cut tile."""
    if MASK.variant.bounds is None:
        (index_ptr,) = counted
        return tl.load(index_ptr + k) * B
    else:
        begin, left, whole, after, n_cut = counted
        if CUT:
            return tl.where(k < left, begin + k * B, after + (k - left) * B)
        else:
            return whole + (k - n_cut) * B


@triton.jit
def seen(MASK: tl.constexpr, mask_args, inside, x, limits, b, h, r, c):
    """Return which scores of a tile are seen. inside: the scores that exist.

    limits: for each row (or key) of the tile the first x that it sees (that sees it) and the one after the last;
    None if functions decide.
    """
    if MASK.variant.bounds is None:
        return inside & all_see(MASK, mask_args, b, h, r, c)
    else:
        first, end = limits
        return (x >= first[:, None]) & (x < end[:, None])


@triton.jit
def all_see(MASK: tl.constexpr, mask_args, b, h, r, c):
    """Return where all conditions hold."""
    seen = (r == r) & (c == c)
    for k in tl.static_range(len(MASK.variant.seen)):
        r_at, c_at = r, c
        if MASK.placed:
            r_at, c_at = whole_positions(mask_args.seen_at[k], r, c)
        if mask_args.seen[k] is None:
            seen = seen & MASK.variant.seen[k](b, h, r_at, c_at)
        else:
            seen = seen & MASK.variant.seen[k](b, h, r_at, c_at, mask_args.seen[k])
    return seen


@triton.jit
def whole_positions(lines, r, c):
    """Return the positions in the whole for positions in a part; without Lines they are the same."""
    if lines is None:
        return r, c
    else:
        return whole_position(lines.rows, r), whole_position(lines.keys, c)


@triton.jit
def whole_position(line, x):
    """Map indices x of a part to positions in the whole."""
    return line.start + line.step * x + tl.where(x < line.split, 0, line.jump)


@triton.jit
def changed(MASK: tl.constexpr, mask_args, S, b, h, r, c):
    """Return scaled scores after all changes."""
    for k in tl.static_range(len(MASK.variant.scores)):
        r_at, c_at = _met(MASK, mask_args, k, r, c)
        S = _called(MASK.variant.scores[k].score, MASK, mask_args, k, S, b, h, r_at, c_at)
    return S


@triton.jit
def slopes(MASK: tl.constexpr, mask_args, S, b, h, r, c):
    """Return the derivative of `changed` with respect to S."""
    return _slopes_from(0, MASK, mask_args, S, b, h, r, c)


@triton.jit
def add_to_biases(MASK: tl.constexpr, mask_args, S, dS, b, h, r, c):
    """Add the contribution of scores to the gradients of tensors. S: before `changed`; dS: the gradient after."""
    for k in tl.static_range(len(MASK.variant.scores)):
        r_at, c_at = _met(MASK, mask_args, k, r, c)
        after = _called(MASK.variant.scores[k].score, MASK, mask_args, k, S, b, h, r_at, c_at)
        if MASK.variant.scores[k].at is not None:
            by_bias = _called(MASK.variant.scores[k].by_bias, MASK, mask_args, k, S, b, h, r_at, c_at)
            terms = dS * by_bias * _slopes_from(k + 1, MASK, mask_args, after, b, h, r, c)
            looked_up.add(MASK.variant.scores[k].at, mask_args.scores[k], terms, b, h, r_at, c_at)
        S = after


@triton.jit
def _slopes_from(first: tl.constexpr, MASK: tl.constexpr, mask_args, S, b, h, r, c):
    """Return the derivative of the changes from `first` on with respect to their input S."""
    slope = 1.0
    for k in tl.static_range(first, len(MASK.variant.scores)):
        r_at, c_at = _met(MASK, mask_args, k, r, c)
        slope = slope * _called(MASK.variant.scores[k].slope, MASK, mask_args, k, S, b, h, r_at, c_at)
        if k + 1 < len(MASK.variant.scores):
            S = _called(MASK.variant.scores[k].score, MASK, mask_args, k, S, b, h, r_at, c_at)
    return slope


@triton.jit
def _met(MASK: tl.constexpr, mask_args, k: tl.constexpr, r, c):
    """Return the positions that the k-th change of scores gets."""
    if MASK.placed:
        return whole_positions(mask_args.scores_at[k], r, c)
    else:
        return r, c


@triton.jit
def _called(f: tl.constexpr, MASK: tl.constexpr, mask_args, k: tl.constexpr, S, b, h, r, c):
    """Return the result of a function of the k-th change of scores at these positions."""
    if MASK.variant.scores[k].at is not None:
        return f(S, h, r, c, looked_up.entries(MASK.variant.scores[k].at, mask_args.scores[k], b, h, r, c))
    elif mask_args.scores[k] is None:
        return f(S, h, r, c)
    else:
        return f(S, h, r, c, mask_args.scores[k])


@triton.jit
def in_window(b, h, r, c, numbers):
    """numbers: left, right."""
    left, right = numbers
    return (c >= r - left) & (c <= r + right)


@triton.jit
def in_prefix(b, h, r, c, numbers):
    """numbers: n."""
    (n,) = numbers
    return (c <= r) | (c < n)


@triton.jit
def in_document(b, h, r, c, numbers):
    """numbers: a pointer to ids, the stride of a batch, N_k."""
    ids, stride, N_k = numbers
    own = tl.load(ids + b * stride + r, mask=(r >= 0) & (r < N_k), other=-1)
    return (r >= 0) & (own == tl.load(ids + b * stride + c, mask=c < N_k, other=-1))


@triton.jit
def anywhere(b, h, r, c):
    """Always true: for masks that a table of tiles describes completely."""
    return (r == r) & (c == c)


@triton.jit
def in_bits(b, h, r, c, numbers):
    """numbers: a pointer to words with a bit per score; strides of batch, head and line; rows of a line; sizes.

    A word is loaded once for its 32 columns: a pointer for each score would take more registers than there are.
    """
    words, stride_b, stride_h, stride_n, rows, N_q, N_k = numbers
    AXIS: tl.constexpr = 1 if c.shape[0] == 1 else 0  # of the columns
    B_C: tl.constexpr = c.shape[AXIS]
    WORDS: tl.constexpr = (B_C + 31) // 32
    at = tl.expand_dims(tl.min(tl.reshape(c, (WORDS, B_C // WORDS)), axis=1) // 32, 1 - AXIS)
    i = r - (N_k - N_q)
    head = words + tl.cast(b, tl.int64) * stride_b + tl.cast(h, tl.int64) * stride_h
    word = tl.load(head + (i // rows * stride_n + at), mask=(i < N_q) & (at < stride_n), other=0)
    return ((_repeated(word, B_C // WORDS, AXIS) >> (c % 32)) & 1) != 0


@triton.jit
def _repeated(X, n: tl.constexpr, AXIS: tl.constexpr):
    """Return X with each row, or each column, n times: numpy.repeat."""
    rows: tl.constexpr = X.shape[0]
    columns: tl.constexpr = X.shape[1]
    if AXIS == 0:
        return tl.reshape(tl.broadcast_to(X[:, None, :], (rows, n, columns)), (rows * n, columns))
    else:
        return tl.reshape(tl.broadcast_to(X[:, :, None], (rows, columns, n)), (rows, columns * n))


@triton.jit
def with_distance(S, h, r, c, numbers):
    """ALiBi. numbers: a pointer to the slope of each head."""
    (slopes_ptr,) = numbers
    distance = tl.abs(r.to(tl.float32) - c.to(tl.float32))
    return S - tl.load(slopes_ptr + h) * distance


@triton.jit
def one(S, h, r, c, numbers):
    """The slope of a change that adds."""
    return 1.0


@triton.jit
def capped(S, h, r, c, numbers):
    """A soft cap. numbers: cap, 1 / cap."""
    cap, inverse = numbers
    return cap * _tanh(S * inverse)


@triton.jit
def capped_slope(S, h, r, c, numbers):
    _, inverse = numbers
    t = _tanh(S * inverse)
    return 1.0 - t * t


@triton.jit
def _tanh(x):
    """Return tanh(x) from one exponential; where 2^x is inf or 0, this is 1 or -1.

    Near 0 the difference would lose the digits of x, which are all that a large cap leaves; a series is used
    there, whose next term is at most 2e-7 of the sum.
    """
    u = x * x
    near = x * (1 - u * (1 / 3 - u * (2 / 15 - u * (17 / 315 - u * (62 / 2835)))))
    return tl.where(tl.abs(x) < 0.35, near, 1.0 - 2.0 / (1.0 + tl.exp2(x * 2.8853900817779268)))  # 2 log2(e)


@triton.jit
def spans(
    Spans_ptr, bounds, N_own, N_q, N_k, B_OWN: tl.constexpr, B: tl.constexpr, TRANSPOSED: tl.constexpr,
    OTHERS: tl.constexpr,
):  # fmt: skip
    """Write what `tiles` loads for each block, one program per block: in each batch, most tiles first."""
    T = tl.cdiv(N_own, B_OWN)
    b, block = tl.program_id(0) // T, tl.program_id(0) % T
    spans_of_batch = Spans_ptr + b * T * SPAN
    write_span(spans_of_batch, loaded, bounds, b, block, 0, T, N_own, N_q, N_k, B_OWN, B, TRANSPOSED, OTHERS)


@triton.jit
def write_span(
    Spans_ptr, BOUNDS: tl.constexpr, bounds, b, block, begin, end, N_own, N_q, N_k, B_OWN: tl.constexpr,
    B: tl.constexpr, TRANSPOSED: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """Write what `tiles` loads for one of the blocks begin to end, at its place if most tiles come first.

    The place is the number of blocks with more tiles. A sort would take several more launches, and a call with
    packed sequences does this each time.
    """
    counted, n_cut, n = span_of(BOUNDS, bounds, b, block, N_own, N_q, N_k, B_OWN, B, TRANSPOSED)
    before = tl.zeros((OTHERS,), tl.int32)
    for start in range(begin, end, OTHERS):
        other = start + tl.arange(0, OTHERS)
        _, _, its = span_of(BOUNDS, bounds, b, other, N_own, N_q, N_k, B_OWN, B, TRANSPOSED)
        before += ((other < end) & ((its > n) | ((its == n) & (other < block)))).to(tl.int32)
    span = Spans_ptr + (begin + tl.sum(before)) * SPAN
    tl.store(span, block)
    for k in tl.static_range(5):
        tl.store(span + 1 + k, counted[k])
    tl.store(span + 6, n)


@triton.jit
def kinds(
    Kinds_ptr, mask_args, N_q, N_k, H, MASK: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    """Write the kind of each tile, one program per tile, head after head: 0 cut, 1 whole, 2 hidden.

    A tile that the end of K cuts is cut; rows past the end of Q do not count.
    """
    T_r, T_c = tl.cdiv(N_q, B_R), tl.cdiv(N_k, B_C)
    i, j = tl.program_id(0) // T_c % T_r, tl.program_id(0) % T_c
    head = tl.program_id(0) // T_c // T_r
    b, h = head // H, head % H
    row = i * B_R + tl.arange(0, B_R)[:, None]
    c = j * B_C + tl.arange(0, B_C)[None, :]
    seen = all_see(MASK, mask_args, b, h, row + (N_k - N_q), c) & (c < N_k)
    some = tl.max(tl.max((seen & (row < N_q)).to(tl.int32), axis=1), axis=0)
    all_ = tl.min(tl.min((seen | (row >= N_q)).to(tl.int32), axis=1), axis=0)
    tl.store(Kinds_ptr + tl.program_id(0), 2 - 2 * some + all_ * some)
