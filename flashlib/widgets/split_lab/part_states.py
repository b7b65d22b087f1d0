"""The States of SplitLab: of each part of one query's keys, from the steps of `tiled`, and merged in an order."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from flashlib import tiled
from flashlib.softmax import State, merge, summarise
from flashlib.types import Attention
from flashlib.widgets.split_lab import model
from flashlib.widgets.split_lab.choices import COUNTS

D = 4  # head dimension of the shown query, small enough to show O_acc
SPREAD = 4.0  # factor of the query, so that the maxima of the parts differ visibly
BINS = 480  # of the scores, at most


class Merged(NamedTuple):
    """Nodes: the parts, then one for each merge. children: ids; spans: the first part and the one after the last.

    alphas: exp(m_child - m) of both children, or NaN. level: the longest chain of merges that leads to it.
    """

    states: list[State]
    children: list[list[int]]
    spans: list[list[int]]
    alphas: list[tuple[float, float]]
    levels: list[int]


@cache
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q (1, D), K and V (N, D), in fp64; every N_k uses the first N_k of these keys."""
    rng = np.random.default_rng(15)
    q, K, V = (rng.normal(size=(n, D)) for n in (1, COUNTS["N_k"][1], COUNTS["N_k"][1]))
    q *= SPREAD / np.linalg.norm(q)
    return q, K, V


@lru_cache(4)
def scores(N_k: int) -> np.ndarray:
    """Return the scaled scores of the query, (N_k,)."""
    q, K, _ = problem()
    return K[:N_k] @ q[0] / np.sqrt(D)


@lru_cache(16)
def states(N_k: int, parts: int) -> tuple[State, ...]:
    """Return the State of each part after its program has streamed its tiles: m and l scalars, O_acc (D,)."""
    q, K, V = problem()
    found = []
    for begin, end in model.split(N_k, parts):
        *_, last = tiled.steps(q, K[begin:end], V[begin:end], B_r=1, B_c=model.B_C)
        found.append(State(last.m[0], last.l[0], last.O_acc[0]))
    return tuple(found)


def merged(leaves: list[State] | tuple[State, ...], order: str) -> Merged:
    """Merge States in a row, or neighbours in pairs as a tree; the last node is the root."""
    n = len(leaves)
    nodes = Merged(list(leaves), [], [[k, k + 1] for k in range(n)], [(np.nan, np.nan)] * n, [0] * n)
    waiting = list(range(n))
    while len(waiting) > 1:
        if order == "row":
            waiting[:2] = [_join(nodes, *waiting[:2])]
        else:
            pairs = [waiting[k : k + 2] for k in range(0, len(waiting), 2)]
            waiting = [_join(nodes, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return nodes


def _join(nodes, a, b):
    """Add the merge of two nodes; return its id."""
    left, right = nodes.states[a], nodes.states[b]
    state = merge(left, right)
    nodes.states.append(state)
    nodes.children.append([a, b])
    nodes.spans.append([nodes.spans[a][0], nodes.spans[b][1]])
    nodes.alphas.append((np.exp(left.m - state.m), np.exp(right.m - state.m)))
    nodes.levels.append(1 + max(nodes.levels[a], nodes.levels[b]))
    return len(nodes.states) - 1


def finished(state: State) -> Attention:
    """Return O (D,) and lse of a State."""
    return Attention(state.O_acc / state.l, state.m + np.log(state.l))


@lru_cache(4)
def in_one_go(N_k: int) -> Attention:
    """Return O (D,) and lse of attention over all keys at once."""
    return finished(summarise(scores(N_k), problem()[2][:N_k]))


def difference(found: Attention, exact: Attention) -> float:
    """Return the largest difference of O and lse."""
    return float(max(np.abs(found.O - exact.O).max(), abs(found.lse - exact.lse)))


@lru_cache(4)
def outline(N_k: int) -> np.ndarray:
    """Return the largest score in each of at most BINS equal runs of keys."""
    starts = np.arange(min(BINS, N_k)) * N_k // min(BINS, N_k)
    return np.maximum.reduceat(scores(N_k), starts)


def pack(nodes: Merged, N_k: int) -> bytes:
    """Return what the page draws, as float64.

    This is the outline; for each node m, l, O_acc and both alphas; O and lse of the root, and those in one go.
    """
    rows = [[s.m, s.l, *s.O_acc, *alphas] for s, alphas in zip(nodes.states, nodes.alphas, strict=True)]
    ends = [(*end.O, end.lse) for end in (finished(nodes.states[-1]), in_one_go(N_k))]
    return np.concatenate([outline(N_k), *rows, *ends]).astype("<f8").tobytes()
