"""Attention over ranks: a sequence cut over P processes, whose keys and values travel round.

Each rank keeps its rows of Q. Keys and values come to it hop by hop; what it knows after each hop is a State of
its rows, and chapter 03's monoid merges them. In one process, with NumPy alone:

    attention, backward, events, check   from whole tensors to whole tensors; every event of it; in every order
    layouts     who holds which tokens: contiguous, striped, zigzag
    hops        who computes what with whose keys, asked of a mask before anything runs
    commands    what a rank yields: Send, Receive, Wait, Compute; Buffer; what ranks must never do
    rank, tiles what a rank knows, and the tiles that it computes
    programs    what a rank does: ring, all_gather, and the same backward
    play        ranks on their way: by the time that tiles and copies take, or at random
    schedules   all orders of small programs
    head_groups groups of ranks that share heads; ulysses: they exchange heads for rows
    cost        tiles, bytes, steps and memory of every way, in closed form

Over processes: `agree`, by which ranks compare what they were given; `processes`, which starts them;
`distributed`, attention over ranks of torch.distributed.
"""

from flashlib.ring.commands import KINDS, Block, Buffer, Compute, Fault, Kind, Receive, Send, Wait
from flashlib.ring.hops import Hop, Plan, plan
from flashlib.ring.layouts import join, positions, split
from flashlib.ring.play import Event, Play, Times
from flashlib.ring.rank import Rank
from flashlib.ring.runs import Run, attention, backward, check, events
from flashlib.ring.schedules import Report

__all__ = [
    "KINDS", "Block", "Buffer", "Compute", "Event", "Fault", "Hop", "Kind", "Plan", "Play", "Rank", "Receive",
    "Report", "Run", "Send", "Times", "Wait", "attention", "backward", "check", "events", "join", "plan",
    "positions", "split",
]  # fmt: skip
