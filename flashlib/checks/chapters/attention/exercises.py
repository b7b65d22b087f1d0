"""The exercises of chapter 04."""

import math
from functools import wraps
from itertools import combinations

import numpy as np

from flashlib import naive
from flashlib.checks import examine
from flashlib.checks.examine import Case, Mistake
from flashlib.checks.exercise import exercise
from flashlib.checks.values import describe, describe_value
from flashlib.checks.verdict import Verdict

INF = np.inf


def _mistakes(make, *ones):
    """Return Mistakes of one wrong part, then of two, of which the first is named.

    ones: (sentence, {part: what stands in its place}). make(**parts): the function with these parts exchanged.
    """
    found = [Mistake(sentence, make(**parts)) for sentence, parts in ones]
    for (sentence, parts), (_, others) in combinations(ones, 2):
        if not parts.keys() & others.keys():
            found.append(Mistake(sentence, make(**parts, **others)))
    return found


def _examine(answer, cases, mistakes, form):
    """Examine an answer; form(result, *arguments) says what is wrong with the form of right numbers, or ""."""
    found = []

    @wraps(answer)
    def run(*arguments):
        result = answer(*arguments)
        if result is not None and (problem := form(result, *arguments)):
            found.append((problem, describe(answer, arguments)))
        return result

    verdict = examine.examine(run, cases, mistakes)
    if verdict.right and found:
        return Verdict("", "wrong", found[0][0], (("input", found[0][1]),))
    return verdict


@exercise(title="How long a text fits?", minutes=5, difficulty="easy")
def longest(answer):
    cases = []
    for words, capacity, H, itemsize in [
        ("one head", 1000, 1, 2),
        ("a capacity that is used to the last byte", 2400, 3, 4),
        ("one byte less than that", 2399, 3, 4),
        ("a capacity too small for one token", 10, 8, 4),
        ("a GPU of 80 GB, 32 heads in fp16", 80 * 10**9, 32, 2),
        ("a GPU of 24 GB, 12 heads in fp32", 24 * 10**9, 12, 4),
    ]:
        N = 0
        while 2 * H * (N + 1) ** 2 * itemsize <= capacity:
            N += 1
        cases.append(Case(words, (capacity, H, itemsize), N))
    return _examine(answer, cases, LONGEST, _is_whole)


def _is_whole(N, *_):
    if isinstance(N, float | np.floating):
        return f"returns the float {N}: N is a count, so give an int, as math.isqrt does"
    return ""


