"""Which scores are seen, and how they are changed: masks, which are applied one tile at a time.

A mask is made without sizes, and `on(N_q, N_k)` adds them. A tile is then hidden (no score is seen: it is
skipped), whole (all are seen: no mask is needed) or cut. Queries have positions among the keys: row i of Q has
position r = i + N_k - N_q (aligned bottom-right).

    causal()              c <= r
    window(left, right)   r - left <= c <= r + right; None: no bound on that side
    prefix(n)             c <= r or c < n
    documents(ids)        ids[r] == ids[c]: sequences packed one after the other
    tree(parents)         candidates: c < N_k - N_q, or c is r or an ancestor of r
    blocks(table, B_r, B_c)  table[row // B_r, c // B_c], for rows, not positions
    dense(seen)           seen[row, c], or seen[b, h, row, c], for rows, not positions
    from_function(f)      f(r, c), or f(b, h, r, c)
    alibi(slopes)         all are seen; S - slopes[h] * |r - c|
    softcap(cap)          all are seen; cap * tanh(S / cap)
    score(f, slope)       all are seen; f(S, h, r, c), or with a tensor, f(S, h, r, c, t)
    bias(T)               all are seen; S + T[b, h, row, c], broadcast
    distance_bias(T)      all are seen; S + T[h, r - c], from r - c = 1 - N_q on

A class derived from `Mask` is a mask of a new kind: its docstring says what to override.
`a & b` sees what both see; scores are changed by a, then by b. `a | b` sees what either sees.
`placed(mask, N_q, N_k, rows, keys)` is the mask of a part: of any rows of Q with any keys.

Source: Gemma 2 (2024) for softcap; Press and others, ALiBi (2022); PyTorch's FlexAttention (2024) for masks and
changes of scores as functions; Raffel and others, T5 (2020), for a bias of distances.
"""

import sys
from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from flashlib.inputs import check_causal, check_counts
from flashlib.masks.biased import Biased, OfDistance, change_of, check_of_numpy, lookup
from flashlib.masks.dense import Dense
from flashlib.masks.for_kernels import Band, BlockTable, DeviceChange, DeviceTest, common_band
from flashlib.masks.kinds import (
    FAR,
    Alibi,
    Blocks,
    Documents,
    Function,
    Prefix,
    Score,
    Softcap,
    Window,
    count_arguments,
)
from flashlib.masks.mask import Both, Either, Mask, check_mask, intersection
from flashlib.masks.parts import Placed, placed
from flashlib.masks.place import Place
from flashlib.masks.tiles import Tiles
from flashlib.masks.tree import Tree
from flashlib.masks.wrappers import in_one_call, repeated, some_heads
from flashlib.types import Array

__all__ = [
    "FAR", "Alibi", "Band", "Biased", "Blocks", "BlockTable", "Both", "Dense", "DeviceChange", "DeviceTest",
    "Documents", "Either", "Function", "Mask", "Place", "Placed", "Prefix", "Score", "Softcap", "Tiles", "Tree",
    "Window", "alibi", "alibi_slopes", "bias", "blocks", "causal", "check_mask", "combined", "common_band",
    "dense", "distance_bias", "documents", "fitted", "from_function", "in_one_call", "intersection", "placed",
    "prefix", "repeated", "resolve", "score", "softcap", "some_heads", "tree", "window",
]  # fmt: skip


def causal() -> Mask:
    """Return the mask under which a query sees its own key and those before it."""
    return Window(None, 0)


def window(left: int | None, right: int | None) -> Mask:
    """Return a sliding window: keys from r - left to r + right. None: no bound; right = 0: causal.

    Raises TypeError or ValueError unless each is None or a whole number of at least 0.
    Source: Beltagy and others, Longformer (2020); Jiang and others, Mistral 7B (2023), whose W is left + 1.
    """
    check_counts(**{name: n for name, n in (("left", left), ("right", right)) if n is not None})
    return Window(*(None if n is None or n >= FAR else int(n) for n in (left, right)))


def prefix(n: int) -> Mask:
    """Return a causal mask under which all queries see the first n keys too. n: a whole number of at least 0."""
    check_counts(n=n)
    return Prefix(min(int(n), FAR))


