"""What ServeLab shows of a run: a lane for each request, a frame for each step, and sums, all from Records."""

from typing import NamedTuple

from flashlib.widgets.serve_lab import words

# What a request does in a step, a letter each. EMPTY: its slot is empty, and static batching leaves it so.
ABSENT, WAITS, READS, AGAIN, HELD, DECODES, PREEMPTED, EMPTY = " wpaidxe"


class Sums(NamedTuple):
    """Totals of a whole run. waits: for each request, the steps from its arrival to its first token."""

    steps: int
    written: int
    waits: list[int]
    empty: int  # steps with an empty slot
    idle: int  # those of them in which a request waited
    preempted: int
    again: int  # tokens computed a second time
    known: int  # prompt tokens that were already in the cache
    most: int  # tokens in a step


class Account:
    """Follows the Records of a run, step by step.

    lanes: for each request its letters, one for each step. parts: for each request [step, tokens read, of its
    prompt or for a second time, whether a token was written at the end]. first, last: the steps in which each
    request wrote its first and its last token. frames: one for each step.
    """

    def __init__(self, requests, records, *, batch, continuous):
        self.requests, self.batch, self.continuous = requests, batch, continuous
        self.lanes = [""] * len(requests)
        self.parts = [[] for _ in requests]
        self.first, self.last = {}, {}
        self.frames = []
        self._done = [0] * len(requests)  # how many tokens of each request are in the cache
        self._most = [0] * len(requests)  # how many tokens of each have been computed at some time
        self._left = set()  # whose slots stay empty until the whole batch has finished
        self._counts = {"preempted": 0, "again": 0, "known": 0, "empty": 0, "idle": 0}
        for record in records:
            self._take(record)

    @property
    def sums(self) -> Sums:
        waits = [self.first[k] - one.arrives + 1 for k, one in enumerate(self.requests)]
        written, most = sum(one.answer for one in self.requests), max(frame["tokens"] for frame in self.frames)
        return Sums(len(self.frames), written, waits, most=most, **self._counts)

    def _take(self, record):
        known = [(k, n) for k, n in record.admitted if n]
        for k, n in record.admitted:
            self._done[k] = n
            self._counts["known"] += max(0, n - self._most[k])
        again = self._compute(record)
        if not self.continuous and record.admitted:
            self._left = set()
        for k, one in enumerate(self.requests):
            self.lanes[k] += self._letter(k, one, record, again)
        firsts = [k for k, _ in record.wrote if k not in self.first]
        self.first |= dict.fromkeys(firsts, record.step)
        self.last |= dict.fromkeys(record.finished, record.step)
        self._left = self._left | set(record.finished) if record.running else set()
        self._note(record, known, again, firsts)

    def _compute(self, record):
        """Count the tokens put into the cache; return how many of each request are computed again."""
        again = {}
        for k, n in (*((k, 1) for k in record.decoded), *record.chunks):
            again[k] = max(0, min(n, self._most[k] - self._done[k]))
            self._done[k] += n
            self._most[k] = max(self._most[k], self._done[k])
        wrote = dict(record.wrote)
        for k, n in record.chunks:
            self.parts[k].append([record.step, n, k in wrote])
        return again

    def _letter(self, k, one, record, again):
        if record.step < one.arrives:
            return ABSENT
        if k in self.last:
            return EMPTY if k in self._left and not self.continuous else ABSENT
        if k in record.preempted:
            return PREEMPTED
        if k in record.decoded:
            return DECODES
        if k in dict(record.chunks):
            return AGAIN if again[k] else READS
        return HELD if k in record.running else WAITS

    def _note(self, record, known, again, firsts):
        taken = len({*record.running, *record.finished})
        empty = taken < self.batch
        counts = {"preempted": len(record.preempted), "again": sum(again.values())}
        counts |= {"empty": empty, "idle": empty and bool(record.waiting)}
        for name, n in counts.items():
            self._counts[name] += n
        read = sum(n for _, n in record.chunks)
        arrived = [k for k, one in enumerate(self.requests) if one.arrives == record.step]
        frame = {
            **{"decode": len(record.decoded), "reading": len(record.chunks), "taken": taken, "read": read},
            **{"tokens": read + len(record.decoded), "wait": len(record.waiting)},
            **{"used": record.used, "kept": record.kept, "free": record.free},
        }
        why = self._why(record, taken)
        frame["words"] = words.step(record, arrived, known, again, firsts, self._read(record), why)
        self.frames.append(frame)

    def _read(self, record):
        """Return the requests whose prompts this step finished reading, not counting tokens computed again."""
        return [k for k, _ in record.chunks if self._done[k] >= self.requests[k].prompt]

    def _why(self, record, taken):
        """Return why requests wait."""
        if not record.waiting:
            return ""
        if taken == self.batch:
            return words.all_taken(self.batch)
        if not self.continuous and not record.admitted:
            return words.not_done(self.batch - taken)
        return words.no_pages(record.waiting[0])

    def padded(self, steps: int) -> list[dict]:
        """Return a frame for each of this many steps; those after the last one show the final state."""
        last = self.frames[-1]
        end = dict.fromkeys(last, 0) | {"kept": last["kept"], "free": last["free"], "words": words.DONE}
        return self.frames + [end] * (steps - len(self.frames))


def opens(lanes: list[str], others: list[str], steps: int) -> int:
    """Return the most instructive step: where the most requests differ between the runs, near the middle."""
    pairs = [(a.ljust(steps), b.ljust(steps)) for a, b in zip(lanes, others, strict=True)]

    def differ(step):
        return sum(a[step] != b[step] for a, b in pairs)

    return max(range(steps), key=lambda step: (differ(step), -abs(step - steps / 2)))
