"""The exercises of chapter 12. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import math
from dataclasses import replace

import numpy as np

from flashlib import cost, tiled
from flashlib.checks import calculations, updates, updates_in_base_2
from flashlib.checks.calculations import ROOM, ROOMS, SPEED, SPEEDS
from flashlib.checks.examine import Case, Mistake, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.verdict import Verdict

INF = np.inf
LN2 = np.log(2)
STATE = "m", "l", "O_acc"
TF32 = 'tl.dot rounds fp32 to tf32, on a GPU at least: give each one input_precision="ieee"'


# ---- TFLOP/s


@exercise(title="TFLOP/s by the convention", minutes=5, difficulty="easy")
def tflops(answer):
    sizes = (
        (1, 1, 1000, 64, False, 1.0),
        (1, 1, 1000, 64, False, 0.25),
        (2, 3, 1000, 64, False, 0.5),
        (2, 3, 1000, 64, True, 0.5),
        (4, 16, 4096, 128, True, 0.8),
        (4, 32, 16384, 64, False, 43.0),
    )
    cases = calculations.cases("B H N d causal ms", _tflops, sizes)
    return examine(answer, cases, calculations.mistakes(_speed, SPEEDS))


def _tflops(B, H, N, d, causal, ms):
    return B * H * cost.flops(N, N, d, causal=causal) / (ms * 1e9)


def _speed(changed, B, H, N, d, causal, ms):
    return calculations.run(SPEED, changed, B=B, H=H, N=N, d=d, causal=causal, ms=ms)


# ---- scores in base 2


@exercise(title="The update in base 2", minutes=15, difficulty="medium")
def base_2(answer):
    from flashlib.checks.launches import in_turn, part_problem, rounds_dots
    from flashlib.checks.tiles import updates_in_base_2

    if problem := part_problem(answer, STATE):
        return problem
    square = [
        _scores("one tile", 16, 16),
        _scores("two tiles", 32, 16),
        _scores("two tiles, in which some scores are -inf", 32, 16, hidden=0.4),
        _scores("large scores", 32, 16, size=64),
        _scores("rows that see nothing in the first tile, or at all", 32, 16, hidden=0.4, blind=True),
    ]
    wide = [_scores("two tiles of 16 x 32", 64, 32, hidden=0.4)]
    in_fp16 = [_scores("v in fp16", 32, 16, dtype=np.float16, tolerance=2e-3)]
    verdict = in_turn(updates_in_base_2(answer), (square, wide, in_fp16), BASE_2, outputs=STATE)
    if rounds_dots(answer) and (verdict.right or " is wrong for " in verdict.sentence):  # it shows on a GPU only
        return replace(verdict, outcome="wrong", sentence=TF32)
    return verdict


def _scores(words, N_k, B_C, *, size=1, hidden=0.0, blind=False, dtype=np.float32, tolerance=1e-5):
    """Return the Case of 16 rows of scores, exact in fp32 before and after they are scaled."""
    rng = np.random.default_rng(0)
    S = rng.integers(-40, 41, (16, N_k)) * size / 4
    S[::4, B_C:] /= 8  # the largest score of these rows is in the first tile
    V = rng.integers(-6, 7, (N_k, 16)) / 4
    visible = rng.random(S.shape) >= hidden
    visible[:, ::B_C] = True
    if blind:
        visible[3, :B_C] = visible[5] = False
    S = np.where(visible, S, -INF)
    scale_log2e = 0.75
    return Case(
        words, (S.astype(np.float32), V.astype(dtype), scale_log2e, B_C), _state(S, V, scale_log2e), tolerance
    )


def _state(S, V, scale_log2e):
    """Return m in base 2, l and O_acc of rows of scores that are not scaled."""
    m, l, O_acc = updates.state(S * scale_log2e * LN2, V)
    return m / LN2, l, O_acc


def _updated(lines):
    """Return the function of all scores of a row block that goes over its tiles with `lines` exchanged."""

    def run(S, V, scale_log2e, B_C):
        state = updates_in_base_2.start(len(S), V.shape[1])
        for cols in tiled.blocks(len(V), B_C):
            state = updates_in_base_2.update(lines, state, S[:, cols], V[cols], scale_log2e)
        return state

    return run


BASE_2 = [
    Mistake(words, _updated(lines | unguarded))
    for unguarded in ({}, {"shift": lambda s: s.m})
    for words, lines in updates_in_base_2.MISTAKES
]


@exercise(title="From base 2 to lse", minutes=5, difficulty="easy")
def lse_from_base_2(answer):
    rows = (
        ("one row", [4.0], [2.0]),
        ("l = 1", [3.0], [1.0]),
        ("three rows", [4.0, -3.5, 0.0], [2.0, 1.25, 7.0]),
        ("a row that sees no key", [0.5, -INF], [3.0, 0.0]),
        ("m_2 = 2000, whose power of 2 overflows", [2000.0, -2000.0], [1.5, 9.0]),
        ("no rows", [], []),
    )
    cases = [
        Case(words, (np.array(m_2), np.array(l)), _lse(np.array(m_2), np.array(l)), 1e-6) for words, m_2, l in rows
    ]
    return examine(answer, cases, LSE)


def _lse(m_2, l):
    """Return lse of each row, summed in base e."""
    with np.errstate(divide="ignore"):
        return m_2 * LN2 + np.log(l)


BOTH = "(m_2 + log2(l)) * ln 2, or m_2 * ln 2 + log(l)"
NO_KEY = "of a row that sees no key"

LSE = [
    Mistake(words, wrong)
    for words, wrong in (
        ("that is lse in base 2: multiply it by ln 2", lambda m_2, l: m_2 + np.log2(l)),
        (f"m_2 is in base 2, and log(l) is not: {BOTH}", lambda m_2, l: m_2 + np.log(l)),
        (f"log2(l) is in base 2: {BOTH}", lambda m_2, l: m_2 * LN2 + np.log2(l)),
        (f"log(l) is in base e and is multiplied by ln 2 again: {BOTH}", lambda m_2, l: (m_2 + np.log(l)) * LN2),
        (
            "log2(e) is the wrong way round: multiply by ln 2, or divide by log2(e)",
            lambda m_2, l: (m_2 + np.log2(l)) / LN2,
        ),
        (
            "log2(e) is the wrong way round: multiply by ln 2, or divide by log2(e)",
            lambda m_2, l: m_2 / LN2 + np.log(l),
        ),
        (f"l is left out: that is m in base e; {BOTH}", lambda m_2, l: m_2 * LN2),
        (f"l is left out, and m_2 is in base 2: {BOTH}", lambda m_2, l: m_2),
        (f"l is added, not its logarithm: {BOTH}", lambda m_2, l: m_2 * LN2 + l),
        (f"l is added, not its logarithm: {BOTH}", lambda m_2, l: (m_2 + l) * LN2),
        (f"log(l) is subtracted: {BOTH}", lambda m_2, l: m_2 * LN2 - np.log(l)),
        (f"log(l) is subtracted: {BOTH}", lambda m_2, l: (m_2 - np.log2(l)) * LN2),
        (f"m_2 is left out: {BOTH}", lambda m_2, l: np.log(l)),
        (f"a logarithm of base 10: {BOTH}", lambda m_2, l: m_2 * LN2 + np.log10(l)),
        (f"log1p is log(1 + l): {BOTH}", lambda m_2, l: m_2 * LN2 + np.log1p(l)),
        (
            "the sum of exponentials is returned: take its logarithm, without making it",
            lambda m_2, l: np.exp2(m_2) * l,
        ),
        ("2^m_2 is made: it overflows, or is 0; add logarithms", lambda m_2, l: np.log(np.exp2(m_2) * l)),
        ("2^m_2 is made: it overflows, or is 0; add logarithms", lambda m_2, l: np.log(np.exp2(m_2)) + np.log(l)),
        *(
            (f"lse {NO_KEY} is {value}: it is -inf", lambda m_2, l, x=value: np.where(l == 0, x, _lse(m_2, l)))
            for value in (0.0, np.nan, INF)
        ),
        *(
            ("ln 2 is rounded: take math.log(2)", lambda m_2, l, x=x: m_2 * x + np.log(l))
            for x in (0.69, 0.693, 0.6931, 1 / 1.4427, 1 / 1.443, 1 / 1.44)
        ),
        ("the two are multiplied: add them", lambda m_2, l: m_2 * LN2 * np.log(l)),
        ("the two are multiplied: add them", lambda m_2, l: m_2 * np.log2(l) * LN2),
        (
            "math.log is an error where l is 0: np.log gives -inf there",
            lambda m_2, l: [m * LN2 + math.log(x) for m, x in zip(m_2, l, strict=True)],
        ),
        *(
            (f"lse {NO_KEY} is a large number: it is -inf", lambda m_2, l, x=x: np.where(l == 0, x, _lse(m_2, l)))
            for x in (-1e4, -1e6, -1e9, -1e10, -1e30, -1e38)
        ),
    )
]


# ---- the tail


@exercise(title="A mask for the tail alone", minutes=20, difficulty="medium")
def tail(answer):
    from flashlib.checks.launches import part_problem, rounds_dots
    from flashlib.checks.tiles import always_masks, masks_one_load, over_all_keys

    if problem := part_problem(answer, STATE):
        return problem
    words = (("one whole tile", 16), ("two whole tiles", 32), ("fewer keys than a tile", 5), ("one key", 1))
    words += (("a key more than a tile", 17), ("two whole tiles and a tail", 43), ("no key at all", 0))
    cases = [_keys(text, N_k) for text, N_k in words]
    cases.append(_keys("tiles of 32 keys and a tail", 75, 32))
    verdict = examine(over_all_keys(answer), cases, TAIL, outputs=STATE)
    recognised = verdict.sentence and " is wrong" not in verdict.sentence
    if not verdict.right and recognised:
        return verdict
    if rounds_dots(answer):  # it shows on a GPU only
        return replace(verdict, outcome="wrong", sentence=TF32)
    if verdict.right and always_masks(answer):
        return Verdict("", "wrong", EVERYWHERE)
    if verdict.right and masks_one_load(answer):
        return Verdict("", "wrong", ONE_MASK)
    return verdict


EVERYWHERE = "right, but every tile is masked: give the whole tiles a loop of their own, without masks"
ONE_MASK = "K or V is read past its end: in the tail, mask both loads"


def _keys(words, N_k, B_C=16):
    """Return the Case of 16 queries and N_k keys, whose scores are exact in fp32, and far below 0 in some rows."""
    rng = np.random.default_rng(0)
    Q_i, K, V = (rng.integers(-6, 7, (n, 16)) / 4 for n in (16, N_k, N_k))
    Q_i[::4], Q_i[1::4], K[:, 0] = 0, 0, np.abs(K[:, 0]) + 1
    Q_i[::4, 0], Q_i[1::4, 0] = -1.5, 1.5  # all scores of these rows are of one sign
    arguments = *(X.astype(np.float32) for X in (Q_i, K, V)), 0.75, B_C
    return Case(words, arguments, _state(Q_i @ K.T, V, 0.75), 1e-5)


TAIL = [Mistake(words, updates_in_base_2.tailed(**parts)) for words, parts in updates_in_base_2.TAILS]


# ---- programs on a multiprocessor


@exercise(title="Programs on a multiprocessor", minutes=15, difficulty="medium")
def programs(answer):
    sizes = (
        (128, 0, 4),
        (64, 0, 4),
        (168, 0, 4),
        (169, 0, 4),
        (133, 0, 4),
        (20, 0, 8),
        (32, 0, 8),
        (32, 57 * 1024, 4),
        (32, 113 * 1024, 4),
        (32, 75 * 1024 + 512, 4),
        (64, 48 * 1024, 8),
        (255, 96 * 1024, 8),
        (128, 226 * 1024, 16),
        (255, 32 * 1024, 16),
        (32, 260 * 1024, 4),
        (40, 1024, 4),
    )
    cases = calculations.cases("registers shared num_warps", _programs, sizes)
    return calculations.examine_whole(answer, cases, calculations.mistakes(_room, ROOMS))


def _programs(registers, shared, num_warps):
    from flashlib.kernels import compiled

    return min(compiled.programs(registers, shared, num_warps, 90))


def _room(changed, registers, shared, num_warps):
    return calculations.run(ROOM, changed, registers=registers, shared=shared, num_warps=num_warps)
