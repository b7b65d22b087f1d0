"""The exercises on sizes: the bytes of a cache, and keys split into parts that are merged."""

import contextlib
from collections.abc import Callable
from functools import wraps

import numpy as np

from flashlib.checks.engine import Case, Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.engine.equality import as_array, same
from flashlib.checks.harness import sizes, update
from flashlib.softmax import summarise_rows

INF = np.inf


# ---- tokens that a cache has room for


@exercise(title="Room for tokens", minutes=10, difficulty="easy")
def cache_tokens(answer: Callable, known: Known) -> Verdict:
    fixed = """
        1 1 1 1 2, 1 1 1 1 7, 1 1 1 1 0, 2 3 5 2 200, 3 2 7 4 1000, 3 2 7 4 300, 32 8 128 2 60000000000,
        80 8 128 1 30000000000, 24 1 576 2 1234567890, 2 3 5 2 119999999
    """

    def right(layers, H_k, d, itemsize, room):
        of_token = layers * H_k * (d + d) * itemsize
        return of_token, room // of_token

    def draw(rng):
        layers, H_k, d, room = map(int, rng.integers((2, 2, 2, 10**8), (90, 17, 257, 10**10)))
        return layers, H_k, d, int(rng.choice([1, 2, 4])), room

    cases = sizes.cases(right, fixed, draw)
    return sizes.examine_whole(answer, cases, known, ("of_token", "tokens"))


# ---- keys split over programs


@exercise(title="Parts of about the same length", minutes=15, difficulty="medium")
def split_keys(answer: Callable, known: Known) -> Verdict:
    fixed = [
        ([4], 4, 1), ([8], 4, 2), ([16], 4, 2), ([6], 4, 2), ([20], 4, 2), ([28], 4, 3), ([8, 8], 4, 2),
        ([8, 8], 4, 4), ([4, 12], 4, 4), ([5, 9, 40], 4, 5), ([3, 100, 2, 7], 4, 8), ([90, 1, 1], 1, 7),
        ([8], 4, 5), ([1, 1, 1], 4, 2), ([9, 9, 1, 1], 4, 3), ([41], 1, 6), ([20001], 20000, 2),
        ([122], 1, 14),  # where 122 / 14 * 7 is a little less than 61
        ([55], 1, 11),  # where 3 / 11 * 55 is a little less than 15
    ]  # fmt: skip
    empty = [([0, 8], 4, 2), ([5, 0, 20], 4, 3), ([0], 4, 2), ([0, 0, 0], 4, 5), ([12, 0], 4, 1)]
    plain = [_split(*sizes) for sizes in fixed] + random_cases.cases(_any_split, 4)
    return examine(_of_a_copy(answer), [plain, [_split(*sizes) for sizes in empty]], known)


