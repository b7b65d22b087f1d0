"""The exercises on eight-bit numbers: the grid, scales, scores, weights."""

from collections.abc import Callable
from functools import partial, wraps

import numpy as np

from flashlib import lowbit
from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    Measured,
    Verdict,
    examine,
    exercise,
    random_cases,
    written,
)

# ---- the grid of e4m3


@exercise(title="Round to e4m3", minutes=20, difficulty="medium")
def round_e4m3(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _rounded("a number of e4m3", [1.5]),
        _rounded("a number between two of them", [1.3, -1.3]),
        _rounded("numbers of all sizes", [3.3, 0.07, 100.0, -20.5]),
        _rounded("ties: half of them go up, half down", [1.0625, 1.1875, 17.0, 19.0, -1.0625, -1.1875]),
        _rounded("numbers just below a power of two", [1.95, 7.9, -3.99, 255.0]),
        _rounded("zero", [0.0, 2.0]),
        _rounded("numbers just next to a tie", [1.0625 + 1e-10, 1.1875 - 1e-10, -1.0625 - 1e-10]),
        _rounded("numbers that are too large", [449.0, 463.0, 470.0, 1e4, -1e30, 3.0]),
        _rounded("the largest", [448.0, -448.0, 440.0, 300.0, 250.0]),
        _rounded("subnormal numbers", [0.01, 0.004, -0.013, 0.0021, 2.0**-9, 3 * 2.0**-10]),
        _rounded("subnormal ties", [2.0**-10, 3 * 2.0**-10, 5 * 2.0**-10, -(2.0**-10), -5 * 2.0**-10]),
        _rounded("numbers that are too small", [0.0009, 0.00099, 0.0011, -(2.0**-10), 1e-9]),
        _rounded("many numbers", rng.normal(size=400) * np.exp(rng.uniform(-9, 7, 400))),
        *random_cases.cases(_any_numbers),
    ]
    return examine(without_lowbit(answer), cases, known)


def without_lowbit(answer: Callable) -> Callable:
    """Return answer; it detects calls of ready-made functions of `flashlib.lowbit`."""

    @wraps(answer)
    def run(*arguments):
        used: list[str] = []
        ready = {name: getattr(lowbit, name) for name in ("rounded", "numbers", "hadamard")}
        for name, function in ready.items():
            setattr(lowbit, name, _noting(function, name, used))
        try:
            result = answer(*arguments)
        finally:
            vars(lowbit).update(ready)
        return Measured(result, Finding("lowbit_used", name=used[0]) if used else None)

    return run


def _noting(function, name, used):
    def call(*arguments, **options):
        used.append(name)
        return function(*arguments, **options)

    return call


def _rounded(words, x):
    """Return the Case of some numbers, each rounded by searching all 253 numbers for the nearest."""
    x = np.array(x, float)
    numbers = lowbit.numbers("e4m3")
    index = np.arange(len(numbers)) - len(numbers) // 2  # 0 is at 0; at even ones the last bit is 0
    distance = np.abs(numbers - x[:, None])
    nearest = [min(np.flatnonzero(row == row.min()), key=lambda at: abs(index[at]) % 2) for row in distance]
    return Case(words, (x,), numbers[nearest], tolerance=0)


def _any_numbers(rng):
    n = int(rng.integers(2, 20))
    return _rounded(f"{n} numbers", rng.normal(size=n) * np.exp(rng.uniform(-2, 3)))


# ---- scales of blocks


