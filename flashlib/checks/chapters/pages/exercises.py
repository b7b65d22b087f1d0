"""The exercise on an allocator of pages, checked by operations in any order."""

from collections.abc import Callable

from flashlib.checks.chapters.pages.operations import cause, play, text
from flashlib.checks.engine import Case, Known, Outcome, Verdict, announce, attempt, exercise, random_cases
from flashlib.checks.engine.cases import UNSOLVED, Raised
from flashlib.checks.engine.program import out_of_reach

# n_pages, page: operations. a+3 appends 3 tokens to a, a>b makes b a fork of a, a- frees a.
FIXED = """
    4 4: a+1
    4 4: a+4
    4 4: a+3 a+1 a+1
    4 4: a+9
    4 3: a+4 a+2 a+0 a+6
    4 4: a+0
    4 4: a b a+3 b+6 a+2 b+1
    5 1: a+1 a+2 b+1 a+1
    2 4: a+8 a+1 a+0
    2 4: a+5 a+4 a+3
    3 4: a+5 b+3 b+6 b+1 a+3
    2 4: a+8 a- b+8
    3 2: a+3 b+2 a- b+3 b+2
    3 2: a+2 b+3 a- c+2 b- d+2 e+2
    4 4: a+6 a>b
    3 4: a+6 a>b
    4 4: a+8 a>b c+8
    4 4: a+6 a>b b+1
    4 4: a+6 a>b a+1
    4 4: a+6 a>b b+1 a+1 b+1
    4 4: a+8 a>b b+1 a+1
    4 4: a+5 a>b b+0 a+0
    4 4: a+3 a>b b+9
    4 4: a+6 a>b a- b+1 b+2
    4 4: a+6 a>b b- a+1
    2 4: a+6 a>b a- c+4
    3 4: a+6 a>b a- b- c+12
    3 4: a+6 a>b b+1 a- b- c+12
    3 4: a+4 a>b c+8 b- a- d+4 c- e+8
    4 4: a+6 a>b b>c c+1 b+1 a+1
    2 4: a+6 a>b b+1 a- b+1
    3 4: a+6 a>b b+6 b+2 a+1 b+1
    4 4: a+6 a>b a- b- c+4 d+4 e+4 f+4
"""

TWO_AT_ONCE = "4 4: a+3 b+6 a>c c+2 b- a+1"  # operations on an allocator while there is a second one


@exercise(title="An allocator of pages", minutes=70, difficulty="hard", limit=6.0)
def pages(answer: Callable, known: Known) -> Verdict:
    drawn_cases = random_cases.cases(_any_script, 12)
    cases = [_script(line) for line in FIXED.strip().splitlines()] + drawn_cases
    for case in cases:
        n_pages, page, operations = case.arguments
        announce(_shown, *case.arguments)
        found = _played(answer, *case.arguments)
        if found is None:
            continue
        if found is UNSOLVED:
            return Verdict("", Outcome.NOT_SOLVED, "")
        operations = _fewest(answer, n_pages, page, operations, _kind(found))
        found = _played(answer, n_pages, page, operations)
        if found is None:  # on its own, the allocator no longer fails
            return known.wrong("shared_state")
        return known.verdict(cause(found), ("operations", _shown(n_pages, page, operations)))
    if _share(answer):
        return known.wrong("shared_state")
    return Verdict("", Outcome.RIGHT, f"in all {len(cases)} sequences of operations")


def _played(answer, n_pages, page, operations):
    """Run operations; return the Finding that they raise, or None."""
    return attempt(out_of_reach(lambda: play(answer, n_pages, page, operations)))


def _share(answer):
    """Return whether an allocator fails while there is a second one, although it is right on its own."""
    n_pages, page, operations = _script(TWO_AT_ONCE).arguments

    def both():
        other = answer(n_pages, page)
        sequence = other.start()
        other.append(sequence, 5)
        before = list(other.table(sequence))
        play(answer, n_pages, page, operations)
        if list(other.table(sequence)) != before:
            raise ValueError("its table has changed")
        other.append(sequence, 1)
        other.free(sequence)

    return attempt(out_of_reach(both)) is not None


def _kind(found):
    return found.fields["error"] if isinstance(found, Raised) else found.id


def _fewest(answer, n_pages, page, operations, kind):
    """Return operations with the same result, none of which can be left out."""
    at = len(operations)
    while at:
        at -= 1
        fewer = operations[:at] + operations[at + 1 :]
        found = _played(answer, n_pages, page, fewer)
        if found is not None and _kind(found) == kind:
            operations, at = fewer, len(fewer)
    return operations


def _shown(n_pages, page, operations):
    return f"pages = my_pages(n_pages={n_pages}, page={page})\n{text(operations)}"


def _script(line):
    """Return the Case for a line of FIXED; a sequence that does not exist is started first."""
    numbers, _, script = line.partition(":")
    operations, there = [], set()
    for word in script.split():
        name, sign, other = word[0], word[1:2], word[2:]
        if name not in there:
            operations.append(("start", name))
            there.add(name)
        if sign == "+":
            operations.append(("append", name, int(other)))
        elif sign == ">":
            operations.append(("fork", name, other))
            there.add(other)
        elif sign == "-":
            operations.append(("free", name))
    return Case(line.strip(), (*map(int, numbers.split()), operations), None)


def _any_script(rng):
    """Return a Case of random operations, after which all sequences are freed and all pages are used."""
    n_pages, page = map(int, rng.integers((2, 1), (10, 6)))
    operations, there, names = [], [], iter("abcdefghijklmnopqrstuvwxyz")
    for _ in range(40):
        kind = rng.choice(["start", "append", "fork", "free"], p=[0.1, 0.6, 0.16, 0.14])
        if kind == "start" or not there:
            there.append(next(names))
            operations.append(("start", there[-1]))
            continue
        name = there[rng.integers(len(there))]
        if kind == "append":
            operations.append(("append", name, int(rng.integers(0, 2 * page + 2))))
        elif kind == "fork":
            there.append(next(names))
            operations.append(("fork", name, there[-1]))
        else:
            there.remove(name)
            operations.append(("free", name))
    operations += [("free", name) for name in rng.permutation(there).tolist()]
    operations += [("start", "z"), ("append", "z", n_pages * page), ("append", "z", 1)]
    return Case("random operations", (n_pages, page, operations), None)
