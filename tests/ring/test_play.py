"""Faults of ranks are found and named in every order of events, and what the ranks do is recorded."""

import numpy as np
import pytest

from flashlib import ring
from flashlib.ring import Compute, FaultKind, Receive, Send, Times, Wait, play, programs, schedules


@pytest.fixture
def QKV(rng):
    return tuple(rng.standard_normal((3, 24, 4)))


def everyone_sends_first(me):
    yield Send(me.next, me.own)
    yield Wait()
    yield Receive(me.previous, me.buffer("kv"))
    yield Wait()


def one_buffer(me):
    yield Send(me.next, me.own)
    yield Receive(me.previous, me.own)
    yield Wait()


def receives_into_what_is_sent(me):
    kv = me.buffer("kv")
    yield Receive(me.previous, kv)
    yield Send(me.next, me.own)
    yield Wait(kv)
    yield Receive(me.previous, me.own)


def twice_into_one(me):
    kv = me.buffer("kv")
    yield Receive(me.previous, kv)
    yield Receive(me.previous, kv)


def computes_with_what_is_overwritten(me):
    kv, state = me.buffer("kv"), me.nothing()
    yield Send(me.next, me.own)
    yield Receive(me.previous, kv)
    yield Wait()
    K, V = kv.arrays
    yield Send(me.next, me.own)
    yield Receive(me.previous, kv)
    new, n_tiles = me.partial(me.previous, K, V)
    yield Compute(me.previous, n_tiles, me.merged(state, new))
    yield Wait()


def does_not_wait(me):
    kv = me.buffer("kv")
    yield Send(me.next, me.own)
    yield Receive(me.previous, kv)
    yield Compute(me.previous, me.partial(me.previous, *kv.arrays)[1])


def waits_for_the_other(me):
    kv = me.buffer("kv")
    yield Send(me.next, me.own)
    yield Receive(me.previous, kv)
    yield Wait(me.own)
    me.partial(me.previous, *kv.arrays)


def sends_once_too_often(me):
    yield Send(me.next, me.own)
    if me.r:
        yield Receive(me.previous, me.buffer("kv"))
    yield Wait()


def sends_and_forgets(me):
    if me.r == 0:
        yield Send(me.next, me.own)
    yield Compute(me.r, 1)


def one_does_not_send(me):
    yield Receive(me.previous, me.buffer("kv"))
    if me.r != 1:
        yield Send(me.next, me.own)
    yield Wait()


def ends_without_waiting(me):
    yield Send(me.next, me.own)
    yield Receive(me.previous, me.buffer("kv"))


def sends_nothing(me):
    yield Send(me.next, me.buffer("kv"))


def puts_what_is_sent(me):
    yield Send(me.next, me.own)
    yield Receive(me.previous, me.buffer("kv"))
    me.own.put((me.K, me.V))
    yield Wait()


def changes_what_is_sent(me):
    yield Send(me.next, me.own)
    yield Receive(me.previous, me.buffer("kv"))
    me.own.arrays[0][0] = 0
    yield Wait()


WRONG = {
    everyone_sends_first: (
        FaultKind.DEADLOCK,
        r"nobody can go on: rank 0 waits until rank 1 receives KV of rank 0; rank 1",
    ),
    one_buffer: (FaultKind.OVERWRITTEN, r"receives from \d into own, from which it still sends KV of rank"),
    receives_into_what_is_sent: (FaultKind.OVERWRITTEN, "into own, from which it still sends KV of rank"),
    twice_into_one: (FaultKind.OVERWRITTEN, "into kv, into which it still receives: wait for it first"),
    computes_with_what_is_overwritten: (FaultKind.OVERWRITTEN, "computes with arrays of kv while another block"),
    does_not_wait: (FaultKind.READ_TOO_EARLY, "reads kv while it is being received: wait for it first"),
    waits_for_the_other: (FaultKind.READ_TOO_EARLY, "reads kv while it is being received"),
    sends_once_too_often: (FaultKind.UNTAKEN, r"rank \d sends KV of rank \d to rank 0, which never receives it"),
    sends_and_forgets: (FaultKind.UNTAKEN, "rank 0 sends KV of rank 0 to rank 1, which never receives it"),
    one_does_not_send: (FaultKind.NEVER_SENT, r"rank \d receives from rank 1 into kv, and nothing is sent to it"),
    ends_without_waiting: (FaultKind.LEFT_BEHIND, "ends, and never waited for the copy of KV of rank 0 from own"),
    sends_nothing: (FaultKind.EMPTY, "reads kv, in which there is nothing"),
    puts_what_is_sent: (FaultKind.OVERWRITTEN, "puts arrays into own while it is being sent: wait for it first"),
    changes_what_is_sent: (FaultKind.OVERWRITTEN, "changes arrays of a buffer in their place"),
}


