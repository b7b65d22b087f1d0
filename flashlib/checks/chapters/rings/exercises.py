"""The exercises on numbers: merging hops, the rows of a rank, bytes and times of copies."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from flashlib import masks
from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import sizes, update
from flashlib.ring import cost, hops, layouts
from flashlib.softmax import State, summarise_rows

# ---- merging hops


@exercise(title="Add a hop", minutes=15, difficulty="easy", optional=True)
def add_hop(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _hop(rng, "one row", 1, (0, 1), 2, 1),
        _hop(rng, "all rows", 3, (0, 3), 2, 2),
        _hop(rng, "the last two rows of four", 4, (2, 4), 3, 2),
        _hop(rng, "the first two rows of five", 5, (0, 2), 3, 4, d=3),
        _hop(rng, "rows in the middle", 6, (2, 5), 1, 3, d=3),
        _hop(rng, "no row at all", 3, (3, 3), 2, 2),
        _rows("a row with the same lse before the hop and in it", (3.0, 0.5, 2.0, 0.5), (1.0, 0.5, 2.0, 1.5)),
        _rows("rows whose O is 0, before the hop or in it", (0.0, 0.5, 2.0, 1.5), (1.0, 0.3, 0.0, 0.2)),
        *random_cases.cases(_any_hop),
    ]
    far = [
        _hop(rng, "scores near 1000", 4, (1, 4), 2, 2, at=(1000.0, 1000.0)),
        _hop(rng, "scores near -1000", 4, (1, 4), 2, 2, at=(-1000.0, -1000.0)),
        _hop(rng, "a hop whose scores are larger by 2000", 4, (1, 4), 2, 2, at=(-1000.0, 1000.0)),
        _hop(rng, "a hop whose scores are smaller by 2000", 4, (1, 4), 2, 2, at=(1000.0, -1000.0)),
        _hop(rng, "a hop with scores near 800, the others near 0", 4, (1, 4), 2, 2, at=(0.0, 800.0)),
        _rows(
            "a row with scores near 1000 next to one with scores near -1000",
            (1.0, 1e3, 2.0, 1001.0),
            (3.0, -1e3, 4.0, -999.0),
        ),
        _rows("scores near -20000", (1.0, -2e4, 2.0, -19999.0)),
    ]
    empty = [
        _hop(rng, "rows that had seen no key", 4, (1, 3), 0, 3),
        _hop(rng, "a hop in which no key is seen", 4, (1, 3), 3, 0),
        _hop(rng, "rows that had seen no key, scores near -900", 4, (1, 3), 0, 3, at=(0.0, -900.0)),
        _rows(
            "a row that had seen no key, one whose hop has no key, and one with both",
            (0.0, -np.inf, 2.0, 1.5),
            (1.0, 0.5, 0.0, -np.inf),
            (3.0, 2.0, 1.0, 1.0),
        ),
    ]
    nothing = [
        _hop(rng, "rows that see no key, before and in the hop", 4, (1, 3), 0, 0),
        _rows("a row that sees no key, next to one that does", (0.0, -np.inf, 0.0, -np.inf), (3.0, 2.0, 1.0, 1.0)),
    ]
    return examine(answer, [plain, far, empty, nothing], known, outputs=("O", "lse"))


def _hop(rng, words, n, rows, n_old, n_new, *, d=2, at=(0.0, 0.0)):
    """Return the Case of n rows that have seen n_old keys, and of which some then see n_new more.

    The right result is computed from all keys at once. at: added to the scores of the old and of the new keys.
    """
    first, end = rows
    scores = [rng.normal(size=(n, n_keys)).round(2) + x for n_keys, x in zip((n_old, n_new), at, strict=True)]
    values = [rng.normal(size=(n_keys, d)).round(2) for n_keys in (n_old, n_new)]
    O, lse = update.finished(summarise_rows(scores[0], values[0]))
    O_new, lse_new = (X[first:end] for X in update.finished(summarise_rows(scores[1], values[1])))
    both = update.finished(_joined(summarise_rows(np.hstack(scores), np.vstack(values)), first, end))
    O_all, lse_all = O.copy(), lse.copy()
    O_all[first:end], lse_all[first:end] = both
    return Case(words, (O, lse, O_new, lse_new, first, end), (O_all, lse_all))


def _rows(words, *rows):
    """Return the Case of rows that all take part in the hop, each given as numbers (O, lse, O_new, lse_new)."""
    right = []
    for O, lse, O_new, lse_new in rows:
        top = max(lse, lse_new)
        weights = [math.exp(x - top) if x > -math.inf else 0.0 for x in (lse, lse_new)]
        l = sum(weights)
        right.append(((O * weights[0] + O_new * weights[1]) / l, top + math.log(l)) if l else (0.0, -math.inf))
    O, lse, O_new, lse_new = np.array(rows).T
    O_all, lse_all = np.array(right).T
    return Case(words, (O[:, None], lse, O_new[:, None], lse_new, 0, len(rows)), (O_all[:, None], lse_all))


def _joined(state, first, end):
    return State(*(X[first:end] for X in state))


def _any_hop(rng):
    n, n_old, n_new, d = (int(x) for x in rng.integers(1, 7, 4))
    first, end = sorted(int(x) for x in rng.integers(0, n + 1, 2))
    return _hop(rng, f"rows {first} to {end} of {n}", n, (first, end), n_old, n_new, d=d)


# ---- who holds which rows


@exercise(title="The rows of a rank", minutes=5, difficulty="easy")
def zigzag_rows(answer: Callable, known: Known) -> Verdict:
    fixed = """
        8 2 0, 8 2 1, 4 1 0, 12 3 1, 16 4 3, 24 3 2, 9 2 0, 9 2 1, 13 3 2, 10 4 1, 23 4 2, 30 4 3, 5 1 0, 7 3 0,
        5 4 1, 3 4 0, 1 2 1, 30 11 10, 294 9 2
    """
    cases = [_rows_of(*one) for one in sizes.rows(fixed)] + random_cases.cases(_any_rows)
    right = {case.arguments: case.expected for case in cases}
    return examine(sizes.whole_numbers(answer, lambda *arguments: right[arguments]), cases, known)


def _rows_of(N, P, r):
    expected = layouts.positions(N, P, r, "zigzag")
    return Case(f"N = {N}, P = {P}, r = {r}", (N, P, r), expected, tolerance=0)


def _any_rows(rng):
    P = int(rng.integers(2, 13))
    return _rows_of(int(rng.integers(1, 90)), P, int(rng.integers(P)))


# ---- the part that a hop computes


@exercise(title="What a hop computes", minutes=15, difficulty="easy")
def hop_part(answer: Callable, known: Known) -> Verdict:
    fixed = """
        0 0 4, 1 1 4, 1 0 4, 0 1 4, 2 0 6, 0 2 6, 2 1 8, 3 1 2, 1 3 2, 2 2 10, 3 2 12, 2 3 12, 5 0 6, 0 5 6, 6 7 4,
        10 9 4, 2 10 6
    """

    def right(r, s, n):
        P = max(r, s) + 1
        rows, keys = (layouts.runs(n * P, P, rank, "zigzag") for rank in (r, s))
        hop = hops.hop(masks.causal(), n * P, n * P, rows, keys)
        return hop.rows.start, hop.rows.stop, hop.keys.start, hop.keys.stop, hop.mask == masks.causal()

    def draw(rng):
        r, s, half = (int(x) for x in rng.integers((0, 0, 1), (8, 8, 10)))
        return r, s, 2 * half

    names = "first_row", "end_row", "first_key", "end_key", "causal"
    return sizes.examine_whole(answer, sizes.cases(right, fixed, draw), known, names)


# ---- tokens that hide a copy


@exercise(title="Tokens that hide a copy", minutes=20, difficulty="medium")
def hide_copy(answer: Callable, known: Known) -> Verdict:
    fixed = """
        1 1 2 1000 10 False, 1 1 2 1000 10 True, 1 1 4 1000 10 False, 4 1 2 1000 7 False, 8 2 2 3000 7 True,
        32 8 2 989000000000000 450000000000 True, 32 32 2 989000000000000 450000000000 False, 2 2 4 900 11 True,
        16 2 2 312000000000000 300000000000 False, 6 3 2 500 13 True, 8 8 1 2000 30 True, 3 1 1 1000 9 False,
        5 1 1 700 10 False, 8 8 2 989000000000000001 1000000000 False
    """

    def right(H, H_k, itemsize, flops, bandwidth, causal):
        copy = Fraction(2 * H_k * itemsize, bandwidth)  # seconds for a token, divided by d
        products = Fraction(4 * H, flops) / (2 if causal else 1)  # for a token and a key
        return math.ceil(copy / products)

    def draw(rng):
        H_k, group, itemsize = int(rng.integers(1, 9)), int(rng.integers(1, 6)), int(rng.choice([1, 2, 4]))
        flops, bandwidth = (int(x) for x in rng.integers((100, 5), (9000, 90)))
        return group * H_k, H_k, itemsize, flops, bandwidth, bool(rng.integers(2))

    cases = sizes.cases(right, fixed, draw)
    expected = {case.arguments: case.expected for case in cases}
    run = sizes.whole_numbers(answer, lambda *arguments: expected[arguments])
    return examine(run, cases, known)


# ---- bytes of the two methods


@exercise(title="Bytes of two ways", minutes=10, difficulty="medium", optional=True)
def way_bytes(answer: Callable, known: Known) -> Verdict:
    fixed = """
        4 2 2 2 1 2, 8 2 2 2 3 4, 8 4 4 4 8 2, 12 2 4 2 3 2, 12 3 6 3 5 4, 16 4 8 4 16 2, 64 8 32 8 16 2,
        20 5 10 5 7 2, 36 3 9 3 4 4, 48 4 16 8 12 2, 14 7 14 7 3 2
    """

    def right(N, P, H, H_k, d, itemsize):
        problem = cost.Problem(N, N, d, {2: "float16", 4: "float32"}[itemsize], H=H, H_k=H_k)
        return cost.ring(problem, P).sent[0], cost.ulysses(problem, P).sent[0]

    def draw(rng):
        P, a, b, n, d = (int(x) for x in rng.integers((2, 1, 1, 1, 1), (7, 4, 4, 9, 20)))
        return P * n, P, P * a * b, P * a, d, int(rng.choice([2, 4]))

    return sizes.examine_whole(answer, sizes.cases(right, fixed, draw), known, ("ring", "ulysses"))


# ---- labels across a cut


@exercise(title="Labels across a cut", minutes=25, difficulty="medium")
def cut_labels(answer: Callable, known: Known) -> Verdict:
    fixed = (
        (8, 2, 1), (8, 2, 0), (16, 4, 0), (16, 4, 1), (16, 4, 3), (4, 2, 0), (4, 2, 1), (2, 1, 0), (9, 1, 0),
        (10, 2, 1), (13, 2, 0), (13, 2, 1), (23, 3, 2), (37, 5, 3), (294, 9, 4),
    )  # fmt: skip
    cases = [_cut(np.random.default_rng(N), N, P, r) for N, P, r in fixed]
    return examine(answer, cases + random_cases.cases(_any_cut), known)


def _cut(rng, N, P, r):
    """Return the Case of a rank's labels, taken from the whole sequence."""
    whole = rng.integers(0, 1000, N)
    whole[rng.integers(0, N, 2)] = 0  # a token like any other
    after = np.append(whole[1:], -100)
    own = layouts.positions(N, P, r, "zigzag")
    firsts = whole[[i * N // (2 * P) for i in range(2 * P)]]
    return Case(f"N = {N}, rank {r} of {P}", (whole[own], firsts, N, r), after[own], tolerance=0)


def _any_cut(rng):
    P = int(rng.integers(1, 7))
    return _cut(rng, int(rng.integers(2 * P, 60)), P, int(rng.integers(P)))
