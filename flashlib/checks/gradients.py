"""The tiles of the backward pass as calculations, and the known mistakes in them.

A mistake is a row of a sentence and of the lines that make it, in one way or another: see `calculations`.
"""

import numpy as np

from flashlib.checks import calculations, updates
from flashlib.tiled import blocks


def softmax(S):
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-1e300))
    return P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300)  # a row of -inf gives 0


TOOLS = {"np": np, "softmax": softmax}


def _names(lines):
    return {line.split(" = ")[0] for line in lines.split("; ")}


def mistakes(wrong, known, seconds=None):
    """Return the Mistakes of rows (sentence, lines, lines ...), then of pairs, of which the first is named.

    seconds: the rows that are paired with all others; all of them if not given.
    """
    pairs = [
        (sentence, f"{lines}; {others}")
        for n, (sentence, *all_lines) in enumerate(known)
        for _, *all_others in seconds or known[n + 1 :]
        for lines in all_lines
        for others in all_others
        if not _names(lines) & _names(others)
    ]
    return calculations.mistakes(wrong, (*known, *pairs))


def calculation(text, *names):
    """Return wrong(lines, *arguments), which gives the last line of a calculation with these lines exchanged."""
    return lambda changed, *given: calculations.run(text, changed, **TOOLS, **dict(zip(names, given, strict=True)))


# ---- dV and dS, all at once

GRAD_V = "A = P.T\nproduct = A @ dO\ndV = product"


OF_V = (
    ("P is not transposed: dV = P.T @ dO, which adds up over the queries", "A = P"),
    ("dV is transposed: it has a row for each key, P.T @ dO and not dO.T @ P", "dV = product.T"),
    ("dO and P.T are in the wrong order: dV = P.T @ dO", "product = dO @ A"),
    ("P and dO are multiplied elementwise: take the matrix product, P.T @ dO", "product = A * dO", "dV = P * dO"),
    (
        "only one query counts: dV adds up the outer products of all of them",
        "product = np.outer(P[-1], dO[-1])",
        "product = np.outer(P[0], dO[0])",
    ),
    (
        "P and dO are summed over the queries and then multiplied: multiply query by query, then sum",
        "product = np.outer(P.sum(axis=0), dO.sum(axis=0))",
    ),
    ("the mean over the queries is taken: dV is their sum", "dV = product / len(P)"),
    ("P is divided by its column sums: dV = P.T @ dO, without", "A = P.T / P.T.sum(axis=1, keepdims=True)"),
    (
        "P is divided by its row sums again, and a row of zeros gives nan: leave P as it is",
        "A = (P / P.sum(axis=1, keepdims=True)).T",
    ),
    (
        "a softmax of P is taken: P holds the weights, not the scores",
        "A = softmax(P).T",
    ),
    (
        "a scale is applied: it belongs to the scores, and so to dQ and dK alone",
        "dV = product * dO.shape[1] ** -0.5",
        "dV = product * P.shape[1] ** -0.5",
    ),
    ("the softmax is not on the way from O to V: dV = P.T @ dO", "A = (P * (1 - P)).T"),
    ("dV stays 0: it is P.T @ dO", "dV = 0 * product"),
)


GRAD_S = """
W = P
product = W * dP
delta = product.sum(axis=1, keepdims=True)
difference = dP - delta
gradient = W * difference
dS = gradient
"""