@pytest.mark.parametrize("P", [2, 3])
@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_every_order_of_a_wrong_program_gives_its_fault(program, P, QKV):
    kind, words = WRONG[program]
    for seed in (None, *range(12)):
        run = ring.events(*QKV, ranks=P, program=program, seed=seed)
        assert run.result is None and run.fault.kind is kind
    run = ring.events(*QKV, ranks=P, program=program)
    with pytest.raises(ring.RingFault, match=words):
        raise run.fault
    assert set(ring.KINDS) == set(FaultKind)
    assert run.fault.waits == (tuple((r, (r + 1) % P) for r in range(P)) if kind is FaultKind.DEADLOCK else ())


def test_a_deadlock_names_only_the_copies_that_ranks_wait_for(QKV):
    def two_buffers(me):
        first, second = me.buffer("first"), me.buffer("second")
        yield Receive(me.next, second)
        yield Receive(me.previous, first)
        yield Wait(first)
        yield Send(me.next, me.own)
        yield Wait()

    said = ring.events(*QKV, ranks=3, program=two_buffers).fault.said
    sentences = "; ".join(f"rank {r} waits until rank {(r - 1) % 3} sends" for r in range(3))
    assert said == f"nobody can go on: {sentences}"


def test_all_kinds_of_faults_are_tested():
    assert {kind for kind, _ in WRONG.values()} == set(FaultKind)


@pytest.mark.parametrize("P", [2, 3])
@pytest.mark.parametrize("program", [programs.ring, programs.all_gather, programs.ring_backward])
def test_our_programs_are_right_in_every_order(program, P, QKV):
    after = {"after": (*ring.attention(*QKV, ranks=1), QKV[0])} if program is programs.ring_backward else {}
    report = ring.check(*QKV, ranks=P, program=program, orders=5, **after)
    assert report.fault is None and report.states > 20
    assert str(report) == f"right in every order, {report.states} states"


def test_states_by_hand():
    """Send, Wait and Receive, Wait: both ask in either order; then the copy; then both wait in either order."""

    def make():
        out, into = ring.Buffer(0, "out", (np.ones(1),)), ring.Buffer(1, "into")
        return [iter([Send(1, out), Wait()]), iter([Receive(0, into), Wait(into)])]

    assert schedules.check_orders(make).states == 4 + 4


def test_larger_programs_run_in_some_orders(QKV):
    report = ring.check(*QKV, ranks=6, heads=3, most=500, orders=4)
    assert report.fault is None and not report.states and str(report) == "right in 5 orders"


def test_check_reports_the_fault(QKV):
    report = ring.check(*QKV, ranks=2, program=everyone_sends_first)
    assert report.fault.kind is FaultKind.DEADLOCK and str(report).startswith("deadlock: nobody can go on")


def test_a_program_that_depends_on_the_order_is_refused(QKV):
    first = []

    def races(me):
        first.append(me.r)
        if me.r == first[0]:
            yield Send(1 - me.r, me.own)
        else:
            yield Receive(1 - me.r, me.buffer("kv"))
        yield Wait()
        yield Compute(len(first), 1)

    with pytest.raises(ValueError, match=r"rank \d yields other commands in another order"):
        ring.check(*QKV, ranks=2, program=races)


@pytest.mark.parametrize(
    "command, error, words",
    [
        (None, TypeError, "rank 0 yields None; a rank yields Send, Receive, Wait, Compute"),
        (Send(2, None), TypeError, "Send takes a Buffer, and was given None"),
        (Wait(3), TypeError, "Wait takes a Buffer, and was given 3"),
        (
            lambda me: Send(me.P, me.own),
            ValueError,
            r"Send names rank 2; there are ranks 0 to 1: .* \(r \+ 1\) % P",
        ),
        (lambda me: Receive(-1, me.own), ValueError, "Receive names rank -1"),
        (lambda me: Send(me.r, me.own), ValueError, "Send names the rank itself"),
        (Compute(0, 1.5), TypeError, "Compute has tiles 1.5; pass a whole number"),
        (Compute(-1, 1), TypeError, "Compute has source -1"),
    ],
)
def test_invalid_commands_are_refused(command, error, words, QKV):
    def program(me):
        yield command(me) if callable(command) else command

    with pytest.raises(error, match=words):
        ring.events(*QKV, ranks=2, program=program)


