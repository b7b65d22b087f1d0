"""PipelinePlayer: what each unit and role of a pipeline does, clock by clock, or how the pipeline goes wrong."""

import traitlets

from flashlib.learner.error_text import cut, error_text
from flashlib.pictures.canvas import Picture
from flashlib.pipeline import MACHINE, Machine, PipelineFault, Program, Report, Timeline, check, protocol, run
from flashlib.widgets.pipeline_player import figure, words
from flashlib.widgets.pipeline_player.actions import Replay
from flashlib.widgets.pipeline_player.rows import opens, roles, rows
from flashlib.widgets.widget import Widget, script, style

NAME, MOST = "program", 6  # name of a single program; the most programs side by side
SEARCH = {"schedules": 200, "states": 3000}  # to find a schedule for a program that goes wrong at these speeds


class PipelinePlayer(Widget):
    """Play a program of `flashlib.pipeline`: its units, roles, slots and barriers over time.

    program: a Program, or up to 6 of them by name, one above the other on the same axis; default: the kernel's own
    with four tiles of keys. It is run at the speeds of `machine`, and the axis counts clocks. In place of a
    Program there may be a pair, a Program and a Timeline recorded from it, which is shown as it is. report: what
    `pipeline.check(program)` found; if it has a fault, its schedule is played, and the axis counts actions. A
    program that goes wrong at these speeds is described in words; if it is the only one, `check` looks for a
    schedule to play. Everything shown comes from the Timeline or the Report; `result` holds it.
    """

    _esm = script("pipeline_player/pipeline_player.js")
    _css = style("pipeline_player/pipeline_player.css")

    result = traitlets.Dict().tag(sync=True)

    def __init__(self, program=None, machine=MACHINE, *, report=None):
        try:
            programs = _programs(program)
            _check(programs, machine, report)
            result = _result(programs, machine, report)
        except (TypeError, ValueError) as error:
            super().__init__(problem=cut(str(error)))
        except Exception as error:  # an exception of a role, which is the learner's code, and worth reading
            super().__init__(problem=f"A role raised {error_text(error)}")
        else:
            super().__init__(result=result)

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        programs = [f"{one['name']}: {' '.join([one['words'], *one['fault']])}" for one in self.result["programs"]]
        return " ".join(programs).rstrip(".")


def _programs(program) -> dict:
    if program is None:
        program = protocol.program([4])
    if not isinstance(program, dict):
        return {NAME: program}
    return {str(name): one for name, one in program.items()}


def _check(programs, machine, report):
    """Raise TypeError or ValueError if something cannot be played."""
    if not 1 <= len(programs) <= MOST:
        raise ValueError(f"There are {len(programs)} programs; pass one to {MOST}.")
    for name, one in programs.items():
        program, timeline = _pair(one)
        if not isinstance(program, Program) or not isinstance(timeline, Timeline | None):
            raise TypeError(
                f"{name} is {one!r:.60}; pass a pipeline.Program, a pair of one and its recorded Timeline, or a "
                "dict of these by name."
            )
        if not program.roles:
            raise ValueError(f"{name} has no roles; pass a pipeline.Program with at least one.")
    if not isinstance(machine, Machine):
        raise TypeError(f"machine is {machine!r:.60}; pass a pipeline.Machine.")
    if report is not None and not isinstance(report, Report):
        raise TypeError(f"report is {report!r:.60}; pass what pipeline.check(program) returns.")
    if report is not None and len(programs) > 1:
        raise ValueError(f"A report is of one program; {len(programs)} were given.")


def _pair(one) -> tuple:
    """Return a Program and the Timeline recorded from it, or None."""
    return one if type(one) is tuple and len(one) == 2 else (one, None)


def _result(programs, machine, report) -> dict:
    shown = [_played(name, one, machine, report, alone=len(programs) == 1) for name, one in programs.items()]
    axis = "actions" if any(one.pop("acts") for one in shown) else "clocks"
    events = sorted({time for one in shown for time, _ in one["moments"]})
    end = max(one["end"] for one in shown)
    first = opens(shown, events, end, axis == "actions")
    return {"axis": axis, "end": end, "events": events, "opens": first, "programs": shown}


def _played(name, program, machine, report, alone) -> dict:
    """Return what is shown of a program."""
    program, recorded = _pair(program)
    if recorded:
        found = _shown(name, program, recorded, words.moments(recorded), words.recorded(recorded))
        return found | {"rows": [row for row in found["rows"] if row["spans"] or row["ticks"]]}  # else unknown
    if report and report.fault:
        return _wrong(name, program, report, [])
    try:
        timeline = run(program, machine)
    except PipelineFault as fault:
        first, *others = words.faults(fault)
        found = [f"At these speeds it goes wrong: {first}", *others]
        report = check(program, **SEARCH) if alone else None
        if report and report.fault:
            return _wrong(name, program, report, found if report.fault.said != fault.said else [])
        nothing = {
            "rows": [],
            "roles": [],
            "meanings": {},
            "end": 0.0,
            "moments": [[0.0, " ".join(found)]],
            "acts": False,
        }
        return {"name": name, "words": "It does not finish.", "fault": found, **nothing}
    total = f"{words.total(timeline)}."
    if report:
        total = f"{total} By its report it is {report}."
    return _shown(name, program, timeline, words.moments(timeline), total)


def _wrong(name, program, report, before) -> dict:
    """Return what is shown of a schedule that goes wrong."""
    replay = Replay(program, report)
    moments, fault = words.acted(replay.sentences, report.fault), [*before, *words.faults(report.fault)]
    return _shown(name, program, replay.timeline, moments, f"{words.schedule(report)}.", fault=fault, acts=True)


def _shown(name, program, timeline, moments, summary, *, fault=(), acts=False) -> dict:
    return {
        **{"name": name, "words": summary, "fault": list(fault), "acts": acts},
        **{"rows": rows(program, timeline), "roles": roles(program, timeline), "moments": moments},
        "meanings": _meanings(program, timeline),
        "end": max(round(timeline.clocks, 2), moments[-1][0]),
    }


def _meanings(program, timeline) -> dict:
    """Return the meaning of each barrier that has one, in words, by name."""
    names = {str(barrier) for barrier in program.barriers} | {s.name for s in timeline.spans if s.kind == "wait"}
    return {name: words.meaning(name) for name in sorted(names) if words.meaning(name)}
