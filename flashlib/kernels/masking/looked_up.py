"""Tensors that changes of scores read, in the kernels: which entry a score reads, and its gradient.

Each score reads one entry, and many scores may read the same one. The gradient is summed in fp32, in whatever
order programs run; or exactly: each term is rounded to a multiple of a unit that depends on the sum of all terms,
and 64-bit integers have the same sum in every order.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl


class Bias(NamedTuple):
    """A tensor that scores read: a pointer, strides and sizes of its axes, None for an axis that has no effect.

    own: a number that its function takes; None for a user's function. For the gradient, pointers to tensors with
    the same strides: sums, in fp32, or in int64 with unit, of which terms are multiples; or to totals, for each
    program the sum of its terms' magnitudes. None if not needed.
    """

    entries: Any
    strides: tuple
    sizes: tuple
    own: Any
    sums: Any = None
    unit: Any = None
    totals: Any = None


@triton.jit
def of_place(b, h, r, c, own):
    """own: the keys before the first query's own."""
    return b, h, r - own, c


@triton.jit
def of_far_place(b, h, r, c, own):
    """The same in 64 bits, for a tensor in which the entries of a head span more than 2^31."""
    return b, h, tl.cast(r - own, tl.int64), tl.cast(c, tl.int64)


@triton.jit
def of_distance(b, h, r, c, own):
    """own: N_q - 1."""
    return h, r - c + own


@triton.jit
def plus(S, h, r, c, t):
    return S + t


@triton.jit
def alike(S, h, r, c, t):
    """The derivatives of `plus`."""
    return 1.0


@triton.jit
def entries(AT: tl.constexpr, bias, b, h, r, c):
    """Return the entries that scores read, 0 outside the tensor, in a shape that broadcasts to the scores."""
    at, inside = _pointers(AT, bias, bias.entries, b, h, r, c)
    return tl.load(at, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def add(AT: tl.constexpr, bias, terms, b, h, r, c):
    """Add terms, (rows, keys), to the entries that their scores read, or only measure them."""
    if bias.totals is not None:  # one thread adds, in the order of tiles
        size = tl.sum(tl.sum(tl.abs(terms), axis=1), axis=0)
        tl.atomic_add(bias.totals + tl.program_id(0), size, sem="relaxed")
    else:
        at, inside = _pointers(AT, bias, bias.sums, b, h, r, c)
        if bias.unit is not None:
            terms = tl.floor(terms * tl.load(bias.unit) + 0.5).to(tl.int64)
        terms = _summed(terms, at)
        tl.atomic_add(at, terms, mask=inside & (terms != 0), sem="relaxed")


@triton.jit
def _summed(terms, at):
    """Return terms summed over each axis along which all scores read the same entry."""
    if len(at.shape) == 0:
        return tl.sum(tl.sum(terms, axis=1), axis=0)
    elif at.shape[0] < terms.shape[0]:
        return tl.sum(terms, axis=0, keep_dims=True)
    elif at.shape[1] < terms.shape[1]:
        return tl.sum(terms, axis=1, keep_dims=True)
    else:
        return terms


@triton.jit
def _pointers(AT: tl.constexpr, bias, at, b, h, r, c):
    """Return pointers to the entries of scores, from `at` on, and which of them exist."""
    if bias.own is None:
        index = AT(b, h, r, c)
        if len(bias.strides) == 1:
            index = (index,)
    else:
        index = AT(b, h, r, c, bias.own)
    inside = tl.full((), True, tl.int1)
    for k in tl.static_range(len(bias.strides)):
        if bias.strides[k] is not None:
            x = index[k]
            inside = inside & (x >= 0) & (x < bias.sizes[k])
            if bias.own is None or len(x.shape) == 0:
                x = tl.cast(x, tl.int64)
            at = at + x * bias.strides[k]
    return at, inside