THROUGH_SOFTMAX = (
    ("delta is not subtracted: dS = P * (dP - delta)", "difference = dP"),
    ("the factor P is missing: dS = P * (dP - delta)", "gradient = difference"),
    ("P is missing in delta: sum P * dP along each row, not dP", "delta = dP.sum(axis=1, keepdims=True)"),
    ("delta is the plain mean of dP: each dP counts with its weight P", "delta = dP.mean(axis=1, keepdims=True)"),
    ("delta is the mean of P * dP: it is their sum", "delta = product.mean(axis=1, keepdims=True)"),
    (
        "delta is summed over axis 0, which is one for each key: each query has its own, axis=1",
        "delta = product.sum(axis=0)",
    ),
    ("one delta is taken for all rows: each row has its own, axis=1", "delta = product.sum()"),
    (
        "keepdims=True is missing: a number for each row is taken as one for each column",
        "delta = product.sum(axis=1)",
    ),
    ("the sign is turned round: dS = P * (dP - delta), not P * (delta - dP)", "difference = delta - dP"),
    ("delta is added: dS = P * (dP - delta)", "difference = dP + delta"),
    (
        "P * (1 - P) * dP is the diagonal of J alone: each weight depends on all scores of its row",
        "gradient = P * (1 - P) * dP",
    ),
    ("delta is not multiplied by P: dS = P * (dP - delta), not P * dP - delta", "gradient = product - delta"),
    (
        "dP - P * sum(dP) is the gradient of log softmax: dS = P * (dP - delta)",
        "gradient = dP - P * dP.sum(axis=1, keepdims=True)",
    ),
    ("P and dP are exchanged: dS = P * (dP - delta), not dP * (P - delta)", "gradient = dP * (P - delta)"),
    ("the largest dP is subtracted, as from scores: subtract delta", "delta = dP.max(axis=1, keepdims=True)"),
    ("P is a factor twice: dS = P * (dP - delta)", "gradient = W * W * difference"),
    (
        "a scale is applied: dS belongs to S, which is scaled; scale comes with dQ and dK",
        "dS = gradient * P.shape[1] ** -0.5",
        "dS = gradient * P.shape[0] ** -0.5",
    ),
    (
        "P is divided by its row sums again, and a row of zeros gives nan: leave P as it is",
        "W = P / P.sum(axis=1, keepdims=True)",
    ),
    (
        "a softmax of P is taken: P holds the weights, not the scores",
        "W = softmax(P)",
    ),
    ("dS is transposed: it has the shape of P", "dS = gradient.T"),
    ("dP is given back as it came: dS = P * (dP - delta)", "dS = dP"),
)

# ---- a tile of P

TILE = """
raw = Q_i @ K_j.T
S_ij = raw * scale
shift = lse_i
weights = np.exp(S_ij - shift[:, None])
P_ij = np.where(lse_i[:, None] == -np.inf, 0, weights)
"""


LINES = (
    "S_ij = raw",
    "S_ij = raw * scale**2",
    "S_ij = raw / scale",
    "S_ij = raw * Q_i.shape[1] ** -0.5",
    "raw = Q_i @ K_j",
    "V_j = K_j",
    "raw = Q_i @ V_j.T",
)
SCORES = tuple((slip.sentence, line) for slip, line in zip(updates.SCORES, LINES, strict=True))
WEIGHTS = (
    ("lse is not used: P_ij = exp(S_ij - lse_i), not exp(S_ij)", "weights = np.exp(S_ij)"),
    (
        "the tile is divided by its own row sums, which leave out the other tiles: P_ij = exp(S_ij - lse_i)",
        "weights = softmax(S_ij)",
        "weights = np.exp(S_ij) / np.exp(S_ij).sum(axis=1, keepdims=True)",
    ),
    (
        "the tile's own maximum is subtracted: lse_i takes its place, P_ij = exp(S_ij - lse_i)",
        "weights = np.exp(S_ij - S_ij.max(axis=1, keepdims=True))",
    ),
    (
        "exp is taken of S_ij and of lse_i, and large ones overflow: take exp of the difference",
        "weights = np.exp(S_ij) / np.exp(shift)[:, None]",
        "weights = np.exp(S_ij) * np.exp(-shift)[:, None]",
    ),
    (
        "P_ij is divided by lse, which is a logarithm: P_ij = exp(S_ij - lse_i)",
        "weights = np.exp(S_ij) / shift[:, None]",
        "weights = np.exp(S_ij - S_ij.max(axis=1, keepdims=True)) / shift[:, None]",
    ),
    (
        "the maximum is subtracted beside lse: lse holds it already, P_ij = exp(S_ij - lse_i)",
        "weights = np.exp(S_ij - S_ij.max(axis=1, keepdims=True)) / np.exp(shift)[:, None]",
        "weights = np.exp(S_ij - S_ij.max(axis=1, keepdims=True) - shift[:, None])",
    ),
    (
        "lse is multiplied by scale too: it is that of scaled scores, S_ij - lse_i",
        "weights = np.exp(S_ij - scale * shift[:, None])",
    ),
    ("lse is added: P_ij = exp(S_ij - lse_i)", "weights = np.exp(S_ij + shift[:, None])"),
    ("the difference is upside down: P_ij = exp(S_ij - lse_i)", "weights = np.exp(shift[:, None] - S_ij)"),
    ("exp is missing: S_ij - lse_i is the logarithm of P_ij", "weights = S_ij - shift[:, None]"),
    ("exp2 is taken, and lse is a natural logarithm: use exp", "weights = np.exp2(S_ij - shift[:, None])"),
    (
        "[:, None] is missing at lse: a number for each row is taken as one for each column",
        "weights = np.exp(S_ij - shift)",
    ),
    ("S_ij is transposed: S_ij = Q_i @ K_j.T * scale, a row for each row of Q_i", "raw = K_j @ Q_i.T"),
)
ROWS_WITHOUT_KEYS = (
    ("inf where lse is -inf: such a row sees no key, so its P is 0", "P_ij = weights"),
    (
        "exp(S_ij) where lse is -inf: S_ij is not masked here, so set the P of such a row to 0",
        "shift = np.where(lse_i == -np.inf, 0, lse_i); P_ij = weights",
    ),
    (
        "nan_to_num makes the largest number of inf: where lse is -inf P is 0",
        "P_ij = np.nan_to_num(weights)",
    ),
    (
        "where lse is -inf all keys weigh the same: such a row sees none, so its P is 0",
        "P_ij = np.where(lse_i[:, None] == -np.inf, 1, weights)",
        "P_ij = np.where(lse_i[:, None] == -np.inf, 1 / len(K_j), weights)",
    ),
    (
        "a row that sees no key makes all rows 0: each row is guarded on its own",
        "P_ij = np.where((lse_i == -np.inf).any(), 0, weights)",
    ),
    ("P_ij is transposed: it has a row for each row of Q_i", "P_ij = weights.T"),
    ("", "shift = np.where(lse_i == -np.inf, np.inf, lse_i); P_ij = weights"),  # right; for the pairs
)

