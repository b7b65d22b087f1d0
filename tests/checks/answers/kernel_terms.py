"""Terms: the text in a kernel for a different text in its model.

An edit of a model becomes an edit of the kernel when each text here is replaced by the one next to it, in this
order. If the kernel has no line for a line of the model, the edit replaces the corresponding text: next to
`alpha = ` is `tl.exp(m - shift) -> `, so `alpha = 1` becomes `tl.exp(m - shift) -> 1`. A word in capitals, such as
DOT, stands for a longer text and is replaced further down.
"""

NUMPY = {
    "np.inf": 'float("inf")', ".astype(float)": ".to(tl.float32)", ".astype(": ".to(",
    "np.arange(": "tl.arange(0, ", "np.": "tl.",
}  # fmt: skip

VECTOR = {
    "range(-(-N // BLOCK)) -> range(N // BLOCK)": "triton.cdiv(N, 32) -> N // 32",
    "range(-(-N // BLOCK)) -> range(min(N, 1))": "tl.program_id(0) * BLOCK -> 0",
    "start = program": "tl.program_id(0) * BLOCK -> tl.program_id(0)",
}
ADD = {
    "strides_of(x)[0] -> 1": "n * stride_x -> n",
    "strides_of(y)[0] -> 1": "n * stride_y -> n",
    "strides_of(x) -> strides_of(y)": "n * stride_x -> n * stride_y",
    "strides_of(y) -> strides_of(x)": "n * stride_y -> n * stride_x",
    "[0]) + -> [0]) ": "x + y -> x y", "x y*": "x * y", "x y-": "x - y",
    "x)(n * strides_of(x": "x_ptr + n * stride_x",
    "y)(n * strides_of(y": "y_ptr + n * stride_y",
}  # fmt: skip
SCALE_EXP = {
    "x[n]": "x", "(N, 32)": "(len(x), 32)", "N // 32": "len(x) // 32", "return written": "EXP -> EXP",
    "EXP": "tl.exp(x * scale)",
}  # fmt: skip
CAUSAL_SOFTMAX = {
    "other = ": '-float("inf") -> ', "BLOCK = ": "triton.next_power_of_2(N) -> ",
    "p = ": "EXP -> ", "EXP": "tl.exp(s - tl.max(s, axis=0))", "(x": "(s", "w = ": "p / l -> ",
    "p / l": "p / tl.sum(p, axis=0)",
    "seen = (": "offs <= r -> (", "seen = ": "mask=offs <= r -> mask=",
    "stored = c <= r": "mask=offs < N -> mask=offs <= r",
    "c <": "offs <", "c >": "offs >", "r * N": "row * N", "r * step_": "row * stride_", "step_p": "stride_p",
    "= r": "= row", "< r": "< row",
}  # fmt: skip
TILE = {
    "r = i": "r = tl.program_id(0)", "r = j": "r = tl.program_id(1)", "c = i": "c = tl.program_id(0)",
    "c = j": "c = tl.program_id(1)", "(i ": "(tl.program_id(0) ", "(j ": "(tl.program_id(1) ",
    "target = ": "TARGET -> ",
}  # fmt: skip
TRANSPOSE = TILE | {
    "tile = np.where(mask, load(source), 0).astype(np.float16)": "tile, mask -> tile.to(tl.float16), mask",
    "stored = True": "tile, mask=mask -> tile", "stored = ": "tile, mask=mask -> tile, mask=",
    "source = ": "SOURCE -> ",
    "* xr": "* stride_xr", "* xc": "* stride_xc", "* yr": "* stride_yr", "* yc": "* stride_yc",
    "SOURCE": "X_ptr + r[:, None] * stride_xr + c[None, :] * stride_xc",
    "TARGET": "Y_ptr + c[None, :] * stride_yr + r[:, None] * stride_yc",
    "ptr + c[None, :] * stride_yr + r[:, None] * stride_yc -> ":
    "ptr + c[None, :] * stride_yr + r[:, None] * stride_yc -> Y_ptr + ",
    "ptr + r[:, None] * stride_xr + c[None, :] * stride_xc -> ":
    "ptr + r[:, None] * stride_xr + c[None, :] * stride_xc -> X_ptr + ",
}  # fmt: skip
TILE_OF_SCORES = TILE | {
    "np.where(r[:, None] < N_k, load_q(q_at), 0)": "tl.load(q_ptrs, mask=r[:, None] < N_k, other=0.0)",
    "np.where(c[:, None] < N_q, load_k(k_at), 0)": "tl.load(k_ptrs, mask=c[:, None] < N_q, other=0.0)",
    "load_q(q_at)": "tl.load(q_ptrs)", "load_k(k_at)": "tl.load(k_ptrs)",
    "q_at = ": "q_ptrs = Q_ptr + ", "k_at = ": "k_ptrs = K_ptr + ", "stored = ": ", S) -> , S, mask=",
    "raw = ": "DOT * scale -> ", "product = ": "DOT -> ", "product": "DOT", "inside = ": "INSIDE -> ",
    "S = ": "WHERE -> ", "inside": "INSIDE", "raw": "S", "WHERE": "tl.where(INSIDE, S, -np.inf)",
    "INSIDE": "(r[:, None] < N_q) & (c[None, :] < N_k)", "np.sqrt(D)": "D**0.5", "scale**2": "scale * scale",
    **{f"* {stride}": f"* stride_{stride}" for stride in "qh qn qd kh kn kd sh sq sk".split()},
    "TARGET -> ": "TARGET -> S_ptr + ",
    "TARGET": "S_ptr + h * stride_sh + r[:, None] * stride_sq + c[None, :] * stride_sk",
    "q @ k": "tl.dot(q, k)", "k @ q.T": "tl.dot(k, q.T)", "q.T @ k": "tl.dot(q.T, k)",
    "half.type(scale)": "scale", ".astype(half)": ".to(q.dtype)",
    "DOT": 'tl.dot(q, k.T, input_precision="ieee")',
}  # fmt: skip
ONLINE_BLOCK = {
    "x = first.astype(np.float32)": ', mask=offs < N, other=-float("inf") -> ',
    "x_2 = second.astype(np.float32)": ', mask=more < N, other=-float("inf") -> ',
    "x = np.where(c < N, first, 0.0).astype(np.float32)": 'offs < N, other=-float("inf") -> offs < N, other=0.0',
    "x_2 = np.where(more < N, second, 0.0).astype(np.float32)":
    'more < N, other=-float("inf") -> more < N, other=0.0',
    "x_2 = np.where(c < N, second, other).astype(np.float32)": "mask=more < N -> mask=offs < N",
    "x_2 = np.where(c < N - BLOCK + 1, second, other).astype(np.float32)":
    "mask=more < N -> mask=offs < N - BLOCK + 1",
    "first = memory(X)(": "row * stride_x + offs -> (", "second = memory(X)(": "row * stride_x + more -> (",
    "r * N": "row * N", "(r +": "(0 * row +", "0 * r": "0 * row",
    "return *state, m, l_new": "row, m_new) -> row, m)",
    "return *state, m, l": "row, m_new) -> row, m); row, l_new) -> row, l)",
    "return *state, l_new, m_new": "row, m_new) -> row, l_new); row, l_new) -> row, m_new)",
    "return l, m, m_new, l_new": "row, m) -> row, l); row, l) -> row, m)",
    "alpha = np.ones(rows)": "l * EXP_M -> l", "alpha = m - m_new": "EXP_M -> (m - m_new)",
    "alpha = ": "EXP_M -> ", "alpha": "EXP_M", "p = ": "EXP_X -> ",
    "p.sum(axis=1)": "tl.sum(EXP_X, axis=0)", "EXP_M": "tl.exp(m - m_new)", "EXP_X": "tl.exp(x_2 - m_new)",
    "m_x": "tl.max(x_2, axis=0)", "np.fmin.reduce(x, axis=1)": "tl.min(x, axis=0)",
    "np.exp(x).sum(axis=1)": "tl.sum(tl.exp(x), axis=0)",
    "np.exp2(x - m[:, None]).sum(axis=1)": "tl.sum(tl.exp2(x - m), axis=0)",
    "np.ones(rows, np.float32)": "1.0", "np.zeros(rows, np.float32)": "0.0", "[:, None]": "",
    "+ c": "+ offs", "more = c": "more = offs",
}  # fmt: skip
SCAN = {
    "other = ": 'other=-float("inf") -> other=',
    "x = block.astype(np.float32)": ', mask=offs < N, other=-float("inf") -> ',
    "* step + c": "* stride_x + offs", "N + c": "N + offs", "-> + c": "-> + offs", "min(N, BLOCK)": "BLOCK",
    "np.full(rows, -np.inf": "m = -np.inf", "np.full(rows, ": "m = ", "np.zeros(rows": "m = 0.0",
    ", np.float32)": "", "largest": "m",
    "np.fmax.reduce(x, axis=1)": "MAX", "x.max(axis=1)": "MAX", "x.max(axis=1, keepdims=True)": "MAX",
    "MAX": "tl.max(x, axis=0)",
    "np.fmin.reduce(x, axis=1)": "tl.min(x, axis=0)", "x.sum(axis=1)": "tl.sum(x, axis=0)",
}  # fmt: skip
LSE = {
    "l == 0, ": "l == 0.0, ", "m = tl.max": "m_new = tl.max", "m = np.max": "m_new = np.max",
    "shift = m": "shift = m_new", "np.where(m": "np.where(m_new",
    "l = ": "l * EXP_M + tl.sum(EXP_X, axis=0) -> ", "return ": "m + tl.log(tl.where(l == 0.0, 1.0, l)) -> ",
}  # fmt: skip
UPDATE = {
    "alpha = np.ones(rows)": "l * EXP_M -> l", "alpha = m_old - shift": "EXP_M -> (m - shift)",
    "alpha = ": "EXP_M -> ", "alpha": "EXP_M",
    "p = ": "EXP_X -> ", "p.sum(axis=1)": "tl.sum(EXP_X, axis=0)", "EXP_M": "tl.exp(m - shift)",
    "EXP_X": "tl.exp(x - shift)",
    "[:, None]": "", "m_old": "m", "l_old": "l",
}  # fmt: skip

