"""A ring computes what one process computes, for all sizes, masks, layouts, heads and numbers of ranks."""

import numpy as np
import pytest

from flashlib import masks, naive, ring, tiled
from flashlib.ring import hops, layouts, programs
from tests import masked, oracle

LAYOUTS = list(layouts.LAYOUTS)
BLOCKS = {"B_r": 16, "B_c": 16}


def problem(rng, N_q, N_k, d=3, d_v=4, dtype=np.float64):
    shapes = (N_q, d), (N_k, d), (N_k, d_v), (N_q, d_v)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def drawn(rng, kind):
    """Return random sizes, and options of a ring with a mask of this kind."""
    N_q, N_k = (int(n) for n in rng.integers(0, 50, 2)) if rng.random() < 0.6 else (int(rng.integers(1, 50)),) * 2
    case = masked.draw(kind, rng, N_q, N_k)
    options = {"ranks": int(rng.integers(1, 8)), "layout": str(rng.choice(LAYOUTS)), "mask": case.mask}
    return N_q, N_k, options | {"causal": bool(rng.random() < 0.3)}


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("kind", masked.KINDS)
def test_a_ring_equals_one_process(kind, amount, rng):
    for _ in range({"few": 2, "all": 60}[amount]):
        N_q, N_k, options = drawn(rng, kind)
        Q, K, V, dO = problem(rng, N_q, N_k)
        one = {"mask": options["mask"], "causal": options["causal"]}
        O, lse = naive.attention(Q, K, V, **one)
        given = ring.attention(Q, K, V, **options, **BLOCKS)
        oracle.assert_close(given.O, O, rounding=1e-12, what=f"O, {options}")
        oracle.assert_close(given.lse, lse, rounding=1e-12, what=f"lse, {options}")
        exact = naive.backward(Q, K, V, O, lse, dO, **one)
        grads = ring.backward(Q, K, V, O, lse, dO, **options, **BLOCKS)
        for name, X, known in zip(exact._fields, grads, exact, strict=True):
            oracle.assert_close(X, known, rounding=1e-10, what=f"{name}, {options}")


