"""The exercises on elements. Triton is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    SideFinding,
    Verdict,
    examine,
    exercise,
    random_cases,
    written,
)
from flashlib.checks.harness.strided import Out, Strided, memory, strides_of

INF = np.inf
MODEL = partial(written, memory=memory, strides_of=strides_of)
BLOCKS = tuple(f"BLOCK = {size}" for size in (16, 64, 128, 256, 512, 1024))


@exercise(title="A masked vector add", minutes=10, difficulty="easy", program=MODEL, variants=BLOCKS)
def add(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    sizes = (1, 1, 1, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 3, 1), (32, 1, 1, 1), (40, 3, 2, 1), (LONG, 1, 1, 1)
    apart = (3, 1, 1, 2), (33, 2, 1, 3), (0, 1, 1, 1)
    first, then = ([_vectors(rng, *size) for size in group] for group in (sizes, apart))
    return examine(launched(answer, _not_copied), [first, then + random_cases.cases(_any_vectors)], known)


def _vectors(rng, N, step_x, step_y, step_out):
    x, y = fp32(rng.normal(size=(2, N)).round(2))
    arguments = Strided(x, (step_x,)), Strided(y, (step_y,)), Out((N,), (step_out,))
    return Case(f"N = {N}, strides {step_x}, {step_y} and {step_out}", arguments, x + y, 1e-6)


def _any_vectors(rng):
    return _vectors(rng, int(rng.integers(1, 100)), *map(int, rng.integers(1, 8, 3)))


def fp32(x: float | np.ndarray) -> np.ndarray:
    """Return numbers rounded to fp32, in fp64."""
    return np.asarray(x, np.float32).astype(np.float64)


def _not_copied(watch, x, y, out):
    copied = [name for name, n in [*watch.read.items()][:2] if watch.sees and not n] + watch.after
    return Finding("copied", name=copied[0]) if copied and len(x) else _of_32(watch, len(x))


def _of_32(watch, N):
    """Return a Finding if a vector is cut into blocks that are neither of 32 nor of single elements, else None."""
    places = max(watch.widest.values())
    return Finding("one_block", places=places, N=N) if watch.sees and N > 32 and places not in (1, 32) else None


@exercise(
    title="Scale and exponentiate", minutes=10, difficulty="easy", program=MODEL, variants=BLOCKS, optional=True
)
def scale_exp(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    sizes = (1, 0.5), (3, 0.5), (32, 2), (33, 0.5), (LONG, -0.25), (3, 0.0)
    cases = [_exponents(rng, *size) for size in sizes] + random_cases.cases(_any_exponents)
    return examine(launched(answer, _in_one_go), cases, known)


def _exponents(rng, N, scale):
    x = fp32(rng.uniform(-3, 3, N).round(2))
    return Case(f"{N} elements, scale {scale}", (x, Out((N,)), scale), np.exp(scale * x), 3e-6)


def _any_exponents(rng):
    return _exponents(rng, int(rng.integers(1, 100)), float(rng.integers(1, 40) * rng.choice([-1, 1]) / 16))


def _in_one_go(watch, x, y, scale):
    x_read, y_read = watch.read.values()
    if watch.after or (watch.sees and (x_read < len(x) or y_read or watch.others >= max(len(x), 32))):
        return Finding("two_steps")
    return _of_32(watch, len(x))


@exercise(title="A causal softmax", minutes=20, difficulty="medium", program=MODEL)
def causal_softmax(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import LONG, launched

    rng = np.random.default_rng(0)
    first = [
        _square(rng, "one row", 1),
        _square(rng, "two rows", 2),
        _square(rng, "four rows", 4),
        _square(rng, "five rows", 5),
        _square(rng, "five rows with scores far below 0", 5, size=100, offset=-1000),
        _square(rng, "five rows with large scores", 5, size=100),
        _square(rng, "rows of S with gaps between them", 3, S_apart=4),
        _square(rng, "rows of P with gaps between them", 3, P_apart=4),
        _square(rng, "16 rows", 16),
        _square(rng, "17 rows with gaps between them", 17, size=100, S_apart=5, P_apart=2),
        _square(rng, "scores of 0", 3, size=0),
    ]
    if LONG > 1024:
        first.append(_square(rng, "1100 rows", 1100))
    then = [_square(rng, "scores near -3e9", 3, size=1e9, offset=-3e9), *random_cases.cases(_any_square, 2)]
    return examine(launched(answer, _block_of_row, programs=lambda S, P: len(S)), [first, then], known)


def _square(rng, words, N, size=1.0, offset=0.0, S_apart=0, P_apart=0):
    S = rng.normal(size=(N, N)).round(2) * size + offset
    if N > 1:
        S[0, 1] = S.max() + size  # hidden, and the largest
    S = fp32(S)
    x = np.where(np.tri(N) > 0, S, -INF)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    arguments = Strided(S, (N + S_apart, 1)), Out((N, N), (N + P_apart, 1))
    return Case(words, arguments, p / p.sum(axis=1, keepdims=True), 1e-5)


def _any_square(rng):
    N, *apart = map(int, rng.integers((1, 0, 0), (16, 9, 9)))
    return _square(rng, f"{N} rows", N, float(rng.choice([1, 30])), 0.0, *apart)


def _block_of_row(watch, S, P):
    N, places = len(S), max(watch.widest.values())
    too_many = N > 8 and places > 1 << (N - 1).bit_length()
    return Finding("block", places=places, N=N) if too_many else of_rows(watch, N)


def of_rows(watch: Any, rows: int) -> Finding | None:
    """Return a Finding if there are fewer programs than rows, else None."""
    return SideFinding("programs", n=watch.programs, rows=rows) if watch.sees and watch.programs < rows else None