STEP = {
    "l = ": "l = alpha * l + tl.sum(P, axis=1) -> l = ",
    "O_acc = ": "O_acc = alpha[:, None] * O_acc + DOT -> O_acc = ",
    "after = ": "return ", "np.where(l == 0, 1, l)": "tl.where(l == 0.0, 1.0, l)",
    "np.ones_like(m)": "tl.full(m.shape, 1.0, tl.float32)", "half": "v.dtype",
    "S_ij.max(axis=1, keepdims=True)": "tl.max(S_ij, axis=1)[:, None]", "P_ij @ V_j": "DOT", "P_ij": "P",
    "V_j": "v", "O_acc_old": "O_acc",
    "l_old +": "l +", "alpha * l_old": "alpha * l", "0 * l_old": "0 * l",
    # elsewhere it means the old l, which no longer exists
}  # fmt: skip
SCORES = {
    "m = ": "m = tl.maximum(m_old, tl.max(S, axis=1)) -> m = ",
    "S_ij = ": 'S = tl.where(seen, S, -float("inf")) -> S = ', "raw = Q_i @ ": "q, k.T -> q, ", "K_j": "k",
    "S_ij": "S",
    "raw * scale**2": "S * scale", "raw / scale": "S / scale / scale", "raw * scale": "S", "raw,": "S / scale,",
}  # fmt: skip
BASE_2 = {
    "m = ": "m = tl.maximum(m_old, tl.max(S, axis=1) * scale) -> m = ",
    "S_ij = np.where(seen, ": "raw = (", ", -np.inf)": ")", "S_ij = ": "raw = ",
    "raw = ": "m_old = m -> m_old = m\\n    raw = ",
    "raw * scale**2": "raw * LOG2E", "raw / scale": "raw / scale / scale", "(raw)": "(raw / scale)",
    "= raw * scale": "= raw", "(raw * scale)": "(raw)",
    "S_ij": "(S * scale)", "raw": "S", "scale": "LOG2E", "LOG2E": "scale_log2e", "np.e ** (": "tl.exp(",
    "np.float32(0.69314718)": "0.69314718",
}  # fmt: skip
DOT = {"DOT": 'tl.dot(P.to(v.dtype), v, input_precision="ieee")'}
M_START = {"m0 = ": 'tl.full((B_R,), -float("inf") -> tl.full((B_R,), '}
CAUSAL_SPLIT = {
    "after = end": "return seen_by_any", "end =": "seen_by_any =", "= max(": "= tl.maximum(",
    "np.clip(first, 0, N_k)": "tl.maximum(seen_by_all, 0)", "np.clip(last, 0, N_k)": "tl.minimum(last, N_k)",
    "first": "i * B_R + past + 1", "(last": "((i + 1) * B_R + past", "last": "(i + 1) * B_R + past",
    "-(-": "tl.cdiv(", ") // B_c)": "), B_C)", "past // B_c)": "past, B_C)", "B_c": "B_C", "B_r": "B_R",
}  # fmt: skip
PADDED = {
    "scale = ": "scale=1 / math.sqrt(d) -> scale=", "np.sqrt": "math.sqrt", "(n)": "(padded)", "* n)": "* padded)",
    "O = P @ K / P.sum(axis=3, keepdims=True)": "Q, K, V, -> Q, K, K,",
}  # fmt: skip
DECODE_PART = {
    "range(begin, stop)": "range(begin, tiles * (part + 1) // parts)", "begin = ": "range(begin -> range(",
    "begin": "tiles * part // parts",
    "stop = ": ", tiles * (part + 1) // parts -> , ", ", min(": ", tl.minimum(",
    "-(-tiles // parts)": "tl.cdiv(tiles, parts)",
    "-(-N // B_C)": "tl.cdiv(N, B_C)", "int(lengths[0])": "tl.load(lengths_ptr)",
    "limit = ": "tl.where((c < length -> tl.where((c < ",
    "v_end = ": "V_ptr + rows, mask=(c < length -> V_ptr + rows, mask=(c < ",
    "k_end = ": "K_ptr + rows, mask=(c < length -> K_ptr + rows, mask=(c < ",
    "shift = m": "", "shift": "m", "seen": "(c < length)[None, :]",
    "DOT": 'tl.dot(P.to(v.dtype), v, input_precision="ieee")',
}  # fmt: skip
APPEND_KERNEL = {
    "lengths[b]": "tl.load(lengths_ptr + b)", "lengths[0]": "tl.load(lengths_ptr)", "table.shape[1]": "most",
    "1 << (d - 1).bit_length()": "D",
    "at = i": "AT -> c // page", "at = ": "AT -> ", "id = i": "PAGE -> c // page", "+ i": "+ c // page",
    "i = ": "most + c // page -> most + ",
    "slot = id": "slot = PAGE", "slot = r": "slot = c % page", "+ r": "+ c % page",
    "r = ": "* page + c % page -> * page + ",
    "PAGE": "tl.load(table_ptr + AT, mask=c >= 0, other=0).to(tl.int64)", "AT": "b * most + c // page",
    "first = ": "pool_ptr + slot * d -> pool_ptr + ",
}  # fmt: skip