@pytest.mark.parametrize("amount", ["few", "all"])
def test_heads_and_groups_of_ranks_equal_one_process(amount, rng):
    for n in range({"few": 8, "all": 200}[amount]):
        N_q, N_k, options = drawn(rng, ["all", "window", "causal documents", "capped window"][n % 4])
        H_k, group, size = (int(n) for n in rng.integers(1, 4, 3))
        options |= {"ranks": int(rng.integers(1, 4)) * size, "heads": size}
        Q, dO = rng.standard_normal((H_k * group, N_q, 3)), rng.standard_normal((H_k * group, N_q, 4))
        K, V = rng.standard_normal((H_k, N_k, 3)), rng.standard_normal((H_k, N_k, 4))
        one = {"mask": options["mask"], "causal": options["causal"]}
        kv = [h // group for h in range(len(Q))]
        exact = [naive.attention(Q[h], K[k], V[k], **one) for h, k in enumerate(kv)]
        O, lse = (np.stack(X) for X in zip(*exact, strict=True))
        run = ring.events(Q, K, V, **options, **BLOCKS)
        oracle.assert_close(run.result.O, O, rounding=1e-12, what=f"O, {options}")
        oracle.assert_close(run.result.lse, lse, rounding=1e-12, what=f"lse, {options}")
        grads = [naive.backward(Q[h], K[k], V[k], O[h], lse[h], dO[h], **one) for h, k in enumerate(kv)]
        dQ, dK, dV = (np.stack(X) for X in zip(*grads, strict=True))
        dK, dV = (X.reshape(H_k, group, *X.shape[1:]).sum(axis=1) for X in (dK, dV))
        found = ring.events(Q, K, V, after=(O, lse, dO), **options, **BLOCKS).result
        for X, known in zip(found, (dQ, dK, dV), strict=True):
            oracle.assert_close(X, known, rounding=1e-10, what=f"{options}")


@pytest.mark.parametrize("amount", ["few", "all"])
def test_the_bits_do_not_depend_on_the_order_of_events_nor_on_gathering_first(amount, rng):
    seeds = range({"few": 2, "all": 4}[amount])
    for kind in ("causal", "window", "cap after alibi"):
        for _ in range({"few": 1, "all": 3}[amount]):
            N_q, N_k, options = drawn(rng, kind)
            Q, K, V, dO = problem(rng, N_q, N_k, dtype=np.float32)
            first = ring.events(Q, K, V, **options, **BLOCKS).result
            after = {"after": (*first, dO)}
            back = ring.events(Q, K, V, **options, **BLOCKS, **after).result
            gathered = ring.events(Q, K, V, program=programs.all_gather, **options, **BLOCKS).result
            others = [ring.events(Q, K, V, seed=seed, **options, **BLOCKS).result for seed in seeds]
            for other in (gathered, *others):
                assert all(X.tobytes() == Y.tobytes() for X, Y in zip(other, first, strict=True))
            others = [ring.events(Q, K, V, seed=seed, **options, **BLOCKS, **after).result for seed in seeds]
            for other in others:
                assert all(np.array_equal(X, Y) for X, Y in zip(other, back, strict=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_error_does_not_grow_with_the_ranks(dtype, rng):
    Q, K, V, dO = problem(rng, 160, 160, 8, 8, dtype)
    exact = naive.attention(*(X.astype(np.float64) for X in (Q, K, V)), causal=True)
    grads = naive.backward(*(X.astype(np.float64) for X in (Q, K, V)), *exact, dO.astype(np.float64), causal=True)

    def errors(P):
        given = ring.attention(Q, K, V, ranks=P, causal=True)
        assert given.O.dtype == dtype and given.lse.dtype == np.float32
        found = ring.backward(Q, K, V, *given, dO, ranks=P, causal=True)
        assert all(X.dtype == dtype for X in found)
        pairs = zip((given.O, *found), (exact.O, *grads), strict=True)
        return np.array([np.sqrt(((X - Y) ** 2).mean()) for X, Y in pairs])

    if dtype == np.float16:
        assert (errors(16) <= 1.02 * errors(1)).all(), "results are rounded to 16 bits once"
    else:
        assert (errors(16) <= 1.5 * errors(1)).all()


def test_hops_that_see_nothing_are_skipped_and_keys_travel_no_further_than_needed(rng):
    Q, K, V, dO = problem(rng, 64, 64)
    options = {"ranks": 8, "layout": "contiguous", "mask": masks.window(8, 0), **BLOCKS}
    run = ring.events(Q, K, V, **options)
    computed = {(event.rank, event.block.rank) for event in run.events if event.kind == "compute"}
    assert computed == {(r, s) for r in range(8) for s in (r - 1, r) if s >= 0}
    copies = {(event.rank, event.other) for event in run.events if event.kind == "copy"}
    assert copies == {(r, r + 1) for r in range(7)}, "only the next rank needs each block"
    back = ring.events(Q, K, V, after=(*run.result, dO), **options)
    copies = [(event.rank, event.other, event.block.what) for event in back.events if event.kind == "copy"]
    there = [(r, r + 1, what) for r in range(7) for what in ("KV", "dKV")]
    assert sorted(copies) == sorted(there + [(r + 1, r, "dKV") for r in range(7)]), "and gradients come home"


def test_documents_within_a_rank_do_not_travel(rng):
    ids = np.repeat(np.arange(4), 16)
    Q, K, V, _ = problem(rng, 64, 64)
    run = ring.events(Q, K, V, ranks=4, layout="contiguous", mask=masks.documents(ids), **BLOCKS)
    assert not [event for event in run.events if event.kind == "copy"]
    assert ring.plan(masks.documents(ids), 64, 64, 4, "contiguous").last == (0, 0, 0, 0)


def test_the_plan_covers_all_sequences_of_a_batch_and_all_heads_of_a_function(rng):
    ids = np.stack([np.repeat([0, 1], [40, 24]), np.repeat([0, 1], [16, 48])])
    found = ring.plan(masks.causal() & masks.documents(ids), 64, 64, 4, "contiguous")
    assert [[hop is not None for hop in own] for own in found.hops] == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, True],
    ]
    by_head = masks.from_function(lambda b, h, r, c: c + h <= r)
    assert all(hop for own in ring.plan(by_head, 8, 8, 2, "contiguous").hops for hop in own), "heads are unknown"
    assert ring.plan(masks.causal() & by_head, 8, 8, 2, "contiguous").hops[0][1] is None, "causal hides it"
    asked = masks.from_function(lambda r, c: c <= r)
    assert ring.plan(asked, 8, 8, 2, "contiguous").hops[0][1] is None
    assert ring.plan(asked, 8, 8, 2, "contiguous", ask=False).hops[0][1] is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_hop_covers_exactly_what_is_seen(layout, rng):
    itself = masked.Case(masks.window(0, 0), lambda r, c: r == c)
    for kind in (*masked.KINDS, "itself", "window", "window"):
        N_q, N_k, P = (23, 29, 3) if kind != "window" else (61, 67, 5)
        case = itself if kind == "itself" else masked.draw(kind, rng, N_q, N_k)
        seen = masked.seen(case, N_q, N_k)
        plan = ring.plan(case.mask, N_q, N_k, P, layout)
        for r in range(P):
            for s in range(P):
                own, theirs = ring.positions(N_q, P, r, layout), ring.positions(N_k, P, s, layout)
                part, hop = seen[np.ix_(own, theirs)], plan.hops[r][s]
                assert (hop is None) == (not part.any())
                if hop:
                    left = part.copy()
                    left[hop.rows, hop.keys] = False
                    assert not left.any(), "nothing outside the hop is seen"
                    tiles = hop.mask.on(*(at.stop - at.start for at in hop[:2]))
                    ends = (
                        part[hop.rows, hop.keys][[0, -1]].any(axis=1),
                        part[hop.rows, hop.keys].any(axis=0)[[0, -1]],
                    )
                    assert np.all(ends) or tiles.keys is None or "alibi" in kind, "the hop is as small as possible"
                    assert np.array_equal(tiles.seen(*tiles.all), part[hop.rows, hop.keys])
        assert plan.last == tuple(
            max(h for h in range(P) if h == 0 or plan.hops[(s + h) % P][s]) for s in range(P)
        )


def test_a_striped_plan_takes_no_time_per_row():
    N = 2**40
    for mask, last in ((masks.causal(), (7, 7, 7, 7, 7, 7, 7, 7)), (masks.window(2, 0), (2,) * 8)):
        assert ring.plan(mask, N, N, 8, "striped").last == last
    plan = ring.plan(masks.Mask(), N, N, 8, "zigzag")
    assert all(type(hop.mask) is masks.Mask for own in plan.hops for hop in own)


def test_invalid_arguments_are_refused_before_any_work(rng):
    Q, K, V, dO = problem(rng, 6, 8)
    O, lse = naive.attention(Q, K, V)
    for call, error, words in (
        (lambda **o: ring.attention(Q, K, V, ranks=0, **o), ValueError, "ranks is 0"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, layout="x", **o), ValueError, "layout is 'x'; accepted are"),
        (lambda **o: ring.attention(Q.tolist(), K, V, ranks=2, **o), TypeError, "Q is of type list"),
        (lambda **o: ring.attention(Q[:, :2], K, V, ranks=2, **o), ValueError, "the last axis, d, must be equal"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, mask=3, **o), TypeError, "mask is of type int"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, mask=masks.documents([0]), **o), ValueError, "8 keys"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, scale=-1, **o), ValueError, "scale is -1"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, B_r=0, **o), ValueError, "B_r is 0"),
        (lambda **o: ring.attention(Q, K, V, ranks=2, mask=masks.alibi([1.0, 2.0]), **o), ValueError, "2 heads"),
        (lambda **o: ring.backward(Q, K, V, O[:3], lse, dO, ranks=2, **o), ValueError, "O has shape"),
        (lambda **o: ring.events(Q, K, V, ranks=6, heads=4, **o), ValueError, "groups of 4 do not divide them"),
        (lambda **o: ring.events(Q[None, None], K, V, ranks=2, **o), ValueError, "expected 2 axes"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_tiles_are_those_of_tiled(rng):
    """Ranks compute as many tiles as one process, if no cut between ranks goes through a tile."""
    Q, K, V, _ = problem(rng, 96, 96)
    one = len(list(tiled.steps(Q, K, V, causal=True, B_r=8, B_c=8)))
    for P in (1, 2, 3, 6):
        run = ring.events(Q, K, V, ranks=P, causal=True, B_r=8, B_c=8)
        assert sum(run.tiles(r) for r in range(P)) == one, "pieces have a multiple of 8 tokens"


def test_sliced_takes_items_across_runs():
    runs = range(2, 20, 3), range(30, 35)
    items = [n for run in runs for n in run]
    for start in range(12):
        for stop in range(start, 12):
            found = hops.sliced(runs, slice(start, stop))
            assert [n for run in found for n in run] == items[start:stop]
