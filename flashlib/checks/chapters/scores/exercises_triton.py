"""The exercises in Triton, which is imported by the checks: macOS and Windows lack it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, exercise, random_cases, written

# ---- dropout in Triton


def _rand(seed, place):
    """Return what tl.rand(seed, place) returns: Philox with ten rounds. Source: Salmon et al. (2011)."""
    mask = np.uint64(0xFFFFFFFF)
    place = np.asarray(place).astype(np.int64).astype(np.uint64)
    c0, c1, c2, c3 = place & mask, place >> np.uint64(32), place * 0, place * 0
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c2 = (b >> np.uint64(32)) ^ c1 ^ k0, (a >> np.uint64(32)) ^ c3 ^ k1
        c1, c3 = b & mask, a & mask
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & mask, (k1 + np.uint64(0xBB67AE85)) & mask
    x = c0.astype(np.uint32).view(np.int32)
    return np.where(x < 0, -x - 1, x).astype(np.float32) * np.float32(4.6566127342e-10)


@exercise(
    title="Dropout, made again",
    minutes=15,
    difficulty="medium",
    optional=True,
    program=partial(written, rand=_rand),
)
def dropout(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_variants import tile_by_tile

    cases = [
        _dropped("one tile of one head", 1, 16, 16),
        _dropped("two tiles of keys", 1, 16, 32, p=0.5),
        _dropped("two tiles of queries", 1, 32, 16),
        _dropped("two heads", 2, 16, 16, p=0.5),
        _dropped("two heads, ragged tiles of 16 x 32", 2, 21, 45, B_C=32, seed=100003, p=0.1),
        _dropped("weights near 1e-6", 1, 16, 16, size=1e-6),
        _dropped("p = 0", 1, 16, 16, p=0.0),
        _dropped("p that is one of the numbers", 1, 16, 16, p=float(_rand(11, 100))),
        _dropped("five heads and more than 65536 places", 5, 16, 1000, B_C=256, p=0.3),
        *random_cases.cases(_any_dropped, 1),
    ]
    large = [_dropped("heads whose places are beyond 2^32", 2, 16, 16, first=2**24 + 3)]
    return examine_kernel(answer, tile_by_tile, [cases, large], known, outputs=("Z * P", "dS"))


def _dropped(words, H, N_q, N_k, B_R=16, B_C=16, seed=11, p=0.25, rng=None, first=0, size=1.0):
    """Return the Case of H heads, numbered from `first`."""
    rng = rng or np.random.default_rng(4)
    P, dP = rng.uniform(0.1, 1, (H, N_q, N_k)).round(2) * size, rng.normal(size=(H, N_q, N_k)).round(2)
    delta = rng.normal(size=(H, N_q)).round(2)
    P, dP, delta = (X.astype(np.float32) for X in (P, dP, delta))
    h, r, c = np.indices(P.shape)
    Z = (_rand(seed, (first + h) * N_q * N_k + r * N_k + c) >= p) / (1 - p)
    right = P * Z, P * Z * dP - P * delta[:, :, None]
    return Case(words, (P, dP, delta, seed, p, B_R, B_C, first), right, 1e-5)


def _any_dropped(rng):
    H, N_q, N_k = map(int, rng.integers((1, 4, 4), (4, 40, 40)))
    seed, p = int(rng.integers(1, 1000)), float(rng.integers(2, 14)) / 16
    return _dropped(f"{H} heads of {N_q} x {N_k}", H, N_q, N_k, seed=seed, p=p, rng=rng)


# ---- a soft cap in Triton


@exercise(title="A soft cap in Triton", minutes=15, difficulty="medium")
def capped(answer: Callable, known: Known) -> Verdict:
    from flashlib.checks.harness.launches import examine_kernel
    from flashlib.checks.harness.parts_variants import on_tile

    stages = [
        [
            _tile("scores near 0", 3.0),
            _tile("small scores", 0.05, cap=1.0, tolerance=1e-3),
            _tile("scores near the cap", 40.0),
            _tile("another cap", 8.0, cap=4.3),
            _tile("scores, some of them visible", 30.0, hidden=0.4),
            _tile("scores of both signs, half of them visible", 60.0, hidden=0.5, cap=30.0),
            _tile("a tile of 16 x 32", 30.0, hidden=0.4, shape=(16, 32)),
            *random_cases.cases(_any_tile, 2),
        ],
        [_tile("scores far beyond the cap", 9000.0, cap=5.0, hidden=0.3)],
    ]
    return examine_kernel(answer, on_tile, stages, known)


def _tile(words, size, cap=50.0, hidden=0.0, rng=None, shape=(16, 16), tolerance=1e-5):
    rng = rng or np.random.default_rng(3)
    S = (rng.uniform(-1, 1, size=shape) * size).round(2 if size > 1 else 4).astype(np.float32)
    visible = rng.random(shape) >= hidden
    S[0, 0], visible[0, 0], visible[3] = 0, True, hidden == 0
    right = np.where(visible, cap * np.tanh(S.astype(float) / cap), -np.inf)
    return Case(words, (S, visible, cap), right, tolerance)


def _any_tile(rng):
    cap = float(rng.integers(20, 600)) / 10
    shape = tuple(map(int, rng.choice([16, 32], 2)))
    return _tile(f"a cap of {cap:g}", 3 * cap, cap, float(rng.choice([0, 0.4])), rng, shape)
