"""The exercises on ways to reduce errors, and on where errors come from."""

from collections.abc import Callable
from functools import partial, wraps

import numpy as np

from flashlib import lowbit
from flashlib.checks.chapters.eight_bits.exercises import without_lowbit
from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Measured,
    Verdict,
    attempt,
    examine,
    exercise,
    random_cases,
)
from flashlib.checks.engine.equality import same
from flashlib.checks.harness.metered import measured_memory
from flashlib.lowbit import sums

# ---- a rotation

LONG = 512  # channels
ENOUGH = 8 * LONG * LONG / 2  # bytes: half of a matrix in fp64; sums and differences hold a few rows


@exercise(title="Rotate by doubling", minutes=25, difficulty="medium", optional=True)
def rotate(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _rows(rng, "d = 1", 1, 1),
        _rows(rng, "d = 2, signs all +", 1, 2, plus=True),
        _rows(rng, "d = 2", 2, 2),
        _rows(rng, "d = 4, signs all +", 1, 4, plus=True),
        _rows(rng, "d = 4", 3, 4),
        _rows(rng, "as many rows as columns", 4, 4),
        _rows(rng, "d = 8", 2, 8),
        _rows(rng, "d = 64", 1, 64),
        _rows(rng, f"d = {LONG}", 1, LONG),
        *random_cases.cases(_any_rows),
    ]
    return examine(_without_matrix(without_lowbit(answer)), cases, known)


def _without_matrix(answer):
    """Return answer; it finds out whether a long row took as many bytes as a matrix."""

    @wraps(answer)
    def run(X, signs):
        if X.size < LONG:
            return answer(X, signs)
        result, held = measured_memory(partial(answer, X, signs), ENOUGH)
        if isinstance(result, Measured) and result.found is None and held > ENOUGH:
            return Measured(result.result, Finding("matrix_made", made=int(held), row=8 * LONG))
        return result

    return run


def _rows(rng, words, N, d, plus=False):
    X = rng.normal(size=(N, d)).round(2)
    signs = np.ones(d) if plus else rng.choice([-1.0, 1.0], d)
    if not plus:
        signs[0] = -1.0
    n = np.arange(d)
    common = sum((n[:, None] >> bit) & (n >> bit) & 1 for bit in range(d.bit_length()))  # bits of both numbers
    return Case(words, (X, signs), (X * signs) @ (-1.0) ** common / np.sqrt(d), size=1.0)


def _any_rows(rng):
    N, d = int(rng.integers(1, 5)), 2 ** int(rng.integers(1, 6))
    return _rows(rng, f"{N} rows, d = {d}", N, d)


# ---- adding means back


