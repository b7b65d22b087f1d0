"""A ring in one process: whole tensors are cut over ranks, the ranks run, and their results are joined."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashlib import masks
from flashlib.inputs import (
    check_block_sizes,
    check_floating,
    check_gradient_inputs,
    check_shapes,
    resolve_scale,
)
from flashlib.masks import runs as items
from flashlib.ring import layouts, programs, ulysses
from flashlib.ring.commands import RingFault
from flashlib.ring.head_groups import check_group, runs
from flashlib.ring.hops import RingPlan, plan
from flashlib.ring.play import TIMES, Event, RingPlay, Times, shuffled, timed
from flashlib.ring.rank import Rank
from flashlib.ring.schedules import RingReport, check_orders
from flashlib.ring.ulysses import Member
from flashlib.types import Attention, Grads


class RingRun(NamedTuple):
    """A run of all ranks. result: of the whole sequence, None after a fault; fault: what went wrong, or None.

    events: in the order in which they end, or that of the seed. ranks: the Ranks, with their buffers; plan: who
    holds what and sees whose keys.
    """

    events: list[Event]
    result: Attention | Grads | None
    fault: RingFault | None
    ranks: list[Rank]
    plan: RingPlan

    def sent(self, r: int) -> int:
        """Return the bytes that rank r sent."""
        return sum(event.n_bytes for event in self.events if event.kind == "copy" and event.rank == r)

    def received(self, r: int) -> int:
        """Return the bytes that rank r received."""
        return sum(event.n_bytes for event in self.events if event.kind == "copy" and event.other == r)

    def tiles(self, r: int) -> int:
        """Return the tiles that rank r computed."""
        return sum(event.tiles for event in self.events if event.rank == r)

    def buffers(self, r: int) -> int:
        """Return the bytes of the buffers of rank r, its own K and V included."""
        return sum(buffer.n_bytes for buffer in self.ranks[r].buffers)


def attention(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    ranks: int,
    layout: str = "zigzag",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    B_r: int = 64,
    B_c: int = 64,
) -> Attention:
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, computed by `ranks` ranks of a ring.

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); all float16, float32 or float64, N_q and N_k of any size.
    O: (N_q, d_v), the dtype of Q; lse: (N_q,), fp32 or, for fp64 inputs, fp64, as all that hops pass on.
    layout: "contiguous", "striped" or "zigzag", see `layouts`. causal, mask, scale, B_r, B_c: as in `tiled.steps`.
    Raises TypeError or ValueError, before any work, for arguments other than these.
    Source: Liu and others, Ring Attention with Blockwise Transformers for Near-Infinite Context (2023).
    """
    options = {"causal": causal, "mask": mask, "scale": scale, "B_r": B_r, "B_c": B_c}
    return _result(events(Q, K, V, ranks=ranks, layout=layout, **options))  # type: ignore[arg-type]


def backward(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,
    lse: np.ndarray,
    dO: np.ndarray,
    *,
    ranks: int,
    layout: str = "zigzag",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    B_r: int = 64,
    B_c: int = 64,
) -> Grads:
    """Return the gradients of sum(dO * O) with respect to Q, K and V, computed by `ranks` ranks of a ring.

    O, lse: what `attention` returned for all rows. dK and dV follow K and V, in fp32 (fp64), and come home. For
    the other arguments and for errors, see `attention`.
    """
    options = {"causal": causal, "mask": mask, "scale": scale, "B_r": B_r, "B_c": B_c}
    after = O, lse, dO
    return _result(events(Q, K, V, after=after, ranks=ranks, layout=layout, **options))  # type: ignore[arg-type]


def events(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    ranks: int,
    layout: str = "zigzag",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    B_r: int = 64,
    B_c: int = 64,
    after: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    program: Callable | None = None,
    times: Times = TIMES,
    heads: int = 1,
    seed: int | None = None,
) -> RingRun:
    """Return the RingRun of a ring: every event, and the result or the RingFault that ended it.

    Q, K, V: of one head, (N, d), or of several: (H, N_q, d), (H_k, N_k, d), (H_k, N_k, d_v), H a multiple of H_k.
    after: (O, lse, dO) for the backward pass. program: what each rank does, a function of a Rank that returns a
    generator of commands, whose last value is the rank's Attention or Grads; by default `programs.ring` or, with
    `after`, `programs.ring_backward`. heads: how many ranks form a group that shares heads, a divisor of ranks,
    see `head_groups`; if it equals ranks, this is Ulysses. times: how long a tile and a copy take. seed: of a
    random order; None for the order that the times give. For the other arguments and for errors, see `attention`.
    """
    make = _maker(Q, K, V, ranks, layout, causal, mask, scale, B_r, B_c, after, program, heads)
    made, found, generators = make()
    play = RingPlay(generators, times, finite=all(np.isfinite(X).all() for X in (Q, K, V)))
    try:
        timed(play) if seed is None else shuffled(play, seed)
    except RingFault as fault:
        return RingRun(_in_order(play, seed), None, fault, made, found)
    result = _joined(play.results, found.N_q, found.N_k, layout, heads)
    result = type(result)(*(X[0] for X in result)) if Q.ndim == 2 else result
    return RingRun(_in_order(play, seed), result, None, made, found)


