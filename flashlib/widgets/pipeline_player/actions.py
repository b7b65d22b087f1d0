"""A schedule that goes wrong, on the lanes of a Timeline whose axis counts actions instead of clocks."""

from flashlib.pipeline import PipelineFault, Timeline
from flashlib.pipeline import commands as c
from flashlib.pipeline.schedules import Walk
from flashlib.pipeline.timeline import Phase, Span
from flashlib.widgets.pipeline_player import words

OTHER = "The report is of another program; pass report=pipeline.check(program) of this one."
UNITS = {c.Copy: ("copy unit", "copy"), c.Store: ("copy unit", "store"), c.Product: ("tensor cores", "product")}


class Replay:
    """Replays the actions of a Report; action n takes the time from n - 1 to n.

    timeline: a Timeline in actions, with spans of kind "act" and, where it goes wrong, "fault" on the roles.
    sentences: what each action does. After a deadlock the axis is longer by one, to show who waits then.
    Raises ValueError if the report is of another program.
    """

    def __init__(self, program, report):
        self.walk, self.sentences, self.fault = Walk(program), [], None
        self.spans, self.phases = [], []
        self.under_way, self.held, self.blocked = {}, {}, {}  # with their starts: flights, tiles in slots, waits
        for self.n, action in enumerate(report.actions, 1):
            self._act(self._mine(action))
        end = self._end()
        if self.fault is None or self.fault.said != report.fault.said:
            raise ValueError(OTHER)
        self.timeline = Timeline(self.spans, self.phases, float(end))

    def _mine(self, action):
        """Return an action of the report with the Flight of this replay."""
        if action.flight:
            wanted = action.flight.role, action.flight.command
            flight = next((f for f in self.walk.state.ready() if (f.role, f.command) == wanted), None)
            action = action._replace(flight=flight) if flight else None
        elif action.role not in self.walk.lists or self.walk.now[action.role] != action.command:
            action = None
        if action is None:
            raise ValueError(OTHER)
        return action

    def _act(self, action):
        state, before, kind = self.walk.state, dict(self.walk.state.barriers), "act"
        self._wait()
        try:
            self.walk.take(action)
        except PipelineFault as fault:
            self.fault, kind = fault, "fault"
        done = [b for b in state.barriers if state.barriers[b][2] != before[b][2]]
        self.phases += [Phase(float(self.n), b.name, before[b][2]) for b in done]
        self.sentences.append(words.action(action, done))
        if action.flight:
            self._land(action.flight)
            if kind == "act":
                return
        elif kind == "act" and isinstance(action.command, (*UNITS, c.Write)):
            self._begin(action)
        name = "a unit is done" if action.flight else words.command(action.command)
        self._span(action.role, kind, name, self.n - 1, action.role)

    def _begin(self, action):
        """A unit begins a piece of work, or a role writes into a slot."""
        command, state = action.command, self.walk.state
        if isinstance(command, c.Copy | c.Write):
            self._leave(command.slot)
        if isinstance(command, c.Write):
            self.held[command.slot] = self.n, command.tile, action.role
            return
        flights = {c.Copy: state.copies, c.Store: state.stores, c.Product: state.products}[type(command)]
        self.under_way[flights[-1].number] = flights[-1], self.n - 1

    def _land(self, flight):
        """A unit has finished a piece of work."""
        self._fly(*self.under_way.pop(flight.number))
        if isinstance(flight.command, c.Copy):
            self.held[flight.command.slot] = self.n, flight.command.tile, flight.role

    def _fly(self, flight, since):
        command = flight.command
        lane, kind = UNITS[type(command)]
        name = command.name if kind == "product" else command.tile
        self._span(lane, kind, name, since, flight.role)
        if kind == "copy":
            self._span(command.slot, "fill", name, since, flight.role)
        for slot, tile in getattr(command, "reads", ((command.slot, name),) if kind == "store" else ()):
            self._span(slot, "read", tile, since, flight.role)

    def _leave(self, slot):
        if slot in self.held:
            since, tile, role = self.held.pop(slot)
            self._span(slot, "hold", tile, since, role)

    def _wait(self):
        """Note who has to wait before this action."""
        for role in self.walk.lists:
            command = self.walk.now[role]
            waits = command is not None and not self.walk.state.may(role, command)
            if waits and role not in self.blocked:
                self.blocked[role] = self.n - 1, words.awaited(command)
            elif not waits and role in self.blocked:
                self._go(role)

    def _go(self, role):
        since, name = self.blocked.pop(role)
        self._span(role, "wait", name, since, role, self.n - 1)

    def _end(self):
        """Close the open spans, and return the end of the axis."""
        self.n = len(self.sentences)
        if self.fault is None:
            try:
                self.walk.stop()
            except PipelineFault as deadlock:
                self.fault = deadlock
            self.n += 1
            self._wait()
        for role in list(self.blocked):
            since, name = self.blocked.pop(role)
            self._span(role, "wait", name, since, role)
        for flight in self.under_way.values():
            self._fly(*flight)
        for slot in list(self.held):
            self._leave(slot)
        return self.n

    def _span(self, lane, kind, name, since, role, end=None):
        self.spans.append(Span(str(lane), kind, name, float(since), float(self.n if end is None else end), role))