DELTA_KERNEL = {
    "sums = product.": "SUM -> (o * do).", "delta = ": "SUM -> ", "sums": "SUM", "SUM": "tl.sum(o * do, axis=1)",
    "product = ": "o * do -> ", "A": "o", "B": "do", "fp16": "O_ptr.dtype.element_ty",
    "first = j": "first = tl.program_id(0)", "first = ": "tl.program_id(0) * ROWS -> ",
    "places = ": "rows = ", "inside = offs[:, None]": "inside = offs_m", "offs[:, None]": "offs_m[:, None]",
}  # fmt: skip
BACKWARD = {
    "weights = ": "tl.exp(S_ij - lse_i[:, None]) -> ", "- lse_i)": "- lse_i[None, :])",
    "- delta_i)": "- delta_i[None, :])",
    "(lse_i)[:, None]": "(lse_i[:, None])", "(-lse_i)[:, None]": "(-lse_i[:, None])",
    "S_ij = np.where(seen, raw, -np.inf)": "S_ij = raw",
    "(P_ij * dP_ij).sum(axis=1, keepdims=True)": "np.sum(P_ij * dP_ij, axis=1)[:, None]",
    "S_ij.max(axis=1, keepdims=True)": "np.max(S_ij, axis=1)[:, None]",
    "S_ij.max(axis=0)": "np.max(S_ij, axis=0)[None, :]",
    "np.exp(S_ij).sum(axis=1, keepdims=True)": "np.sum(np.exp(S_ij), axis=1)[:, None]",
    "np.exp(S_ij).sum(axis=0)": "np.sum(np.exp(S_ij), axis=0)[None, :]", "scale**2": "scale * scale",
    "np.log(2)": "0.6931471805599453",
    "S_ij = raw": "DOT * scale -> DOT",
}  # fmt: skip
DKV_LOOP = {
    "found = dV, dK": "return dv, dk * scale", "dK_part = 0 * K_j": "return dk * scale -> return dk * 0",
    "dK_kept = 0 * dK": "dk += -> dk =", "dV_kept = 0 * dV": "dv += -> dv =",
    "dO_i = load(Q, rows)": "tl.load(dO_ptr -> tl.load(Q_ptr",
    "dK_part = dS_ij.T @ Q_i": "return dk * scale -> return dk",
    "dV_part = P_ij.T @ dO_i": "scale, dv -> scale, dv",
    "dK_part = ": "dS_T.to(q.dtype), q -> ", "dV_part = P": "P_T.to(do.dtype), do -> P",
    " @ Q_i * scale": " @ Q_i", "@ dO_i * scale": "@ dO_i",
    "P_ij.T @": "P_T @", "dS_ij.T @": "dS_T @", "P_ij @": "P_T.T @", "dS_ij @": "dS_T.T @",
    " @ Q_i": ".to(q.dtype), q",
    "dS_T @ dO_i": "dS_T.to(q.dtype), do", "T @ dO_i": "T.to(do.dtype), do",
    "raw = ": "k, q.T -> ", "dP_ij = ": "v, do.T -> ", "Q_i @ K_j": "k, q", "Q_i @ V_j": "v, q",
    "dO_i @ K_j": "k, do", "dO_i @ V_j": "v, do",
    "DOT": 'tl.dot(k, q.T, input_precision="ieee")', "softmax(S_ij)": "tl.softmax(S_ij, dim=0)",
    "axis=1)[:, None]": "OVER_KEYS", "axis=0)[None, :]": "axis=1)[:, None]", "OVER_KEYS": "axis=0)[None, :]",
    "lse_i[None, :]": "lse[:, None]", "delta_i[None, :]": "delta[:, None]", "lse_i[:, None]": "lse[None, :]",
    "delta_i[:, None]": "delta[None, :]",
    "P_ij": "P_T", "S_ij": "S_T", "range(0, end": "range(0, N_q", "// B * B, B)": "// B_R * B_R, B_R)",
    "- B, B)": "- B_R, B_R)",
}  # fmt: skip
DQ_LOOP = {
    "part = dS_ij @ K_j": "return dq * scale -> return dq",
    "part = 0 * K_j[:1]": "return dq * scale -> return dq * 0", "kept = 0 * dQ": "dq += -> dq =",
    "part = ": "dS.to(k.dtype), k -> ", " @ K_j * scale": ".to(k.dtype), k", " @ V_j * scale": ".to(k.dtype), v",
    "P_ij @ V_j": "P_ij.to(k.dtype), v", "P_ij @ K_j": "P_ij.to(k.dtype), k",
    "dS_ij @ V_j": "dS_ij.to(k.dtype), v",
    "raw = ": "q, k.T -> ", "dP_ij = ": "do, v.T -> ", "Q_i @ K_j": "q, k", "Q_i @ V_j": "q, v",
    "dO_i @ K_j": "do, k", "dO_i @ V_j": "do, v",
    "DOT": 'tl.dot(q, k.T, input_precision="ieee")', "past = 0; shift = 0": "past = 0",
    "N_q - N_k; shift = N_q - N_k": "N_q - N_k",
    "shift = ": "offs_m[:, None] + past -> offs_m[:, None] + ", "shift": "past",
    "row = np.arange(B_r)": "offs_m = tl.arange(0, B_R)",
    "seen = cols[None, :]": "visible = offs_n[None, :]", "(seen, ": "(visible, ",
    "row[:, None]": "offs_m[:, None]", "len(K)": "N_k",
    "last = ": "(i + 1) * B_R + past -> past + ", "min(last +": "tl.minimum((i + 1) * B_R +",
    "min(": "tl.minimum(",
    ", B):": ", B_C):", "- B,": "- B_C,", "// B * B,": "// B_C * B_C,", "B_r": "B_R", "B_c": "B_C",
    "P_ij": "P", "S_ij": "S", "lse_i": "lse", "delta_i": "delta", "K_j": "k", "V_j": "v",
}  # fmt: skip
DROPOUT = {
    "kept = u": "RAND >= p -> RAND", "u = rand(": "RAND -> tl.rand(", "RAND": "tl.rand(seed, place)",
    "Z = np.where(kept, ": "1 / (1 - p), 0.0) -> ",
    "dropped = ": "(Z * dP -> (", "P_kept = ": "return Z * P -> return ", "P_kept": "Z * P", "dropped": "Z * dP",
    "[:, :, None]": "[:, None]",
    "+ c": "+ offs_n[None, :]", "+ r": "+ offs_m[:, None]", "0 * r": "0 * offs_m[:, None]",
    "seed + head[0, 0, 0]": "seed",
}  # fmt: skip
CAPPED = {
    "changed = ": "return ", ", s": ", cap * t", "return s": "return cap * t", "s = ": "cap * t -> ",
    "x = ": "2 * S / cap -> 2 * ", "t = x": "t = S / cap",
    "np.tanh(x)": "(1 - 2 / (tl.exp(2 * S / cap) + 1))", "np.tanh(x / 2)": "1 - 2 / (tl.exp(S / cap) + 1)",
    "np.clip(x, -1, 1)": "tl.clamp(S / cap, -1.0, 1.0)",
    "* x": "* S / cap", "-x": "-S / cap",
}  # fmt: skip

