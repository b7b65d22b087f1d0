"""What must run before a cell so that it sees what the cells above it define, whatever a reader ran before."""

from web.live.inside import needs


class Order:
    """Which cells have run, and with which names.

    A reader runs cells in any order, and some twice. A cell must see each name as the cells above it leave it. So
    this records which cells defined and changed each name, and if these are not the right ones, those run again.
    """

    def __init__(self, names):
        self.names = list(names)
        self.past = {}  # {name: (the cell that defined it, *those that changed it since)}
        self.texts = [0] * len(self.names)  # how often the text of each cell changed
        self.done = {}  # {cell that has run: the texts of those that it needs, and its own, at that time}

    def change(self, number, names):
        """Replace the names of a cell whose text has changed."""
        self.names[number] = names
        self.texts[number] += 1

    def before(self, number):
        """Return the cells that must run before cell `number`, in order."""
        seen = dict(self._seen(number))
        again = {k for k in seen if self.done.get(k) != self._made_of(k)} - {number}
        while more := self._missing(seen, [*sorted(again), number]) - again:
            again |= more
        return sorted(again)

    def ran(self, number):
        """Record that a cell has finished."""
        _note(self.past, number, self.names[number])
        self.done[number] = self._made_of(number)

    def _made_of(self, number):
        return {k: self.texts[k] for k in (*needs.needed(self.names, number), number)}

    def _missing(self, seen, running):
        """Return the cells that must define names again, since the running ones would find them wrong."""
        past, found = dict(self.past), set()
        for k in running:
            for name, must in seen[k].items():
                if past.get(name) != must:
                    found |= {*must}
            _note(past, k, self.names[k])
        return found

    def _seen(self, number):
        """Yield (cell, {name that it uses: its history then}) for the cells that a cell needs, and for itself."""
        past, late = {}, set()
        for k in [*sorted(needs.needed(self.names, number)), number]:
            taken = self.names[k].taken | late
            yield k, {name: past[name] for name in taken if name in past}
            _note(past, k, self.names[k])
            late |= self.names[k].late


def _note(past, number, names):
    for name in names.changed:
        past[name] = (*past.get(name, ()), number)
    for name in names.given:
        past[name] = (number,)
