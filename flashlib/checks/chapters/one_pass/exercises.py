"""The exercises of this chapter."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.checks.harness.metered import measured_memory, read_once
from flashlib.softmax import State, summarise_rows

INF = np.inf
EXACT = 1e-13  # relative error: less than if a weight of exp(-25) is left out


@exercise(title="The output so far", minutes=15, difficulty="medium", optional=True)
def normalised(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    rows = (
        ("one key", [0.5]),
        ("two keys, the second score larger", [1.0, 2.0]),
        ("two keys, the second score smaller", [2.0, 1.0]),
        ("two keys, the scores equal", [1.0, 1.0]),
        ("four keys", [1.0, 2.0, 4.0, 3.0]),
        ("a masked key after others", [1.0, -INF, 2.0]),
        ("a masked key before others", [-INF, 1.0, 3.0]),
        ("no key that is seen", [-INF, -INF]),
        ("scores that rise by 1000", [-1000.0, 0.0, 1000.0, 1000.5]),
        ("scores that fall by 1000", [1000.5, 1000.0, 0.0, -1000.0]),
        ("scores near -1e6", [-1e6, -1e6, 1 - 1e6]),
        ("no keys", []),
    )
    cases = [_normalised(rng, words, np.array(x)) for words, x in rows]
    cases += [_normalised(rng, "values that begin with 0", np.array([1.0, 2.0, 1.5, 0.5]), zeros=2)]
    low = np.array([-2e12, -2e12, 1 - 2e12])
    cases += [_normalised(rng, "scores near -2e12", low)._replace(tolerance=1e-3)]  # such an lse has so few digits
    cases += [_normalised(rng, "one column", np.array([1.0, -INF, 2.0]), d=1)]
    cases += [_normalised(rng, "a maximum of 0, then 1", np.array([0.0, -1.0, 1.0]))]
    far = np.array([0.0, -25.0]), np.array([0.0, 25.0])
    cases += [_normalised(rng, "scores 25 apart", x)._replace(tolerance=EXACT) for x in far]
    read = read_once(answer, {0: "x", 1: "V"}, at_most=lambda x, V: len(x))
    return examine(read, cases + random_cases.cases(_any_normalised), known)


def _normalised(rng, words, x, d=2, zeros=0):
    V = rng.normal(size=(len(x), d)).round(1)
    V[:zeros] = 0
    outputs = [_attention(x[: j + 1], V[: j + 1]) for j in range(len(x))]
    return Case(words, (x, V), np.array(outputs).reshape(len(x), d))


def _any_normalised(rng):
    N, d = rng.integers(1, 40), rng.integers(1, 6)
    x = np.where(rng.random(N) < 0.2, -INF, rng.normal(size=N).round(1) * 10.0 ** rng.integers(0, 3))
    return _normalised(rng, f"{N} scores, V of {d} columns", x, d)


def _attention(x, V):
    """Return softmax(x) V, 0 if all scores are -inf."""
    return update.finished(summarise_rows(x[None], V))[0][0]


BLOCK_STEP = update.program("my_block_step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale)", "seen = True")


@exercise(title="One step for a block of rows", minutes=15, difficulty="medium", program=BLOCK_STEP)
def block_step(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(35)
    fixed = [
        _block(rng, "a first block of 1 key", 1, 1, 1, 0),
        _block(rng, "a second block of 1 key", 1, 1, 1, 1),
        _block(rng, "a second block of 2 keys", 2, 2, 2, 2),
        _block(rng, "keys that are all equal", 2, 2, 2, 1, (1, 1), 0.5, alike=True),
        _block(rng, "3 rows and a third block of 5 keys", 3, 5, 4, 10),
        _block(rng, "a block of 1 key", 3, 1, 2, 4),
        _block(rng, "scores that rise by 1000", 2, 3, 2, 3, (-1000, 1000)),
        _block(rng, "scores that fall by 1000", 2, 3, 2, 3, (1000, -1000)),
        _block(rng, "equal keys, scores of -1e6", 2, 3, 2, 0, (0, -2e6), 0.5, alike=True),
        _block(rng, "equal keys, scores of -1e12", 2, 3, 2, 0, (0, -2e12), 0.5, alike=True),
        _block(rng, "2 keys after others whose values are 0", 2, 2, 2, 2, v=0),
        _block(rng, "equal keys, a maximum of 0 before", 2, 2, 2, 1, (0, 1), 0.5, alike=True),
        _block(rng, "equal keys, 25 below the earlier ones", 2, 2, 2, 2, (0, -50), 0.5, alike=True)._replace(
            tolerance=EXACT
        ),
        _block(rng, "equal keys, 25 above the earlier ones", 2, 2, 2, 2, (0, 50), 0.5, alike=True)._replace(
            tolerance=EXACT
        ),
        _block(rng, "rows that are 1800 apart", 3, 3, 2, 3, (6000, 6000), apart=True),
    ]
    cases = fixed + random_cases.cases(_any_block)
    return examine(update.uses_scale(answer, known), cases, known, outputs=State._fields)


def _block(rng, words, B_r, B_c, d, n_before, sizes=None, scale=0.3, *, alike=False, apart=False, v=1):
    """Return the Case of a block of B_c keys after others.

    sizes: of the earlier keys' scores and of its own. alike: whether all keys, and all queries, are the same.
    apart: whether the sizes apply only to the last row, and are far lower in the others. v: factor for the earlier
    values.
    """
    Q_i, K, V = (rng.normal(size=(n, d)).round(1) for n in (B_r, n_before + B_c, n_before + B_c))
    V[:n_before] *= v
    if alike:
        Q_i[:], K[:] = 1, 0
    if sizes:
        Q_i[:, 0] = np.linspace(-1, 1, B_r) if apart else 1
        K[:n_before, 0], K[n_before:, 0] = sizes
    S = Q_i @ K.T * scale
    before = summarise_rows(S[:, :n_before], V[:n_before])
    return Case(words, (Q_i, K[n_before:], V[n_before:], *before, scale), tuple(summarise_rows(S, V)))


def _any_block(rng):
    B_r, B_c, d, n_before = rng.integers(1, 9, size=4)
    return _block(rng, f"{B_r} rows and {B_c} keys", B_r, B_c, d, n_before, scale=rng.integers(1, 20) / 10)


BY_KEY = "blocks(len(K), B_c): -> blocks(len(K), 1):"


@exercise(
    title="One row in blocks",
    minutes=15,
    difficulty="medium",
    program=update.looped,
    variants=(BY_KEY,),
    optional=True,
)
def one_row(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(1)
    fixed = [
        _row(rng, "2 keys in one block", 2, 2),
        _row(rng, "4 keys in blocks of 2", 4, 2),
        _row(rng, "4 equal keys in blocks of 2", 4, 2, alike=0.5),
        _row(rng, "5 keys in blocks of 2", 5, 2),
        _row(rng, "3 keys in blocks of 8", 3, 8),
        _row(rng, "3 keys in blocks of 1", 3, 1),
        _row(rng, "scores near 900", 7, 3, 900),
        _row(rng, "scores near -900", 7, 3, -900),
        _row(rng, "scores that rise by 1800", 7, 3, np.linspace(-900, 900, 7)),
        _row(rng, "scores that fall by 1800", 7, 3, np.linspace(900, -900, 7)),
        _row(rng, "scores that rise by 1800 in a block", 3, 3, np.linspace(-900, 900, 3)),
        _row(rng, "scores that fall by 1800 in a block", 3, 3, np.linspace(900, -900, 3)),
        _row(rng, "equal keys, scores of -3e6", 5, 3, scale=0.5, alike=-2e6),
        _row(rng, "values that begin with 0", 5, 2, v=[[0], [0], [0], [1], [1]]),
        _row(rng, "4 keys in blocks of 2, a maximum of 0 first", 4, 2, alike=[[0], [0], [1], [1]]),
        _row(rng, "4 keys in blocks of 2, the last 25 below", 4, 2, alike=[[0], [0], [-28], [-28]])._replace(
            tolerance=EXACT
        ),
        _row(rng, "4 keys in blocks of 2, the last 25 above", 4, 2, alike=[[0], [0], [28], [28]])._replace(
            tolerance=EXACT
        ),
        _row(rng, "one column, one key", 1, 2, d=1),
        _row(rng, "five columns", 4, 3, d=5),
        _row(rng, "many keys", MANY, 30),
    ]
    return examine(_metered(answer, known), fixed + random_cases.cases(_any_row), known)


def _row(rng, words, N_k, B_c, offsets=0, scale=0.3, alike=None, v=1, d=3):
    """Return the Case of a query and N_k keys in blocks of B_c.

    offsets: added to the scores. alike: the number that fills all keys, or one for each key. v: factor for V.
    """
    q, K, V = (rng.normal(size=size).round(1) for size in (d, (N_k, d), (N_k, d)))
    q[-1], K[:, -1], V = 1, np.divide(offsets, scale), V * v
    if alike is not None:
        q[:], K[:] = 1, alike
    return Case(words, (q, K, V, B_c, scale), _attention(K @ q * scale, V))


MANY = 2400  # keys: enough to detect that something is kept for each of them


def _metered(answer, known):
    """Return answer with K and V in slow memory; it detects memory that grows with the number of keys."""
    read, right = (
        read_once(f, {1: "K", 2: "V"}, at_most=lambda q, K, V, B_c, scale: B_c)
        for f in (answer, known.program.function)
    )
    small = update.uses_scale(read, known)

    @wraps(answer)
    def run(q, K, V, B_c, scale):
        if len(K) < MANY:
            return small(q, K, V, B_c, scale)
        _, enough = measured_memory(lambda: right(q, K, V, B_c, scale), 0)
        enough += 6 * len(K)  # less than a number for each key
        result, most = measured_memory(lambda: read(q, K, V, B_c, scale), enough)
        return result._replace(found=result.found or (Finding("all_kept") if most > enough else None))

    return run


def _any_row(rng):
    N_k, B_c = rng.integers(1, 200), rng.integers(1, 70)
    scale = rng.integers(1, 20) / 10
    return _row(rng, f"{N_k} keys in blocks of {B_c}", N_k, B_c, rng.normal() * 100, scale)


@exercise(title="A factor that is never nan", minutes=5, difficulty="easy", optional=True)
def alpha(answer: Callable, known: Known) -> Verdict:
    pairs = (
        ("rows whose maximum grows and stays", [1.0, 2.0], [3.0, 2.0]),
        ("a row that has seen nothing before", [-INF, 1.0], [3.0, 1.5]),
        ("a row that still has seen nothing", [-INF, 1.0], [-INF, 1.5]),
        ("four rows", [-INF, 1.0, -INF, -5.0], [-INF, 3.0, 3.0, -5.0]),
        ("large numbers", [-2000.0, 1000.0, -INF], [2000.0, 1000.0, -INF]),
        ("numbers near -2e12", [-2e12, -2e12], [-2e12, 1 - 2e12]),
        ("maxima of 0", [0.0, 0.0, -1.0, -INF], [0.0, 1.0, 0.0, 0.0]),
        ("old maxima of 0", [0.0, 0.0], [1.0, 2.0]),
        ("small factors", [0.0, 1.0], [25.0, 40.0]),
        ("no rows", [], []),
    )
    cases = []
    for words, m_old, m in pairs:
        factors = [np.exp(a - b) if a > -INF else 0.0 for a, b in zip(m_old, m, strict=True)]
        cases.append(Case(words, (np.array(m_old), np.array(m)), np.array(factors)))
    return examine(answer, cases, known)
