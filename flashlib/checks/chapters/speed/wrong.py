"""Wrong answers to the exercises of chapter 12."""

from flashlib.checks.mutants import Mutant

GUARD = 'tl.where(m == -float("inf"), 0.0, m)'
IEEE = ', input_precision="ieee"'
TAIL_SCORES = 'S = tl.where(inside[None, :], S, -float("inf"))'
TAIL_IF = "    if full < N_k:\n        offs_n = full + tl.arange(0, B_C)"
TAIL_K = "k = tl.load(K_ptr + cols, mask=inside[:, None], other=0.0)"
TAIL_V = "v = tl.load(V_ptr + cols, mask=inside[:, None], other=0.0)"

WRONG = {
    "tflops": [
        ("2 for 4", "there are two products", {"4 * B": "2 * B"}),
        ("causal not halved", "a causal mask counts as half: divide", {"        FLOP /= 2": "        pass"}),
        ("causal exact", "not N (N + 1) / 2", {"FLOP /= 2": "FLOP *= (N + 1) / (2 * N)"}),
        ("causal doubled", "as half, not double", {"FLOP /= 2": "FLOP *= 2"}),
        ("always halved", "and not if it is not", {"    if causal:\n        FLOP": "    FLOP"}),
        ("ms as seconds", "ms is taken as seconds", {"(ms * 1e-3)": "ms"}),
        ("ms as microseconds", "the result is 1000 times too large", {"1e-3": "1e-6"}),
        ("ms times 1000", "ms is multiplied by 1000", {"1e-3": "1e3"}),
        ("GFLOP", "the result is 1000 times too large", {"1e12": "1e9"}),
        ("FLOP", "10^12 is not in it", {" / 1e12": ""}),
        ("2^40", "a tera is 10^12", {"1e12": "2**40"}),
        ("no time", "the number of TFLOP", {" / (ms * 1e-3)": ""}),
        ("N once", "S has N^2 scores", {"N**2": "N"}),
        ("d squared", "N comes in twice and d once", {"N**2 * d": "N * d**2"}),
        ("no heads", "the heads are left out", {"B * H * ": ""}),
        ("no H", "H is left out", {"B * H * ": "B * "}),
        ("no B", "B is left out", {"B * H * ": "H * "}),
        ("nothing returned", "returns nothing", {"return ": ""}),
        (
            "multiplications alone, another style",
            "there are two products",
            {},
            """
def my_tflops(B, H, N, d, causal, ms):
    share = 0.5 if causal else 1.0
    products = B * H * (N * N * d + N * N * d)
    return products * share / ms / 1e9
""",
        ),
        (
            "softmax counted",
            "the exponentials are counted",
            {},
            """
def my_tflops(B, H, N, d, causal, ms):
    matmul = 2 * N * N * d * 2
    softmax = 5 * N * N
    total = (matmul + softmax) * B * H * (1 - causal / 2)
    return total * 1e-9 / ms
""",
        ),
    ],
    "base_2": [
        ("exp", "tl.exp takes powers of e", {"tl.exp2(m_old": "tl.exp(m_old", "tl.exp2(S": "tl.exp(S"}),
        ("exp in P", "so tl.exp2 in P too", {"tl.exp2(S": "tl.exp(S"}),
        ("exp in alpha", "so tl.exp2 in alpha too", {"tl.exp2(m_old": "tl.exp(m_old"}),
        (
            "no scale",
            "the scores are not multiplied by scale_log2e",
            {"tl.max(S, axis=1) * scale_log2e": "tl.max(S, axis=1)", "S * scale_log2e -": "S -"},
        ),
        (
            "scaled twice",
            "by scale_log2e twice",
            {"    m_old = m\n": "    m_old = m\n    S = S * (scale_log2e * scale_log2e) / scale_log2e\n"},
        ),
        ("m not scaled", "m is not multiplied by scale_log2e", {"axis=1) * scale_log2e": "axis=1)"}),
        ("P not scaled", "P is made of scores that are not scaled", {"S * scale_log2e -": "S -"}),
        (
            "difference scaled",
            "m is scaled twice in P",
            {"S * scale_log2e - shift[:, None]": "(S - shift[:, None]) * scale_log2e"},
        ),
        (
            "scaled before and in P",
            "P is scaled twice",
            {
                "    m_old = m\n": "    m_old = m\n    S = S * scale_log2e\n",
                "tl.max(S, axis=1) * scale_log2e": "tl.max(S, axis=1)",
            },
        ),
        (
            "the old m scaled again",
            "the old m is scaled again",
            {"tl.max(S, axis=1) * scale_log2e)": "tl.max(S, axis=1)) * scale_log2e"},
        ),
        (
            "alpha scaled twice",
            "alpha is scaled twice",
            {"tl.exp2(m_old - shift)": "tl.exp2((m_old - shift) * scale_log2e)"},
        ),
        (
            "log2(e) again",
            "log2(e) is multiplied in again",
            {"    m_old = m\n": "    m_old = m\n    S = S * 1.4426950408889634\n"},
        ),
        (
            "log2(e) for scale_log2e",
            "scale_log2e is not used",
            {"    m_old = m\n": "    m_old = m\n    scale_log2e = 1.4426950408889634\n"},
        ),
        ("m in base e", "m is returned in base e", {"return m,": "return m * 0.6931471805599453,"}),
        ("l not rescaled", "l is not rescaled", {"alpha * l +": "l +"}),
        ("O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
        ("alpha upside down", "alpha is upside down", {"m_old - shift)": "m - m_old)"}),
        (
            "m of the tile alone",
            "of this tile alone",
            {"tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)": "tl.max(S, axis=1) * scale_log2e"},
        ),
        ("no maximum", "the maximum is not subtracted", {" - shift[:, None])": ")"}),
        ("no guard", "has seen only -inf gives nan", {GUARD: "m"}),
        (
            "divided in each tile",
            "divided by l in every step",
            {"return m, l, O_acc": "return m, l, O_acc / l[:, None]"},
        ),
        ("P in fp32", "P is fp32 and v is not", {"P.to(v.dtype)": "P"}),
        ("O_acc in 16 bits", "in 16 bits", {"return m, l, O_acc": "return m, l, O_acc.to(v.dtype)"}),
        ("tf32", "rounds fp32 to tf32", {IEEE: ""}),
        ("returns nothing", "returns nothing", {"    return m, l, O_acc": ""}),
        ("not compiled", "marked @triton.jit", {"@triton.jit\n": ""}),
        (
            "m kept unscaled, all else right",
            "m is returned before it is scaled",
            {},
            """
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    m_new = tl.maximum(m, tl.max(S, 1))
    safe = tl.where(m_new > float("-inf"), m_new, 0.0)
    alpha = tl.math.exp2((m - safe) * scale_log2e)
    p = tl.math.exp2((S - safe[:, None]) * scale_log2e)
    acc = tl.dot(p.to(v.dtype), v, acc=O_acc * alpha[:, None], input_precision="ieee")
    return m_new, l * alpha + tl.sum(p, 1), acc
""",
        ),
        (
            "l never rescaled, another style",
            "l is not rescaled",
            {},
            """
@triton.jit
def my_base_2(S, m, l, O_acc, v, scale_log2e):
    S *= scale_log2e
    m_new = tl.maximum(m, tl.max(S, 1))
    hidden = m_new == float("-inf")
    p = tl.where(hidden[:, None], 0.0, tl.exp2(S - m_new[:, None]))
    O_acc *= tl.where(hidden, 1.0, tl.exp2(m - m_new))[:, None]
    O_acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return m_new, l + tl.sum(p, 1), O_acc
""",
        ),
    ],
    "lse_from_base_2": [
        ("in base 2", "that is lse in base 2", {" * math.log(2)": ""}),
        (
            "log(l) to m_2",
            "m_2 is in base 2, and log(l) is not",
            {"np.log2(l)": "np.log(l)", " * math.log(2)": ""},
        ),
        ("log(l) times ln 2", "is multiplied by ln 2 again", {"np.log2(l)": "np.log(l)"}),
        (
            "log2(l) not converted",
            "log2(l) is in base 2",
            {"m_2 +": "m_2 * math.log(2) +", "lse2 * math.log(2)": "lse2"},
        ),
        ("times log2(e)", "the wrong way round", {"* math.log(2)": "* math.log2(math.e)"}),
        ("l left out", "l is left out: that is m", {"m_2 + np.log2(l)": "m_2"}),
        ("l added", "l is added, not its logarithm", {"np.log2(l)": "l"}),
        ("subtracted", "log(l) is subtracted", {"m_2 + np": "m_2 - np"}),
        ("base 10", "base 10", {"m_2 + np.log2(l)": "m_2 + np.log10(l) / math.log(2)"}),
        ("multiplied", "the two are multiplied", {"m_2 + np.log2(l)": "m_2 * np.log2(l)"}),
        ("math.log", "math.log is an error", {"np.log2(l)": "np.array([math.log2(x) for x in l])"}),
        (
            "0 in masked rows",
            "sees no key is 0.0",
            {"return lse2 * math.log(2)": "return np.where(l > 0, lse2 * math.log(2), 0.0)"},
        ),
        ("nan in masked rows", "sees no key is nan", {"np.log2(l)": "np.log2(l) + 0 * m_2"}),
        ("nothing returned", "returns nothing", {"return ": ""}),
        (
            "m_2 changed",
            "its argument m_2 is changed",
            {"lse2 = m_2 + np.log2(l)": "m_2 += np.log2(l)\n        lse2 = m_2"},
        ),
        (
            "powers made, one by one",
            "2^m_2 is made",
            {},
            """
def my_lse_from_base_2(m_2, l):
    lse = np.empty_like(l)
    for r in range(len(l)):
        lse[r] = np.log(l[r] * np.float64(2) ** m_2[r])
    return lse
""",
        ),
        (
            "a large number in masked rows",
            "is a large number",
            {},
            """
def my_lse_from_base_2(m_2, l):
    seen = l != 0
    out = np.full(len(l), -1e30)
    out[seen] = m_2[seen] / np.log2(np.e) + np.log(l[seen])
    return out
""",
        ),
    ],
    "tail": [
        ("keys past the end counted", "keys past the end count: other=0.0", {TAIL_SCORES: "pass"}),
        ("V not masked", "V is read past its end", {TAIL_V: "v = tl.load(V_ptr + cols)"}),
        ("K not masked", "K or V is read past its end", {TAIL_K: "k = tl.load(K_ptr + cols)"}),
        (
            "K and scores not masked",
            "nan comes from past the end",
            {TAIL_K: "k = tl.load(K_ptr + cols)", TAIL_SCORES: "pass"},
        ),
        ("nothing masked", "nan comes from past the end", {"full = N_k // B_C * B_C": "full = N_k"}),
        ("rounded up", "nan comes from past the end", {"N_k // B_C * B_C": "tl.cdiv(N_k, B_C) * B_C"}),
        ("no tail", "the tail is missing", {"if full < N_k:": "if full > N_k:"}),
        ("tail alone", "the whole tiles are missing", {"range(0, full, B_C)": "range(0, 0, B_C)"}),
        (
            "one key too many",
            "one key too many",
            {TAIL_SCORES: 'S = tl.where((offs_n <= N_k)[None, :], S, -float("inf"))'},
        ),
        ("one key too few", "hides the last key", {"inside = offs_n < N_k": "inside = offs_n < N_k - 1"}),
        (
            "upside down",
            "the mask is upside down",
            {TAIL_SCORES: 'S = tl.where(inside[None, :], -float("inf"), S)'},
        ),
        (
            "loop from 0",
            "counted twice",
            {TAIL_IF: "    for start in range(0, N_k, B_C):\n        offs_n = start + tl.arange(0, B_C)"},
        ),
        (
            "the last B_C keys",
            "counted twice",
            {"offs_n = full +": "offs_n = tl.maximum(N_k - B_C, 0) +"},
        ),
        ("full in tiles", "whole tiles are counted, not keys", {"N_k // B_C * B_C": "N_k // B_C"}),
        ("tail always", "there may be no key at all", {"if full < N_k:": "if full <= N_k:"}),
        (
            "offs_n from 0 in the tail",
            "is that of the first tile",
            {"offs_n = full +": "offs_n ="},
        ),
        (
            "scaled before the update",
            "it must not be scaled before",
            {
                "# (B_R, B_C)\n": "* scale_log2e\n",
                TAIL_SCORES: 'S = tl.where(inside[None, :], S * scale_log2e, -float("inf"))',
            },
        ),
        (
            "tail anew",
            "the tail starts anew",
            {"if full < N_k:": 'if full < N_k:\n        m, l, O_acc = m - float("inf"), l * 0, O_acc * 0'},
        ),
        ("tf32", "rounds fp32 to tf32", {f"k.T{IEEE})  #": "k.T)  #"}),
        ("returns l alone", "returns 2 values", {"return m, l, O_acc": "return l, O_acc"}),
        (
            "every tile masked",
            "every tile is masked",
            {},
            """
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + tl.arange(0, D)[None, :]
        k = tl.load(K_ptr + cols, mask=(offs_n < N_k)[:, None], other=0.0)
        v = tl.load(V_ptr + cols, mask=(offs_n < N_k)[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") + tl.where(offs_n < N_k, 0.0, float("-inf"))[None, :]
        m, l, O_acc = update(S, m, l, O_acc, v, scale_log2e)
    return m, l, O_acc
""",
        ),
        (
            "zeros counted, in a second loop",
            "keys past the end count: other=0.0",
            {},
            """
@triton.jit
def my_tail(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, update, D: tl.constexpr, B_C: tl.constexpr):
    n_full = N_k // B_C
    lanes = tl.arange(0, B_C)
    tile = lanes[:, None] * D + tl.arange(0, D)[None, :]
    for j in range(n_full):
        k = tl.load(K_ptr + j * B_C * D + tile)
        v = tl.load(V_ptr + j * B_C * D + tile)
        m, l, O_acc = update(tl.dot(q, tl.trans(k), input_precision="ieee"), m, l, O_acc, v, scale_log2e)
    for j in range(n_full, tl.cdiv(N_k, B_C)):
        inside = (lanes + j * B_C < N_k)[:, None]
        k = tl.load(K_ptr + j * B_C * D + tile, inside, 0.0)
        v = tl.load(V_ptr + j * B_C * D + tile, inside, 0.0)
        m, l, O_acc = update(tl.dot(q, tl.trans(k), input_precision="ieee"), m, l, O_acc, v, scale_log2e)
    return m, l, O_acc
""",
        ),
    ],
    "programs": [
        ("registers of a warp", "registers limit it more", {"registers * 32 //": "registers //"}),
        (
            "shared of a warp",
            "shared is that of a program already",
            {"228 * 1024 // (shared + 1024)": "228 * 1024 // (shared + 1024) // num_warps"},
        ),
        (
            "rounded up",
            "a unit of registers too many",
            {"-(-registers * 32 // 256)": "(registers * 32 // 256 + 1)"},
        ),
        ("registers of one warp", "counted for one warp", {"(of_warp * num_warps)": "of_warp"}),
        ("no unit", "not handed out one by one", {"-(-registers * 32 // 256) * 256": "registers * 32"}),
        ("rounded down", "are rounded down", {"-(-registers * 32 // 256)": "registers * 32 // 256"}),
        ("64000 registers", "not 64000", {"65536": "64000"}),
        ("no system", "the system's 1 KB is left out", {"(shared + 1024)": "max(1, shared)"}),
        ("1 KB once", "taken once", {"228 * 1024 // (shared + 1024)": "227 * 1024 // max(1, shared)"}),
        ("227 and 1", "taken off twice", {"228": "227"}),
        ("KB of 1000", "a KB of shared memory is 1024", {"228 * 1024": "228_000"}),
        ("no shared", "shared memory is left out", {"min(by_registers, by_shared, ": "min(by_registers, "}),
        ("no registers", "registers limit it more", {"min(by_registers, ": "min("}),
        ("no warps", "warps are left out", {", by_warps)": ")"}),
        ("threads for warps", "it is always 0", {"64 // num_warps": "64 // (32 * num_warps)"}),
        ("the largest", "the largest of the three", {"min(": "max("}),
        ("all three", "the three limits are returned", {"min(by": "(by"}),
        (
            "at least 1",
            "taken for granted",
            {"min(by_registers, by_shared, by_warps)": "max(1, min(by_registers, by_shared, by_warps))"},
        ),
        ("floats", "round down", {"65536 //": "65536 /", "1024 //": "1024 /", "64 //": "64 /"}),
        ("nothing returned", "returns nothing", {"return ": ""}),
        (
            "no unit, tried one by one",
            "not handed out one by one",
            {},
            """
def my_programs(registers, shared, num_warps):
    threads = num_warps * 32
    for n in range(64, 0, -1):
        if n * threads * registers <= 2**16 and n * (shared + 1024) <= 228 * 2**10 and n * num_warps <= 64:
            return n
    return 0
""",
        ),
        (
            "warps left out, tried one by one",
            "warps are left out",
            {},
            """
def my_programs(registers, shared, num_warps):
    per_warp = math.ceil(registers / 8) * 256
    n = 0
    while (n + 1) * num_warps * per_warp <= 65536 and (n + 1) * (shared + 1024) <= 228 * 1024:
        n += 1
    return n
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
