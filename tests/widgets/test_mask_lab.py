"""MaskLab shows what the mask says score by score; a typed line is read, or refused with a sentence."""

import base64
import json
from functools import lru_cache

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import masks, tiled
from flashlib.pictures import inks
from flashlib.pictures.number_text import number
from flashlib.widgets import FlashPlayer, MaskLab
from flashlib.widgets.mask_lab import choices, expression, figure, words
from tests.checks.each_case import each_case

RAGGED = {"N_q": 37, "N_k": 50, "B_r": 5, "B_c": 7, "d": 16}
TALL = {"N_q": 23, "N_k": 11, "B_r": 4, "B_c": 3}
SETTINGS = [
    dict(),
    dict(mask="window", left=9, right=2, **RAGGED),
    dict(mask="window", left=None, right=3, **TALL),
    dict(mask="window", left=0, right=0, B_r=1, B_c=1),
    dict(mask="prefix", n=13, **RAGGED),
    dict(mask="documents", also="causal"),
    dict(mask="documents", lengths=(13, 1, 30, 90), **RAGGED),
    dict(mask="documents", also="window", left=3, right=1, **TALL),
    dict(mask="blocks", block=6, share=40, **RAGGED),
    dict(mask="blocks", share=0),
    dict(mask="blocks", also="causal", block=5, share=60, **TALL),
    dict(line="(c <= r) & ((r - c < 12) | (c < 4))", **RAGGED),
    dict(line="abs(r - c) < 6", also="documents", **RAGGED),
    dict(line="min(r, N_k - 1) == max(c, 2)", **TALL),
    dict(line="1 < 2", N_q=1, N_k=1, B_r=1, B_c=1, d=1),
    dict(line="c > r + N_k", **RAGGED),
    dict(mask=masks.window(3, 0) | masks.prefix(4)),
    dict(mask=masks.causal() & masks.softcap(30), N_q=96, N_k=96),
]


