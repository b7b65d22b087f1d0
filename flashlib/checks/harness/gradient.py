"""The tiles and loops of the backward pass, whose known mistakes are in `shared/gradient.txt`.

The same lines make the loops in NumPy and those in kernels, where `load` returns nan past the end, and a mask
hides scores.

Source: FlashAttention-2, Algorithm 2, lines 7-17.
"""

import textwrap

import numpy as np

from flashlib.checks.engine import ProgramText, defined
from flashlib.checks.harness.metered import MeteredArray

P_LINES = """
raw = Q_i @ K_j.T
S_ij = raw * scale
weights = np.exp(S_ij - lse_i[:, None])
P_ij = np.where(seen, weights, 0)
"""

TILE_LINES = f"""{P_LINES.rstrip()}
dP_ij = dO_i @ V_j.T
dS_ij = P_ij * (dP_ij - delta_i[:, None])
"""

DQ_LINES = f"""
cols = tile(start, B, len(K))
K_j = load(K, cols)
V_j = load(V, cols)
{{}}{TILE_LINES.rstrip()}
part = dS_ij @ K_j * scale
kept = dQ
dQ = kept + part
"""

DKV_LINES = f"""
rows = tile(start, B, len(Q))
Q_i = load(Q, rows)
dO_i = load(dO, rows)
lse_i = load(lse, rows)
delta_i = load(delta, rows)
seen = True{TILE_LINES.rstrip()}
dK_part = dS_ij.T @ Q_i * scale
dV_part = P_ij.T @ dO_i
dK_kept = dK
dV_kept = dV
dK = dK_kept + dK_part
dV = dV_kept + dV_part
"""


def softmax(S: np.ndarray) -> np.ndarray:
    """Return the softmax of each row; a row of -inf gives 0."""
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-1e300))
    return P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300)


def slice_of(start: int, n: int, end: int) -> slice:
    """Return the slice of a tile of n rows, shorter at the end, for NumPy."""
    return slice(start, min(start + n, end))


def offsets(start: int, n: int, end: int) -> np.ndarray:
    """Return the row numbers of a tile of n rows, including those past the end, as in a kernel."""
    return start + np.arange(n)


def sliced(X: np.ndarray | MeteredArray, rows: slice) -> np.ndarray:
    """Return rows of X."""
    return X[rows]


def loaded(X: np.ndarray, offs: np.ndarray, inside: np.ndarray | None = None) -> np.ndarray:
    """Return rows of X as a kernel loads them: 0 where `inside` is False, else nan where there is no such row.

    inside: whether a row is loaded; by default those that exist are.
    """
    exists = (offs >= 0) & (offs < len(X))
    inside = np.broadcast_to(exists if inside is None else inside, offs.shape)
    rows = X[np.where(exists, offs, 0)] if len(X) else np.zeros((len(offs), *X.shape[1:]))
    shape = (len(offs),) + (1,) * (X.ndim - 1)
    return np.where(inside.reshape(shape), np.where(exists.reshape(shape), rows, np.nan), 0)


def visited(i: int, N_q: int, N_k: int, B_R: int, B_C: int) -> int:
    """Return how many keys are in the tiles that row block i visits under a causal mask: some row sees a key."""
    end = max(0, min((i + 1) * B_R, N_q) + N_k - N_q)
    return min(-(-end // B_C) * B_C, N_k)


def poisoned(X: np.ndarray, i: int, N_q: int, B_R: int, B_C: int) -> np.ndarray:
    """Return the keys X as row block i gets them: nan in tiles that none of its rows sees."""
    X = np.array(X)
    X[visited(i, N_q, len(X), B_R, B_C) :] = np.nan
    return X


TOOLS = {"softmax": softmax}
IN_NUMPY = TOOLS | {"tile": slice_of, "load": sliced}
IN_TRITON = TOOLS | {"tile": offsets, "load": loaded}


def tile_of_P(signature: str, seen: str) -> ProgramText:
    """Return the ProgramText for a tile of P; seen: the line that says which scores are visible."""
    return defined(signature, seen, P_LINES, "found = P_ij", "return found", **TOOLS)


def dq_loop(signature: str, names: dict, *before: str, seen: str = "seen = True") -> ProgramText:
    """Return the ProgramText of the loop over K and V that sums dQ; before: its first lines, which set `end`."""
    inside = textwrap.indent(DQ_LINES.format(seen).strip(), "    ")
    loop = "B = B_c", "dQ = 0 * Q_i", "for start in range(0, end, B):", inside
    return defined(signature, *before, *loop, "found = dQ", "return found", **names)


def dkv_loop(signature: str, names: dict) -> ProgramText:
    """Return the ProgramText of the loop over Q, dO, lse and delta that sums dK and dV."""
    inside = textwrap.indent(DKV_LINES.strip(), "    ")
    loop = "end, B = len(Q), B_r", "dK, dV = 0 * K_j, 0 * V_j", "for start in range(0, end, B):", inside
    return defined(signature, *loop, "found = dK, dV", "return found", **names)
