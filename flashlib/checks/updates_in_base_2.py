"""The update of m, l and O_acc by one tile of scores in base 2, and the mistakes that are made in it.

As `updates`, which has it in base e: MISTAKES are rows of a sentence and of the lines that make it. TAILS are
the same for a loop over keys whose last tile is masked.
"""

import numpy as np

from flashlib.checks import updates
from flashlib.checks.updates import State

LN2 = np.log(2)

LINES = {  # of the update in base 2, in place of those of `updates.LINES`; s has S and scale, which is scale_log2e
    "raw": lambda s: s.S,
    "S_ij": lambda s: s.S * s.scale,
    "m": lambda s: np.maximum(s.m_old, s.S_ij.max(axis=1)),
    "alpha": lambda s: np.exp2(s.m_old - s.shift),
    "P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None]),
}


def start(B_r, d) -> State:
    """Return the State of rows that have seen no key, in fp32, as wide as in a kernel."""
    return State(*(x.astype(np.float32) for x in updates.start(B_r, d)))


def update(lines, state, S, V_j, scale_log2e) -> State:
    """Return the State after a tile of scores, with some lines exchanged."""
    given = {"Q_i": None, "K_j": None, "V_j": V_j, "scale": np.float32(scale_log2e), "S": S}
    return updates.update(LINES | lines, before=state, **given)


def _returned(m=lambda s: s.m, l=lambda s: s.l, O_acc=lambda s: s.O_acc):
    """Return the line of what is given back."""
    return {"after": lambda s: State(m(s), l(s), O_acc(s))}


def _row_max(s):
    return s.S.max(axis=1)


def _unscaled_m(s):
    return np.maximum(s.m_old, _row_max(s))


def _nothing_before(s):
    return s.P_ij.sum(axis=1)


ALPHA = "multiply what was summed before by alpha = exp2(m_old - m)"
FOLDED = "S * scale_log2e is in base 2, and nothing else is multiplied in"
M_SCALED = "m is in base 2, like the scaled scores: the maximum of S times scale_log2e"
ONCE = "S * scale_log2e - m: m has been multiplied by scale_log2e already"
EXP = "tl.exp takes powers of e: the scores are in base 2, so tl.exp2"
BLIND = "a row that has seen only -inf gives nan, since -inf - (-inf) is nan: shift by 0 where m is -inf"
NEW_TILE = "the new tile is multiplied by alpha too: only what was summed before is rescaled"
NO_MAX = "the maximum is not subtracted: P is exp2(S * scale_log2e - m)"
COLUMN = "[:, None] is missing: a number for each row is taken as one for each column"

