"""A ring run in one process: ranks made from whole tensors, played, and their parts joined again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashlib import masks
from flashlib.inputs import check_block_sizes, check_floating, check_gradient_inputs, check_shapes, resolve_scale
from flashlib.ring import layouts, programs
from flashlib.ring.commands import Fault
from flashlib.ring.hops import Plan, plan
from flashlib.ring.rank import Rank
from flashlib.ring.schedules import Event, Play, Times, shuffled, timed
from flashlib.types import Attention, Grads


class Run(NamedTuple):
    """What was played. events: in order of time; result: of the whole, None after a fault; fault: what went wrong.

    ranks: the Ranks, with their buffers; plan: who holds what and sees whom.
    """

    events: list[Event]
    result: Attention | Grads | None
    fault: Fault | None
    ranks: list[Rank]
    plan: Plan

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

    Q: (N_q, d); K: (N_k, d); V: (N_k, d_v); all float16, float32 or float64, N_q and N_k of any size. O: (N_q, d_v),
    the dtype of Q; lse: (N_q,), fp32 or, for fp64 inputs, fp64, as is what hops leave for each other.
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

    O, lse: what `attention` returned, of all rows. dK and dV travel behind K and V, in fp32 (fp64), and come home.
    The other arguments and what is raised: see `attention`.
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
    times: Times = Times(),
    seed: int | None = None,
) -> Run:
    """Return the Run of a ring: every event, and the result or the Fault that ended it.

    after: (O, lse, dO) for the backward pass. program: what each rank does, a function of a Rank that returns a
    generator of commands, whose last value is the rank's Attention or Grads; None: `programs.ring` or, with `after`,
    `programs.ring_backward`. times: how long a tile and a copy take. seed: of an order at random; None: the order
    that the times give. The other arguments and what is raised: see `attention`.
    """
    check_block_sizes(B_r=B_r, B_c=B_c)
    made, found = _ranks(Q, K, V, ranks, layout, causal, mask, scale, B_r, B_c, after)
    program = program or (programs.ring if after is None else programs.ring_backward)
    generators = [program(rank) for rank in made]
    finite = all(np.isfinite(X).all() for X in (Q, K, V))
    play = Play(generators, times, finite=finite)
    try:
        timed(play) if seed is None else shuffled(play, seed)
    except Fault as fault:
        return Run(play.events, None, fault, made, found)
    return Run(play.events, _joined(play.results, layout), None, made, found)


def _ranks(Q, K, V, ranks, layout, causal, mask, scale, B_r, B_c, after):
    """Return the Ranks of one head, and the Plan."""
    check_floating(Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(N, d)", values=True)
    scale = resolve_scale(scale, Q.shape[-1])
    mask = masks.combined(mask, causal)
    mask.on(len(Q), len(K))  # it raises if the mask does not fit one head of these sizes
    if after is not None:
        check_floating(Q=Q, O=after[0], dO=after[2])
        check_floating(lse=after[1])
        check_gradient_inputs(Q, *after, np.promote_types(Q.dtype, np.float32), V=V)
    found = plan(mask, len(Q), len(K), ranks, layout)
    split = [layouts.split(X[None], ranks, layout, axis=1) for X in (Q, K, V, *(after or ()))]
    options = {"scale": scale, "B_r": B_r, "B_c": B_c}
    made = [
        Rank(r, found, *(X[r] for X in split[:3]), after=tuple(X[r] for X in split[3:]) or None, **options)
        for r in range(ranks)
    ]
    return made, found


def _joined(results, layout):
    """Return the Attention or Grads of one head from those of the ranks."""
    kind = type(results[0])
    return kind(*(layouts.join(parts, layout, axis=1)[0] for parts in zip(*results, strict=True)))


def _result(run):
    if run.fault:
        raise run.fault
    return run.result
