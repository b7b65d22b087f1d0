"""The exercises of chapter 09. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

from functools import partial

import numpy as np

from flashlib.checks.examine import Case, Mistake, examine
from flashlib.checks.exercise import exercise

NOT_WRITTEN = "nan, or not written"
INF = np.inf
BLOCK = 32  # of the vectors
B_C = 16  # of the scores in row_lse


@exercise(title="A masked vector add", minutes=10, difficulty="easy")
def add(answer):
    from flashlib.checks.launches import Out, Strided, in_turn, launched

    rng = np.random.default_rng(0)
    cases = []
    for N, step_x, step_y, step_out in (
        (1, 1, 1, 1),
        (3, 1, 1, 1),
        (3, 2, 1, 1),
        (3, 1, 3, 1),
        (32, 1, 1, 1),
        (33, 1, 1, 1),
        (100, 3, 2, 1),
        (3, 1, 1, 2),
        (33, 2, 1, 3),
    ):
        x, y = rng.integers(1, 99, (2, N)) / 4
        arguments = Strided(x, (step_x,)), Strided(y, (step_y,)), Out((N,), (step_out,))
        cases.append(Case(f"N = {N}, strides {step_x}, {step_y} and {step_out}", arguments, x + y, 1e-6))
    return in_turn(launched(answer), (cases[:-2], cases[-2:]), ADD, nan=NOT_WRITTEN)


def _number_below(n, N, step):
    return n < N


def _add(x, y, out, value=np.add, steps=lambda *both: both, programs=None, first=None, seen=_number_below):
    """Return what a launch writes, nan where it writes nothing; a part that is exchanged makes it wrong.

    steps: the strides that it uses for x and y. programs: how many it starts for N. first: where a program starts.
    seen: the mask, given the numbers of elements, N and the stride of x.
    """
    from flashlib.checks.launches import memory, strides_of

    N, given = out.shape[0], [strides_of(z)[0] for z in (x, y)]
    step_x, step_y = steps(*given)
    written = np.full(N, np.nan)
    for program in range(programs(N) if programs else -(-N // BLOCK)):
        n = (first(program) if first else program * BLOCK) + np.arange(BLOCK)
        n = n[(n < N) & seen(n, N, given[0])]
        written[n] = value(memory(x)(n * step_x), memory(y)(n * step_y))
    return written


LIES_AT = "element n of {0} lies at {0}_ptr + n * {0}.stride(0)"
ROUND_UP = "the last elements are not written: the grid must round up, triton.cdiv(N, BLOCK)"
FIRST_BLOCK = (
    "only the first block is written: cdiv(N, BLOCK) programs, each with its block from program_id * BLOCK on"
)
OVERLAP = "the blocks overlap: program p starts at p * BLOCK, not at p"

ADD = [
    Mistake(sentence, partial(_add, **parts))
    for sentence, parts in (
        (f"the stride of x is not used: {LIES_AT.format('x')}", {"steps": lambda x, y: (1, y)}),
        (f"the stride of y is not used: {LIES_AT.format('y')}", {"steps": lambda x, y: (x, 1)}),
        (f"the strides of x and y are not used: {LIES_AT.format('x')}", {"steps": lambda x, y: (1, 1)}),
        ("the stride of x is used for y too: each vector has its own", {"steps": lambda x, y: (x, x)}),
        ("the strides of x and y are exchanged", {"steps": lambda x, y: (y, x)}),
        ("y is added to itself: load x from x_ptr", {"value": lambda x, y: y + y}),
        ("x is added to itself: load y from y_ptr", {"value": lambda x, y: x + x}),
        ("y is left out: out = x + y", {"value": lambda x, y: x}),
        ("x is left out: out = x + y", {"value": lambda x, y: y}),
        ("x and y are multiplied: out = x + y", {"value": np.multiply}),
        ("y is subtracted: out = x + y", {"value": np.subtract}),
        ("nothing is written", {"programs": lambda N: 0}),
        (ROUND_UP, {"programs": lambda N: N // BLOCK}),
        (FIRST_BLOCK, {"programs": lambda N: 1}),
        (OVERLAP, {"first": lambda program: program}),
        ("the last element is left out: the mask is n < N", {"seen": lambda n, N, step: n < N - 1}),
        (
            "the mask compares offsets in memory with N: compare the number of the element, n < N",
            {"seen": lambda n, N, step: n * step < N},
        ),
    )
]


@exercise(title="Scale and exponentiate", minutes=10, difficulty="easy")
def scale_exp(answer):
    from flashlib.checks.launches import Out, launched

    cases = []
    for N in (1, 3, 32, 33, 100):
        x = np.linspace(-3, 3, N).round(2)
        cases.append(Case(f"{N} elements", (x, Out((N,)), 0.5), np.exp(0.5 * x), 1e-5))
    return examine(launched(answer), cases, SCALE_EXP, nan=NOT_WRITTEN)


def _first(y, n):
    """Return y with nan from the n-th element on, as if it had not been written."""
    return np.where(np.arange(len(y)) < n, y, np.nan)


SCALE_EXP = (
    Mistake("the scale is missing: y = exp(x * scale)", lambda x, y, scale: np.exp(x)),
    Mistake("the exponential is missing: y = exp(x * scale)", lambda x, y, scale: x * scale),
    Mistake("the scale is added: y = exp(x * scale)", lambda x, y, scale: np.exp(x + scale)),
    Mistake("x is divided by scale: y = exp(x * scale)", lambda x, y, scale: np.exp(x / scale)),
    Mistake("the power is one of 2: y = exp(x * scale), tl.exp", lambda x, y, scale: np.exp2(x * scale)),
    Mistake("the scale comes after the exponential: y = exp(x * scale)", lambda x, y, scale: np.exp(x) * scale),
    Mistake(ROUND_UP, lambda x, y, scale: _first(np.exp(x * scale), len(x) // BLOCK * BLOCK)),
    Mistake(FIRST_BLOCK, lambda x, y, scale: _first(np.exp(x * scale), BLOCK)),
    Mistake(OVERLAP, lambda x, y, scale: _first(np.exp(x * scale), -(-len(x) // BLOCK) - 1 + BLOCK)),
    Mistake("nothing is written", lambda x, y, scale: _first(x, 0)),
)


@exercise(title="A causal softmax", minutes=20, difficulty="medium")
def causal_softmax(answer):
    from flashlib.checks.launches import Out, Strided, launched

    rng = np.random.default_rng(0)
    cases = []
    for words, N, size, S_apart, P_apart in (
        ("one row", 1, 1, 0, 0),
        ("two rows", 2, 1, 0, 0),
        ("four rows", 4, 1, 0, 0),
        ("five rows", 5, 1, 0, 0),
        ("five rows with scores far below 0", 5, -100, 0, 0),
        ("five rows with large scores", 5, 100, 0, 0),
        ("rows of S that lie apart", 3, 1, 4, 0),
        ("rows of P that lie apart", 3, 1, 0, 4),
        ("33 rows that lie apart", 33, 100, 5, 2),
    ):
        S = rng.integers(-16, 17, (N, N)) / 8 * abs(size)
        S += min(size, 0) * 10
        if N > 1:
            S[0, 1] = S.max() + abs(size)  # hidden, and the largest
        arguments = Strided(S, (N + S_apart, 1)), Out((N, N), (N + P_apart, 1))
        cases.append(Case(words, arguments, _tri(S), 1e-5))
    return examine(launched(answer), cases, CAUSAL_SOFTMAX, nan=NOT_WRITTEN)


def _softmax(S, axis=1):
    p = np.exp(S - S.max(axis=axis, keepdims=True))
    return p / p.sum(axis=axis, keepdims=True)


def _tri(S, axis=1):
    """Return the softmax of the scores on the diagonal and to the left of it."""
    return _softmax(np.where(np.tri(len(S)) > 0, S, -INF), axis)


def _no_maximum(S):
    p = np.exp(S)
    return p / p.sum(axis=1, keepdims=True)


def _up_to_own(r, c, N):
    return c <= r


def _causal(S, P, seen=_up_to_own, other=-INF, softmax=_softmax, after=None, written=None, step=None):
    """Return what a kernel with a program for each row writes; a part that is exchanged makes it wrong.

    seen: which columns of a block it takes. other: what the rest become. softmax: of the rows of the block.
    after: what it does to the result. written: which columns it stores. step: from row to row of S, given N.
    """
    from flashlib.checks.launches import memory, strides_of

    N = P.shape[0]
    r, c = np.ogrid[:N, : 1 << (N - 1).bit_length()]
    block = memory(S)(r * (step(N) if step else strides_of(S)[0]) + c).astype(
        np.float32
    )  # as wide as the kernel's
    p = softmax(np.where(seen(r, c, N), block, other))
    p = after(p) if after else p
    return np.where(written(r, c) if written else True, p, np.nan)[:, :N]


def _everywhere(r, c, N):
    return (c < N) & (r == r)


def _weights(S):
    return np.exp(S - S.max(axis=1, keepdims=True))


def _masked(p):
    return p * np.tri(*p.shape)


def _masked_and_divided(p):
    return _masked(p) / _masked(p).sum(axis=1, keepdims=True)


def _row_0_of_zeros(S):
    p = np.exp(S - np.where(S.max(axis=1) == -INF, 0, S.max(axis=1))[:, None])
    l = p.sum(axis=1, keepdims=True)
    return p / np.where(l == 0, 1, l)


def _multiplied(S, P):
    N, more = len(S), (1 << (len(S) - 1).bit_length()) - len(S)
    block = np.pad(np.asarray(S), ((0, 0), (0, more)), constant_values=-INF)
    return _softmax(block * np.tri(N, N + more))[:, :N]


SEES = "row r sees columns c <= r"
HIDDEN_0 = "hidden scores become 0: exp(0 - m) is a weight too, so give -inf as other"
OWN_COLUMN = "a row must see its own column too: the mask is offs <= row"
IN_MAXIMUM = (
    "hidden scores count in the maximum, and large ones leave nothing of the others: make them -inf before"
)

CAUSAL_SOFTMAX = [
    Mistake(sentence, partial(_causal, **parts))
    for sentence, parts in (
        (HIDDEN_0, {"other": 0}),
        (HIDDEN_0, {"other": 0, "after": _masked}),
        ("the maximum is not subtracted: large scores overflow, exp(s - max) does not", {"softmax": _no_maximum}),
        (f"the causal mask is missing: {SEES}", {"seen": _everywhere}),
        (
            f"there is no mask: {SEES}, and what lies past the row is no score",
            {"seen": lambda r, c, N: r + c >= 0},
        ),
        (OWN_COLUMN, {"seen": lambda r, c, N: c < r}),
        (OWN_COLUMN, {"seen": lambda r, c, N: c < r, "softmax": _row_0_of_zeros}),
        ("one column too many is seen: the mask is offs <= row", {"seen": lambda r, c, N: c <= r + 1}),
        (f"the mask is upside down: {SEES}", {"seen": lambda r, c, N: (c >= r) & (c < N)}),
        ("the division by the sum is missing: the weights of a row add up to 1", {"softmax": _weights}),
        (
            "hidden columns are not written: P is 0 there, so store all columns offs < N",
            {"written": lambda r, c: c <= r},
        ),
        (
            "the mask comes after the softmax: hidden scores count in the sum; make them -inf before",
            {"seen": _everywhere, "after": _masked},
        ),
        (IN_MAXIMUM, {"seen": _everywhere, "softmax": _weights, "after": _masked_and_divided}),
        ("the rows of S lie S.stride(0) apart, not N: pass the stride to the kernel", {"step": lambda N: N}),
        (
            "only row 0 is written: N programs, each with the row of its tl.program_id(0)",
            {"written": lambda r, c: r + 0 * c == 0},
        ),
    )
] + [
    Mistake(HIDDEN_0, _multiplied),
    Mistake("nothing is written", lambda S, P: np.full(P.shape, np.nan)),
    Mistake("S is read down its columns: S[row, c] lies at row * stride + c", lambda S, P: _tri(np.asarray(S).T)),
    Mistake("the softmax goes down the columns: each row is normalised", lambda S, P: _tri(np.asarray(S), axis=0)),
    Mistake("the weights of a row are all equal: they are exp(s - m) / l", lambda S, P: _tri(np.zeros(S.shape))),
    Mistake("the scores themselves are written: P is their softmax", lambda S, P: np.tril(np.asarray(S))),
]


@exercise(title="Log-sum-exp of each row", minutes=20, difficulty="medium")
def row_lse(answer):
    from flashlib.checks.launches import Out, Strided, launched

    rng = np.random.default_rng(0)
    cases = []
    for words, rows, N, apart, change in (
        ("one score", 1, 1, 0, lambda X: X),
        ("rows of 3 scores", 2, 3, 0, lambda X: X),
        ("rows of 16 scores", 2, 16, 0, lambda X: X),
        ("rows of 17 scores", 3, 17, 0, lambda X: X),
        ("scores far below 0", 2, 3, 0, lambda X: X - 500),
        ("scores that grow", 2, 40, 0, lambda X: X + np.arange(40) // 16 * 4),
        ("scores near 1000", 2, 40, 0, lambda X: 500 * X),
        ("a row of -inf", 3, 5, 0, lambda X: np.where([[False], [True], [False]], -INF, X)),
        ("first scores of -inf", 2, 23, 0, lambda X: np.where(np.arange(23) < 18, -INF, X)),
        ("rows that lie apart", 3, 5, 7, lambda X: X),
    ):
        X = change(rng.integers(-16, 17, (rows, N)) / 8)
        cases.append(Case(words, (Strided(X, (N + apart, 1)), Out((rows,))), _lse(X), 1e-6))
    return examine(launched(answer), cases, ROW_LSE, nan=NOT_WRITTEN)


def _lse(X, log=np.log):
    with np.errstate(all="ignore"):
        m = X.max(axis=1)
        return m + log(np.exp(X - np.where(m == -INF, 0, m)[:, None]).sum(axis=1))


def _end(m, l):
    return m + np.log(l)


def _guarded_end(m, l):
    return m + np.log(np.where(l == 0, 1, l))


def _online(
    X,
    lse,
    *,
    start=-INF,
    other=-INF,
    larger=np.maximum,
    shift=lambda m: np.where(m == -INF, 0, m),
    alpha=lambda m_old, shift: np.exp(m_old - shift),
    term=lambda x, shift: np.exp(x - shift),
    blocks=lambda N: -(-N // B_C),
    end=_end,
    stride=lambda stride, N: stride,
):
    """Return what a kernel that goes over rows in blocks of 16 writes; a part that is exchanged makes it wrong."""
    from flashlib.checks.launches import memory, strides_of

    rows, N = X.shape
    m, l = np.full(rows, start, np.float32), np.zeros(rows, np.float32)  # as wide as in the kernel
    first = np.arange(rows)[:, None] * stride(strides_of(X)[0], N)
    for j in range(blocks(N)):
        c = j * B_C + np.arange(B_C)
        x = np.where(c < N, memory(X)(first + c), other).astype(np.float32)
        m_old, m = m, larger(m, x.max(axis=1))
        safe = shift(m)
        l = alpha(m_old, safe) * l + term(x, safe[:, None]).sum(axis=1)
    return end(m, l)


def _one(m_old, shift):
    return np.ones_like(shift)


UNGUARDED = "a block of -inf gives nan, since -inf - (-inf) is nan: subtract 0 where m is -inf"
NO_MAXIMUM = "the maximum is not subtracted: large scores overflow, the terms of l are exp(x - m)"
FINITE = "m starts at {:g}: it starts at -inf, or scores far below count for nothing, and -inf gives no -inf"
LSE = "lse = m + log(l)"

ONLINE = (
    ("l is not rescaled when the maximum grows: multiply it by exp(m_old - m)", {"alpha": _one}),
    (NO_MAXIMUM, {"term": lambda x, shift: np.exp(x)}),
    (NO_MAXIMUM, {"term": lambda x, shift: np.exp(x), "end": _guarded_end}),
    (NO_MAXIMUM, {"term": lambda x, shift: np.exp(x), "alpha": _one, "end": lambda m, l: np.log(l)}),
    (f"lse is log(l) alone: {LSE}", {"end": lambda m, l: np.log(l)}),
    (f"lse is log(l) alone: {LSE}", {"end": lambda m, l: np.log(np.where(l == 0, 1, l))}),
    (f"lse is m alone: {LSE}", {"end": lambda m, l: m}),
    (f"lse is l alone: {LSE}", {"end": lambda m, l: l}),
    (f"lse is m + l: {LSE}", {"end": lambda m, l: m + l}),
    (f"the logarithm is to base 2: {LSE}, a natural one", {"end": lambda m, l: m + np.log2(l)}),
    (f"the sign is exchanged: {LSE}", {"end": lambda m, l: m - np.log(l)}),
    ("places past the end count as scores of 0: give -inf as other", {"other": 0}),
    ("m is that of the last block alone: take the larger of it and the m before", {"larger": lambda m, x: x}),
    *(
        (FINITE.format(start), {"start": start, "end": end})
        for start in (0, -1e4, -1e6, -1e9, -1e30)
        for end in (_end, _guarded_end)
    ),
    ("a row of -inf gives 0: its log-sum-exp is -inf", {"end": lambda m, l: np.where(l == 0, 0, _end(m, l))}),
    ("the last, shorter block is dropped: range(0, N, BLOCK) reaches it", {"blocks": lambda N: N // B_C}),
    ("only the first block is read: go on to the end of the row", {"blocks": lambda N: 1}),
    ("the rows of X lie X.stride(0) apart, not N: pass the stride to the kernel", {"stride": lambda _, N: N}),
    ("alpha is upside down: it is exp(m_old - m), at most 1", {"alpha": lambda m, shift: np.exp(shift - m)}),
)

ROW_LSE = (
    Mistake(UNGUARDED, partial(_online, shift=lambda m: m)),
    *(
        Mistake(words, partial(_online, **parts, **guard))
        for guard in ({}, {"shift": lambda m: m})
        for words, parts in ONLINE
    ),
    Mistake(
        "only lse[0] is written: a program for each row, which stores to lse_ptr + row",
        lambda X, lse: _first(_lse(np.asarray(X)), 1),
    ),
    Mistake(
        "all rows are written to lse[0]: each program stores to lse_ptr + row",
        lambda X, lse: _first(_lse(np.asarray(X))[::-1], 1),
    ),
    Mistake("nothing is written", lambda X, lse: np.full(lse.shape, np.nan)),
)
