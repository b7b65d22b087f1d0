"""Wrong answers to the exercises of chapter 06."""

from flashlib.checks.mutants import Mutant

GUARD = "np.where(m == -np.inf, 0, m)"
DIVISOR = "np.where(l == 0, 1, l)"
MASK = "S_ij = np.where(is_visible(rows, cols, past), S_ij, -np.inf)"
SEEN = "(is_visible(rows, cols, past) | (not causal))"
HIDDEN = "if causal and is_hidden(rows, cols, past)"

IN_BOTH_ORDERS = [
    ("alpha upside down", "alpha is upside down", {"np.exp(m_old - shift)": "np.exp(shift - m_old)"}),
    ("no guard of m", "-inf - (-inf) is nan", {GUARD: "m"}),
    ("mask aligned top left", "aligned top left", {"past = len(K) - len(Q)": "past = 0"}),
    ("hidden scores 0", "hidden scores become 0", {"S_ij, -np.inf)": "S_ij, 0)"}),
    ("hidden scores -1e9", "-1e+09 takes the place", {"S_ij, -np.inf)": "S_ij, -1e9)"}),
    ("no mask", "causal mask is missing", {MASK: "pass"}),
    ("hidden tiles computed", "hides all of it", {HIDDEN: "if False"}),
    ("m starts at 0", "m starts at 0:", {"-np.inf), np.zeros": "0.0), np.zeros"}),
    ("scale squared", "scale is applied twice", {"K_j.T * scale": "K_j.T * scale * scale"}),
    ("scale too small", "0.9 times as large", {"K_j.T * scale": "K_j.T * scale * 0.9"}),
    ("last keys dropped", "block of keys is dropped", {"blocks(len(K), B_c)": "blocks(len(K) // B_c * B_c, B_c)"}),
    ("last rows dropped", "queries is dropped", {"blocks(len(Q), B_r)": "blocks(len(Q) // B_r * B_r, B_r)"}),
    ("a tuple for a Step", "yields a tuple of 5", {"yield Step(i, j, m, l, O_acc)": "yield i, j, m, l, O_acc"}),
    ("i and j exchanged", "i and j are exchanged", {"Step(i, j,": "Step(j, i,"}),
    ("K copied whole", "K is copied as a whole", {"K[cols], V[cols]": "np.array(K)[cols], V[cols]"}),
    ("K loaded whole", "rows of K are loaded at once", {"K[cols], V[cols]": "K[:][cols], V[cols]"}),
    ("m of shape (B_r, 1)", "m of tile (0, 0) has shape", {"Step(i, j, m,": "Step(i, j, m[:, None],"}),
]