RECOMPUTED = (*SCORES[:5], *WEIGHTS, *ROWS_WITHOUT_KEYS)

# ---- the two loops

GRADIENT = f"""{TILE}\
dP_ij = dO_i @ V_j.T
dS_ij = P_ij * (dP_ij - delta_i[:, None])
"""
OF_TILE = (
    ("delta is not subtracted: dS_ij = P_ij * (dP_ij - delta_i)", "dS_ij = P_ij * dP_ij"),
    (
        "delta is summed in the tile, which leaves out the other tiles: take the argument",
        "dS_ij = P_ij * (dP_ij - (P_ij * dP_ij).sum(axis=1, keepdims=True))",
    ),
    ("P_ij is missing in dS_ij: dS_ij = P_ij * (dP_ij - delta_i)", "dS_ij = dP_ij - delta_i[:, None]"),
    (
        "the sign is turned round: dS_ij = P_ij * (dP_ij - delta_i), not delta_i - dP_ij",
        "dS_ij = P_ij * (delta_i[:, None] - dP_ij)",
    ),
    ("delta is added: dS_ij = P_ij * (dP_ij - delta_i)", "dS_ij = P_ij * (dP_ij + delta_i[:, None])"),
    (
        "[:, None] is missing at delta: a number for each row is taken as one for each column",
        "dS_ij = P_ij * (dP_ij - delta_i)",
    ),
    (
        "[:, None] is missing at lse and at delta: a number for each row is taken as one for each column",
        "weights = np.exp(S_ij - shift); dS_ij = P_ij * (dP_ij - delta_i)",
    ),
    (
        "delta is not multiplied by P_ij: dS_ij = P_ij * (dP_ij - delta_i)",
        "dS_ij = P_ij * dP_ij - delta_i[:, None]",
    ),
    (
        "P_ij * (1 - P_ij) * dP_ij is the diagonal of J alone: dS_ij = P_ij * (dP_ij - delta_i)",
        "dS_ij = P_ij * (1 - P_ij) * dP_ij",
    ),
    ("dP_ij is made with K: dP_ij = dO_i @ V_j.T", "dP_ij = dO_i @ K_j.T"),
    ("V_j is not transposed: dP_ij = dO_i @ V_j.T", "dP_ij = dO_i @ V_j"),
    ("dP_ij is made with Q: dP_ij = dO_i @ V_j.T", "dP_ij = Q_i @ V_j.T"),
    ("dP_ij is multiplied by scale: dP_ij = dO_i @ V_j.T", "dP_ij = dO_i @ V_j.T * scale"),
)


