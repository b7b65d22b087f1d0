"""Wrong answers to the exercises of chapter 10."""

from flashlib.checks.mutants import Mutant

MASK = 'S = tl.where(visible, S, -float("inf"))'
GUARD = 'tl.where(m == -float("inf"), 0.0, m)'
IEEE = ', input_precision="ieee"'

WRONG = {
    "inner_loop": [
        ("no scale", "the scale is missing", {" * scale  #": "  #"}),
        ("visible not used", "visible is not used", {MASK: "pass"}),
        ("hidden scores 0", "hidden scores become 0", {MASK: "S = tl.where(visible, S, 0.0)"}),
        ("hidden scores -1e6", "-1e+06 takes the place", {MASK: "S = tl.where(visible, S, -1e6)"}),
        ("visible upside down", "upside down", {MASK: 'S = tl.where(visible, -float("inf"), S)'}),
        (
            "weights masked after m",
            "m counts hidden scores",
            {MASK: "pass", "tl.exp(S - shift[:, None])": "tl.where(visible, tl.exp(S - shift[:, None]), 0.0)"},
        ),
        ("l not rescaled", "l is not rescaled", {"alpha * l +": "l +"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        (
            "nothing rescaled",
            "neither l nor O_acc",
            {"alpha * l": "l", "alpha[:, None] * O_acc": "O_acc"},
        ),
        ("alpha upside down", "alpha is upside down", {"tl.exp(m_old - shift)": "tl.exp(m - m_old)"}),
        (
            "m of the tile alone",
            "of this tile alone",
            {"tl.maximum(m_old, tl.max(S, axis=1))": "tl.max(S, axis=1)"},
        ),
        ("no maximum", "the maximum is not subtracted", {"tl.exp(S - shift[:, None])": "tl.exp(S)"}),
        ("no guard", "has seen only -inf gives nan", {GUARD: "m"}),
        ("maximum of the columns", "the maximum is taken over axis 0", {"tl.max(S, axis=1)": "tl.max(S, axis=0)"}),
        ("k not transposed", "k is not transposed", {"k.T": "k"}),
        (
            "divided in each tile",
            "divided by l in every step",
            {"return m, l, O_acc": "return m, l, O_acc / l[:, None]"},
        ),
        ("base 2", "base 2", {"tl.exp(S -": "tl.exp2(S -", "tl.exp(m_old": "tl.exp2(m_old"}),
        ("P in fp32", "P is fp32 and v is not", {"P.to(v.dtype)": "P"}),
        ("O_acc in 16 bits", "in 16 bits", {"return m, l, O_acc": "return m, l, O_acc.to(v.dtype)"}),
        ("tf32 in the scores", "rounds fp32 to tf32", {f"k.T{IEEE}": "k.T"}),
        ("tf32 in O_acc", "rounds fp32 to tf32", {f"v{IEEE}": "v"}),
        ("returns nothing", "returns nothing", {"    return m, l, O_acc": ""}),
        ("no m", "returns 2 values", {"return m, l, O_acc": "return l, O_acc"}),
        ("not compiled", "marked @triton.jit", {"@triton.jit\n": ""}),
        (
            "l and O_acc added to, not rescaled",
            "neither l nor O_acc",
            {},
            """
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    neg = float("-inf")
    logits = tl.dot(q, tl.trans(k), input_precision="ieee") * scale + tl.where(visible, 0.0, neg)
    m = tl.maximum(m, tl.max(logits, 1))
    p = tl.where(visible, tl.exp(logits - m[:, None]), 0.0)
    return m, l + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc=O_acc, input_precision="ieee")
""",
        ),
        (
            "the new tile rescaled too",
            "the new tile is multiplied by alpha too",
            {},
            """
@triton.jit
def my_inner_loop(q, k, v, m, l, O_acc, visible, scale):
    qk = tl.where(visible, scale * tl.dot(q, k.T, input_precision="ieee"), float("-inf"))
    m_new = tl.maximum(m, tl.max(qk, 1))
    safe = tl.where(m_new > float("-inf"), m_new, 0.0)
    p = tl.exp(qk - safe[:, None])
    alpha = tl.exp(m - safe)
    l = (l + tl.sum(p, 1)) * alpha
    O_acc = (O_acc + tl.dot(p.to(v.dtype), v, input_precision="ieee")) * alpha[:, None]
    return m_new, l, O_acc
""",
        ),
    ],
    "causal_split": [
        ("top left", "aligned top left", {"N_k - N_q  #": "0  #"}),
        ("past with the wrong sign", "past has the wrong sign", {"N_k - N_q  #": "N_q - N_k  #"}),
        ("full one too small", "full is too small", {"past + 1, N_k": "past, N_k"}),
        ("full one too large", "full is too large", {"past + 1, N_k": "past + 2, N_k"}),
        (
            "full of the last row",
            "goes through cut tiles",
            {"tl.minimum(i * B_R + past + 1,": "tl.minimum((i + 1) * B_R + past,"},
        ),
        ("full not rounded", "full is not rounded down", {" // B_C * B_C": ""}),
        (
            "full rounded up",
            "full is rounded up",
            {"tl.maximum(seen_by_all, 0) // B_C": "tl.cdiv(tl.maximum(seen_by_all, 0), B_C)"},
        ),
        ("full in tiles", "full counts tiles", {" // B_C * B_C": " // B_C"}),
        ("full negative", "full is negative", {"tl.maximum(seen_by_all, 0)": "seen_by_all"}),
        (
            "end of the first row",
            "ends at what the first row sees",
            {"tl.minimum((i + 1) * B_R + past,": "tl.minimum(i * B_R + past + 1,"},
        ),
        ("end one too small", "end is too small by one", {"(i + 1) * B_R + past,": "(i + 1) * B_R + past - 1,"}),
        ("end one too large", "end is too large by one", {"(i + 1) * B_R + past,": "(i + 1) * B_R + past + 1,"}),
        (
            "end not clipped",
            "end is not clipped",
            {"tl.minimum((i + 1) * B_R + past, N_k)": "(i + 1) * B_R + past"},
        ),
        (
            "end rounded down",
            "end is rounded down",
            {"return full, seen_by_any": "return full, seen_by_any // B_C * B_C"},
        ),
        ("no tile skipped", "that no row sees are computed", {"return full, seen_by_any": "return full, N_k"}),
        ("exchanged", "full and end are exchanged", {"return full, seen_by_any": "return seen_by_any, full"}),
        ("full alone", "returns nothing", {"    return full, seen_by_any": "    return"}),
        (
            "one cut tile",
            "one cut tile is taken for granted",
            {},
            """
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    first_row = i * B_R
    n_full = max(first_row + (N_k - N_q) + 1, 0) // B_C
    return n_full * B_C, (n_full + 1) * B_C
""",
        ),
        (
            "rounded up and not clipped",
            "end is not clipped",
            {},
            """
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    lo = i * B_R + N_k - N_q
    hi = lo + B_R
    full = tl.where(lo >= 0, (lo + 1) // B_C, 0) * B_C
    return full, tl.where(hi > 0, tl.cdiv(hi, B_C), 0) * B_C
""",
        ),
        (
            "everything masked",
            "full is always 0",
            {},
            """
@triton.jit
def my_causal_split(i, N_q, N_k, B_R: tl.constexpr, B_C: tl.constexpr):
    last = i * B_R + B_R - 1 + N_k - N_q
    return 0, tl.minimum(last + 1, N_k)
""",
        ),
    ],
    "padded": [
        ("scale of the padded d", "that of the padded d", {", scale=1 / math.sqrt(d)": ""}),
        ("scale 1", "the scale is 1:", {"1 / math.sqrt(d)": "1.0"}),
        ("scale 1 / d", "the scale is 1 / d", {"1 / math.sqrt(d)": "1 / d"}),
        ("not cut", "the padded columns are still there", {"[..., :d]": ""}),
        ("zeros in front", "the columns of O are not the first d", {"(0, padded - d)": "(padded - d, 0)"}),
        ("O and lse", "return O alone", {".O[..., :d]": ""}),
        (
            "powers of two below 16",
            "d is 1; the kernel takes",
            {"max(16, triton.next_power_of_2(d))": "triton.next_power_of_2(d)"},
        ),
        ("multiples of 16", "the kernel takes", {"max(16, triton.next_power_of_2(d))": "triton.cdiv(d, 16) * 16"}),
        ("V not padded", "raises", {"Q, K, V = (": "Q, K, _ = ("}),
        (
            "in fp32",
            "O has the dtype",
            {"Q, K, V = (torch.nn.functional.pad(X,": "Q, K, V = (torch.nn.functional.pad(X.float(),"},
        ),
        ("nothing returned", "returns nothing", {"return r5": "r5"}),
        (
            "Q scaled in place, and the default scale",
            "the input Q is written to",
            {},
            """
def my_padded(Q, K, V):
    d = Q.shape[-1]
    n = next(n for n in (16, 32, 64, 128) if n >= d)
    Q *= math.sqrt(n / d)
    big = [torch.zeros(*X.shape[:-1], n, dtype=X.dtype, device=X.device) for X in (Q, K, V)]
    for new, X in zip(big, (Q, K, V)):
        new[..., :d] = X
    return r5_causal.attention(*big).O[..., :d]
""",
        ),
        (
            "always 128, the default scale",
            "that of the padded d",
            {},
            """
def my_padded(Q, K, V):
    d = Q.shape[-1]
    zeros = lambda X: torch.cat([X, X.new_zeros(*X.shape[:3], 128 - d)], dim=-1)
    return r5_causal.attention(zeros(Q), zeros(K), zeros(V)).O.narrow(-1, 0, d)
""",
        ),
    ],
    "alibi": [
        ("no penalty", "the penalty is missing", {"S - slope * distance": "S"}),
        ("wrong sign", "the penalty has the wrong sign", {"S - slope * distance": "S + slope * distance"}),
        ("scaled penalty", "multiplied by scale too", {"S - slope * distance": "S - scale * slope * distance"}),
        ("slope forgotten", "slope is not used", {"slope * distance": "distance"}),
        (
            "distance within the tile",
            "within the tile",
            {"S - slope * distance": "S - slope * (offs_m[:, None] - tl.arange(0, B_C)[None, :])"},
        ),
        (
            "no causal mask",
            "the causal mask is missing",
            {"(distance >= 0) & (offs_n < N_k)[None, :]": "(offs_n < N_k)[None, :]"},
        ),
        ("strict mask", "its own key too", {"distance >= 0": "distance > 0"}),
        ("top left", "aligned top left", {"distance >= 0": "offs_n[None, :] <= offs_m[:, None]"}),
        ("no scale", "the scale is missing", {" * scale  #": "  #"}),
        ("l not rescaled", "l is not rescaled", {"alpha * l +": "l +"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        ("no division", "the final division by l is missing", {" / tl.where(l == 0.0, 1.0, l)[:, None]": ""}),
        ("no guard of l", "O is nan in a row that sees no key", {"tl.where(l == 0.0, 1.0, l)": "l"}),
        ("no guard of m", "O is nan in a row that sees no key", {GUARD: "m"}),
        (
            "strides ignored",
            "the strides are not used",
            {"    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()\n": ""},
        ),
        (
            "K and V of head 0",
            "all heads read the first",
            {"cols = (head * N_k + offs_n[:, None])": "cols = offs_n[:, None]"},
        ),
        ("O not returned", "returns nothing", {"    return O": ""}),
        (
            "PyTorch, a matrix of penalties, causal top-left",
            "aligned top left",
            {},
            """
def my_alibi(Q, K, V, slope):
    N_q, N_k = Q.shape[2], K.shape[2]
    r = torch.arange(N_q, device=Q.device)[:, None]
    c = torch.arange(N_k, device=Q.device)[None, :]
    S = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1]) - slope * (r - c)
    P = S.masked_fill(c > r, -torch.inf).softmax(dim=-1).nan_to_num()
    return P @ V
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
