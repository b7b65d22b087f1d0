"""The update of m, l and O_acc by one tile, and the mistakes that are made in it, told by what they give.

The update is a list of lines, one for each name that it computes. A mistake is the same list with a line or two
exchanged, as in the answer of the learner who makes it. Source: FlashAttention-2, Algorithm 1, lines 8-10.
"""

from itertools import combinations
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

INF = np.inf


class State(NamedTuple):
    """What is known of a block of rows after some keys."""

    m: Any  # (B_r,)
    l: Any  # (B_r,)
    O_acc: Any  # (B_r, d)


class Slip(NamedTuple):
    """A known mistake: the sentence that names it, and the lines that make it."""

    sentence: str
    lines: dict


LINES = {  # s has Q_i, K_j, V_j, scale, seen (the mask of the tile) and before (the State)
    "K_j": lambda s: s.K_j,
    "V_j": lambda s: s.V_j,
    "m_old": lambda s: s.before.m,
    "l_old": lambda s: s.before.l,
    "O_acc_old": lambda s: s.before.O_acc,
    "raw": lambda s: s.Q_i @ s.K_j.T,
    "S_ij": lambda s: np.where(s.seen, s.raw * s.scale, -INF),
    "m": lambda s: np.maximum(s.m_old, s.S_ij.max(axis=1)),
    "shift": lambda s: np.where(s.m == -INF, 0, s.m),
    "alpha": lambda s: np.exp(s.m_old - s.shift),
    "P_ij": lambda s: np.exp(s.S_ij - s.shift[:, None]),
    "l": lambda s: s.alpha * s.l_old + s.P_ij.sum(axis=1),
    "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + s.P_ij @ s.V_j,
    "after": lambda s: State(s.m, s.l, s.O_acc),
}


def update(lines, *, Q_i, K_j, V_j, scale, before, seen=True, **others) -> State:
    """Return the State after a tile, with `lines` in place of those of the same name; others: what they use."""
    s = SimpleNamespace(Q_i=Q_i, K_j=K_j, V_j=V_j, scale=scale, before=before, seen=seen, **others)
    with np.errstate(all="ignore"):
        for name, line in (LINES | lines).items():
            setattr(s, name, line(s))
    return s.after


def start(n_r, d) -> State:
    """Return the State of n_r rows that have seen no key."""
    return State(np.full(n_r, -INF), np.zeros(n_r), np.zeros((n_r, d)))


def state(S, V) -> State:
    """Return the State of rows of scores S (n, N) with the values V (N, d), all keys at once: what is true."""
    m = S.max(axis=1, initial=-INF)
    P = np.exp(S - np.where(m == -INF, 0, m)[:, None])
    return State(m, P.sum(axis=1), P @ V)


def named(tables, fits, alone=()):
    """Return the sentence of the first mistake that fits; of two, if no single one does; or "".

    fits: takes lines and returns whether they give what was given. alone: mistakes that are not paired.
    """
    mistakes = [mistake for table in tables for mistake in table]
    for mistake in (*mistakes, *alone):
        if fits(mistake.lines):
            return mistake.sentence
    for one, other in combinations(mistakes, 2):
        if not one.lines.keys() & other.lines.keys() and fits(one.lines | other.lines):
            return f"{one.sentence}; and {other.sentence}"
    return ""


def _where_seen(s, P):
    return np.where(s.seen, P, 0)


def _all_scores(s):
    return s.raw * s.scale


RESCALE = "multiply what was summed before by alpha = exp(m_old - m)"
NO_MAXIMUM = "the maximum is not subtracted: P_ij is exp(S_ij - m), not exp(S_ij)"
NOTHING_SEEN = "a row that has seen only -inf gives nan, since -inf - (-inf) is nan: shift by 0 where m is -inf"
AXIS = "over axis 0, which is one for each key: each row has its own, so axis=1"
WEIGHTS_DIVIDED = "P_ij is divided by a sum before it meets V_j: keep it as exp(S_ij - m) and divide at the end"
COLUMNS = "[:, None] is missing: a number for each row, such as m or alpha, is taken as one for each column"
EVERYTHING = "the new tile is multiplied by alpha too: only what was summed before is rescaled"
AS_IT_CAME = "m, l and O_acc are given back as they came: this tile is not in them"

