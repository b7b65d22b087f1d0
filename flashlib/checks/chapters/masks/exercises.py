"""The exercises on the tiles of a mask: which are computed, in what order, and by which program."""

import operator
from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.engine.equality import as_array, same
from flashlib.checks.engine.value_text import describe_value
from flashlib.checks.harness import sizes
from flashlib.tiled import blocks

NAMES = {"np": np, "blocks": blocks}


# ---- the bounds of a window

BOUNDS = "first", "end", "whole_first", "whole_end"
HUGE = 10**15
RANGES = "the range of computed tiles", "the range of whole tiles"


def _as_ranges(answer):
    """Return answer with its result converted to two ranges; the bounds of empty ranges do not matter."""
    closed = sizes.in_closed_form(answer)

    @wraps(answer)
    def run(*arguments):
        given = (closed if max(arguments) >= HUGE else answer)(*arguments)
        if given is None:
            return None
        if not isinstance(given, tuple | list | np.ndarray) or len(given) != len(BOUNDS):
            raise Finding("outputs", given=describe_value(given), n=len(BOUNDS), names=", ".join(BOUNDS))
        bounds = [_whole_number(name, x) for name, x in zip(BOUNDS, given, strict=True)]
        ranges = range(*bounds[:2]), range(*bounds[2:])
        floats = any(isinstance(x, float | np.floating) for x in given)
        return Measured(ranges, Finding("float")) if floats and ranges == _bounds_of_mask(*arguments) else ranges

    return run


def _whole_number(name, x):
    """Return a bound as an int; raises Finding if it is not a whole number."""
    if isinstance(x, float | np.floating) and x == x // 1:
        return int(x)
    try:
        return operator.index(x)
    except TypeError:
        raise Finding("kind", it=name, given=describe_value(x), expected="a whole number") from None


