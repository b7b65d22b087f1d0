"""The loops of the backward kernels as calculations, and the known mistakes in them.

A mistake is a row of a sentence and of the lines that make it, in one way or another: see `calculations`.
Tiles are those of a kernel: `load` gives nan for rows that lie past the end and are not masked.
"""

import numpy as np

from flashlib.checks import calculations
from flashlib.checks.gradients import softmax

INF = np.inf


def load(X, offs, inside=True):
    """Return these rows of X: zeros where `inside` is False, else nan where there is no such row."""
    exists = (offs >= 0) & (offs < len(X))
    rows = X[np.where(exists, offs, 0)] if len(X) else np.zeros((len(offs), *X.shape[1:]))
    shape = (len(offs),) + (1,) * (X.ndim - 1)
    rows = np.where(exists.reshape(shape), rows, np.nan)
    return np.where(np.broadcast_to(inside, len(offs)).reshape(shape), rows, 0)


TOOLS = {"np": np, "softmax": softmax, "load": load}


def _fp64(*arrays):
    return (np.asarray(X, np.float64) for X in arrays)


# ---- dK and dV of a column block: tiles are keys by queries

DKV_LINES = """
offs = start + np.arange(B_R)
inside = offs < N_q
q = load(Q, offs, inside)
do = load(dO, offs, inside)
lse_i = load(lse, offs, inside)
delta_i = load(delta, offs, inside)
raw = k @ q.T
S_T = raw * scale
P_T = np.exp(S_T - lse_i[None, :])
dP_T = v @ do.T
dS_T = P_T * (dP_T - delta_i[None, :])
dv_part = P_T @ do
dk_part = dS_T @ q * scale
counted = 1
dk_kept = dk
dv_kept = dv
order = 1
found = (dk_kept + counted * dk_part, dv_kept + counted * dv_part, order)
"""


def dkv(changed, k, v, Q, dO, lse, delta, scale, B_R):
    """Return dk and dv of a loop over row blocks, with the lines in `changed` exchanged."""
    k, v, Q, dO, lse, delta = _fp64(k, v, Q, dO, lse, delta)
    given = {"k": k, "v": v, "Q": Q, "dO": dO, "lse": lse, "delta": delta, "scale": scale, "B_R": B_R}
    dk, dv, order = np.zeros_like(k), np.zeros_like(v), 1
    for start in range(0, len(Q), B_R):
        dk, dv, order = calculations.run(
            DKV_LINES, changed, start=start, N_q=len(Q), dk=dk, dv=dv, **given, **TOOLS
        )
    return (dk, dv)[::order]


def _unmasked(**names):
    return tuple(f"{x} = load({X}, offs)" for x, X in names.items())


MASK_ROWS = "mask the loads of q, do, lse and delta with offs_m < N_q"
READ_PAST = f"rows past the end are read, where nan lies: {MASK_ROWS}"
AFTER = "dK = scale * dS^T Q"

