"""Wrong answers to the exercises of chapter 08."""

from flashlib.checks.mutants import Mutant

DELTA = "(dO.astype(dtype) * O.astype(dtype)).sum(axis=1)"
SHIFT = "np.where(lse_i == -np.inf, np.inf, lse_i)"
EXP = "np.exp(S_ij - shift[:, None])"
DS = "P_ij * (dP_ij - delta_i[:, None])"
DQ = "dQ_i = dQ_i + dS_ij @ K_j"
EXP_LSE = "np.exp(S_ij - lse_i[:, None])"
ROWS_DS = "P_ij * (dP_ij - delta[rows, None])"

WRONG = {
    "delta": [
        ("axis 0", "over axis 0", {"axis=1": "axis=0"}),
        ("all of it", "everything is summed", {".sum(axis=1)": ".sum()"}),
        ("mean", "the mean of a row", {".sum(": ".mean("}),
        ("O forgotten", "O is not used", {" * O.astype(dtype)": ""}),
        ("dO forgotten", "dO is not used", {"dO.astype(dtype) * ": ""}),
        ("O squared", "O is multiplied by itself", {"(dO.astype": "(O.astype"}),
        ("dO squared, in fp16", "dO is multiplied by itself", {DELTA: "(dO**2).sum(axis=1)"}),
        (
            "dO @ O.T, summed",
            "multiplies every row with every row",
            {" * O.astype(dtype)": " @ O.astype(dtype).T"},
        ),
        ("not summed", "dO * O is not summed", {".sum(axis=1)": ""}),
        ("keepdims", "a second axis of size 1", {"axis=1": "axis=1, keepdims=True"}),
        ("fp16", "summed in fp16", {DELTA: "(dO * O).sum(axis=1)"}),
        ("products in fp16", "products are rounded to fp16", {DELTA: "(dO * O).astype(dtype).sum(axis=1)"}),
        ("rounded at the end", "the result is rounded to fp16", {DELTA: f"{DELTA}.astype(O.dtype)"}),
        ("scaled", "a scale is applied", {DELTA: f"{DELTA} / np.sqrt(O.shape[1])"}),
        (
            "the diagonal of a product",
            "a matrix of N_q x N_q",
            {},
            """
def my_delta(dO, O):
    return np.diag(dO.astype(float) @ O.astype(float).T)
""",
        ),
        (
            "einsum in fp16",
            "the result is rounded to fp16",
            {},
            """
def my_delta(dO, O):
    return np.einsum("ij,ij->i", dO, O)
""",
        ),
    ],
    "grad_V": [
        ("not transposed", "P is not transposed", {"P.T": "P"}),
        ("transposed result", "dV is transposed", {"P.T @ dO": "dO.T @ P"}),
        ("other order", "in the wrong order", {"P.T @ dO": "dO @ P.T"}),
        ("elementwise", "multiplied elementwise", {"P.T @ dO": "P.T * dO"}),
        ("mean", "the mean over the queries", {"P.T @ dO": "P.T @ dO / len(dO)"}),
        ("columns normalised", "divided by its column sums", {"P.T @ dO": "(P / P.sum(axis=0)).T @ dO"}),
        ("rows normalised", "divided by its row sums again", {"P.T": "(P / P.sum(axis=1, keepdims=True)).T"}),
        ("scaled", "a scale is applied", {"P.T @ dO": "P.T @ dO / np.sqrt(dO.shape[1])"}),
        ("through the softmax", "the softmax is not on the way", {"P.T @ dO": "(P * (1 - P)).T @ dO"}),
        (
            "a loop that overwrites",
            "only one query counts",
            {},
            """
def my_grad_V(P, dO):
    dV = np.zeros((P.shape[1], dO.shape[1]))
    for r in range(len(P)):
        dV = np.outer(P[r], dO[r])
    return dV
""",
        ),
        (
            "sums multiplied",
            "summed over the queries and then multiplied",
            {"P.T @ dO": "P.sum(axis=0)[:, None] * dO.sum(axis=0)"},
        ),
        (
            "softmax of P, by einsum",
            "a softmax of P is taken",
            {},
            """
def my_grad_V(P, dO):
    E = np.exp(P)
    return np.einsum("rc,re->ce", E / E.sum(axis=1)[:, None], dO)
""",
        ),
        ("no return", "returns nothing", {"return P": "dV = P"}),
    ],
    "grad_S": [
        ("no delta", "delta is not subtracted", {"(dP - delta)": "dP"}),
        ("no P", "the factor P is missing", {"P * (dP - delta)": "dP - delta"}),
        ("sum of dP", "P is missing in delta", {"(P * dP)": "dP"}),
        ("mean of dP", "the plain mean of dP", {"(P * dP).sum": "dP.mean"}),
        ("mean", "the mean of P * dP", {".sum(": ".mean("}),
        ("axis 0", "over axis 0", {"axis=1": "axis=0"}),
        ("one sum", "one delta is taken", {"axis=1, keepdims=True": ""}),
        ("no keepdims", "keepdims=True is missing", {", keepdims=True": ""}),
        ("sign", "the sign is turned round", {"dP - delta": "delta - dP"}),
        ("added", "delta is added", {"dP - delta": "dP + delta"}),
        ("J's diagonal", "the diagonal of J alone", {"P * (dP - delta)": "P * (1 - P) * dP"}),
        ("no bracket", "delta is not multiplied by P", {"P * (dP - delta)": "P * dP - delta"}),
        ("exchanged", "P and dP are exchanged", {"P * (dP - delta)": "dP * (P - delta)"}),
        ("scaled", "a scale is applied", {"P * (dP": "P.shape[1] ** -0.5 * P * (dP"}),
        ("largest", "the largest dP is subtracted", {"(P * dP).sum": "dP.max"}),
        ("in place", "its argument dP is changed", {"return P * (dP - delta)": "dP -= delta\n    return P * dP"}),
        (
            "log softmax",
            "gradient of log softmax",
            {},
            """
def my_grad_S(P, dP):
    total = np.add.reduce(dP, axis=1)
    return dP - P * total[:, None]
""",
        ),
        (
            "J for each row",
            "J is formed",
            {},
            """
def my_grad_S(P, dP):
    dS = np.zeros(P.shape)
    for r, p in enumerate(P):
        dS[r] = (np.diag(p) - np.outer(p, p)) @ dP[r] if len(p) > 1 else 0
    return dS
""",
        ),
        (
            "all J at once",
            "J is formed",
            {},
            """
def my_grad_S(P, dP):
    J = np.eye(P.shape[1]) * P[:, :, None] - P[:, :, None] * P[:, None, :]
    dS = (J @ dP[:, :, None])[:, :, 0]
    return dS
""",
        ),
        (
            "weights made anew",
            "a row of zeros gives nan",
            {},
            """
def my_grad_S(P, dP):
    p = P / P.sum(1)[:, None]
    return p * dP - p * (p * dP).sum(1)[:, None]
""",
        ),
    ],
    "recompute_P": [
        ("no scale", "the scale is missing", {" * scale": ""}),
        ("scale made of d", "1 / sqrt(d) is", {"* scale": "/ np.sqrt(Q_i.shape[1])"}),
        ("K_j not transposed", "K_j is not transposed", {"K_j.T": "K_j"}),
        ("no lse", "lse is not used", {EXP: "np.exp(S_ij)"}),
        ("lse added", "lse is added", {"S_ij - shift": "S_ij + shift"}),
        ("upside down", "the difference is upside down", {"S_ij - shift[:, None]": "shift[:, None] - S_ij"}),
        ("no exp", "exp is missing", {EXP: "S_ij - shift[:, None]"}),
        ("base 2", "exp2 is taken", {"np.exp(": "np.exp2("}),
        ("by columns", "[:, None] is missing at lse", {"shift[:, None]": "shift"}),
        ("no guard", "inf where lse is -inf", {SHIFT: "lse_i"}),
        ("shift by 0", "exp(S_ij) where lse is -inf", {"np.inf, np.inf, lse_i": "np.inf, 0, lse_i"}),
        ("nan_to_num", "nan_to_num makes", {SHIFT: "lse_i", EXP: f"np.nan_to_num({EXP})"}),
        ("own maximum", "the tile's own maximum", {EXP: "np.exp(S_ij - S_ij.max(axis=1, keepdims=True))"}),
        ("apart", "large ones overflow", {EXP: "np.exp(S_ij) / np.exp(shift)[:, None]"}),
        ("divided by lse", "which is a logarithm", {EXP: "np.exp(S_ij) / shift[:, None]"}),
        (
            "softmax of the tile",
            "divided by its own row sums",
            {},
            """
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S = Q_i @ K_j.T * scale
    E = np.exp(S - S.max(axis=1)[:, None])
    return E / E.sum(axis=1)[:, None] * (lse_i > -np.inf)[:, None]
""",
        ),
        (
            "the chapter's line, without its mask",
            "exp(S_ij) where lse is -inf",
            {},
            """
def my_recompute_P(Q_i, K_j, lse_i, scale):
    S_ij = scale * np.einsum("re,ce->rc", Q_i, K_j)
    lse_i = np.where(np.isinf(lse_i), 0, lse_i)[:, None]
    return np.exp(S_ij - lse_i)
""",
        ),
        (
            "row by row, all or nothing",
            "makes all rows 0",
            {},
            """
def my_recompute_P(Q_i, K_j, lse_i, scale):
    if np.isinf(lse_i).any():
        return np.zeros((len(Q_i), len(K_j)))
    return np.array([np.exp(K_j @ q * scale - x) for q, x in zip(Q_i, lse_i)])
""",
        ),
    ],
    "dq_rows": [
        ("no scale at the end", "dQ_i is not multiplied by scale", {"return dQ_i * scale": "return dQ_i"}),
        ("no scale in S", "the scale is missing", {"K_j.T * scale": "K_j.T"}),
        ("no scale at all", "dQ_i is not multiplied by", {"K_j.T * scale": "K_j.T", "dQ_i * scale": "dQ_i"}),
        ("scale twice", "multiplied by scale twice", {"return dQ_i * scale": "return dQ_i * scale * scale"}),
        ("overwritten", "that of the last block alone", {DQ: "dQ_i = dS_ij @ K_j"}),
        ("tail dropped", "the last, shorter block is dropped", {"blocks(len(K)": "blocks(len(K) // B_c * B_c"}),
        ("returns too early", "only the first block counts", {"    return dQ": "        return dQ"}),
        ("no delta", "delta is not subtracted", {DS: "P_ij * dP_ij"}),
        (
            "delta of the tile",
            "delta is summed in the tile",
            {DS: "P_ij * (dP_ij - (P_ij * dP_ij).sum(axis=1)[:, None])"},
        ),
        ("no P in dS", "P_ij is missing in dS_ij", {DS: "dP_ij - delta_i[:, None]"}),
        ("sign", "the sign is turned round", {DS: "P_ij * (delta_i[:, None] - dP_ij)"}),
        ("delta by columns", "[:, None] is missing at delta", {"delta_i[:, None]": "delta_i"}),
        ("lse by columns", "[:, None] is missing at lse", {"lse_i[:, None]": "lse_i"}),
        ("P for dS", "it is dS_ij that meets K_j", {"dS_ij @ K_j": "P_ij @ K_j"}),
        ("dP for dS", "go on to dS_ij", {"dS_ij @ K_j": "dP_ij @ K_j"}),
        ("V for K", "dS_ij meets V_j", {"dS_ij @ K_j": "dS_ij @ V_j"}),
        ("transposed", "dS_ij is transposed", {"dS_ij @ K_j": "dS_ij.T @ K_j"}),
        ("dP with K", "dP_ij is made with K", {"dO_i @ V_j.T": "dO_i @ K_j.T"}),
        ("no lse", "lse is not used", {EXP_LSE: "np.exp(S_ij)"}),
        (
            "rescaled",
            "rescaled as O_acc in the forward pass",
            {
                "    for": "    m = np.full(len(Q_i), -np.inf)\n    for",
                DQ: "m_old, m = m, np.maximum(m, S_ij.max(axis=1))\n"
                "        dQ_i = dQ_i * np.exp(m_old - m)[:, None] + dS_ij @ K_j",
            },
        ),
        (
            "the whole row",
            "a matrix of B_r x N_k is held",
            {},
            """
def my_dq_rows(Q_i, dO_i, lse_i, delta_i, K, V, B_c, scale):
    P = np.exp(Q_i @ K.T * scale - lse_i[:, None])
    return P * (dO_i @ V.T - delta_i[:, None]) @ K * scale
""",
        ),
        (
            "tiles kept, joined at the end",
            "a matrix of B_r x N_k is held",
            {
                "    for": "    kept = [np.zeros((len(Q_i), 0))]\n    for",
                DQ: "kept.append(dS_ij)",
                "return dQ_i * scale": "return np.hstack(kept) @ K * scale",
            },
        ),
        (
            "softmax of each tile, slices",
            "divided by its own row sums",
            {},
            """
def my_dq_rows(Q, dO, lse, D, K, V, step, scale):
    total = 0 * Q
    for a in range(0, len(K), step):
        s = scale * Q @ K[a : a + step].T
        p = np.exp(s - s.max(axis=1)[:, None])
        p = p / p.sum(axis=1)[:, None]
        total += scale * (p * (dO @ V[a : a + step].T - D[:, None])) @ K[a : a + step]
    return total
""",
        ),
        (
            "in place",
            "its argument Q_i is changed",
            {"    dQ_i = np.zeros": "    Q_i *= scale\n    dQ_i = np.zeros", "K_j.T * scale": "K_j.T"},
        ),
    ],
    "dkv_columns": [
        ("exchanged", "dV_j is returned first", {"return dK_j * scale, dV_j": "return dV_j, dK_j * scale"}),
        ("no scale in dK", "dK_j is not multiplied by scale", {"return dK_j * scale": "return dK_j"}),
        ("no scale in S", "the scale is missing", {"K_j.T * scale": "K_j.T"}),
        ("dV scaled too", "dV_j is multiplied by scale", {"* scale, dV_j": "* scale, dV_j * scale"}),
        ("dV with dS", "dV_j is made with dS_ij", {"P_ij.T @ dO_i": "dS_ij.T @ dO_i"}),
        ("dK with P", "dK_j is made with P_ij", {"dS_ij.T @ Q_i": "P_ij.T @ Q_i"}),
        ("dK with dO", "dK_j is made with dO_i", {"dS_ij.T @ Q_i": "dS_ij.T @ dO_i"}),
        ("dK not transposed", "dS_ij is not transposed", {"dS_ij.T @ Q_i": "dS_ij @ Q_i"}),
        ("dV not transposed", "P_ij is not transposed", {"P_ij.T @ dO_i": "P_ij @ dO_i"}),
        ("dK overwritten", "dK_j is that of the last block", {"dK_j + dS_ij": "dS_ij"}),
        ("dV overwritten", "dV_j is that of the last block", {"dV_j + P_ij": "P_ij"}),
        ("both overwritten", "are those of the last block", {"dV_j + P_ij": "P_ij", "dK_j + dS_ij": "dS_ij"}),
        ("tail dropped", "the last, shorter block is dropped", {"blocks(len(Q)": "blocks(len(Q) // B_r * B_r"}),
        ("returns too early", "only the first block counts", {"    return dK": "        return dK"}),
        ("no delta", "delta is not subtracted", {ROWS_DS: "P_ij * dP_ij"}),
        (
            "delta of the tile",
            "delta is summed in the tile",
            {ROWS_DS: "P_ij * (dP_ij - (P_ij * dP_ij).sum(axis=1)[:, None])"},
        ),
        ("lse by columns", "[:, None] is missing at lse", {"lse[rows, None]": "lse[rows]"}),
        ("delta by columns", "[:, None] is missing at delta", {"delta[rows, None]": "delta[rows]"}),
        (
            "the first rows' lse",
            "those of the first rows in every block",
            {"lse[rows, None]": "lse[:len(Q_i), None]", "delta[rows, None]": "delta[:len(Q_i), None]"},
        ),
        ("no P in dS", "P_ij is missing in dS_ij", {ROWS_DS: "dP_ij - delta[rows, None]"}),
        ("dK alone", "expected the 2 values", {"* scale, dV_j": "* scale"}),
        (
            "whole columns",
            "a matrix of N_q x B_c is held",
            {},
            """
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    P = np.exp(scale * Q @ K_j.T - lse[:, None])
    dS = P * (dO @ V_j.T - delta[:, None])
    return scale * dS.T @ Q, P.T @ dO
""",
        ),
        (
            "softmax over the tile's keys, transposed tiles",
            "divided by its own row sums",
            {},
            """
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = 0 * K_j, 0 * V_j
    for a in range(0, len(Q), B_r):
        q, g = Q[a : a + B_r], dO[a : a + B_r]
        P = np.exp(K_j @ q.T * scale)
        P = P / P.sum(axis=0)
        dV += P @ g
        dK += scale * (P * (V_j @ g.T - delta[a : a + B_r])) @ q
    return dK, dV
""",
        ),
        (
            "exchanged, transposed tiles",
            "dV_j is returned first",
            {},
            """
def my_dkv_columns(K_j, V_j, Q, dO, lse, delta, B_r, scale):
    dK, dV = 0 * K_j, 0 * V_j
    for a in range(0, len(Q), B_r):
        b = slice(a, a + B_r)
        P = np.exp(K_j @ Q[b].T * scale - lse[b])
        dV += P @ dO[b]
        dK += scale * (P * (V_j @ dO[b].T - delta[b])) @ Q[b]
    return dV, dK
""",
        ),
    ],
    "row_blocks": [
        ("top left", "aligned top left", {" - (N_k - N_q)": ""}),
        ("wrong sign", "the shift has the wrong sign", {"- (N_k - N_q)": "+ (N_k - N_q)"}),
        ("all", "all row blocks are visited", {"range(first_row // B_r, T_r)": "range(T_r)"}),
        ("forward", "those up to the diagonal", {"range(first_row // B_r, T_r)": "range(first_row // B_r + 1)"}),
        ("rounded up", "that the mask cuts are left out", {"first_row // B_r": "-(-first_row // B_r)"}),
        ("last key", "see only some of block j", {"j * B_c -": "min((j + 1) * B_c, N_k) - 1 -"}),
        ("negative", "the first row is below 0", {"max(0, j * B_c - (N_k - N_q))": "j * B_c - (N_k - N_q)"}),
        ("strict", "row r sees key r + N_k - N_q itself", {"(N_k - N_q))": "(N_k - N_q) + 1)"}),
        ("too early", "off by one, too early", {"(N_k - N_q))": "(N_k - N_q) - 1)"}),
        ("too late", "off by one, too late", {"first_row // B_r": "first_row // B_r + 1"}),
        ("exchanged", "B_r and B_c are exchanged", {"j * B_c -": "j * B_r -", "_row // B_r": "_row // B_c"}),
        ("T_r rounded down", "the last, shorter row block", {"-(-N_q // B_r)": "N_q // B_r"}),
        ("T_r too large", "a row block too many", {"-(-N_q // B_r)": "N_q // B_r + 1"}),
        ("ends early", "the last row block is left out", {"T_r)": "T_r - 1)"}),
        ("rows", "rows are returned", {"range(first_row // B_r, T_r)": "range(first_row, N_q)"}),
        ("the first alone", "return a list or a range", {"range(first_row // B_r, T_r)": "first_row // B_r"}),
        ("block numbers", "block numbers are compared", {"first_row // B_r": "j"}),
        (
            "a mask, aligned top left",
            "aligned top left",
            {},
            """
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    seen = np.tri(N_q, N_k)[:, j * B_c : (j + 1) * B_c]
    return [i for i in range((N_q + B_r - 1) // B_r) if seen[i * B_r : (i + 1) * B_r].any()]
""",
        ),
        (
            "only whole tiles",
            "see only some of block j",
            {},
            """
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    past, last_key = N_k - N_q, min(j * B_c + B_c, N_k) - 1
    return {i for i, rows in enumerate(blocks(N_q, B_r)) if last_key <= rows.stop - 1 + past}
""",
        ),
        (
            "first rows asked",
            "that the mask cuts are left out",
            {},
            """
def my_row_blocks(j, N_q, N_k, B_r, B_c):
    return [i for i, rows in enumerate(blocks(N_q, B_r)) if j * B_c <= rows.start + N_k - N_q]
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
