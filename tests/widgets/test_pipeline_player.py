"""PipelinePlayer shows exactly what a Timeline or a Report says, no more and no less."""

import base64
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("anywidget")

from flashlib.pipeline import (
    MACHINE,
    Arrive,
    Barrier,
    Copy,
    Expect,
    Program,
    Slot,
    Wait,
    backward_protocol,
    check,
    measured,
    protocol,
    run,
)
from flashlib.widgets import PipelinePlayer, pipeline_player
from flashlib.widgets.pipeline_player import words
from flashlib.widgets.pipeline_player.rows import KINDS, MOST

DATA = Path(__file__).parents[2] / "notebooks" / "data"
PROGRAMS = {
    "the backward": backward_protocol.program(2),
    "in turns": protocol.program([3, 5]),
    "in order": protocol.program([4], turns=False, overlap=False),
    "three": protocol.program([1, 3], consumers=3, stages=3),
    "alike": protocol.program_alike([3, 2]),
}


def without(program, role, kind, barrier):
    """Return a program in which a role omits its commands of one kind at a barrier."""

    def shorter():
        for command in program.roles[role]():
            if not (isinstance(command, kind) and command.barrier.name.startswith(barrier)):
                yield command

    return program._replace(roles={**program.roles, role: shorter})


def circle():
    """Return a program in which each of two roles waits for the other."""
    x, y = Barrier("x"), Barrier("y")

    def role(first, then):
        yield Wait(first, 0)
        yield Arrive(then)

    return Program({"one": lambda: role(x, y), "two": lambda: role(y, x)}, (x, y), ())


def only(player):
    (shown,) = player.result["programs"]
    return shown