def test_invalid_results_and_endless_programs_are_refused(QKV, monkeypatch):
    def nothing(me):
        yield Compute(me.r, 0)

    with pytest.raises(TypeError, match="rank 0 returned NoneType; return an Attention, me.finish"):
        ring.events(*QKV, ranks=2, program=nothing)

    monkeypatch.setattr(play, "MOST", 500)

    def endless(me):
        while True:
            yield Compute(me.r, 0)

    with pytest.raises(ValueError, match="yields more than 500 commands; does its loop end"):
        ring.events(*QKV, ranks=1, program=endless)


def test_events_record_what_ranks_do_and_when(QKV):
    Q, K, V = QKV
    P, times = 3, Times(tile=1.0, byte=0.01, copy=2.0)
    run = ring.events(Q, K, V, ranks=P, causal=True, times=times, B_r=4, B_c=4)
    assert (np.diff([event.stop for event in run.events]) >= 0).all()
    for r in range(P):
        own = [event for event in run.events if event.rank == r and event.kind != "copy"]
        assert all(a.stop <= b.start for a, b in zip(own, own[1:], strict=False))
        assert own[-1].kind == "end"
        computed = [event for event in own if event.kind == "compute"]
        assert [event.hop for event in computed] == [0, 1, 2]
        assert [event.block for event in computed] == [("KV", (r - hop) % P) for hop in range(P)]
        assert all(event.stop - event.start == pytest.approx(event.tiles) for event in computed)
        state = computed[-1].state
        rows = ring.positions(24, P, r, "zigzag")
        np.testing.assert_allclose(state.O_acc[0] / state.l[0, :, None], run.result.O[rows])
        assert sum(event.n_bytes for event in run.events if event.kind == "copy" and event.rank == r) == run.sent(
            r
        )
    for event in run.events:
        if event.kind == "copy":
            assert event.stop - event.start == pytest.approx(2.0 + 0.01 * event.n_bytes)
            assert event.hop == (event.other - event.block.rank) % P and event.n_bytes == 8 * 8 * 8


@pytest.mark.parametrize("program", [programs.ring, programs.all_gather])
def test_a_rank_sends_one_copy_at_a_time_and_receives_one(program, rng):
    Q, K, V = rng.standard_normal((3, 26, 4))  # blocks of 9, 9 and 8 tokens
    run = ring.events(Q, K, V, ranks=3, program=program, times=Times(tile=1.0, byte=0.01, copy=2.0))
    copies = sorted((event for event in run.events if event.kind == "copy"), key=lambda event: event.start)
    for end in ("rank", "other"):
        for r in range(3):
            own = [event for event in copies if getattr(event, end) == r]
            assert len(own) >= 2 and all(a.stop <= b.start for a, b in zip(own, own[1:], strict=False)), (end, r)


def test_a_state_in_the_record_does_not_change_later(QKV):
    run = ring.events(*QKV, ranks=4, causal=True)
    states = [event.state for event in run.events if event.kind == "compute" and event.rank == 3]
    assert len({state.m.tobytes() + state.l.tobytes() for state in states}) == len(states)
    assert (np.diff([state.l.sum() for state in states]) != 0).all()


@pytest.mark.parametrize("P", [2, 4])
def test_a_copy_shorter_than_the_tiles_takes_no_extra_time(P, rng):
    Q, K, V = rng.standard_normal((3, 64, 4))
    options = {"ranks": P, "B_r": 8, "B_c": 8}
    hop, n_bytes = (64 // P // 8) ** 2, 64 // P * 8 * 8  # tiles of a hop, and bytes of its K and V
    for ratio in (0.5, 1.0, 2.0):
        times = Times(tile=1.0, byte=ratio * hop / n_bytes)
        run = ring.events(Q, K, V, times=times, **options)
        took = max(event.stop for event in run.events)
        assert took == pytest.approx(hop + (P - 1) * max(1.0, ratio) * hop)
        waited = sum(event.stop - event.start for event in run.events if event.kind == "wait")
        assert waited == pytest.approx(P * (P - 1) * max(0.0, ratio - 1) * hop)
        gathered = ring.events(Q, K, V, times=times, program=programs.all_gather, **options)
        assert max(event.stop for event in gathered.events) == pytest.approx((P - 1) * ratio * hop + P * hop)