QUANTISE = {
    "q = ": "whole = ", "[:, None]": "", "np.asarray(X)": "x",
    "np.rint(X * scale)": "x * scale + 12582912.0 - 12582912.0",
    "2 * np.rint(X / scale / 2)": "x / scale + 25165824.0 - 25165824.0",
    "np.rint(X) / scale": "(x + 12582912.0 - 12582912.0) / scale", "np.rint(X)": "x + 12582912.0 - 12582912.0",
    "np.copysign(np.floor(np.abs(X / scale) + 0.5), X)":
    "tl.where(x < 0.0, -tl.floor(tl.abs(x / scale) + 0.5), tl.floor(tl.abs(x / scale) + 0.5))",
    "np.trunc(X / scale + 0.5)": "(x / scale + 0.5).to(tl.int32).to(tl.float32)",
    "np.trunc(X / scale)": "(x / scale).to(tl.int32).to(tl.float32)",
    "np.abs(X).mean(axis=1)": "tl.sum(tl.abs(x), axis=0) / d",
    "np.abs(X).sum(axis=1)": "tl.sum(tl.abs(x), axis=0)",
    "np.abs(X.max(axis=1))": "tl.abs(tl.max(x, axis=0))", "X.max(axis=1)": "tl.max(x, axis=0)",
    "X / scale": "x / scale", "return q * scale, scale": "offs, whole -> offs, whole * scale",
    "return q, ": "scale_ptr + row, scale -> scale_ptr + row, ",
}  # fmt: skip

