"""The frames of PagesLab: an allocator runs a script, and its state is read after each operation."""

from flashlib.widgets.pages_lab import rules, words
from flashlib.widgets.pages_lab.look import AllocatorFault, Look, error_in_words, look, short_repr
from flashlib.widgets.pages_lab.scenarios import Op, longest
from flashlib.widgets.settings import is_whole

FREE, OWNED, SHARED, KEPT = "fosk"  # the states of a page


class Play:
    """Runs operations on `make(n_pages, page)`, recording a frame for each, until one does something wrong.

    takes_tokens: whether its `start` takes a prompt. If no pages are left, the newest sequences are put off, one
    after another.
    """

    def __init__(self, make, n_pages, page, takes_tokens=True):
        self.make, self.n_pages, self.page, self.takes_tokens = make, n_pages, page, takes_tokens
        self.rows = rules.PageRows(page)
        self.handles = {}  # what start and fork returned, by the name of the sequence, the newest last
        self.put_off = {}  # how many tokens each sequence had when it had to return its pages
        self.known = 0  # as last returned by start
        self.seen = Look({}, {})
        self.frames = []

    def run(self, script: list[Op]) -> list[dict]:
        """Return the frames of a script: one before its operations, one for each, and one at the end."""
        self.longest = longest(script)
        try:
            self._call(f"{getattr(self.make, '__name__', 'Pages')}({self.n_pages}, {self.page})", self._make)
            for op in script:
                self._run(op)
        except Stopped:
            return self.frames
        self._note("", words.ended(self.frames, self.longest), "end")
        return self.frames

    def _run(self, op):
        """Run an operation, unless its sequence was put off."""
        name, living = op.name, op.name in self.handles
        match op.method:
            case "start":
                self._call(f"{name}, known = start({'prompt' * bool(op.tokens)})", self._start, op)
            case "fork" if op.of in self.handles:
                self._call(f"{name} = fork({op.of})", self._fork, op)
            case "rest" if living:
                prompt = f"prompt[{self.known}:]" if self.known else "prompt"
                self._append(name, list(op.tokens[self.known :]), prompt, op.why)
            case "append" if living:
                self._append(name, op.n, op.n, op.why)
            case "drop" if living:
                self._call(f"drop({name}, {op.n})", self._drop, op)
            case "free" if living:
                self._call(f"free({name})", self._free, name, op.why)
            case "resume" if name in self.put_off:
                n = self.put_off.pop(name)
                self._call(f"{name}, known = start()", self._start, op)
                self._append(name, n, n, "")

    def _call(self, call, method, *arguments):
        """Call a method and note the snapshot it returns; if something is wrong, note that and stop."""
        try:
            sentence, kind, marks = method(*arguments)
        except AllocatorFault as fault:
            self._note(call, f"{fault} The play ends here.", "fault", wrong=fault.pages)
            raise Stopped from fault
        self._note(call, sentence, kind, **marks)
        return kind

    def _try(self, method, *arguments):
        """Return what a method of the allocator returns; whatever it raises becomes an AllocatorFault."""
        try:
            return getattr(self.allocator, method)(*arguments)
        except Exception as error:
            raise AllocatorFault(f"It raised {error_in_words(error)}.") from error

    def _look(self, name):
        """Return the snapshots before and after an operation on one sequence."""
        before = self.seen
        self.seen = look(self.allocator, self.handles, self.n_pages)
        rules.check_others(name, before, self.seen)
        return before, self.seen

    def _check(self, name=None):
        """Check what must hold after any operation, and that one sequence is as it should be."""
        if name:
            rules.check_length(name, len(self.rows.tokens[name]), self.seen, self.page)
            self.rows.check(name, self.seen)
        rules.check_counts(self.allocator, self.seen, self.n_pages, self.page)

    def _make(self):
        try:
            self.allocator = self.make(self.n_pages, self.page)
        except Exception as error:
            raise AllocatorFault(f"It raised {error_in_words(error)}.") from error
        self._check()
        return words.begun(self.n_pages, self.page), "begin", {}

    def _start(self, op):
        given = [list(op.tokens)] if self.takes_tokens else []
        found = self._try("start", *given)
        handle, self.known = found if isinstance(found, tuple) and len(found) == 2 else (found, 0)
        self._add(op.name, handle)
        rules.check_known(self.known, op.tokens)
        before, after = self._look(op.name)
        self.rows.tokens[op.name] = []
        self.rows.add(op.name, op.tokens[: self.known])
        self._check(op.name)
        return _sentences(op.why, words.started(op.name, self.known, op.tokens, before, after)), "start", {}

    def _fork(self, op):
        self._add(op.name, self._try("fork", self.handles[op.of]))
        _, after = self._look(op.name)
        self.rows.tokens[op.name] = list(self.rows.tokens[op.of])
        self._check(op.name)
        return _sentences(op.why, words.forked(op.name, op.of, after)), "fork", {}

    def _add(self, name, handle):
        for other, taken in self.handles.items():
            if taken is handle or (is_whole(handle) and taken == handle):
                raise AllocatorFault(
                    f"It returned {short_repr(handle)}, which is the sequence {other}; each needs its own."
                )
        self.handles[name] = handle

    def _append(self, name, tokens, text, why):
        """Append; while pages are lacking, put off the newest sequence and try again."""
        while self._call(f"append({name}, {text})", self._append_once, name, tokens, why) == "out":
            last = list(self.handles)[-1]
            self.put_off[last] = len(self.rows.tokens[last]) + (last == name) * rules.count(tokens)
            alone = len(self.handles) == 1
            self._call(f"free({last})", self._free, last, words.put_off(last, alone))
            if last == name:
                return

    def _append_once(self, name, tokens, why):
        n, before = rules.count(tokens), self.seen
        N, own = before.lengths[name], before.pages[name]
        goes_on = bool(n and N % self.page)
        shared = goes_on and len(before.owners(own[-1])) > 1
        try:
            slots = self.allocator.append(self.handles[name], tokens)
        except MemoryError as error:
            needed = -(-(N + n) // self.page) - len(own) + shared
            rules.check_refusal(needed, before, look(self.allocator, self.handles, self.n_pages), self.n_pages)
            self._check()
            return words.refused(needed, before, self.n_pages, type(error).__name__), "out", {}
        except Exception as error:
            raise AllocatorFault(f"It raised {error_in_words(error)}.") from error
        before, after = self._look(name)
        rules.check_length(name, N + n, after, self.page)
        slots = rules.read_slots(slots, n)
        rules.check_slots(name, slots, before, after, self.page)
        copied = [own[-1], after.pages[name][len(own) - 1]] if goes_on else []
        copied = copied if len(set(copied)) == 2 else []
        if copied:
            self.rows.copy(*copied)
        self.rows.write(name, slots, self.rows.add(name, tokens))
        self._check(name)
        marks = {"written": runs(slots), "copied": copied}
        marks["taken"] = [one for one in after.pages[name] if one not in own]
        return _sentences(why, words.appended(name, self.page, copied, before, after)), "append", marks

    def _drop(self, op):
        self._try("drop", self.handles[op.name], op.n)
        before, after = self._look(op.name)
        del self.rows.tokens[op.name][-op.n :]
        self._check(op.name)
        return _sentences(op.why, words.released(op.name, before, after)), "drop", {}

    def _free(self, name, why):
        self._try("free", self.handles.pop(name))
        before, after = self._look(name)
        del self.rows.tokens[name]
        self._check()
        return _sentences(why, words.released(name, before, after)), "free", {}

    def _note(self, call, words, kind, written=(), copied=(), taken=(), wrong=()):
        seen, n_pages, page = self.seen, self.n_pages, self.page
        owners = [[] for _ in range(n_pages)]  # as `seen.owners` of each page, all at once
        for name, own in seen.pages.items():
            for one in dict.fromkeys(own):
                owners[one].append(name)
        filled = rules.filled_rows(seen, n_pages, page)
        state = [
            (SHARED if len(own) > 1 else OWNED) if own else KEPT if one in seen.kept else FREE
            for one, own in enumerate(owners)
        ]
        used, tokens = sum(map(bool, owners)), sum(seen.lengths.values())
        reserved = len(seen.pages) * self.longest
        counts = {
            **{"used": used, "kept": len(seen.kept), "free": n_pages - used - len(seen.kept)},
            **{"rows": used * page, "filled": sum(filled), "waste": used * page - sum(filled), "tokens": tokens},
            **{"reserved": reserved, "reserved_waste": reserved - tokens},
        }
        for one in seen.kept:
            filled[one] = page
        self.frames.append(
            {
                **{"call": call, "words": words, "kind": kind, "state": "".join(state), "filled": filled},
                **{"owners": ",".join(map(" ".join, owners)), "tables": seen.pages, "lengths": seen.lengths},
                **{"written": list(written), "copied": list(copied), "taken": list(taken), "wrong": list(wrong)},
                "waits": list(self.put_off),
                "counts": counts,
            }
        )


class Stopped(Exception):
    """The play cannot go on."""


def _sentences(why, what) -> str:
    return f"{why} {what}".strip()


def runs(slots: list[tuple[int, int]]) -> list[list[int]]:
    """Return slots as runs of rows: [page, first row, one after the last]."""
    found = []
    for page, row in slots:
        if found and found[-1][0] == page and found[-1][2] == row:
            found[-1][2] = row + 1
        else:
            found.append([page, row, row + 1])
    return found
