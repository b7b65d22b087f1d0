"""The exercises of chapter 10. Triton is imported by the checks, not here: it is missing on macOS and Windows."""

import math
from functools import wraps

import numpy as np

from flashlib import naive, tiled
from flashlib.checks import updates
from flashlib.checks.examine import Case, Finding, Mistake, describe_value, examine
from flashlib.checks.exercise import exercise
from flashlib.checks.verdict import Verdict

CHAPTER = "10_triton_flash"
INF = np.inf
STATE = "m", "l", "O_acc"
TF32 = 'right here, but on a GPU tl.dot rounds fp32 to tf32: give each one input_precision="ieee"'


@exercise(chapter=CHAPTER, title="The inner loop of the kernel", minutes=25, difficulty="hard", triton=True)
def inner_loop(answer):
    from flashlib.checks.launches import in_turn, looped, part_problem, rounds_dots

    if problem := part_problem(answer, STATE):
        return problem
    in_fp32 = [
        _tiles("one tile", 16, 16),
        _tiles("two tiles", 32, 16),
        _tiles("two tiles, a part of which is visible", 32, 16, hidden=0.4),
        _tiles("large scores", 32, 16, size=64),
        _tiles("rows that see nothing in the first tile, or at all", 32, 16, hidden=0.4, blind=True),
        _tiles("two tiles of 16 x 32", 64, 32, hidden=0.4),
    ]
    in_fp16 = [_tiles("q, k and v in fp16", 32, 16, dtype=np.float16, tolerance=2e-3)]
    verdict = in_turn(looped(answer), (in_fp32, in_fp16), INNER_LOOP, outputs=STATE)
    return Verdict("", "wrong", TF32) if verdict.right and rounds_dots(answer) else verdict


def _tiles(words, N_k, B_c, *, size=1, hidden=0.0, blind=False, dtype=np.float32, tolerance=1e-5):
    """Return the Case of a row block of 16 rows and N_k keys, whose scores are exact in fp32."""
    rng = np.random.default_rng(0)
    Q_i, K, V = (rng.integers(-6, 7, (n, 16)) / 4 for n in (16, N_k, N_k))
    Q_i *= size
    visible = rng.random((16, N_k)) >= hidden
    visible[:, ::B_c] = True
    if blind:
        visible[3, :B_c] = visible[5] = False
    expected = updates.state(np.where(visible, Q_i @ K.T * 0.5, -INF), V)
    arguments = *(X.astype(dtype) for X in (Q_i, K, V)), visible, 0.5, B_c
    return Case(words, arguments, tuple(expected), tolerance)


def _looped(lines):
    """Return the function of a row block that goes over its tiles with `lines` exchanged in the update."""

    def run(Q_i, K, V, visible, scale, B_c):
        state = updates.start(*Q_i.shape)
        for cols in tiled.blocks(len(K), B_c):
            given = {"Q_i": Q_i, "K_j": K[cols], "V_j": V[cols], "scale": scale, "seen": visible[:, cols]}
            state = updates.update(lines, before=state, **given)
        return state

    return run


def _all_scores(s):
    return s.raw * s.scale


def _where_seen(s, X):
    return np.where(s.seen, X, 0)


BASE_2 = "the powers are of base 2, tl.exp2: here they are of base e, tl.exp"

VISIBLE = (
    ("visible is not used: scores where it is False become -inf", {"S_ij": _all_scores}),
    (
        "hidden scores become 0: they must become -inf, since exp(0 - m) is a weight",
        {"S_ij": lambda s: _where_seen(s, _all_scores(s))},
    ),
    (
        "visible is upside down: scores where it is False become -inf",
        {"S_ij": lambda s: np.where(s.seen, -INF, _all_scores(s))},
    ),
    (
        "m counts hidden scores: mask S before its maximum is taken, not P after",
        {"S_ij": _all_scores, "P_ij": lambda s: _where_seen(s, np.exp(s.S_ij - s.shift[:, None]))},
    ),
    (
        "m and l count hidden scores: mask S before its maximum is taken",
        {
            "S_ij": _all_scores,
            "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + _where_seen(s, s.P_ij) @ s.V_j,
        },
    ),
    *(
        (
            f"{value:g} {how} hidden scores: a row that sees no key then sees them all; use -inf",
            {"S_ij": lambda s, x=value, k=keep: np.where(s.seen, _all_scores(s), k * _all_scores(s) + x)},
        )
        for value in (-1e4, -1e5, -1e6, -1e9, -1e10, -1e30)
        for how, keep in (("takes the place of", 0), ("is added to", 1))
    ),
    (
        BASE_2,
        {
            "alpha": lambda s: np.exp2(s.m_old - s.shift),
            "P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None]),
        },
    ),
    (BASE_2, {"P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None])}),
    ("m and l are exchanged: return m, l, O_acc", {"after": lambda s: updates.State(s.l, s.m, s.O_acc)}),
    ("the m before the tile is returned: return the new one", {"m": lambda s: s.m, "after": None}),
)

INNER_LOOP = [Mistake(words, _looped(lines)) for words, lines in (*VISIBLE, *updates.SCORES, *updates.UPDATES)]
