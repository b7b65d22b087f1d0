"""The exercises of chapter 09. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import numpy as np

from flashlib.checks.engine import drawn
from flashlib.checks.engine.examine import Case, Finding, examine
from flashlib.checks.engine.exercise import exercise
from flashlib.checks.engine.program import Program
from flashlib.checks.harness.strided import Out, Strided, memory, strides_of

INF = np.inf
NAMES = {"np": np, "memory": memory, "strides_of": strides_of}
BLOCKS = tuple(f"BLOCK = {size}" for size in (16, 64, 128, 256, 512, 1024))

VECTOR = """
def vector(x, {parameters}):
    N = len(x)
    BLOCK = 32
    written = np.full(N, np.nan)
    for program in range(-(-N // BLOCK)):
        start = program * BLOCK
        n = start + np.arange(BLOCK)
        n = n[n < N]
        written[n] = {value}
    return written
"""
SUM = "memory(x)(n * strides_of(x)[0]) + memory(y)(n * strides_of(y)[0])"
ADD = Program(VECTOR.format(parameters="y, out", value=SUM), NAMES)
SCALE_EXP = Program(VECTOR.format(parameters="y, scale", value="np.exp(x[n] * scale)"), NAMES)


@exercise(title="A masked vector add", minutes=10, difficulty="easy", program=ADD, variants=BLOCKS)
def add(answer, known):
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    sizes = (1, 1, 1, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 3, 1), (32, 1, 1, 1), (40, 3, 2, 1), (LONG, 1, 1, 1)
    apart = (3, 1, 1, 2), (33, 2, 1, 3), (0, 1, 1, 1)
    first, then = ([_vectors(rng, *size) for size in group] for group in (sizes, apart))
    return examine(launched(answer, _not_copied), [first, then + drawn.cases(_any_vectors)], known)


def _vectors(rng, N, step_x, step_y, step_out):
    x, y = _fp32(rng.normal(size=(2, N)).round(2))
    arguments = Strided(x, (step_x,)), Strided(y, (step_y,)), Out((N,), (step_out,))
    return Case(f"N = {N}, strides {step_x}, {step_y} and {step_out}", arguments, x + y, 1e-6)


def _any_vectors(rng):
    return _vectors(rng, int(rng.integers(1, 100)), *map(int, rng.integers(1, 8, 3)))


def _fp32(x):
    """Return numbers that fp32 has, in fp64."""
    return np.asarray(x, np.float32).astype(np.float64)


def _not_copied(watch, x, y, out):
    copied = [name for name, n in [*watch.read.items()][:2] if watch.sees and not n] + watch.after
    return Finding("copied", name=copied[0]) if copied and len(x) else _one_block(watch, len(x))


def _one_block(watch, N):
    """Return the Finding that a long vector is one block, or None."""
    places = max(watch.widest.values())
    return Finding("one_block", places=places, N=N) if watch.sees and places >= N > 256 else None


@exercise(title="Scale and exponentiate", minutes=10, difficulty="easy", program=SCALE_EXP, variants=BLOCKS)
def scale_exp(answer, known):
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    sizes = (1, 0.5), (3, 0.5), (32, 2), (33, 0.5), (LONG, -0.25)
    cases = [_exponents(rng, *size) for size in sizes] + drawn.cases(_any_exponents)
    return examine(launched(answer, _in_one_go), cases, known)


def _exponents(rng, N, scale):
    x = _fp32(rng.uniform(-3, 3, N).round(2))
    return Case(f"{N} elements, scale {scale}", (x, Out((N,)), scale), np.exp(scale * x), 3e-6)


def _any_exponents(rng):
    return _exponents(rng, int(rng.integers(1, 100)), float(rng.integers(1, 40) * rng.choice([-1, 1]) / 16))


def _in_one_go(watch, x, y, scale):
    x_read, y_read = watch.read.values()
    if watch.after or (watch.sees and (x_read < len(x) or y_read or watch.others >= max(len(x), 32))):
        return Finding("two_steps")
    return _one_block(watch, len(x))


CAUSAL_SOFTMAX = """
def causal_softmax(S, P):
    N = P.shape[0]
    step_s, step_p = strides_of(S)[0], strides_of(P)[0]
    BLOCK = 1 << (N - 1).bit_length()
    r, c = np.ogrid[:N, :BLOCK]
    block = memory(S)(r * step_s + c).astype(np.float32)
    seen = c <= r
    other = -np.inf
    x = np.where(seen, block, other)
    m = x.max(axis=1, keepdims=True)
    p = np.exp(x - m)
    l = p.sum(axis=1, keepdims=True)
    w = p / l
    stored = (c < N) & (r < N)
    P = np.full((N, max(N, BLOCK)), np.nan)
    P[:, :BLOCK] = np.where(stored, w, np.nan)
    return P[:, :N]
"""
CAUSAL_SOFTMAX = Program(CAUSAL_SOFTMAX, NAMES)


@exercise(title="A causal softmax", minutes=20, difficulty="medium", program=CAUSAL_SOFTMAX)
def causal_softmax(answer, known):
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    first = [
        _square(rng, "one row", 1),
        _square(rng, "two rows", 2),
        _square(rng, "four rows", 4),
        _square(rng, "five rows", 5),
        _square(rng, "five rows with scores far below 0", 5, size=100, offset=-1000),
        _square(rng, "five rows with large scores", 5, size=100),
        _square(rng, "rows of S that lie apart", 3, S_apart=4),
        _square(rng, "rows of P that lie apart", 3, P_apart=4),
        _square(rng, "16 rows", 16),
        _square(rng, "17 rows that lie apart", 17, size=100, S_apart=5, P_apart=2),
    ]
    if LONG > 1024:
        first.append(_square(rng, "1100 rows", 1100))
    then = [_square(rng, "scores near -3e9", 3, size=1e9, offset=-3e9), *drawn.cases(_any_square, 2)]
    return examine(launched(answer, _block_of_row), [first, then], known)


def _square(rng, words, N, size=1.0, offset=0.0, S_apart=0, P_apart=0):
    S = rng.normal(size=(N, N)).round(2) * size + offset
    if N > 1:
        S[0, 1] = S.max() + size  # hidden, and the largest
    S = _fp32(S)
    x = np.where(np.tri(N) > 0, S, -INF)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    arguments = Strided(S, (N + S_apart, 1)), Out((N, N), (N + P_apart, 1))
    return Case(words, arguments, p / p.sum(axis=1, keepdims=True), 1e-5)


def _any_square(rng):
    N, *apart = map(int, rng.integers((1, 0, 0), (16, 9, 9)))
    return _square(rng, f"{N} rows", N, float(rng.choice([1, 30])), 0.0, *apart)


def _block_of_row(watch, S, P):
    N, places = len(S), max(watch.widest.values())
    return Finding("block", places=places, N=N) if N > 8 and places > 1 << (N - 1).bit_length() else None


ROW_MAX = """
def row_max(X, m):
    rows, N = X.shape
    step = strides_of(X)[0]
    BLOCK = 16
    other = -np.inf
    largest = np.full(rows, -np.inf, np.float32)
    for start in range(0, N, BLOCK):
        c = start + np.arange(BLOCK)
        block = memory(X)(np.arange(rows)[:, None] * step + c)
        x = np.where(c < N, block, other).astype(np.float32)
        largest = np.maximum(largest, np.fmax.reduce(x, axis=1))  # a nan counts for nothing in tl.max
    return largest
"""
ROW_MAX = Program(ROW_MAX, NAMES)
UP_TO_256 = BLOCKS[:4]  # in a case, 256 scores fill each of these blocks: there `other` changes nothing


@exercise(title="The maximum of each row", minutes=10, difficulty="easy", program=ROW_MAX, variants=UP_TO_256)
def row_max(answer, known):
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    cases = [
        _maxima(rng, "one score", 1, 1),
        _maxima(rng, "rows of 3 scores", 2, 3),
        _maxima(rng, "rows of 16 scores", 2, 16),
        _maxima(rng, "rows of 17 scores", 3, 17),
        _maxima(rng, "scores far below 0", 2, 3, lambda X: X - 500),
        _maxima(rng, "scores that grow", 2, 40, lambda X: X + np.arange(40) // 16 * 9),
        _maxima(rng, "scores that fall", 2, 40, lambda X: X - np.arange(40) // 16 * 9),
        _maxima(rng, "rows that lie apart", 3, 5, apart=7),
        _maxima(rng, "a long row of scores that grow", 1, LONG, lambda X: X + np.arange(LONG)),
        _maxima(rng, "256 scores far below 0", 1, 256, lambda X: X - 500),
        _maxima(rng, "a row of -inf", 3, 21, lambda X: np.where([[False], [True], [False]], -INF, X)),
        _maxima(rng, "scores near -3e9", 2, 3, lambda X: X * 1e9 - 3e9),
    ]
    return examine(launched(answer, _once_in_blocks), cases + drawn.cases(_any_maxima), known)


def _maxima(rng, words, rows, N, change=lambda X: X, apart=0):
    X = _fp32(change(rng.normal(size=(rows, N)).round(2) * 2))
    return Case(words, (Strided(X, (N + apart, 1)), Out((rows,))), X.max(axis=1), 1e-6)


def _any_maxima(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 100, 9)))
    offset = rng.choice([-200, 200])
    return _maxima(rng, f"{rows} rows of {N} scores", rows, N, lambda X: X * 10 + offset, apart)


ONLINE_BLOCK = """
def online_block(X, m, l, m_new, l_new):
    rows, N = X.shape
    step = strides_of(X)[0]
    BLOCK = 16
    other = -np.inf
    m_old, l_old = m.astype(np.float32), l.astype(np.float32)
    c = np.arange(BLOCK)
    block = memory(X)(np.arange(rows)[:, None] * step + c)
    x = np.where(c < N, block, other).astype(np.float32)
    m_new = np.maximum(m_old, np.fmax.reduce(x, axis=1))  # a nan counts for nothing in tl.max
    shift = np.where(m_new == -np.inf, 0, m_new)
    alpha = np.exp(m_old - shift)
    p = np.exp(x - shift[:, None])
    l_new = alpha * l_old + p.sum(axis=1)
    return m_new, l_new
"""
ONLINE_BLOCK = Program(ONLINE_BLOCK, NAMES)
NO_GUARD = "shift = m_new"
STATE = "m_new", "l_new"


@exercise(title="One more block", minutes=10, difficulty="medium", program=ONLINE_BLOCK, variants=(NO_GUARD,))
def online_block(answer, known):
    from flashlib.checks.harness.launches import launched

    rng = np.random.default_rng(0)
    finite = [
        _block(rng, "one row of 16 scores", 1, 16),
        _block(rng, "three rows of 16 scores", 3, 16),
        _block(rng, "rows of 5 scores", 2, 5),
        _block(rng, "a first block, with m = -inf and l = 0 before it", 2, 16, first=True),
        _block(rng, "rows of 5 scores far below 0", 2, 5, lambda X: X - 500, at=-500),
        _block(rng, "scores above those before", 2, 16, lambda X: X + 20),
        _block(rng, "scores below those before", 2, 16, lambda X: X - 20),
        _block(rng, "scores near 1000", 2, 16, lambda X: 500 * X, at=500),
        _block(rng, "rows that lie apart", 3, 5, apart=7),
    ]
    hidden = [
        _block(rng, "a block of -inf", 2, 7, lambda X: X - INF),
        _block(rng, "a first block of -inf", 2, 16, lambda X: X - INF, first=True),
        _block(rng, "scores near -3e9", 2, 3, lambda X: X * 1e9 - 3e9, at=-3e9),
    ]
    cases = [finite, hidden + drawn.cases(_any_block)]
    return examine(launched(answer), cases, known, outputs=STATE)


def _block(rng, words, rows, N, change=lambda X: X, *, at=0.0, first=False, apart=0):
    """Return the Case of a block of N scores, and of m and l of the scores before it; m is near `at`."""
    X = _fp32(change(rng.normal(size=(rows, N)).round(2) * 2))
    m, l = _fp32(at + rng.normal(size=rows).round(2) * 2), _fp32(1 + rng.random(rows).round(2) * 9)
    if first:
        m, l = np.full(rows, -INF), np.zeros(rows)
    m_new = np.maximum(m, X.max(axis=1))
    shift = np.where(m_new == -INF, 0, m_new)
    l_new = l * np.exp(m - shift) + np.exp(X - shift[:, None]).sum(axis=1)
    arguments = Strided(X, (N + apart, 1)), m, l, Out((rows,)), Out((rows,))
    return Case(words, arguments, (m_new, l_new), 1e-6)


def _any_block(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 17, 9)))
    hidden = rng.random((rows, N)) < rng.choice([0, 0.3, 0.99])
    words = f"{rows} rows of {N} scores"
    return _block(rng, words, rows, N, lambda X: np.where(hidden, -INF, X * 3), apart=apart)


ROW_LSE = """
def row_lse(X, lse):
    rows, N = X.shape
    step = strides_of(X)[0]
    BLOCK = 16
    other = -np.inf
    state = np.full(rows, -np.inf, np.float32), np.zeros(rows, np.float32)
    m, l = state
    for start in range(0, N, BLOCK):
        c = start + np.arange(BLOCK)
        x = memory(X)(np.arange(rows)[:, None] * step + c)
        x = np.where(c < N, x, other).astype(np.float32)
        m_old = m
        m = np.maximum(m_old, x.max(axis=1))
        shift = np.where(m == -np.inf, 0, m)
        alpha = np.exp(m_old - shift)
        p = np.exp(x - shift[:, None])
        l = alpha * l + p.sum(axis=1)
    return m + np.log(l)
"""
ROW_LSE = Program(ROW_LSE, NAMES)
OFTEN = "return m + np.log(np.where(l == 0, 1, l))", "shift = m", *BLOCKS


@exercise(title="Log-sum-exp of each row", minutes=20, difficulty="medium", program=ROW_LSE, variants=OFTEN)
def row_lse(answer, known):
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    finite = [
        _rows(rng, "one score", 1, 1),
        _rows(rng, "rows of 3 scores", 2, 3),
        _rows(rng, "rows of 16 scores", 2, 16),
        _rows(rng, "rows of 17 scores", 3, 17),
        _rows(rng, "scores far below 0", 2, 3, lambda X: X - 500),
        _rows(rng, "scores that grow", 2, 40, lambda X: X + np.arange(40) // 16 * 4),
        _rows(rng, "scores that fall", 2, 40, lambda X: X - np.arange(40) // 16 * 4),
        _rows(rng, "scores near 1000", 2, 40, lambda X: 500 * X),
        _rows(rng, "rows that lie apart", 3, 5, apart=7),
        _rows(rng, "a long row", 1, LONG),
    ]
    hidden = [
        _rows(rng, "a row of -inf", 3, 5, lambda X: np.where([[False], [True], [False]], -INF, X)),
        _rows(rng, "16 scores of -inf", 1, 16, lambda X: X - INF),
        _rows(rng, "first scores of -inf", 2, 23, lambda X: np.where(np.arange(23) < 18, -INF, X)),
        _rows(rng, "last scores of -inf", 2, 40, lambda X: np.where(np.arange(40) < 18, X, -INF)),
        _rows(rng, "scores near -3e9", 2, 3, lambda X: X * 1e9 - 3e9),
    ]
    return examine(launched(answer, _once_in_blocks), [finite, hidden + drawn.cases(_any_rows)], known)


def _rows(rng, words, rows, N, change=lambda X: X, apart=0):
    X = _fp32(change(rng.normal(size=(rows, N)).round(2) * 2))
    m = X.max(axis=1, initial=-INF)
    l = np.exp(X - np.where(m == -INF, 0, m)[:, None]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return Case(words, (Strided(X, (N + apart, 1)), Out((rows,))), m + np.log(l), 1e-6)


def _any_rows(rng):
    rows, N, apart = map(int, rng.integers((1, 1, 0), (5, 100, 9)))
    hidden = rng.random((rows, N)) < rng.choice([0, 0.3, 0.99])
    offset = rng.choice([-200, 200])  # away from 0, near which the error of lse is large beside it
    words = f"{rows} rows of {N} scores"
    return _rows(rng, words, rows, N, lambda X: np.where(hidden, -INF, X * 10 + offset), apart)


def _once_in_blocks(watch, X, lse):
    rows, N = X.shape
    if not watch.sees or N <= 256:
        return None
    if max(watch.widest.values()) >= N:
        return Finding("row_at_once")
    return Finding("read_again") if max(watch.read.values()) > 1.5 * rows * N else None