def _longest(items=lambda H, size: 2 * H * size, root=math.isqrt):
    return lambda capacity, H, size: root(capacity // items(H, size))


ROUND = "round down, as math.isqrt does"
LONGEST = [
    *_mistakes(
        _longest,
        ("only one N x N matrix is counted: S and P both take memory", {"items": lambda H, size: H * size}),
        ("the heads are not counted: each has an S and a P of its own", {"items": lambda H, size: 2 * size}),
        ("the bytes of an item are not counted: itemsize is missing", {"items": lambda H, size: 2 * H}),
        (
            "S and P are counted twice, as if moved: what is held at once counts once",
            {"items": lambda H, size: 4 * H * size},
        ),
        ("H counts twice over: H heads take H times as much", {"items": lambda H, size: 2 * H * H * size}),
        ("the square root is missing: S and P have N^2 items each", {"root": lambda n: n}),
        ("n is halved where its square root is due: S and P have N^2 items each", {"root": lambda n: n // 2}),
        (f"N is rounded up, which is too long: {ROUND}", {"root": lambda n: math.ceil(n**0.5)}),
        (f"N is rounded to the nearest, which may be too long: {ROUND}", {"root": lambda n: round(n**0.5)}),
        (
            "N is one too small where S and P fit to the last byte: then they do fit",
            {"root": lambda n: math.isqrt(max(n - 1, 0))},
        ),
        ("N is one too large: it is the first that does not fit", {"root": lambda n: math.isqrt(n) + 1}),
    ),
    Mistake(f"N is not rounded: {ROUND}", lambda capacity, H, size: (capacity / (2 * H * size)) ** 0.5),
    Mistake(
        "N is one too small where S and P fit to the last byte: then they do fit",
        lambda capacity, H, size: math.isqrt(max(capacity - 1, 0) // (2 * H * size)),
    ),
]


@exercise(title="A sliding window", minutes=10, difficulty="easy")
def window(answer):
    cases = []
    for words, N_q, N_k, w in [
        ("one query and one key", 1, 1, 1),
        ("as many queries as keys", 4, 4, 2),
        ("a window of one key", 3, 3, 1),
        ("fewer queries than keys", 2, 5, 3),
        ("more queries than keys", 5, 2, 1),
        ("more queries than keys and a wider window", 7, 5, 3),
        ("a window wider than the text", 3, 5, 9),
    ]:
        past = N_k - N_q
        seen = [[r + past - w < c <= r + past for c in range(N_k)] for r in range(N_q)]
        cases.append(Case(words, (N_q, N_k, w), np.array(seen)))
    return _examine(answer, cases, WINDOW, _is_mask)


def _is_mask(mask, *_):
    if not isinstance(mask, np.ndarray):
        return f"returns {describe_value(mask)}: make an array of it"
    if mask.dtype != bool:
        return f"the mask is made of numbers ({mask.dtype}): make it one of True and False, with dtype=bool"
    return ""


def _window(
    at=lambda r, past: r + past,
    upper=lambda c, at: c <= at,
    lower=lambda c, at, w: c > at - w,
    joined=lambda upper, lower: upper & lower,
):
    def wrong(N_q, N_k, w):
        r, c = np.arange(N_q)[:, None], np.arange(N_k)
        position = at(r, N_k - N_q)
        return np.broadcast_to(joined(upper(c, position), lower(c, position, w)), (N_q, N_k))

    return wrong


def _window_by_slices(N_q, N_k, w, lowest=-INF):
    mask = np.zeros((N_q, N_k), bool)
    for r in range(N_q):
        position = r + N_k - N_q
        mask[r, int(max(lowest, position - w + 1)) : position + 1] = True
    return mask


WINDOW = [
    *_mistakes(
        _window,
        ("the window is aligned top left: query r has the position r + N_k - N_q", {"at": lambda r, past: r}),
        ("N_k - N_q has the wrong sign: query r has the position r + N_k - N_q", {"at": lambda r, past: r - past}),
        ("the mask is the wrong way round: True is where a query sees a key", {"joined": lambda u, l: ~(u & l)}),
        (
            "every key is seen: a key must fulfil both conditions, joined by & and not by |",
            {"joined": lambda u, l: u | l},
        ),
        ("later keys are seen: c is at most the position of the query", {"upper": lambda c, at: c > at - INF}),
        (
            "the window is one key further left: a query sees its own position too",
            {"upper": lambda c, at: c < at, "lower": lambda c, at, w: c >= at - w},
        ),
        ("a query does not see its own position: c may be equal to it", {"upper": lambda c, at: c < at}),
        ("the window has no lower end: c must be more than position - w", {"lower": lambda c, at, w: c > -w}),
        ("the window has w + 1 keys: c is more than position - w", {"lower": lambda c, at, w: c >= at - w}),
        ("the window has w - 1 keys: its own position is one of w", {"lower": lambda c, at, w: c > at - w + 1}),
        (
            "later keys are seen: w keys on either side, where only those up to the position count",
            {"upper": lambda c, at: c > at - INF, "lower": lambda c, at, w: abs(c - at) < w},
        ),
        (
            "the window begins at the position of the query: it ends there, and holds the w keys before",
            {"upper": lambda c, at: c >= at, "lower": lambda c, at, w: c < at + w},
        ),
        (
            "w keys before and w after are seen: the window is the w keys up to the position, itself one of them",
            {"upper": lambda c, at: c > at - INF, "lower": lambda c, at, w: abs(c - at) <= w},
        ),
        ("all windows hold the first w keys: each moves along with its query", {"lower": lambda c, at, w: c < w}),
    ),
    Mistake(
        "rows and columns are exchanged: a row for each query, a column for each key",
        lambda N_q, N_k, w: _window()(N_q, N_k, w).T,
    ),
    Mistake("a slice that begins below 0 counts from the end: let it begin at max(0, ...)", _window_by_slices),
    Mistake(
        "a slice that ends below 0 counts from the end: let it end at max(0, ...)",
        lambda *sizes: _window_by_slices(*sizes, lowest=0),
    ),
]

SIZES = (  # N_q, N_k, d, and by how much Q is multiplied
    ("one query and one key", 1, 1, 2, 1),
    ("as many queries as keys", 3, 3, 2, 1),
    ("fewer queries than keys", 2, 5, 3, 1),
    ("more queries than keys, so that some see none", 5, 3, 4, 1),
    ("one key and three queries", 3, 1, 4, 1),
    ("scores of hundreds", 5, 7, 4, 1000),
)


@exercise(title="Causal attention", minutes=20, difficulty="medium")
def causal_attention(answer):
    rng = np.random.default_rng(3)
    given = []
    for words, N_q, N_k, d, times in SIZES:
        Q, K, V = (rng.normal(size=(N, d)).round(2) for N in (N_q, N_k, N_k))
        given.append((words, Q * times, K, V))
    Q, K = np.array([[0.0, 0], [800, 0], [1600, 0]]), -1 - rng.random((4, 2)).round(3) / 100
    K[3] = 1  # hidden from all but the last query, and above all that the others see
    given.append(("rows whose scores lie far apart", Q, K, rng.random((4, 2)).round(2)))
    given.append(("inputs of fp32", *(rng.normal(size=(N, 5)).astype(np.float32) for N in (4, 6, 6))))
    cases = []
    for words, *inputs in given:
        O = naive.attention(*(X.astype(float) for X in inputs), causal=True).O
        cases.append(Case(words, tuple(inputs), O, 1e-5 if inputs[0].dtype == np.float32 else 1e-9))
    return _examine(answer, cases, CAUSAL, _has_dtype_of_Q)


def _has_dtype_of_Q(O, Q, *_):
    if not isinstance(O, np.ndarray):
        return f"returns {describe_value(O)}: make an array of it"
    if O.dtype != Q.dtype:
        return f"O is {O.dtype} where Q is {Q.dtype}: np.sqrt(d) makes all fp64; d ** 0.5 does not"
    return ""


def _sum(P):
    return P.sum(axis=1, keepdims=True)


def _tri(shift=lambda past: past):
    return lambda N_q, N_k: np.tri(N_q, N_k, k=shift(N_k - N_q), dtype=bool)


BOTTOM_RIGHT = _tri()


def _causal(
    scores=lambda Q, K, V: Q @ K.T,
    values=lambda K, V: V,
    scale=lambda N_q, N_k, d: d**-0.5,
    seen=BOTTOM_RIGHT,
    hide=lambda S, seen: np.where(seen, S, -INF),
    top=lambda S: S.max(axis=1, keepdims=True),
    after=lambda P, seen: P,
    total=_sum,
    divisor=lambda l: np.where(l == 0, 1, l),
):
    """Return causal attention with some of its parts exchanged; divisor: what is made of l."""

    def wrong(Q, K, V):
        visible = seen(len(Q), len(K))
        S = hide(scores(Q, K, V) * scale(*np.shape(Q @ K.T), Q.shape[1]), visible)
        m = top(S)
        P = after(np.exp(S - np.where(m == -INF, 0, m)), visible)
        return P / divisor(total(P)) @ values(K, V)

    return wrong


def _as_is(S, seen):
    return S


def _by_slices(empty):
    """Return causal attention row by row over K[:n], n perhaps below 0; empty(d) is O where the slice is empty."""

    def wrong(Q, K, V):
        O = []
        for r in range(len(Q)):
            n = r + 1 + len(K) - len(Q)
            x = K[:n] @ Q[r] * Q.shape[1] ** -0.5
            p = np.exp(x - x.max(initial=-INF))
            O.append(p @ V[:n] / p.sum() if len(x) else empty(Q.shape[1]))
        return np.array(O)

    return wrong


def _bare(Q, K):
    return np.where(BOTTOM_RIGHT(len(Q), len(K)), Q @ K.T * Q.shape[1] ** -0.5, 0)


CAUSAL = [
    *_mistakes(
        _causal,
        (
            "K and V are exchanged: scores are made with K, and V is what is averaged",
            {"scores": lambda Q, K, V: Q @ V.T, "values": lambda K, V: K},
        ),
        ("the scores are made with V: S is scale * Q K^T", {"scores": lambda Q, K, V: Q @ V.T}),
        ("K is averaged in place of V: O is P V", {"values": lambda K, V: K}),
        ("the scale is missing: divide Q K^T by sqrt(d)", {"scale": lambda N_q, N_k, d: 1.0}),
        ("the scale is 1 / d: it is 1 / sqrt(d)", {"scale": lambda N_q, N_k, d: 1 / d}),
        ("Q K^T is multiplied by sqrt(d): divide by it", {"scale": lambda N_q, N_k, d: d**0.5}),
        (
            "the scale is made of N_q: d is Q.shape[1], the number of columns",
            {"scale": lambda N_q, N_k, d: N_q**-0.5},
        ),
        (
            "the scale is made of N_k: d is Q.shape[1], the number of columns",
            {"scale": lambda N_q, N_k, d: N_k**-0.5},
        ),
        (
            "all visible keys weigh the same: their weights are the softmax of the scores",
            {"scale": lambda N_q, N_k, d: 0.0},
        ),
        ("the mask is aligned top left: query r sees key c if c <= r + N_k - N_q", {"seen": _tri(lambda past: 0)}),
        (
            "the mask is shifted the wrong way: query r sees key c if c <= r + N_k - N_q",
            {"seen": _tri(lambda past: -past)},
        ),
        (
            "a query does not see its own position: c may be equal to r + N_k - N_q",
            {"seen": _tri(lambda past: past - 1)},
        ),
        ("each query sees one key too many: c is at most r + N_k - N_q", {"seen": _tri(lambda past: past + 1)}),
        (
            "the mask is the wrong way round: the keys that a query sees are hidden",
            {"seen": lambda N_q, N_k: ~np.tri(N_q, N_k, k=N_k - N_q, dtype=bool)},
        ),
        (
            "each query sees the keys from its own position on: hide these, and show those before",
            {"seen": lambda N_q, N_k: ~np.tri(N_q, N_k, k=N_k - N_q - 1, dtype=bool)},
        ),
        ("the maximum is not subtracted: exp overflows or underflows", {"top": lambda S: np.zeros((len(S), 1))}),
        (
            "the mask is applied after the softmax, so rows do not add up to 1: hide scores before it",
            {"hide": _as_is, "after": lambda P, seen: P / _sum(P) * seen, "total": lambda P: np.ones((len(P), 1))},
        ),
        (
            "the maximum counts hidden scores, and what is seen may underflow: hide them before it",
            {"hide": _as_is, "after": lambda P, seen: P * seen},
        ),
        ("the causal mask is missing: later keys are seen", {"hide": _as_is}),
        (
            "hidden scores become 0, which softmax counts like any score: make them -inf",
            {"hide": lambda S, seen: np.where(seen, S, 0)},
        ),
        (
            "a row that sees no key takes the hidden scores, as -1e6 added to all changes nothing: give O = 0",
            {"hide": lambda S, seen: S - 1e6 * ~seen},
        ),
        (
            "a row that sees no key takes the mean of all values, as all its scores are alike: give O = 0",
            {"hide": lambda S, seen: np.where(seen, S, -1e6)},
        ),
        (
            "0 times -inf is nan: choose with np.where(seen, S, -np.inf), do not multiply",
            {"hide": lambda S, seen: S + (1 - seen) * -INF},
        ),
        (
            "one maximum is taken for all rows, and lower rows underflow: take that of each row",
            {"top": lambda S: S.max(keepdims=True)},
        ),
        (
            "softmax is taken over axis 0, the queries: it goes along each row, axis 1",
            {"top": lambda S: S.max(axis=0), "total": lambda P: P.sum(axis=0)},
        ),
        (
            "the maximum is taken over axis 0, the queries: each row has its own, axis 1",
            {"top": lambda S: S.max(axis=0)},
        ),
        (
            "the sum l is taken over axis 0, the queries: each row has its own, axis 1",
            {"total": lambda P: P.sum(axis=0)},
        ),
        ("P is divided by the sum of all rows: each row has its own l", {"total": lambda P: P.sum(keepdims=True)}),
        (
            "the division by l is missing: the weights of a row add up to 1",
            {"total": lambda P: np.ones((len(P), 1))},
        ),
        ("nan for rows that see no key, by -inf - (-inf) or 0 / 0: give O = 0", {"divisor": lambda l: l}),
    ),
    *(
        Mistake("K[:n] with n below 0 counts from the end: a row that sees no key needs n = 0", made)
        for made in (_by_slices(np.zeros), _by_slices(lambda d: np.full(d, np.nan)))
    ),
    Mistake("O stays 0: fill it with P V", lambda Q, K, V: np.zeros_like(Q)),
    Mistake("the softmax is missing: O is made of the scores themselves", lambda Q, K, V: _bare(Q, K) @ V),
]