MISTAKES = (
    (EXP, {"alpha": lambda s: np.exp(s.m_old - s.shift), "P_ij": lambda s: np.exp(s.S_ij - s.shift[:, None])}),
    (f"{EXP} in P too", {"P_ij": lambda s: np.exp(s.S_ij - s.shift[:, None])}),
    (f"{EXP} in alpha too", {"alpha": lambda s: np.exp(s.m_old - s.shift)}),
    (f"the scores are not multiplied by scale_log2e: {FOLDED}", {"S_ij": lambda s: s.S}),
    (f"the scores are multiplied by scale_log2e twice: {FOLDED}", {"S_ij": lambda s: s.S * s.scale**2}),
    (f"log2(e) is multiplied in again: {FOLDED}", {"S_ij": lambda s: s.S * s.scale / LN2}),
    (f"log2(e) is taken out again: {FOLDED}", {"S_ij": lambda s: s.S * s.scale * LN2}),
    (f"the scores are divided by scale_log2e: {FOLDED}", {"S_ij": lambda s: s.S / s.scale}),
    ("scale_log2e is not used: S is not scaled yet", {"S_ij": lambda s: s.S / np.float32(LN2)}),
    (
        "scale_log2e is not used: S is not scaled yet",
        {
            "m": _unscaled_m,
            "alpha": lambda s: np.exp(s.m_old - s.shift),
            "P_ij": lambda s: np.exp(s.S - s.shift[:, None]),
        },
    ),
    (f"m is not multiplied by scale_log2e: {M_SCALED}", {"m": _unscaled_m}),
    (f"P is made of scores that are not scaled: {ONCE}", {"P_ij": lambda s: np.exp2(s.S - s.shift[:, None])}),
    (
        f"m is scaled twice in P: {ONCE}",
        {"P_ij": lambda s: np.exp2((s.S - s.shift[:, None]) * s.scale)},
    ),
    (f"m is scaled twice in P: {ONCE}", {"P_ij": lambda s: np.exp2(s.S_ij - s.shift[:, None] * s.scale)}),
    (f"m is scaled twice: {M_SCALED}", {"m": lambda s: np.maximum(s.m_old, s.S_ij.max(axis=1) * s.scale)}),
    (f"the old m is scaled again: {M_SCALED}", {"m": lambda s: np.maximum(s.m_old, _row_max(s)) * s.scale}),
    (f"the old m is scaled again: {M_SCALED}", {"m": lambda s: np.maximum(s.m_old * s.scale, s.S_ij.max(axis=1))}),
    (
        "P is scaled twice: S has been multiplied by scale_log2e already",
        {"P_ij": lambda s: np.exp2(s.S_ij * s.scale - s.shift[:, None])},
    ),
    (
        f"m is returned before it is scaled: {M_SCALED}",
        {
            "m": _unscaled_m,
            "alpha": lambda s: np.exp2((s.m_old - s.shift) * s.scale),
            "P_ij": lambda s: np.exp2((s.S - s.shift[:, None]) * s.scale),
        },
    ),
    (
        "alpha is made of maxima that are not scaled: multiply m by scale_log2e when it is taken from S",
        {"m": _unscaled_m, "P_ij": lambda s: np.exp2((s.S - s.shift[:, None]) * s.scale)},
    ),
    (
        "alpha is scaled twice: exp2(m_old - m), both in base 2 already",
        {"alpha": lambda s: np.exp2((s.m_old - s.shift) * s.scale)},
    ),
    (
        "m is returned in base e: it stays in base 2 from tile to tile",
        {"after": lambda s: State(s.m * np.float32(LN2), s.l, s.O_acc)},
    ),
    (
        "m is returned in base e: it stays in base 2 from tile to tile",
        {"m_old": lambda s: s.before.m / np.float32(LN2), **_returned(m=lambda s: s.m * np.float32(LN2))},
    ),
    (f"l is not rescaled when the maximum grows: {ALPHA}", {"l": lambda s: s.l_old + s.P_ij.sum(axis=1)}),
    (f"O_acc is not rescaled when the maximum grows: {ALPHA}", {"O_acc": lambda s: s.O_acc_old + s.P_ij @ s.V_j}),
    (f"neither l nor O_acc is rescaled when the maximum grows: {ALPHA}", {"alpha": lambda s: np.ones_like(s.m)}),
    ("alpha is upside down: it is exp2(m_old - m), at most 1", {"alpha": lambda s: np.exp2(s.m - s.m_old)}),
    ("alpha is the difference: it is exp2(m_old - m)", {"alpha": lambda s: s.m_old - s.shift}),
    (
        NEW_TILE,
        {
            "l": lambda s: s.alpha * (s.l_old + s.P_ij.sum(axis=1)),
            "O_acc": lambda s: s.alpha[:, None] * (s.O_acc_old + s.P_ij @ s.V_j),
        },
    ),
    (NEW_TILE, {"O_acc": lambda s: s.alpha[:, None] * (s.O_acc_old + s.P_ij @ s.V_j)}),
    (NEW_TILE, {"l": lambda s: s.alpha * (s.l_old + s.P_ij.sum(axis=1))}),
    (
        "m is the maximum of this tile alone: take the larger of it and the m before",
        {"m": lambda s: s.S_ij.max(axis=1)},
    ),
    (
        "one maximum is taken for all rows: each row has its own, axis=1",
        {"m": lambda s: np.maximum(s.m_old, s.S_ij.max())},
    ),
    (
        "the maximum is taken over axis 0: each row has its own, axis=1",
        {"m": lambda s: np.maximum(s.m_old, s.S_ij.max(axis=0))},
    ),
    (
        "the sum is taken over axis 0: each row has its own, axis=1",
        {"l": lambda s: s.alpha * s.l_old + s.P_ij.sum(axis=0)},
    ),
    (NO_MAX, {"P_ij": lambda s: np.exp2(s.S_ij)}),
    (NO_MAX, {"P_ij": lambda s: np.exp2(s.S_ij), "alpha": lambda s: np.ones_like(s.m)}),
    (
        "the old maximum is subtracted: P is exp2(S * scale_log2e - m) with the new m",
        {"P_ij": lambda s: np.exp2(s.S_ij - s.m_old[:, None])},
    ),
    (
        "the tile's own maximum is subtracted: P is exp2(S * scale_log2e - m), m the largest so far",
        {"P_ij": lambda s: np.exp2(s.S_ij - s.S_ij.max(axis=1, keepdims=True))},
    ),
    (COLUMN, {"P_ij": lambda s: np.exp2(s.S_ij - s.shift)}),
    (COLUMN, {"O_acc": lambda s: s.alpha * s.O_acc_old + s.P_ij @ s.V_j}),
    (
        "what was summed before is lost: add alpha * l and alpha * O_acc to the sums of this tile",
        {"l": _nothing_before, "O_acc": lambda s: s.P_ij @ s.V_j},
    ),
    ("l before the tile is lost: add alpha * l to the sum of this tile", {"l": _nothing_before}),
    (
        "O_acc before the tile is lost: add alpha[:, None] * O_acc to P @ v",
        {"O_acc": lambda s: s.P_ij @ s.V_j},
    ),
    *(
        (
            "O_acc is divided by l in every step: divide once, after the last tile",
            _returned(O_acc=lambda s, zero=zero: s.O_acc / np.where(s.l == 0, zero, s.l)[:, None]),
        )
        for zero in (1, 0)
    ),
    (
        "P is divided by l before it meets v: keep it as it is, and divide after the last tile",
        {"O_acc": lambda s: s.alpha[:, None] * s.O_acc_old + (s.P_ij / s.l[:, None]) @ s.V_j},
    ),
    (
        "lse is kept where m belongs: m is the largest score so far, lse comes after the last tile",
        _returned(m=lambda s: s.m + np.log2(s.l)),
    ),
    ("the old m is returned: return the new one", _returned(m=lambda s: s.m_old)),
    ("m and l are exchanged: return m, l, O_acc", _returned(m=lambda s: s.l, l=lambda s: s.m)),
    ("m, l and O_acc are given back as they came: this tile is not in them", {"after": lambda s: s.before}),
    (BLIND, {"shift": lambda s: s.m}),
    (BLIND, {"alpha": lambda s: np.exp2(s.m_old - s.m)}),
    (BLIND, {"P_ij": lambda s: np.exp2(s.S_ij - s.m[:, None])}),
)


