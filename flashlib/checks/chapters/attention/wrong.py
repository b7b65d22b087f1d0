"""Wrong answers to the exercises of chapter 04."""

from flashlib.checks.mutants import Mutant

BYTES = "2 * H * itemsize"
SQUARE_ROOT = "math.isqrt(capacity // (2 * H * itemsize))"

MUTANTS = [
    Mutant("longest", "S alone", "only one N x N matrix", {BYTES: "H * itemsize"}),
    Mutant("longest", "one head", "heads are not counted", {BYTES: "2 * itemsize"}),
    Mutant("longest", "items for bytes", "itemsize is missing", {BYTES: "2 * H"}),
    Mutant("longest", "traffic for memory", "counted twice, as if moved", {BYTES: "4 * H * itemsize"}),
    Mutant(
        "longest", "no square root", "the square root is missing", {SQUARE_ROOT: "capacity // (2 * H * itemsize)"}
    ),
    Mutant("longest", "halved", "is halved", {SQUARE_ROOT: "capacity // (2 * H * itemsize) // 2"}),
    Mutant(
        "longest", "not rounded", "N is not rounded", {SQUARE_ROOT: "math.sqrt(capacity / (2 * H * itemsize))"}
    ),
    Mutant(
        "longest",
        "rounded up",
        "rounded up",
        {SQUARE_ROOT: "math.ceil(math.sqrt(capacity // (2 * H * itemsize)))"},
    ),
    Mutant("longest", "nearest", "to the nearest", {SQUARE_ROOT: "round((capacity / (2 * H * itemsize)) ** 0.5)"}),
    Mutant(
        "longest", "a float", "returns the float", {SQUARE_ROOT: "(capacity / (2 * H * itemsize)) ** 0.5 // 1"}
    ),
    Mutant(
        "longest",
        "search that wants room left",
        "one too small",
        text="""
def my_longest(capacity, H, itemsize):
    low, high = 0, capacity
    while low < high:
        N = (low + high + 1) // 2
        if H * (N * N + N * N) * itemsize < capacity:
            low = N
        else:
            high = N - 1
    return low
""",
    ),
    Mutant(
        "longest",
        "search that goes one too far",
        "one too large",
        text="""
def my_longest(capacity, H, itemsize):
    high = 1
    while 2 * H * itemsize * high * high <= capacity:
        high *= 2
    low = high // 2
    while high - low > 1:
        N = (low + high) // 2
        low, high = (N, high) if 2 * H * itemsize * N * N <= capacity else (low, N)
    return high
""",
    ),
    Mutant("window", "top left", "aligned top left", {" + N_k - N_q": ""}),
    Mutant("window", "wrong sign", "wrong sign", {"+ N_k - N_q": "+ N_q - N_k"}),
    Mutant("window", "w + 1 keys", "w + 1 keys", {"c > position - w": "c >= position - w"}),
    Mutant("window", "w - 1 keys", "w - 1 keys", {"c > position - w": "c > position - w + 1"}),
    Mutant("window", "no lower end", "no lower end", {" & (c > position - w)": ""}),
    Mutant("window", "no upper end", "later keys are seen: c is at most", {"(c <= position) & ": ""}),
    Mutant("window", "not its own", "does not see its own", {"c <= position": "c < position"}),
    Mutant("window", "or", "joined by & and not by |", {") & (": ") | ("}),
    Mutant(
        "window", "upside down", "the wrong way round", {"return ": "return ~", "(c <=": "((c <=", "- w)": "- w))"}
    ),
    Mutant(
        "window", "both sides", "on either side", {"(c <= position) & (c > position - w)": "abs(c - position) < w"}
    ),
    Mutant(
        "window",
        "later keys",
        "begins at the position",
        {"c <= position": "c >= position", "c > position - w": "c < position + w"},
    ),
    Mutant("window", "numbers", "made of numbers", {"(c <= position) &": "1 * (c <= position) *"}),
    Mutant(
        "window",
        "transposed",
        "rows and columns are exchanged",
        {"position - w)": "position - w)).T", "return (": "return (("},
    ),
    Mutant(
        "window",
        "one further left",
        "one key further left",
        {"c <= position": "c < position", "c > position - w": "c >= position - w"},
    ),
    Mutant(
        "window",
        "two triangles, top left",
        "aligned top left",
        text="""
def my_window(N_q, N_k, w):
    lower = np.tri(N_q, N_k, dtype=bool)
    return lower & ~np.tri(N_q, N_k, k=-w, dtype=bool)
""",
    ),
    Mutant(
        "window",
        "slices from below 0",
        "a slice that begins below 0",
        text="""
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=bool)
    for r in range(N_q):
        end = N_k - N_q + r + 1
        mask[r, end - w : end] = True
    return mask
""",
    ),
    Mutant(
        "window",
        "slices that end below 0",
        "a slice that ends below 0",
        text="""
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=bool)
    for r in range(N_q):
        end = N_k - N_q + r + 1
        mask[r, max(0, end - w) : end] = True
    return mask
""",
    ),
    Mutant(
        "window",
        "a loop, one key too many",
        "w + 1 keys",
        text="""
def my_window(N_q, N_k, w):
    seen = [[0 <= r + N_k - N_q - c <= w for c in range(N_k)] for r in range(N_q)]
    return np.array(seen)
""",
    ),
]

