"""The exercises of this chapter."""

from collections.abc import Callable
from functools import partial, wraps
from itertools import product

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.engine.equality import as_array, same
from flashlib.checks.engine.value_text import describe_value
from flashlib.checks.harness import loops, sizes, update
from flashlib.checks.harness.metered import MeteredArray, measured_memory
from flashlib.softmax import State, summarise_rows
from flashlib.tiled import is_hidden, is_visible
from flashlib.types import Step

INF = np.inf
SMALL = 1e-13  # relative error: less than if a weight of exp(-25) is left out
START = partial(update.start, dtype=np.float64)
LOOP = partial(loops.program, Step=Step, is_hidden=is_hidden, is_visible=is_visible, start=START)


@exercise(title="Q in the outer loop", minutes=20, difficulty="medium", program=LOOP)
def fa2(answer: Callable, known: Known) -> Verdict:
    return loops.examine(answer, "fa2", known)


@exercise(title="Which tiles are skipped?", minutes=10, difficulty="medium")
def skipped_tiles(answer: Callable, known: Known) -> Verdict:
    fixed = """
        1 1 1 1, 2 2 1 1, 4 4 2 2, 6 6 3 2, 5 5 2 2, 2 5 1 2, 5 2 2 1, 5 12 2 5, 12 5 5 2, 3 9 3 3, 3 4 8 2,
        9 4 2 16, 20001 2 20000 1, 2 20001 1 20000, 1200 1000 300 500
    """
    return examine(_a_set(answer), [*map(_skipped, sizes.rows(fixed)), *random_cases.cases(_any_tiles)], known)


