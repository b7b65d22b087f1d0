"""Run operations on an answer, an allocator of pages, and find the first wrong one.

Results are compared with the owners of each page, which follow from the slots that the answer returned. So it may
use free pages in any order.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from numbers import Integral

from flashlib.checks.engine import Finding
from flashlib.checks.engine.value_text import describe_value
from flashlib.language.phrases import and_list

AGAIN = {  # {how a page was released before it was free and reused: the mistake if it is given out again}
    "freed_while_owned": "freed_twice", "freed_twice": "freed_twice", "left_while_owned": "left_while_owned",
}  # fmt: skip


def text(operations: Sequence[tuple]) -> str:
    """Return operations as lines of Python."""
    lines = {
        "start": "{} = pages.start()",
        "append": "pages.append({}, {})",
        "fork": "{1} = pages.fork({0})",
        "free": "pages.free({})",
    }
    return "\n".join(lines[kind].format(*others) for kind, *others in operations)


def play(make: Callable, n_pages: int, page: int, operations: Sequence[tuple]) -> None:
    """Run operations on make(n_pages, page); raise Finding at the first wrong one.

    operations: ("start", a), ("append", a, n), ("fork", a, b), which makes b from a, ("free", a); names are
    strings. Operations on a sequence that does not exist are skipped.
    """
    player = _Player(make(n_pages, page), n_pages, page)
    for kind, name, *others in operations:
        if kind == "start" or name in player.tables:
            try:
                getattr(player, kind)(name, *others)
                player.check_tables(kind, text([(kind, name, *others)]), name)
            except Finding as found:
                found.fields["before"] = player.before
                raise


def cause(found: Finding) -> Finding:
    """Return a Finding that names the mistake that its operations point to; other Findings are unchanged.

    The operations are the fewest that lead to the Finding, so each of them is part of the cause.
    """
    before, id = found.fields.get("before", set()), found.id
    if "failed" in before:
        id = "changed_on_error"
    elif id == "early":
        causes = {
            ("copied", "freed"): "copy_lost", ("copied",): "copy_takes_more", ("forked", "freed"): "shared_lost",
            ("forked",): "copy_takes_more" if found.fields["copies"] else "fork_takes", ("freed",): "free_lost",
        }  # fmt: skip
        id = next((id for events, id in causes.items() if before.issuperset(events)), id)
    elif id == "copied_needlessly" and "left_while_owned" in found.fields["log"]:
        id = "copy_lost"
    elif id == "copied_needlessly" and "freed" in before:
        id = "shared_lost"
    elif id == "owned":
        log = found.fields["log"]
        id = next(
            (id for id in ("freed_while_owned", "left_while_owned", "freed_twice") if id in log), "given_twice"
        )
    return Finding(id, **found.fields)


class _Player:
    """An answer's allocator, with the pages that each sequence should have, and the owners of each page."""

    def __init__(self, pages, n_pages, page):
        self.pages, self.n_pages, self.page = pages, n_pages, page
        self.handles, self.tables, self.lengths = {}, {}, {}
        self.owners = defaultdict(set)  # {page: names}
        self.before = set()  # what happened: forked, freed, copied, failed
        self.log = defaultdict(set)  # {page: how it was released}

    def start(self, name):
        self._add(name, self.pages.start(), [], 0)

    def fork(self, name, new):
        try:
            handle = self.pages.fork(self.handles[name])
        except MemoryError:
            raise Finding("fork_takes", op=f"pages.fork({name})") from None
        self._add(new, handle, self.tables[name], self.lengths[name])
        self.before.add("forked")
        given, own = self._table(new), self.tables[name]
        if given != own:
            id = "fork_empty" if not given else "fork_not_shared"
            raise Finding(id, op=f"{new} = pages.fork({name})", given=given, own=own)

    def free(self, name):
        self.pages.free(self.handles[name])
        for page in self.tables[name]:
            self.owners[page].remove(name)
            self.log[page].add("freed_while_owned" if self.owners[page] else "freed")
        del self.handles[name], self.tables[name], self.lengths[name]
        self.before.add("freed")

    def append(self, name, n):
        op, table, N = f"pages.append({name}, {n})", self.tables[name], self.lengths[name]
        goes_on = bool(n and N % self.page)  # in the last page
        shared = goes_on and len(self.owners[table[-1]]) > 1
        more = -(-(N + n) // self.page) - len(table)
        free = self.n_pages - sum(map(bool, self.owners.values()))
        fields = {"op": op, "needed": _pages(more + shared), "free": _are(free), "copies": shared}
        fits = more + shared <= free
        try:
            result = self.pages.append(self.handles[name], n)
        except MemoryError:
            if fits:
                raise Finding("early", **fields) from None
            self.before.add("failed")
            return
        except NotImplementedError:
            raise
        except Exception as error:
            if fits:
                raise
            raise Finding("other_error", **fields, error=type(error).__name__) from None
        if not fits:
            raise Finding("no_error", **fields)
        slots, copied = self._slots(op, n, result)
        self._check_rows(op, slots, N)
        self._check_last(op, slots if goes_on else [], copied, table, shared)
        self._take(op, name, slots, copied, table)
        self.lengths[name] = N + n

    def check_tables(self, kind, op, name):
        """Raise Finding unless each sequence has the pages that contain its tokens; check `name` first."""
        for other in sorted(self.tables, key=lambda x: x != name):
            given, own = self._table(other), self.tables[other]
            if given == own:
                continue
            fields = {"op": op, "name": other, "given": given, "own": own}
            if kind == "start" and other == name:
                raise Finding("start_takes", **fields)
            raise Finding("table_wrong" if other == name else "table_of_other", **fields)

    def _add(self, name, handle, pages, N):
        if any(_is_same(handle, other) for other in self.handles.values()):
            raise Finding("same_sequence", name=name, given=describe_value(handle))
        self.handles[name], self.tables[name], self.lengths[name] = handle, list(pages), N
        for page in pages:
            self.owners[page].add(name)

    def _table(self, name):
        given = self.pages.table(self.handles[name])
        try:
            return [_whole(page) for page in given]
        except TypeError:
            raise Finding("table_kind", name=name, given=describe_value(given)) from None

    def _slots(self, op, n, result):
        """Return slots and copied from the result of append, as plain numbers."""
        if not isinstance(result, tuple | list) or len(result) != 2:
            if result is None:
                raise Finding("nothing_returned")
            raise Finding("outputs", given=describe_value(result), n=2, names="slots, copied")
        slots, copied = result
        try:
            slots = [(_whole(i), _whole(row)) for i, row in slots]
        except (TypeError, ValueError):
            raise Finding("slots_kind", op=op, given=describe_value(result[0])) from None
        try:
            if copied is not None:
                old, new = map(_whole, copied)
                copied = old, new
        except (TypeError, ValueError):
            raise Finding("copied_kind", op=op, given=describe_value(result[1])) from None
        if len(slots) != n:
            raise Finding("slot_count", op=op, given=len(slots), n=n)
        return slots, copied

    def _check_rows(self, op, slots, N):
        for c, (i, row) in enumerate(slots, start=N):
            if not 0 <= i < self.n_pages:
                raise Finding("no_such_page", op=op, given=i, last=self.n_pages - 1)
            if row != c % self.page:
                raise Finding("wrong_row", op=op, token=c, given=row, row=c % self.page, page=self.page)
            if c > N and row and i != slots[c - N - 1][0]:
                raise Finding("page_split", op=op, token=c, page=self.page)

    def _check_last(self, op, slots, copied, table, shared):
        """Raise Finding unless a copy is made exactly when the last page is shared and new tokens go into it."""
        if not shared:
            if copied is not None:
                id = (
                    "full_copied"
                    if not slots and table and len(self.owners[table[-1]]) > 1
                    else "copied_needlessly"
                )
                raise Finding(id, op=op, log=self.log[table[-1]] if table else ())
            if slots and slots[0][0] != table[-1]:
                raise Finding("page_anew", op=op, old=table[-1])
            return
        old, new = table[-1], slots[0][0]
        fields = {"op": op, "old": old, "new": new, "owners": and_list(sorted(self.owners[old]))}
        if new == old:
            raise Finding("shared_written", **fields)
        if copied is None:
            raise Finding("copy_not_told", **fields)
        if copied != (old, new):
            raise Finding("copy_exchanged" if copied == (new, old) else "copy_wrong", **fields, given=copied)

    def _take(self, op, name, slots, copied, table):
        """Record the pages of new slots."""
        if copied:
            self.owners[table[-1]].remove(name)
            self.log[table[-1]].add("left_while_owned")
            self.before.add("copied")
            table.pop()
        for i, row in slots:
            if row and table and table[-1] == i:
                continue
            if self.owners[i]:
                owners = and_list(sorted(self.owners[i]))
                raise Finding("owned", op=op, page=i, owners=owners, log=self.log[i])
            self.log[i] = {AGAIN[how] for how in self.log[i] & AGAIN.keys()}
            table.append(i)
            self.owners[i].add(name)


def _is_same(handle, other):
    """Return whether two handles refer to the same sequence; different objects may be equal only temporarily."""
    return handle is other or isinstance(handle, Hashable) and type(handle) is type(other) and handle == other


def _whole(x):
    if isinstance(x, bool) or not isinstance(x, Integral):
        raise TypeError(f"{x!r} is not a whole number")
    return int(x)


def _pages(n):
    return "1 page" if n == 1 else f"{n} pages"


def _are(n):
    return "none is" if n == 0 else "1 is" if n == 1 else f"{n} are"
