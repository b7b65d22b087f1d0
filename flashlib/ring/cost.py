"""Closed forms of what ranks compute, send and hold with each way of moving data; nothing is run.

Tensors are in `dtype`; what one hop passes to the next, such as dK and dV on their way, is fp32, or fp64 for
float64. A rank sends nothing to itself. A test compares these bytes with those that the simulation counts.

    ring        K and V go round, no further than they are needed
    all_gather  K and V of all ranks go to all ranks, needed or not
    both        groups of `heads` ranks exchange heads for rows, and one rank of each group forms a ring
    ulysses     a single group

Source: Liu and others, Ring Attention (2023), for what hides a copy; Jacobs and others, DeepSpeed Ulysses (2023).
"""

from typing import NamedTuple

from flashlib import cost, masks
from flashlib.inputs import check_block_sizes, check_counts
from flashlib.masks.runs import count
from flashlib.ring import hops
from flashlib.ring.head_groups import check_group, kv_heads, own_heads, pieces
from flashlib.types import DType


class Problem(NamedTuple):
    """An attention: H heads of N_q queries, H_k heads of N_k keys, in tiles of B_r x B_c. d_v: None for d."""

    N_q: int
    N_k: int
    d: int
    dtype: DType
    d_v: int | None = None
    H: int = 1
    H_k: int = 1
    causal: bool = False
    mask: masks.Mask | None = None
    B_r: int = 64
    B_c: int = 64


class Cost(NamedTuple):
    """What each rank does, a number for each rank. tiles: of S, over all its heads. sent, received: bytes.

    buffers: bytes of what a rank receives and sends, its own K and V included. memory: bytes that a rank holds:
    buffers, inputs, results, and sums in fp32. steps: how many copies a rank sends at most, one after the other.
    """

    tiles: tuple[int, ...]
    sent: tuple[int, ...]
    received: tuple[int, ...]
    buffers: tuple[int, ...]
    memory: tuple[int, ...]
    steps: int

    @property
    def balance(self) -> float:
        """The mean number of tiles over the largest: 1 if all ranks have equally many, 1 / P if one has all."""
        return sum(self.tiles) / (len(self.tiles) * max(self.tiles)) if any(self.tiles) else 1.0


def ring(problem: Problem, ranks: int, layout: str = "zigzag", *, backward: bool = False) -> Cost:
    """Return the Cost of `programs.ring` or, with `backward`, `programs.ring_backward`."""
    return both(problem, ranks, layout, heads=1, backward=backward)


def ulysses(problem: Problem, ranks: int, layout: str = "contiguous", *, backward: bool = False) -> Cost:
    """Return the Cost of Ulysses: `ulysses.forward` or, with `backward`, `ulysses.backward`, in one group."""
    return both(problem, ranks, layout, heads=ranks, backward=backward)


def all_gather(problem: Problem, ranks: int, layout: str = "zigzag") -> Cost:
    """Return the Cost of `programs.all_gather`."""
    items, plan = _planned(problem, ranks, layout)
    P, keys = plan.P, list(map(count, plan.keys))
    own = [problem.H_k * n * items.key for n in keys]
    return Cost(
        tuple(problem.H * n for n in _tiles(problem, plan)),
        tuple((P - 1) * own[r] for r in range(P)),
        tuple(sum(own) - own[r] for r in range(P)),
        (sum(own),) * P,
        tuple(_of_rows(items, problem.H, problem.H_k, plan, r, backward=False) + sum(own) for r in range(P)),
        P - 1,
    )