@exercise(title="A scale for each block", minutes=5, difficulty="easy", optional=True)
def block_scale(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    cases = [
        _blocks("one block of one row", [[2.0, 1.0]], 1, 448.0),
        _blocks("a block whose largest number is negative", [[-2.0, 1.0], [0.5, 1.5]], 2, 448.0),
        _blocks("two blocks", rng.normal(size=(4, 3)), 2, 448.0),
        _blocks("int8", rng.normal(size=(4, 3)), 2, 127.0),
        _blocks("a last block that is shorter", rng.normal(size=(5, 2)) * [[1], [2], [3], [4], [50]], 2, 448.0),
        _blocks("a block that is larger than X", rng.normal(size=(3, 2)), 8, 448.0),
        _blocks("a last block next to a larger row", [[1.0], [2.0], [3.0], [50.0], [5.0]], 2, 448.0),
        _blocks("7 rows in blocks of 3", [[1.0], [2.0], [3.0], [9.0], [5.0], [7.0], [4.0]], 3, 127.0),
        _blocks("one large number", [[1.0, 2.0], [0.5, 1.0], [3.0, -1000.0], [1.0, 1.0]], 2, 127.0),
        _blocks("very small numbers", [[1e-20, -3e-20], [2e-20, 0.0]], 2, 127.0),
        *random_cases.cases(_any_blocks),
    ]
    zeros = [
        _blocks("a block of zeros", [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [3.0, -5.0]], 1, 448.0),
        _blocks("a row of zeros in a larger block", [[0.0, 0.0], [3.0, -5.0], [0.5, 2.0], [0.0, 0.0]], 2, 448.0),
    ]
    return examine(answer, [cases, zeros], known)


def _blocks(words, X, block, largest):
    X = np.array(X, float)
    top = [max(map(abs, X[at : at + block].ravel().tolist())) for at in range(0, len(X), block)]
    return Case(words, (X, block, largest), np.array([x / largest if x else 1.0 for x in top]))


def _any_blocks(rng):
    N, d, block = map(int, rng.integers((2, 1, 1), (12, 6, 6)))
    X = rng.normal(size=(N, d)) * 10.0 ** rng.integers(-2, 3, (N, 1))
    return _blocks(f"{N} rows in blocks of {block}", X, block, float(rng.choice([448.0, 127.0])))


# ---- scores of whole numbers


@exercise(title="Scores of whole numbers", minutes=5, difficulty="easy", optional=True)
def int8_scores(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    small = [
        _scores(rng, "one score of small numbers", 1, 1, 2, top=4),
        _scores(rng, "two queries and three keys, of small numbers", 2, 3, 4, top=4),
        _scores(rng, "as many queries as keys, of small numbers", 3, 3, 2, top=5),
    ]
    whole = [
        _scores(rng, "one score", 1, 1, 2),
        _scores(rng, "d = 64", 3, 5, 64),
        _scores(rng, "the largest numbers", 2, 3, 16, least=127),
        *random_cases.cases(_any_scores),
    ]
    return examine(answer, [small, whole], known)


def _scores(rng, words, N_q, N_k, d, top=127, least=None):
    Q8, K8 = (rng.integers(-top, top + 1, (N, d)).astype(np.int8) for N in (N_q, N_k))
    if least:
        Q8, K8 = np.full_like(Q8, least), np.full_like(K8, -least)
    q_scale, k_scale = (rng.uniform(0.5, 2, N).round(2) * 4 / top for N in (N_q, N_k))
    scale = float(np.round(rng.uniform(0.05, 0.7), 3))
    S = (Q8.astype(float) * q_scale[:, None]) @ (K8.astype(float) * k_scale[:, None]).T * scale
    return Case(words, (Q8, q_scale, K8, k_scale, scale), S, tolerance=1e-6)  # S may be fp32


def _any_scores(rng):
    N_q, N_k, d = map(int, rng.integers((1, 1, 2), (6, 6, 40)))
    return _scores(rng, f"{N_q} queries, {N_k} keys, d = {d}", N_q, N_k, d)


# ---- weights in e4m3


@exercise(
    title="Weights in e4m3",
    minutes=15,
    difficulty="easy",
    program=partial(written, lowbit=lowbit),
    optional=True,
)
def e4m3_weights(answer: Callable, known: Known) -> Verdict:
    rng = np.random.default_rng(0)
    plain = [
        _weights(rng, "one row of two scores, times 1", 1, 2, 1.0),
        _weights(rng, "one row of two scores, times 256", 1, 2, 256.0),
        _weights(rng, "three rows, times 448", 3, 5, 448.0),
        _weights(rng, "small weights, times 256", 2, 6, 256.0, spread=4.0),
        _weights(rng, "scores near 900", 2, 4, 256.0, at=900.0),
        _weights(rng, "scores near -900", 2, 4, 256.0, at=-900.0),
        _weights(rng, "scores near -20000", 2, 4, 256.0, at=-20000.0),
        _weights(
            rng, "scores near 1000 next to scores near -1000", 2, 3, 256.0, at=np.array([[1000.0], [-1000.0]])
        ),
        _weights(rng, "a maximum of other tiles, above all of this one", 2, 4, 256.0, above=3.0),
        *random_cases.cases(_any_weights),
    ]
    hidden = [
        _weights(rng, "masked scores", 2, 5, 256.0, hidden=2),
        _weights(rng, "a row that sees no key", 2, 3, 256.0, hidden=3),
    ]
    return examine(answer, [plain, hidden], known, outputs=("P8", "l"))


def _weights(rng, words, N, n_keys, times, *, spread=1.5, at=0.0, above=0.0, hidden=0):
    S = (rng.normal(size=(N, n_keys)) * spread).round(2) + at
    S[0, :hidden] = -np.inf
    m = S.max(axis=1) + above
    weight = np.zeros(S.shape)
    seen = S > -np.inf
    weight[seen] = np.exp((S - np.where(m == -np.inf, 0, m)[:, None])[seen])
    P8 = _rounded("", (weight * times).ravel()).expected.reshape(S.shape)
    return Case(words, (S, m, times), (P8, times * weight.sum(axis=1)))


def _any_weights(rng):
    N, n_keys = map(int, rng.integers((1, 2), (5, 9)))
    times = float(rng.choice([1.0, 64.0, 256.0, 448.0]))
    return _weights(rng, f"{N} rows of {n_keys} scores, times {times:g}", N, n_keys, times, spread=3.0)
