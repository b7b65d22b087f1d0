"""A hang says who waits for whom: what the ranks have begun, put into words."""

import pytest

torch = pytest.importorskip("torch")
from flashlib.ring.processes import running, told, waits  # noqa: E402

EVERYONE = (0, 1, 2)


def place(call="", text="", begun=()):
    return waits.Place(7, text or f"dist.{call}(x)", "f", call, EVERYONE, list(begun))


def sentence(rank, places, returned=()):
    return waits.sentence(rank, places, set(returned)).partition(", at line 7 of f: ")[0]


def looks_until_stuck(seen, returned=(), ranks=3):
    """Return after how many looks ranks are stuck, None for never. seen: {rank: its Place} at look n."""
    watch = running._Watch(None, told.Outcome(ranks, 60, dict.fromkeys(returned, b""), {}, {}))
    for n in range(3 * running.STILL):
        watch.outcome.places.update(seen(n))
        if watch.is_stuck():
            return n
    return None


def test_ranks_are_stuck_that_stand_where_they_stood_and_all_wait():
    waits_for_ever = {r: place("send", begun=[("send", (r + 1) % 3, 1)]) for r in EVERYONE}
    goes_on = {0: lambda n: place("send", begun=[("send", 1, n)]), 1: lambda n: place(text=f"a = {n // 9}")}
    assert looks_until_stuck(lambda n: waits_for_ever) == running.STILL
    assert looks_until_stuck(lambda n: waits_for_ever, returned=[2]) == running.STILL
    assert looks_until_stuck(lambda n: waits_for_ever, ranks=4) is None, "of one nothing is known"
    for rank, one in goes_on.items():
        assert looks_until_stuck(lambda n: waits_for_ever | {rank: one(n)}) is None  # noqa: B023


def test_a_rank_whose_message_is_not_sent():
    places = {0: place("recv", begun=[("recv", 1, 2)]), 1: place(text="a = b", begun=[("send", 0, 1)])}
    assert sentence(0, places) == "rank 0 waits for rank 1 (has not sent to it)"
    assert sentence(1, places) == "rank 1 computes"


def test_a_ring_in_which_all_send_first():
    places = {r: place("send", begun=[("send", (r + 1) % 3, 1)]) for r in EVERYONE}
    for r in EVERYONE:
        assert sentence(r, places) == f"rank {r} waits for rank {(r + 1) % 3} (does not receive from it)"


def test_a_rank_that_has_returned():
    places = {0: place(text="work.wait()", begun=[("recv", 2, 1), ("send", 1, 1)]), 1: place(), 2: place()}
    places[1] = place("recv", begun=[("recv", 0, 1)])
    assert sentence(0, places, [2]) == "rank 0 waits for rank 2 (returned)"


def test_of_one_that_is_not_known_nothing_is_said():
    assert sentence(0, {0: place("recv", begun=[("recv", 1, 2)])}) == "rank 0 waits"


def test_what_was_sent_earlier_does_not_count_where_it_receives():
    places = {0: place("recv", begun=[("send", 1, 1), ("recv", 2, 1)]), 1: place(), 2: place()}
    assert sentence(0, places) == "rank 0 waits for rank 2 (has not sent to it)"


def test_a_collective_in_which_not_all_are():
    places = {0: place("barrier"), 1: place("all_reduce"), 2: place()}
    assert sentence(0, places, [2]) == "rank 0 waits for rank 1 (not in barrier) and rank 2 (returned)"


def test_receiving_from_anyone():
    places = {0: place("recv", begun=[("recv", -1, 2)]), 1: place("send", begun=[("send", 0, 1)])}
    assert sentence(0, places) == "rank 0 waits for whoever sends to it"
    assert sentence(1, places) == "rank 1 waits", "its message may have been received"
    places[1] = place("recv", begun=[("send", 0, 2), ("recv", 0, 1)])
    assert sentence(0, places) == "rank 0 waits"


def test_who_is_held_up_for_ever():
    places = {0: place("recv", begun=[("recv", 1, 1)]), 1: place(text="x = 1")}
    assert waits.is_held(0, places, set()) and not waits.is_held(1, places, set())
    places[1] = place("send", begun=[("send", 0, 1)])
    assert not waits.is_held(0, places, set()), "a message is on its way"


def test_calls_are_noted_once_and_functions_put_back(monkeypatch):
    import torch.distributed as dist

    def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
        return tensor

    def send(tensor, dst=None, group=None, tag=0, group_dst=None):
        dist.isend(tensor, group=group, group_dst=0 if dst is None else dst)  # as torch's does

    monkeypatch.setattr(dist, "isend", isend)
    monkeypatch.setattr(dist, "send", send)
    before = dist.irecv
    with waits.noted():
        dist.isend(1, 2)
        dist.isend(1, dst=2)
        dist.send(1, 3)
        assert dist.irecv is not before
    assert dist.isend is isend and dist.send is send and dist.irecv is before
    assert sorted(waits.place_of(None).begun) == [("send", 2, 2), ("send", 3, 1)]


def raised(said, cause="own", place=place()):  # noqa: B008
    return told.Raised(said, f"Traceback\n{said}", cause, place)


def outcome(ranks=3, **fields):
    return told.Outcome(ranks, 5, fields.get("returned", {}), fields.get("ended", {}), fields.get("places", {}))


def test_the_cause_is_told_and_not_what_others_saw_of_it():
    lost = raised("RuntimeError: gloo: Connection closed by peer", "lost")
    error = told.failure(outcome(ended={0: lost, 1: told.Died(-9, ""), 2: lost}))
    assert error.rank == 1 and "SIGKILL" in str(error) and "closed by peer" not in str(error)
    error = told.failure(outcome(ended={0: lost, 2: raised("KeyError: 'O'")}))
    assert error.rank == 2 and str(error).startswith("rank 2 raised KeyError: 'O'")
    assert told.failure(outcome(ended={0: lost})).rank == 0, "better than nothing"


def test_what_several_ranks_raise_is_told_once():
    text = str(told.failure(outcome(ended={r: raised("ValueError: N") for r in EVERYONE})))
    assert text.startswith("ranks 0, 1, 2 raised ValueError: N") and text.count("Traceback") == 1


def test_waiting_is_told_of_all():
    late = raised("gloo: Timed out waiting", "timed out", place("recv", begun=[("recv", 1, 1)]))
    error = told.failure(outcome(ended={0: late}, places={1: place(text="x += 1")}, returned={}))
    assert isinstance(error, told.RanksWait)
    assert str(error).splitlines() == [
        "not all ranks ended within 5 seconds:",
        "- rank 0 waits for rank 1 (has not sent to it), at line 7 of f: dist.recv(x)",
        "- rank 1 computes, at line 7 of f: x += 1",
        "- rank 2 gives no answer",
    ]


@pytest.mark.parametrize(
    "error, cause",
    [
        (ValueError("gloo: Timed out waiting 5ms"), "own"),
        (RuntimeError("mine: Timed out waiting"), "own"),
        (RuntimeError("[gloo/x.cc:78] Timed out waiting 2000ms for recv"), "timed out"),
        (RuntimeError("[gloo/x.cc:5] Read error [::1]:2: Connection reset by peer"), "lost"),
        (RuntimeError("[gloo/x.cc:5] something else"), "own"),
    ],
)
def test_causes(error, cause):
    assert told.cause(error) == cause
