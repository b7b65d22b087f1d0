"""Tensors that changes of scores read, as kernels know them: which entry a score reads, and what is added to it.

Each score reads one entry, and many scores may read the same. What the gradient adds up is in fp32, in whatever
order programs come; or it is exact: a term is rounded to a multiple of a unit that the sum of all terms fixes, and
whole numbers of 64 bits have the same sum in every order.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl


class Bias(NamedTuple):
    """A tensor that scores read: a pointer, strides and sizes of its axes, None for one that all read alike.

    own: a number that its function takes; None for the function of a user. For the gradient, pointers to what has
    the tensor's strides: sums, in fp32, or in int64 with unit, of which a term is a multiple; or totals, a number
    for each program, what its terms are in size. None for what is not asked.
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
    """The same in 64 bits, for a tensor of which a head lies further apart than 2^31 entries."""
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
    """Return the entries that scores read, 0 outside of the tensor: as many as differ, to broadcast."""
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
    """Return terms summed over an axis along which all read the same."""
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
    """Return pointers to the entries of scores, from `at` on, and which of them there are."""
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
