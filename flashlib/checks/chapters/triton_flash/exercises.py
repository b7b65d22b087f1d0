"""The exercises of chapter 10: parts of kernels. Triton is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial, wraps

import numpy as np

from flashlib import tiled
from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases
from flashlib.checks.harness import update
from flashlib.softmax import State, summarise_rows

INF = np.inf

INNER_LOOP = partial(update.looped, before=("half = V_j.dtype", update.IN_FP32))


@exercise(title="The inner loop of the kernel", minutes=25, difficulty="hard", program=INNER_LOOP)
def inner_loop(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts import looped

    fp16 = {"dtype": np.float16, "hidden": 0.2}
    stages = [
        [
            _tiles("one tile", 16),
            _tiles("two tiles", 32, steps=2**14),
            _tiles("two tiles, partly visible", 32, hidden=0.4),
            _tiles("large scores", 32, size=4096),
            _tiles("scores far below 0", 32, size=4096, lowest=True),
            _tiles("scores of 0", 32, size=0),
            *random_cases.cases(lambda rng: _any_tiles(rng, 16, 16), 2),
        ],
        [
            _tiles("two tiles of 16 x 32", 64, 32, hidden=0.4),
            *random_cases.cases(lambda rng: _any_tiles(rng, *rng.choice([16, 32], 2)), 2),
        ],
        [
            _tiles("rows that see nothing in the first tile, or at all", 32, hidden=0.4, blind=True),
            *random_cases.cases(lambda rng: _any_tiles(rng, 16, 16, blind=True), 1),
        ],
        [_tiles("rows far apart, some of which see nothing", 32, size=4096, hidden=0.4, blind=True)],
        [
            _tiles("q, k and v in fp16, v of zeros", 48, v=0, scale=0.3, steps=1024, **fp16),
            _tiles("q, k and v in fp16, and sums beyond 65504", 64, v=2**14, size=1 / 8, tolerance=1e-3, **fp16),
        ],
    ]
    return examine_kernel(answer, looped, stages, known, outputs=State._fields)


def _tiles(
    words, N_k, B_c=16, d=16, *, scale=0.5, size=1, v=1, lowest=False, hidden=0.0, blind=False,
    dtype=np.float32, tolerance=1e-5, rng=None, steps=16,
):  # fmt: skip
    """Return the Case of a row block of 16 rows and N_k keys, whose scores are exact in fp32, before scale.

    size, v: factors for Q and V. lowest: all scores are far below 0. steps: how many numbers there are from 0 to
    1; with more than 16, numbers have as many bits as fp16, or more.
    """
    rng = rng or np.random.default_rng(0)
    Q_i, K, V = (rng.integers(-2 * steps, 2 * steps + 1, (n, d)) / steps for n in (16, N_k, N_k))
    Q_i, V = Q_i * size, (np.abs(V) if v > 1 else V) * v
    if lowest:
        Q_i[:, 0], K[:, 0] = -1024 * size, 4
    visible = rng.random((16, N_k)) >= hidden
    visible[:, ::B_c] = True
    if blind:
        visible[3, :B_c] = visible[5] = False
    expected = summarise_rows(np.where(visible, Q_i @ K.T * scale, -INF), V)
    arguments = *(X.astype(dtype) for X in (Q_i, K, V)), visible, scale, B_c
    return Case(words, arguments, tuple(expected), tolerance)


def _any_tiles(rng, B_c, d, **options):
    n = rng.integers(1, 4)
    scale, hidden = float(rng.integers(1, 20) / 16), rng.integers(0, 8) / 10
    words = f"{n} tiles of 16 x {B_c} and d = {d}"
    return _tiles(words, int(n * B_c), int(B_c), int(d), scale=scale, hidden=hidden, rng=rng, **options)


def _same_loops(split):
    """Return split, with full and end replaced by the right ones if they make the same two loops."""

    @wraps(split)
    def run(*sizes):
        def loops(full, end):
            return *range(0, full, sizes[3]), None, *range(full, end, sizes[3])

        given, exact = np.transpose(split(*sizes)).astype(int), np.transpose(_split_of_mask(*sizes))
        same = [loops(*a) == loops(*b) for a, b in zip(given, exact, strict=True)]
        return tuple(np.where(np.array(same)[:, None], exact, given).T)

    return run


@exercise(title="The causal split", minutes=15, difficulty="hard", model=_same_loops, optional=True)
def causal_split(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts import split

    sizes = (
        *((1, 1, 1, 1), (2, 2, 2, 2), (4, 4, 2, 2), (6, 6, 3, 2), (5, 5, 2, 4), (9, 9, 8, 2), (48, 48, 32, 16)),
        *((3, 8, 2, 2), (2, 7, 1, 3), (7, 19, 4, 3), (40, 56, 16, 16), (72, 88, 16, 32)),
        *((8, 3, 2, 2), (13, 5, 4, 4)),  # fewer keys than queries
    )

    def launch(answer):
        return _same_loops(split(answer))

    cases = [_split(*size) for size in sizes] + random_cases.cases(_any_split)
    return examine_kernel(answer, launch, cases, known, outputs=("full", "end"))


def _split(*sizes):
    words = "N_q = {}, N_k = {}, tiles of {} x {}".format(*sizes)
    return Case(words, sizes, _split_of_mask(*sizes))


def _any_split(rng):
    B_r, B_c = rng.choice([2, 4, 8, 16, 32], 2)
    return _split(*map(int, (*rng.integers(1, 80, 2), B_r, B_c)))


def _split_of_mask(N_q, N_k, B_r, B_c):
    """Return full and end of each row block, found by checking its tiles."""
    found = []
    for rows in tiled.blocks(N_q, B_r):
        full, end = 0, 0
        for cols in tiled.blocks(N_k, B_c):
            seen = tiled.is_visible(rows, cols, N_k - N_q)
            if seen.all() and seen.shape[1] == B_c:
                full = cols.stop
            if seen.any():
                end = cols.start + 1 + int(np.flatnonzero(seen.any(axis=0))[-1])
        found.append((full, end))
    return tuple(np.array(found).T)