# ---- a loop over keys, of which the last tile is masked


def _at(X, rows, outside):
    """Return these rows of X, with `outside` in those that it does not have."""
    found = np.full((len(rows), X.shape[1]), outside, X.dtype)
    inside = (rows >= 0) & (rows < len(X))
    found[inside] = X[rows[inside]]
    return found


def tailed(
    starts=None, *, K_past=0.0, V_past=0.0, seen=lambda c, N: c < N, lines=None, everywhere=None, fresh=False
):
    """Return a loop over keys with a mistake in its tail.

    starts: takes N_k and B_C, returns [(first key, masked)] of the tiles. K_past, V_past: what is taken for what
    lies past the end. seen: which scores of a masked tile are kept. lines: of the update of the tail;
    everywhere: of all. fresh: the tail starts from nothing.
    """

    def run(q, K, V, scale_log2e, B_C):
        N_k = len(K)
        state = first = start(*q.shape)
        for n, masked in (starts or _split)(N_k, B_C):
            c = n + np.arange(B_C)
            past = (K_past, V_past) if masked else (np.nan, np.nan)
            S = q @ _at(K, c, past[0]).T
            if masked:
                S = np.where(seen(c, N_k), S, np.float32(-np.inf))
            changed = {"shift": lambda s: s.m, "m": _nanmax} | (everywhere or {}) | (lines or {} if masked else {})
            before = first if fresh and masked else state
            state = update(changed, before, S, _at(V, c, past[1]), scale_log2e)
        return state

    return run


def _nanmax(s):
    """Return m as the hardware has it, whose maximum of a number and nan is the number."""
    return np.fmax(s.m_old, np.fmax.reduce(s.S_ij, axis=1))


def _split(N, B_C):
    full = N // B_C * B_C
    return [(n, False) for n in range(0, full, B_C)] + [(n, True) for n in range(full, N, B_C)]


def _tiles(masked, stop=lambda N, B_C: N, first=lambda N, B_C: 0):
    return lambda N, B_C: [(n, masked) for n in range(first(N, B_C), stop(N, B_C), B_C)]


def _two(stop, first):
    """Return the starts of two loops, the first up to `stop`, the second, masked, from `first` on."""
    one, other = _tiles(False, stop), _tiles(True, first=first)
    return lambda N, B_C: one(N, B_C) + other(N, B_C)