SCORES = (
    Slip("the scale is missing: S_ij = Q_i @ K_j.T * scale", {"S_ij": lambda s: np.where(s.seen, s.raw, -INF)}),
    Slip(
        "the scale is applied twice: S_ij = Q_i @ K_j.T * scale",
        {"S_ij": lambda s: np.where(s.seen, s.raw * s.scale**2, -INF)},
    ),
    Slip(
        "the scores are divided by scale: S_ij = Q_i @ K_j.T * scale",
        {"S_ij": lambda s: np.where(s.seen, s.raw / s.scale, -INF)},
    ),
    Slip(
        "the argument scale is not used, 1 / sqrt(d) is: S_ij = Q_i @ K_j.T * scale",
        {"S_ij": lambda s: np.where(s.seen, s.raw / np.sqrt(s.Q_i.shape[1]), -INF)},
    ),
    Slip("K_j is not transposed: S_ij = Q_i @ K_j.T * scale", {"raw": lambda s: s.Q_i @ s.K_j}),
    Slip("V_j is taken from K: it is V[cols]", {"V_j": lambda s: s.K_j}),
    Slip("the scores are made with V: S_ij = Q_i @ K_j.T * scale", {"raw": lambda s: s.Q_i @ s.V_j.T}),
)

MASKS = (  # a tile of a loop; r and c are the numbers of its rows and columns, past is N_k - N_q
    Slip("the causal mask is missing", {"S_ij": _all_scores}),
    Slip(
        "the causal mask is aligned top left: query r sees keys up to r + N_k - N_q",
        {"S_ij": lambda s: np.where(s.c <= s.r, _all_scores(s), -INF)},
    ),
    Slip(
        "the causal mask is laid on each tile anew: r and c are the numbers of rows and columns of S",
        {"S_ij": lambda s: np.where(s.c - s.c[0, 0] <= s.r - s.r[0, 0], _all_scores(s), -INF)},
    ),
    Slip(
        "a query must see its own key too: the mask is c <= r + N_k - N_q",
        {"S_ij": lambda s: np.where(s.c < s.r + s.past, _all_scores(s), -INF)},
    ),
    Slip(
        "the causal mask is upside down: visible scores become -inf, hidden ones are kept",
        {"S_ij": lambda s: np.where(s.c > s.r + s.past, _all_scores(s), -INF)},
    ),
    Slip(
        "hidden scores become 0: they must become -inf, since exp(0 - m) is a weight",
        {"S_ij": lambda s: np.where(s.seen, _all_scores(s), 0)},
    ),
    Slip(
        "the mask is multiplied by -inf and added, but 0 * -inf is nan: np.where(visible, S_ij, -np.inf)",
        {"S_ij": lambda s: _all_scores(s) + ~s.seen * -INF},
    ),
    Slip(
        "a causal mask is applied though causal is False",
        {"S_ij": lambda s: np.where(s.c <= s.r + s.past, _all_scores(s), -INF)},
    ),
    Slip(
        "m counts hidden scores: mask S_ij before its maximum is taken, not P_ij after",
        {"S_ij": _all_scores, "P_ij": lambda s: _where_seen(s, np.exp(s.S_ij - s.shift[:, None]))},
    ),
    Slip(
        "hidden keys count in m and l: mask S_ij with -inf before its maximum is taken",
        {
            "S_ij": _all_scores,
            "O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + _where_seen(s, s.P_ij) @ s.V_j,
        },
    ),
    *(
        Slip(
            f"{value:g} {how} hidden scores: a row that sees no key then sees them all; use -np.inf",
            {"S_ij": lambda s, x=value, k=keep: np.where(s.seen, _all_scores(s), k * _all_scores(s) + x)},
        )
        for value in (-1e4, -1e5, -1e6, -1e9, -1e10, -1e30)
        for how, keep in (("takes the place of", 0), ("is added to", 1))
    ),
)

