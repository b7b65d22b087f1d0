"""The error of a hang says who waits for whom, from the sends and receives that the ranks have begun."""

import pytest

torch = pytest.importorskip("torch")
from flashlib.ring.processes import failure_report, running, waits  # noqa: E402

EVERYONE = (0, 1, 2)


def site(call="", text="", begun=()):
    return waits.CallSite(7, text or f"dist.{call}(x)", "f", call, EVERYONE, list(begun))


def sentence(rank, sites, returned=()):
    return waits.sentence(rank, sites, set(returned)).partition(", at line 7 of f: ")[0]


def looks_until_stuck(seen, returned=(), ranks=3):
    """Return after how many looks ranks count as stuck, None for never. seen: {rank: its CallSite} at look n."""
    watch = running._Watch(None, failure_report.RunOutcome(ranks, 60, dict.fromkeys(returned, b""), {}, {}))
    for n in range(3 * running.STILL):
        watch.outcome.sites.update(seen(n))
        if watch.is_stuck():
            return n
    return None


def test_ranks_are_stuck_if_all_wait_and_none_moves():
    waits_for_ever = {r: site("send", begun=[("send", (r + 1) % 3, 1)]) for r in EVERYONE}
    goes_on = {0: lambda n: site("send", begun=[("send", 1, n)]), 1: lambda n: site(text=f"a = {n // 9}")}
    assert looks_until_stuck(lambda n: waits_for_ever) == running.STILL
    assert looks_until_stuck(lambda n: waits_for_ever, returned=[2]) == running.STILL
    assert looks_until_stuck(lambda n: waits_for_ever, ranks=4) is None, "nothing is known about one rank"
    for rank, one in goes_on.items():
        assert looks_until_stuck(lambda n: waits_for_ever | {rank: one(n)}) is None  # noqa: B023


def test_a_rank_that_receives_what_was_not_sent():
    sites = {0: site("recv", begun=[("recv", 1, 2)]), 1: site(text="a = b", begun=[("send", 0, 1)])}
    assert sentence(0, sites) == "rank 0 waits for rank 1 (has not sent to it)"
    assert sentence(1, sites) == "rank 1 computes"


def test_a_ring_in_which_all_send_first():
    sites = {r: site("send", begun=[("send", (r + 1) % 3, 1)]) for r in EVERYONE}
    for r in EVERYONE:
        assert sentence(r, sites) == f"rank {r} waits for rank {(r + 1) % 3} (does not receive from it)"


def test_a_rank_that_has_returned():
    sites = {0: site(text="work.wait()", begun=[("recv", 2, 1), ("send", 1, 1)]), 1: site(), 2: site()}
    sites[1] = site("recv", begun=[("recv", 0, 1)])
    assert sentence(0, sites, [2]) == "rank 0 waits for rank 2 (returned)"


def test_nothing_is_said_about_a_rank_whose_site_is_unknown():
    assert sentence(0, {0: site("recv", begun=[("recv", 1, 2)])}) == "rank 0 waits"


def test_an_earlier_send_is_not_blamed_for_a_receive_that_waits():
    sites = {0: site("recv", begun=[("send", 1, 1), ("recv", 2, 1)]), 1: site(), 2: site()}
    assert sentence(0, sites) == "rank 0 waits for rank 2 (has not sent to it)"


def test_a_collective_that_not_all_ranks_have_called():
    sites = {0: site("barrier"), 1: site("all_reduce"), 2: site()}
    assert sentence(0, sites, [2]) == "rank 0 waits for rank 1 (not in barrier) and rank 2 (returned)"


def test_receiving_from_anyone():
    sites = {0: site("recv", begun=[("recv", -1, 2)]), 1: site("send", begun=[("send", 0, 1)])}
    assert sentence(0, sites) == "rank 0 waits for whoever sends to it"
    assert sentence(1, sites) == "rank 1 waits", "its message may have been received"
    sites[1] = site("recv", begun=[("send", 0, 2), ("recv", 0, 1)])
    assert sentence(0, sites) == "rank 0 waits"


def test_which_ranks_wait_forever():
    sites = {0: site("recv", begun=[("recv", 1, 1)]), 1: site(text="x = 1")}
    assert waits.is_held(0, sites, set()) and not waits.is_held(1, sites, set())
    sites[1] = site("send", begun=[("send", 0, 1)])
    assert not waits.is_held(0, sites, set()), "a message is on its way"


def test_each_call_counts_once_and_the_functions_are_restored(monkeypatch):
    import torch.distributed as dist

    def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
        return tensor

    def send(tensor, dst=None, group=None, tag=0, group_dst=None):
        dist.isend(tensor, group=group, group_dst=0 if dst is None else dst)  # as torch's does

    monkeypatch.setattr(dist, "isend", isend)
    monkeypatch.setattr(dist, "send", send)
    before = dist.irecv
    with waits.calls_counted():
        dist.isend(1, 2)
        dist.isend(1, dst=2)
        dist.send(1, 3)
        assert dist.irecv is not before
    assert dist.isend is isend and dist.send is send and dist.irecv is before
    assert sorted(waits.site_of(None).begun) == [("send", 2, 2), ("send", 3, 1)]


def raised(said, cause="own", site=site()):  # noqa: B008
    return failure_report.RankRaised(said, f"Traceback\n{said}", cause, site)


def outcome(ranks=3, **fields):
    return failure_report.RunOutcome(
        ranks, 5, fields.get("returned", {}), fields.get("ended", {}), fields.get("sites", {})
    )


def test_the_cause_is_reported_rather_than_what_it_did_to_other_ranks():
    lost = raised("RuntimeError: gloo: Connection closed by peer", "lost")
    error = failure_report.failure(outcome(ended={0: lost, 1: failure_report.RankDied(-9, ""), 2: lost}))
    assert error.rank == 1 and "SIGKILL" in str(error) and "closed by peer" not in str(error)
    error = failure_report.failure(outcome(ended={0: lost, 2: raised("KeyError: 'O'")}))
    assert error.rank == 2 and str(error).startswith("rank 2 raised KeyError: 'O'")
    assert failure_report.failure(outcome(ended={0: lost})).rank == 0, "better than nothing"


def test_an_error_that_several_ranks_raise_is_reported_once():
    text = str(failure_report.failure(outcome(ended={r: raised("ValueError: N") for r in EVERYONE})))
    assert text.startswith("ranks 0, 1, 2 raised ValueError: N") and text.count("Traceback") == 1


def test_the_report_of_a_wait_has_a_line_for_each_rank():
    late = raised("gloo: Timed out waiting", "timed out", site("recv", begun=[("recv", 1, 1)]))
    error = failure_report.failure(outcome(ended={0: late}, sites={1: site(text="x += 1")}, returned={}))
    assert isinstance(error, failure_report.RanksWait)
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
    assert failure_report.cause(error) == cause
