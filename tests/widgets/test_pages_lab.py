"""PagesLab plays what the allocator did, frame by frame, and answers its settings."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.cache.pages import OutOfPages, Pages
from flashlib.widgets import PagesLab
from flashlib.widgets.pages_lab import scenarios, words

NAMES = COME, PROMPT, FORK, OUT, GUESS = list(scenarios.SCENARIOS)
SIZES = [(16, 4), (4, 1), (5, 2), (7, 16), (13, 8), (29, 2), (32, 16), (32, 1)]  # n_pages, page
WORDS = {"f": "free", "o": "owned", "s": "shared", "k": "kept"}


class Watched(Pages):
    """Records what is copied."""

    copied = None

    def _copy(self, page, to):
        self.copied = [page, to]


class Replay:
    """Repeats the calls of the frames, one after another, on its own allocator."""

    def __init__(self, scenario, n_pages, page):
        self.pages = Watched(n_pages, page)
        ops = scenarios.script(scenario, n_pages, page)
        self.prompts = {op.name: list(op.tokens) for op in ops if op.method == "start"}
        self.names = {name: getattr(self.pages, name) for name in ("start", "append", "fork", "drop", "free")}
        self.living = {}

    def call(self, text):
        """Run a call as it is shown; return its result."""
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


def test_frames_equal_a_replay(lab):
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
    assert frame["owners"].split(",") == [" ".join(own) for own in owners]
    for one, letter in enumerate(frame["state"]):
        owned = "shared" if len(owners[one]) > 1 else "owned"
        assert WORDS[letter] == (owned if owners[one] else "kept" if one in pages.kept_by_age else "free")
    counts = frame["counts"]
    assert [counts[name] for name in ("used", "kept", "free")] == [pages.used, pages.kept, pages.free_pages]
    assert counts["waste"] == pages.waste and counts["rows"] == pages.used * page
    assert counts["tokens"] == sum(lengths.values())
    rows = {(own[at // page], at % page) for name, own in tables.items() for at in range(lengths[name])}
    filled = [sum(one == held for held, _ in rows) for one in range(n_pages)]
    assert [n for n, own in zip(frame["filled"], owners, strict=True) if own] == [n for n in filled if n]
    assert all(frame["filled"][one] == page for one in pages.kept_by_age) and counts["filled"] == len(rows)
    written = [[one, row] for one, first, end in frame["written"] for row in range(first, end)]
    assert written == np.reshape(slots, (-1, 2)).tolist()
    assert (frame["copied"] or None) == pages.copied
    assert not frame["wrong"]


def test_reserved_rows_are_the_longest_length_for_each(lab):
    frames, longest = lab.result["frames"], lab.result["longest"]
    for frame in frames:
        counts = frame["counts"]
        assert counts["reserved"] == longest * len(frame["tables"])
        assert counts["reserved_waste"] == counts["reserved"] - counts["tokens"] >= 0
    lengths = [n for frame in frames for n in frame["lengths"].values()]
    if not any(frame["kind"] == "out" for frame in frames):
        assert longest == max(lengths)


def test_pages_leave_fewer_rows_empty_than_a_page_for_each_sequence(lab):
    """This is the purpose of pages, and the picture of the waste relies on it."""
    _, page, _ = setting(lab)
    for frame in lab.result["frames"]:
        assert 0 <= frame["counts"]["waste"] <= (page - 1) * len(frame["tables"])


def test_every_sequence_is_mentioned(lab):
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


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_it_opens_at_a_copy_or_without_pages_left_or_with_most_in_use(scenario):
    result = PagesLab(scenario).result
    frames, opened = result["frames"], result["frames"][result["opens"]]
    if any(frame["copied"] for frame in frames):
        assert opened["copied"]
    elif any(frame["kind"] == "out" for frame in frames):
        assert opened["kind"] == "out"
    else:
        counted = [(frame["state"].count("s"), frame["counts"]["used"]) for frame in frames]
        assert counted[result["opens"]] == max(counted)


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
    (dict(allocator=type("Mine", (Pages,), {"free": None})), "Mine has no free; an allocator needs "),
]


@pytest.mark.parametrize(("given", "sentence"), BAD, ids=range(len(BAD)))
def test_a_sentence_says_what_cannot_be_shown(given, sentence):
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
def test_a_later_request_that_is_refused_changes_nothing(change):
    lab = PagesLab(page=8)
    before = lab.result
    ((name, value),) = change.items()
    lab.set_state(change)
    assert lab.refused.endswith(f"It stays {before['setting'][name]!r}.")
    assert lab.result is before and getattr(lab, name) == before["setting"][name]
    lab.n_pages = 8
    assert lab.refused == "" and lab.result["setting"]["n_pages"] == 8


def test_it_can_be_sent_to_the_page():
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