def check(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    *,
    ranks: int,
    layout: str = "zigzag",
    causal: bool = False,
    mask: masks.Mask | None = None,
    scale: float | None = None,
    B_r: int = 64,
    B_c: int = 64,
    after: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    program: Callable | None = None,
    heads: int = 1,
    most: int = 20_000,
    orders: int = 20,
) -> RingReport:
    """Return whether ranks are right in every order of events: what `schedules.check_orders` reports.

    most: the number of states beyond which only `orders` random orders are tried. Other arguments: see `events`.
    """
    make = _maker(Q, K, V, ranks, layout, causal, mask, scale, B_r, B_c, after, program, heads)
    return check_orders(lambda: make()[2], most=most, orders=orders)


def _maker(Q, K, V, ranks, layout, causal, mask, scale, B_r, B_c, after, program, heads):
    """Check all arguments, and return a function that makes fresh Ranks, their RingPlan, and their generators."""
    layouts.check_cut(ranks, layout)
    _check(Q, K, V, causal, mask, B_r, B_c, after)
    resolve_scale(scale, Q.shape[-1])
    check_group(ranks, heads)
    arrays = [X[None] if Q.ndim == 2 else X for X in (Q, K, V, *(after or ()))]
    program = program or _program(after is not None, heads)
    found = plan(masks.combined(mask, causal), Q.shape[-2], K.shape[-2], ranks // heads, layout)

    def make():
        made = _ranks(*arrays[:3], ranks, found, scale, B_r, B_c, tuple(arrays[3:]), heads)
        return made, found, [program(rank) for rank in made]

    return make


def _in_order(play, seed):
    return play.events if seed is not None else sorted(play.events, key=lambda event: event.stop)


def _program(is_backward, heads):
    if heads > 1:
        return ulysses.backward if is_backward else ulysses.forward
    return programs.ring_backward if is_backward else programs.ring


def _ranks(Q, K, V, ranks, found, scale, B_r, B_c, after, size):
    """Return the Ranks, or Members, that share arrays (H, N, d)."""
    cut = [_cut(X, ranks, found.layout, size) for X in (Q, K, V, *(after or ()))]
    options = {"scale": resolve_scale(scale, Q.shape[-1]), "B_r": B_r, "B_c": B_c}
    group, made = len(Q) // max(len(K), 1), []
    for r in range(ranks):
        own = tuple(X[r] for X in cut[:3])
        mine = {**options, "after": tuple(X[r] for X in cut[3:]) or None}
        if size > 1:
            made.append(Member(r, size, found, *own, **mine))
        else:
            made.append(Rank(r, found, *own, kv_heads=[h // group for h in range(len(Q))], **mine))
    return made


def _check(Q, K, V, causal, mask, B_r, B_c, after):
    """Raise TypeError or ValueError unless the arrays fit together, and the mask fits them."""
    check_block_sizes(B_r=B_r, B_c=B_c)
    check_floating(Q=Q, K=K, V=V)
    if Q.ndim == 3 and K.ndim == 3 and V.ndim == 3:
        check_shapes(Q[None], K[None], V[None], axes="(1, H, N, d)", grouped=True, values=True)
    else:
        check_shapes(Q, K, V, axes="(N, d)", values=True)
    masks.combined(mask, causal).on(Q.shape[-2], K.shape[-2])  # raises if the mask does not fit these sizes
    if after is not None:
        O, lse, dO = after
        check_floating(Q=Q, O=O, dO=dO)
        check_floating(lse=lse)
        check_gradient_inputs(Q, O, lse, dO, np.promote_types(Q.dtype, np.float32), V=V)


def _cut(X, ranks, layout, size):
    """Return what each rank holds of X, (H, N, ...)."""
    own = [items.positions(runs(X.shape[1], ranks, r, layout, size)) for r in range(ranks)]
    return [X[:, rows] for rows in own]


def _joined(results, N_q, N_k, layout, size):
    """Return the Attention or Grads of all tokens from those of the ranks."""
    P, kind = len(results), type(results[0])
    for r, result in enumerate(results):
        if not isinstance(result, Attention | Grads) or not isinstance(result, kind):
            raise TypeError(
                f"rank {r} returned {type(result).__name__}; return an Attention, me.finish(state), or Grads"
            )
    sizes = (N_q, N_q) if kind is Attention else (N_q, N_k, N_k)
    found = []
    for N, parts in zip(sizes, zip(*results, strict=True), strict=True):
        order = np.concatenate([items.positions(runs(N, P, r, layout, size)) for r in range(P)])
        X = np.concatenate(parts, axis=1)
        if X.shape[1] != N:
            raise ValueError(f"the ranks returned {X.shape[1]} rows together; there are {N}: return those of each")
        found.append(X[:, np.argsort(order)])
    return kind(*found)


def _result(run):
    if run.fault:
        raise run.fault
    return run.result