@exercise(title="The tiles of a window", minutes=30, difficulty="hard", model=_as_ranges)
def window_bounds(answer: Callable, known: Known) -> Verdict:
    fixed = """
        0 1 1 1 1 0 0, 0 4 4 2 2 1 0, 1 4 4 2 2 1 0, 1 8 8 2 2 3 0, 2 12 12 4 4 4 0, 1 9 9 4 2 2 0,
        2 9 9 4 2 2 0, 3 16 16 4 4 11 0, 3 16 16 4 4 12 0, 3 16 16 4 4 10 0, 1 12 12 4 4 2 2,
        1 16 16 4 4 0 4, 1 16 16 4 4 4 7, 1 16 16 4 4 4 6, 0 4 10 2 3 3 1, 1 4 10 2 3 3 1, 0 3 11 2 4 5 2,
        1 5 17 4 3 6 2, 0 8 3 4 2 2 1, 1 8 3 4 2 2 1, 0 9 3 2 2 1 0, 0 9 3 2 2 1 5, 3 9 3 2 2 1 5,
        5 24 24 4 2 9 3, 2 24 24 4 8 9 3, 4 40 56 8 16 19 0, 1 6 7 4 3 20 20, 1 24 24 4 2 9 9,
        1 20001 20001 20000 20000 5 0, 2 16 16 4 2 0 0, 1 16 20 4 2 0 6, 1 16 20 4 2 6 0,
        0 7 20 3 2 4 4, 0 14 8 6 1 25 20
    """
    huge = ",".join(f"{HUGE // 10} {HUGE} {N_k} 8 4 37 5" for N_k in (HUGE, HUGE + 6))

    def draw(rng):
        N_q, N_k, B_r, B_c, left, right = rng.integers((1, 1, 1, 1, 0, 0), (60, 60, 9, 9, 30, 9))
        return rng.integers(0, -(-N_q // B_r)), N_q, N_k, B_r, B_c, left, right

    stages = [sizes.cases(_bounds_of_mask, fixed, draw, count=6), sizes.cases(_bounds_of_mask, huge)]
    return examine(_as_ranges(answer), stages, known, outputs=RANGES)


def _bounds_of_mask(i, N_q, N_k, B_r, B_c, left, right):
    """Return the ranges of row block i, found by checking the scores of the tiles that may be visible."""
    r = np.arange(i * B_r, min((i + 1) * B_r, N_q))[:, None] + N_k - N_q
    near = range(max(0, (r.min() - left) // B_c - 1), min(-(-N_k // B_c), (r.max() + right) // B_c + 2))
    found = [], []
    for j in near:
        c = np.arange(j * B_c, min((j + 1) * B_c, N_k))
        seen = (c >= r - left) & (c <= r + right)
        for numbers, is_so in zip(found, (seen.any(), seen.all()), strict=True):
            numbers += [j] if is_so else []
    return tuple(range(numbers[0], numbers[-1] + 1) if numbers else range(0) for numbers in found)


# ---- a table of blocks

TABLE = "n_whole", "whole", "n_cut", "cut"
CUT, WHOLE = 1, 2  # kinds of a tile; 0 is hidden


@exercise(title="A table of tiles", minutes=15, difficulty="easy")
def block_table(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    causal = np.tri(6, 6, dtype=bool)
    ring = np.ones((6, 6), bool)
    ring[2:4, 2:4] = False
    spots = np.zeros((4, 6), bool)
    spots[1, 1] = spots[2, 5] = True
    spot = np.zeros((3, 3), bool)
    spot[1, 1] = True
    cases = [
        _table("one score", np.ones((1, 1), bool), 1, 1),
        _table("a causal mask of 4 x 4", np.tri(4, 4, dtype=bool), 2, 2),
        _table("a causal mask of 6 x 6, tiles of 2 x 3", causal, 2, 3),
        _table("a causal mask of 6 x 6, tiles of 4 x 2", causal, 4, 2),
        _table("a mask that looks ahead, tiles of 2 x 3", causal.T, 2, 3),
        _table("a mask that looks ahead, tiles of 4 x 2", causal[::-1], 4, 2),
        _table("everything but the middle is seen", ring, 2, 2),
        _table("two single scores are seen", spots, 3, 2),
        _table("nothing is seen", np.zeros((4, 4), bool), 2, 2),
        _table("everything is seen, the last tiles are shorter", np.ones((5, 7), bool), 2, 3),
        _table("tiles larger than the mask", np.tri(3, 5, 2, dtype=bool), 8, 8),
        _table("a checkerboard of tiles", np.kron(np.indices((3, 4)).sum(0) % 2, np.ones((2, 3))) > 0, 2, 3),
        _table("only the middle of a tile is hidden", ~spot, 3, 3),
        _table("only the middle of a tile is seen", spot, 3, 3),
        _table("a checkerboard of scores in a tile", np.indices((3, 3)).sum(0) % 2 == 0, 3, 3),
        _table("every second of 20 tiles is seen", np.arange(20)[None] % 2 == 0, 1, 1),
        _table("every third of 300 tiles is seen", np.arange(300)[None] % 3 == 0, 1, 1),
        _table("20001 keys in tiles of 20000", np.ones((1, 20001), bool), 1, 20000),
        _table("one score of a large tile is hidden, and one of the next is seen", _one_of(150000), 1, 150000),
        _table("no keys", np.ones((3, 0), bool), 2, 2),
        _table("random tiles", _random_tiles(rng, 7, 9, 2, 3), 2, 3),
        *random_cases.cases(_any_table),
    ]
    return examine(_in_order(sizes.whole_numbers(answer, _tables)), cases, known, outputs=TABLE)


def _in_order(answer):
    """Return answer; it detects tables that are right except for the order of their numbers."""

    @wraps(answer)
    def run(*arguments):
        given = answer(*arguments)
        right = _tables(*arguments)
        try:
            pairs = [(as_array(x), y) for x, y in zip(given.result, right, strict=True)]
        except (TypeError, ValueError):
            return given
        same_sets = [same(np.sort(x) if x.ndim == 2 else x, np.sort(y) if y.ndim == 2 else y, 0) for x, y in pairs]
        if all(same_sets) and not all(same(x, y, 0) for x, y in pairs):
            return Measured(given.result, Finding("not_in_order"))
        return given

    return run


def _one_of(n):
    """Return the mask of a row of two tiles of n keys, in each of which one score differs from the others."""
    seen = np.arange(2 * n)[None] < n
    seen[0, [n - 2, n + 2]] ^= True
    return seen


def _random_tiles(rng, N_q, N_k, B_r, B_c):
    """Return a mask with random tiles: whole, hidden and cut ones."""
    shape = -(-N_q // B_r), -(-N_k // B_c)
    share = np.kron(rng.choice([0.0, 0.5, 1.0], size=shape), np.ones((B_r, B_c)))[:N_q, :N_k]
    return rng.random((N_q, N_k)) < share


def _table(words, seen, B_r, B_c):
    return Case(words, (seen, B_r, B_c), _tables(seen, B_r, B_c), tolerance=0)


def _tables(seen, B_r, B_c):
    return table_of(kinds_of(seen, B_r, B_c))


def kinds_of(seen: np.ndarray, B_r: int, B_c: int) -> np.ndarray:
    """Return the kind of each tile of a mask, (T_r, T_c): 0 if it is hidden, else CUT or WHOLE."""
    rows, cols = list(blocks(len(seen), B_r)), list(blocks(seen.shape[1], B_c))
    kinds = [[WHOLE if seen[r, c].all() else CUT * int(seen[r, c].any()) for c in cols] for r in rows]
    return np.array(kinds, int).reshape(len(rows), len(cols))


def table_of(kinds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the table for tiles of these kinds: n_whole, whole, n_cut, cut."""
    found = []
    for kind in (WHOLE, CUT):
        numbers = [[j for j, k in enumerate(row) if k == kind] for row in np.asarray(kinds)]
        found.append(np.array([len(row) for row in numbers], int))
        padded = [row + [-1] * (np.shape(kinds)[1] - len(row)) for row in numbers]
        found.append(np.array(padded, int).reshape(np.shape(kinds)))
    return tuple(found)


def _any_table(rng):
    N_q, N_k, B_r, B_c = map(int, rng.integers((1, 1, 1, 1), (14, 14, 5, 5)))
    return _table(f"a mask of {N_q} x {N_k}", _random_tiles(rng, N_q, N_k, B_r, B_c), B_r, B_c)


# ---- documents in a pack


@exercise(title="Which rows are mine?", minutes=15, difficulty="medium", optional=True)
def work_of(answer: Callable, known: Known) -> Verdict:
    packs = [
        ([0, 1], 1), ([0, 2], 1), ([0, 4], 2), ([0, 2, 4], 2), ([0, 3], 2), ([0, 2, 5, 12], 2),
        ([0, 0, 3], 2), ([0, 3, 3, 5, 5], 2), ([0, 5, 6, 13], 4), ([0, 0], 2), ([0, 1, 2, 3], 8),
        ([0, 20001], 20000),
    ]  # fmt: skip
    cases = [_work(p, *pack) for pack in packs for p in range(-(-pack[0][-1] // pack[1]) + len(pack[0]) - 1)]
    answer = sizes.whole_numbers(answer, _rows_of)
    return examine(answer, cases + random_cases.cases(_any_work, 6), known, outputs=("document", "first", "end"))


def _work(p, cu_seqlens, B_r):
    words = f"program {p} with cu_seqlens = {cu_seqlens} and B_r = {B_r}"
    return Case(words, (p, cu_seqlens, B_r), _rows_of(p, cu_seqlens, B_r), tolerance=0)


def _rows_of(p, cu_seqlens, B_r):
    """Return the work of program p, taken from the list of all work."""
    work = [
        (b, first, min(first + B_r, stop))
        for b, (start, stop) in enumerate(zip(cu_seqlens[:-1], cu_seqlens[1:], strict=True))
        for first in range(start, stop, B_r)
    ]
    return work[p] if p < len(work) else (-1, 0, 0)


def _any_work(rng):
    lengths, B_r = rng.integers(0, 20, rng.integers(1, 6)), int(rng.integers(1, 7))
    cu_seqlens = [0, *map(int, lengths.cumsum())]
    return _work(int(rng.integers(0, -(-cu_seqlens[-1] // B_r) + len(lengths))), cu_seqlens, B_r)