# What is wrong beside something else more often than others.
SECONDS = OF_TILE[0], *WEIGHTS[:2], SCORES[0]

DQ_LINES = f"""
K_j = K[cols]
V_j = V[cols]{GRADIENT}\
part = dS_ij @ K_j * scale
counted = 1
kept = dQ_i
found = kept + counted * part
"""


def dq(changed, Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    """Return dQ_i of a loop over column blocks, with the lines in `changed` exchanged."""
    dQ_i = np.zeros_like(Q_i)
    given = {"Q_i": Q_i, "dO_i": dO_i, "lse_i": lse_i, "delta_i": delta_i, "K": K, "V": V, "B_c": B_c}
    for cols in blocks(len(K), B_c):
        dQ_i = calculations.run(DQ_LINES, changed, cols=cols, dQ_i=dQ_i, scale=scale, **given, **TOOLS)
    return dQ_i


DQ = (
    ("dQ_i is not multiplied by scale: S is scale * Q K^T, so dQ = scale * dS K", "part = dS_ij @ K_j"),
    ("dQ_i is multiplied by scale twice: dQ = scale * dS K", "part = dS_ij @ K_j * scale**2"),
    ("dQ_i is divided by scale: dQ = scale * dS K", "part = dS_ij @ K_j / scale"),
    ("dQ_i is that of the last block alone: add up, dQ_i = dQ_i + dS_ij @ K_j", "kept = 0 * dQ_i"),
    (
        "the last, shorter block is dropped: N_k need not be a multiple of B_c",
        "counted = len(K_j) == B_c",
    ),
    ("the last block is left out: there are ceil(N_k / B_c)", "counted = cols.stop < len(K)"),
    ("only the first block counts: does the return stand inside the loop?", "counted = cols.start == 0"),
    (
        "the rows of K and V are not those of block j, which begins at j * B_c",
        "K_j = K[cols.start // B_c :][:B_c]; V_j = V[cols.start // B_c :][:B_c]",
    ),
    ("dQ_i is multiplied by scale in every step: once is enough, after the last", "kept = dQ_i * scale"),
    (
        "dQ_i is rescaled as O_acc in the forward pass: lse is final, so the sum is a plain one",
        "kept = dQ_i * np.exp((Q_i @ K[: cols.start].T * scale).max(axis=1, initial=-np.inf)"
        " - (Q_i @ K[: cols.stop].T * scale).max(axis=1))[:, None]",
    ),
    ("dQ_i adds up P_ij @ K_j: it is dS_ij that meets K_j", "part = P_ij @ K_j * scale", "part = P_ij @ K_j"),
    ("dQ_i adds up dP_ij @ K_j: go on to dS_ij, back through the softmax", "part = dP_ij @ K_j * scale"),
    ("dS_ij meets V_j: dQ_i adds up dS_ij @ K_j", "part = dS_ij @ V_j * scale", "part = dS_ij @ V_j"),
    ("dS_ij is transposed: dQ_i adds up dS_ij @ K_j", "part = dS_ij.T @ K_j * scale"),
    (
        "dS_ij meets Q_i, as in dK: dQ_i adds up dS_ij @ K_j",
        *(f"part = dS_ij{T} @ Q_i * scale" for T in ("", ".T")),
    ),
    (
        "1 / sqrt(d) stands where the argument scale belongs: dQ = scale * dS K",
        "part = dS_ij @ K_j * Q_i.shape[1] ** -0.5",
    ),
    (SCORES[3][0], "S_ij = raw * Q_i.shape[1] ** -0.5; part = dS_ij @ K_j * Q_i.shape[1] ** -0.5"),
    *OF_TILE,
    *WEIGHTS,
    *SCORES,
)

DKV_LINES = f"""
Q_i = Q[rows]
dO_i = dO[rows]
lse_i = lse[rows]
delta_i = delta[rows]{GRADIENT}\
dK_part = dS_ij.T @ Q_i * scale
dV_part = P_ij.T @ dO_i
counted = 1
dK_kept = dK_j
dV_kept = dV_j
order = 1
found = (dK_kept + counted * dK_part, dV_kept + counted * dV_part, order)
"""


def dkv(changed, K_j, V_j, Q, dO, lse, delta, B_r, scale):
    """Return dK_j and dV_j of a loop over row blocks, with the lines in `changed` exchanged."""
    dK_j, dV_j, order = np.zeros_like(K_j), np.zeros_like(V_j), 1
    given = {"K_j": K_j, "V_j": V_j, "Q": Q, "dO": dO, "lse": lse, "delta": delta, "B_r": B_r, "scale": scale}
    for rows in blocks(len(Q), B_r):
        dK_j, dV_j, order = calculations.run(DKV_LINES, changed, rows=rows, dK_j=dK_j, dV_j=dV_j, **given, **TOOLS)
    return (dK_j, dV_j)[::order]


DKV = (
    ("dV_j is returned first: return dK_j, dV_j", "order = -1"),
    ("dK_j is not multiplied by scale: S is scale * Q K^T, so dK = scale * dS^T Q", "dK_part = dS_ij.T @ Q_i"),
    ("dK_j is multiplied by scale twice: dK = scale * dS^T Q", "dK_part = dS_ij.T @ Q_i * scale**2"),
    ("dK_j is multiplied by scale in every step: once is enough, after the last", "dK_kept = dK_j * scale"),
    (
        "1 / sqrt(d) stands where the argument scale belongs: dK = scale * dS^T Q",
        "dK_part = dS_ij.T @ Q_i * Q_i.shape[1] ** -0.5",
    ),
    (SCORES[3][0], "S_ij = raw * Q_i.shape[1] ** -0.5; dK_part = dS_ij.T @ Q_i * Q_i.shape[1] ** -0.5"),
    ("dV_j is multiplied by scale: it is dK_j that is", "dV_part = P_ij.T @ dO_i * scale"),
    ("dV_j is made with dS_ij: it adds up P_ij.T @ dO_i", "dV_part = dS_ij.T @ dO_i"),
    ("dK_j is made with P_ij: it adds up dS_ij.T @ Q_i", "dK_part = P_ij.T @ Q_i * scale"),
    ("dK_j is made with dO_i: it adds up dS_ij.T @ Q_i", "dK_part = dS_ij.T @ dO_i * scale"),
    ("dV_j is made with Q_i: it adds up P_ij.T @ dO_i", "dV_part = P_ij.T @ Q_i"),
    ("dK_j is made with K_j, as dQ is: it adds up dS_ij.T @ Q_i", "dK_part = dS_ij.T @ K_j * scale"),
    ("dS_ij is not transposed: dK_j adds up dS_ij.T @ Q_i", "dK_part = dS_ij @ Q_i * scale"),
    ("P_ij is not transposed: dV_j adds up P_ij.T @ dO_i", "dV_part = P_ij @ dO_i"),
    ("dK_j and dV_j are those of the last block alone: add up", "dK_kept = 0 * dK_j; dV_kept = 0 * dV_j"),
    ("dK_j is that of the last block alone: dK_j = dK_j + dS_ij.T @ Q_i", "dK_kept = 0 * dK_j"),
    ("dV_j is that of the last block alone: dV_j = dV_j + P_ij.T @ dO_i", "dV_kept = 0 * dV_j"),
    ("the last, shorter block is dropped: N_q need not be a multiple of B_r", "counted = len(Q_i) == B_r"),
    ("the last block is left out: there are ceil(N_q / B_r)", "counted = rows.stop < len(Q)"),
    ("only the first block counts: does the return stand inside the loop?", "counted = rows.start == 0"),
    (
        "the rows are not those of block i, which begins at i * B_r",
        "; ".join(f"{x}_i = {x}[rows.start // B_r :][:B_r]" for x in ("Q", "dO", "lse", "delta")),
    ),
    (
        "lse and delta are those of the first rows in every block: take lse[rows] and delta[rows]",
        "lse_i = lse[: len(Q_i)]",
        "delta_i = delta[: len(Q_i)]",
        "lse_i = lse[: len(Q_i)]; delta_i = delta[: len(Q_i)]",
    ),
    *OF_TILE,
    *WEIGHTS,
    *SCORES[:5],
    SCORES[6],
)
