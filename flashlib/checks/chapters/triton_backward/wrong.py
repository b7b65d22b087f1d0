"""Wrong answers to the exercises of chapter 11."""

from flashlib.checks.mutants import Mutant

IEEE = ', input_precision="ieee"'
MASK = ", mask=inside[:, None], other=0.0"
LOAD_O, LOAD_DO = f"tl.load(O_ptr + rows{MASK})", f"tl.load(dO_ptr + rows{MASK})"
NOT_MASKED = {LOAD_O: "tl.load(O_ptr + rows)", LOAD_DO: "tl.load(dO_ptr + rows)"}
IN_FP16 = {f"{load}.to(tl.float32)": load for load in (LOAD_O, LOAD_DO)}
DV = f"        dv += tl.dot(P_T.to(do.dtype), do{IEEE})\n"
ROW_MAX = "tl.max(S_T, 1)[:, None]"
SUMMED = "return groups.sum(axis=2, dtype=np.promote_types(dK.dtype, np.float32))"
PART_OF_DV = "dv += tl.dot(P_T.to(do.dtype), do"
PART_OF_DK = "dk += tl.dot(dS_T.to(q.dtype), q"
PART_OF_DQ = "dq += tl.dot(dS.to(k.dtype), k"
LOOP = "for start in range(0, N_q, B_R):"
P_T = "tl.exp(S_T - lse[None, :])"
P = "tl.where(visible, tl.exp(S - lse[:, None]), 0.0)"
END = "end = tl.minimum((i + 1) * B_R + past, N_k)"
VISIBLE = "offs_n[None, :] <= offs_m[:, None] + past"