DKV = (
    ("dv is returned first: return dk, dv", "order = -1"),
    (f"dk is not multiplied by scale: S is scale * Q K^T, so {AFTER}", "dk_part = dS_T @ q"),
    (f"dk is multiplied by scale twice: {AFTER}", "dk_part = dS_T @ q * scale**2"),
    ("dk is multiplied by scale in every step: once is enough, after the last", "dk_kept = dk * scale"),
    (
        "dk is rescaled in every step, and not the first time: multiply by scale once, after the last",
        "dk_kept = dk * scale; dk_part = dS_T @ q",
    ),
    ("dv is multiplied by scale: it is dk that is", "dv_part = P_T @ do * scale"),
    ("scale is missing: in the scores and in dk", "S_T = raw; dk_part = dS_T @ q"),
    ("scale is missing in the scores: P_T is exp(scale * k q^T - lse)", "S_T = raw"),
    ("the scores are multiplied by scale twice", "S_T = raw * scale**2"),
    ("dv is made with dS_T: it adds up P_T do", "dv_part = dS_T @ do"),
    ("dk is made with P_T: it adds up dS_T q", "dk_part = P_T @ q * scale"),
    ("dk is made with do: it adds up dS_T q", "dk_part = dS_T @ do * scale"),
    ("dv is made with q: it adds up P_T do", "dv_part = P_T @ q"),
    ("dk is made with k, as dq is: it adds up dS_T q", "dk_part = dS_T @ k * scale"),
    (
        "q and do are exchanged in dk and dv: dv adds up P_T do, and dk adds up dS_T q",
        "dk_part = dS_T @ do * scale; dv_part = P_T @ q",
    ),
    (
        "P and dS meet do and q without being transposed: dv adds up P^T do, dk adds up dS^T q",
        "dv_part = P_T.T @ do; dk_part = dS_T.T @ q * scale",
    ),
    ("dS is not transposed: dk adds up dS^T q", "dk_part = dS_T.T @ q * scale"),
    ("P is not transposed: dv adds up P^T do", "dv_part = P_T.T @ do"),
    ("dk and dv are those of the last tile alone: add up", "dk_kept = 0 * dk; dv_kept = 0 * dv"),
    ("dk is that of the last tile alone: dk += tl.dot(dS_T, q)", "dk_kept = 0 * dk"),
    ("dv is that of the last tile alone: dv += tl.dot(P_T, do)", "dv_kept = 0 * dv"),
    ("the last, shorter tile is dropped: N_q need not be a multiple of B_R", "counted = start + B_R <= N_q"),
    ("the last tile is left out: there are tl.cdiv(N_q, B_R)", "counted = start + B_R < N_q"),
    ("only the first tile counts: does the return stand inside the loop?", "counted = start == 0"),
    (
        "a tile begins at row i, not i * B_R: loop with range(0, N_q, B_R), or multiply",
        "offs = start // B_R + np.arange(B_R)",
    ),
    ("all tiles are the first rows: offs_m = start + tl.arange(0, B_R)", "offs = np.arange(B_R)"),
    (
        "lse and delta are those of the first rows in every tile: load them at offs_m",
        *(
            "; ".join(f"{x}_i = load({x}, offs - start, inside)" for x in xs)
            for xs in (("lse",), ("delta",), ("lse", "delta"))
        ),
    ),
    (f"delta is read past its end, where nan lies: {MASK_ROWS}", *_unmasked(delta_i="delta")),
    (READ_PAST, *_unmasked(q="Q", do="dO", lse_i="lse")),
    (
        "the last row is masked away: rows are inside while offs_m < N_q",
        "inside = offs < N_q - 1",
    ),
    ("delta is not subtracted: dS = P * (dP - delta)", "dS_T = P_T * dP_T"),
    (
        "delta is summed in the tile, which leaves out the other keys: load it from delta_ptr",
        "dS_T = P_T * (dP_T - (P_T * dP_T).sum(axis=0)[None, :])",
    ),
    ("P is missing in dS: dS = P * (dP - delta)", "dS_T = dP_T - delta_i[None, :]"),
    (
        "the sign is turned round: dS = P * (dP - delta), not delta - dP",
        "dS_T = P_T * (delta_i[None, :] - dP_T)",
    ),
    ("P is a factor twice: dS = P * (dP - delta)", "dS_T = P_T * P_T * (dP_T - delta_i[None, :])"),
    (
        "P * (1 - P) * dP is the diagonal of J alone: dS = P * (dP - delta)",
        "dS_T = P_T * (1 - P_T) * dP_T",
    ),
    ("delta is added: dS = P * (dP - delta)", "dS_T = P_T * (dP_T + delta_i[None, :])"),
    ("dk stays 0: it adds up dS_T q", "dk_part = 0 * q[:1]"),
    ("dv stays 0: it adds up P_T do", "dv_part = 0 * q[:1]"),
    ("do is loaded from Q: take dO_ptr", "do = q"),
    ("q is loaded from dO: take Q_ptr", "q = load(dO, offs, inside)"),
    ("lse and delta are exchanged", "lse_i = load(delta, offs, inside); delta_i = load(lse, offs, inside)"),
    ("delta is loaded from lse: take delta_ptr", "delta_i = lse_i"),
    ("lse is loaded from delta: take lse_ptr", "lse_i = load(delta, offs, inside)"),
    (f"dk is divided by scale: {AFTER}", "dk_part = dS_T @ q / scale"),
    (
        "delta is not multiplied by P: dS = P * (dP - delta), not P * dP - delta",
        "dS_T = P_T * dP_T - delta_i[None, :]",
    ),
    (
        "delta runs along the keys: queries are the columns of dP_T, so delta[None, :]",
        "dS_T = P_T * (dP_T - delta_i[:, None])",
    ),
    (
        "lse runs along the keys: queries are the columns of S_T, so lse[None, :]",
        "P_T = np.exp(S_T - lse_i[:, None])",
    ),
    (
        "lse and delta run along the keys: queries are the columns of the tile, so [None, :]",
        "P_T = np.exp(S_T - lse_i[:, None]); dS_T = P_T * (dP_T - delta_i[:, None])",
    ),
    ("dP is made with k: dP_T = v do^T", "dP_T = k @ do.T"),
    ("dP is made with q: dP_T = v do^T", "dP_T = v @ q.T"),
    ("dP is multiplied by scale: dP_T = v do^T", "dP_T = v @ do.T * scale"),
    ("v is not multiplied by do^T but by do: dP_T = v do^T", "dP_T = v @ do"),
    ("k is not multiplied by q^T but by q: S_T = k q^T", "raw = k @ q"),
    ("the scores are made with v: S_T = k q^T", "raw = v @ q.T"),
    ("the scores are made with do: S_T = k q^T", "raw = k @ do.T"),
    ("lse is not used: P_T is exp(S_T - lse), not exp(S_T)", "P_T = np.exp(S_T)"),
    (
        "P is a softmax over the tile, which leaves out the other keys: P_T is exp(S_T - lse)",
        "P_T = softmax(S_T.T).T",
    ),
    ("P is a softmax over the queries: P_T is exp(S_T - lse)", "P_T = softmax(S_T)"),
    (
        "the tile's own maximum is subtracted: lse takes its place, P_T is exp(S_T - lse)",
        "P_T = np.exp(S_T - S_T.max(axis=0)[None, :])",
        "P_T = np.exp(S_T - S_T.max(axis=1)[:, None])",
    ),
    (
        "exp is taken of S and of lse, and large ones overflow: take exp of the difference",
        "P_T = np.exp(S_T) / np.exp(lse_i)[None, :]",
        "P_T = np.exp(S_T) * np.exp(-lse_i)[None, :]",
    ),
    ("P is divided by lse, which is a logarithm: P_T is exp(S_T - lse)", "P_T = np.exp(S_T) / lse_i[None, :]"),
    (
        "lse is multiplied by scale too: it is that of scaled scores",
        "P_T = np.exp((raw - lse_i[None, :]) * scale)",
    ),
    ("tl.exp2 is taken, and lse is a natural logarithm: tl.exp", "P_T = np.exp2(S_T - lse_i[None, :])"),
)