SCORES = "S = Q @ K.T / Q.shape[1] ** 0.5"
HIDE = "S = np.where(seen, S, -np.inf)"
MAX, SUM = "m = S.max(axis=1, keepdims=True)", "l = P.sum(axis=1, keepdims=True)"
DIVISOR = "np.where(l == 0, 1, l)"
EXP = "P = np.exp(S - np.where(m == -np.inf, 0, m))"
PAST = "k=len(K) - len(Q)"

CAUSAL = [
    ("no mask", "the causal mask is missing", {HIDE: "pass"}),
    ("top left", "aligned top left", {f"{PAST}, ": ""}),
    ("wrong sign", "shifted the wrong way", {PAST: "k=len(Q) - len(K)"}),
    ("strict", "does not see its own position", {PAST: "k=len(K) - len(Q) - 1"}),
    ("one key too many", "one key too many", {PAST: "k=len(K) - len(Q) + 1"}),
    ("upside down", "the wrong way round", {HIDE: "S = np.where(seen, -np.inf, S)"}),
    ("hidden scores 0", "hidden scores become 0", {HIDE: "S = S * seen"}),
    ("-1e6 added", "takes the hidden scores", {HIDE: "S = S + np.where(seen, 0, -1e6)"}),
    ("-1e9 added", "takes the hidden scores", {HIDE: "S = S - 1e9 * ~seen"}),
    ("-1e6 put in", "takes the mean of all values", {HIDE: "S = np.where(seen, S, -1e6)"}),
    ("smallest number put in", "mean of all values", {HIDE: "S = np.where(seen, S, np.finfo(S.dtype).min)"}),
    ("mask times -inf", "0 times -inf", {HIDE: "S = S + ~seen * -np.inf"}),
    ("mask after softmax", "after the softmax", {HIDE: "pass", SUM: SUM + "\n    P = P * seen"}),
    ("mask before the sum", "maximum counts hidden scores", {HIDE: "pass", EXP: EXP + " * seen"}),
    ("no scale", "the scale is missing", {" / Q.shape[1] ** 0.5": ""}),
    ("scale 1 / d", "the scale is 1 / d", {" ** 0.5": ""}),
    ("times sqrt(d)", "multiplied by sqrt(d)", {"/ Q.shape[1]": "* Q.shape[1]"}),
    ("scale of N_q", "the scale is made of N_q", {"Q.shape[1]": "Q.shape[0]"}),
    ("no maximum", "the maximum is not subtracted", {MAX: "m = np.zeros((len(Q), 1))"}),
    ("one maximum", "one maximum is taken", {MAX: "m = S.max()"}),
    ("maximum of axis 0", "the maximum is taken over axis 0", {MAX: "m = S.max(axis=0, keepdims=True)"}),
    (
        "sum over axis 0",
        "the sum l is taken over axis 0",
        {SUM: "l = P.sum(axis=0, keepdims=True)", f"P @ V / {DIVISOR}": f"P / {DIVISOR} @ V"},
    ),
    (
        "softmax over axis 0",
        "softmax is taken over axis 0",
        {MAX: "m = S.max(axis=0)", SUM: "l = P.sum(axis=0)", f"P @ V / {DIVISOR}": f"P / {DIVISOR} @ V"},
    ),
    ("sum of all", "the sum of all rows", {SUM: "l = P.sum()"}),
    ("no division", "the division by l is missing", {f" / {DIVISOR}": ""}),
    ("no guards", "nan for rows that see no key", {DIVISOR: "l", "np.where(m == -np.inf, 0, m)": "m"}),
    ("no guard of l", "nan for rows that see no key", {DIVISOR: "l"}),
    ("no scale, no guard", "the scale is missing", {" / Q.shape[1] ** 0.5": "", DIVISOR: "l"}),
    ("K for V", "K is averaged", {"P @ V": "P @ K"}),
    ("V for K", "made with V", {"Q @ K.T": "Q @ V.T"}),
    ("K and V exchanged", "K and V are exchanged", {"Q @ K.T": "Q @ V.T", "P @ V": "P @ K"}),
    ("Q scaled in place", "its argument Q is changed", {SCORES: "Q /= Q.shape[1] ** 0.5\n    S = Q @ K.T"}),
    ("fp64", "np.sqrt(d) makes all fp64", {"Q.shape[1] ** 0.5": "np.sqrt(Q.shape[1])"}),
    ("returns P", "has shape", {f"P @ V / {DIVISOR}": f"P / {DIVISOR}"}),
    ("no return", "returns nothing", {"return P": "O = P"}),
]
MUTANTS += [Mutant("causal_attention", *mutant) for mutant in CAUSAL]