def both(problem: Problem, ranks: int, layout: str = "zigzag", *, heads: int, backward: bool = False) -> Cost:
    """Return the Cost of `ulysses.forward`, or `ulysses.backward`, in groups of `heads` ranks that form a ring.

    Raises TypeError or ValueError, as for every way, for sizes that are not whole numbers, an unknown dtype or
    layout, a mask that does not fit, or heads that do not divide ranks.
    """
    size = check_group(ranks, heads)
    items, plan = _planned(problem, ranks // size, layout)
    tiles, found, steps = _tiles(problem, plan), [], 0
    exchanges = [_exchange(problem, items, plan, size, at, backward) for at in range(plan.P)]
    for r in range(ranks):
        at, member = r // size, r % size
        own = own_heads(problem.H, size, member)
        kv = kv_heads(own, problem.H, problem.H_k)
        sent, received, buffers, copies = _round(items, plan, at, len(kv), backward)
        steps = max(steps, copies + 2 * (size - 1))
        rows = _of_rows(items, len(own), len(kv), plan, at, backward, is_inner=size > 1)
        out, into, held = exchanges[at][member]
        buffers += out + into
        found.append((len(own) * tiles[at], sent + out, received + into, buffers, buffers + rows + held))
    tiles_, sent_, received_, buffers_, memory = zip(*found, strict=True)
    return Cost(tiles_, sent_, received_, buffers_, memory, steps)


def tokens_to_hide(
    *, flops: float, bandwidth: float, dtype: DType, H: int = 1, H_k: int = 1, share: float = 1.0,
    backward: bool = False,
) -> float:  # fmt: skip
    """Return how many tokens a rank must hold so that a hop's copy takes no longer than its products.

    flops: of a rank, per second; bandwidth: bytes per second between two ranks. share: the fraction of a hop's
    scores that is computed, 1 / 2 under a causal mask with zigzag. If d_v is d, d cancels: n tokens take 4 n^2 d
    FLOPs for each head of Q (10 n^2 d backward), and 2 n d numbers to copy for each head of K and V (and as many
    for dK and dV).
    Source: Liu and others, Ring Attention (2023), who derive it for blocks.
    """
    check_counts(at_least=1, H=H, H_k=H_k)
    for name, value in (("flops", flops), ("bandwidth", bandwidth), ("share", share)):
        if not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value}; pass a positive number")
    size, acc = cost.itemsizes(dtype)
    n_bytes, work = (2 * (size + acc), 10) if backward else (2 * size, 4)
    return n_bytes * H_k * flops / (work * share * H * bandwidth)


class _Items(NamedTuple):
    """Bytes of a row of a head. query, output, key (K and V): in the dtype; key_grad: dK and dV on their way."""

    query: int
    output: int
    key: int
    key_grad: int
    query_sum: int
    output_sum: int
    number: int  # of lse, m, l or delta


def _planned(problem, P, layout):
    """Return the _Items and the RingPlan; raise TypeError or ValueError for a Problem that makes no sense."""
    check_counts(N_q=problem.N_q, N_k=problem.N_k)
    d_v = problem.d if problem.d_v is None else problem.d_v
    check_counts(at_least=1, d=problem.d, d_v=d_v, H=problem.H, H_k=problem.H_k)
    check_block_sizes(B_r=problem.B_r, B_c=problem.B_c)
    if problem.H % problem.H_k:
        raise ValueError(f"H is {problem.H} and H_k is {problem.H_k}; H must be a multiple of H_k")
    size, acc = cost.itemsizes(problem.dtype)
    mask = masks.combined(problem.mask, problem.causal)
    mask.on(problem.N_q, problem.N_k)
    both = problem.d + d_v
    items = _Items(problem.d * size, d_v * size, both * size, both * acc, problem.d * acc, d_v * acc, acc)
    return items, hops.plan(mask, problem.N_q, problem.N_k, P, layout)


def _tiles(problem, plan):
    """Return the tiles of each rank of a ring, for one head."""
    return [sum(_tiles_of(problem, hop) for hop in own if hop) for own in plan.hops]


def _tiles_of(problem, hop):
    rows, keys = (part.stop - part.start for part in hop[:2])
    blocks = {"B_r": problem.B_r, "B_c": problem.B_c}
    plain, causal = not hop.mask.conjuncts(), hop.mask == masks.causal()
    mask = None if plain or causal else hop.mask  # without one it is a closed form, for any number of rows
    return int(cost.tiles_per_row_block(rows, keys, causal=causal, mask=mask, **blocks).sum())