TERMS = {
    "add": VECTOR | ADD | NUMPY,
    "scale_exp": VECTOR | SCALE_EXP | NUMPY,
    "causal_softmax": CAUSAL_SOFTMAX | NUMPY,
    "transpose": TRANSPOSE | NUMPY,
    "scores": TILE_OF_SCORES | NUMPY,
    "online_block": ONLINE_BLOCK | NUMPY,
    "row_lse": SCAN | LSE | UPDATE | NUMPY,
    "inner_loop": STEP | SCORES | DOT | {"seen": "visible"} | NUMPY,
    "causal_split": CAUSAL_SPLIT | NUMPY,
    "padded": PADDED,
    "alibi": {"penalty = ": "S - slope * distance -> S - "} | M_START,
    "attention": {"l == 0, 1,": "l == 0.0, 1.0,"} | M_START | NUMPY,
    "delta_kernel": DELTA_KERNEL | NUMPY,
    "dkv_loop": BACKWARD | DKV_LOOP | NUMPY,
    "dq_loop": BACKWARD | DQ_LOOP | NUMPY,
    "base_2": BASE_2 | STEP | DOT | NUMPY,
    "dropout": DROPOUT | NUMPY,
    "capped": CAPPED | NUMPY,
    "decode_part": STEP | SCORES | M_START | DECODE_PART | NUMPY,
    "append_kernel": APPEND_KERNEL | NUMPY,
    "whole_tiles": {"l == 0, 1,": "l == 0.0, 1.0,"} | M_START | NUMPY,
    "variant": {"l == 0, 1,": "l == 0.0, 1.0,"} | M_START | NUMPY,
    "quantise_rows": QUANTISE | NUMPY,
}
"""{exercise: {text of the model: text of the kernel}}."""

