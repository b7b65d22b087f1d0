"""The exercises on the safe softmax."""

import contextlib
from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import (
    Case,
    Finding,
    Known,
    ProgramText,
    Verdict,
    defined,
    examine,
    exercise,
    inspected,
    random_cases,
)

INF = np.inf


LINES = """
m = S.max(axis=1, initial=-np.inf)
shift = np.where(m == -np.inf, 0, m)
P = np.exp(S - shift[:, None])
l = P.sum(axis=1)
some = np.where(l == 0, 1, l)
"""
UNGUARDED = "some = l"


def row_program(head: str, result: str, rows: str = "") -> ProgramText:
    """Return the ProgramText of a function that returns `result`; rows: lines that define the rows of scores S."""
    return defined(head, f"{rows}{LINES}result = {result}", "return result")


def exact_weights(row: np.ndarray) -> np.ndarray:
    """Return the exact softmax of a row, or zeros if the whole row is masked."""
    terms = np.exp(row - max(row.max(initial=-INF), -1e300))
    return terms / (terms.sum() or 1)


# ---- rows of scores

PLAIN = (
    ("one score", [[2.0]]),
    ("one row of two scores", [[0.0, 1.0]]),
    ("the larger score first", [[1.5, 0.5]]),
    ("two equal scores", [[1.0, 1.0]]),
    ("two rows", [[0.5, -1.0, 2.0], [-0.25, -1.5, 1.0]]),
    ("two negative scores, and two rows of them", [[-2.0, -1.0], [-3.0, -0.5]]),
    ("rows with equal maxima", [[3.0, 1.0, 3.0], [0.0, 0.0, 0.0], [-2.0, -1.0, -1.0]]),
    ("large scores", [[1000.0, 999.0, 998.5]]),
    ("large negative scores", [[-1000.0, -1001.0, -1000.5], [-800.0, -800.5, -801.0]]),
    ("scores far apart", [[-3000.0, 0.0, 2000.0], [2000.0, 0.0, -3000.0], [0.0, 2000.0, -3000.0]]),
    ("rows of very different size", [[1e4, 9999.0], [-1e4, -9999.5], [0.0, 1.0]]),
    ("scores near a million", [[1e6, 1e6 - 1], [-1e6, 1 - 1e6], [-1e6, 1e6]]),
    ("scores of minus a million", [[-1e6, -1e6], [1.0, 0.0]]),
    ("20 scores, all equal", [[0.5] * 20]),
    ("a second score 20 below the first", [[1.0, -19.0]]),
)
MASKED = (
    ("a masked score", [[0.5, -INF, 1.5], [-INF, -1.0, -2.0]]),
    ("a masked score first, all others equal", [[-INF, 2.0, 2.0]]),
    ("a masked score next to scores of 0", [[-INF, 0.0, 0.0]]),
    ("a fully masked row", [[-INF, -INF, -INF], [0.0, 1.0, 2.0]]),
    ("rows that are all fully masked", [[-INF] * 3, [-INF] * 3]),
    ("a fully masked row next to large scores", [[1000.0, 999.0], [-INF, -INF], [-1000.0, -999.0]]),
    ("masked scores next to very negative ones", [[-1e6, -INF, 1 - 1e6], [-INF, -2e4, -INF]]),
)


def row_stages(oracle: Callable, dtype: bool = False) -> list[list[Case]]:
    """Return the stages of Cases for a function of each row: plain, masked, without keys, in fp32.

    dtype: whether the result must have the dtype of the scores.
    """

    def case(words, S):
        single = S.dtype == np.float32
        expected = np.array([oracle(row) for row in S.astype(np.float64)])
        size = np.abs(S[S > -INF]).max(initial=0)
        tolerance = max(1e-5, 1e-7 * size) if single else 1e-10 if size < 10 else 1e-9  # S - lse loses digits
        return Case(f"{words}{', in float32' * single}", (S,), expected, tolerance, S.dtype if dtype else None)

    def drawn_case(masked, kind):
        def make(rng):
            S = rng.normal(size=rng.integers(17, 50, size=2)) * rng.choice([1, 30, 1000])
            S[:, rng.random(S.shape[1]) < 0.1] = S[0, 0]
            S[rng.random(S.shape) < 0.3 * masked] = -INF
            S[rng.random(len(S)) < 0.2 * masked] = -INF
            return case(f"{S.shape[0]} rows of {S.shape[1]} scores", S.astype(kind))

        return make

    def fixed(rows, kind=np.float64):
        return [case(words, np.array(S, kind)) for words, S in rows]

    none = [("no keys, N_k = 0", np.zeros((3, 0)))]
    return [
        fixed(PLAIN) + random_cases.cases(drawn_case(False, np.float64), 2),
        fixed(MASKED) + random_cases.cases(drawn_case(True, np.float64), 2),
        fixed(none),
        [
            *fixed(PLAIN, np.float32),
            *fixed(MASKED, np.float32),
            *random_cases.cases(drawn_case(True, np.float32), 1),
        ],
        fixed(none, np.float32),
    ]


def with_finding(answer: Callable, id: str, holds: Callable) -> Callable:
    """Return answer; it reports the Finding `id` if holds(*arguments, result) is true anywhere."""

    def look(result, *arguments):
        with contextlib.suppress(TypeError, ValueError, IndexError):  # not numbers, or of the wrong shape
            return Finding(id) if np.any(holds(*arguments, np.asarray(result))) else None

    return inspected(answer, look)


# ---- the weights of each row

UNGUARDED_WEIGHTS = (UNGUARDED, "some = l; return result -> return np.nan_to_num(result)")
MASK = """
scores = S
S = np.where(visible, S, -np.inf)
"""


@exercise(
    title="Softmax of each row",
    minutes=10,
    difficulty="medium",
    program=row_program("my_softmax_rows(S, visible)", "P / some[:, None]", MASK),
    variants=UNGUARDED_WEIGHTS,
)
def softmax_rows(answer: Callable, known: Known) -> Verdict:
    answer = with_finding(answer, "masked_weight", lambda S, visible, P: ~visible & (P != 0) & (P == P))
    plain, masked, none, *_ = row_stages(exact_weights)
    all_see = [case for case in masked if _each_row_sees(case)]
    some_see = [case for case in masked if not _each_row_sees(case)]
    stages = [[_with_visible(case) for case in stage] for stage in (plain + all_see, some_see, none)]
    return examine(answer, stages, known)


def _each_row_sees(case):
    """Return whether each row of the Case has a score that is not masked."""
    (S,) = case.arguments
    return (S > -INF).any(axis=1).all()


def _with_visible(case):
    """Return the Case with `visible` in place of -inf; what it masks is moderate or larger than all others."""
    (S,) = case.arguments
    visible = S > -INF
    k = np.arange(S.size).reshape(S.shape)
    masked = np.where(k % 2, 1e6 - k, k / 10)
    return case._replace(arguments=(np.where(visible, S, masked), visible))


@exercise(
    title="Safe softmax of a matrix",
    minutes=10,
    difficulty="medium",
    program=row_program("my_safe_softmax(S)", "P / some[:, None]"),
    variants=UNGUARDED_WEIGHTS,
    optional=True,
)
def safe_softmax(answer: Callable, known: Known) -> Verdict:
    answer = with_finding(answer, "masked_weight", lambda S, P: (S == -INF) & (P != 0) & (P == P))
    return examine(answer, row_stages(exact_weights, dtype=True), known)
