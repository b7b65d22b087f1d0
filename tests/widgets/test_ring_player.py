"""RingPlayer shows what ranks did, and what a learner's own ranks did up to the point where they go wrong."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import ring
from flashlib.ring import Compute, FaultKind, Receive, Send, Wait
from flashlib.ring.cost import Problem
from flashlib.ring.cost import all_gather as cost_of_gathering
from flashlib.ring.cost import ring as cost_of_ring
from flashlib.types import Attention, Grads
from flashlib.widgets import RingPlayer
from flashlib.widgets.ring_player import choices, runs, words
from tests.ring import test_play

EXACT = 1e-12  # of numbers of about 1, in fp64
SETTINGS = [  # ranks, N, layout, mask, way, tile, token
    (4, 64, "zigzag", "causal", "ring", 1, 0.4),
    (2, 8, "contiguous", "causal", "all-gather", 0.5, 3),
    (3, 37, "striped", "window", "ring", 1, 1),
    (5, 41, "zigzag", "documents", "ring", 2, 0.3),
    (8, 9, "zigzag", "none", "ring", 0.1, 10),
    (7, 53, "contiguous", "documents", "ring", 1, 0),
    (8, 61, "striped", "causal", "all-gather", 10, 0.1),
    (6, 23, "contiguous", "window", "ring", 1, 0.7),
]


def made(ranks, N, layout, mask, way, tile, token):
    player = RingPlayer(ranks, N, layout=layout, mask=mask, way=way, tile=tile, token=token)
    assert not player.problem
    return player


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def player(request):
    return made(*request.param)


def sees(mask, N):
    """What each row sees, according to the names of the settings."""
    r, c = np.ogrid[:N, :N]
    document = np.repeat(range(3), (N // 2, N // 3, N - N // 2 - N // 3))
    masks = {"causal": c <= r, "none": c > -1 + 0 * r, "window": (c <= r) & (c >= r - N // 4)}
    return np.broadcast_to(masks.get(mask, (c <= r) & (document[r] == document[c])), (N, N))


def shown(ranges, N):
    found = np.zeros((len(ranges), N), bool)
    for row, of_row in enumerate(ranges):
        for first, end in of_row:
            assert 0 <= first < end <= N and not found[row, first:end].any()
            found[row, first:end] = True
    return found


def states(player):
    """What is sent to the page: of each rank (times, rows, 2 + D), and O and lse of all rows."""
    r, at, found = player.result, 0, []
    numbers = np.frombuffer(r["buffer"], "<f8")
    for own, computes in zip(r["tokens"], r["computes"], strict=True):
        size = len(computes) * len(own) * (2 + r["D"])
        found.append(numbers[at : at + size].reshape(len(computes), len(own), 2 + r["D"]))
        at += size
    N = player.N
    O, lse = numbers[at : at + N * r["D"]].reshape(N, r["D"]), numbers[at + N * r["D"] :]
    assert len(lse) == N
    return found, O, lse


def by_softmax(N, row, keys):
    """m, l and O_acc of a row and some keys, at once."""
    Q, K, V = runs.tokens(N)
    s = K[keys] @ Q[row] / np.sqrt(runs.D)
    p = np.exp(s - s.max())
    return s.max(), p.sum(), p @ V[keys]


def test_each_token_has_a_rank_and_each_row_sees_what_the_mask_says(player):
    tokens, N = player.result["tokens"], player.N
    assert sorted(token for own in tokens for token in own) == list(range(N)) and len(tokens) == player.ranks
    for r, own in enumerate(tokens):
        assert own == ring.positions(N, player.ranks, r, player.cut).tolist()
    assert np.array_equal(shown(player.result["seen"], N), sees(player.mask, N))


def test_rows_merge_hop_by_hop_to_attention(player):
    """After each hop a row has the softmax of the keys that have arrived so far."""
    found, O, lse = states(player)
    seen, tokens = sees(player.mask, player.N), player.result["tokens"]
    for r, (own, computes) in enumerate(zip(tokens, player.result["computes"], strict=True)):
        for place, row in enumerate(own):
            keys = np.zeros(player.N, bool)
            for k, (source, *_) in enumerate(computes):
                keys[tokens[source]] = True
                m, l, *O_acc = found[r][k, place]
                if not (keys & seen[row]).any():
                    assert (m, l) == (-np.inf, 0) and not any(O_acc)
                    continue
                expected = by_softmax(player.N, row, keys & seen[row])
                assert np.abs(np.array([m, l, *O_acc]) - [*expected[:2], *expected[2]]).max() < EXACT
            assert not (seen[row] & ~keys).any(), "all keys that it sees have arrived"
            m, l, O_acc = by_softmax(player.N, row, seen[row])
            assert np.abs(O[row] - O_acc / l).max() < EXACT and abs(lse[row] - m - np.log(l)) < EXACT
    assert player.result["difference"] < EXACT


def test_bars_are_the_events_of_the_run(player):
    run, r = player.run, player.result
    for rank, own in enumerate(r["computes"]):
        events = [e for e in run.events if e.kind == "compute" and e.rank == rank]
        assert [[e.block.rank, e.hop, e.tiles] for e in events] == [[s, hop, tiles] for s, hop, _, _, tiles in own]
        assert np.allclose([one[2:4] for one in own], [(e.start, e.stop) for e in events], atol=1e-6)
        assert all((rank - source) % player.ranks == hop for source, hop, *_ in own)
    copies = sorted((e.rank, e.other, e.block.rank, e.n_bytes) for e in run.events if e.kind == "copy")
    assert copies == sorted((a, b, whose, n) for a, b, whose, _, _, n in r["copies"])
    for a, b, whose, start, stop, n in r["copies"]:
        assert n == runs.BYTES * len(r["tokens"][whose]) and a != b
        assert stop - start == pytest.approx(player.token * len(r["tokens"][whose]), abs=2e-6)
    assert r["end"] == pytest.approx(max(e.stop for e in run.events), abs=1e-6) == r["sums"]["total"]


def test_a_rank_computes_one_thing_at_a_time_and_is_idle_between(player):
    r = player.result
    for computes, idle in zip(r["computes"], r["idle"], strict=True):
        spans = sorted([(start, stop) for _, _, start, stop, _ in computes] + [(a, b) for a, b, _ in idle])
        spans = [span for span in spans if span[0] < span[1]]
        assert spans[0][0] == 0 and spans[-1][1] == r["end"]
        assert all(a[1] == b[0] for a, b in zip(spans, spans[1:], strict=False)), "no gap, nothing twice"
        for _, stop, hop in idle:
            begins = [h for _, h, start, _, _ in computes if start == stop]
            assert hop == (begins[0] if begins and stop < r["end"] else -1)


def test_keys_have_arrived_when_they_are_used(player):
    r = player.result
    for rank, (computes, held) in enumerate(zip(r["computes"], r["held"], strict=True)):
        assert held[0] == [rank, 0, r["end"]], "its own"
        for source, _, start, stop, _ in computes:
            assert any(whose == source and a <= start and stop <= b for whose, a, b in held)
        came = [(whose, stop) for _, to, whose, _, stop, _ in r["copies"] if to == rank]
        assert all(came.remove((whose, a)) is None and a < b for whose, a, b in held[1:])
        assert not came or r["setting"]["token"] == 0, "what came and went at the same time is not seen"


def test_sums_are_those_of_the_closed_forms_and_of_the_bars(player):
    r, sums = player.result, player.result["sums"]
    mask = choices.mask_of(player.mask, player.N)
    problem = Problem(player.N, player.N, runs.D, "float64", mask=mask, B_r=runs.B, B_c=runs.B)
    closed = {"ring": cost_of_ring, "all-gather": cost_of_gathering}[player.way](problem, player.ranks, player.cut)
    assert [sum(one[4] for one in own) for own in r["computes"]] == list(closed.tiles)
    sent = [sum(one[5] for one in r["copies"] if one[0] == rank) for rank in range(player.ranks)]
    assert sent == list(closed.sent) and (sums["sent"], sums["most_sent"]) == (sum(sent), max(sent))
    busy = player.tile * sum(closed.tiles)
    assert 1 - sums["idle"] == pytest.approx(busy / (player.ranks * sums["total"]), abs=1e-6)
    edges = np.unique([0, r["end"], *(t for own in r["computes"] for one in own for t in one[2:4])])
    edges = np.unique([*edges, *(t for one in r["copies"] for t in one[3:5])])
    middles, lengths, under, all_ = (edges[1:] + edges[:-1]) / 2, np.diff(edges), 0.0, 0.0
    for _, to, _, start, stop, _ in r["copies"]:
        copying = (start < middles) & (middles < stop)
        busy = np.any([(a < middles) & (middles < b) for _, _, a, b, _ in r["computes"][to]], axis=0)
        under, all_ = under + lengths[copying & busy].sum(), all_ + lengths[copying].sum()
    assert sums["hidden"] is None if all_ == 0 else sums["hidden"] == pytest.approx(under / all_)


def test_ranks_that_only_count_take_as_long_and_send_as_much(player):
    full, counted = player.run, runs.counted(player.result["setting"])
    outline = [[tuple(event._replace(state=None)) for event in run.events] for run in (full, counted)]
    assert outline[0] == outline[1] and str(full.plan) == str(counted.plan)


def test_cached_hops_are_what_ranks_compute(player):
    """The same events and bits as with ranks that compute every hop, whatever was shown before."""
    s = player.result["setting"]
    mask, times = choices.mask_of(s["mask"], s["N"]), ring.Times(tile=s["tile"], byte=s["token"] / runs.BYTES)
    options = dict(ranks=s["ranks"], layout=s["cut"], mask=mask, B_r=runs.B, B_c=runs.B, times=times)
    anew = ring.events(*runs.tokens(s["N"]), program=runs.PROGRAMS[s["way"]], **options)
    for found in (runs.run(s), runs.run(s | {"tile": 7}) and runs.run(s)):
        assert all(np.array_equal(a, b) for a, b in zip(found.result, anew.result, strict=True))
        assert [e._replace(state=None) for e in found.events] == [e._replace(state=None) for e in anew.events]
        for one, other in zip(found.events, anew.events, strict=True):
            assert one.state is None or all(
                np.array_equal(a, b) for a, b in zip(one.state, other.state, strict=True)
            )


def test_each_layout_looks_the_same_alone_and_next_to_the_others(player):
    r = player.result
    assert [one["layout"] for one in r["compare"]] == ["contiguous", "striped", "zigzag"]
    for one in r["compare"]:
        setting = r["setting"] | {"cut": one["layout"]}
        alone = made(*(setting[name] for name in ("ranks", "N", "cut", "mask", "way", "tile", "token"))).result
        assert one["sums"] == alone["sums"] and one["end"] == alone["end"] and not one["fault"]
        assert one["computes"] == [[bar[1:4] for bar in own] for own in alone["computes"]]


def test_every_moment_is_a_position_and_positions_are_about_evenly_spaced(player):
    r = player.result
    times, moments = r["times"], [time for time, _ in r["moments"]]
    assert times == sorted(set(times)) and (times[0], times[-1]) == (0, r["end"])
    bars = [t for own in r["computes"] for one in own for t in one[2:4]] + [
        t for one in r["copies"] for t in one[3:5]
    ]
    assert set(moments) == {0.0, r["end"], *bars} <= set(times)
    assert np.diff(times).max() < 2.01 * r["end"] / 96 and len(times) <= 97 + len(moments)


def test_what_goes_on_between_two_moments_is_described(player):
    """Who computes which hop, who receives keys, and who has nothing to compute; no rank is left out."""
    r = player.result
    P, times = len(r["computes"]), [time for time, _ in r["moments"]]
    assert len(r["goes_on"]) == len(times)
    for start, stop, said in zip(times, times[1:], r["goes_on"], strict=False):
        at, hops = (start + stop) / 2, {}
        for rank, own in enumerate(r["computes"]):
            for hop in [hop for _, hop, begin, end, _ in own if begin <= at < end]:
                hops.setdefault(hop, []).append(rank)
        coming = [to for _, to, _, begin, end, _ in r["copies"] if begin <= at < end]
        assert all(f"{words.ranks(who, P)} compute" in said for who in hops.values())
        assert all(f" hop {hop}, " in said for hop in hops) and said.count(" hop ") == len(hops)
        assert ("K and V" in said) == bool(coming)
        assert not coming or f"K and V come to {words.ranks(coming, P)}" in said
        idle = sorted(set(range(P)) - {rank for who in hops.values() for rank in who})
        assert ("nothing to compute" in said) == bool(idle)
        assert not idle or f"{words.ranks(idle, P)} ha" in said


def test_it_opens_on_copies_hidden_under_tiles_in_the_middle_of_the_run():
    r = RingPlayer().result
    time = r["times"][r["opens"]]
    assert 0.3 < time / r["end"] < 0.7
    for rank, own in enumerate(r["computes"]):
        assert any(start < time < stop and hop > 0 for _, hop, start, stop, _ in own)
        assert any(to == rank and start < time < stop for _, to, _, start, stop, _ in r["copies"])
    assert r["sums"]["hidden"] == 1


def test_it_opens_on_a_row_whose_sums_were_rescaled():
    """So that an alpha is visible that is neither 0 nor 1; the page takes the last such row."""
    r, player = RingPlayer().result, RingPlayer()
    time, found = r["times"][r["opens"]], []
    for rank in range(r["setting"]["ranks"]):
        events = [e for e in player.run.events if e.kind == "compute" and e.rank == rank and e.stop <= time]
        m = np.array([np.ravel(e.state[0]) for e in events])
        assert len(m) > 1, "a second hop is merged"
        alpha = np.exp(m[:-1] - m[1:])
        found += [r["tokens"][rank][k] for k in np.flatnonzero(((alpha > 0) & (alpha < 1)).any(0))]
    assert found and max(found) > r["setting"]["N"] // 2


def test_no_other_position_has_more_copies_under_tiles(player):
    r = player.result

    def hidden(time):
        under_way = [to for _, to, _, start, stop, _ in r["copies"] if start < time < stop]
        return sum(any(a <= time < b for _, _, a, b, _ in r["computes"][to]) for to in under_way)

    assert hidden(r["times"][r["opens"]]) == max(map(hidden, r["times"]))


def test_a_copy_that_takes_longer_than_tiles_is_not_hidden():
    took = [RingPlayer(token=token).result["sums"] for token in (0, 0.4, 0.5, 0.6, 1, 2)]
    totals = [sums["total"] for sums in took]
    assert totals[0] == totals[1] == totals[2] < totals[3] < totals[4] < totals[5]
    assert took[0]["hidden"] is None and took[2]["hidden"] == 1 > took[3]["hidden"] > took[5]["hidden"] > 0
    assert totals[5] == pytest.approx(3 * 32 + 8), "three copies of 16 tokens, and the tiles of the last hop"


def test_zigzag_shares_the_work_of_a_causal_mask():
    idle = {one["layout"]: one["sums"]["idle"] for one in RingPlayer(token=0).result["compare"]}
    assert idle["zigzag"] == idle["striped"] == 0 and idle["contiguous"] == pytest.approx(1 - 136 / (4 * 58))


# A learner's own rank -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", test_play.WRONG, ids=lambda program: program.__name__)
@pytest.mark.parametrize("ranks", [2, 5])
def test_a_faulty_run_is_played_up_to_the_fault(program, ranks):
    player = RingPlayer(ranks, 23, program=program)
    r = player.result
    fault, run = r["fault"], player.run
    assert (
        not player.problem and fault["kind"] == test_play.WRONG[program][0] and fault["rank"] in range(-1, ranks)
    )
    assert all(said.endswith(".") for said in fault["said"]) and r["difference"] is None
    assert r["opens"] == len(r["times"]) - 1 and r["end"] == r["sums"]["total"] + 1
    assert r["moments"][-1][0] == r["end"] and fault["kind"] in r["moments"][-1][1]
    assert np.isnan(states(player)[2]).all()
    assert fault["kind"] in repr(player).lower() and player.figure().png()
    done = sum(e.kind == "copy" for e in run.events)
    asked = sum(e.kind in ("send", "receive") for e in run.events)
    assert len(r["copies"]) == done and len(r["asked"]) == asked - 2 * done
    assert json.loads(json.dumps(r | {"buffer": ""})) == r | {"buffer": ""}


def everyone_sends_first(me):
    new, n = me.partial(me.r, *me.own.arrays)
    yield Compute(me.r, n, me.merged(me.nothing(), new))
    yield Send(me.next, me.own)
    yield Wait()
    yield Receive(me.previous, me.buffer("kv"))
    yield Wait()


def test_a_deadlock_says_who_waits_for_whom():
    r = RingPlayer(3, 24, program=everyone_sends_first).result
    assert r["fault"]["waits"] == [[0, 1], [1, 2], [2, 0]] and r["fault"]["rank"] == -1
    assert r["fault"]["said"] == [
        "deadlock, nobody can go on.",
        "rank 0 waits until rank 1 receives KV of rank 0.",
        "rank 1 waits until rank 2 receives KV of rank 1.",
        "rank 2 waits until rank 0 receives KV of rank 2.",
    ]
    assert [one[:3] for one in r["asked"]] == [[0, 1, "send"], [1, 2, "send"], [2, 0, "send"]]
    assert [one["fault"] for one in r["compare"]] == ["deadlock"] * 3
    assert all(len(own) == 1 for own in r["computes"]), "what was computed before is there"


def test_the_first_of_two_messages_is_the_one_taken():
    def one_too_many(me):
        yield Send(me.next, me.own)
        yield Receive(me.previous, me.buffer("kv"))
        yield Compute(me.r, 3)
        yield Send(me.next, me.own)
        yield Wait()

    r = RingPlayer(2, 8, program=one_too_many).result
    assert r["asked"] == [[0, 1, "send", 3.0], [1, 0, "send", 3.0]] and len(r["copies"]) == 2


def says_no_state(me):
    """The ring without overlap, which never reports its State."""
    state, here, spare = me.nothing(), me.own, [me.buffer("a"), me.buffer("b")]
    for hop in range(me.P):
        new, n = me.partial(me.source(hop), *here.arrays)
        state = me.merged(state, new)
        yield Compute(me.source(hop), n)
        if hop < me.P - 1:
            yield Send(me.next, here)
            yield Receive(me.previous, spare[hop % 2])
            yield Wait()
            here = spare[hop % 2]
    return me.finish(state)


def wrong_numbers(me):
    """The ring without the last hop."""
    made = ring.programs.ring(me)
    yield from made
    state, _ = me.partial(me.r, *me.own.arrays)
    return me.finish(state)


def test_a_learners_rank_is_next_to_ours():
    player = RingPlayer(4, 40, mask="none", program=says_no_state)
    assert player.way == "own" and player.result["ways"] == ["own", "ring", "all-gather"]
    assert player.result["sums"]["hidden"] == 0 and player.result["difference"] < EXACT
    found, O, _ = states(player)
    assert all(np.isnan(own).all() for own in found) and np.isfinite(O).all()
    slow = player.result["sums"]["total"]
    player.way = "ring"
    assert (
        player.result["sums"]["total"] < slow
        and player.result == RingPlayer(4, 40, mask="none", program=says_no_state, way="ring").result
    )


def test_wrong_numbers_are_reported_as_wrong():
    player = RingPlayer(3, 24, program=wrong_numbers)
    assert player.result["difference"] > 1e-3 and player.result["wrong"]
    assert player.result["words"][2].endswith(": that is wrong.") and player.result["words"][2] in repr(player)


def returns_nan(me):
    O, lse = yield from ring.programs.ring(me)
    O[-1, -1] += np.nan if me.r == 1 else 0
    return Attention(O, lse)


def test_nan_is_wrong():
    player = RingPlayer(3, 24, program=returns_nan)
    assert player.result["difference"] is None and player.result["wrong"]
    assert "differ from one process by NaN: that is wrong." in repr(player)
    json.dumps(player.result | {"buffer": ""}, allow_nan=False)


def says_each_tile_by_itself(me):
    for _ in range(2):
        yield Compute(me.r, 1, None)
    return (yield from ring.programs.ring(me))


def test_a_rank_may_take_several_turns_with_the_same_keys():
    r = RingPlayer(3, 24, program=says_each_tile_by_itself).result
    assert [one[:2] for one in r["computes"][1]] == [[1, 0], [1, 0], [1, 0], [0, 1], [2, 2]] and not r["wrong"]


def raises(me):
    yield Send(me.next, me.own)
    raise KeyError("kv")


def returns_gradients(me):
    yield Compute(me.r, 1)
    return Grads(me.Q, me.K, me.V)


def returns_too_wide(me):
    yield Compute(me.r, 1)
    return Attention(np.zeros((1, me.Q.shape[1], 9)), np.zeros((1, me.Q.shape[1])))


PROBLEMS = [
    (raises, "A rank raised KeyError: 'kv'."),
    (lambda me: 3, "A rank raised TypeError: 'int' object is not an iterator."),
    (lambda: 3, "A rank raised TypeError: "),
    (lambda me: iter([3]), "A rank raised TypeError: rank 0 yields 3; a rank yields Send, Receive, Wait, Compute"),
    (returns_gradients, "The ranks returned dQ (24, 4), dK (24, 4), dV (24, 4) of all rows; return me.finish"),
    (returns_too_wide, "The ranks returned O (24, 9), lse (24,) of all rows; return me.finish(state): O (24, 4)"),
    (3, "program is 3; pass the function itself"),
]


NAMED = [getattr(program, "__name__", str(program)) for program, _ in PROBLEMS]


@pytest.mark.parametrize(("program", "sentence"), PROBLEMS, ids=NAMED)
def test_a_sentence_says_what_cannot_be_played(program, sentence):
    player = RingPlayer(3, 24, program=program)
    assert player.problem.startswith(sentence) and player.problem.endswith(".")
    assert repr(player) == f"RingPlayer({player.problem})" and "image/png" not in player._repr_mimebundle_()[0]


# Settings and words --------------------------------------------------------------------------------------------

BAD = [
    (dict(ranks=1), "ranks is 1; pass a whole number from 2 to 8."),
    (dict(ranks=True), "ranks is True; pass a whole number"),
    (dict(N=65), "N is 65; pass a whole number from 8 to 64."),
    (dict(layout="random"), "layout is 'random'; pass one of 'contiguous', 'striped', 'zigzag'."),
    (dict(mask=None), "mask is None; pass one of 'causal', 'none', 'window', 'documents'."),
    (dict(way="own"), "way is 'own'; pass one of 'ring', 'all-gather'."),
    (dict(tile=0), "tile is 0; pass a number from 0.1 to 10."),
    (dict(token=float("nan")), "token is nan; pass a number from 0 to 10."),
    (dict(token="fast"), "token is 'fast'; pass a number from 0 to 10."),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=str)
def test_a_sentence_says_what_is_not_accepted(change, sentence):
    player = RingPlayer(**change)
    assert player.problem.startswith(sentence) and player.problem.endswith(".")


@pytest.mark.parametrize(
    "change", [{"ranks": 3}, {"cut": "striped", "mask": "none"}, {"tile": 2, "token": 1.5}], ids=str
)
def test_changes_from_the_page(change):
    player, results = RingPlayer(), []
    player.observe(lambda change: results.append(change.new), names="result")
    player.set_state(change)
    assert len(results) == 1 and player.refused == ""
    expected = RingPlayer(**{("layout" if name == "cut" else name): value for name, value in change.items()})
    assert player.result == expected.result and repr(player) == repr(expected)


def test_it_can_be_sent_to_the_page(player):
    rest = {name: value for name, value in player.result.items() if name != "buffer"}
    assert json.loads(json.dumps(rest, allow_nan=False)) == rest
    data = player._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(player)
    assert base64.b64decode(data["image/png"]) == player.figure().png()


def test_words():
    r = RingPlayer().result
    assert r["words"][:2] == [
        "It takes 34. Ranks are idle for 0% of it and send 12288 bytes; every copy is hidden under tiles.",
        "A hop is 8 to 10 tiles of 4 rows by 4 keys; at a time of 1 a tile, it takes 8 to 10. To copy the 16 "
        "tokens of a rank takes 6.4.",
    ]
    assert r["moments"][0] == [0.0, "all ranks begin hop 0, own keys; copies to all ranks begin."]
    assert r["moments"][-1] == [34.0, "all ranks merged hop 3; all is done."]
    assert r["goes_on"][0] == "all ranks compute hop 0, own keys; K and V come to all ranks."
    contiguous = dict(RingPlayer(layout="contiguous").result["moments"])
    assert contiguous[10.0].startswith(
        "all ranks merged hop 0; ranks 1, 2 and 3 begin hop 1, keys from the rank before; copies to "
    )
    assert contiguous[10.0].endswith("rank 0 has nothing to compute.")
    assert "copies take no time" in RingPlayer(token=0).result["words"][0]
    assert "; 98.4% of copying is hidden" in RingPlayer(8, layout="contiguous").result["words"][0]
    assert "0% of copying is hidden" in RingPlayer(way="all-gather").result["words"][0]
    assert (
        "A hop is 1 tile of 4 rows by 4 keys; at a time of 1 a tile, it takes 1. "
        in RingPlayer(2, 8, token=1).result["words"][1]
    )
    assert words.ranks([3, 1, 1], 4) == "ranks 1 and 3" and words.ranks([2], 4) == "rank 2"
    assert words.about({"N": 37, "ranks": 5}) == "7 to 8"
    assert "takes 0" not in words.equal(None) and words.equal(0.0).endswith("to the last bit.")


def test_every_kind_of_fault_has_its_words():
    said = {RingPlayer(3, 24, program=program).result["fault"]["kind"] for program in test_play.WRONG}
    assert said == {kind.value for kind in FaultKind}


def test_repr():
    assert repr(RingPlayer(2, 16, layout="contiguous", token=1)) == (
        "RingPlayer(ranks=2, N=16, layout='contiguous', mask='causal', way='ring', tile=1.0, token=1.0: It "
        "takes 12. Ranks are idle for 58.3% of it and send 512 bytes; 37.5% of copying is hidden under tiles. "
        "Time of each layout: contiguous 12, striped 11, zigzag 10)"
    )