WRONG = {
    "delta_kernel": [
        ("O * O", "O is multiplied by itself", {"o * do": "o * o"}),
        ("dO * dO", "dO is multiplied by itself", {"o * do": "do * do"}),
        ("dO + O", "dO and O are added", {"o * do": "o + do"}),
        ("dO alone", "O is not used", {"o * do": "do"}),
        ("axis 0", "taken over axis 0", {"axis=1": "axis=0"}),
        ("sum of all", "everything in the block", {", axis=1)": ")"}),
        ("mean", "the mean of a row", {"axis=1), mask": "axis=1) / D, mask"}),
        ("negative", "delta is negative", {"tl.sum(o * do": "-tl.sum(o * do"}),
        ("a scale", "a scale is applied", {"axis=1), mask": "axis=1) * tl.rsqrt(D * 1.0), mask"}),
        ("store not masked", "past the end of delta", {"axis=1), mask=inside)": "axis=1))"}),
        ("nothing masked", "past the end of delta", NOT_MASKED | {"axis=1), mask=inside)": "axis=1))"}),
        ("loads not masked", "past the end of O or dO are read", NOT_MASKED),
        ("one row too many", "1 element past the end of delta", {"offs_m < N_q": "offs_m <= N_q"}),
        ("one row too few", "the last row is left out", {"offs_m < N_q": "offs_m < N_q - 1"}),
        ("no program id", "all programs take the first rows", {"tl.program_id(0) * ROWS + ": ""}),
        ("row j", "program j begins at row j", {"tl.program_id(0) * ROWS": "tl.program_id(0)"}),
        ("rows without D", "rows begin at r, not", {"offs_m[:, None] * D": "offs_m[:, None]"}),
        ("rows of N_q", "rows begin at r * N_q", {"offs_m[:, None] * D": "offs_m[:, None] * N_q"}),
        (
            "stored at the first rows",
            "all programs write the first rows",
            {"delta_ptr + offs_m": "delta_ptr + tl.arange(0, ROWS)"},
        ),
        (
            "fp16 products",
            "rounded to fp16 before the sum",
            IN_FP16 | {"tl.sum(o * do": "tl.sum((o * do).to(tl.float32)"},
        ),
        ("fp16 sums", "fp16 is summed in fp16", IN_FP16),
        (
            "rounded at the end",
            "delta is rounded to fp16",
            {"axis=1), mask": "axis=1).to(O_ptr.dtype.element_ty), mask"},
        ),
        (
            "not stored",
            "nothing is stored",
            {"tl.store(delta_ptr + offs_m, ": "_ = (", "axis=1), mask=inside)": "axis=1))"},
        ),
        ("dO O^T", "every row is multiplied with every row", {"sum(o * do,": f"sum(tl.dot(do, o.T{IEEE}),"}),
        ("not compiled", "marked @triton.jit", {"@triton.jit\n": ""}),
        (
            "one row a program",
            "a program computes one row",
            {},
            """
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0)
    o = tl.load(O_ptr + row * D + tl.arange(0, D)).to(tl.float32)
    do = tl.load(dO_ptr + row * D + tl.arange(0, D)).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(o * do))
""",
        ),
        (
            "a loop over the columns, in fp16",
            "fp16 is summed in fp16",
            {},
            """
@triton.jit
def my_delta_kernel(out, grad, result, n, D: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = r < n
    total = tl.zeros((ROWS,), out.dtype.element_ty)
    for c in range(D):
        total += tl.load(out + r * D + c, mask=ok, other=0.0) * tl.load(grad + r * D + c, mask=ok, other=0.0)
    tl.store(result + r, total, mask=ok)
""",
        ),
        (
            "mean, another style",
            "the mean of a row",
            {},
            """
@triton.jit
def my_delta_kernel(O_ptr, dO_ptr, delta_ptr, N_q, D: tl.constexpr, ROWS: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, D)[None, :]
    a = tl.load(O_ptr + r * D + c, mask=r < N_q, other=0).to(tl.float32)
    b = tl.load(dO_ptr + r * D + c, mask=r < N_q, other=0).to(tl.float32)
    mean = tl.sum(a * b / D, axis=1, keep_dims=True)
    tl.store(delta_ptr + r, mean, mask=r < N_q)
""",
        ),
    ],
    "dkv_loop": [
        ("dv first", "dv is returned first", {"return dk * scale, dv": "return dv, dk * scale"}),
        ("no scale in dk", "dk is not multiplied by scale", {"return dk * scale": "return dk"}),
        ("scale twice", "dk is multiplied by scale twice", {"return dk * scale": "return dk * scale * scale"}),
        ("no scale in S", "scale is missing in the scores", {f"q.T{IEEE}) * scale": f"q.T{IEEE})"}),
        (
            "no scale at all",
            "scale is missing: in the scores and in dk",
            {f"q.T{IEEE}) * scale": f"q.T{IEEE})", "return dk * scale": "return dk"},
        ),
        ("scale in dv", "dv is multiplied by scale", {"scale, dv": "scale, dv * scale"}),
        (
            "scale in every step",
            "in every step, and not the first time",
            {
                f"        {PART_OF_DK}": f"        dk *= scale\n        {PART_OF_DK}",
                "return dk * scale": "return dk",
            },
        ),
        ("no delta", "delta is not subtracted", {"(dP_T - delta[None, :])": "dP_T"}),
        ("delta added", "delta is added", {"dP_T - delta": "dP_T + delta"}),
        ("sign", "the sign is turned round", {"dP_T - delta[None, :]": "delta[None, :] - dP_T"}),
        (
            "delta of the tile",
            "delta is summed in the tile",
            {"delta[None, :]": "tl.sum(P_T * dP_T, axis=0)[None, :]"},
        ),
        ("delta along the keys", "delta runs along the keys", {"delta[None, :]": "delta[:, None]"}),
        ("lse along the keys", "lse runs along the keys", {"lse[None, :]": "lse[:, None]"}),
        ("no P in dS", "P is missing in dS", {"P_T * (dP_T": "1 * (dP_T"}),
        ("P twice", "P is a factor twice", {"P_T * (dP_T": "P_T * P_T * (dP_T"}),
        ("diagonal of J", "the diagonal of J alone", {"(dP_T - delta[None, :])": "(1 - P_T) * dP_T"}),
        ("do from Q", "do is loaded from Q", {"tl.load(dO_ptr": "tl.load(Q_ptr"}),
        ("delta from lse", "delta is loaded from lse", {"tl.load(delta_ptr": "tl.load(lse_ptr"}),
        ("dk stays 0", "dk stays 0", {"return dk * scale": "return dk * 0"}),
        ("no lse", "lse is not used", {P_T: "tl.exp(S_T)"}),
        ("softmax of the tile", "P is a softmax over the tile", {P_T: "tl.softmax(S_T, dim=0)"}),
        (
            "softmax over the queries",
            "P is a softmax over the queries",
            {P_T: f"tl.exp(S_T - {ROW_MAX}) / tl.sum(tl.exp(S_T - {ROW_MAX}), 1)[:, None]"},
        ),
        ("maximum of the tile", "own maximum is subtracted", {P_T: "tl.exp(S_T - tl.max(S_T, axis=0)[None, :])"}),
        ("exp by exp", "large ones overflow", {P_T: "tl.exp(S_T) / tl.exp(lse)[None, :]"}),
        ("base 2", "tl.exp2 is taken", {"tl.exp(": "tl.exp2("}),
        (
            "dv with dS",
            "dv is made with dS_T",
            {DV: "", "        dk +=": DV.replace("P_T", "dS_T") + "        dk +="},
        ),
        ("dk with P", "dk is made with P_T", {"dS_T.to(q.dtype)": "P_T.to(q.dtype)"}),
        ("dk with do", "dk is made with do", {PART_OF_DK: "dk += tl.dot(dS_T.to(q.dtype), do"}),
        ("dv with q", "dv is made with q", {PART_OF_DV: "dv += tl.dot(P_T.to(do.dtype), q"}),
        (
            "q and do exchanged",
            "q and do are exchanged",
            {PART_OF_DK: "dk += tl.dot(dS_T.to(q.dtype), do", PART_OF_DV: "dv += tl.dot(P_T.to(do.dtype), q"},
        ),
        ("dP with k", "dP is made with k", {"tl.dot(v, do.T": "tl.dot(k, do.T"}),
        ("dP with q", "dP is made with q", {"tl.dot(v, do.T": "tl.dot(v, q.T"}),
        ("do not transposed", "by do: dP_T", {"tl.dot(v, do.T": "tl.dot(v, do"}),
        ("q not transposed", "by q: S_T", {"tl.dot(k, q.T": "tl.dot(k, q"}),
        ("P transposed", "P is not transposed", {"P_T.to(do.dtype)": "P_T.T.to(do.dtype)"}),
        ("dS transposed", "dS is not transposed", {"dS_T.to(q.dtype)": "dS_T.T.to(q.dtype)"}),
        ("not added up", "dk and dv are those of the last tile", {"dk += tl": "dk = tl", "dv += tl": "dv = tl"}),
        ("dk not added up", "dk is that of the last tile", {"dk += tl": "dk = tl"}),
        ("dv not added up", "dv is that of the last tile", {"dv += tl": "dv = tl"}),
        (
            "tail dropped",
            "the last, shorter tile is dropped",
            {LOOP: "for start in range(0, N_q // B_R * B_R, B_R):"},
        ),
        ("last tile left out", "the last tile is left out", {LOOP: "for start in range(0, N_q - B_R, B_R):"}),
        ("tile i begins at i", "a tile begins at row i", {LOOP: "for start in range(0, tl.cdiv(N_q, B_R)):"}),
        ("always the first rows", "all tiles are the first rows", {"offs_m = start + ": "offs_m = "}),
        ("one row too few", "the last row is masked away", {"offs_m < N_q": "offs_m < N_q - 1"}),
        ("one row too many", "rows past the end give nan", {"offs_m < N_q": "offs_m <= N_q"}),
        (
            "do not masked",
            "rows past the end are read",
            {"tl.load(dO_ptr + rows, mask=inside[:, None], other=0.0)": "tl.load(dO_ptr + rows)"},
        ),
        (
            "delta not masked",
            "delta is read past its end",
            {"tl.load(delta_ptr + offs_m, mask=inside, other=0.0)": "tl.load(delta_ptr + offs_m)"},
        ),
        (
            "lse -inf past the end",
            "keeps exp(S - lse) finite",
            {"lse_ptr + offs_m, mask=inside, other=0.0": "lse_ptr + offs_m, mask=inside, other=-float('inf')"},
        ),
        (
            "lse of the first rows",
            "lse and delta are those of the first rows",
            {"lse_ptr + offs_m": "lse_ptr + tl.arange(0, B_R)"},
        ),
        ("P in fp32", "one dtype", {"P_T.to(do.dtype)": "P_T"}),
        ("dk in 16 bits", "in 16 bits", {"return dk * scale, dv": "return (dk * scale).to(k.dtype), dv"}),
        ("tf32", "rounds fp32 to tf32", {f"(dS_T.to(q.dtype), q{IEEE})": "(dS_T.to(q.dtype), q)"}),
        ("dv alone", "expected the 2 values dk, dv", {"return dk * scale, dv": "return dv, dv, dv"}),
        ("returns nothing", "returns nothing", {"    return dk * scale, dv": ""}),
        (
            "tiles of queries by keys, dS not transposed",
            "dS is not transposed",
            {},
            """
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros_like(k).to(tl.float32), tl.zeros_like(v).to(tl.float32)
    d = tl.arange(0, D)
    for i in range(tl.cdiv(N_q, B_R)):
        r = i * B_R + tl.arange(0, B_R)
        at, ok = r[:, None] * D + d, (r < N_q)[:, None]
        q, do = tl.load(Q + at, ok, 0.0), tl.load(dO + at, ok, 0.0)
        lse, delta = tl.load(L + r, r < N_q, 0.0), tl.load(Delta + r, r < N_q, 0.0)
        p = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv, input_precision="ieee")
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None]) * scale
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")
    return dk, dv
""",
        ),
        (
            "tiles of queries by keys, the tail not masked",
            "rows past the end are read",
            {},
            """
@triton.jit
def my_dkv_loop(k, v, Q, dO, L, Delta, N_q, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    dk, dv = tl.zeros((B_C, D), tl.float32), tl.zeros((B_C, D), tl.float32)
    d = tl.arange(0, D)
    for i in range(tl.cdiv(N_q, B_R)):
        r = i * B_R + tl.arange(0, B_R)
        at = r[:, None] * D + d
        q, do = tl.load(Q + at), tl.load(dO + at)
        lse, delta = tl.load(L + r), tl.load(Delta + r)
        p = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        p = tl.where((r < N_q)[:, None], p, 0.0)
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv, input_precision="ieee")
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None]) * scale
        dk = tl.dot(tl.trans(ds).to(q.dtype), q, dk, input_precision="ieee")
    return dk, dv
""",
        ),
    ],
    "dq_loop": [
        ("top left", "aligned top left", {"past = N_k - N_q  #": "past = 0  #"}),
        ("top left in the mask alone", "aligned top left", {VISIBLE: "offs_n[None, :] <= offs_m[:, None]"}),
        (
            "top left in the loop alone",
            "as if the mask were aligned top left",
            {END: "end = tl.minimum((i + 1) * B_R, N_k)"},
        ),
        ("shift with the wrong sign", "the shift has the wrong sign", {"N_k - N_q  #": "N_q - N_k  #"}),
        ("no mask", "the causal mask is missing", {VISIBLE: "inside[None, :]"}),
        ("no mask, all tiles", "the causal mask is missing", {VISIBLE: "inside[None, :]", END: "end = N_k"}),
        ("mask upside down", "the mask is upside down", {"offs_n[None, :] <= ": "offs_n[None, :] > "}),
        ("strict mask", "sees its own key too", {"offs_n[None, :] <= ": "offs_n[None, :] < "}),
        ("rows of the mask from 0", "the rows of the mask begin at 0", {"offs_m = i * B_R + ": "offs_m = "}),
        (
            "columns of the mask from 0",
            "the columns of the mask begin at 0",
            {VISIBLE: "tl.arange(0, B_C)[None, :] <= offs_m[:, None] + past"},
        ),
        ("all tiles", "tiles that no row of block i sees are read", {END: "end = N_k"}),
        ("a tile too many", "tiles that no row of block i sees are read", {"past, N_k)": "past + B_C, N_k)"}),
        (
            "end of the first row",
            "ends at what the first row sees",
            {"(i + 1) * B_R + past": "i * B_R + past + 1"},
        ),
        ("end at the block", "ends where the block begins", {"(i + 1) * B_R + past": "i * B_R + past"}),
        ("end one too small", "ends one key early", {"(i + 1) * B_R + past": "(i + 1) * B_R + past - 1"}),
        ("last tile dropped", "the last tile is dropped", {"range(0, end,": "range(0, end // B_C * B_C,"}),
        ("tile j begins at j", "a tile begins at key j", {"range(0, end, B_C)": "range(0, tl.cdiv(end, B_C))"}),
        ("tiles up to i", "as if the mask were aligned top left", {END: "end = tl.minimum((i + 1) * B_C, N_k)"}),
        (
            "loads not masked",
            "keys past the end are read",
            {f"K_ptr + cols{MASK}": "K_ptr + cols", f"V_ptr + cols{MASK}": "V_ptr + cols"},
        ),
        ("V not masked", "keys past the end are read", {f"V_ptr + cols{MASK}": "V_ptr + cols"}),
        ("only the diagonal", "tiles before the diagonal", {"range(0, end": "range(i * B_R, end"}),
        (
            "V not masked, dS masked",
            "K or V is read past its end",
            {
                f"V_ptr + cols{MASK}": "V_ptr + cols",
                P: "tl.exp(S - lse[:, None])",
                "P * (dP - delta[:, None])": "tl.where(visible, P * (dP - delta[:, None]), 0.0)",
            },
        ),
        ("P twice", "P is a factor twice", {"P * (dP": "P * P * (dP"}),
        ("not added up", "dq is that of the last tile", {"dq += tl": "dq = tl"}),
        ("no scale in dq", "dq is not multiplied by scale", {"return dq * scale": "return dq"}),
        ("scale twice", "dq is multiplied by scale twice", {"return dq * scale": "return dq * scale * scale"}),
        ("no scale in S", "scale is missing in the scores", {f"k.T{IEEE}) * scale": f"k.T{IEEE})"}),
        (
            "no scale at all",
            "scale is missing: in the scores and in dq",
            {f"k.T{IEEE}) * scale": f"k.T{IEEE})", "return dq * scale": "return dq"},
        ),
        ("no delta", "delta is not subtracted", {"(dP - delta[:, None])": "dP"}),
        ("delta along the keys", "delta runs along the keys", {"delta[:, None]": "delta[None, :]"}),
        ("sign", "the sign is turned round", {"dP - delta[:, None]": "delta[:, None] - dP"}),
        (
            "delta of the tile",
            "delta is summed in the tile",
            {"delta[:, None]": "tl.sum(P * dP, axis=1)[:, None]"},
        ),
        ("dS v", "dq adds up dS v", {PART_OF_DQ: "dq += tl.dot(dS.to(k.dtype), v"}),
        ("P k", "dq adds up P k", {PART_OF_DQ: "dq += tl.dot(P.to(k.dtype), k"}),
        ("P v", "dq adds up P v", {PART_OF_DQ: "dq += tl.dot(P.to(k.dtype), v"}),
        ("dP with k", "dP is made with k", {"tl.dot(do, v.T": "tl.dot(do, k.T"}),
        ("lse not used", "lse is not used", {"tl.exp(S - lse[:, None])": "tl.exp(S)"}),
        ("base 2", "tl.exp2 is taken", {"tl.exp(": "tl.exp2("}),
        ("k not transposed", "k is not transposed", {"tl.dot(q, k.T": "tl.dot(q, k"}),
        ("v not transposed", "v is not transposed", {"tl.dot(do, v.T": "tl.dot(do, v"}),
        (
            "scores masked, no guard",
            "nan in a row that sees no key",
            {P: 'tl.exp(tl.where(visible, S, -float("inf")) - lse[:, None])'},
        ),
        ("hidden scores 0", "hidden scores become 0", {P: "tl.exp(tl.where(visible, S, 0.0) - lse[:, None])"}),
        ("dS in fp32", "one dtype", {"dS.to(k.dtype)": "dS"}),
        ("dq in 16 bits", "in 16 bits", {"return dq * scale": "return (dq * scale).to(q.dtype)"}),
        ("tf32", "rounds fp32 to tf32", {f"tl.dot(do, v.T{IEEE})": "tl.dot(do, v.T)"}),
        ("returns nothing", "returns nothing", {"    return dq * scale": ""}),
        (
            "while, and no delta",
            "delta is not subtracted",
            {},
            """
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    acc = tl.zeros((B_R, D), tl.float32)
    last = i * B_R + tl.arange(0, B_R) + N_k - N_q
    c = tl.arange(0, B_C)
    j = 0
    while j * B_C < tl.minimum(i * B_R + B_R + N_k - N_q, N_k):
        n = j * B_C + c
        at = n[:, None] * D + tl.arange(0, D)
        k, v = tl.load(K + at, n[:, None] < N_k, 0.0), tl.load(V + at, n[:, None] < N_k, 0.0)
        s = tl.dot(q * scale, tl.trans(k), input_precision="ieee")
        ds = tl.exp(s - lse[:, None]) * tl.dot(do, tl.trans(v), input_precision="ieee") * scale
        ds = tl.where(n[None, :] <= last[:, None], ds, 0.0)
        acc = tl.dot(ds.to(k.dtype), k, acc, input_precision="ieee")
        j += 1
    return acc
""",
        ),
        (
            "all tiles, in another style",
            "tiles that no row of block i sees are read",
            {},
            """
@triton.jit
def my_dq_loop(
    i, q, do, lse, delta, K, V, N_q, N_k, scale, D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr
):
    acc = tl.zeros((B_R, D), tl.float32)
    r = i * B_R + tl.arange(0, B_R)[:, None]
    lse = tl.where(lse == float("-inf"), float("inf"), lse)
    for j in range(tl.cdiv(N_k, B_C)):
        n = j * B_C + tl.arange(0, B_C)
        at, ok = n[:, None] * D + tl.arange(0, D), n[:, None] < N_k
        k, v = tl.load(K + at, mask=ok, other=0), tl.load(V + at, mask=ok, other=0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(r + N_k - N_q >= n[None, :], s, float("-inf"))
        ds = tl.exp(s - lse[:, None]) * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        acc += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    return acc * scale
""",
        ),
    ],
    "grouped": [
        ("mean", "the mean of a group", {"groups.sum(": "groups.mean("}),
        (
            "every H_k-th head",
            "every H_k-th head",
            {"H_k, H_q // H_k, N_k": "H_q // H_k, H_k, N_k", "axis=2": "axis=1"},
        ),
        ("axes exchanged", "groups of H_k heads", {"H_k, H_q // H_k, N_k": "H_q // H_k, H_k, N_k"}),
        ("sum over the heads of K", "over the heads of K", {"axis=2": "axis=1"}),
        ("all heads", "all heads are summed", {"groups.sum(axis=2": "dK.sum(axis=1"}),
        ("keepdims", "the axis of the group is still there", {"axis=2,": "axis=2, keepdims=True,"}),
        ("fp16 sums", "fp16 is summed in fp16", {", dtype=np.promote_types(dK.dtype, np.float32)": ""}),
        ("rounded to fp16", "fp16 is summed in fp16", {"np.float32))": "np.float32)).astype(dK.dtype)"}),
        ("not summed", "not summed yet", {SUMMED: "return groups"}),
        ("as it came", "dK is given back as it came", {SUMMED: "return dK"}),
        ("nothing returned", "returns nothing", {"return groups": "groups"}),
        (
            "first heads",
            "only the first head of each group",
            {},
            """
def my_grouped(dK, H_k):
    return dK[:, :: dK.shape[1] // H_k].astype(float)
""",
        ),
        (
            "every H_k-th head, by slices",
            "every H_k-th head",
            {},
            """
def my_grouped(dK, H_k):
    return np.stack([dK[:, h::H_k].astype(float).sum(axis=1) for h in range(H_k)], axis=1)
""",
        ),
        (
            "overwritten in a loop",
            "only the last head of each group",
            {},
            """
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d))
    for h in range(H_q):
        out[:, h // (H_q // H_k)] = dK[:, h]
    return out
""",
        ),
        (
            "h // H_k",
            "query head h reads head h // H_k",
            {},
            """
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d))
    for h in range(H_q):
        out[:, h // H_k] += dK[:, h]
    return out
""",
        ),
        (
            "added up with an index",
            "only the last head of each group",
            {},
            """
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d))
    out[:, np.arange(H_q) // (H_q // H_k)] += dK
    return out
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
