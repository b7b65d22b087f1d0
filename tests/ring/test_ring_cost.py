"""The closed forms of what ranks compute, send and hold equal the counts of the simulation."""

import numpy as np
import pytest

from flashlib import masks, ring
from flashlib.ring import Times, cost, layouts, programs

MASKS = {
    "all": lambda N: None,
    "window": lambda N: masks.window(5, 0),
    "prefix": lambda N: masks.prefix(4),
    "documents": lambda N: masks.documents(np.arange(N) // 7) if N else None,
    "stripes": lambda N: masks.from_function(lambda r, c: (r - c) % 5 == 0),
}
WAYS = {"ring": programs.ring, "all_gather": programs.all_gather, "ulysses": None, "both": None}
BACKWARD = {"ring": programs.ring_backward, "ulysses": None, "both": None}


def drawn(rng, way, mask):
    """Return a random Problem, its arrays, the number of ranks and the size of a group."""
    N_q, N_k = (int(n) for n in rng.integers(0, 50, 2))
    H_k, group, P, size = (int(n) for n in rng.integers(1, 4, 4))
    dtype = rng.choice([np.float16, np.float32, np.float64])
    size = {"both": size, "ulysses": P}.get(way, 1)
    P = P * size if way == "both" else P
    d, d_v, H = 4, 3, H_k * group
    problem = cost.Problem(N_q, N_k, d, dtype, d_v, H, H_k, bool(rng.random() < 0.5), MASKS[mask](N_k), 8, 8)
    shapes = (H, N_q, d), (H_k, N_k, d), (H_k, N_k, d_v), (H, N_q, d_v)
    return problem, [rng.standard_normal(shape).astype(dtype) for shape in shapes], P, size


@pytest.mark.parametrize("way, is_backward", [*((way, False) for way in WAYS), *((way, True) for way in BACKWARD)])
@pytest.mark.parametrize("mask", MASKS)
def test_counts_equal_the_closed_forms(way, mask, is_backward, rng):
    for n in range(5):
        problem, (Q, K, V, dO), P, size = drawn(rng, way, mask)
        layout = list(layouts.LAYOUTS)[n % 3]
        options = {"ranks": P, "layout": layout, "heads": size, "mask": problem.mask, "causal": problem.causal}
        options |= {"B_r": 8, "B_c": 8, "program": (BACKWARD if is_backward else WAYS)[way]}
        if is_backward:
            options["after"] = dO, np.zeros(Q.shape[:2], np.promote_types(Q.dtype, np.float32)), dO
        run = ring.events(Q, K, V, **options)
        asked = ({"heads": size} if way == "both" else {}) | ({"backward": True} if is_backward else {})
        found = getattr(cost, way)(problem, P, layout, **asked)
        assert found.tiles == tuple(run.tiles(r) for r in range(P))
        assert found.sent == tuple(run.sent(r) for r in range(P))
        assert found.received == tuple(run.received(r) for r in range(P))
        assert found.buffers == tuple(run.buffers(r) for r in range(P))
        copies = [event for event in run.events if event.kind == "copy"]
        assert found.steps == max([event.rank for event in copies].count(r) for r in range(P))
        came = {(event.other, event.block) for event in copies}
        used = {(event.rank, event.block) for event in run.events if event.kind == "compute"}
        assert all(block.rank == r or (r, block) in came for r, block in used), "by the names of the copies"
        asked = [event for event in run.events if event.kind == "receive" and " from " in event.buffer]
        assert all(event.buffer.endswith(f" from {event.other}") for event in asked)
        assert sum(found.sent) == sum(found.received) and 0 < found.balance <= 1
        if not is_backward:
            run = ring.events(Q, K, V, **options, times=Times(0, 0, 1))
            assert max(event.stop for event in run.events) == found.steps, "one after the other"


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_memory_is_what_a_rank_holds(layout, rng):
    P, problem = 3, cost.Problem(41, 37, 4, np.float16, 3, 4, 2, True, None, 8, 8)
    Q, K, V, dO = (
        rng.standard_normal(s).astype(np.float16) for s in ((4, 41, 4), (2, 37, 4), (2, 37, 3), (4, 41, 3))
    )
    run = ring.events(Q, K, V, ranks=P, layout=layout, causal=True)
    after = (*run.result, dO)
    back = ring.events(Q, K, V, ranks=P, layout=layout, causal=True, after=after)
    forward, backward = (cost.ring(problem, P, layout, backward=b) for b in (False, True))
    for r in range(P):
        own = [X[:, ring.positions(X.shape[1], P, r, layout)].nbytes for X in (Q, *run.result)]
        state = next(event.state for event in run.events if event.kind == "compute" and event.rank == r)
        held = run.buffers(r) + sum(own) + 2 * sum(X.nbytes for X in state)
        assert forward.memory[r] == held
        rank = back.ranks[r]
        sums = 2 * rank.Q.nbytes * 2 + 2 * max(x.K.nbytes + x.V.nbytes for x in back.ranks)  # in fp32
        given = [rank.Q, rank.O, rank.lse, rank.dO, rank.lse]  # delta is of the size of lse
        returned = rank.Q.nbytes + rank.K.nbytes + rank.V.nbytes
        assert backward.memory[r] == back.buffers(r) + sum(X.nbytes for X in given) + returned + sums


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_memory_of_a_rank_in_a_group_is_what_it_holds(layout, rng):
    """Its own rows of all heads, given and returned; its heads of all the group's rows; and buffers."""
    N_q, N_k, P, size = 41, 37, 6, 2
    problem = cost.Problem(N_q, N_k, 4, np.float32, 3, 4, 2, True, None, 8, 8)
    Q, K, V, dO = (
        rng.standard_normal(s).astype(np.float32) for s in ((4, N_q, 4), (2, N_k, 4), (2, N_k, 3), (4, N_q, 3))
    )
    run = ring.events(Q, K, V, ranks=P, heads=size, layout=layout, causal=True)
    back = ring.events(Q, K, V, ranks=P, heads=size, layout=layout, causal=True, after=(*run.result, dO))
    found = [cost.both(problem, P, layout, heads=size, backward=b) for b in (False, True)]
    for r in range(P):
        rank = back.ranks[r]
        q, o, lse, kv = rank.Q.nbytes, rank.O.nbytes, rank.lse.nbytes, rank.K.nbytes + rank.V.nbytes
        group = [back.ranks[r // size * size + m] for m in range(size)]
        Q_all, O_all, lse_all = (sum(getattr(m, name).nbytes for m in group) // size for name in ("Q", "O", "lse"))
        own = q + o + lse + kv
        forward = own + (Q_all + O_all + lse_all) + 2 * (O_all + 2 * lse_all)
        assert found[0].memory[r] == run.buffers(r) + forward
        kv_all = sum(m.K.nbytes + m.V.nbytes for m in group) // size
        most = (
            max(sum(m.K.nbytes + m.V.nbytes for m in back.ranks[a : a + size]) for a in range(0, P, size)) // size
        )
        inner = Q_all + O_all + 2 * lse_all + 3 * Q_all + most + kv_all
        assert found[1].memory[r] == back.buffers(r) + 2 * q + 2 * o + 2 * lse + q + 3 * kv + inner


def test_the_ways_by_hand():
    N, P, d, H = 4096, 4, 128, 8
    problem = cost.Problem(N, N, d, "bfloat16", None, H, H, causal=False)
    kv, q = 2 * N // P * d * 2 * H, N // P * d * 2 * H
    assert cost.ring(problem, P).sent == (3 * kv,) * P
    assert cost.all_gather(problem, P).sent == (3 * kv,) * P
    ulysses = cost.ulysses(problem, P).sent[0]
    assert ulysses == 3 * (q + kv + q) // 4 + 3 * N // P * H // P * 4, "Q, K, V and O, three quarters; and lse"
    assert cost.ring(problem, P).steps == 3 and cost.ulysses(problem, P).steps == 6
    both = cost.both(problem, P, heads=2)
    assert ulysses < both.sent[0] < cost.ring(problem, P).sent[0]
    assert cost.ring(problem, 1) == cost.all_gather(problem, 1) and cost.ring(problem, 1).sent == (0,)


def test_more_ranks_need_less_memory_each_in_a_ring_but_not_with_all_gather():
    problem = cost.Problem(2**16, 2**16, 128, "bfloat16", causal=True)
    rings = [max(cost.ring(problem, P).memory) for P in (2, 4, 8, 16)]
    gathered = [max(cost.all_gather(problem, P).memory) for P in (2, 4, 8, 16)]
    assert all(b < 0.6 * a for a, b in zip(rings, rings[1:], strict=False))
    assert min(gathered) > 2 * 2**16 * 128 * 2


@pytest.mark.parametrize("share, layout", [(1.0, "contiguous"), (0.5, "zigzag")])
def test_a_copy_is_hidden_from_tokens_to_hide_on(share, layout, rng):
    """A rank that computes 4 n^2 d FLOPs in a hop waits for copies below that many tokens, and not above."""
    P, d, H, H_k, flops, bandwidth = 3, 4, 4, 2, 2.0e6, 0.4e6
    n = cost.tokens_to_hide(flops=flops, bandwidth=bandwidth, dtype="float64", H=H, H_k=H_k, share=share)
    for tokens, hides in ((int(1.25 * n) // 2 * 2, True), (int(0.75 * n) // 2 * 2, False)):
        Q, K, V = (rng.standard_normal((heads, tokens * P, d)) for heads in (H, H_k, H_k))
        times = Times(tile=4 * tokens**2 * d * share / flops, byte=1 / bandwidth)  # of one head and hop: a tile
        run = ring.events(Q, K, V, ranks=P, layout=layout, causal=share < 1, times=times, B_r=tokens, B_c=tokens)
        waits = [event for event in run.events if event.kind == "wait" and event.stop > event.start]
        assert bool(waits) != hides
    back = cost.tokens_to_hide(flops=flops, bandwidth=bandwidth, dtype="float64", backward=True)
    assert back == pytest.approx(0.8 * cost.tokens_to_hide(flops=flops, bandwidth=bandwidth, dtype="float64"))


def test_invalid_problems_are_refused():
    problem = cost.Problem(8, 8, 4, "float32")
    for call, error, words in (
        (lambda: cost.ring(problem._replace(N_q=-1), 2), ValueError, "N_q is -1"),
        (lambda: cost.ring(problem._replace(dtype="int8"), 2), ValueError, "dtype is 'int8'; accepted are"),
        (lambda: cost.ring(problem._replace(H=3, H_k=2), 2), ValueError, "H must be a multiple of H_k"),
        (lambda: cost.ring(problem, 0), ValueError, "ranks is 0"),
        (lambda: cost.both(problem, 6, heads=4), ValueError, "groups of 4 do not divide them"),
        (lambda: cost.ring(problem, 2, "x"), ValueError, "layout is 'x'"),
        (lambda: cost.tokens_to_hide(flops=1, bandwidth=0, dtype="float16"), ValueError, "bandwidth is 0"),
        (lambda: cost.ring(problem._replace(mask=masks.documents([0])), 2), ValueError, "8 keys"),
    ):
        with pytest.raises(error, match=words):
            call()
