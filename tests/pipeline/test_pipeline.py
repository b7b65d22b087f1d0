"""The model of a Hopper kernel's warps: faults are found, our protocol is right, times add up."""

import re
from functools import partial
from pathlib import Path

import pytest

from flashlib import pipeline as p
from flashlib.pipeline import commands, protocol, schedules, timeline

ROOT = Path(__file__).parents[2]
DATA = ROOT / "notebooks" / "data"
HOPPER = ROOT / "flashlib" / "kernels" / "hopper"
TABLES = [*HOPPER.glob("*.py"), *HOPPER.glob("ladder/*.py"), ROOT / "notebooks" / "20_hopper.ipynb"]
SIZES = protocol.Sizes(rows=16, d=16, B_c=16)
RIGHT = [
    {"blocks": [3], "consumers": 1},
    {"blocks": [1, 2], "consumers": 1},
    {"blocks": [2], "consumers": 2},
    {"blocks": [3], "consumers": 2},
    {"blocks": [3], "consumers": 2, "overlap": False},
    {"blocks": [4], "consumers": 1, "stages": 3},
    {"blocks": [2], "consumers": 2, "turns": False},
    {"blocks": [1, 2], "consumers": 1, "in_place": True},
    {"blocks": [2, 1], "consumers": 1, "in_place": True, "K_first": True},
    {"blocks": [2, 2], "consumers": 1, "K_first": True},
]