def _last_apart(N, B_C):
    """Return the starts where the last tile is the tail, without keys one that lies before them."""
    last = -(-N // B_C) * B_C - B_C
    return [(n, False) for n in range(0, last, B_C)] + [(last, last >= 0)]


def _full(N, B_C):
    return N // B_C * B_C


def _everywhere(c, N):
    return c >= 0


COUNTED = "keys past the end count: other=0.0 makes their scores 0, and they must be -inf"
PAST = "nan comes from past the end of K and V: mask both loads, with other=0.0, and set S there to -inf"
NO_TILE = "there may be no key at all, and then there is no tile: of a tile without keys the update makes nan"
TWICE = "keys are counted twice: the masked part begins where the whole tiles end, at N_k // B_C * B_C"

TAILS = (
    (COUNTED, {"seen": _everywhere}),
    (
        "keys past the end count in m: mask S before the update, with -inf",
        {
            "seen": _everywhere,
            "lines": {
                "P_ij": lambda s: np.where(np.isnan(s.V_j[:, 0]), 0, np.exp2(s.S_ij - s.shift[:, None])),
            },
        },
    ),
    (
        "V is read past its end: 0 * nan is nan, so its load needs the mask and other=0.0 too",
        {"V_past": np.nan},
    ),
    (PAST, {"starts": _tiles(False)}),
    (PAST, {"K_past": np.nan, "seen": _everywhere}),
    (PAST, {"K_past": np.nan, "V_past": np.nan, "seen": _everywhere}),
    (PAST, {"K_past": np.nan, "V_past": np.nan, "seen": lambda c, N: c <= N}),
    (
        "the update multiplies S by scale_log2e: it must not be scaled before",
        {"everywhere": {"S_ij": lambda s: s.S * s.scale**2}},
    ),
    ("m, l and O_acc are given back as they came: take what update returns", {"starts": lambda N, B_C: []}),
    *(
        (
            NO_TILE,
            {"starts": _last_apart, "everywhere": {"m": m}},
        )
        for m in (_nanmax, lambda s: np.maximum(s.m_old, s.S_ij.max(axis=1)))
    ),
    ("the tail is missing: keys from N_k // B_C * B_C on", {"starts": _tiles(False, _full)}),
    ("the whole tiles are missing: keys before N_k // B_C * B_C", {"starts": _tiles(True, first=_full)}),
    ("the mask lets one key too many through: it is offs_n < N_k", {"seen": lambda c, N: c <= N}),
    ("the mask hides the last key: it is offs_n < N_k", {"seen": lambda c, N: c < N - 1}),
    ("the mask is upside down: it is offs_n < N_k", {"seen": lambda c, N: c >= N}),
    (
        "the mask of the tail counts its keys from 0: offs_n begins at its start",
        {"seen": lambda c, N: c - c[0] < N},
    ),
    (TWICE, {"starts": _two(_full, lambda N, B_C: 0)}),
    (TWICE, {"starts": _two(_full, lambda N, B_C: max(N - B_C, 0))}),
    (TWICE, {"starts": _two(lambda N, B_C: N - B_C, lambda N, B_C: max(N - B_C, 0))}),
    (
        "a whole tile is left out: the whole tiles end at N_k // B_C * B_C, also where B_C divides N_k",
        {"starts": _two(lambda N, B_C: _full(N, B_C) - B_C, _full)},
    ),
    (
        "whole tiles are counted, not keys: they end at key N_k // B_C * B_C",
        {"starts": _two(lambda N, B_C: N // B_C, _full)},
    ),
    (
        "whole tiles are counted, not keys: they end at key N_k // B_C * B_C",
        {"starts": _two(lambda N, B_C: N // B_C, lambda N, B_C: N // B_C)},
    ),
    (
        "whole tiles are counted, not keys: they end at key N_k // B_C * B_C",
        {"starts": lambda N, B_C: _tiles(False, lambda N, B_C: N // B_C)(N, B_C) + [(N // B_C, True)] * (N > 0)},
    ),
    ("the tail starts anew: pass it the m, l and O_acc of the whole tiles", {"fresh": True}),
    (
        "the tail's first key is that of the first tile: offs_n begins at N_k // B_C * B_C",
        {
            "starts": lambda N, B_C: (
                [(n, False) for n in range(0, _full(N, B_C), B_C)] + [(0, True)] * (N % B_C > 0)
            )
        },
    ),
    (
        NO_TILE,
        {"starts": lambda N, B_C: _split(N, B_C) + [(N, True)] * (N % B_C == 0)},
    ),
)