def documents(ids: ArrayLike) -> Mask:
    """Return the mask of sequences packed into one: a query sees the keys of its own document.

    ids: whole numbers, (N_k,), or (B, N_k); the tokens of a document are contiguous. With `causal() &` queries see
    only earlier keys. Numbers must be finite in all documents: in a tile that two documents share, weights of 0
    are multiplied by values of the other one, and 0 times an inf or a NaN is NaN. Raises TypeError or ValueError
    for anything else.
    """
    return Documents(ids)


def tree(parents: ArrayLike) -> Mask:
    """Return the mask of a tree of candidates that are verified at once, in speculative decoding.

    parents: whole numbers, (N_q,), or (B, N_q) for a tree per sequence: candidate i continues parents[i] < i, or
    the text itself if that is -1. It sees the keys before the candidates, its ancestors' and its own. With
    range(-1, N_q - 1) the mask is causal. Raises TypeError or ValueError for anything else.
    Source: Miao and others, SpecInfer (2024), "tree attention"; Cai and others, Medusa (2024).
    """
    return Tree(parents)


def blocks(table: ArrayLike, B_r: int, B_c: int) -> Mask:
    """Return the mask that allows tiles of B_r x B_c scores. table: (ceil(N_q / B_r), ceil(N_k / B_c)) of bool.

    Its tiles are counted from the first row and the first key; those of an algorithm may have different sizes.
    """
    return Blocks(table, B_r, B_c)


def dense(seen: ArrayLike) -> Mask:
    """Return the mask of a table: True where a score is seen. seen: bools, (N_q, N_k) or (B, H, N_q, N_k).

    An array or a torch tensor, which is copied; an axis of 1 stands for all batches, heads, rows or keys. Make the
    mask once and pass it again: kernels look at each score once, and keep a bit for each with the mask.
    Raises TypeError or ValueError for anything else.
    """
    return Dense(seen)


def from_function(f: Callable, *, kernel: Callable | None = None) -> Mask:
    """Return the mask of a function: f(r, c), or f(b, h, r, c) if batches and heads differ.

    r, c: positions, whole numbers, as arrays or torch tensors that broadcast; f compares them and returns bool, as
    arrays or tensors of a shape that broadcasts to theirs. r is negative for the first rows if N_q > N_k. b and h
    are 0 in `tiled`, `naive` and `cost`, which compute one head. kernel: see Function.
    f is evaluated in each call, for all scores, so that its variables may change between two calls. A backward
    pass uses what the forward pass saw. In the kernels this may take longer than the attention itself: if f always
    returns the same, make `masks.dense(table)` from it once, and pass that to each call, or pass a kernel, whose
    results are kept with the mask.
    Raises TypeError for another f or kernel; when f is called, TypeError or ValueError if it returns anything
    else.
    """
    return Function(f, kernel)


def alibi(slopes: ArrayLike) -> Mask:
    """Return ALiBi: S - slopes[h] * |r - c|. slopes: (H,), see `alibi_slopes`, or one number for all heads."""
    return Alibi(slopes)


def alibi_slopes(H: int) -> np.ndarray:
    """Return the slopes of H heads, 2^(-8 h / H) for h = 1 to H.

    Source: Press and others, Train Short, Test Long (2022), for H a power of two.
    """
    check_counts(H=H, at_least=1)
    return 2.0 ** (-8 * np.arange(1, H + 1) / H)


def softcap(cap: float) -> Mask:
    """Return a soft cap: cap * tanh(S / cap). cap: a positive number. Source: Gemma 2 (2024), section 2."""
    if isinstance(cap, bool) or not isinstance(cap, Real) or not 0 < cap <= sys.float_info.max:
        raise ValueError(f"cap is {cap!r}; pass a positive number, such as the 50 of Gemma 2")
    return Softcap(float(cap))


