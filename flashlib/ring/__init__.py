"""Attention over ranks: a sequence is cut over P processes, and keys and values travel round.

Each rank keeps its rows of Q. Keys and values arrive hop by hop; what a rank knows after each hop is a State of
its rows, and the monoid of Online softmax merges these. In one process, with NumPy alone:

    attention, backward, events, check   whole tensors in and out; the same with every event; in every order
    layouts      who holds which tokens: contiguous, striped, zigzag
    hops         which rows and keys each hop computes, decided from the mask before anything runs
    commands     what a rank yields: Send, Receive, Wait, Compute; Buffer; the faults of ranks
    rank, tiles  what a rank knows, and the tiles that it computes
    programs     what a rank does: ring, all_gather, and their backward passes
    play         runs the ranks: in the order that the times of tiles and copies give, or at random
    schedules    all orders of small programs
    head_groups  groups of ranks that share heads; ulysses: they exchange heads for rows, alone or within a ring
    cost         tiles, bytes, steps and memory of each way, in closed form

Over processes: `agree` compares what the ranks were given; `processes` starts them; `distributed` is attention
over ranks of torch.distributed. docs/zigzag_ring.py is a ring on one screen.
"""

from flashlib.ring.commands import KINDS, Buffer, BufferContent, Compute, FaultKind, Receive, RingFault, Send, Wait
from flashlib.ring.hops import Hop, RingPlan, plan
from flashlib.ring.layouts import join, positions, split
from flashlib.ring.play import Event, RingPlay, Times
from flashlib.ring.rank import Rank
from flashlib.ring.runs import RingRun, attention, backward, check, events
from flashlib.ring.schedules import RingReport

__all__ = [
    "KINDS", "Buffer", "BufferContent", "Compute", "Event", "FaultKind", "Hop", "Rank", "Receive", "RingFault",
    "RingPlan", "RingPlay", "RingReport", "RingRun", "Send", "Times", "Wait", "attention", "backward", "check",
    "events", "join", "plan", "positions", "split",
]  # fmt: skip