MUTANTS += [
    Mutant(
        "causal_attention",
        "row by row, top left",
        "aligned top left",
        text="""
def my_causal_attention(Q, K, V):
    O = np.zeros_like(Q)
    for r in range(len(Q)):
        x = K[: r + 1] @ Q[r] / Q.shape[1] ** 0.5
        p = np.exp(x - x.max())
        O[r] = p @ V[: r + 1] / p.sum()
    return O
""",
    ),
    Mutant(
        "causal_attention",
        "row by row, no maximum",
        "the maximum is not subtracted",
        text="""
def my_causal_attention(Q, K, V):
    O = np.zeros_like(Q)
    for r in range(len(Q)):
        n = max(0, r + 1 + len(K) - len(Q))
        p = np.exp(K[:n] @ Q[r] * Q.shape[1] ** -0.5)
        if n:
            O[r] = (p[:, None] * V[:n]).sum(axis=0) / p.sum()
    return O
""",
    ),
    Mutant(
        "causal_attention",
        "row by row, a slice from the end",
        "n below 0 counts from the end",
        text="""
def my_causal_attention(Q, K, V):
    O = np.zeros_like(Q)
    past = len(K) - len(Q)
    for r, q in enumerate(Q):
        keys, values = K[: past + r + 1], V[: past + r + 1]
        if len(keys):
            x = keys @ q / len(q) ** 0.5
            p = np.exp(x - x.max())
            O[r] = p / p.sum() @ values
    return O
""",
    ),
    Mutant(
        "causal_attention",
        "triu, as for a square S",
        "aligned top left",
        text="""
def my_causal_attention(Q, K, V):
    S = np.einsum("rd,cd->rc", Q, K) / Q.shape[1] ** 0.5
    S[np.triu(np.ones_like(S, dtype=bool), 1)] = -np.inf
    P = np.exp(S - S.max(axis=1)[:, None])
    return P @ V / P.sum(axis=1)[:, None]
""",
    ),
]
