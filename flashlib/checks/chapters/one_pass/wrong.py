"""Wrong answers to the exercises of chapter 05."""

from flashlib.checks.mutants import Mutant

WRONG = {
    "normalised": [
        ("O not rescaled", "is not rescaled when m grows: multiply it", {"(alpha * l_old / l)": "(l_old / l)"}),
        ("alpha alone", "multiplied by alpha alone", {"(alpha * l_old / l)": "alpha"}),
        ("l not rescaled", "l is not rescaled when m grows", {"alpha * l + p": "l + p"}),
        ("p not divided", "p is not divided by l", {"(p / l) * v_j": "p * v_j"}),
        ("O_acc", "the rows are O_acc", {"(alpha * l_old / l) * O + (p / l) * v_j": "alpha * O + p * v_j"}),
        ("alpha upside down", "alpha is upside down", {"np.exp(m_old - m)": "np.exp(m - m_old)"}),
        ("no maximum", "the maximum is not subtracted", {"max(m, x_j)": "0.0"}),
        ("m starts at 0", "m starts at 0", {"m, l, O = -np.inf": "m, l, O = 0.0"}),
        ("no guard", "a key of score -inf gives nan", {"x_j > -np.inf": "True"}),
        ("zeros where masked", "gives a row of 0", {"        outputs[j] = O": "            outputs[j] = O"}),
        (
            "key j left out",
            "row j is the output before key j",
            {
                "        if x_j": "        outputs[j] = O\n        if x_j",
                "        outputs[j] = O\n    return": "    return",
            },
        ),
        ("the last output only", "has shape (2,); expected (1, 2)", {"return outputs": "return O"}),
        ("returns nothing", "is a return missing", {"    return outputs": ""}),
        (
            "each row from all its keys",
            "x is read",
            {},
            """
def my_normalised(x, V):
    outputs = np.zeros(V.shape)
    for j in range(len(x)):
        seen = x[: j + 1]
        if seen.max() > -np.inf:
            p = np.exp(seen - seen.max())
            outputs[j] = p @ V[: j + 1] / p.sum()
    return outputs
""",
        ),
        (
            "one maximum, two passes",
            "x is read 2 times",
            {},
            """
def my_normalised(x, V):
    m = max(x, default=0.0)
    l, O_acc, outputs = 0.0, 0.0, []
    for x_j, v_j in zip(x, V, strict=True):
        p = np.exp(x_j - max(m, -1e300))
        l, O_acc = l + p, O_acc + p * v_j
        outputs.append(O_acc / (l or 1.0))
    return np.array(outputs).reshape(V.shape)
""",
        ),
        (
            "one l for all rows",
            "divided by the last l",
            {},
            """
def my_normalised(x, V):
    x, V = x.copy(), V.copy()
    p = np.exp(x - max(x.max(initial=-np.inf), -1e300))
    return np.cumsum(p[:, None] * V, axis=0) / (p.sum() or 1)
""",
        ),
        (
            "a mean, kept by counting",
            "plain mean",
            {},
            """
def my_normalised(x, V):
    mean, outputs = np.zeros(V.shape[1]), []
    for n, v in enumerate(V, start=1):
        mean = mean + (v - mean) / n
        outputs.append(mean)
    return np.array(outputs).reshape(V.shape)
""",
        ),
    ],
    "block_step": [
        ("l not rescaled", "l is not rescaled", {"l = alpha * l": "l = l"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        ("nothing rescaled", "neither l nor O_acc", {"= alpha * l": "= l", "alpha[:, None] * O_acc": "O_acc"}),
        ("alpha upside down", "alpha is upside down", {"m_old - m)": "m - m_old)"}),
        (
            "all rescaled",
            "the new tile is multiplied by alpha too",
            {"alpha[:, None] * O_acc + P_ij @ V_j": "alpha[:, None] * (O_acc + P_ij @ V_j)"},
        ),
        ("tile's own maximum", "of this tile alone", {"np.maximum(m, S_ij.max(axis=1))": "S_ij.max(axis=1)"}),
        ("one maximum", "one maximum is taken", {"S_ij.max(axis=1)": "S_ij.max()"}),
        ("axis 0", "the maximum is taken over axis 0", {"S_ij.max(axis=1)": "S_ij.max(axis=0)"}),
        ("sum over axis 0", "the sum is taken over axis 0", {"P_ij.sum(axis=1)": "P_ij.sum(axis=0)"}),
        ("no maximum", "the maximum is not subtracted", {"S_ij - m[:, None]": "S_ij"}),
        ("old maximum", "the old maximum is subtracted", {"S_ij - m[:, None]": "S_ij - m_old[:, None]"}),
        ("no new axis", "[:, None] is missing", {"alpha[:, None] * O_acc": "alpha * O_acc"}),
        ("no scale", "the scale is missing", {" * scale": ""}),
        ("scale made of d", "1 / sqrt(d) is", {"* scale": "/ np.sqrt(Q_i.shape[1])"}),
        ("K_j not transposed", "K_j is not transposed", {"K_j.T": "K_j"}),
        (
            "divided each time",
            "divided by l in every step",
            {"P_ij @ V_j\n": "P_ij @ V_j\n    O_acc = O_acc / l[:, None]\n"},
        ),
        (
            "softmax of the tile",
            "P_ij is divided by a sum",
            {"(axis=1)\n    O_acc": "(axis=1)\n    P_ij = P_ij / P_ij.sum(axis=1)[:, None]\n    O_acc"},
        ),
        ("lse", "lse is kept where m belongs", {"return m,": "return m + np.log(l),"}),
        (
            "in place",
            "its argument l is changed",
            {"    l = alpha * l + P_ij.sum(axis=1)": "    l *= alpha\n    l += P_ij.sum(axis=1)"},
        ),
        ("O_acc alone", "expected the 3 values", {"return m, l, O_acc": "return O_acc"}),
        (
            "row by row, O_acc not rescaled",
            "O_acc is not rescaled",
            {},
            """
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    m_new, l_new, O_new = m.copy(), l.copy(), O_acc.copy()
    for r, q in enumerate(Q_i):
        scores = [scale * float(q @ k) for k in K_j]
        m_new[r] = max(m[r], *scores)
        weights = np.exp(np.array(scores) - m_new[r])
        l_new[r] = l[r] * np.exp(m[r] - m_new[r]) + weights.sum()
        for p, v in zip(weights, V_j, strict=True):
            O_new[r] += p * v
    return m_new, l_new, O_new
""",
        ),
        (
            "merge of two states, tile shifted by itself",
            "tile's own maximum is subtracted",
            {},
            """
def my_block_step(Q_i, K_j, V_j, m, l, O_acc, scale):
    scores = np.einsum("rd,cd->rc", Q_i, K_j) * scale
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    new = np.maximum(m, largest[:, 0])
    keep = np.exp(m - new)
    return new, keep * l + weights.sum(-1), (keep * O_acc.T).T + weights @ V_j
""",
        ),
    ],
    "one_row": [
        ("no final division", "the final division by l is missing", {"O_acc / l": "O_acc"}),
        ("l not rescaled", "l is not rescaled", {"l = alpha * l": "l = l"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha * O_acc": "O_acc"}),
        (
            "no maximum",
            "the maximum is not subtracted",
            {"alpha, p = np.exp(m_old - m), np.exp(x - m)": "alpha, p = 1, np.exp(x)"},
        ),
        ("block's own maximum", "of this block alone", {"max(m, x.max())": "x.max()"}),
        ("m starts at 0", "m starts at 0", {"-np.inf": "0.0"}),
        ("no scale", "the scale is missing", {" * scale": ""}),
        ("tail dropped", "shorter block is dropped", {"blocks(len(K), B_c)": "blocks(len(K) // B_c * B_c, B_c)"}),
        ("K loaded whole", "rows of K are loaded at once", {"K[cols] @ q": "(K @ q)[cols]"}),
        ("indented return", "only the first block counts", {"    return": "        return"}),
        (
            "two passes",
            "K is read 2 times",
            {},
            """
def my_one_row(q, K, V, B_c, scale):
    m = max((K[cols] @ q).max() * scale for cols in tiled.blocks(len(K), B_c))
    l, O = 0.0, np.zeros(V.shape[1])
    for start in range(0, len(K), B_c):
        p = np.exp(K[start : start + B_c] @ q * scale - m)
        l, O = l + p.sum(), O + p @ V[start : start + B_c]
    return O / l
""",
        ),
        (
            "mean of the outputs",
            "the outputs of the blocks are averaged",
            {},
            """
def my_one_row(q, K, V, B_c, scale):
    outputs = []
    for cols in tiled.blocks(len(K), B_c):
        x = K[cols] @ q * scale
        p = np.exp(x - x.max())
        outputs.append(p / p.sum() @ V[cols])
    return np.mean(outputs, axis=0)
""",
        ),
        (
            "only the last block",
            "only the last block counts",
            {},
            """
def my_one_row(q, K, V, B_c, scale):
    for cols in tiled.blocks(len(K), B_c):
        x = K[cols] @ q * scale
        p = np.exp(x - x.max())
        O = p @ V[cols] / p.sum()
    return O
""",
        ),
        (
            "scaled q, O_acc not rescaled",
            "O_acc is not rescaled",
            {},
            """
def my_one_row(q, K, V, B_c, scale):
    q = q * scale
    m, l, acc, start = -np.inf, 0.0, np.zeros(V.shape[1]), 0
    while start < len(K):
        k, v = K[start : start + B_c], V[start : start + B_c]
        for s, v_j in zip(k @ q, v, strict=True):
            if s > m:
                l, m = l * np.exp(m - s), s
            l += np.exp(s - m)
            acc = acc + np.exp(s - m) * v_j
        start += B_c
    return acc / l
""",
        ),
    ],
    "alpha": [
        ("no guard", "nan where m is -inf", {"np.where(m == -np.inf, 0, m)": "m"}),
        ("upside down", "upside down", {"m_old - shift": "shift - m_old"}),
        ("no exp", "exp is missing", {"np.exp(m_old - shift)": "m_old - shift"}),
        ("m_old not used", "m_old is not used", {"m_old - shift": "-shift"}),
        (
            "guard for all rows",
            "the shift is 0 in every row",
            {"np.where(m == -np.inf, 0, m)": "0 if (m == -np.inf).any() else m"},
        ),
        (
            "in place",
            "its argument m is changed",
            {"shift = np.where(m == -np.inf, 0, m)": "m[m == -np.inf] = 0", "m_old - shift": "m_old - m"},
        ),
        (
            "nan becomes 1",
            "1 for a row that still has seen nothing",
            {},
            """
def my_alpha(m_old, m):
    return np.nan_to_num(np.exp(m_old - m), nan=1.0)
""",
        ),
        (
            "1 before anything is seen",
            "1 for a row that had seen nothing before",
            {},
            """
def my_alpha(m_old, m):
    return np.array([1.0 if a == -np.inf else np.exp(a - b) for a, b in zip(m_old, m, strict=True)])
""",
        ),
        (
            "an if on arrays",
            "raises ValueError",
            {},
            """
def my_alpha(m_old, m):
    if m == -np.inf:
        return 0.0
    return np.exp(m_old - m)
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
