"""The update of m, l and O_acc by one tile, as it is and as it is often written: mistakes told by what they give.

Each function takes the tile's scores S_ij (B_r, B_c), scaled and masked, its values V_j (B_c, d) and the state before,
m (B_r,), l (B_r,), O_acc (B_r, d), and returns the state after. Source of the right one: FlashAttention-2,
Algorithm 1, lines 9-10.
"""

import numpy as np

RESCALE = "multiply what was summed before by alpha = exp(m_old - m)"


def right(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _weights(S_ij, m_old):
    """Return m, alpha and P_ij."""
    m = np.maximum(m_old, S_ij.max(axis=1))
    shift = np.where(m == -np.inf, 0, m)
    return m, np.exp(m_old - shift), np.exp(S_ij - shift[:, None])


def _l_not_rescaled(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    return m, l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _O_not_rescaled(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    return m, alpha * l + P_ij.sum(axis=1), O_acc + P_ij @ V_j


def _nothing_rescaled(S_ij, V_j, m, l, O_acc):
    m, _, P_ij = _weights(S_ij, m)
    return m, l + P_ij.sum(axis=1), O_acc + P_ij @ V_j


def _alpha_inverted(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    alpha = 1 / alpha
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _everything_rescaled(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    return m, alpha * (l + P_ij.sum(axis=1)), alpha[:, None] * (O_acc + P_ij @ V_j)


def _m_of_the_tile(S_ij, V_j, m, l, O_acc):
    m_old, m = m, S_ij.max(axis=1)
    shift = np.where(m == -np.inf, 0, m)
    alpha, P_ij = np.exp(m_old - shift), np.exp(S_ij - shift[:, None])
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _one_maximum(S_ij, V_j, m, l, O_acc):
    m_old, m = m, np.full_like(m, max(m.max(), S_ij.max()))
    alpha, P_ij = np.exp(m_old - m), np.exp(S_ij - m[:, None])
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _maximum_not_subtracted(S_ij, V_j, m, l, O_acc):
    m, _, _ = _weights(S_ij, m)
    P_ij = np.exp(S_ij)
    return m, l + P_ij.sum(axis=1), O_acc + P_ij @ V_j


def _maximum_not_subtracted_but_rescaled(S_ij, V_j, m, l, O_acc):
    m, alpha, _ = _weights(S_ij, m)
    P_ij = np.exp(S_ij)
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _old_maximum_subtracted(S_ij, V_j, m, l, O_acc):
    m_old = m
    m, alpha, _ = _weights(S_ij, m)
    P_ij = np.exp(S_ij - m_old[:, None])
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


def _old_sums_lost(S_ij, V_j, m, l, O_acc):
    m, _, P_ij = _weights(S_ij, m)
    return m, P_ij.sum(axis=1), P_ij @ V_j


def _divided_each_time(S_ij, V_j, m, l, O_acc):
    m, l, O_acc = right(S_ij, V_j, m, l, O_acc)
    return m, l, O_acc / l[:, None]


def _weights_divided(S_ij, V_j, m, l, O_acc):
    m, alpha, P_ij = _weights(S_ij, m)
    l = alpha * l + P_ij.sum(axis=1)
    return m, l, alpha[:, None] * O_acc + (P_ij / P_ij.sum(axis=1, keepdims=True)) @ V_j


def _lse_for_m(S_ij, V_j, m, l, O_acc):
    m, l, O_acc = right(S_ij, V_j, m, l, O_acc)
    return m + np.log(l), l, O_acc


def _unguarded(S_ij, V_j, m, l, O_acc):
    m_old, m = m, np.maximum(m, S_ij.max(axis=1))
    alpha, P_ij = np.exp(m_old - m), np.exp(S_ij - m[:, None])
    return m, alpha * l + P_ij.sum(axis=1), alpha[:, None] * O_acc + P_ij @ V_j


MISTAKES = (
    (f"l is not rescaled when the maximum grows: {RESCALE}", _l_not_rescaled),
    (f"O_acc is not rescaled when the maximum grows: {RESCALE}", _O_not_rescaled),
    (f"neither l nor O_acc is rescaled when the maximum grows: {RESCALE}", _nothing_rescaled),
    ("alpha is upside down: it is exp(m_old - m), at most 1, and not exp(m - m_old)", _alpha_inverted),
    ("the new tile is multiplied by alpha too: only what was summed before is rescaled", _everything_rescaled),
    ("m is the maximum of this tile alone: take the larger of it and the m before", _m_of_the_tile),
    ("one maximum is taken for all rows: each row has its own, S_ij.max(axis=1)", _one_maximum),
    ("the maximum is not subtracted: P_ij is exp(S_ij - m), not exp(S_ij)", _maximum_not_subtracted),
    ("the maximum is not subtracted: P_ij is exp(S_ij - m), not exp(S_ij)", _maximum_not_subtracted_but_rescaled),
    ("the old maximum is subtracted: P_ij is exp(S_ij - m) with the new m", _old_maximum_subtracted),
    ("what was summed before is lost: add alpha * l and alpha * O_acc to the sums of this tile", _old_sums_lost),
    ("O_acc is divided by l in every step: divide once, after the last tile", _divided_each_time),
    ("P_ij is divided by its own sum before it meets V_j: keep it as exp(S_ij - m)", _weights_divided),
    ("lse is kept where m belongs: m is the largest score, lse = m + log(l) comes at the end", _lse_for_m),
    (
        "a row that has seen only -inf gives nan, since -inf - (-inf) is nan: shift by 0 where m is -inf",
        _unguarded,
    ),
)
"""(the sentence that names it, the function that makes it), of which the first that fits is named."""
