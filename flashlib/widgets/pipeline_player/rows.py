"""The rows of PipelinePlayer: what each unit, role, slot and barrier did, from a Timeline."""

from flashlib.pipeline import Program, Timeline
from flashlib.pipeline.timeline import LANES

KINDS = {"load": "read"}  # one mark for a slot that is read, by threads or by a unit
MOST = 1500  # spans of a program: more cannot be distinguished
WORK = {"copy", "store", "product", "exp", "fma"}  # work of a unit


def roles(program: Program, timeline: Timeline) -> list[str]:
    """Return the roles, first those that multiply or compute, which get the first colours."""
    work = {span.role for span in timeline.spans if span.kind in ("product", "exp", "fma")}
    return sorted(program.roles, key=lambda role: role not in work)


def rows(program: Program, timeline: Timeline) -> list[dict]:
    """Return the rows: name, group ("units", "roles", "slots", "barriers"), spans and ticks.

    spans: [kind, name, start, end, number in `roles`]. ticks: [time, number of the phase] of a barrier. use: the
    share of the time that a unit is busy. Raises ValueError if there are more than MOST spans.
    """
    if len(timeline.spans) > MOST:
        found = len(timeline.spans)
        raise ValueError(f"The program has {found} spans; at most {MOST} are shown. Give it fewer tiles.")
    numbers = {role: k for k, role in enumerate(roles(program, timeline))}

    def row(name, group, spans, **more):
        shown = [
            [KINDS.get(s.kind, s.kind), s.name, round(s.start, 2), round(s.end, 2), numbers[s.role]]
            for s in spans
            if s.end > s.start
        ]
        return {"name": name, "group": group, "spans": shown, "ticks": [], **more}

    found = []
    for unit in LANES:
        layers = _layers(timeline.lane(unit))
        found += [
            row(unit if not k else "", "units", layer, use=timeline.use(unit)) for k, layer in enumerate(layers)
        ]
    found += [row(role, "roles", timeline.lane(role)) for role in program.roles]
    found += [row(str(slot), "slots", timeline.lane(str(slot))) for slot in program.slots]
    for barrier in program.barriers:
        ticks = [[round(p.time, 2), p.number] for p in timeline.phases if p.barrier == str(barrier)]
        found.append(row(str(barrier), "barriers", [], ticks=ticks))
    return found


def opens(programs: list[dict], events: list[float], end: float, goes_wrong: bool) -> float:
    """Return the most instructive event: where it goes wrong, or where the most units work, near the middle."""
    if goes_wrong:
        return end

    def working(at):
        units = (row["spans"] for one in programs for row in one["rows"] if row["group"] == "units")
        return sum(kind in WORK and start <= at < stop for spans in units for kind, _, start, stop, _ in spans)

    return max(events, key=lambda at: (working(at), -abs(at - end / 2)))


def _layers(spans) -> list[list]:
    """Return the spans in as few rows as possible without overlaps."""
    layers = []
    for span in spans:
        free = next((layer for layer in layers if layer[-1].end <= span.start), None)
        if free is None:
            layers.append([span])
        else:
            free.append(span)
    return layers or [[]]