def _round(items, plan, r, kv, backward):
    """Return the bytes that rank r of a ring sends, receives and buffers, and how many copies it sends."""
    sent = received = copies = 0
    room = [0, 0, 0, 0]  # of kv[0], kv[1], dkv in, dkv out
    for hop in range(plan.P):
        source = (r - hop) % plan.P
        n, last = kv * count(plan.keys[source]), plan.last[source]
        comes, goes, adds = 0 < hop <= last, hop < last, backward and 0 < last and hop <= last
        sent += n * (items.key * goes + items.key_grad * adds)
        copies += goes + adds
        received += n * (items.key + items.key_grad * backward) * comes
        room[(hop + 1) % 2] = max(room[(hop + 1) % 2], n * items.key * comes)
        room[2] = max(room[2], n * items.key_grad * (comes and backward))
        room[3] = max(room[3], n * items.key_grad * adds)
    own = kv * count(plan.keys[r])
    home = own * items.key_grad * (backward and plan.last[r] > 0)
    return sent, received + home, own * items.key + sum(room) + home, copies


def _of_rows(items, heads, kv, plan, r, backward, is_inner=False):
    """Return the bytes that rank r of a ring holds besides buffers. is_inner: in a group, which rounds later.

    Forward: Q, O and lse, the State of its rows, and that of a hop. Backward: Q, O, dO, lse and delta, the sum of
    dQ, what a hop adds to it and to dK and dV, and finally the gradients. In a group, delta is given instead of O.
    """
    n_q, n_k = heads * count(plan.rows[r]), kv * count(plan.keys[r])
    if not backward:
        output = items.output_sum if is_inner else items.output
        return n_q * (items.query + output + items.number + 2 * (items.output_sum + 2 * items.number))
    most = kv * max(map(count, plan.keys))
    query, key = (items.query_sum, items.key_grad) if is_inner else (items.query, items.key)
    given = items.query + items.output * (1 if is_inner else 2) + 2 * items.number
    return n_q * (given + 2 * items.query_sum + query) + most * items.key_grad + n_k * key


def _exchange(problem, items, plan, size, at, backward):
    """Return, for each member of a group, the bytes that it sends, receives, and holds for rows of all heads."""
    n_q, n_k = ([count(piece) for piece in pieces(held[at], size)] for held in (plan.rows, plan.keys))
    own = [own_heads(problem.H, size, m) for m in range(size)]
    H = [(len(heads), len(kv_heads(heads, problem.H, problem.H_k))) for heads in own]

    def first(rows, heads):  # Q, K and V; backward dO, lse and delta too
        more = (items.output + 2 * items.number) * backward
        return n_q[rows] * H[heads][0] * (items.query + more) + n_k[rows] * H[heads][1] * items.key

    def second(heads, rows):  # O and lse; backward dQ, dK and dV
        if not backward:
            return n_q[rows] * H[heads][0] * (items.output + items.number)
        return n_q[rows] * H[heads][0] * items.query_sum + n_k[rows] * H[heads][1] * items.key_grad

    found = []
    for m in range(size):
        others = [other for other in range(size) if other != m]
        out = sum(first(m, other) + second(m, other) for other in others)
        into = sum(first(other, m) + second(other, m) for other in others)
        found.append((out, into, _of_all_heads(problem, items, n_q[m], n_k[m], backward) if size > 1 else 0))
    return found


def _of_all_heads(problem, items, n_q, n_k, backward):
    """Return the bytes of a member's own rows, for all heads, besides buffers."""
    n_q, n_k = problem.H * n_q, problem.H_k * n_k
    if not backward:
        return n_q * (items.query + items.output + items.number) + n_k * items.key
    rows = n_q * (2 * items.query + 2 * items.output + 2 * items.number + items.query_sum)
    return rows + n_k * (2 * items.key + items.key_grad)