UNLIKE = {
    "alibi": {"slope_squared", "alpha_without_exp"},
    "append_kernel": {"slot_of_d"},
    "attention": {"by_column", "divided_twice", "by_all", "alpha_upside_down", "alpha_without_exp", "rounded"},
    "base_2": {"alpha_without_exp", "m_in_base_e"},
    "capped": {"twice", "one_minus", "tile_of_16"},
    "causal_split": {"end_from_full", "one_cut_tile"},
    "decode_part": {
        "heads_apart", "alpha_without_exp", "m_over_axis_0", "sum_over_axis_0", "sum_of_all_rows", "no_new_axis",
        "K_not_transposed", "first_score",
    },
    "delta_kernel": {"rounded_sum"},
    "dkv_loop": {"delta_over_queries", "one_shift"},
    "dq_loop": {"one_shift"},
    "dropout": {"one_place_on", "in_32_bits"},
    "inner_loop": {"alpha_without_exp", "one_shift"},
    "whole_tiles": {
        "by_column", "divided_twice", "by_all", "alpha_upside_down", "alpha_without_exp", "rounded", "grid_heads",
    },
    "variant": {
        "by_column", "divided_twice", "by_all", "alpha_upside_down", "alpha_without_exp", "rounded",
        "order_of_heads", "grid_heads",
    },
}  # fmt: skip
"""{exercise: mistakes of the model that the check of the kernel names otherwise, or finds without a name}."""