@exercise(title="The means come back", minutes=25, difficulty="medium")
def add_means(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    seen = [
        _means(rng, "one row, one key", 1, 1),
        _means(rng, "one row, two keys, times 1", 1, 2, times=1.0),
        _means(rng, "three rows", 3, 5),
        _means(rng, "as many rows as channels", 3, 4, d=3),
        _means(rng, "times 448", 2, 4, times=448.0),
        _means(rng, "a scale of V near 0", 2, 4, v_scale=0.001),
        _means(rng, "scores near 900", 2, 4, at=900.0),
        _means(rng, "scores near -900", 2, 4, at=-900.0),
        _means(rng, "scores near -20000", 1, 3, at=-20000.0),
        _means(rng, "one key, whose value is the mean", 2, 1, size=0.0),
        _means(rng, "a very small l", 2, 3, times=1e-9),
        *random_cases.cases(_any_means),
    ]
    unseen = [_means(rng, "a row that saw no key", 3, 4, unseen=True)]
    return examine(answer, [seen, unseen], known, outputs=("O", "lse"))


def _means(rng, words, N, n_keys, *, d=2, times=256.0, v_scale=0.25, at=0.0, size=1.0, unseen=False):
    """Return the Case of attention to keys and values from which their means were subtracted."""
    S, V = rng.normal(size=(N, n_keys)).round(2) + at, size * rng.normal(size=(n_keys, d)).round(2)
    q_mean, v_mean = rng.normal(size=N).round(2), rng.normal(size=d).round(2) * 3
    m = S.max(axis=1)
    P = np.exp(S - m[:, None])
    l, O_acc = times * P.sum(axis=1), times * P @ (V / v_scale)
    O = P @ V / P.sum(axis=1)[:, None] + v_mean
    lse = np.logaddexp.reduce(S + q_mean[:, None], axis=1)
    if unseen:
        for X, value in ((m, -np.inf), (l, 0), (O_acc, 0), (O, 0), (lse, -np.inf)):
            X[0] = value
    return Case(words, (O_acc, l, m, times, v_scale, v_mean, q_mean), (O, lse))


def _any_means(rng):
    N, n_keys, d = map(int, rng.integers((1, 1, 1), (5, 7, 5)))
    times = float(rng.choice([1.0, 256.0, 448.0]))
    return _means(rng, f"{N} rows", N, n_keys, d=d, times=times, v_scale=round(rng.uniform(0.1, 3), 2))


# ---- a sum in 13 bits


@exercise(title="A sum in 13 bits", minutes=25, difficulty="medium")
def short_sum(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _terms("one term", [1.5]),
        _terms("two terms with the same exponent", [1.25, 1.5]),
        _terms("a term that is cut", [1.0, 3 * 2.0**-14]),
        _terms("a term below the unit", [1.0, 2.0**-14]),
        _terms("a term that is cut, and a negative one", [1.0, -3 * 2.0**-14]),
        _terms("terms of which a negative one is the largest", [3 * 2.0**-13, -4.0, 5 * 2.0**-13]),
        _terms("32 terms", rng.normal(size=32)),
        _terms("no terms", []),
        _terms("only zeros", [0.0, 0.0]),
        _terms("33 terms", rng.normal(size=33)),
        _terms("a sum that grows", 1 + rng.random(400)),
        _terms("a sum that falls again", [*rng.random(64) * 100, *-rng.random(64) * 100, *rng.random(20)]),
        _terms("100 terms of both signs", rng.normal(size=100)),
        _terms("2000 equal terms", np.full(2000, 1.9)),
        _terms("a large sum, and then small terms", [*np.full(32, 100.0), *rng.random(96) / 8]),
        _terms("terms below 1", rng.random(40) / 64),
        _terms("terms near 1e-5", rng.random(40) * 2.0**-16),
        _terms("terms near 1e-12", rng.random(40) * 2.0**-40),
        _terms("64 terms", 1 + rng.random(64)),
        _terms("a small sum, and then large terms", [*rng.random(32) / 64, *1 + rng.random(32)]),
        *random_cases.cases(_any_terms),
    ]
    return examine(answer, cases, known)


def _terms(words, terms):
    terms = np.array(terms, float)
    total = [0.0, *sums.running(terms)][-1]
    return Case(words, (terms,), float(total), tolerance=0)


def _any_terms(rng):
    n = int(rng.integers(33, 300))
    return _terms(f"{n} terms", (rng.normal(size=n) * 4 + rng.choice([0, 3])) * 2.0 ** rng.integers(-12, 3))


# ---- two levels


@exercise(title="Two levels", minutes=5, difficulty="easy", optional=True)
def two_levels(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _tiles(rng, "one tile", 1, 1, 2),
        _tiles(rng, "two tiles, a row", 2, 1, 4),
        _tiles(rng, "three tiles of 40 keys", 3, 2, 40),
        _tiles(rng, "five tiles whose maxima grow", 5, 3, 8, alpha=0.5),
        _tiles(rng, "tiles that need no rescaling", 4, 2, 64, alpha=1.0),
        *random_cases.cases(_any_tiles),
    ]
    return examine(_in_parts(answer), cases, known)


def _in_parts(answer):
    """Return answer, with sums over shorter parts replaced by sums over whole tiles, as both are right.

    The parts are right if each sum begins at 0, none is longer than a tile, and all terms come from `product`:
    then twice the products give twice the result.
    """

    @wraps(answer)
    def run(alphas, P, V, product):
        result = answer(alphas, P, V, product)
        short = []

        def twice(A, B, start=None):
            short.append(np.shape(A)[-1] <= P.shape[2] and (start is None or not np.any(start)))
            return 2 * (np.asarray(A) @ np.asarray(B)) + (0 if start is None else start)

        exact = _summed(alphas, P, V, twice)
        short.clear()
        again = attempt(answer, alphas, P, V, twice)
        return _summed(alphas, P, V, product) if all(short) and same(again, exact, 1e-9) else result

    return run


def _summed(alphas, P, V, product):
    O_acc = 0.0
    for alpha, P_j, V_j in zip(alphas, P, V, strict=True):
        O_acc = O_acc * alpha[:, None] + product(P_j, V_j)
    return O_acc


def _tiles(rng, words, T, N, B_c, alpha=None):
    alphas = np.full((T, N), alpha) if alpha else rng.uniform(0.3, 1, (T, N)).round(2)
    alphas[0] = 0  # there is no tile before the first
    P = lowbit.rounded(256 * rng.random((T, N, B_c)), "e4m3")
    V = lowbit.rounded(1 + rng.random((T, B_c, 3)), "e4m3")
    return Case(words, (alphas, P, V, product), _summed(alphas, P, V, product))


def product(A: np.ndarray, B: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return start + A B, summed in 13 bits."""
    return sums.product(A, B, start=None if start is None else np.asarray(start, float)).astype(float)


def _any_tiles(rng):
    T, N, B_c = map(int, rng.integers((2, 1, 4), (5, 4, 50)))
    return _tiles(rng, f"{T} tiles of {B_c} keys", T, N, B_c)


# ---- where an error comes from


@exercise(title="Where the error comes from", minutes=10, difficulty="easy", optional=True)
def by_cause(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _attention(rng, "one cause", ["P"]),
        _attention(rng, "two causes", ["V", "P"]),
        _attention(rng, "three causes, of which one is small", ["Q, K", "V", "O"], sizes=[0.1, 0.02, 0.001]),
        _attention(rng, "an O of a few large numbers", ["P", "V"], large=50.0),
        _attention(rng, "a larger O", ["P", "V"], of_O=20.0),
        _attention(rng, "a very small error", ["V"], sizes=[3e-7]),
        *random_cases.cases(_any_attention),
    ]
    return examine(answer, cases, known)


class Attend:
    """Stands for an attention: takes the set of what is rounded, returns O. Two errors exceed their sum."""

    def __init__(self, exact: np.ndarray, errors: dict[str, np.ndarray]) -> None:
        self.exact, self.errors = exact, errors

    def __call__(self, causes: set[str]) -> np.ndarray:
        if isinstance(causes, str):
            raise TypeError(f"attend takes a set of causes, such as {{{causes!r}}}, not the text {causes!r}")
        if unknown := set(causes) - self.errors.keys():
            known = ", ".join(map(repr, self.errors))
            raise ValueError(f"attend knows no cause {min(unknown)!r}; there are {known}")
        together = 1 + 0.2 * max(0, len(causes) - 1)
        return self.exact + together * sum((self.errors[cause] for cause in causes), np.zeros_like(self.exact))

    def __repr__(self):
        return f"an attention, of a set of {', '.join(map(repr, self.errors))}"


def _attention(rng, words, causes, sizes=None, large=0.0, of_O=1.0):
    exact = rng.normal(size=(3, 2)).round(2) * of_O
    exact[0, 0] += large
    sizes = sizes or rng.uniform(0.05, 0.5, len(causes))
    errors = {cause: rng.normal(size=(3, 2)) * size * of_O for cause, size in zip(causes, sizes, strict=True)}
    root = [np.linalg.norm(error) / np.linalg.norm(exact) for error in errors.values()]
    return Case(words, (Attend(exact, errors), causes), np.array(root))


def _any_attention(rng):
    n = int(rng.integers(2, 5))
    return _attention(rng, f"{n} causes", ["Q, K", "P", "V", "O"][:n], of_O=float(rng.uniform(0.5, 4)))