WRONG = {
    "fa2": [
        *IN_BOTH_ORDERS,
        ("l not rescaled", "l is not rescaled", {"l = alpha * l +": "l = l +"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        ("nothing rescaled", "neither l nor O_acc", {"alpha * l": "l", "alpha[:, None] * O_acc": "O_acc"}),
        ("no maximum", "maximum is not subtracted", {"np.exp(S_ij - shift[:, None])": "np.exp(S_ij)"}),
        ("tile's own maximum", "of this tile alone", {"np.maximum(m, S_ij.max(axis=1))": "S_ij.max(axis=1)"}),
        ("one maximum for all rows", "one maximum is taken", {"S_ij.max(axis=1)": "S_ij.max()"}),
        ("old maximum", "the old maximum", {"S_ij - shift[:, None]": "S_ij - m_old[:, None]"}),
        ("axis 0", "over axis 0", {"S_ij.max(axis=1)": "S_ij.max(axis=0)"}),
        ("no scale", "the scale is missing", {" * scale\n": "\n"}),
        ("scale made of d", "1 / sqrt(d) is", {"* scale": "/ np.sqrt(Q.shape[1])"}),
        (
            "m counts hidden scores",
            "m counts hidden scores",
            {
                MASK: "pass",
                "np.exp(S_ij - shift[:, None])": f"np.exp(S_ij - shift[:, None]) * {SEEN}",
            },
        ),
        (
            "hidden keys in l",
            "hidden keys count in m and l",
            {
                MASK: "pass",
                "+ P_ij @ V_j": f"+ (P_ij * {SEEN}) @ V_j",
            },
        ),
        (
            "row blocks not started anew",
            "row block before is carried on",
            {"        m, l, O_acc =": "        if i == 0 or len(Q_i) < B_r:\n            m, l, O_acc ="},
        ),
        (
            "divided in each step",
            "divided by l in every step",
            {"yield Step": "O_acc = O_acc / l[:, None]\n            yield Step"},
        ),
        (
            "lse for m",
            "lse is kept where m belongs",
            {"yield Step": "m = m + np.log(l)\n            yield Step"},
        ),
        ("no final division", "final division by l", {"O_acc / np.where(l == 0, 1, l)[:, None]": "O_acc"}),
        ("no guard of l", "O is nan in a row that sees no key", {DIVISOR: "l"}),
        ("O not filled", "O is not filled", {"O[rows] =": "O_i ="}),
        ("all ends at a hidden tile", "leave the inner loop alone", {"break": "return"}),
        (
            "yields first",
            "yielded before m, l and O_acc are updated",
            {
                "            S_ij = Q_i": "            yield Step(i, j, m, l, O_acc)\n            S_ij = Q_i",
                "            yield Step(i, j, m, l, O_acc)\n        O": "        O",
            },
        ),
        ("returns", "must yield a Step for each tile", {"yield Step(i, j, m, l, O_acc)": "pass"}),
        ("does not end", "it was stopped", {"yield Step(i": "while True:\n                yield Step(i"}),
        (
            "O_acc not rescaled, own slices",
            "O_acc is not rescaled",
            {},
            """
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = len(Q), len(K)
    for i in range(-(-N_q // B_r)):
        stop = min((i + 1) * B_r, N_q)
        q = Q[i * B_r : stop] * scale
        m, l, acc = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros((len(q), Q.shape[1]))
        for j in range(-(-N_k // B_c)):
            keys = np.arange(j * B_c, min((j + 1) * B_c, N_k))
            past = np.arange(i * B_r, stop) + N_k - N_q
            if causal and keys[0] > past[-1]:
                break
            S = np.einsum("rd,cd->rc", q, K[keys])
            if causal:
                S[keys[None, :] > past[:, None]] = -np.inf
            for r in range(len(q)):
                largest = max(m[r], S[r].max())
                if largest == -np.inf:
                    continue
                p = np.exp(S[r] - largest)
                l[r] = l[r] * np.exp(m[r] - largest) + p.sum()
                acc[r] += p @ V[keys]
                m[r] = largest
            yield Step(i, j, m, l, acc)
        O[i * B_r : stop] = acc / np.maximum(l, 1e-30)[:, None]
""",
        ),
        (
            "Q scaled in place",
            "its argument Q is changed",
            {"Q_i = Q[rows]": "Q_i = Q[rows]\n        Q_i *= scale", " * scale\n": "\n"},
        ),
        (
            "loops the other way round",
            "the loops are the other way round",
            {},
            """
def my_fa2(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    m, l, O_acc = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros(Q.shape)
    for j, cols in enumerate(blocks(len(K), B_c)):
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            new = np.maximum(m[rows], S.max(axis=1))
            shift = np.where(new == -np.inf, 0, new)[:, None]
            alpha, P = np.exp(m[rows, None] - shift), np.exp(S - shift)
            O_acc[rows] = alpha * O_acc[rows] + P @ V[cols]
            l[rows] = alpha[:, 0] * l[rows] + P.sum(axis=1)
            m[rows] = new
            yield Step(i, j, m[rows], l[rows], O_acc[rows])
    O[:] = O_acc / np.where(l == 0, 1, l)[:, None]
""",
        ),
    ],
    "fa1": [
        *IN_BOTH_ORDERS,
        (
            "K_j loaded for each tile",
            "K_j is loaded for each tile",
            {"S_ij = Q[rows] @ K_j.T * scale": "S_ij = Q[rows] @ K[cols].T * scale"},
        ),
        ("l not rescaled", "l is not rescaled", {"l = alpha * l_old": "l = l_old"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"(alpha * l_old)[": "l_old["}),
        ("O not un-normalised", "O is not un-normalised", {"(alpha * l_old)[:, None]": "alpha[:, None]"}),
        ("O times the new l", "un-normalised by the new l", {"(alpha * l_old)[": "(alpha * l)["}),
        ("O stored unnormalised", "O is stored unnormalised, but", {" / np.where(l == 0, 1, l)[:, None]": ""}),
        ("m not stored", "m is not kept", {"m_hbm[rows], l_hbm[rows] = m, l": "l_hbm[rows] = l"}),
        ("l not stored", "l is not kept", {"m_hbm[rows], l_hbm[rows] = m, l": "m_hbm[rows] = m"}),
        ("O not stored", "O is not kept", {"O[rows] = O_acc": "O_i = O_acc"}),
        ("O not initialised", "O is read before it is filled", {"O[:] = 0": "pass"}),
        ("break", "use continue", {"continue": "break"}),
        ("no guard of l", "O is nan in a row that sees no key", {DIVISOR: "l"}),
        (
            "m_old a view that changes",
            "alpha is 1",
            {
                "m = np.maximum(": "m_hbm[rows] = m = np.maximum(",
                "m_hbm[rows], l_hbm[rows] = m, l": "l_hbm[rows] = l",
            },
        ),
        (
            "O divided at the end",
            "O lies unnormalised in memory",
            {},
            """
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    M, L = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m = np.maximum(M[rows], S.max(axis=1))
            safe = np.where(np.isinf(m), 0, m)
            alpha = np.exp(M[rows] - safe)
            P = np.exp(S - safe[:, None])
            L[rows] = alpha * L[rows] + P.sum(axis=1)
            O[rows] = alpha[:, None] * O[rows] + P @ V_j
            M[rows] = m
            yield Step(i, j, m, L[rows], O[rows])
    O /= np.where(L == 0, 1, L)[:, None]
""",
        ),
        (
            "loops the other way round",
            "the loops are the other way round",
            {},
            """
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    for i, rows in enumerate(blocks(len(Q), B_r)):
        m_i, l_i = np.full(rows.stop - rows.start, -np.inf), np.zeros(rows.stop - rows.start)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = Q[rows] @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_i, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            P = np.exp(S - shift[:, None])
            O_acc = (np.exp(m_i - shift) * l_i)[:, None] * O[rows] + P @ V[cols]
            l_i = np.exp(m_i - shift) * l_i + P.sum(axis=1)
            m_i = m
            O[rows] = O_acc / np.where(l_i == 0, 1, l_i)[:, None]
            yield Step(i, j, m_i, l_i, O_acc)
""",
        ),
        (
            "one O for all, not un-normalised",
            "O is not un-normalised",
            {},
            """
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = Q.shape[0], K.shape[0]
    O[...] = 0.0
    state = {i: (np.full(rows.stop - rows.start, -np.inf), 0.0) for i, rows in enumerate(blocks(N_q, B_r))}
    for j, cols in enumerate(blocks(N_k, B_c)):
        k, v = K[cols], V[cols]
        for i, rows in enumerate(blocks(N_q, B_r)):
            if causal and is_hidden(rows, cols, N_k - N_q):
                continue
            m_i, l_i = state[i]
            scores = scale * (Q[rows] @ k.T)
            if causal:
                scores[~is_visible(rows, cols, N_k - N_q)] = -np.inf
            m = np.maximum(m_i, scores.max(-1))
            shift = np.where(m > -np.inf, m, 0.0)
            p, alpha = np.exp(scores - shift[:, None]), np.exp(m_i - shift)
            l = alpha * l_i + p.sum(-1)
            acc = alpha[:, None] * O[rows] + p @ v
            O[rows] = acc / np.where(l > 0, l, 1)[:, None]
            state[i] = m, l
            yield Step(i, j, m, l, acc)
""",
        ),
    ],
    "best_tile": [
        (
            "any tile fits",
            "capacity is not looked at",
            {"cost.sram_bytes(B_r, B_c, d, dtype) <= capacity": "True"},
        ),
        ("KB", "capacity is taken for KB", {"<= capacity": "<= capacity * 1024"}),
        ("exchanged", "B_r and B_c are exchanged", {"return B_r, -minus_B_c": "return -minus_B_c, B_r"}),
        ("fp16 taken for granted", "dtype is not used", {"d, dtype) <=": "d, 'float16') <="}),
        (
            "smallest B_c",
            "the smallest B_c is taken",
            {"-B_c, B_r))": "B_c, B_r))", "B_r, -minus_B_c": "B_r, minus_B_c"},
        ),
        ("largest area", "the largest tile is taken", {"moved, -B_c": "-B_r * B_c, -B_c"}),
        ("causal", "a causal mask is counted", {"dtype=dtype)": "dtype=dtype, causal=True)"}),
        ("FA1", "that of the order FA1", {"fa2_traffic": "fa1_traffic"}),
        ("up to 512", "sizes stop at 512", {"range(4, 11)": "range(4, 10)"}),
        (
            "squares, in a loop of its own",
            "only square tiles",
            {},
            """
def my_best_tile(N, d, capacity, dtype):
    B = 16
    while B < 1024 and cost.sram_bytes(2 * B, 2 * B, d, dtype) <= capacity:
        B *= 2
    return B, B
""",
        ),
    ],
    "skipped_tiles": [
        ("top left", "aligned top left", {"last_row + N_k - N_q": "last_row"}),
        ("off by one", "off by one: a row sees key", {"B_c > last": "B_c >= last"}),
        ("last row off by one", "off by one: the last row of block i", {"N_q) - 1": "N_q)"}),
        ("first row", "not the first", {"min((i + 1) * B_r, N_q) - 1": "i * B_r"}),
        ("last key", "not the last", {"j * B_c > last": "min((j + 1) * B_c, N_k) - 1 > last"}),
        (
            "edge left out",
            "shorter blocks at the edge",
            {"-(-N_q // B_r), -(-N_k // B_c)": "N_q // B_r, N_k // B_c"},
        ),
        ("computed ones", "the tiles that are computed", {"B_c > last": "B_c <= last"}),
        ("j first", "i and j are exchanged", {"(i, j))": "(j, i))"}),
        ("a count", "return a set of tuples", {"return skipped": "return len(skipped)"}),
        (
            "block numbers",
            "block numbers are compared",
            {},
            """
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    T_r, T_c = -(-N_q // B_r), -(-N_k // B_c)
    return {(i, j) for i in range(T_r) for j in range(T_c) if j > i}
""",
        ),
        (
            "a mask, aligned top left",
            "aligned top left",
            {},
            """
def my_skipped_tiles(N_q, N_k, B_r, B_c):
    seen = np.tri(N_q, N_k)
    found = []
    for i, rows in enumerate(blocks(N_q, B_r)):
        for j, cols in enumerate(blocks(N_k, B_c)):
            if not seen[rows, cols].any():
                found.append((i, j))
    return found
""",
        ),
    ],
    "last_tile": [
        ("not masked", "padded keys are counted", {"np.where(np.arange(len(K_j)) < n, S_ij, -np.inf)": "S_ij"}),
        ("zeros", "padded scores become 0", {"-np.inf)": "0)"}),
        ("n too large", "off by one", {"< n": "<= n"}),
        ("upside down", "the mask is upside down", {"< n": ">= n"}),
        (
            "sliced",
            "a part of K_j is loaded",
            {"K_j.T": "K_j[:n].T", "np.arange(len(K_j))": "np.arange(n)", "@ V_j": "@ V_j[:n]"},
        ),
        ("l not rescaled", "l is not rescaled", {"alpha * l": "l"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        ("no scale", "the scale is missing", {" * scale": ""}),
        (
            "weights 0 after exp",
            "m counts padded keys",
            {},
            """
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    S = Q_i @ K_j.T * scale
    new = np.maximum(m, S.max(axis=1))
    P = np.exp(S - new[:, None])
    P[:, n:] = 0
    alpha = np.exp(m - new)
    return new, alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V_j
""",
        ),
        (
            "V_j set to 0",
            "l counts padded keys",
            {},
            """
def my_last_tile(Q_i, K_j, V_j, n, m, l, O_acc, scale):
    V = V_j.copy()
    V[n:] = 0
    S = scale * (Q_i @ K_j.T)
    new = np.maximum(m, S.max(axis=1))
    P, alpha = np.exp(S - new[:, None]), np.exp(m - new)
    return new, alpha * l + P.sum(axis=1), alpha[:, None] * O_acc + P @ V
""",
        ),
    ],
    "finish": [
        ("no guard", "O is nan where l is 0", {DIVISOR: "l"}),
        ("not divided", "O is not divided by l", {"O_acc / divisor[:, None]": "O_acc"}),
        ("log alone", "lse is log(l) alone", {"m + np.log": "np.log"}),
        ("base 2", "base 2", {"np.log(": "np.log2("}),
        ("m alone", "lse is m alone", {"m + np.log(divisor)": "m"}),
        ("eps", "1e-06 is added to l", {DIVISOR: "l + 1e-6"}),
        ("O alone", "expected the 2 values", {", m + np.log(divisor)": ""}),
        (
            "in place",
            "its argument l is changed",
            {"divisor = np.where(l == 0, 1, l)": "l[l == 0] = 1\n    divisor = l"},
        ),
        (
            "row by row, lse 0",
            "lse is 0 in a row that has seen nothing",
            {},
            """
def my_finish(m, l, O_acc):
    O, lse = np.zeros(O_acc.shape), np.zeros(len(m))
    for r in range(len(m)):
        if l[r] > 0:
            O[r], lse[r] = O_acc[r] / l[r], m[r] + np.log(l[r])
    return O, lse
""",
        ),
        ("by columns", "[:, None] is missing", {"divisor[:, None]": "divisor"}),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
