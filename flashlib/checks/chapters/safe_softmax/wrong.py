"""Wrong answers to the exercises of chapter 02."""

from flashlib.checks.mutants import Mutant

SHIFT = "np.where(m == -np.inf, 0, m)"
L = "np.where(l == 0, 1, l)"
MAX = "S.max(axis=1, keepdims=True, initial=-np.inf)"
OF_ROW = "S.max(axis=1, initial=-np.inf)"
OUTPUT = "np.exp(x[j] - m) / l if j < n else 0.0"

MUTANTS = [
    Mutant("safe_softmax", "no maximum", "the maximum is not subtracted", {"np.exp(S - shift)": "np.exp(S)"}),
    Mutant("safe_softmax", "one maximum", "one maximum is taken", {MAX: "S.max(initial=-np.inf)"}),
    Mutant("safe_softmax", "m starts at 0", "m starts at 0", {"initial=-np.inf": "initial=0"}),
    Mutant(
        "safe_softmax",
        "mean",
        "the mean is subtracted",
        {MAX: "S.sum(axis=1, keepdims=True) / max(S.shape[1], 1)"},
    ),
    Mutant(
        "safe_softmax",
        "maximum of columns",
        "down each column: it is one",
        {MAX: "S.max(axis=0, initial=-np.inf)"},
    ),
    Mutant(
        "safe_softmax",
        "one sum",
        "the sum runs over the whole matrix",
        {"P.sum(axis=1, keepdims=True)": "P.sum()"},
    ),
    Mutant("safe_softmax", "no guards", "a wholly masked row is nan", {SHIFT: "m", L: "l"}),
    Mutant("safe_softmax", "no guard of l", "a wholly masked row is nan", {L: "l"}),
    Mutant("safe_softmax", "no division", "not divided by their sum", {f"P / {L}": "P"}),
    Mutant("safe_softmax", "l plus a small number", "slightly off", {L: "(l + 1e-6)"}),
    Mutant("safe_softmax", "maximum of nothing", "it raises for N_k = 0", {", initial=-np.inf": ""}),
    Mutant(
        "safe_softmax",
        "fp64 always",
        "keep the dtype of S",
        {"np.exp(S - shift)": "np.exp(S - shift).astype(float)"},
    ),
    Mutant(
        "safe_softmax", "S changed", "S is changed", {"P = np.exp(S - shift)": "S -= shift\n    P = np.exp(S)"}
    ),
    Mutant("safe_softmax", "nothing returned", "is a return missing", {"return P": "P = P"}),
    Mutant(
        "safe_softmax",
        "no maximum, row by row",
        "the maximum is not subtracted",
        text="""
def my_safe_softmax(S):
    P = np.zeros_like(S)
    for r in range(S.shape[0]):
        visible = S[r] > -np.inf
        if visible.any():
            P[r, visible] = np.exp(S[r, visible])
            P[r] /= P[r].sum()
    return P
""",
    ),
    Mutant(
        "safe_softmax",
        "down the columns",
        "softmax is taken down each column",
        text="""
def my_safe_softmax(S):
    if S.size == 0:
        return S.copy()
    P = np.exp(S - S.max(axis=0))
    return P / P.sum(axis=0)
""",
    ),
    Mutant(
        "safe_softmax",
        "all rows 0 if one is masked",
        "one wholly masked row makes all rows 0",
        text="""
def my_safe_softmax(S):
    m = S.max(axis=-1, initial=-np.inf)
    if np.isinf(m).any():
        return np.zeros_like(S)
    P = np.exp(S.T - m)
    return (P / P.sum(axis=0)).T
""",
    ),
    Mutant(
        "safe_softmax",
        "-inf replaced",
        "a wholly masked row gets equal weights",
        text="""
def my_safe_softmax(S):
    S = np.maximum(S, np.asarray(-1e30, S.dtype))
    P = np.exp(S - S.max(axis=1, keepdims=True, initial=-1e30))
    return P / P.sum(axis=1, keepdims=True)
""",
    ),
    Mutant(
        "safe_softmax",
        "largest absolute value",
        "the largest absolute value is subtracted",
        text="""
def my_safe_softmax(S):
    finite = np.where(np.isfinite(S), S, 0)
    P = np.exp(S - np.abs(finite).max(axis=1, keepdims=True, initial=0))
    return np.nan_to_num(P / P.sum(axis=1, keepdims=True))
""",
    ),
    Mutant("logsumexp", "as written", "as written, log(sum(exp))", {"S - shift[:, None]": "S", "m + ": ""}),
    Mutant("logsumexp", "m starts at 0", "m starts at 0", {"initial=-np.inf": "initial=0"}),
    Mutant("logsumexp", "m not added", "m is not added again", {"m + ": ""}),
    Mutant("logsumexp", "no logarithm", "the logarithm of l is missing", {f"np.log({L})": "l"}),
    Mutant("logsumexp", "m not guarded", "a wholly masked row gives nan", {SHIFT: "m"}),
    Mutant("logsumexp", "0 for a masked row", "gives a finite number", {"return m": "return shift"}),
    Mutant(
        "logsumexp", "one maximum", "one maximum is taken", {OF_ROW: "np.full(len(S), S.max(initial=-np.inf))"}
    ),
    Mutant("logsumexp", "maximum of nothing", "it raises for N_k = 0", {", initial=-np.inf": ""}),
    Mutant("logsumexp", "shape (N_q, 1)", "has shape (1, 1)", {f"m + np.log({L})": "(m + np.log(l))[:, None]"}),
    Mutant("logsumexp", "base 2", "to base 2", {"np.log(": "np.log2("}),
    Mutant("logsumexp", "mean", "the mean of the exponentials", {".sum(axis=1)": ".mean(axis=1)"}),
    Mutant(
        "logsumexp",
        "a small number in the logarithm",
        "gives a finite number",
        text="""
def my_logsumexp(S):
    result = []
    for row in S:
        m = max((s for s in row if s > -np.inf), default=0.0)
        result.append(m + np.log(np.sum(np.exp(row - m)) + 1e-12))
    return np.array(result)
""",
    ),
    Mutant(
        "logsumexp",
        "overflow, by logaddexp of exponentials",
        "as written, log(sum(exp))",
        text="""
def my_logsumexp(S):
    l = np.zeros(len(S))
    for j in range(S.shape[1]):
        l = l + np.exp(S[:, j])
    return np.log(l)
""",
    ),
    Mutant("log_softmax", "logarithm of the weights", "has become 0", {"x - logsumexp(x)": "np.log(safe(x))"}),
    Mutant(
        "log_softmax", "small number", "a small number is added", {"x - logsumexp(x)": "np.log(safe(x) + 1e-9)"}
    ),
    Mutant("log_softmax", "only m", "only the maximum is subtracted", {"logsumexp(x)": "x.max()"}),
    Mutant("log_softmax", "overflow", "overflow as written", {"logsumexp(x)": "np.log(np.exp(x).sum())"}),
    Mutant("log_softmax", "wrong sign", "the sign is turned round", {"x - logsumexp(x)": "logsumexp(x) - x"}),
    Mutant("log_softmax", "divided", "x is divided by lse", {"x - logsumexp(x)": "x / logsumexp(x)"}),
    Mutant("log_softmax", "weights", "the weights are returned", {"x - logsumexp(x)": "safe(x)"}),
    Mutant(
        "log_softmax", "x changed", "x is changed", {"return x - logsumexp(x)": "x -= logsumexp(x)\n    return x"}
    ),
    Mutant(
        "log_softmax",
        "l without its logarithm",
        "without its logarithm",
        text="""
def my_log_softmax(x):
    m = x.max()
    l = sum(np.exp(x_j - m) for x_j in x)
    return np.array([x_j - m - l for x_j in x])
""",
    ),
    Mutant(
        "log_softmax",
        "cut off",
        "cut off at one",
        text="""
def my_log_softmax(x):
    weights = np.exp(x - np.max(x))
    weights /= np.sum(weights)
    return np.log(np.clip(weights, 1e-30, None))
""",
    ),
    Mutant(
        "causal_row_passes",
        "reads 3 N",
        "the hidden scores are read too, 3 N items",
        text="""
def my_causal_row_passes(x, n, p):
    m, l = -np.inf, 0.0
    for j, x_j in enumerate(x):
        m = max(m, x_j) if j < n else m
    for j, x_j in enumerate(x):
        l = l + (np.exp(x_j - m) if j < n else 0)
    for j, x_j in enumerate(x):
        p[j] = np.exp(x_j - m) / l if j < n else 0.0
""",
    ),
    Mutant("causal_row_passes", "output reads all", "in 1 of the passes", {OUTPUT: f"x[j] * 0 + ({OUTPUT})"}),
    Mutant(
        "causal_row_passes",
        "hidden scores visible",
        "the hidden scores count",
        {"m, l =": "n = len(x)\n    m, l ="},
    ),
    Mutant(
        "causal_row_passes", "one too many", "one score too many", {"m, l =": "n = min(n + 1, len(x))\n    m, l ="}
    ),
    Mutant(
        "causal_row_passes", "no maximum", "the maximum is not subtracted", {"m = max(m, x[j])": "m = 0 * x[j]"}
    ),
    Mutant("causal_row_passes", "m starts at 0", "m starts at 0", {"-np.inf, 0.0": "0.0, 0.0"}),
    Mutant(
        "causal_row_passes",
        "p left unwritten",
        "the hidden weights are not written",
        {"range(len(x))": "range(n)"},
    ),
    Mutant("causal_row_passes", "no division", "not divided by their sum", {" / l": ""}),
    Mutant(
        "causal_row_passes",
        "0 / 0 for n = 0",
        "for n = 0 nothing is visible",
        {OUTPUT: "np.exp((x[j] if j < n else -np.inf) - m) / l"},
    ),
    Mutant(
        "causal_row_passes",
        "x[j] read twice in a pass",
        "more than once in a pass",
        {"max(m, x[j])": "x[j] if x[j] > m else m"},
    ),
    Mutant("causal_row_passes", "p returned", "nothing is written to p", {"p[j] = np": "q = np"}),
    Mutant(
        "causal_row_passes",
        "two passes, no maximum",
        "the maximum is not subtracted",
        text="""
def my_causal_row_passes(x, n, p):
    l = sum(np.exp(x[j]) for j in range(n))
    p[:n] = np.exp(x[:n]) / l
    p[n:] = 0
""",
    ),
    Mutant(
        "causal_row_passes",
        "the row kept on chip",
        "none kept on chip",
        text="""
def my_causal_row_passes(x, n, p):
    row = x[:n]
    p[:n] = safe(row)
    p[n:] = 0
""",
    ),
    Mutant(
        "causal_row_passes",
        "p written twice",
        "p is read back",
        text="""
def my_causal_row_passes(x, n, p):
    m = max((x[j] for j in range(n)), default=-np.inf)
    l = sum(np.exp(x[j] - m) for j in range(n))
    for j in range(n):
        p[j] = np.exp(x[j] - m)
    for j in range(n):
        p[j] = p[j] / l
    p[n:] = 0
""",
    ),
    Mutant(
        "causal_row_passes",
        "-inf written to x",
        "x is written to",
        text="""
def my_causal_row_passes(x, n, p):
    x[n:] = -np.inf
    p[:] = safe(x[:])
""",
    ),
    Mutant(
        "causal_row_passes",
        "m starts at x[0]",
        "start m at -inf, not at x[0]",
        text="""
def my_causal_row_passes(x, n, p):
    m, l = x[0], 0.0
    for j in range(1, n):
        m = np.maximum(m, x[j])
    for j in range(n):
        l += np.exp(x[j] - m)
    for j in range(n):
        p[j] = np.exp(x[j] - m) / l
    p[n:] = 0.0
""",
    ),
]