@pytest.mark.parametrize("options", RIGHT, ids=str)
def test_the_protocol_is_right_under_every_schedule_of_a_small_problem(options):
    report = p.check(protocol.program(sizes=SIZES, **options), states=50_000)
    assert report.fault is None and report.all and report.states > 500, report


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("consumers, stages, turns", [(2, 2, True), (3, 2, True), (2, 3, False), (3, 4, True)])
@pytest.mark.parametrize("K_first", [False, True])
def test_the_protocol_is_right_under_random_schedules_of_several_blocks(K_first, consumers, stages, turns, amount):
    schedules = {"few": 150, "all": 2500}[amount]
    options = {"consumers": consumers, "stages": stages, "turns": turns, "K_first": K_first}
    program = protocol.program([5, 1, 2, 4], SIZES, **options)
    report = p.check(program, states=0, schedules=schedules // len(program.roles), seed=consumers)
    assert report.fault is None and not report.all, report


def test_the_table_of_barriers_names_the_role_that_signals_a_tile():
    """A copy does not arrive at `full`: it counts off the bytes that an arrival expects."""
    rows = {
        (path.name, line.strip())
        for path in TABLES
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\W*[qkv]_full\b.* 1 ", line)
    }
    assert len(rows) > 10
    wrong = sorted(row for row in rows if not re.search(r" 1 [\s|]*(producer|who asks for it|the same)\b", row[1]))
    assert not wrong, f"one who arrives is a role that says Expect: {wrong}"


@pytest.mark.parametrize(
    "left_out, said",
    [
        (p.Expect, "lacks 1 of 1 arrivals, where nobody will arrive any more"),
        (p.Copy, "lacks 64 bytes, where nobody will ask for a copy any more"),
    ],
    ids=["Expect", "Copy"],
)
def test_a_deadlock_distinguishes_arrivals_from_copies(left_out, said):
    """The role itself waits, so its remaining commands are still to come; a remaining copy is not an arrival."""
    full, slot = p.Barrier("full"), p.Slot("slot", 64)

    def role():
        if left_out is not p.Expect:
            yield p.Expect(full, 64)
        yield p.Wait(full, 0)
        if left_out is not p.Copy:
            yield p.Copy("tile", slot, full)

    report = p.check(p.Program({"one": role}, (full,), (slot,)))
    assert said in report.fault.said, report.fault.said


def test_a_program_of_identical_warps_is_right():
    assert p.check(protocol.program_alike([3, 1, 4], SIZES)).all


def without(program, role, left_out):
    """Return a program whose role leaves out the commands for which left_out(command) is true."""
    make = program.roles[role]
    return program._replace(roles=program.roles | {role: lambda: (c for c in make() if not left_out(c))})


def about(kind, ring):
    return lambda command: isinstance(command, kind) and command.barrier.name.startswith(ring)


EARLY = {"overwritten", "read too early", "too many arrivals", "deadlock"}  # whichever comes first
LEFT_OUT = [
    ("producer", about(p.Wait, "q_empty"), True, EARLY),
    ("producer", about(p.Wait, "k_empty"), True, EARLY),
    ("producer", about(p.Wait, "v_empty"), True, EARLY),
    ("producer", about(p.Expect, "q_full"), True, {"deadlock", "read too early"}),
    ("producer", about(p.Expect, "k_full"), True, {"deadlock", "read too early"}),
    ("producer", about(p.Expect, "v_full"), True, {"deadlock", "read too early"}),
    ("consumer 0", about(p.Wait, "q_full"), True, {"read too early"}),
    ("consumer 0", about(p.Wait, "k_full"), True, {"read too early"}),
    ("consumer 0", about(p.Wait, "v_full"), True, {"read too early"}),
    ("consumer 1", about(p.Wait, "q_full"), True, {"read too early"}),
    ("consumer 1", about(p.Wait, "k_full"), False, {"read too early"}),  # under turns consumer 0 has waited for it
    ("consumer 1", about(p.Wait, "v_full"), False, {"read too early"}),
    ("consumer 0", about(p.Arrive, "q_empty"), True, {"deadlock"}),
    ("consumer 1", about(p.Arrive, "k_empty"), True, {"deadlock"}),
    ("consumer 1", about(p.Arrive, "v_empty"), True, {"deadlock"}),
    ("consumer 0", about(p.Arrive, "turn"), True, {"deadlock"}),
    ("consumer 1", about(p.Arrive, "turn"), True, {"deadlock"}),
    ("consumer 1", about(p.Wait, "turn"), True, {"two phases ahead", "deadlock"}),
    ("consumer 0", lambda c: isinstance(c, p.Finish) and c.pending == 1, True, {"registers"}),
    ("consumer 0", lambda c: isinstance(c, p.Finish) and c.pending == 0, True, {"registers"}),
    ("consumer 0", lambda c: isinstance(c, p.Fence), True, {"not visible"}),
    ("consumer 0", lambda c: isinstance(c, p.FinishStores), True, {"left behind"}),
]


@pytest.mark.parametrize("role, left_out, turns, kinds", LEFT_OUT, ids=range(len(LEFT_OUT)))
def test_a_protocol_without_one_of_its_waits_or_arrivals_is_wrong(role, left_out, turns, kinds):
    program = without(protocol.program([4, 4], SIZES, turns=turns), role, left_out)
    report = p.check(program, states=500, schedules=300)
    assert report.fault and report.fault.kind in kinds, report


def two_roles(producer, consumer, n_barriers=2):
    full, empty, ring = p.barriers("full", 1), p.barriers("empty", n_barriers - 1), p.ring("k", 1, 64)
    memory = full, empty, ring
    roles = {"producer": partial(producer, *memory), "consumer": partial(consumer, *memory)}
    return p.Program(roles, (*full, *empty), tuple(ring))


def bring(full, empty, ring, n=3):
    for g in range(n):
        yield p.Wait(empty[0], g % 2 ^ 1)
        yield p.Expect(full[0], 64)
        yield p.Copy(f"K{g}", ring[0], full[0])


def use(full, empty, ring, n=3):
    for g in range(n):
        yield p.Wait(full[0], g % 2)
        yield p.Product(f"S{g}", ((ring[0], f"K{g}"),), 64)
        yield p.Finish()
        yield p.Arrive(empty[0])


def test_the_shortest_schedule_to_a_fault_is_found():
    def hasty(full, empty, ring):
        for g in range(2):
            yield p.Copy(f"K{g}", ring[0], full[0])

    shortest = p.check(two_roles(hasty, use))
    assert (
        shortest.fault.kind == "overwritten" and [action.role for action in shortest.actions] == ["producer"] * 2
    )
    found = p.check(two_roles(lambda *memory: bring(*memory, n=4), use), states=0)
    assert found.fault.kind == "left behind" and not found.all  # nobody waits for K3


def test_a_deadlock_says_who_waits_for_whom():
    def forgets(full, empty, ring):
        yield from (command for command in use(full, empty, ring) if not isinstance(command, p.Arrive))

    fault = p.check(two_roles(bring, forgets)).fault
    assert fault.kind == "deadlock"
    assert (
        "producer waits for phase 0 of empty[0]: phase 0 lacks 1 of 1 arrivals, where nobody will arrive any more"
        in fault.said
    )
    assert (
        "consumer waits for phase 1 of full[0]: phase 1 lacks 1 of 1 arrivals, where producer would arrive"
        in fault.said
    )


@pytest.mark.parametrize("slot, kind", [(0, None), (1, "overwritten")])
def test_the_older_of_two_stores_is_done_when_one_may_be_pending(slot, kind):
    slots = p.ring("o", 2, 64)

    def stores():
        for tile, at in (("O0", 0), ("O1", 1), ("O2", slot)):
            yield p.Write(tile, slots[at])
            yield p.Fence()
            yield p.Store(tile, slots[at])
            yield p.FinishStores(1)
        yield p.FinishStores()

    fault = p.check(p.Program({"role": stores}, (), tuple(slots))).fault
    assert (fault and fault.kind) == kind


@pytest.mark.parametrize("phase", [0, 1])
def test_the_wrong_phase_is_found(phase):
    def wrong(full, empty, ring):
        for g in range(3):
            yield p.Wait(full[0], phase)
            yield p.Product(f"S{g}", ((ring[0], f"K{g}"),), 64)
            yield p.Finish()
            yield p.Arrive(empty[0])

    assert p.check(two_roles(bring, wrong)).fault.kind == "read too early"


def test_too_many_arrivals_are_found():
    def eager(full, empty, ring):
        yield p.Expect(full[0], 64)
        yield p.Arrive(full[0])

    assert (
        p.check(two_roles(eager, lambda *_: iter([p.Compute("exp", "exp", 1)]))).fault.kind == "too many arrivals"
    )


def test_work_in_flight_at_the_end_of_a_role_is_found():
    def goes(full, empty, ring):
        yield p.Wait(full[0], 0)
        yield p.Product("S", ((ring[0], "K0"),), 1)

    def leaves(full, empty, ring):
        yield p.Copy("K0", ring[0], full[0])

    found = p.check(two_roles(lambda *memory: bring(*memory, n=1), goes)).fault
    assert found.kind == "left behind" and found.said == "consumer ends, and never waited until S is done"
    found = p.check(two_roles(leaves, lambda *_: iter([p.Compute("exp", "exp", 1)]))).fault
    assert found.kind == "left behind" and "all roles end while the copy of K0" in found.said


@pytest.mark.parametrize(
    "command, error, said",
    [
        (3, TypeError, "producer yields 3; a role yields Wait, Arrive"),
        (p.Wait(p.Barrier("other"), 0), ValueError, "Wait uses other, which is not among the program's"),
        (p.Wait("full", 0), TypeError, "Wait takes a Barrier, and was given 'full'"),
        (p.Compute("x", "tensor", 1), ValueError, 'accepted are "exp" and "fma"'),
        (p.Compute("x", "exp", -3), ValueError, "has the amount -3; pass a number of at least 0"),
        (p.Compute("x", "exp", float("nan")), ValueError, "has the amount nan"),
        (p.Compute("x", "exp", 1, "S1"), TypeError, r"needs 'S1'; pass names of products in a tuple"),
        (p.Compute("x", "exp", 1, ("S9",)), ValueError, "needs 'S9', and this role has begun no such product"),
        (p.Product("S", None, 1), TypeError, "reads None; pass pairs of a slot"),
        (p.Product(["S"], (), 1), TypeError, "is named"),
        (p.Finish(-1), ValueError, "Finish has -1; pass a whole number of at least 0"),
    ],
)
def test_anything_but_a_command_is_refused(command, error, said):
    with pytest.raises(error, match=said):
        p.check(two_roles(lambda *_: iter([command]), use))


def test_an_invalid_parity_and_an_endless_role_are_refused():
    with pytest.raises(ValueError, match="consumer: Wait is for phase 2; a parity is 0 or 1"):
        p.check(two_roles(bring, lambda full, *_: iter([p.Wait(full[0], 2)])))

    def endless(full, empty, ring):
        while True:
            yield p.Compute("exp", "exp", 1)

    with pytest.raises(ValueError, match="does its loop end"):
        commands.expanded(two_roles(bring, endless), most=100)


@pytest.mark.parametrize("options", RIGHT, ids=str)
def test_a_timeline_does_one_thing_at_a_time_on_each_unit_and_all_of_the_work(options):
    program = protocol.program(sizes=SIZES, **options)
    line = p.run(program)
    for lane in (*timeline.LANES, *program.roles):
        spans = line.lane(lane)
        assert all(a.end <= b.start + 1e-9 for a, b in zip(spans, spans[1:], strict=False)), lane
    lists = commands.expanded(program)
    flops = sum(c.flops for commands_ in lists.values() for c in commands_ if isinstance(c, p.Product))
    assert line.use() * line.clocks * p.MACHINE.tensor == pytest.approx(flops)
    assert 0 < line.use() <= 1


def test_two_consumers_are_faster_than_one_of_as_many_rows():
    alone = p.run(protocol.program([16], protocol.Sizes(rows=128), consumers=1, overlap=False))
    two = p.run(protocol.program([16], overlap=False))
    assert alone.clocks > 1.35 * two.clocks and alone.use() < two.use()


def test_arithmetic_slows_down_beside_other_work_and_stops_during_its_own_products():
    work = 1600

    def line(*others, own=False):
        def mine():
            if own:
                yield p.Product("S", (), 4096 * 300)
            yield p.Compute("mine", "exp", 16 * work)
            if own:
                yield p.Finish()

        (span,) = p.run(p.Program({"me": mine, **dict(enumerate(others))}, (), ())).lane("exp")
        return span.end

    def multiplies():
        yield p.Product("S", (), 4096 * 300)
        yield p.Finish()

    def computes():
        yield p.Compute("its", "fma", 128 * 300)

    beside = p.MACHINE.beside
    assert line() == work and line(own=True) == work + 300
    assert line(multiplies) == pytest.approx(work + 300 * (1 - beside))
    assert line(computes) == pytest.approx(work + 300 / beside * (1 - beside))  # which it slows down, too


def test_a_replayed_schedule_ends_at_the_same_fault():
    program = without(protocol.program([4], SIZES), "producer", about(p.Wait, "k_empty"))
    report = p.check(program)
    walk = schedules.Walk(program)
    for action in report.actions[:-1]:
        walk.take(next(c for c in walk.choices() if c[:2] == action[:2] and bool(c.flight) == bool(action.flight)))
    with pytest.raises(p.PipelineFault) as found:
        walk.take(next(c for c in walk.choices() if c[:2] == report.actions[-1][:2]))
    assert found.value.said == report.fault.said


def test_a_phase_must_not_complete_before_a_waiting_role_has_seen_the_last():
    full, go = p.Barrier("full"), p.Barrier("go")

    def waits():
        yield p.Wait(go, 0)
        yield p.Wait(full, 1)

    def arrives():
        yield from [p.Arrive(full)] * 3 + [p.Arrive(go)] + [p.Arrive(full)] * 3

    report = p.check(p.Program({"A": waits, "B": arrives}, (full, go), ()))
    assert report.fault.kind == "two phases ahead" and report.fault.role == "A"


def test_no_negative_phase_is_reported():
    barrier = p.Barrier("b")

    def waits():
        yield p.Wait(barrier, 1)

    def arrives():
        yield p.Arrive(barrier)

    said = p.check(p.Program({"A": waits, "B": arrives}, (barrier,), ())).fault.said
    assert said.startswith("phase 0 of b completes before A, which waits for parity 1 and could pass at once")


def test_an_unfinished_output_must_not_be_written():
    def early(make):
        commands_ = list(make())
        finish = max(at for at, command in enumerate(commands_) if isinstance(command, p.Finish))
        write = max(at for at, command in enumerate(commands_) if isinstance(command, p.Write))
        return iter([*commands_[:finish], commands_[write], *commands_[finish:write], *commands_[write + 1 :]])

    program = protocol.program([2], SIZES, consumers=1)
    roles = program.roles | {"consumer 0": partial(early, program.roles["consumer 0"])}
    assert p.check(program._replace(roles=roles)).fault.kind == "registers"


def test_a_copy_into_a_slot_that_threads_wrote_needs_a_fence():
    full, slot = p.Barrier("full"), p.Slot("o", 64)

    def role(*fence):
        yield p.Write("O", slot)
        yield from fence
        yield p.Expect(full, 64)
        yield p.Copy("Q", slot, full)
        yield p.Wait(full, 0)

    assert p.check(p.Program({"warps": role}, (full,), (slot,))).fault.kind == "not visible"
    assert p.check(p.Program({"warps": partial(role, p.Fence())}, (full,), (slot,))).fault is None


@pytest.mark.parametrize("fences", ["nobody", "the writer", "the other"])
def test_a_fence_covers_only_its_own_roles_writes(fences):
    full, written, slot = p.Barrier("full"), p.Barrier("written"), p.Slot("o", 64)

    def writer():
        yield p.Write("O", slot)
        if fences == "the writer":
            yield p.Fence()
        yield p.Arrive(written)

    def copier():
        yield p.Wait(written, 0)
        if fences == "the other":
            yield p.Fence()
        yield p.Expect(full, 64)
        yield p.Copy("Q", slot, full)
        yield p.Wait(full, 0)

    fault = p.check(p.Program({"writer": writer, "copier": copier}, (full, written), (slot,))).fault
    if fences == "the writer":
        assert fault is None
    else:
        assert fault.kind == "not visible"


def test_anything_but_a_program_is_refused():
    full = p.Barrier("full")

    def role():
        yield p.Arrive(full)

    used_up = role()
    for program, error, said in (
        (p.Program([role], (full,), ()), TypeError, "a dict of functions by name"),
        (
            p.Program({"a": role()}, (full,), ()),
            TypeError,
            "a function without arguments that returns a generator",
        ),
        (p.Program({"exp": role}, (full,), ()), ValueError, "'exp' names two things"),
        (p.Program({"a": role}, (full, p.Barrier("full")), ()), ValueError, "'full' names two things"),
    ):
        with pytest.raises(error, match=said):
            p.check(program)
    program = p.Program({"a": lambda: used_up}, (full,), ())
    p.check(program)
    with pytest.raises(ValueError, match="a generator is used up once"):
        p.check(program)
    with pytest.raises(ValueError, match="exp is 0; a machine's speeds"):
        p.run(protocol.program([1]), p.MACHINE._replace(exp=0))
    with pytest.raises(ValueError, match="stages is 1"):
        protocol.program([3], stages=1)
    with pytest.raises(ValueError, match="blocks.0. is 0"):
        protocol.program([0])


def test_a_role_is_always_either_busy_or_waiting():
    program = protocol.program([6, 6])
    for role in program.roles:
        spans = p.run(program).lane(role)
        assert all(a.end == pytest.approx(b.start) for a, b in zip(spans, spans[1:], strict=False)), role


def test_products_out_of_turn_are_found():
    slot, turn = p.Slot("k", 64), p.barriers("turn", 2)

    def role(me, wait):
        if wait:
            yield p.Wait(turn[me], me ^ 1)
        yield p.Product(f"S{me}", (), 64, turn=me)
        yield p.Arrive(turn[1 - me])
        yield p.Finish()

    def program(wait):
        return p.Program({f"consumer {me}": partial(role, me, wait) for me in (0, 1)}, tuple(turn), (slot,))

    assert p.check(program(True)).fault is None
    fault = p.check(program(False)).fault
    assert fault and fault.kind == "out of turn", "a product was issued out of turn, and nothing was found"
    assert fault.said == "consumer 0 issues S0, of turn 0, after a product of turn 1"
    with pytest.raises(ValueError, match="Product has -1; pass a whole number"):
        p.check(two_roles(lambda *_: iter([p.Product("S", (), 1, turn=-1)]), use))


@pytest.mark.parametrize(
    "role, name", [("producer", "k_empty"), ("producer", "v_empty"), ("consumer 0", "k_full")]
)
def test_a_shortened_schedule_ends_in_the_reported_fault(role, name):
    whole = protocol.program([3, 3])
    said = commands.expanded(whole)[role]
    rest = [one for one in said if not (type(one) is p.Wait and name in str(one.barrier))]
    program = whole._replace(roles=whole.roles | {role: partial(iter, rest)})
    for seed in range(6):
        report = p.check(program, states=0, schedules=60, seed=seed)
        walk = schedules.Walk(program)
        with pytest.raises(p.PipelineFault) as found:
            for action in report.actions:
                flights = walk.state.ready() if action.flight else [None]
                walk.take(action._replace(flight=next(f for f in flights if not f or f[:2] == action.flight[:2])))
            walk.stop()
        assert found.value.said == report.fault.said