UPDATES = (
    Slip(f"l is not rescaled when the maximum grows: {RESCALE}", {"l": lambda s: s.l_old + s.P_ij.sum(axis=1)}),
    Slip(
        f"O_acc is not rescaled when the maximum grows: {RESCALE}",
        {"O_acc": lambda s: s.O_acc_old + s.P_ij @ s.V_j},
    ),
    Slip(
        f"neither l nor O_acc is rescaled when the maximum grows: {RESCALE}",
        {"alpha": lambda s: np.ones_like(s.m)},
    ),
    Slip(
        "alpha is upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)",
        {"alpha": lambda s: np.exp(s.m - s.m_old)},
    ),
    Slip(
        "alpha is not made with exp: it is exp(m_old - m), not the difference",
        {"alpha": lambda s: s.m_old - s.shift},
    ),
    Slip(
        EVERYTHING,
        {
            "l": lambda s: s.alpha * (s.l_old + s.P_ij.sum(axis=1)),
            "O_acc": lambda s: s.alpha[:, None] * (s.O_acc_old + s.P_ij @ s.V_j),
        },
    ),
    Slip(EVERYTHING, {"O_acc": lambda s: s.alpha[:, None] * (s.O_acc_old + s.P_ij @ s.V_j)}),
    Slip(
        "m is the maximum of this tile alone: take the larger of it and the m before",
        {"m": lambda s: s.S_ij.max(axis=1)},
    ),
    Slip(
        "one maximum is taken for all rows: each row has its own, along axis 1",
        {"m": lambda s: np.maximum(s.m_old, s.S_ij.max())},
    ),
    Slip(f"the maximum is taken {AXIS}", {"m": lambda s: np.maximum(s.m_old, s.S_ij.max(axis=0))}),
    Slip(NO_MAXIMUM, {"P_ij": lambda s: np.exp(s.S_ij)}),
    Slip(NO_MAXIMUM, {"P_ij": lambda s: np.exp(s.S_ij), "alpha": lambda s: np.ones_like(s.m)}),
    Slip(NO_MAXIMUM, {"m": lambda s: s.m_old, "shift": lambda s: 0 * s.l_old, "alpha": lambda s: 1 + s.shift}),
    Slip(
        "the old maximum is subtracted: P_ij is exp(S_ij - m) with the new m",
        {"P_ij": lambda s: np.exp(s.S_ij - s.m_old[:, None])},
    ),
    Slip(
        "the tile's own maximum is subtracted: P_ij is exp(S_ij - m), m the largest score so far",
        {"P_ij": lambda s: np.exp(s.S_ij - s.S_ij.max(axis=1, keepdims=True))},
    ),
    Slip(COLUMNS, {"P_ij": lambda s: np.exp(s.S_ij - s.shift)}),
    Slip(COLUMNS, {"O_acc": lambda s: s.alpha * s.O_acc_old + s.P_ij @ s.V_j}),
    Slip(AS_IT_CAME, {"after": lambda s: s.before}),
    Slip(
        "what was summed before is lost: add alpha * l and alpha * O_acc to the sums of this tile",
        {"l": lambda s: s.P_ij.sum(axis=1), "O_acc": lambda s: s.P_ij @ s.V_j},
    ),
    Slip(
        "m, l and O_acc are those of this tile alone: what came before is not used",
        {"m": lambda s: s.S_ij.max(axis=1), "l": lambda s: s.P_ij.sum(axis=1), "O_acc": lambda s: s.P_ij @ s.V_j},
    ),
    Slip(
        "m, l and O_acc are all 0",
        {"after": lambda s: State(0 * s.l_old, 0 * s.l_old, np.zeros_like(s.O_acc_old))},
    ),
    Slip(
        "P_ij is transposed: it has a row for each row of Q_i, so P_ij @ V_j",
        {"O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + s.P_ij.T @ s.V_j},
    ),
    Slip("l before the tile is lost: l = alpha * l + P_ij.sum(axis=1)", {"l": lambda s: s.P_ij.sum(axis=1)}),
    Slip(
        "O_acc before the tile is lost: O_acc = alpha[:, None] * O_acc + P_ij @ V_j",
        {"O_acc": lambda s: s.P_ij @ s.V_j},
    ),
    Slip(f"the sum is taken {AXIS}", {"l": lambda s: s.alpha * s.l_old + s.P_ij.sum(axis=0)}),
    Slip(
        "one sum is taken for all rows: each row has its own, along axis 1",
        {"l": lambda s: s.alpha * s.l_old + s.P_ij.sum()},
    ),
    Slip(
        "l is the mean of the weights, not their sum: P_ij.sum(axis=1)",
        {"l": lambda s: s.alpha * s.l_old + s.P_ij.mean(axis=1)},
    ),
    *(
        Slip(
            "O_acc is divided by l in every step: divide once, after the last tile",
            {"after": lambda s, zero=zero: State(s.m, s.l, s.O_acc / np.where(s.l == 0, zero, s.l)[:, None])},
        )
        for zero in (1, 0)
    ),
    Slip(WEIGHTS_DIVIDED, {"O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + s.P_ij / s.l[:, None] @ s.V_j}),
    *(
        Slip(
            WEIGHTS_DIVIDED,
            {
                name: lambda s, line=LINES[name]: line(
                    SimpleNamespace(**(vars(s) | {"P_ij": s.P_ij / s.P_ij.sum(axis=1, keepdims=True)}))
                )
                for name in names
            },
        )
        for names in (("O_acc",), ("l", "O_acc"))
    ),
    Slip(
        "lse is kept where m belongs: m is the largest score, lse = m + log(l) comes at the end",
        {"after": lambda s: State(s.m + np.log(s.l), s.l, s.O_acc)},
    ),
    Slip(
        "lse is kept for m, and O for O_acc: give the largest score, the sum of the weights and O_acc",
        {"after": lambda s: State(s.m + np.log(s.l), np.ones_like(s.l), s.O_acc / s.l[:, None])},
    ),
    Slip(NOTHING_SEEN, {"shift": lambda s: s.m}),
    Slip(NOTHING_SEEN, {"alpha": lambda s: np.exp(s.m_old - s.m)}),
    Slip(NOTHING_SEEN, {"P_ij": lambda s: np.exp(s.S_ij - s.m[:, None])}),
)


def _O(s):
    """Return O as it lies in memory between the tiles of the order FA1: normalised."""
    return s.before.O_acc / np.where(s.before.l == 0, 1, s.before.l)[:, None]


FA1 = (  # what is kept in memory between two tiles of a row block
    *(
        Slip(
            "the Step holds O, which is normalised: yield O_acc, not divided by l",
            {
                "O_acc_old": lambda s: s.before.O_acc * s.before.l[:, None],
                "after": lambda s, zero=zero: State(s.m, s.l, s.O_acc / np.where(s.l == 0, zero, s.l)[:, None]),
            },
        )
        for zero in (1, 0)
    ),
    Slip("O is not un-normalised when it is loaded: O_acc_old = O[rows] * l_old[:, None]", {"O_acc_old": _O}),
    Slip(
        "O is un-normalised by the new l: multiply it by l_old, and load that before l_hbm is written",
        {"O_acc": lambda s: (s.alpha * s.l)[:, None] * _O(s) + s.P_ij @ s.V_j},
    ),
    Slip(
        "O is stored unnormalised, but multiplied by l when it is loaded: store O_acc / l",
        {"O_acc_old": lambda s: s.before.O_acc * s.before.l[:, None]},
    ),
    Slip(
        "m is not kept from one tile of a row block to its next: store it in m_hbm[rows], and load it",
        {"m_old": lambda s: np.full_like(s.before.m, -INF)},
    ),
    Slip(
        "l is not kept from one tile of a row block to its next: store it in l_hbm[rows], and load it",
        {"l_old": lambda s: 0 * s.before.l, "O_acc_old": lambda s: np.zeros_like(s.before.O_acc)},
    ),
    Slip(
        "O is not kept from one tile of a row block to its next: O[rows] = O_acc / l after each tile",
        {"O_acc_old": lambda s: np.zeros_like(s.before.O_acc)},
    ),
    Slip(
        "alpha is 1: it is exp(m_old - m), and m_old must be loaded, and copied, before m_hbm is written",
        {"alpha": lambda s: np.ones_like(s.m)},
    ),
)

LOOPS = (  # where a row block starts, and what it loads; last is the State that the step before left
    Slip(
        "O is read before it is filled: it may hold anything; O[:] = 0 comes before the loops",
        {"O_acc_old": lambda s: s.before.O_acc * (np.nan if s.first else 1)},
    ),
    Slip(
        "the state of the row block before is carried on: start each one at m = -inf, l = 0, O_acc = 0",
        {"m_old": lambda s: s.last.m, "l_old": lambda s: s.last.l, "O_acc_old": lambda s: s.last.O_acc},
    ),
    *(
        Slip(
            f"{name} of the row block before is carried on: start each row block at {name} = {value}",
            {f"{name}_old": lambda s, name=name: getattr(s.last, name)},
        )
        for name, value in (("m", "-inf"), ("l", "0"), ("O_acc", "0"))
    ),
    *(
        Slip(
            "the rows of K and V are not those of block j: take cols, from j * B_c on",
            {
                "K_j": lambda s, first=first: s.K[first(s)][: len(s.K_j)],
                "V_j": lambda s, first=first: s.V[first(s)][: len(s.V_j)],
            },
        )
        for first in (lambda s: slice(0, None), lambda s: slice(s.j, None))
    ),
)
