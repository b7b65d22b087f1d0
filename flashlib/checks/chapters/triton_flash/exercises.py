"""The exercises of chapter 10. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import math
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np

from flashlib import naive, tiled
from flashlib.checks import updates
from flashlib.checks.examine import Case, Mistake, examine
from flashlib.checks.exercise import exercise

INF = np.inf
STATE = "m", "l", "O_acc"
TF32 = 'tl.dot rounds fp32 to tf32, on a GPU at least: give each one input_precision="ieee"'


@exercise(title="The inner loop of the kernel", minutes=25, difficulty="hard")
def inner_loop(answer):
    from flashlib.checks.launches import in_turn, looped, part_problem, rounds_dots

    if problem := part_problem(answer, STATE):
        return problem
    square = [
        _tiles("one tile", 16, 16),
        _tiles("two tiles", 32, 16),
        _tiles("two tiles, a part of which is visible", 32, 16, hidden=0.4),
        _tiles("large scores", 32, 16, size=4096),
        _tiles("rows that see nothing in the first tile, or at all", 32, 16, hidden=0.4, blind=True),
    ]
    wide = [_tiles("two tiles of 16 x 32", 64, 32, hidden=0.4)]
    in_fp16 = [_tiles("q, k and v in fp16", 32, 16, dtype=np.float16, tolerance=2e-3)]
    verdict = in_turn(looped(answer), (square, wide, in_fp16), INNER_LOOP, outputs=STATE)
    if rounds_dots(answer) and (verdict.right or " is wrong for " in verdict.sentence):  # it shows on a GPU only
        return replace(verdict, outcome="wrong", sentence=TF32)
    return verdict


def _tiles(words, N_k, B_c, *, size=1, hidden=0.0, blind=False, dtype=np.float32, tolerance=1e-5):
    """Return the Case of a row block of 16 rows and N_k keys, whose scores are exact in fp32."""
    rng = np.random.default_rng(0)
    Q_i, K, V = (rng.integers(-6, 7, (n, 16)) / 4 for n in (16, N_k, N_k))
    Q_i *= size
    visible = rng.random((16, N_k)) >= hidden
    visible[:, ::B_c] = True
    if blind:
        visible[3, :B_c] = visible[5] = False
    expected = updates.state(np.where(visible, Q_i @ K.T * 0.5, -INF), V)
    arguments = *(X.astype(dtype) for X in (Q_i, K, V)), visible, 0.5, B_c
    return Case(words, arguments, tuple(expected), tolerance)


def _start(Q_i):
    """Return the State of a row block that has seen no key, in fp32, as wide as in a kernel."""
    return updates.State(*(x.astype(np.float32) for x in updates.start(*Q_i.shape)))


def _looped(lines):
    """Return the function of a row block that goes over its tiles with `lines` exchanged in the update."""

    def run(Q_i, K, V, visible, scale, B_c):
        state = _start(Q_i)
        for cols in tiled.blocks(len(K), B_c):
            given = {"Q_i": Q_i, "K_j": K[cols], "V_j": V[cols], "scale": scale, "seen": visible[:, cols]}
            state = updates.update(lines, before=state, **given)
        return state

    return run


def _all_scores(s):
    return s.raw * s.scale


def _where_seen(s, X):
    return np.where(s.seen, X, 0)


def _power_of_2(s):
    return np.exp2(s.S_ij - s.shift[:, None])


VISIBLE = (
    ("visible is not used: scores where it is False become -inf", {"S_ij": _all_scores}),
    (
        "hidden scores become 0: they must become -inf, since exp(0 - m) is a weight",
        {"S_ij": lambda s: _where_seen(s, _all_scores(s))},
    ),
    ("visible is upside down: -inf where it is False", {"S_ij": lambda s: np.where(s.seen, -INF, _all_scores(s))}),
    (
        "m counts hidden scores: mask S before its maximum is taken, not P after",
        {"S_ij": _all_scores, "P_ij": lambda s: _where_seen(s, np.exp(s.S_ij - s.shift[:, None]))},
    ),
    *(
        (
            f"{value:g} {how} hidden scores: a row that sees no key then sees them all; use -inf",
            {"S_ij": lambda s, x=value, k=keep: np.where(s.seen, _all_scores(s), k * _all_scores(s) + x)},
        )
        for value in (-1e4, -1e6, -1e9, -1e30)
        for how, keep in (("takes the place of", 0), ("is added to", 1))
    ),
    ("k is not transposed: S = tl.dot(q, k.T)", {"raw": lambda s: s.Q_i @ s.K_j}),
    ("the powers are of base 2: use tl.exp", {"alpha": lambda s: np.exp2(s.m_old - s.shift), "P_ij": _power_of_2}),
    *(
        (
            "O_acc is returned divided by l: it stays as it is until the last tile",
            {
                "O_acc_old": lambda s: s.before.O_acc * s.before.l[:, None],
                "after": lambda s, x=x: updates.State(s.m, s.l, s.O_acc / np.where(s.l == 0, x, s.l)[:, None]),
            },
        )
        for x in (0, 1)
    ),
    ("alpha is always 1: it is exp(m_old - m), with m_old from before", {"alpha": lambda s: np.exp(s.m - s.m)}),
    ("m and l are exchanged: return m, l, O_acc", {"after": lambda s: updates.State(s.l, s.m, s.O_acc)}),
    ("the old m is returned: return the new one", {"after": lambda s: updates.State(s.m_old, s.l, s.O_acc)}),
)

INNER_LOOP = [
    Mistake(words, _looped(lines | unguarded))
    for unguarded in ({}, {"shift": lambda s: s.m})
    for words, lines in (*VISIBLE, *updates.SCORES, *updates.UPDATES)
]


@exercise(title="The causal split", minutes=15, difficulty="hard")
def causal_split(answer):
    from flashlib.checks.launches import part_problem, split, split_of_mask

    if problem := part_problem(answer, ("full", "end")):
        return problem
    words = "N_q = {}, N_k = {}, tiles of {} x {}"
    cases = [Case(words.format(*sizes), sizes, split_of_mask(*sizes)) for sizes in SPLIT_SIZES]
    return examine(split(answer), cases, CAUSAL_SPLIT, outputs=("full", "end"))


SPLIT_SIZES = (
    *((2, 2, 2, 2), (4, 4, 2, 2), (6, 6, 3, 2), (5, 5, 2, 4), (9, 9, 8, 2), (48, 48, 32, 16)),
    *((3, 8, 2, 2), (2, 7, 1, 3), (7, 19, 4, 3), (40, 56, 16, 16), (72, 88, 16, 32)),
    *((8, 3, 2, 2), (13, 5, 4, 4)),  # fewer keys than queries
)


def _rounded(n, s):
    return np.clip(n, 0, s.N_k) // s.B_c * s.B_c


def _full(s):
    return _rounded(s.first, s)


def _end(s):
    return np.minimum(s.last, s.N_k)


def _split(past=lambda past: past, full=_full, end=_end):
    """Return a wrong split, whose parts are given how many keys the first row sees, and how many the last."""

    def bounds(N_q, N_k, B_r, B_c):
        from flashlib.checks.launches import same_loops

        i, shift = np.arange(-(-N_q // B_r)), past(N_k - N_q)
        s = SimpleNamespace(first=i * B_r + shift + 1, last=(i + 1) * B_r + shift, N_k=N_k, B_c=B_c)
        return same_loops([np.broadcast_to(line(s), i.shape) for line in (full, end)], N_q, N_k, B_r, B_c)

    return bounds


PAST = "past is N_k - N_q, so the first row sees i * B_R + past + 1 keys"
FULL = "round the number of keys that the first row sees down to a multiple of B_C"
FIRST = "the first row sees its own key too, i * B_R + past + 1 keys"
LAST = "the last row sees (i + 1) * B_R + past keys"
TILES = "full counts tiles: it is the number of a key, the number of tiles times B_C"
NOT_CLIPPED = "end is not clipped: no key comes after N_k, so take tl.minimum(..., N_k)"

SPLITS = (
    (f"the mask is aligned top left: {PAST}", {"past": lambda past: 0}),
    (f"past has the wrong sign: {PAST}", {"past": lambda past: -past}),
    ("past is clipped: it is negative if there are fewer keys than queries", {"past": lambda past: max(past, 0)}),
    (f"full is too small: {FIRST}", {"full": lambda s: _rounded(s.first - 1, s)}),
    (f"full is too large: {FIRST}", {"full": lambda s: _rounded(s.first + 1, s)}),
    (f"the unmasked loop goes through cut tiles: {FULL}", {"full": lambda s: _rounded(s.last, s)}),
    ("full is not rounded down to a multiple of B_C", {"full": lambda s: np.clip(s.first, 0, s.N_k)}),
    (f"full is rounded up: {FULL}", {"full": lambda s: -(-np.maximum(s.first, 0) // s.B_c) * s.B_c}),
    ("full is always 0: the tiles that all rows see whole need no mask", {"full": lambda s: 0}),
    (TILES, {"full": lambda s: _full(s) // s.B_c}),
    (TILES, {"full": lambda s: _full(s) // s.B_c, "end": lambda s: -(-_end(s) // s.B_c)}),
    ("end counts tiles: it is the number of a key", {"end": lambda s: -(-_end(s) // s.B_c)}),
    (
        "full is negative: tl.maximum(..., 0) before it is rounded",
        {"full": lambda s: np.fix(s.first / s.B_c) * s.B_c},
    ),
    (f"the masked loop ends at what the first row sees: {LAST}", {"end": lambda s: s.first}),
    (f"end is too small by one: {LAST}", {"end": lambda s: np.minimum(s.last - 1, s.N_k)}),
    (f"end is too large by one: {LAST}", {"end": lambda s: np.minimum(s.last + 1, s.N_k)}),
    ("tiles that no row sees are computed: end is what the last row sees", {"end": lambda s: s.N_k}),
    (NOT_CLIPPED, {"end": lambda s: s.last}),
    (NOT_CLIPPED, {"end": lambda s: -(-s.last // s.B_c) * s.B_c}),
    ("end is rounded down: the last tile may be cut", {"end": lambda s: _end(s) // s.B_c * s.B_c}),
    ("end is counted from full on: count it from 0", {"end": lambda s: _end(s) - _full(s)}),
    ("one cut tile is taken for granted: there may be more, or none", {"end": lambda s: _full(s) + s.B_c}),
    ("the causal mask is left out", {"full": lambda s: _rounded(s.N_k, s), "end": lambda s: s.N_k}),
    ("full and end are exchanged: return full, end", {"full": _end, "end": _full}),
)

CAUSAL_SPLIT = [Mistake(words, _split(**parts)) for words, parts in SPLITS] + [
    Mistake(f"{words}; and {others}", _split(**parts, **more))
    for (words, parts), (others, more) in combinations(SPLITS, 2)
    if not parts.keys() & more.keys()
]


@exercise(title="Any head dimension", minutes=10, difficulty="easy")
def padded(answer):
    from flashlib.checks.launches import heads, in_turn, launched, one_O

    in_fp32 = [heads(f"d = {d}", (1, 2, 5, 7, d), _naive) for d in (16, 20, 1, 80)]
    in_fp16 = [heads("fp16 tensors and d = 20", (1, 2, 5, 7, 20), _naive, dtype=np.float16, tolerance=2e-3)]
    return in_turn(launched(one_O(answer, "QKV")), (in_fp32, in_fp16), PADDED, outputs=("O",))


def _naive(Q, K, V, **options):
    return naive.attention(Q, K, V, **options).O


def _each_head(f, dtype=np.float64):
    """Return f, a function of the Q, K and V of one head, as a function of all heads."""

    def run(Q, K, V, *others):
        Q, K, V = (np.asarray(X).astype(dtype) for X in (Q, K, V))
        O = np.array([f(Q[at], K[at], V[at], *others) for at in np.ndindex(*Q.shape[:2])])
        return O.reshape(*Q.shape[:2], *O.shape[1:])

    return run


def _power(d):
    """Return the dimension that the kernel takes for d."""
    return max(16, 1 << (d - 1).bit_length())


def _at_scale(times_d):
    """Return attention of one head whose scale is 1 / sqrt(times_d(d))."""
    return lambda Q, K, V: _naive(Q, K, V, scale=1 / math.sqrt(times_d(Q.shape[1])))


def _padded_O(Q, K, V, before=0):
    """Return O with the columns of zeros that come of padding, of which some lie before it."""
    more = _power(Q.shape[1]) - Q.shape[1]
    return np.pad(_naive(Q, K, V), ((0, 0), (before * more, more)))


SCALE = "pass scale=1 / math.sqrt(d) with the d of Q"

PADDED = [
    Mistake(sentence, _each_head(wrong))
    for sentence, wrong in (
        (f"the scale is that of the padded d: {SCALE}", _at_scale(_power)),
        (f"the scale is that of the padded d: {SCALE}", _at_scale(lambda d: 128)),
        (f"the scale is 1: {SCALE}", _at_scale(lambda d: 1)),
        (f"the scale is 1 / d: {SCALE}", _at_scale(lambda d: d * d)),
        ("the padded columns are still there: cut O to the first d, O[..., :d]", _padded_O),
        (
            "the columns of O are not the first d: zeros come after the d columns, and O[..., :d] is cut out",
            lambda Q, K, V: _padded_O(Q, K, V, before=1)[:, : Q.shape[1]],
        ),
        ("a causal mask is applied: every query sees every key", lambda Q, K, V: _naive(Q, K, V, causal=True)),
        ("K is passed for V", lambda Q, K, V: _naive(Q, K, K)),
    )
]


@exercise(title="A penalty for distance", minutes=30, difficulty="hard")
def alibi(answer):
    from flashlib.checks.launches import heads, launched, one_O

    cases = [
        heads(words, shape, _alibi, slope, **options)
        for words, shape, slope, options in (
            ("a slope of 0", (1, 1, 16, 16, 16), 0.0, {}),
            ("one tile", (1, 1, 16, 16, 16), 0.5, {}),
            ("two tiles", (1, 1, 16, 32, 16), 0.5, {}),
            ("tiles of 16 that N does not fill", (1, 1, 21, 21, 16), 0.5, {}),
            ("fewer queries than keys", (1, 1, 3, 21, 16), 0.5, {}),
            ("more queries than keys", (1, 1, 21, 3, 16), 0.5, {}),
            ("two sequences of two heads", (2, 2, 5, 7, 16), 0.25, {}),
            ("large scores and d = 64", (1, 1, 5, 37, 64), 2.0, {"size": 64}),
            ("two heads that are stored as (B, N, H, d)", (1, 2, 5, 7, 16), 0.5, {"transposed": True}),
        )
    ]
    return examine(launched(one_O(answer, ("Q", "K", "V", "slope"))), cases, ALIBI, outputs=("O",))


def _distance(s):
    return s.r + s.past - s.c


def _penalty(s):
    return s.slope * _distance(s)


def _lowered(by=_penalty, seen=lambda s: s.seen, scaled=lambda s: s.raw * s.scale):
    """Return the line of the scores of a tile, lowered by a penalty and masked."""
    return {"S_ij": lambda s: np.where(seen(s), scaled(s) - by(s), -INF)}


def _divided(O_acc, l):
    return O_acc / np.where(l == 0, 1, l)[:, None]


def _alibi(Q, K, V, slope):
    """Return causal attention with a penalty for distance, for one head."""
    distance = np.arange(len(Q))[:, None] + len(K) - len(Q) - np.arange(len(K))
    S = Q @ K.T / math.sqrt(Q.shape[1]) - slope * distance
    m, l, O_acc = updates.state(np.where(distance >= 0, S, -INF), V)
    return _divided(O_acc, l)


def _alibi_tiles(sentence, lines, divided=_divided):
    """Return the Mistake that goes over tiles of 16 x 16 with `lines` exchanged in the update."""

    def run(Q, K, V, slope):
        past, O = len(K) - len(Q), np.zeros(Q.shape)
        for rows in tiled.blocks(len(Q), 16):
            state = _start(Q[rows])
            for cols in tiled.blocks(len(K), 16):
                r, c = np.ogrid[rows, cols]
                given = {"Q_i": Q[rows], "K_j": K[cols], "V_j": V[cols], "scale": 1 / math.sqrt(Q.shape[1])}
                given |= {"r": r, "c": c, "past": past, "slope": slope, "start": cols.start}
                state = updates.update(_lowered() | lines, before=state, seen=c <= r + past, **given)
            with np.errstate(all="ignore"):
                O[rows] = divided(state.O_acc, state.l)
        return O

    return Mistake(sentence, _each_head(run, np.float32))


def _strides_ignored(like_Q):
    """Return attention that takes the strides for those of contiguous tensors; like_Q: O has those of Q."""

    def run(Q, K, V, slope):
        from flashlib.checks.launches import memory

        as_read = (memory(X)(np.arange(np.prod(X.shape))).reshape(X.shape) for X in (Q, K, V))
        O = _each_head(_alibi)(*as_read, slope)
        if isinstance(Q, np.ndarray) or not like_Q:
            return O
        B, H, N_q, d = O.shape
        return O.reshape(B, N_q, H, d).transpose(0, 2, 1, 3)

    return run


def _first_head(own_Q):
    def run(Q, K, V, slope):
        first = [np.broadcast_to(np.asarray(X)[:1, :1], X.shape) for X in (Q, K, V)]
        return _each_head(_alibi)(Q if own_Q else first[0], *first[1:], slope)

    return run


SEES = "query r sees keys c <= r + N_k - N_q"
DISTANCE = "slope * (r + N_k - N_q - c)"
NO_KEY = "O is nan in a row that sees no key: shift by 0 where m is -inf, and divide by 1 where l is 0"
HEADS = "all heads read the first one: the rows of a head begin at head * N"
STRIDES = "the strides are not used: the offsets are those of contiguous tensors, so call .contiguous() first"

ALIBI = (
    _alibi_tiles(f"the penalty is missing: S is lowered by {DISTANCE}", _lowered(lambda s: 0)),
    _alibi_tiles(f"the penalty has the wrong sign: subtract {DISTANCE}", _lowered(lambda s: -_penalty(s))),
    _alibi_tiles(
        "the penalty is multiplied by scale too: subtract it after S has been scaled",
        _lowered(lambda s: _penalty(s) * s.scale),
    ),
    _alibi_tiles(
        "the distance is taken within the tile: c is offs_n, which begins at start, not tl.arange alone",
        _lowered(lambda s: s.slope * (_distance(s) + s.start)),
    ),
    _alibi_tiles(
        "the distance of tiles is taken, not of keys", _lowered(lambda s: s.slope * (s.r // 16 - s.start // 16))
    ),
    _alibi_tiles(
        "S is multiplied by the penalty", _lowered(lambda s: 0, scaled=lambda s: s.raw * s.scale * _penalty(s))
    ),
    _alibi_tiles("slope is not used: S is lowered by slope times the distance", _lowered(_distance)),
    _alibi_tiles("the causal mask is missing", _lowered(seen=lambda s: s.c + 0 * s.r >= 0)),
    _alibi_tiles("the causal mask is missing", _lowered(lambda s: abs(_penalty(s)), lambda s: s.c + 0 * s.r >= 0)),
    _alibi_tiles(f"the causal mask is aligned top left: {SEES}", _lowered(seen=lambda s: s.c <= s.r)),
    _alibi_tiles(f"a query must see its own key too: {SEES}", _lowered(seen=lambda s: s.c < s.r + s.past)),
    _alibi_tiles("the scale is 1 / d: it is 1 / sqrt(d)", _lowered(scaled=lambda s: s.raw * s.scale**2)),
    _alibi_tiles("the scale is missing: S = Q K^T * scale - penalty", _lowered(scaled=lambda s: s.raw)),
    _alibi_tiles("the final division by l is missing: O is O_acc / l", {}, lambda O_acc, l: O_acc),
    _alibi_tiles(NO_KEY, {}, lambda O_acc, l: O_acc / l[:, None]),
    *(Mistake(STRIDES, _strides_ignored(like_Q)) for like_Q in (True, False)),
    *(Mistake(HEADS, _first_head(own_Q)) for own_Q in (True, False)),
    *(_alibi_tiles(*mistake) for mistake in updates.UPDATES),
)