def told(setting):
    """A setting as the name of a test, the same every time."""
    shown = {name: value if np.isscalar(value) else type(value).__name__ for name, value in setting.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "default"


@pytest.fixture(scope="module", params=SETTINGS, ids=told)
def lab(request):
    lab = MaskLab(**request.param)
    assert not lab.problem
    return lab


def sizes(lab):
    return [lab.result["setting"][name] for name in choices.SIZES]


@lru_cache(1)
def seen_by(lab):
    """Which scores are seen, computed from the mask score by score, (N_q, N_k)."""
    N_q, N_k, *_ = sizes(lab)
    tiles = lab.mask.on(N_q, N_k)
    one = [[tiles.seen(slice(i, i + 1), slice(j, j + 1)).item() for j in range(N_k)] for i in range(N_q)]
    return np.array(one)


def drawn(lab):
    """The same in the page's form."""
    N_q, N_k, *_ = sizes(lab)
    seen = np.zeros((N_q, N_k), bool)
    for row, runs in zip(seen, lab.result["runs"], strict=True):
        for start, end in runs:
            assert 0 <= start < end <= N_k and not row[max(start - 1, 0) : end].any(), "runs do not touch"
            row[start:end] = True
    return seen


def test_the_page_gets_all_runs(lab):
    N_q, runs = lab.N_q, lab.result["runs"]
    sent = np.frombuffer(lab.get_state("result")["result"]["runs"], "<i4")
    assert sent[:N_q].tolist() == [len(row) for row in runs]
    assert sent[N_q:].reshape(-1, 2).tolist() == [run for row in runs for run in row]


def test_what_is_drawn_is_what_the_mask_says(lab):
    assert np.array_equal(drawn(lab), seen_by(lab))


def test_kinds_of_tiles_and_counts(lab):
    N_q, N_k, B_r, B_c, d = sizes(lab)
    seen, tiles, r = seen_by(lab), lab.mask.on(N_q, N_k), lab.result
    counts, scores, keys = {"h": 0, "c": 0, "w": 0}, 0, 0
    for i, row in enumerate(r["kinds"]):
        for j, kind in enumerate(row):
            rows, cols = slice(i * B_r, min((i + 1) * B_r, N_q)), slice(j * B_c, min((j + 1) * B_c, N_k))
            tile = seen[rows, cols]
            assert kind == ("h" if tiles.hidden(rows, cols) else "c" if tiles.cut(rows, cols) else "w")
            assert kind == ("w" if tile.all() else "c" if tile.any() else "h")
            counts[kind] += 1
            scores += tile.size * (kind != "h")
            keys += tile.shape[1] * (kind != "h")
    T_r, T_c = -(-N_q // B_r), -(-N_k // B_c)
    computed = counts["c"] + counts["w"]
    assert r["tiles"] == {
        **{"all": T_r * T_c, "computed": computed},
        **{"hidden": counts["h"], "cut": counts["c"], "whole": counts["w"]},
    }
    assert r["scores"] == {"all": N_q * N_k, "computed": scores, "seen": seen.sum()}
    against = [(computed, T_r * T_c), (4 * d * scores, 4 * d * N_q * N_k), (4 * d * keys, 4 * d * N_k * T_r)]
    assert [(row["mask"], row["dense"]) for row in r["against"]] == against
    assert [row["ratio"] for row in r["against"]] == [mask / dense for mask, dense in against]


def test_computed_tiles_are_the_steps(lab):
    N_q, N_k, B_r, B_c, _ = sizes(lab)
    Q, K = np.ones((N_q, 1)), np.ones((N_k, 1))
    steps = list(tiled.steps(Q, K, K, B_r=B_r, B_c=B_c, mask=lab.mask))
    assert [(step.i, step.j) for step in steps] == [
        (i, j) for i, row in enumerate(lab.result["kinds"]) for j, kind in enumerate(row) if kind != "h"
    ]


def test_bounds_or_a_table(lab):
    N_q, N_k, *_ = sizes(lab)
    keys, r = lab.mask.on(N_q, N_k).keys, lab.result
    assert r["bounds"] == (keys is not None)
    assert ("by bounds" in repr(lab) or "bounds in closed form" in repr(lab)) == r["bounds"]
    assert ("no table is needed" in r["words"][1]) == r["bounds"]
    assert r["table"] == 4 * r["tiles"]["all"]
    if not r["bounds"]:
        assert f"a table of {r['table']} bytes" in r["words"][1]
        assert f"one for each score, would take {2 * N_q * N_k}." in r["words"][1]
    if keys is not None:
        for (first, end), runs in zip(zip(*keys, strict=True), r["runs"], strict=True):
            assert runs == ([[first, end]] if first < end else [])
    rows = [np.flatnonzero(row) for row in seen_by(lab)]
    ends = [(row[0], row[-1]) for row in rows if len(row)]
    interval = all(row[-1] - row[0] == len(row) - 1 for row in rows if len(row))
    assert r["interval"] == (interval and ends == sorted(ends) and ends == sorted(ends, key=lambda end: end[1]))


def test_each_row_is_described(lab):
    N_q, N_k, B_r, *_ = sizes(lab)
    for row, (told, keys) in enumerate(zip(lab.result["rows"], seen_by(lab), strict=True)):
        assert told.startswith(f"Row {row}")
        assert f" sees {keys.sum()} of {N_k} keys" in told
        assert (f", at position {number(row + N_k - N_q)}," in told) == (N_q != N_k)
        kinds = lab.result["kinds"][row // B_r]
        assert f"computes {len(kinds) - kinds.count('h')} of {len(kinds)} tiles" in told


def test_the_code_makes_the_same_mask(lab):
    code, N_q, N_k = lab.result["code"], *sizes(lab)[:2]
    if lab.kind == "given":
        assert "masks." not in code
        return
    names = {"masks": masks, "np": np, "table": choices.table(lab.block, lab.share, N_q, N_k)}
    tiles = eval(code, names).on(N_q, N_k)
    assert np.array_equal(tiles.seen(*tiles.all), seen_by(lab))


def test_it_can_be_sent_to_the_page(lab):
    assert json.loads(json.dumps(lab.result)) == lab.result
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab)
    assert base64.b64decode(data["image/png"]) == lab.figure().png()


def test_keys_and_tiles_are_listed_in_words():
    assert MaskLab("window", left=2).result["rows"][5] == (
        "Row 5 sees 3 of 64 keys: 3 to 5. Its row block, i\u00a0=\u00a00, computes 1 of 8 tiles: j\u00a0=\u00a00."
    )
    assert words.listed([]) == ""
    assert words.listed([[4, 5]]) == "4"
    assert words.listed([[4, 6]]) == "4 and 5"
    assert words.listed([[0, 1], [3, 7], [8, 9]]) == "0, 3 to 6 and 8"
    assert words.listed([[k, k + 1] for k in range(0, 16, 2)] + [[20, 30]]) == "0, 2, 4, 6, 8, 10 and 12 more"


def test_words():
    assert MaskLab("documents", also="causal").result["words"] == [
        "18 of 64 tiles are computed; the other 46 are hidden and skipped. "
        "Of the 1152 scores computed 669 are seen, 58.07%.",
        "Each row sees an interval of keys, and neither end falls from row to row. So a row block has a first "
        "and a last tile, found from the intervals: no table is needed.",
        "4 documents in 64 tokens; padded to the longest, they would be 4 × 27 = 108 tokens.",
    ]
    assert MaskLab(line="c > r + N_k").result["words"][0].startswith("Every tile is hidden")
    assert "none is hidden" in MaskLab(line="(r - c) % 3 == 0").result["words"][0]
    changed = MaskLab(masks.alibi(0.5) & masks.causal()).result
    assert changed["words"][2:] == ["It changes scores too: that hides none of them, and is not counted."]
    assert changed["kinds"] == MaskLab().result["kinds"] and len(MaskLab().result["words"]) == 2
    interval = "Each row does see an interval here, but this mask gives no bounds."
    assert MaskLab(line="c <= r").result["words"][1].startswith(interval)
    for gaps in ("(r - c) % 3 == 0", "c + r < 20"):
        assert MaskLab(line=gaps).result["words"][1].startswith("Some row sees keys with gaps")


@pytest.mark.parametrize(
    ("lengths", "N", "packed"),
    [
        ([3, 4], 7, [3, 4]),
        ([3, 4], 9, [3, 4, 2]),
        ([3, 4, 5], 5, [3, 2]),
        ([9], 4, [4]),
        ([1, 1, 1], 3, [1, 1, 1]),
    ],
)
def test_a_pack_is_as_long_as_the_keys(lengths, N, packed):
    assert choices.pack(lengths, N) == packed


@pytest.mark.parametrize("share", [0, 10, 25, 50, 100])
@pytest.mark.parametrize(("N_q", "N_k", "block"), [(64, 64, 8), (37, 50, 5), (50, 37, 7), (1, 96, 96)])
def test_a_table_of_blocks_has_its_share(share, N_q, N_k, block):
    table = choices.table(block, share, N_q, N_k)
    assert table.shape == (-(-N_q // block), -(-N_k // block))
    assert table.sum() == round(share * table.size / 100)
    first = [(i, (i * block + max(N_k - N_q, 0)) // block) for i in range(len(table))]  # what causal sees last
    diagonal = [table[place] for place in first if place[1] < table.shape[1]]
    assert sum(diagonal) == min(len(diagonal), table.sum())
    more = choices.table(block, min(share + 20, 100), N_q, N_k)
    assert not (table & ~more).any(), "a larger share hides nothing that was seen"


def test_it_is_played():
    lab = MaskLab("documents", also="causal", **RAGGED)
    player = lab.play(order="fa1")
    assert isinstance(player, FlashPlayer) and not player.problem
    frames = player.frames
    assert [frames[name] for name in ("N_q", "N_k", "B_r", "B_c", "d", "order")] == [37, 50, 5, 7, 4, "fa1"]
    assert len(frames["steps"]) == lab.result["tiles"]["computed"]


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("c <= r", lambda r, c: c <= r),
        ("  (r - c) % 3 == 0 ", lambda r, c: (r - c) % 3 == 0),
        ("(r & c) == c", lambda r, c: (r & c) == c),
        ("~(c < r) | (c == 2)", lambda r, c: ~(c < r) | (c == 2)),
        ("min(r, c) < 3", lambda r, c: np.minimum(r, c) < 3),
        ("max(abs(r - c), 2) != 2", lambda r, c: np.maximum(abs(r - c), 2) != 2),
        ("r / 2.5 >= c // 2 + 1", lambda r, c: r / 2.5 >= c // 2 + 1),
        ("c < N_k - N_q", lambda r, c: (c < 3) & (r == r)),
        ("(c < r) == (c < 5)", lambda r, c: (c < r) == (c < 5)),
        ("-r + +c > 0x1", lambda r, c: c - r > 1),
        ("np.abs(r - c) < np.minimum(4, c)", lambda r, c: abs(r - c) < np.minimum(4, c)),
    ],
)
def test_a_line_is_read_as_by_numpy(line, seen):
    r, c = np.ogrid[0:9, 0:12]
    found = expression.read(line, 9, 12)(r, c)
    assert found.dtype == bool
    assert np.array_equal(np.broadcast_to(found, (9, 12)), seen(r, c))
    code = eval(expression.code(line, 9, 12), {"r": r, "c": c, "np": np})
    assert np.array_equal(code, found)
    torch = pytest.importorskip("torch")
    assert np.array_equal(expression.read(line, 9, 12)(torch.tensor(r), torch.tensor(c)).numpy(), found)


ACCEPTED = f"is not accepted; a mask is made of {expression.ACCEPTED}"
REFUSED = [
    ("", "The line is empty; write a comparison of r and c, e.g. c <= r"),
    (" " * 9, "The line is empty; write a comparison of r and c, e.g. c <= r"),
    ("r" * 201, "The line has 201 characters; at most 200 are read"),
    ("(c < r", "`(c < r` is not a line of Python: '(' was never closed"),
    ("c = r", "`c = r` is not a line of Python: invalid syntax"),
    ("r < 1; c", "`r < 1; c` is not a line of Python: invalid syntax"),
    ("r \0 < c", "is not a line of Python: "),
    ("(" * 150, "…` is not a line of Python: "),
    ("casual", "casual is not a name here; there are r, c, N_q and N_k, and abs, min and max of them"),
    ("row < c", "row is not a name here"),
    ("r - c", "`r - c` is a number, not a comparison; compare it, e.g. r - c < 8"),
    ("r & c", "`r & c` is a number, not a comparison"),
    ("c - 4 < r <= c", "`c - 4 < r <= c` chains comparisons, not possible with arrays; put brackets"),
    (
        "c <= r & c < 8",
        "(c <= r) & (c < 8), since & and | bind more tightly than <",
    ),
    ("c <= r and c < 8", "`and` does not work on arrays; write &, with brackets: (c <= r) & (c < 8)"),
    ("c <= r or c < 8", "`or` does not work on arrays; write |, with brackets: (c <= r) | (c < 8)"),
    ("not c <= r", "`not` does not work on arrays; write ~ and brackets: ~(c <= r)"),
    ("(c < r) + 1", "`(c < r) + 1` is a number, not a comparison"),
    ("-(c < r)", "; comparisons are joined by & and |, with brackets: (c <= r) & (c < 8)"),
    ("min(c < r, c < 2)", "`min(c < r, c < 2)` cannot be computed: numpy boolean subtract"),
    ("(c < r) & 1", "`(c < r) & 1` is a number, not a comparison"),
    ("~1.5 < c", "`~1.5 < c` cannot be computed: bad operand type for unary ~: 'float'"),
    ("r / 2 & 1 < c", "`r / 2 & 1 < c` cannot be computed: ufunc 'bitwise_and' not supported"),
    ("abs < 3", "`abs < 3` cannot be computed: "),
    ("np.exp(r - c) < 3", "`np.exp` is not a function here; there are abs, min and max"),
    ("__import__('os').system('true')", "`__import__('os').system` is not a function here"),
    ("(lambda: r)() < c", "`lambda: r` is not a function here"),
    ("abs(r, c) < 1", "`abs(r, c) < 1` cannot be computed: abs() takes exactly one argument (2 given)"),
    ("min(r) < 1", "`min(r) < 1` cannot be computed: minimum() missing 1"),
    ("min(*r, c) < 1", f"`*r` {ACCEPTED}"),
    ("min(r, c, key=abs) < 1", "minimum() got an unexpected keyword argument 'key'"),
    ("r ** c < 1", f"`r ** c` {ACCEPTED}"),
    ("r ^ c", f"`r ^ c` {ACCEPTED}"),
    ("c << 1 < r", f"`c << 1` {ACCEPTED}"),
    ("r.T < c", f"`r.T` {ACCEPTED}"),
    ("r[0] < c", f"`r[0]` {ACCEPTED}"),
    ("c in r", f"`c in r` {ACCEPTED}"),
    ("r is c", f"`r is c` {ACCEPTED}"),
    ("True", f"`True` {ACCEPTED}"),
    ("'r' < c", f"`'r'` {ACCEPTED}"),
    ("1j < c", f"`1j` {ACCEPTED}"),
    ("[r] == c", f"`[r]` {ACCEPTED}"),
    ("(r := c) < 1", f"`r := c` {ACCEPTED}"),
    ("r < c if r else c", f"`r < c if r else c` {ACCEPTED}"),
    ("c % 0 == 0", "`c % 0 == 0` cannot be computed for some r and c: divide by zero"),
    ("r // (c - 3) == 0", "`r // (c - 3) == 0` cannot be computed for some r and c: divide by zero"),
    ("1 // 0 < r", "`1 // 0 < r` cannot be computed for some r and c: integer division or modulo by zero"),
    ("1000000 * 1000000 * 1000000 * 1000000 * r < c", "cannot be computed for some r and c: Python int too large"),
    ("9 ** 9 ** 9 ** 9 < c", f"`9 ** 9 ** 9 ** 9` {ACCEPTED}"),
]


@each_case(REFUSED, lambda refused: refused[0])
def test_a_refused_line_is_answered_with_a_sentence(refused):
    line, sentence = refused
    lab = MaskLab("line", line="c <= r")
    before = lab.result
    lab.set_state({"line": line})  # as a message from the page does
    refusal = lab.refused
    assert sentence in refusal and refusal.endswith(". It stays 'c <= r'.") and "\n" not in refusal
    assert lab.line == line, "what was typed is kept"
    assert lab.result is before
    lab.set_state({"line": "c < r"})
    assert lab.refused == "" and lab.result["setting"]["line"] == "c < r"
    if line.strip():
        assert MaskLab("line", line=line).problem + " It stays 'c <= r'." == refusal


def test_no_line_runs_other_code(tmp_path):
    target = tmp_path / "made"
    for line in (f"open({str(target)!r}, 'w') == r", f"[open({str(target)!r}, 'w')][0] == r"):
        assert MaskLab(line=line).problem
    assert not target.exists()


def test_a_refused_line_does_not_block_other_changes():
    lab = MaskLab("line", line="c <= r")
    lab.line = "c <= x"
    lab.B_r = 4
    assert lab.result["setting"]["B_r"] == 4 and lab.result["setting"]["line"] == "c <= r"
    assert lab.refused.startswith("x is not a name") and lab.line == "c <= x"
    lab.kind = "causal"
    assert lab.refused == "" and lab.result["code"] == "masks.causal()"
    lab.kind = "line"
    assert lab.refused.startswith("x is not a name")
    lab.line = "c <= r"  # already shown
    assert lab.refused == ""


@pytest.mark.parametrize("lengths", ["", "a", "3, x", "0", "3, -1", "3.5", "3, 4; 5", "99999"])
def test_texts_that_are_not_lengths(lengths):
    lab = MaskLab("documents")
    before = lab.result
    lab.lengths = lengths
    assert lab.refused.startswith("lengths: ") and "write whole numbers from 1 on" in lab.refused
    assert lab.lengths == lengths and lab.result is before
    lab.lengths = " 3,4 5 "
    assert lab.refused == "" and lab.result["lengths"] == [3, 4, 5, 52]


BAD = [
    (dict(mask="casual"), "The kind of mask is 'casual'; pass 'causal', 'window'"),
    (dict(mask=np.ones((9, 9), bool)), "The kind of mask is array("),
    (dict(mask="given"), "No mask was given; pass one, e.g. MaskLab(masks.window(8, 0))."),
    (dict(also="prefix"), "also is 'prefix'; pass one of 'none', 'causal', 'window', 'documents'."),
    (dict(line=3), "line is 3; pass a text"),
    (dict(mask="documents", lengths=5), "lengths is 5; pass a text, such as '20, 9, 27, 8'."),
    (dict(lengths=(3, 0)), "lengths: '0' is not a length"),
    (dict(N_q=0), "N_q is 0; pass a whole number from 1 to 96."),
    (dict(N_k=97), "N_k is 97; pass a whole number from 1 to 96."),
    (dict(B_r=True), "B_r is True; pass a whole number"),
    (dict(B_c=2.5), "B_c is 2.5; pass a whole number"),
    (dict(d=0), "d is 0; pass a whole number from 1 to 256."),
    (dict(left=-1), "left is -1; pass a whole number from 0 to 96, or None for no bound."),
    (dict(n=None), "n is None; pass a whole number from 0 to 96."),
    (dict(share=101), "share is 101; pass a whole number from 0 to 100."),
    (dict(mask=masks.alibi([0.5, 0.25])), "the mask is made for 2 heads"),
    (dict(mask=masks.documents([0, 0, 1])), "ids has shape (3,), and there are 64 keys"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=lambda one: told(one) if isinstance(one, dict) else "")
def test_a_sentence_says_what_cannot_be_shown(change, sentence):
    lab = MaskLab(**change)
    assert lab.problem.startswith(sentence) and lab.problem.endswith(".")
    assert repr(lab) == f"MaskLab({lab.problem})"
    assert "image/png" not in lab._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    "change",
    [dict(N_q=5), dict(B_c=64), dict(kind="window"), dict(kind="documents", also="window", left=None), dict(d=1)],
    ids=str,
)
def test_changes_from_the_page(change):
    lab = MaskLab()
    results = []
    lab.observe(lambda change: results.append(change.new), names="result")
    lab.set_state(change)
    assert len(results) == 1
    expected = MaskLab(**{{"kind": "mask"}.get(name, name): value for name, value in change.items()})
    assert lab.result == expected.result and repr(lab) == repr(expected)
    N = lab.N_q, lab.N_k
    everything = slice(0, N[0]), slice(0, N[1])
    assert np.array_equal(lab.mask.on(*N).seen(*everything), expected.mask.on(*N).seen(*everything))


@pytest.mark.parametrize(
    "change", [dict(N_q=0), dict(B_r=97), dict(kind="given"), dict(also="x"), dict(n=-1)], ids=str
)
def test_a_later_request_that_is_refused_changes_nothing(change):
    lab = MaskLab("prefix", B_r=4)
    before = lab.result
    ((name, value),) = change.items()
    lab.set_state(change)
    assert lab.refused.endswith(f"It stays {before['setting'][name]!r}.")
    assert lab.result is before and getattr(lab, name) == before["setting"][name]
    lab.B_c = 16
    assert lab.refused == "" and lab.result["setting"]["B_c"] == 16


def test_a_given_mask_that_does_not_fit_other_sizes_stays():
    lab = MaskLab(masks.documents([0] * 5 + [1] * 4), N_q=9, N_k=9, B_r=2, B_c=2)
    assert lab.kind == "given" and "given" in lab.result["kinds_offered"]
    assert "given" not in MaskLab().result["kinds_offered"]
    lab.N_k = 10
    assert lab.N_k == 9 and lab.refused.startswith("ids has shape (9,), and there are 10 keys")
    lab.kind = "causal"
    lab.N_k = 10
    assert lab.result["setting"]["N_k"] == 10 and lab.refused == ""


def test_repr():
    assert repr(MaskLab("window", N_k=60)) == (
        "MaskLab(masks.window(16, 0), N_q=64, N_k=60, B_r=8, B_c=8, d=64: 0 whole, 26 cut, 38 hidden of 64 tiles, "
        "884 of 1632 computed scores seen, bounds in closed form)"
    )
    assert repr(MaskLab(masks.causal() & masks.prefix(3))).startswith("MaskLab(window & prefix, N_q=64")
    assert "a table of 256 bytes" in repr(MaskLab("blocks"))


def test_its_picture_has_the_greys_of_a_plot_on_white():
    for fill, share in ((figure.COMPUTED, inks.COMPUTED), (figure.SEEN, inks.SEEN)):
        for k in (1, 3, 5):
            given, ink = int(fill[k : k + 2], 16), int(inks.INK[k : k + 2], 16)
            assert given == pytest.approx(255 - (255 - ink) * share, abs=8)  # INK is not quite grey
