"""The exercises of chapter 10. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import math
from functools import wraps

import numpy as np

from flashlib import naive, tiled
from flashlib.checks import updates
from flashlib.checks.examine import Case, Finding, Mistake, describe_value, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.verdict import Verdict

CHAPTER = "10_triton_flash"
INF = np.inf
STATE = "m", "l", "O_acc"
TF32 = 'right here, but on a GPU tl.dot rounds fp32 to tf32: give each one input_precision="ieee"'


@exercise(chapter=CHAPTER, title="The inner loop of the kernel", minutes=25, difficulty="hard", triton=True)
def inner_loop(answer):
    from flashlib.checks.launches import in_turn, looped, part_problem, rounds_dots

    if problem := part_problem(answer, STATE):
        return problem
    in_fp32 = [
        _tiles("one tile", 16, 16),
        _tiles("two tiles", 32, 16),
        _tiles("two tiles, a part of which is visible", 32, 16, hidden=0.4),
        _tiles("large scores", 32, 16, size=64),
        _tiles("rows that see nothing in the first tile, or at all", 32, 16, hidden=0.4, blind=True),
        _tiles("two tiles of 16 x 32", 64, 32, hidden=0.4),
    ]
    in_fp16 = [_tiles("q, k and v in fp16", 32, 16, dtype=np.float16, tolerance=2e-3)]
    verdict = in_turn(looped(answer), (in_fp32, in_fp16), INNER_LOOP, outputs=STATE)
    return Verdict("", "wrong", TF32) if verdict.right and rounds_dots(answer) else verdict


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


def _looped(lines):
    """Return the function of a row block that goes over its tiles with `lines` exchanged in the update."""

    def run(Q_i, K, V, visible, scale, B_c):
        state = updates.start(*Q_i.shape)
        for cols in tiled.blocks(len(K), B_c):
            given = {"Q_i": Q_i, "K_j": K[cols], "V_j": V[cols], "scale": scale, "seen": visible[:, cols]}
            state = updates.update(lines, before=state, **given)
        return state

    return run


def _all_scores(s):
    return s.raw * s.scale


def _where_seen(s, X):
    return np.where(s.seen, X, 0)


BASE_2 = "the powers are of base 2, tl.exp2: here they are of base e, tl.exp"

VISIBLE = (
    ("visible is not used: scores where it is False become -inf", {"S_ij": _all_scores}),
    (
        "hidden scores become 0: they must become -inf, since exp(0 - m) is a weight",
        {"S_ij": lambda s: _where_seen(s, _all_scores(s))},
    ),
    (
        "visible is upside down: scores where it is False become -inf",
        {"S_ij": lambda s: np.where(s.seen, -INF, _all_scores(s))},
    ),
    (
        "m counts hidden scores: mask S before its maximum is taken, not P after",
        {"S_ij": _all_scores, "P_ij": lambda s: _where_seen(s, np.exp(s.S_ij - s.shift[:, None]))},
    ),
    (
        "m and l count hidden scores: mask S before its maximum is taken",
        {
            "S_ij": _all_scores,
            "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + _where_seen(s, s.P_ij) @ s.V_j,
        },
    ),
    *(
        (
            f"{value:g} {how} hidden scores: a row that sees no key then sees them all; use -inf",
            {"S_ij": lambda s, x=value, k=keep: np.where(s.seen, _all_scores(s), k * _all_scores(s) + x)},
        )
        for value in (-1e4, -1e5, -1e6, -1e9, -1e10, -1e30)
        for how, keep in (("takes the place of", 0), ("is added to", 1))
    ),
    (
        BASE_2,
        {
            "alpha": lambda s: np.exp2(s.m_old - s.shift),
            "P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None]),
        },
    ),
    (BASE_2, {"P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None])}),
    ("m and l are exchanged: return m, l, O_acc", {"after": lambda s: updates.State(s.l, s.m, s.O_acc)}),
    (
        "the m from before the tile is returned: return the new one",
        {"after": lambda s: updates.State(s.m_old, s.l, s.O_acc)},
    ),
)

INNER_LOOP = [Mistake(words, _looped(lines)) for words, lines in (*VISIBLE, *updates.SCORES, *updates.UPDATES)]


@exercise(chapter=CHAPTER, title="The causal split", minutes=15, difficulty="hard", triton=True)
def causal_split(answer):
    from flashlib.checks.launches import part_problem, split

    if problem := part_problem(answer, ("full", "end")):
        return problem
    cases = [
        Case("N_q = {}, N_k = {}, tiles of {} x {}".format(*sizes), sizes, _split_of_mask(*sizes))
        for sizes in (
            (2, 2, 2, 2),
            (4, 4, 2, 2),
            (6, 6, 3, 2),
            (5, 5, 2, 4),
            (3, 8, 2, 2),
            (2, 7, 1, 3),
            (8, 3, 2, 2),
            (13, 5, 4, 4),
            (9, 9, 8, 2),
            (7, 19, 4, 3),
            (40, 56, 16, 16),
            (48, 48, 32, 16),
            (72, 88, 16, 32),
        )
    ]
    return examine(_same_loops(split(answer)), cases, CAUSAL_SPLIT, outputs=("full", "end"))


def _split_of_mask(N_q, N_k, B_r, B_c):
    """Return full and end of each row block, found by looking at its tiles."""
    found = []
    for rows in tiled.blocks(N_q, B_r):
        full, end = 0, 0
        for cols in tiled.blocks(N_k, B_c):
            seen = tiled.is_visible(rows, cols, N_k - N_q)
            if seen.all() and seen.shape[1] == B_c:
                full = cols.stop
            if seen.any():
                end = cols.start + 1 + int(np.flatnonzero(seen.any(axis=0))[-1])
        found.append((full, end))
    return tuple(np.array(found).T)


def _same_loops(f):
    """Return f, its bounds replaced by those of the mask in row blocks where both give the same two loops."""

    def run(N_q, N_k, B_r, B_c):
        def loops(full, end):
            return *range(0, full, B_c), None, *range(full, end, B_c)

        given, exact = np.transpose(f(N_q, N_k, B_r, B_c)), np.transpose(_split_of_mask(N_q, N_k, B_r, B_c))
        same = [loops(*a) == loops(*b) for a, b in zip(given, exact, strict=True)]
        return tuple(np.where(np.array(same)[:, None], exact, given).T)

    return run


def _full(first, last, N_k, B_c):
    return np.clip(first, 0, N_k) // B_c * B_c


def _end(first, last, N_k, B_c):
    return np.minimum(last, N_k)


def _wrong_split(sentence, full=_full, end=_end, past=lambda past: past):
    """Return the Mistake of a wrong full or end, given how many keys the first row sees, and the last."""

    def bounds(N_q, N_k, B_r, B_c):
        i = np.arange(-(-N_q // B_r))
        sees = i * B_r + past(N_k - N_q) + 1, (i + 1) * B_r + past(N_k - N_q), N_k, B_c
        both = full(*sees), end(*sees)
        return tuple(np.broadcast_to(x, i.shape).astype(int) for x in both)

    return Mistake(sentence, _same_loops(bounds))


PAST = "past is N_k - N_q, so the first row sees i * B_R + past + 1 keys"
NOT_CLIPPED = "end is not clipped: no key comes after N_k, so take tl.minimum(..., N_k)"

CAUSAL_SPLIT = (
    _wrong_split(f"the mask is aligned top left: {PAST}", past=lambda past: 0),
    _wrong_split(f"past has the wrong sign: {PAST}", past=lambda past: -past),
    _wrong_split(
        "full is off by one: the first row sees its own key too, i * B_R + past + 1 keys",
        full=lambda first, *others: _full(first - 1, *others),
    ),
    _wrong_split(
        "full is off by one: the first row sees i * B_R + past + 1 keys",
        full=lambda first, *others: _full(first + 1, *others),
    ),
    _wrong_split(
        "the unmasked loop goes through cut tiles: its end is what the first row sees, not the last",
        full=lambda first, last, *others: _full(last, last, *others),
    ),
    _wrong_split(
        "full is no multiple of B_C: round it down, // B_C * B_C",
        full=lambda first, last, N_k, B_c: np.clip(first, 0, N_k),
    ),
    _wrong_split(
        "full is rounded up: the tile that the first row sees a part of is cut, so round down",
        full=lambda first, last, N_k, B_c: -(-np.clip(first, 0, N_k) // B_c) * B_c,
    ),
    _wrong_split("full is always 0: the tiles that all rows see whole need no mask", full=lambda *_: 0),
    *(
        _wrong_split(
            "full counts tiles: it is the number of a key, the number of tiles times B_C",
            full=lambda first, last, N_k, B_c: _full(first, last, N_k, B_c) // B_c,
            end=end,
        )
        for end in (_end, lambda first, last, N_k, B_c: -(-np.minimum(last, N_k) // B_c))
    ),
    _wrong_split(
        "full is negative where the first row sees no key: tl.maximum(..., 0) before it is rounded",
        full=lambda first, last, N_k, B_c: np.fix(np.minimum(first, N_k) / B_c) * B_c,
    ),
    _wrong_split(
        "the masked loop ends at what the first row sees: the last row sees the most, (i + 1) * B_R + past keys",
        end=lambda first, last, N_k, B_c: np.minimum(first, N_k),
    ),
    _wrong_split(
        "end is too small by one: the last row sees (i + 1) * B_R + past keys",
        end=lambda first, last, N_k, B_c: np.minimum(last - 1, N_k),
    ),
    _wrong_split(
        "end is too large by one: the last row sees (i + 1) * B_R + past keys",
        end=lambda first, last, N_k, B_c: np.minimum(last + 1, N_k),
    ),
    _wrong_split(
        "tiles that no row sees are computed: end is what the last row sees", end=lambda f, l, N_k, B_c: N_k
    ),
    _wrong_split(NOT_CLIPPED, end=lambda first, last, N_k, B_c: last),
    _wrong_split(
        "end is rounded down: the last tile may be cut",
        end=lambda first, last, N_k, B_c: np.minimum(last, N_k) // B_c * B_c,
    ),
    _wrong_split(
        "one cut tile is taken for granted: a row block can have more, or none",
        end=lambda *sees: _full(*sees) + sees[3],
    ),
    _wrong_split(
        "the causal mask is left out: both numbers depend on i",
        full=lambda first, last, N_k, B_c: N_k // B_c * B_c,
        end=lambda first, last, N_k, B_c: N_k,
    ),
    Mistake(
        "full and end are exchanged: return full, end", _same_loops(lambda *sizes: _split_of_mask(*sizes)[::-1])
    ),
)


@exercise(chapter=CHAPTER, title="Any head dimension", minutes=10, difficulty="easy", triton=True)
def padded(answer):
    from flashlib.checks.launches import in_turn, launched

    stages = [
        [_heads(f"d = {d}", (1, 2, 5, 7, d)) for d in (16, 20, 1, 80)],
        [_heads("fp16 tensors and d = 20", (1, 2, 5, 7, 20), dtype=np.float16, tolerance=2e-3)],
    ]
    return in_turn(launched(_returns_O(answer)), stages, PADDED)


def _heads(words, shape, *others, dtype=np.float32, tolerance=1e-5, exact=None, size=1, transposed=False):
    """Return the Case of Q, K and V of the shape (B, H, N_q, N_k, d), others being further arguments."""
    from flashlib.checks.launches import Strided

    rng = np.random.default_rng(0)
    B, H, N_q, N_k, d = shape
    Q, K, V = (rng.integers(-6, 7, (B, H, N, d)) / 4 for N in (N_q, N_k, N_k))
    Q *= size
    expected = np.array(
        [[(exact or _naive)(Q[b, h], K[b, h], V[b, h], *others) for h in range(H)] for b in range(B)]
    )
    given = [X.astype(dtype) for X in (Q, K, V)]
    if transposed:
        given = [Strided(X, (X.shape[2] * H * d, d, H * d, 1)) for X in given]
    return Case(words, (*given, *others), expected, tolerance)


def _naive(Q, K, V, **options):
    return naive.attention(Q, K, V, **options).O


def _returns_O(answer):
    """Return answer, a function of Q and others; raises Finding if it returns anything but O in the dtype of Q."""
    if not callable(answer):
        return answer

    @wraps(answer)
    def run(Q, *others):
        O = answer(Q, *others)
        if isinstance(O, tuple):
            raise Finding(f"returns {describe_value(O)}: return O alone")
        if getattr(O, "dtype", Q.dtype) != Q.dtype:
            raise Finding(f"O has the dtype {O.dtype}; expected {Q.dtype}, that of Q")
        return O

    return run


def _each_head(f):
    """Return f, a function of the Q, K and V of one head, as a function of all heads, in fp64."""

    def run(Q, K, V, *others):
        Q, K, V = (np.asarray(X).astype(np.float64) for X in (Q, K, V))
        heads = np.ndindex(*Q.shape[:2])
        O = np.array([f(Q[at], K[at], V[at], *others) for at in heads])
        return O.reshape(*Q.shape[:2], *O.shape[1:])

    return run


def _power(d):
    """Return the dimension that the kernel takes for d."""
    return max(16, 1 << (d - 1).bit_length())


def _uncut(Q, K, V):
    return np.pad(_naive(Q, K, V), ((0, 0), (0, _power(Q.shape[1]) - Q.shape[1])))


PADDED = tuple(
    Mistake(sentence, _each_head(wrong))
    for sentence, wrong in (
        (
            "the scale is that of the padded d: pass scale=1 / math.sqrt(d) with the d of Q",
            lambda Q, K, V: _naive(Q, K, V, scale=1 / math.sqrt(_power(Q.shape[1]))),
        ),
        ("the scale is 1: pass scale=1 / math.sqrt(d)", lambda Q, K, V: _naive(Q, K, V, scale=1.0)),
        ("the scale is 1 / d: pass scale=1 / math.sqrt(d)", lambda Q, K, V: _naive(Q, K, V, scale=1 / Q.shape[1])),
        (
            "the scale is applied twice: leave Q as it is and pass scale=1 / math.sqrt(d)",
            lambda Q, K, V: _naive(Q, K, V, scale=1 / math.sqrt(Q.shape[1] * _power(Q.shape[1]))),
        ),
        ("the scale is applied twice: pass it once", lambda Q, K, V: _naive(Q, K, V, scale=1 / Q.shape[1])),
        ("the padded columns are still there: cut O to the first d, O[..., :d]", _uncut),
        (
            "the columns of O are not the first d: zeros come after the d columns, and O[..., :d] is cut out",
            lambda Q, K, V: _padded_before(_naive(Q, K, V)),
        ),
        ("a causal mask is applied: every query sees every key", lambda Q, K, V: _naive(Q, K, V, causal=True)),
        ("K is passed for V", lambda Q, K, V: _naive(Q, K, K)),
    )
)


def _padded_before(O):
    d = O.shape[1]
    return np.pad(O, ((0, 0), (_power(d) - d, 0)))[:, :d]


@exercise(chapter=CHAPTER, title="A penalty for distance", minutes=30, difficulty="hard", triton=True)
def alibi(answer):
    from flashlib.checks.launches import launched

    cases = [
        _heads("a slope of 0", (1, 1, 16, 16, 16), 0.0, exact=_alibi),
        _heads("one tile", (1, 1, 16, 16, 16), 0.5, exact=_alibi),
        _heads("two tiles", (1, 1, 16, 32, 16), 0.5, exact=_alibi),
        _heads("tiles of 16 that N does not fill", (1, 1, 21, 21, 16), 0.5, exact=_alibi),
        _heads("fewer queries than keys", (1, 1, 3, 21, 16), 0.5, exact=_alibi),
        _heads("more queries than keys", (1, 1, 21, 3, 16), 0.5, exact=_alibi),
        _heads("two sequences of two heads", (2, 2, 5, 7, 16), 0.25, exact=_alibi),
        _heads("large scores and d = 32", (1, 1, 5, 37, 32), 2.0, exact=_alibi, size=64),
        _heads("two heads that are stored as (B, N, H, d)", (1, 2, 5, 7, 16), 0.5, exact=_alibi, transposed=True),
    ]
    return examine(launched(_returns_O(answer)), cases, ALIBI)


def _alibi(Q, K, V, slope):
    """Return causal attention with a penalty for distance, for one head."""
    distance = np.arange(len(Q))[:, None] + len(K) - len(Q) - np.arange(len(K))
    S = Q @ K.T / math.sqrt(Q.shape[1]) - slope * distance
    m, l, O_acc = updates.state(np.where(distance >= 0, S, -INF), V)
    return O_acc / np.where(l == 0, 1, l)[:, None]


def _alibi_tiles(lines, divided=lambda O_acc, l: O_acc / np.where(l == 0, 1, l)[:, None]):
    """Return the function of one head that goes over tiles of 16 x 16 with `lines` exchanged in the update."""

    def run(Q, K, V, slope):
        past, O = len(K) - len(Q), np.zeros_like(Q)
        for rows in tiled.blocks(len(Q), 16):
            state = updates.start(*Q[rows].shape)
            for cols in tiled.blocks(len(K), 16):
                r, c = np.ogrid[rows, cols]
                given = {"Q_i": Q[rows], "K_j": K[cols], "V_j": V[cols], "scale": 1 / math.sqrt(Q.shape[1])}
                given |= {"r": r, "c": c, "past": past, "slope": slope, "start": cols.start}
                state = updates.update(PENALTY | lines, before=state, seen=c <= r + past, **given)
            with np.errstate(all="ignore"):
                O[rows] = divided(state.O_acc, state.l)
        return O

    return run


def _scores(s, seen=None, distance=None):
    distance = s.r + s.past - s.c if distance is None else distance
    return np.where(s.seen if seen is None else seen, s.raw * s.scale - s.slope * distance, -INF)


PENALTY = {"S_ij": _scores}


def _as_contiguous(X):
    """Return what is read of X when its strides are taken for those of a contiguous tensor."""
    from flashlib.checks.launches import memory

    return memory(X)(np.arange(np.prod(X.shape))).reshape(X.shape)


def _strides_ignored(Q, K, V, slope, *, like_Q):
    O = _each_head(_alibi)(*map(_as_contiguous, (Q, K, V)), slope)
    if like_Q and not isinstance(Q, np.ndarray):
        B, H, N_q, d = O.shape
        O = O.reshape(B, N_q, H, d).transpose(0, 2, 1, 3)
    return O


def _head_0(Q, K, V, slope):
    first = (np.broadcast_to(np.asarray(X)[:1, :1], X.shape) for X in (Q, K, V))
    return _each_head(_alibi)(*first, slope)


DISTANCE = "slope * (r + N_k - N_q - c)"

ALIBI = (
    *(
        Mistake(sentence, _each_head(_alibi_tiles(lines)))
        for sentence, lines in (
            (f"the penalty is missing: S is lowered by {DISTANCE}", {"S_ij": lambda s: _scores(s, distance=0)}),
            (
                f"the penalty has the wrong sign: S is lowered by {DISTANCE}, far keys count less",
                {"S_ij": lambda s: _scores(s, distance=s.c - s.r - s.past)},
            ),
            (
                "the penalty is multiplied by scale too: subtract it after S has been scaled",
                {"S_ij": lambda s: _scores(s, distance=(s.r + s.past - s.c) * s.scale)},
            ),
            (
                "the distance is taken within the tile: c is offs_n, which begins at start, not tl.arange alone",
                {"S_ij": lambda s: _scores(s, distance=s.r + s.past - (s.c - s.start))},
            ),
            (
                "slope is not used: S is lowered by slope times the distance",
                {"S_ij": lambda s: np.where(s.seen, s.raw * s.scale - (s.r + s.past - s.c), -INF)},
            ),
            ("the causal mask is missing", {"S_ij": lambda s: _scores(s, seen=s.c == s.c + 0 * s.r)}),
            (
                "the causal mask is aligned top left: query r sees keys c <= r + N_k - N_q",
                {"S_ij": lambda s: _scores(s, seen=s.c <= s.r)},
            ),
            (
                "a query must see its own key too: the mask is c <= r + N_k - N_q",
                {"S_ij": lambda s: _scores(s, seen=s.c < s.r + s.past)},
            ),
            (
                "the scale is missing: S = Q K^T * scale - penalty",
                {"S_ij": lambda s: np.where(s.seen, s.raw - s.slope * (s.r + s.past - s.c), -INF)},
            ),
            *updates.UPDATES,
        )
    ),
    Mistake(
        "the final division by l is missing: O is O_acc / l",
        _each_head(_alibi_tiles({}, lambda O_acc, l: O_acc)),
    ),
    Mistake(
        "O is nan in a row that sees no key, since 0 / 0 is nan: divide by 1 where l is 0",
        _each_head(_alibi_tiles({}, lambda O_acc, l: O_acc / l[:, None])),
    ),
    *(
        Mistake(
            "the strides are not used: the offsets are those of contiguous tensors, so call .contiguous() first",
            lambda *arguments, like_Q=like_Q: _strides_ignored(*arguments, like_Q=like_Q),
        )
        for like_Q in (True, False)
    ),
    Mistake("all heads read the first one: the rows of a head begin at head * N", _head_0),
)