def spans(shown):
    """Return (lane, kind, name, start, end, role) of every shown span; a unit's further rows have no name."""
    found, name = [], ""
    for row in shown["rows"]:
        name = row["name"] or name
        for kind, what, start, end, role in row["spans"]:
            found.append((name, kind, what, start, end, shown["roles"][role]))
    return sorted(found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_are_the_timeline(name):
    program = PROGRAMS[name]
    shown, timeline = only(PipelinePlayer(program)), run(program)
    wanted = [
        (s.lane, KINDS.get(s.kind, s.kind), s.name, round(s.start, 2), round(s.end, 2), s.role)
        for s in timeline.spans
        if s.end > s.start
    ]
    assert spans(shown) == sorted(wanted)
    ticks = sorted((row["name"], *tick) for row in shown["rows"] for tick in row["ticks"])
    assert ticks == sorted((p.barrier, round(p.time, 2), p.number) for p in timeline.phases)
    assert shown["end"] == round(timeline.clocks, 2)
    assert {row["name"]: row["use"] for row in shown["rows"] if row["group"] == "units"} == {
        unit: timeline.use(unit) for unit in ("copy unit", "tensor cores", "exp", "fma")
    }
    assert f"{100 * timeline.use():.1f}%" in repr(PipelinePlayer(program))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_beginning_and_phase_is_mentioned_once(name):
    program = PROGRAMS[name]
    told, timeline = only(PipelinePlayer(program))["moments"], run(program)
    times = [time for time, _ in told]
    assert times == sorted(set(times)) and times[0] == 0
    assert set(times) >= {round(p.time, 2) for p in timeline.phases}
    said = " ".join(sentence for _, sentence in told)
    assert said.count(" completes") == len(timeline.phases)
    assert said.lower().count("the tensor cores begin") == len(timeline.lane("tensor cores"))
    assert said.count("begins to copy") + said.count("begins to store") == len(timeline.lane("copy unit"))
    assert said.count("All is done.") == 1 and told[-1][1].endswith("All is done.")


def working(result, at):
    """How many units of all programs work at a time."""
    rows = [row for one in result["programs"] for row in one["rows"] if row["group"] == "units"]
    work = [any(start <= at < end for kind, _, start, end, _ in row["spans"] if kind != "wait") for row in rows]
    return sum(work)


@pytest.mark.parametrize("programs", [None, *PROGRAMS.values(), PROGRAMS], ids=["", *PROGRAMS, "all"])
def test_it_opens_at_work(programs):
    """Among the events with the most working units, it is the nearest to the middle."""
    result = PipelinePlayer(programs).result
    most = max(working(result, at) for at in result["events"])
    busy = [at for at in result["events"] if working(result, at) == most]
    assert most > 1 and result["opens"] == min(busy, key=lambda at: abs(at - result["end"] / 2))


def test_a_faulty_program_opens_at_its_fault():
    result = PipelinePlayer(circle()).result
    assert result["axis"] == "actions" and result["opens"] == result["end"] == result["events"][-1]


BARRIERS = {
    "k_empty[0]": "K slot 0 free",
    "v_full[1]": "V in slot 1",
    "q_full[10]": "Q in slot 10",
    "turn[1]": "its turn",
    "kv_full": "K and V in their slots",
    "do_full[0]": "dO in slot 0",
    "dq_empty[1]": "dQ slot 1 free",
}


def test_barriers_have_meanings_in_words():
    assert {name: words.meaning(name) for name in BARRIERS} == BARRIERS
    assert {
        words.meaning(name)
        for name in ("full", "k_empty", "do_full", "empty[0]", "k_empty[0] ", "its products", "")
    } == {""}
    for program in PROGRAMS.values():
        shown = only(PipelinePlayer(program))
        assert shown["meanings"] == {n: m for b in program.barriers if (m := words.meaning(n := str(b)))}
        waits = {name for _, kind, name, *_ in spans(shown) if kind == "wait" and words.meaning(name)}
        told = " ".join(sentence for _, sentence in shown["moments"])
        assert all(f" waits for {name} ({words.meaning(name)})" in told for name in waits)


def test_the_backward_says_in_words_what_is_waited_for_and_keeps_the_case_of_names():
    """`empty` alone could be any slot, a learner's too."""
    program = backward_protocol.program(3)
    shown = only(PipelinePlayer(program))
    waits = {name for _, kind, name, *_ in spans(shown) if kind == "wait" and "[" in name}
    assert len(waits) > 5 and {name for name in waits if name not in shown["meanings"]} <= {"empty[0]", "empty[1]"}
    assert any(sentence.startswith("dP") for _, sentence in shown["moments"])
    assert not any(sentence.startswith("DP") for _, sentence in shown["moments"])


def test_a_slower_unit_shows():
    slow = MACHINE._replace(copy=MACHINE.copy / 4)
    fast, late = (only(PipelinePlayer(PROGRAMS["in turns"], machine)) for machine in (MACHINE, slow))
    assert late["end"] > 2 * fast["end"]


def test_side_by_side_on_one_axis():
    player = PipelinePlayer(PROGRAMS)
    assert [one["name"] for one in player.result["programs"]] == list(PROGRAMS)
    assert player.result["end"] == round(max(run(program).clocks for program in PROGRAMS.values()), 2)
    alone = [only(PipelinePlayer(program)) for program in PROGRAMS.values()]
    assert [one["rows"] for one in player.result["programs"]] == [one["rows"] for one in alone]
    assert set(player.result["events"]) == {time for one in alone for time, _ in one["moments"]}


WRONG = {
    "no wait for a free slot": (without(protocol.program([4]), "producer", Wait, "k_empty"), "too many arrivals"),
    "no turn is given": (without(PROGRAMS["in turns"], "consumer 1", Arrive, "turn[0]"), "deadlock"),
    "no wait for K": (without(PROGRAMS["in order"], "consumer 0", Wait, "k_full"), "read too early"),
    "a circle": (circle(), "deadlock"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_schedule_that_goes_wrong_is_played(name):
    program, kind = WRONG[name]
    report = check(program, schedules=50, states=2000)
    player = PipelinePlayer(program, report=report)
    shown, n = only(player), len(report.actions)
    assert player.result["axis"] == "actions" and report.fault.kind == kind and kind in repr(player)
    assert [time for time, _ in shown["moments"]] == list(range(n + 1 + (kind == "deadlock")))
    assert all(part in shown["moments"][-1][1] for part in report.fault.said.split("; "))
    acts = sorted((start, role) for _, what, _, start, _, role in spans(shown) if what in ("act", "fault"))
    assert acts == [(k, action.role) for k, action in enumerate(report.actions) if not action.flight]
    wrong = [(start, role) for _, what, _, start, _, role in spans(shown) if what == "fault"]
    assert wrong == ([] if kind == "deadlock" else [(n - 1, report.fault.role)])


def test_a_deadlock_shows_who_waits_for_whom():
    shown = only(PipelinePlayer(circle()))
    assert spans(shown) == [("one", "wait", "x", 0, 1, "one"), ("two", "wait", "y", 0, 1, "two")]
    assert (
        shown["fault"][1].startswith("one waits for phase 0 of x")
        and "where two would arrive" in shown["fault"][1]
    )
    assert (
        shown["fault"][2].startswith("two waits for phase 0 of y")
        and "where one would arrive" in shown["fault"][2]
    )


def test_a_faulty_program_among_several_is_described_in_words():
    right, wrong = PipelinePlayer({"right": PROGRAMS["alike"], "wrong": circle()}).result["programs"]
    assert right["rows"] == only(PipelinePlayer(PROGRAMS["alike"]))["rows"] and not right["fault"]
    assert wrong["rows"] == [] and "one waits for phase 0 of x" in wrong["moments"][0][1]


def test_with_a_report_without_fault_the_timeline_is_played():
    program = protocol.program([1])
    player = PipelinePlayer(program, report=check(program, schedules=20, states=100))
    assert player.result["axis"] == "clocks" and "right under 20 random schedules" in repr(player)


def unwritten():
    raise NotImplementedError("write the producer")
    yield


def endless():
    x = Barrier("x")

    def role():
        while True:
            yield Arrive(x)

    return Program({"one": role}, (x,), ())


LONG = protocol.program([80])
BAD = [
    ((3,), {}, "program is 3; pass a pipeline.Program, a pair of one and its recorded Timeline"),
    (({},), {}, "There are 0 programs; pass one to 6."),
    ((Program({}, (), ()),), {}, "program has no roles; pass a pipeline.Program with at least one."),
    ((Program({"exp": unwritten}, (), ()),), {}, "'exp' names two things: roles, units, barriers and slots need"),
    ((None, 3), {}, "machine is 3; pass a pipeline.Machine."),
    ((None,), {"report": "x"}, "report is 'x'; pass what pipeline.check(program) returns."),
    ((PROGRAMS,), {"report": check(circle())}, "A report is of one program; 5 were given."),
    ((PROGRAMS["alike"],), {"report": check(circle())}, "The report is of another program; pass report=pipeline."),
    ((Program({"one": unwritten}, (), ()),), {}, "A role raised NotImplementedError: write the producer"),
    ((Program({"one": lambda: iter([3])}, (), ()),), {}, "one yields 3; a role yields Wait, "),
    ((endless(),), {}, "one yields more than 100000 commands; does its loop end?"),
    ((LONG,), {}, f"The program has {len(run(LONG).spans)} spans; at most {MOST} are shown. Give it fewer tiles."),
]


@pytest.mark.parametrize(("args", "more", "sentence"), BAD, ids=range(len(BAD)))
def test_a_sentence_says_what_cannot_be_shown(args, more, sentence):
    player = PipelinePlayer(*args, **more)
    assert player.problem.startswith(sentence) and repr(player) == f"PipelinePlayer({player.problem})"


def test_a_learners_own_generators_play():
    full, slot = Barrier("full"), Slot("tile", 3650)

    def bring():
        yield Expect(full, slot.n_bytes)
        yield Copy("mine", slot, full)

    def take():
        yield Wait(full, 0)

    shown = only(PipelinePlayer(Program({"bring": bring, "take": take}, (full,), (slot,))))
    assert ("copy unit", "copy", "mine", 0, 100, "bring") in spans(shown)
    assert ("take", "wait", "full", 0, 100 + MACHINE.arrives, "take") in spans(shown)


def test_a_program_that_takes_no_time_plays():
    x = Barrier("x", 2)
    roles = {name: lambda: iter([Arrive(x)]) for name in ("one", "two")}
    result = PipelinePlayer({7: Program(roles, (x,), ())}).result
    assert result["programs"][0]["moments"] == [[0.0, "Phase 0 of x completes. All is done."]]


@pytest.mark.parametrize("player", [PipelinePlayer(), PipelinePlayer(circle())], ids=["clocks", "actions"])
def test_it_can_be_sent_to_the_page(player):
    assert json.loads(json.dumps(player.result)) == player.result
    data = player._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(player) == repr(type(player)(*([circle()] if "x" in repr(player) else [])))
    assert base64.b64decode(data["image/png"]) == player.figure().png()


def test_a_recorded_timeline_is_shown_unchanged_next_to_the_model():
    record = json.loads((DATA / "h200_timelines.json").read_text(encoding="utf-8"))
    row = next(row for row in record["rows"] if row["rung"] == "r4_overlap")
    program, timeline = measured.program(row, 0), measured.timeline(row, 0)
    model, real = PipelinePlayer({"model": program, "real": (program, timeline)}).result["programs"]
    assert model["rows"] == only(PipelinePlayer(program))["rows"]
    of_roles = [span for role in program.roles for span in timeline.lane(role) if span.end > span.start]
    shown = [span for row in real["rows"] if row["group"] == "roles" for span in row["spans"]]
    assert len(shown) == len(of_roles) and real["words"].startswith("Recorded: ")
    busy = sum(span.end - span.start for span in timeline.lane("tensor cores"))  # as at full speed
    assert f"the tensor cores need {busy:.0f} of them, {100 * busy / timeline.clocks:.1f}%." in real["words"]
    assert all(row["spans"] or row["ticks"] for row in real["rows"]), "what no mark knows is not shown as idle"
    assert "copy unit" not in [row["name"] for row in real["rows"]]


def test_a_pair_of_other_things_is_refused():
    for pair in ((PROGRAMS["alike"], 3), (3, run(PROGRAMS["alike"]))):
        assert "a pair of one and its recorded Timeline" in PipelinePlayer(pair).problem


def test_each_kind_of_mark_is_one_that_the_page_knows():
    marks = (Path(pipeline_player.__file__).parent / "marks.js").read_text(encoding="utf-8")
    known = set(re.findall(r"^  (\w+): \"", marks, re.MULTILINE)) | {"product", "exp"}  # in the colour of the role
    for program in PROGRAMS.values():
        assert {kind for _, kind, *_ in spans(PipelinePlayer(program).result["programs"][0])} <= known