def score(
    f: Callable, slope: Callable, *, kernel: tuple[Callable, ...] | None = None, bias: Array | None = None,
    at: Callable | None = None, by_bias: Callable | None = None,
) -> Mask:  # fmt: skip
    """Return a change of scores: f(S, h, r, c) in place of S, and its derivative slope(S, h, r, c).

    S: scaled scores, an array or a torch tensor; h: the head; r, c: positions. The backward pass multiplies dS by
    the slope. Both must be finite at all positions, including those that a mask hides: dS is 0 there, and 0 times
    infinity is NaN. kernel: (f, slope) as @triton.jit functions, for the kernels.
    With a bias, a tensor of floats, each score reads one of its entries, t = bias[at(b, h, r, c)], and all
    functions take it: f(S, h, r, c, t), slope(S, h, r, c, t), and by_bias(S, h, r, c, t), the derivative of f with
    respect to t. So the bias has a gradient. at: returns an index, or a tuple with one for each axis, from 0 on;
    None: the bias broadcasts to (B, H, N_q, N_k). kernel: (f, slope, by_bias), and the @triton.jit of `at` as the
    fourth. When the bias is read: see `bias`. b and h are 0 in `tiled`, `naive` and `cost`, which compute one
    head. Raises TypeError for other functions or another bias, ValueError for a bias of other axes.
    """
    if bias is not None:
        change, of_at = change_of(f, slope, by_bias, kernel)
        return Biased(bias, lookup(at, of_at), change)
    if at is not None or by_bias is not None:
        raise TypeError(f"bias is None, and {'by_bias' if at is None else 'at'} is given; pass both, or neither")
    for g in (f, slope):
        count_arguments(g, (4,), "S, h, r, c")
    return Score(f, slope, kernel)


def bias(bias: Array, at: Callable | None = None, *, kernel: Callable | None = None) -> Mask:
    """Return a learned bias: S + bias, which broadcasts to (B, H, N_q, N_k), or S + bias[at(b, h, r, c)].

    bias: an array, or a tensor of floats, which gets a gradient wherever Q, K and V do. A mask does not copy it:
    changes to it take effect from the next call on. -inf hides a score.
    at: b, h: batch and head; r, c: positions, whole numbers, as arrays or tensors that broadcast; it returns an
    index, or a tuple with one for each axis. kernel: the same as a @triton.jit function. An index outside the bias
    is refused; kernels check only the first and last rows and keys, and read a 0 at any other index outside it.
    Raises TypeError or ValueError for anything else.
    """
    return Biased(bias, lookup(at, kernel))


def distance_bias(bias: Array) -> Mask:
    """Return a learned bias of distances: S + bias[h, r - c + N_q - 1]: from r - c = 1 - N_q to N_k - 1.

    bias: (H, N_q + N_k - 1), or (N_q + N_k - 1,) for all heads, as in `bias`. If many distances share a number, as
    in the buckets of T5, spread it first, `weight[buckets].T`: autograd adds up the gradients of a bucket.
    Raises TypeError or ValueError for anything else.
    """
    return Biased(bias, OfDistance())


def resolve(mask: Mask | None, causal_: bool, N_q: int, N_k: int) -> Tiles:
    """Return the mask of a call for one head: with `causal_` and a mask, what both see.

    Raises TypeError for a bias that is not NumPy's.
    """
    mask = combined(mask, causal_)
    check_of_numpy(mask.biases)
    return mask.on(N_q, N_k)


def fitted(mask: Mask | None, causal_: bool, B: int, H: int, N_q: int, N_k: int) -> Mask:
    """Return the mask of a call for B sequences of H heads (of Q); raise ValueError if it does not fit them."""
    mask = combined(mask, causal_)
    for name, count, given in (("heads", mask.heads, H), ("sequences", mask.batches, B)):
        if count not in (None, 1, given):
            raise ValueError(f"the mask is made for {count} {name}, and Q has {given}; they must be equal")
    mask.check(Place(N_q, N_k))
    return mask


def combined(mask: Mask | None, causal_: bool) -> Mask:
    """Return the mask that `mask` and `causal` of a call mean together; raise TypeError for anything else."""
    check_causal(causal_)
    if mask is None:
        return causal() if causal_ else Mask()
    return causal() & check_mask(mask) if causal_ else check_mask(mask)
