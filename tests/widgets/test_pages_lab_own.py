"""A learner's own allocator in PagesLab: it plays what it can do, and errors are reported where they happen."""

import json

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.cache.pages import Pages
from flashlib.checks.engine import solutions
from flashlib.widgets import PagesLab
from tests.widgets.test_pages_lab import COME, FORK, GUESS, NAMES, OUT, PROMPT, SIZES


class Small:
    """A minimal allocator: no fork, no drop, no ids, no sharing."""

    def __init__(self, n_pages, page):
        self.page, self.unused, self.own = page, list(range(n_pages)), {}
        self.last = 0

    def start(self):
        self.last += 1
        self.own[self.last] = ([], 0)
        return self.last

    def append(self, sequence, n):
        pages, N = self.own[sequence]
        more = -(-(N + n) // self.page) - len(pages)
        if more > len(self.unused):
            raise MemoryError
        pages = pages + self.unused[:more]
        self.unused = self.unused[more:]
        self.own[sequence] = pages, N + n
        return [(pages[at // self.page], at % self.page) for at in range(N, N + n)]

    def free(self, sequence):
        self.unused += self.own.pop(sequence)[0]

    def table(self, sequences):
        return [self.own[sequence][0] for sequence in sequences]

    def lengths(self, sequences):
        return [self.own[sequence][1] for sequence in sequences]


def passed_on(name):
    return lambda self, *given: getattr(self.of, name)(*given)


class Public:
    """flashlib's allocator with only its public names."""

    def __init__(self, n_pages, page):
        self.of = Pages(n_pages, page)

    kept_by_age = property(lambda self: self.of.kept_by_age)
    start, append, free, fork, drop, table, lengths = map(
        passed_on, ["start", "append", "free", "fork", "drop", "table", "lengths"]
    )


@pytest.mark.parametrize("scenario", NAMES)
def test_the_public_names_of_an_allocator_are_enough(scenario):
    frames = [PagesLab(scenario, n_pages=8, allocator=one).result["frames"] for one in (Public, Pages)]
    (made, *given), (_, *expected) = frames
    assert made["call"] == "Public(8, 4)" and given == expected


@pytest.mark.parametrize(("n_pages", "page"), SIZES)
@pytest.mark.parametrize("scenario", ["requests come and go", "out of pages"])
def test_a_small_allocator_plays_what_it_can(scenario, n_pages, page):
    lab = PagesLab(scenario, n_pages=n_pages, page=page, allocator=Small)
    right = PagesLab(scenario, n_pages=n_pages, page=page)
    assert lab.result["frames"][-1]["kind"] == "end"
    assert [f["counts"] for f in lab.result["frames"]] == [f["counts"] for f in right.result["frames"]]
    assert lab.result["off"] == {
        **{"requests come and go": "", "a shared prompt": "the start of Small takes no tokens"},
        **{"fork and copy on write": "Small has no fork", "out of pages": "", "speculation": "Small has no drop"},
    }
    assert "allocator=Small" in repr(lab)


def test_a_scenario_that_is_off_is_refused_with_its_reason():
    lab = PagesLab("speculation", allocator=Small)
    assert lab.problem == "'speculation' cannot be played: Small has no drop."
    lab = PagesLab(allocator=Small)
    before = lab.result
    lab.set_state({"scenario": "fork and copy on write"})
    assert lab.refused == (
        "'fork and copy on write' cannot be played: Small has no fork. It stays 'requests come and go'."
    )
    assert lab.result is before and lab.scenario == "requests come and go"


def lies(name, n):
    return property(lambda self: getattr(Pages, name).fget(self) + n)


def says(self):
    raise AssertionError("it is so")


def knows_too_much(self, tokens=()):
    """Start as if 20 tokens of another sequence were known, whatever they are."""
    if not (tokens and self._sequences):
        return Pages.start(self, tokens)
    sequence = self.fork(min(self._sequences))
    self.drop(sequence, int(self.lengths([sequence])[0]) - 20)
    return sequence, 20


def another_row(self, sequence, tokens):
    slots = Pages.append(self, sequence, tokens)
    slots[:, 1] = (slots[:, 1] + 1) % self.page
    return slots


def leaks(self, sequence):
    self.own.pop(sequence)


def grabs(self, sequence, n):
    """Append into a page of another sequence."""
    others = [pages for other, (pages, _) in self.own.items() if other != sequence and pages]
    if others:
        self.unused.insert(0, others[0][0])
    return Small.append(self, sequence, n)


def takes_one_twice(self, sequence, n):
    slots = Small.append(self, sequence, n)
    self.own[sequence][0][-1] = self.own[sequence][0][0]
    return slots


def turns_others_around(self, sequence):
    for other in self.own:
        if other != sequence:
            self.own[other][0].reverse()
    Small.free(self, sequence)


def out(self, *given):
    raise MemoryError


def spoils_what_it_refuses(self, sequence, n):
    try:
        return Small.append(self, sequence, n)
    except MemoryError:
        self.own[sequence][0].reverse()
        raise


def far_away(self, sequences):
    return [[page + 99 for page in self.own[sequence][0]] for sequence in sequences]


WRONG = [  # the change, the changed class, the scenario and the call where it shows, and the sentence on it
    (
        dict(_to_write=lambda self, page: page),
        Pages,
        FORK,
        "append(B, 1)",
        "B wrote into page 2, row 3, and A has",
    ),
    (
        dict(fork=lambda self, s: [][s]),
        Pages,
        FORK,
        "B = fork(A)",
        "It raised IndexError: list index out of range.",
    ),
    (dict(fork=lambda self, s: s), Pages, FORK, "B = fork(A)", "It returned 0, which is the sequence A"),
    (
        dict(fork=lambda self, s: self.start()[0]),
        Pages,
        FORK,
        "B = fork(A)",
        "B has to have 11 tokens now; lengths",
    ),
    (
        dict(drop=lambda self, s, n: None),
        Pages,
        GUESS,
        "drop(A, 3)",
        "A has to have 11 tokens now; lengths([A]) says",
    ),
    (
        dict(start=knows_too_much),
        Pages,
        PROMPT,
        "B, known = start(prompt)",
        "Token 18 of B is read from page 4, row 2",
    ),
    (
        dict(start=lambda self, t=(): (Pages.start(self)[0], 9)),
        Pages,
        COME,
        "A, known = start()",
        "9 tokens are known",
    ),
    (dict(append=another_row), Pages, COME, "append(A, 5)", "Token 0 of A belongs to page 0, row 0, as its block"),
    (dict(free_pages=lies("free_pages", -1)), Pages, COME, "Wrong(16, 4)", "make 15 of 16: 1 are lost."),
    (dict(used=lies("used", 1)), Pages, COME, "Wrong(16, 4)", "used says 1; 0 pages are in block tables."),
    (
        dict(waste=lies("waste", 1)),
        Pages,
        COME,
        "Wrong(16, 4)",
        "waste says 1; 0 rows of the pages in block tables",
    ),
    (dict(waste=property(lambda self: [][0])), Pages, COME, "Wrong(16, 4)", "waste raised IndexError"),
    (dict(check=says), Pages, COME, "Wrong(16, 4)", "check() says: it is so."),
    (dict(__init__=lambda self: None), Pages, COME, "Wrong(16, 4)", "It raised TypeError"),
    (dict(free=leaks), Small, OUT, "append(A, 5)", "It needs 2 pages, and 4 have no owner: some are lost."),
    (dict(append=out), Small, COME, "append(A, 5)", "It needs 2 pages, and 16 have no owner: some are lost."),
    (dict(append=grabs), Small, COME, "append(B, 17)", "B took page 0, which A has. A page is written only while"),
    (dict(append=takes_one_twice), Small, COME, "append(A, 5)", "Page 0 appears twice in the block table of A."),
    (
        dict(free=turns_others_around),
        Small,
        COME,
        "free(A)",
        "The operation was on A, and it changed the block table of",
    ),
    (dict(append=spoils_what_it_refuses), Small, OUT, "append(C, 5)", "append found no pages, and yet it changed"),
    (dict(append=lambda self, s, n: None), Small, COME, "append(A, 5)", "A has to have 5 tokens now"),
    (
        dict(append=lambda self, s, n: Small.append(self, s, n) and None),
        Small,
        COME,
        "append(A, 5)",
        "slots of the 5",
    ),
    (
        dict(table=lambda self, s: [["x"]]),
        Small,
        COME,
        "A, known = start()",
        "one row of page numbers, (1, pages)",
    ),
    (
        dict(table=lambda self, s: [[1]] * 2),
        Small,
        COME,
        "A, known = start()",
        "one row of page numbers, (1, pages)",
    ),
    (dict(table=far_away), Small, COME, "append(A, 5)", "A has page 99, and there are pages 0 to 15."),
    (dict(table=lambda self, s: [[0]]), Small, COME, "A, known = start()", "its block table has 1"),
    (dict(table=lambda self, s: 1 // 0), Small, COME, "A, known = start()", "table([A]) raised ZeroDivisionError"),
    (dict(lengths=lambda self, s: 3), Small, COME, "A, known = start()", "has to be the length of one sequence"),
]


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_an_error_is_reported_where_it_happens(k):
    changes, of, scenario, call, sentence = WRONG[k]
    wrong = type("Wrong", (of,), changes)
    lab = PagesLab(scenario, allocator=wrong)
    *before, last = lab.result["frames"]
    assert (last["kind"], last["call"]) == ("fault", call), last["words"]
    assert sentence in last["words"] and last["words"].endswith(" The play ends here.")
    assert repr(lab).endswith(f"wrong at step {len(before)}, {call}: {last['words']})")
    assert not any(frame["kind"] == "fault" or frame["wrong"] for frame in before)
    right = PagesLab(scenario, allocator=of).result["frames"]
    assert [frame["words"] for frame in before] == [frame["words"] for frame in right[: len(before)]]
    assert json.loads(json.dumps(lab.result)) == lab.result
    assert lab.figure().png() == lab.figure(len(before)).png()


@pytest.mark.parametrize(("n_pages", "page"), SIZES)
def test_an_error_is_never_a_traceback(n_pages, page):
    caught = 0
    for changes, of, scenario, *_ in WRONG:
        lab = PagesLab(scenario, n_pages=n_pages, page=page, allocator=type("Wrong", (of,), changes))
        assert not lab.problem and lab.result["frames"][-1]["kind"] in ("end", "fault")
        caught += lab.result["frames"][-1]["kind"] == "fault"
    assert caught > 0.6 * len(WRONG)


JUNK = (
    None,
    -1,
    10**30,
    2.5,
    "x",
    [],
    [None],
    {},
    object(),
    [[0]],
    [[0, 1], [2]],
    np.zeros((2, 3)),
    np.array([1]),
    (1, 2),
)
METHODS = "start", "append", "fork", "drop", "free", "table", "lengths", "used", "free_pages", "waste", "check"


def at_times(name, rng):
    """A method or a property that works most of the time."""
    right = getattr(Pages, name, None)
    get = right.fget if isinstance(right, property) else right

    def odd(self, *given):
        dice = rng.random()
        if dice < 0.02:
            return JUNK[rng.integers(len(JUNK))]
        if dice < 0.03:
            raise (KeyError, MemoryError, AssertionError, AttributeError)[rng.integers(4)](name)
        return get(self, *given) if get else {}

    return odd if callable(right) else property(odd)


@pytest.mark.parametrize("scenario", NAMES)
def test_anything_an_allocator_does_is_answered_with_a_sentence(scenario):
    rng, ends = np.random.default_rng(0), []
    for _ in range(8):
        own = {name: at_times(name, rng) for name in METHODS}
        lab = PagesLab(scenario, allocator=type("Odd", (Pages,), own))
        last = lab.result["frames"][-1]
        ends.append(last["kind"])
        assert "\n" not in last["words"] and len(last["words"]) < 400
        assert json.loads(json.dumps(lab.result)) == lab.result
        assert lab.figure().png()
    assert set(ends) <= {"end", "fault"} and ends.count("fault") > 2


def test_a_wrong_page_is_marked():
    wrong = type("Wrong", (Pages,), {"_to_write": lambda self, page: page})
    assert PagesLab(FORK, allocator=wrong).result["frames"][-1]["wrong"] == [2]


def of_the_exercise(**changes):
    """Return the class that solves the exercise `pages`, with changes if any."""
    found = {}
    exec(solutions.text("pages"), found)
    return type("MyPages", (found["MyPages"],), changes)


@pytest.mark.parametrize("n_pages, page", [(16, 4), (5, 2)])
@pytest.mark.parametrize("scenario", ["requests come and go", FORK, "out of pages"])
def test_the_allocator_of_the_exercise_plays(scenario, n_pages, page):
    lab = PagesLab(scenario, n_pages=n_pages, page=page, allocator=of_the_exercise())
    assert lab.result["frames"][-1]["kind"] == "end" and "allocator=MyPages" in repr(lab)
    ours = PagesLab(scenario, n_pages=n_pages, page=page).result["frames"]
    assert [frame["counts"] for frame in lab.result["frames"]] == [frame["counts"] for frame in ours]


def test_a_mistake_in_the_exercise_is_shown_where_it_happens():
    lab = PagesLab(FORK, allocator=of_the_exercise(fork=lambda self, sequence: sequence))
    assert lab.result["frames"][-1]["kind"] == "fault" and "fork" in lab.result["frames"][-1]["call"]
    lab = PagesLab(allocator=of_the_exercise(append=lambda self, sequence, n: None))
    assert "It raised TypeError" in lab.result["frames"][-1]["words"]


def free_all(self, sequence):
    """End a sequence, whose pages become free even if others own them."""
    self.unused += self.tables.pop(sequence)
    del self.lengths[sequence]


def take_before_raising(self, sequence, n):
    """Append, and take pages one by one until none is left."""
    table, N = self.tables[sequence], self.lengths[sequence]
    if N % self.page and self.owners[table[-1]] > 1:
        self.owners[table[-1]] -= 1
        table[-1] = self._take()
    while len(table) * self.page < N + n:
        if not self.unused:
            raise MemoryError("no page is free")
        table.append(self._take())
    self.lengths[sequence] = N + n
    return [(table[c // self.page], c % self.page) for c in range(N, N + n)], None


@pytest.mark.parametrize("scenario, wrong", [(FORK, {"free": free_all}), (OUT, {"append": take_before_raising})])
def test_a_scenario_stops_an_allocator_that_breaks_its_rule(scenario, wrong):
    assert PagesLab(scenario, allocator=of_the_exercise(**wrong)).result["frames"][-1]["kind"] == "fault"