# ---- dQ of the row blocks, under a causal mask

DQ_END = """
past = N_k - N_q
last = (i + 1) * B_R
end = min(last + past, N_k)
"""

DQ_LINES = """
offs = start + np.arange(B_C)
row = i * B_R + np.arange(B_R)
shift = N_k - N_q
inside = offs < N_k
k = load(K, offs, inside)
v = load(V, offs, inside)
raw = q @ k.T
S = raw * scale
visible = offs[None, :] <= row[:, None] + shift
weights = np.exp(S - lse_i[:, None])
P = np.where(visible, weights, 0)
dP = do @ v.T
dS = P * (dP - delta_i[:, None])
part = dS @ k * scale
counted = 1
kept = dq
found = kept + counted * part
"""


def poisoned(X, i, N_q, B_R, B_C, N_k=None):
    """Return the N_k keys X as row block i gets them: nan in tiles that none of its rows sees."""
    X = np.array(X)
    end = max(0, min((i + 1) * B_R, N_q) + (len(X) if N_k is None else N_k) - N_q)
    X[-(-end // B_C) * B_C :] = np.nan
    return X


def dq(changed, Q, dO, lse, delta, K, V, scale, B_R, B_C):
    """Return dQ of a loop over column blocks for each row block, with the lines in `changed` exchanged."""
    Q, dO, lse, delta, K, V = _fp64(Q, dO, lse, delta, K, V)
    (N_q, _), N_k = Q.shape, len(K)
    lines = [line for line in changed.split("; ") if line]
    bounds = "; ".join(line for line in lines if line.split(" = ")[0] in ("past", "last", "end"))
    others = "; ".join(line for line in lines if line not in bounds.split("; "))
    found = []
    for i in range(-(-N_q // B_R)):
        sizes = {"i": i, "N_q": N_q, "N_k": N_k, "B_R": B_R, "B_C": B_C, "np": np}
        end = calculations.run(DQ_END, bounds, **sizes)
        rows = i * B_R + np.arange(B_R)
        tiles = [load(X, rows, rows < N_q) for X in (Q, dO, lse, delta)]
        given = dict(zip(("q", "do", "lse_i", "delta_i"), tiles, strict=True))
        given |= {X: poisoned(x, i, N_q, B_R, B_C) for X, x in (("K", K), ("V", V))}
        dq_i = np.zeros((B_R, Q.shape[1]))
        for start in range(0, end, B_C):
            tile = sizes | TOOLS | given | {"dq": dq_i, "start": start, "end": end, "scale": scale}
            dq_i = calculations.run(DQ_LINES, others, **tile)
        found.append(dq_i)
    return np.concatenate(found)[:N_q]


SEES = "row r sees keys up to r + N_k - N_q"
STOP = "its last row sees (i + 1) * B_R + N_k - N_q keys"
TOP_LEFT = f"the mask is aligned top left: {SEES}"

DQ = (
    (TOP_LEFT, "past = 0; shift = 0", "shift = 0", "past = 0; shift = 0; end = N_k"),
    (
        f"the loop of block i ends as if the mask were aligned top left: {STOP}",
        "past = 0",
        "end = min((i + 1) * B_C, N_k)",
    ),
    (f"the shift has the wrong sign: {SEES}", "past = N_q - N_k; shift = N_q - N_k", "shift = N_q - N_k"),
    (
        f"the causal mask is missing: {SEES}",
        "visible = inside[None, :]",
        "visible = inside[None, :]; end = N_k",
        "visible = True",
        "visible = True; end = N_k",
    ),
    (f"the mask is upside down: {SEES}", "visible = offs[None, :] > row[:, None] + shift"),
    ("a row sees its own key too: offs_n <= r + N_k - N_q", "visible = offs[None, :] < row[:, None] + shift"),
    (
        f"the mask lets one key too many through: {SEES}",
        "visible = offs[None, :] <= row[:, None] + shift + 1",
    ),
    (
        "the rows of the mask begin at 0 in every block: they begin at i * B_R",
        "row = np.arange(B_R)",
    ),
    (
        "the columns of the mask begin at 0 in every tile: they begin at start",
        "visible = (offs - start)[None, :] <= row[:, None] + shift",
    ),
    (
        f"tiles that no row of block i sees are read: {STOP}",
        "end = N_k",
        "end = min(last + past + B_C, N_k)",
    ),
    (f"the loop of block i ends at what the first row sees: {STOP}", "last = i * B_R + 1"),
    (f"the loop of block i ends where the block begins: {STOP}", "last = i * B_R"),
    (f"the loop of block i ends one key early: {STOP}", "last = (i + 1) * B_R - 1"),
    (
        "the last tile is dropped: round the number of tiles up, tl.cdiv",
        "end = min(last + past, N_k) // B_C * B_C",
    ),
    (
        f"block i visits only the tiles before number i: {STOP}",
        "end = i * B_C",
        "end = i * B_R // B_C * B_C",
    ),
    ("dq is that of the last tile alone: dq += tl.dot(dS, k)", "kept = 0 * dq"),
    ("only the first tile counts: does the return stand inside the loop?", "counted = start == 0"),
    (
        "a tile begins at key j, not j * B_C: loop with range(0, end, B_C), or multiply",
        "offs = start // B_C + np.arange(B_C)",
    ),
    (
        "keys past the end are read, where nan lies: mask the loads of k and v with offs_n < N_k",
        "k = load(K, offs)",
        "v = load(V, offs)",
        "k = load(K, offs); v = load(V, offs)",
    ),
    (
        "nan in a row that sees no key, whose lse is -inf: take tl.where(visible, P, 0.0) after the exponential",
        "weights = np.exp(np.where(visible, S, -np.inf) - lse_i[:, None]); P = weights",
        "P = weights * visible",
    ),
    (
        "hidden scores become 0, and exp(0 - lse) is a weight: tl.where(visible, P, 0.0)",
        "weights = np.exp(np.where(visible, S, 0) - lse_i[:, None]); P = weights",
    ),
    ("dq is not multiplied by scale: S is scale * Q K^T, so dQ = scale * dS K", "part = dS @ k"),
    ("dq is multiplied by scale twice: dQ = scale * dS K", "part = dS @ k * scale**2"),
    ("dq is multiplied by scale in every step: once is enough, after the last", "kept = dq * scale"),
    (
        "dq is rescaled in every step, and not the first time: multiply by scale once, after the last",
        "kept = dq * scale; part = dS @ k",
    ),
    ("scale is missing: in the scores and in dq", "S = raw; part = dS @ k"),
    ("scale is missing in the scores: P is exp(scale * q k^T - lse)", "S = raw"),
    ("dq adds up dS v: it is k that dS meets", "part = dS @ v * scale"),
    ("dq adds up P k: it is dS that meets k", "part = P @ k * scale", "part = P @ k"),
    ("dq adds up P v, which is O: it is dS that meets k", "part = P @ v", "part = P @ v * scale"),
    ("dq adds up dP k: go on to dS, back through the softmax", "part = np.where(visible, dP, 0) @ k * scale"),
    ("dS is transposed: dq adds up dS k", "part = dS.T @ k * scale"),
    ("dS meets q, as in dk: dq adds up dS k", "part = dS @ q * scale", "part = dS.T @ q * scale"),
    ("delta is not subtracted: dS = P * (dP - delta)", "dS = P * dP"),
    (
        "delta is summed in the tile, which leaves out the other keys: take the argument",
        "dS = P * (dP - (P * dP).sum(axis=1)[:, None])",
    ),
    ("P is missing in dS: dS = P * (dP - delta)", "dS = np.where(visible, dP - delta_i[:, None], 0)"),
    ("the sign is turned round: dS = P * (dP - delta), not delta - dP", "dS = P * (delta_i[:, None] - dP)"),
    ("P is a factor twice: dS = P * (dP - delta)", "dS = P * P * (dP - delta_i[:, None])"),
    (
        "P * (1 - P) * dP is the diagonal of J alone: dS = P * (dP - delta)",
        "dS = P * (1 - P) * dP",
    ),
    ("delta is added: dS = P * (dP - delta)", "dS = P * (dP + delta_i[:, None])"),
    ("dq stays 0: it adds up dS k", "part = 0 * k[:1]"),
    ("lse and delta are exchanged", "weights = np.exp(S - delta_i[:, None]); dS = P * (dP - lse_i[:, None])"),
    ("dq is divided by scale: dQ = scale * dS K", "part = dS @ k / scale"),
    (
        "tiles before the diagonal are left out: all rows see key 0, so the loop begins there",
        "counted = start >= i * B_R",
        "counted = start >= end - B_C",
    ),
    (
        "delta is not multiplied by P: dS = P * (dP - delta), not P * dP - delta",
        "dS = P * dP - delta_i[:, None]",
    ),
    ("delta runs along the keys: each row has its own, delta[:, None]", "dS = P * (dP - delta_i[None, :])"),
    ("lse runs along the keys: each row has its own, lse[:, None]", "weights = np.exp(S - lse_i[None, :])"),
    ("dP is made with k: dP = do v^T", "dP = do @ k.T"),
    ("dP is made with q: dP = do v^T", "dP = q @ v.T"),
    ("dP is multiplied by scale: dP = do v^T", "dP = do @ v.T * scale"),
    ("v is not transposed: dP = do v^T", "dP = do @ v"),
    ("k is not transposed: S = q k^T", "raw = q @ k"),
    ("the scores are made with v: S = q k^T", "raw = q @ v.T"),
    ("lse is not used: P is exp(S - lse), not exp(S)", "weights = np.exp(S)"),
    (
        "P is a softmax over the tile, which leaves out the other keys: P is exp(S - lse)",
        "P = softmax(np.where(visible, S, -np.inf))",
    ),
    (
        "the tile's own maximum is subtracted: lse takes its place, P is exp(S - lse)",
        "weights = np.exp(S - S.max(axis=1)[:, None])",
        "weights = np.exp(S - np.where(visible, S, -np.inf).max(axis=1)[:, None])",
    ),
    (
        "exp is taken of S and of lse, and large ones overflow: take exp of the difference",
        "weights = np.exp(S) / np.exp(lse_i)[:, None]",
        "weights = np.exp(S) * np.exp(-lse_i)[:, None]",
    ),
    (
        "lse is multiplied by scale too: it is that of scaled scores",
        "weights = np.exp((raw - lse_i[:, None]) * scale)",
    ),
    ("tl.exp2 is taken, and lse is a natural logarithm: tl.exp", "weights = np.exp2(S - lse_i[:, None])"),
)
