"""What PagesLab plays is what the allocator did; what an allocator does wrong is caught where it happens."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.checks import solutions
from flashlib.pages import OutOfPages, Pages
from flashlib.widgets import PagesLab
from flashlib.widgets.paging import scenarios, words

NAMES = list(scenarios.SCENARIOS)
SIZES = [(16, 4), (4, 1), (5, 2), (7, 16), (13, 8), (29, 2), (32, 16), (32, 1)]  # n_pages, page
WORDS = {"f": "free", "o": "owned", "s": "shared", "k": "kept"}


class Watched(Pages):
    """Notes what is copied."""

    copied = None

    def _copy(self, page, to):
        self.copied = [page, to]


class Replay:
    """The calls of the frames, one after the other, on an allocator of its own."""

    def __init__(self, scenario, n_pages, page):
        self.pages = Watched(n_pages, page)
        ops = scenarios.script(scenario, n_pages, page)
        self.prompts = {op.name: list(op.tokens) for op in ops if op.method == "start"}
        self.names = {name: getattr(self.pages, name) for name in ("start", "append", "fork", "drop", "free")}
        self.living = {}

    def call(self, text):
        """Run a call as it is shown; return what it returned."""
        self.pages.copied = None
        name = text.split(",")[0].split(" ")[0].rpartition("(")[2].rstrip(")")
        self.names["prompt"] = self.prompts.get(name)
        target, _, expression = text.rpartition(" = ")
        returned = eval(expression, self.names | self.living)
        if target:
            self.living[name] = returned[0] if "," in target else returned
        elif text.startswith("free"):
            del self.living[name]
        return returned


@pytest.fixture(scope="module", params=[(name, *sizes) for name in NAMES for sizes in SIZES], ids=str)
def lab(request):
    name, n_pages, page = request.param
    lab = PagesLab(name, n_pages=n_pages, page=page)
    assert not lab.problem
    return lab


def setting(lab):
    return lab.result["setting"].values()


def test_frames_are_what_a_replay_says(lab):
    scenario, page, n_pages = setting(lab)
    replay, (first, *frames, last) = Replay(scenario, n_pages, page), lab.result["frames"]
    assert (first["kind"], first["call"], last["kind"]) == ("begin", f"Pages({n_pages}, {page})", "end")
    for frame in frames:
        if frame["kind"] == "out":
            with pytest.raises(OutOfPages, match="more tokens need"):
                replay.call(frame["call"])
            returned = np.empty((0, 2), int)
        else:
            returned = replay.call(frame["call"])
        check_frame(frame, replay, returned if frame["kind"] == "append" else [])
    assert last["state"] == frame["state"] and not last["tables"]


def check_frame(frame, replay, slots):
    pages, living = replay.pages, replay.living
    page, n_pages = pages.page, pages.n_pages
    tables = {name: pages.table([sequence])[0].tolist() for name, sequence in living.items()}
    lengths = {name: int(pages.lengths([sequence])[0]) for name, sequence in living.items()}
    assert (frame["tables"], frame["lengths"]) == (tables, lengths)
    owners = [[name for name in tables if one in tables[name]] for one in range(n_pages)]
    assert frame["owners"] == [" ".join(own) for own in owners]
    for one, letter in enumerate(frame["state"]):
        owned = "shared" if len(owners[one]) > 1 else "owned"
        assert WORDS[letter] == (owned if owners[one] else "kept" if one in pages._kept else "free")
    counts = frame["counts"]
    assert [counts[name] for name in ("used", "kept", "free")] == [pages.used, pages.kept, pages.free_pages]
    assert counts["waste"] == pages.waste and counts["rows"] == pages.used * page
    assert counts["tokens"] == sum(lengths.values())
    rows = {(own[at // page], at % page) for name, own in tables.items() for at in range(lengths[name])}
    filled = [sum(one == held for held, _ in rows) for one in range(n_pages)]
    assert [n for n, own in zip(frame["filled"], owners, strict=True) if own] == [n for n in filled if n]
    assert all(frame["filled"][one] == page for one in pages._kept) and counts["filled"] == len(rows)
    written = [[one, row] for one, first, end in frame["written"] for row in range(first, end)]
    assert written == np.reshape(slots, (-1, 2)).tolist()
    assert (frame["copied"] or None) == pages.copied
    assert not frame["wrong"]


def test_what_would_be_reserved_is_the_longest_for_each(lab):
    frames, longest = lab.result["frames"], lab.result["longest"]
    for frame in frames:
        counts = frame["counts"]
        assert counts["reserved"] == longest * len(frame["tables"])
        assert counts["reserved_waste"] == counts["reserved"] - counts["tokens"] >= 0
    lengths = [n for frame in frames for n in frame["lengths"].values()]
    if not any(frame["kind"] == "out" for frame in frames):
        assert longest == max(lengths)


def test_pages_leave_fewer_rows_empty_than_a_page_for_each_sequence(lab):
    """That is what pages are for; the picture of the waste rests on it."""
    _, page, _ = setting(lab)
    for frame in lab.result["frames"]:
        assert 0 <= frame["counts"]["waste"] <= (page - 1) * len(frame["tables"])


def test_every_sequence_is_told_of(lab):
    frames = lab.result["frames"]
    for frame in frames[1:]:
        assert frame["words"].endswith(".") and "\n" not in frame["words"]
        assert not set(frame["waits"]) & set(frame["tables"])
        assert set(frame["tables"]) <= set(lab.result["names"])
    assert all(frame["call"] for frame in frames[:-1])


@pytest.mark.parametrize(("n_pages", "page"), SIZES)
def test_out_of_pages_runs_out_at_any_size(n_pages, page):
    kinds = [frame["kind"] for frame in PagesLab("out of pages", n_pages=n_pages, page=page).result["frames"]]
    assert "out" in kinds and kinds[kinds.index("out") + 1] == "free"


def test_each_scenario_shows_what_it_is_named_after():
    frames = {name: PagesLab(name).result["frames"] for name in NAMES}
    outs = {name: sum(frame["kind"] == "out" for frame in one) for name, one in frames.items()}
    assert [name for name in NAMES if outs[name]] == ["out of pages"]
    copies = {name: sum(bool(frame["copied"]) for frame in one) for name, one in frames.items()}
    assert [name for name in NAMES if copies[name]] == ["fork and copy on write"]
    kept = {name: max(frame["counts"]["kept"] for frame in one) for name, one in frames.items()}
    assert [name for name in NAMES if kept[name]] == ["a shared prompt"]
    dropped = {name: [frame["call"] for frame in one if frame["kind"] == "drop"] for name, one in frames.items()}
    assert [name for name in NAMES if dropped[name]] == ["speculation"]
    shared = {name: any("s" in frame["state"] for frame in one) for name, one in frames.items()}
    assert [name for name in NAMES if shared[name]] == ["a shared prompt", "fork and copy on write"]
    assert any("lost" in frame["words"] for frame in frames["a shared prompt"])


def test_words():
    told = {frame["call"]: frame["words"] for frame in PagesLab("fork and copy on write").result["frames"]}
    assert told["append(B, 1)"] == "Page 2 was shared, so it was copied to page 3."
    assert told["free(C)"] == ("Its answer is complete. Pages 0 and 1 stay with A and B. Pages 4 and 6 are free.")
    assert told["C = fork(A)"].endswith(
        "C has the same 11 tokens as A, in the same pages 0 to 2: nothing is copied."
    )
    told = {frame["call"]: frame["words"] for frame in PagesLab("a shared prompt").result["frames"]}
    assert told["B, known = start(prompt)"].endswith(
        "The first 16 of its 21 tokens are known and need not be computed. Pages 0 to 3 are shared with A."
    )
    assert "Pages 0 to 3, kept for their content, are D's." in told["D, known = start(prompt)"]
    assert words.pages([3]) == "Page 3"
    assert words.pages([5, 4]) == "Pages 4 and 5"
    assert words.pages([9, 1, 2, 3, 5]) == "Pages 1 to 3, 5 and 9"
    assert words.pages(range(0, 20, 2)) == "Pages 0, 2, 4, 6, 8, 10 and others"


# ---- a learner's own


class Small:
    """An allocator with no more than it needs: no fork, no drop, no ids, no sharing."""

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
    """Start with 20 tokens of another sequence, whatever they are."""
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
    """Append, into a page of another sequence."""
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


COME, PROMPT, FORK, OUT, GUESS = NAMES
WRONG = [  # what is changed, of which class, the scenario and the call where it is seen, and what is said of it
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
    (dict(used=lies("used", 1)), Pages, COME, "Wrong(16, 4)", "used says 1; 0 pages stand in block tables."),
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
    (dict(append=takes_one_twice), Small, COME, "append(A, 5)", "Page 0 stands twice in the block table of A."),
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
def test_what_is_wrong_is_said_where_it_happens(k):
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
def test_what_is_wrong_is_never_a_traceback(n_pages, page):
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
    """A method or a property that does what it should, most of the time."""
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
def test_whatever_an_allocator_does_is_answered_in_a_sentence(scenario):
    rng, ends = np.random.default_rng(0), []
    for _ in range(40):
        own = {name: at_times(name, rng) for name in METHODS}
        lab = PagesLab(scenario, allocator=type("Odd", (Pages,), own))
        last = lab.result["frames"][-1]
        ends.append(last["kind"])
        assert "\n" not in last["words"] and len(last["words"]) < 400
        assert json.loads(json.dumps(lab.result)) == lab.result
        assert lab.figure().png()
    assert set(ends) <= {"end", "fault"} and ends.count("fault") > 15


def test_a_page_that_is_wrong_is_marked():
    wrong = type("Wrong", (Pages,), {"_to_write": lambda self, page: page})
    assert PagesLab(FORK, allocator=wrong).result["frames"][-1]["wrong"] == [2]


# ---- the widget

PAGE, N = "1, 2, 4, 8 or 16", "a whole number from 4 to 32"
BAD = [
    (dict(scenario="fork"), "scenario is 'fork'; pass one of 'requests come and go', 'a shared prompt', "),
    (dict(scenario=3), "scenario is 3; pass one of "),
    (dict(page=3), f"page is 3; pass {PAGE}."),
    (dict(page=4.0), f"page is 4.0; pass {PAGE}."),
    (dict(page=True), f"page is True; pass {PAGE}."),
    (dict(n_pages=3), f"n_pages is 3; pass {N}."),
    (dict(n_pages=33), f"n_pages is 33; pass {N}."),
    (dict(n_pages="9"), f"n_pages is '9'; pass {N}."),
    (
        dict(allocator=Pages(8, 4)),
        "allocator is a Pages; pass the class itself, e.g. PagesLab(allocator=MyPages).",
    ),
    (
        dict(allocator=dict),
        "dict has no start, append, free, table and lengths; an allocator needs start, append and",
    ),
    (dict(allocator=type("Mine", (Small,), {"free": None})), "Mine has no free; an allocator needs "),
]


@pytest.mark.parametrize(("given", "sentence"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_shown_is_said_in_a_sentence(given, sentence):
    lab = PagesLab(**given)
    assert lab.problem.startswith(sentence) and lab.problem.endswith(".")
    assert repr(lab) == f"PagesLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    "change", [dict(page=1), dict(n_pages=31), dict(scenario=OUT), dict(page=8, n_pages=4)], ids=str
)
def test_changes_from_the_page(change):
    lab, results = PagesLab(), []
    lab.observe(lambda change: results.append(change.new), names="result")
    lab.set_state(change)
    assert lab.result == PagesLab(**change).result and repr(lab) == repr(PagesLab(**change))
    assert results[-1] == lab.result and lab.refused == ""


@pytest.mark.parametrize("change", [dict(page=5), dict(n_pages=0), dict(scenario="x")], ids=str)
def test_what_is_asked_for_later_and_cannot_be_had_changes_nothing(change):
    lab = PagesLab(page=8)
    before = lab.result
    ((name, value),) = change.items()
    lab.set_state(change)
    assert lab.refused.endswith(f"It stays {before['setting'][name]!r}.")
    assert lab.result is before and getattr(lab, name) == before["setting"][name]
    lab.n_pages = 8
    assert lab.refused == "" and lab.result["setting"]["n_pages"] == 8


def test_the_page_can_be_sent_it():
    lab = PagesLab(PROMPT, page=2)
    assert json.loads(json.dumps(lab.result)) == lab.result
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab) == repr(PagesLab(PROMPT, page=2))
    assert base64.b64decode(data["image/png"]) == lab.figure().png()


def test_repr_has_the_key_numbers():
    lab = PagesLab()
    counts = [frame["counts"] for frame in lab.result["frames"]]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    shares = [100 * total[a] / total[b] for a, b in (("waste", "rows"), ("reserved_waste", "reserved"))]
    assert repr(lab) == (
        f"PagesLab('requests come and go', page=4, n_pages=16: {len(counts) - 1} steps, "
        f"at most {max(one['used'] for one in counts)} pages used, {shares[0]:.1f}% of rows without a token, "
        f"{shares[1]:.1f}% if reserved contiguously)"
    )


@pytest.mark.parametrize("n_pages", [4, 32])
def test_the_picture_shows_any_frame(n_pages):
    lab = PagesLab(PROMPT, n_pages=n_pages)
    for at, frame in enumerate(lab.result["frames"]):
        picture = lab.figure(at)
        assert frame["words"] in repr(picture) and frame["call"] in repr(picture)
        assert sum(text == "free" for text in picture.texts) == frame["counts"]["free"]
        assert sum(text == "kept" for text in picture.texts) == frame["counts"]["kept"]


def of_the_exercise(**changes):
    """Return the class that solves the exercise of chapter 15, or one with changes."""
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