def _skipped(size):
    """Return the Case of the tiles in which every score is hidden, found by checking each."""
    N_q, N_k, B_r, B_c = size
    seen = np.tri(N_q, N_k, N_k - N_q, dtype=bool)
    tiles = product(range(-(-N_q // B_r)), range(-(-N_k // B_c)))
    skipped = {(i, j) for i, j in tiles if not seen[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c].any()}
    return Case(f"N_q = {N_q}, N_k = {N_k}, tiles of {B_r} x {B_c}", size, skipped)


def _any_tiles(rng):
    return _skipped(tuple(int(rng.integers(1, most)) for most in (40, 40, 9, 9)))


def _a_set(answer):
    """Return answer with its result converted to a set of tuples of int; it detects a mask of all scores."""

    @wraps(answer)
    def run(*size):
        enough = max(100_000, size[0] * size[1] / 2)
        tiles, most = measured_memory(lambda: answer(*size), enough)
        if tiles is None:
            return None
        try:
            found = {(i, j) for i, j in (None if isinstance(tiles, np.ndarray) else tiles)}
            wrong = next((tile for tile in found if tile != tuple(map(int, tile))), None)
        except (TypeError, ValueError, OverflowError):
            raise Finding("no_set", given=describe_value(tiles)) from None
        if wrong:
            raise Finding("no_tile", i=wrong[0], j=wrong[1])
        floats = any(isinstance(i, float | np.floating) for tile in found for i in tile)
        problem = Finding("float") if floats and found == _skipped(size).expected else None
        return Measured(found, Finding("single_scores") if most > enough else problem)

    return run


LAST_TILE = update.program(
    "my_last_tile(Q_i, K_j, V_j, n, m_old, l_old, O_acc_old, scale)", "seen = np.arange(len(K_j)) < n"
)


@exercise(
    title="The last tile",
    minutes=10,
    difficulty="medium",
    program=LAST_TILE,
    variants=("shift = m",),
    optional=True,
)
def last_tile(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(35)
    fixed = [
        _padded(rng, "1 key of 2, padding of 0", 1, 2, 1, 1, 2, 0.0, 0.5),
        _padded(rng, "1 key of 2, padding of 0", 2, 2, 2, 1, 2, 0.0),
        _padded(rng, "1 key of 2, padding of 50", 2, 2, 2, 1, 2, 50.0),
        _padded(rng, "3 keys of 4, padding of -50", 3, 4, 3, 3, 4, -50.0),
        _padded(rng, "4 keys of 4", 3, 4, 3, 4, 4, 0.0),
        _padded(rng, "2 keys of 5 and none before", 3, 5, 2, 2, 0, 7.0),
        _padded(rng, "2 keys of 3, scores of -1e6", 2, 3, 1, 2, 2, 0.0, 0.5, (-2e6, -2e6)),
        _padded(rng, "2 keys of 3, scores of -2e12", 2, 3, 1, 2, 2, 0.0, 0.5, (-4e12, -4e12)),
        _padded(rng, "2 keys of 3, a maximum of 0 before", 2, 3, 1, 2, 2, 0.0, 0.5, (0, 2)),
        _padded(rng, "2 keys of 3, 25 below the earlier ones", 2, 3, 1, 2, 2, 50.0, 0.5, (0, -50))._replace(
            tolerance=SMALL
        ),
        _padded(rng, "2 keys of 3, 25 above the earlier ones", 2, 3, 1, 2, 2, 0.0, 0.5, (0, 50))._replace(
            tolerance=SMALL
        ),
        _padded(rng, "2 keys of 3, rows that are 1800 apart", 3, 3, 2, 2, 2, 0.0, 0.3, (6000, 6000), apart=True),
        _padded(rng, "2 keys of 4 after others whose values are 0", 2, 4, 3, 2, 3, 0.0, v=0),
    ]
    answer, cases = update.uses_scale(_loaded_whole(answer), known), fixed + random_cases.cases(_any_padded)
    return examine(answer, cases, known, outputs=State._fields)


def _padded(rng, words, B_r, B_c, d, n, n_before, padding, scale=0.3, keys=None, *, apart=False, v=1):
    """Return the Case of a tile in which n keys are real.

    keys: the earlier keys and its own, if Q_i is 1. apart: whether Q_i goes from -1 in the first row to 1. v:
    factor for the earlier values.
    """
    Q_i, K, V = (rng.normal(size=(size, d)).round(1) for size in (B_r, n_before + n, n_before + n))
    V[:n_before] *= v
    if keys:
        Q_i[:] = np.linspace(-1, 1, B_r)[:, None] if apart else 1
        K[:n_before], K[n_before:] = keys
    S = Q_i @ K.T * scale
    before = summarise_rows(S[:, :n_before], V[:n_before])
    K_j, V_j = np.full((2, B_c, d), padding)
    K_j[:n], V_j[:n] = K[n_before:], V[n_before:]
    return Case(words, (Q_i, K_j, V_j, n, *before, scale), tuple(summarise_rows(S, V)))


def _any_padded(rng):
    B_r, B_c, d, n_before = (int(rng.integers(1, most)) for most in (6, 9, 6, 6))
    n, padding = int(rng.integers(1, B_c + 1)), float(rng.integers(-20, 20))
    words = f"{n} keys of {B_c}, padding of {padding:g}"
    return _padded(rng, words, B_r, B_c, d, n, n_before, padding, rng.integers(1, 20) / 10)


class _Tile(np.ndarray):
    """A loaded tile, which notes in `parts` when a part of it or of its transpose is taken."""

    parts: list | None = None

    def __array_finalize__(self, other):
        self.parts = getattr(other, "parts", None)

    def __getitem__(self, key):
        part = super().__getitem__(key)
        if self.parts is not None and part.ndim == 2 and part.size < self.size:
            self.parts.append(part.shape)
        return part

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [x.view(np.ndarray) if isinstance(x, _Tile) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)


class _SlowTile(MeteredArray):
    """A tile in slow memory, which is loaded as a _Tile. parts: the shapes of parts taken from loaded tiles."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.parts = []

    def __getitem__(self, key):
        tile = super().__getitem__(key)
        if tile.shape != self.shape:
            return tile
        tile = tile.view(_Tile)
        tile.parts = self.parts
        return tile


def _loaded_whole(answer):
    """Return answer with K_j and V_j in slow memory; it detects parts that are not loaded, or used separately."""

    @wraps(answer)
    def run(Q_i, K_j, V_j, n, *arguments):
        tiles = {"K_j": _SlowTile(K_j), "V_j": _SlowTile(V_j)}
        after = answer(Q_i, *tiles.values(), n, *arguments)
        d = K_j.shape[1]
        for name, X in tiles.items():
            if (X.reads == 0).any():
                return Measured(after, Finding("part_loaded", name=name))
            if (n, d) in X.parts or (d, n) in X.parts:
                return Measured(after, Finding("part_taken", name=name))
        return Measured(after, None)

    return run


@exercise(title="The end of a row block", minutes=5, difficulty="easy")
def finish(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    rows = (
        ("one row", [0.5], [1.5]),
        ("two rows", [0.5, -2.0], [1.5, 3.0]),
        ("a row that has seen nothing", [0.5, -INF], [1.5, 0.0]),
        ("rows that have all seen nothing", [-INF, -INF], [0.0, 0.0]),
        ("large and small maxima", [1000.0, -1000.0, -INF], [2.0, 1.0, 0.0]),
        ("a maximum of -2e12", [-2e12], [1.5]),
        ("maxima of 0", [0.0, 1.0, 0.0], [2.5, 1.5, 4.0]),
        ("no rows", [], []),
    )
    cases = [_finished(rng, words, np.array(m), np.array(l)) for words, m, l in rows]
    cases += [_finished(rng, "rows whose values are all 0", np.array([0.5, -2.0]), np.array([1.5, 3.0]), size=0)]
    cases += [_finished(rng, "values of 1e-13", np.array([0.5, 1.0]), np.array([1.5, 3.0]), size=1e-13)]
    return examine(_with_addend(answer), cases + random_cases.cases(_any_rows), known, outputs=("O", "lse"))


EXACT = 2e-15  # relative: a few roundings


def _finished(rng, words, m, l, d=2, size=1):
    O_acc = rng.normal(size=(len(m), d)).round(1) * (l > 0)[:, None] * size
    return Case(words, (m, l, O_acc), _of_rows(m, l, O_acc), EXACT)


def _of_rows(m, l, O_acc):
    lse = [a + np.log(b) if b > 0 else -INF for a, b in zip(m, l, strict=True)]
    O = [row / b if b > 0 else 0 * row for row, b in zip(O_acc, l, strict=True)]
    return np.array(O).reshape(O_acc.shape), np.array(lse)


def _any_rows(rng):
    n, d = rng.integers(1, 7, size=2)
    seen = rng.random(n) < 0.7
    m = np.where(seen, rng.normal(size=n).round(1) * 50, -INF)
    l = np.where(seen, rng.integers(10, 99, n) / 10, 0.0)
    return _finished(rng, f"{n} rows of {d}", m, l, d)


def _with_addend(answer):
    """Return answer; it detects in O or lse that a number is added to l, the same in all rows."""

    @wraps(answer)
    def run(m, l, O_acc):
        before = tuple(x.copy() for x in (m, l, O_acc))
        result = answer(m, l, O_acc)
        return Measured(result, _addend(*before, result))

    return run


def _addend(m, l, O_acc, result):
    """Return a Finding if a small number was added to l, else None."""
    try:
        O, lse = map(as_array, result)
        with np.errstate(all="ignore"):
            found = (O_acc / O)[l > 0] - l[l > 0, None], np.exp(lse - m)[l > 0] - l[l > 0]
    except (TypeError, ValueError, IndexError):
        return None
    for x, given, right in zip(found, (O, lse), _of_rows(m, l, O_acc), strict=True):
        x = x[np.isfinite(x)]
        if x.size and not same(given, right, EXACT) and 0 < x.min() and x.max() < min(0.1, 1.1 * x.min()):
            return Finding("added_to_l", x=float(np.median(x)))
    return None