def _split(lengths, B_c, parts):
    """Return the Case of lengths; the parts are found tile by tile: tile t of n is in part k of own."""
    tiles = [(n + B_c - 1) // B_c for n in lengths]
    most, rows = max(1, (sum(tiles) + parts - 1) // parts), []
    for b, n in enumerate(tiles):
        own = max(1, (n + most - 1) // most)
        of_tile = np.array([((t + 1) * own - 1) // n for t in range(n)], int)
        ends = [int((of_tile <= k).sum()) for k in range(own)]
        rows += [(b, *ends_of) for ends_of in zip([0, *ends], ends, strict=False)]
    return Case(f"sequences of {lengths} keys", (lengths, B_c, parts), np.array(rows), tolerance=0)


def _any_split(rng):
    lengths = [int(n) for n in rng.choice([3, 20, 90], rng.integers(1, 6)) * rng.uniform(0.4, 1, 1)]
    return _split(lengths, *map(int, rng.integers((1, 1), (6, 12))))


def _of_a_copy(answer):
    """Return answer called with a copy of the list, in case it changes the list."""

    @wraps(answer)
    def run(lengths, B_c, parts):
        rows = answer(list(lengths), B_c, parts)
        with contextlib.suppress(TypeError, ValueError):  # not rows of three numbers
            if same(rows, _split(lengths, B_c, parts).expected, 0) and as_array(rows).dtype.kind == "f":
                return Measured(rows, Finding("float"))
        return Measured(rows, None)

    return run


# ---- merging parts


@exercise(title="All parts at once", minutes=10, difficulty="medium")
def merge_parts(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _in_parts(rng, "one part", [3]),
        _in_parts(rng, "two parts of one key, the larger score in the second", [1, 1], at=[0, 1]),
        _in_parts(rng, "two parts, the larger scores in the first", [2, 3], at=[3, 0]),
        _in_parts(rng, "three parts of different lengths", [1, 4, 2], d=3),
        _in_parts(rng, "two parts with the same maximum", [2, 2], top=3.0),
        _in_parts(rng, "a part whose largest score is 0", [2, 2], at=[0, -1], top=[0, -1]),
        _in_parts(rng, "a part with little weight", [2, 1, 2], at=[0, -10, 1], top=[0, -10, 1]),
        _in_parts(rng, "a part with less weight", [2, 1, 2], at=[0, -15, 1]),
        _in_parts(rng, "as many parts as columns", [2, 3, 1, 4], d=4),
        _in_parts(rng, "a part with nearly no weight", [2, 2, 2], at=[0, -40, 1]),
        *random_cases.cases(_any_parts),
    ]
    large = [
        _in_parts(rng, "scores near 1000", [2, 3, 1], at=1000.0),
        _in_parts(rng, "scores near -1000", [2, 3, 1], at=-1000.0),
        _in_parts(rng, "scores near -1e6", [2, 3, 1], at=-1e6),
        _in_parts(rng, "a part whose values are 0", [2, 3, 1], v=[1, 0, 1]),
        _in_parts(rng, "values that are all 0", [2, 1], v=0),
        _in_parts(rng, "scores that differ by 2000", [2, 1, 2], at=[-1000, 1000, 0]),
        _in_parts(rng, "scores that differ by 2000, the largest first", [2, 1, 2], at=[1000, -1000, 0]),
    ]
    empty = [
        _in_parts(rng, "a last part that saw no key", [3, 2, 0]),
        _in_parts(rng, "a first part that saw no key", [0, 3, 2], at=-5.0),
        _in_parts(rng, "one part of four that saw keys", [0, 0, 3, 0], at=5.0),
    ]
    nothing = [
        _in_parts(rng, "parts that all saw no key", [0, 0, 0], d=3),
        _in_parts(rng, "one part without a key", [0]),
    ]
    return examine(answer, [plain, large, empty, nothing], known, outputs=("O", "lse"))


def _in_parts(rng, words, counts, *, at=0.0, d=2, top=None, v=1):
    """Return the Case of parts with these numbers of keys; the right result is computed from all keys at once.

    at: added to their scores. top: the largest score of each part. v: factors for their values.
    """
    scores = [
        rng.normal(size=n).round(2) + x for n, x in zip(counts, np.broadcast_to(at, len(counts)), strict=True)
    ]
    if top is not None:
        tops = np.broadcast_to(top, len(counts))
        scores = [np.append(np.minimum(x[1:], most), most) for x, most in zip(scores, tops, strict=True)]
    values = [
        rng.normal(size=(n, d)).round(2) * x for n, x in zip(counts, np.broadcast_to(v, len(counts)), strict=True)
    ]
    states = [summarise_rows(x, V) for x, V in zip(scores, values, strict=True)]
    O, lse = update.finished(summarise_rows(np.concatenate(scores)[None], np.concatenate(values)))
    return Case(words, tuple(map(np.array, zip(*states, strict=True))), (O[0], float(lse[0])))


def _any_parts(rng):
    counts = [int(n) for n in rng.integers(1, 6, rng.integers(2, 6))]
    at = rng.integers(-6, 7, len(counts)).astype(float)
    return _in_parts(rng, f"parts of {counts} keys", counts, at=at, d=int(rng.integers(1, 5)))
