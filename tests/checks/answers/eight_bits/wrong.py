"""Wrong answers: see `tests.checks.answers`."""


# round_e4m3, half_up: Python's way of rounding by hand
def my_round_e4m3(x):
    y = np.minimum(np.maximum(x, -448.0), 448.0)
    e = np.maximum(np.floor(np.log2(np.maximum(np.abs(y), 2.0**-20))), -6)
    step = np.exp2(e - 3)
    return step * np.floor(0.5 + y / step)


# round_e4m3, no_subnormal: three bits of mantissa for all
def my_round_e4m3(x):
    m, e = np.frexp(np.maximum(np.minimum(x, 448), -448))
    return np.ldexp(np.rint(m * 16) / 16, e)


# block_scale, no_abs: padded with zeros
def my_block_scale(X, block, largest):
    T = -(-len(X) // block)
    padded = np.full((T * block, X.shape[1]), -np.inf)
    padded[: len(X)] = X
    top = padded.reshape(T, -1).max(axis=1)
    return np.where(top == 0, 1, top / largest)


# int8_scores, raises: by hand, scales of the other
def my_int8_scores(Q8, q_scale, K8, k_scale, scale):
    S = np.zeros((len(Q8), len(K8)))
    for r in range(len(Q8)):
        for c in range(len(K8)):
            S[r, c] = (Q8[r].astype(int) * K8[c].astype(int)).sum() * q_scale[c] * k_scale[r] * scale
    return S


# e4m3_weights, l_rounded: rounded first
def my_e4m3_weights(S, m, times):
    P = lowbit.rounded(np.where(S == -np.inf, 0, np.exp(S - np.where(m == -np.inf, 0, m)[:, None])) * times, "e4m3")
    return P, P.sum(axis=1)


# rotate, signs_after: with the matrix
def my_rotate(X, signs):
    d = X.shape[1]
    return X @ lowbit.hadamard(d) * signs / np.sqrt(d)


# rotate, divided_by_d: with the matrix
def my_rotate(X, signs):
    return (X * signs) @ lowbit.hadamard(len(signs)) / len(signs)


# short_sum, one_by_one: a loop
def my_short_sum(terms):
    total = 0.0
    for t in terms:
        e = np.frexp(max(abs(t), abs(total)))[1] - 1
        u = 2.0 ** (e - 13)
        total = (np.trunc(t / u) + np.trunc(total / u)) * u
    return total


# short_sum, all_at_once: one unit for all
def my_short_sum(terms):
    if len(terms) == 0:
        return 0.0
    unit = 2.0 ** (np.frexp(np.abs(terms).max())[1] - 14)
    return (np.trunc(terms / unit) * unit).sum()


# two_levels, one_level: start goes on
def my_two_levels(alphas, P, V, product):
    O = np.zeros((P.shape[1], V.shape[2]))
    for j in range(len(P)):
        O = product(P[j], V[j], O * alphas[j][:, None])
    return O


# by_cause, all_but_one: with norms
def my_by_cause(attend, causes):
    exact = attend(set())
    return np.array([np.linalg.norm(attend({c for c in causes if c != one}) - exact) / np.linalg.norm(exact) for one in causes])


# quantise_rows, half_away: by sizes
@triton.jit
def sizes_kernel(x_ptr, y_ptr, s_ptr, stride_x, stride_y, d, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * stride_x + c, mask=c < d, other=0.0)
    top = tl.max(tl.abs(x), axis=0)
    s = tl.where(top > 0.0, top / 127.0, 1.0)
    size = tl.floor(tl.abs(x) / s + 0.5)
    tl.store(y_ptr + r * stride_y + c, tl.where(x < 0.0, -size, size), mask=c < d)
    tl.store(s_ptr + r, s)


def my_quantise_rows(X, X8, scale):
    n, d = X.shape
    sizes_kernel[(n,)](X, X8, scale, X.stride(0), X8.stride(0), d, B=triton.next_power_of_2(d))


# short_sum, without_total and bits: the exponent of frexp, of the terms alone
def my_short_sum(terms):
    total = 0.0
    for at in range(0, len(terms), 32):
        step = terms[at : at + 32]
        unit = 2.0 ** (np.frexp(np.abs(step).max())[1] - 13)
        total = np.trunc(total / unit) * unit + (np.trunc(step / unit) * unit).sum()
    return total


# round_e4m3, half_down: the first of the nearest, by search from the lowest on
def my_round_e4m3(x):
    sizes = [k * 2.0**-9 for k in range(8)] + [2.0**e * (1 + f / 8) for e in range(-6, 9) for f in range(8)]
    numbers = np.unique([s * size for size in sizes[:-1] for s in (-1, 1)])
    return numbers[np.abs(numbers[:, None] - x).argmin(axis=0)]


# round_e4m3, half_to_0: the first of the nearest, among sizes
def my_round_e4m3(x):
    sizes = [k * 2.0**-9 for k in range(8)] + [2.0**e * (1 + f / 8) for e in range(-6, 9) for f in range(8)]
    return np.array([np.sign(v) * min(sizes[:-1], key=lambda size: abs(size - min(abs(v), 448))) for v in x])


# block_scale, at_least_one: meant for a block of zeros
def my_block_scale(X, block, largest):
    scales = []
    for start in range(0, len(X), block):
        scales.append(max(np.abs(X[start : start + block]).max() / largest, 1.0))
    return np.array(scales)


# int8_scores, in_fp16: einsum, as 8 bits fit in 16
def my_int8_scores(Q8, q_scale, K8, k_scale, scale):
    S = np.einsum("rd,cd->rc", Q8.astype("float16"), K8.astype("float16"))
    return S.astype(float) * np.outer(q_scale, k_scale) * scale


# e4m3_weights, times_256: 8 is added to the exponent
def my_e4m3_weights(S, m, times):
    shift = np.where(np.isinf(m), 0.0, m)
    P = np.exp2((S - shift[:, None]) * np.log2(np.e) + 8)
    return lowbit.rounded(P, "e4m3"), P.sum(axis=1)


# rotate, overwritten: in its place
def my_rotate(X, signs):
    Y, d = X * signs, X.shape[1]
    step = 1
    while step < d:
        for at in range(0, d, 2 * step):
            a, b = Y[:, at : at + step], Y[:, at + step : at + 2 * step]
            a += b
            b[:] = a - b
        step *= 2
    return Y / np.sqrt(d)


# rotate, joined: halves side by side
def my_rotate(X, signs):
    N, d = X.shape
    Y, half = X * signs, 1
    while half < d:
        groups = Y.reshape(N, d // (2 * half), 2, half)
        total, difference = groups[:, :, 0] + groups[:, :, 1], groups[:, :, 0] - groups[:, :, 1]
        Y = np.concatenate([total.reshape(N, -1), difference.reshape(N, -1)], axis=1)
        half *= 2
    return Y / np.sqrt(d)


# rotate, root_of_2: as in two dimensions
def my_rotate(X, signs):
    return (X * signs) @ lowbit.hadamard(X.shape[1]) / 2**0.5


# add_means, times_base_2: 8 is taken off
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    seen = l > 0
    total = np.where(seen, l, 1.0)
    O = O_acc * (v_scale / total)[:, None] + v_mean
    lse = m + q_mean + np.log(total) - np.log2(times)
    return np.where(seen[:, None], O, 0.0), np.where(seen, lse, -np.inf)


# add_means, q_mean_in_O: both means are added to O
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    O, lse = np.zeros(O_acc.shape), np.full(len(l), -np.inf)
    for r in np.flatnonzero(l):
        O[r] = O_acc[r] / l[r] * v_scale + v_mean + q_mean[r]
        lse[r] = m[r] + np.log(l[r] / times) + q_mean[r]
    return O, lse


# short_sum, exponent_cut: whole exponents by int
def my_short_sum(terms):
    total = 0.0
    for at in range(0, len(terms), 32):
        x = np.append(terms[at : at + 32], total)
        if not x.any():
            continue
        unit = 2.0 ** (int(np.log2(abs(x).max())) - 13)
        total = (np.trunc(x / unit) * unit).sum()
    return total


# short_sum, no_exponent: log2
def my_short_sum(terms):
    total = 0.0
    for at in range(0, len(terms), 32):
        x = np.append(terms[at : at + 32], total)
        unit = np.exp2(np.floor(np.log2(np.abs(x).max())) - 13)
        total = (np.trunc(x / unit) * unit).sum()
    return total


# short_sum, step: the sum so far is one of 32
def my_short_sum(terms):
    total, rest = 0.0, list(terms)
    while rest:
        x, rest = np.array([total, *rest[:31]]), rest[31:]
        unit = np.ldexp(1.0, np.frexp(np.abs(x).max())[1] - 14)
        total = (np.trunc(x / unit) * unit).sum()
    return total


# short_sum, only_total: the exponent is that of the sum, once there is one
def my_short_sum(terms):
    total = 0.0
    for at in range(0, len(terms), 32):
        step = terms[at : at + 32]
        e = np.frexp(abs(total) if total else np.abs(step).max())[1] - 1
        unit = 2.0 ** (e - 13)
        total = (np.trunc(step / unit).sum() + np.trunc(total / unit)) * unit
    return total


# two_levels, one_product: the tiles are joined, and P is scaled before
def my_two_levels(alphas, P, V, product):
    weights = [P[j] * np.prod(alphas[j + 1 :], axis=0)[:, None] for j in range(len(P))]
    return product(np.concatenate(weights, axis=1), np.concatenate(list(V), axis=0))


# by_cause, summed: norm over the root of the mean
def my_by_cause(attend, causes):
    exact = attend(set())
    return np.array([np.linalg.norm(attend({c}) - exact) / np.sqrt((exact**2).mean()) for c in causes])


# by_cause, spread: standard deviations
def my_by_cause(attend, causes):
    exact = attend(set())
    return np.array([np.std(attend({c}) - exact) / np.std(exact) for c in causes])


# by_cause, spectral: norms of order 2
def my_by_cause(attend, causes):
    exact = attend(set())
    return np.array([np.linalg.norm(attend({c}) - exact, ord=2) / np.linalg.norm(exact, ord=2) for c in causes])


# by_cause, size_of_each: the size of what came out
def my_by_cause(attend, causes):
    exact, errors = attend(set()), []
    for cause in causes:
        O = attend({cause})
        errors.append(np.linalg.norm(O - exact) / np.linalg.norm(O))
    return np.array(errors)


# by_cause, raises: a text in place of a set
def my_by_cause(attend, causes):
    exact = attend(set())
    return np.array([np.linalg.norm(attend(cause) - exact) / np.linalg.norm(exact) for cause in causes])


# quantise_rows, rounded_before: the division comes last
@triton.jit
def before_kernel(x_ptr, y_ptr, s_ptr, stride_x, stride_y, d, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * stride_x + c, mask=c < d, other=0.0)
    top = tl.max(tl.abs(x), axis=0)
    s = tl.where(top > 0.0, top / 127.0, 1.0)
    magic = 1.5 * 8388608.0
    tl.store(y_ptr + r * stride_y + c, (x + magic - magic) / s, mask=c < d)
    tl.store(s_ptr + r, s)


def my_quantise_rows(X, X8, scale):
    n, d = X.shape
    before_kernel[(n,)](X, X8, scale, X.stride(0), X8.stride(0), d, B=triton.next_power_of_2(d))


# quantise_rows, partly_written: a block of 128 for rows of any length
@triton.jit
def short_kernel(x_ptr, y_ptr, s_ptr, stride_x, stride_y, d, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * stride_x + c, mask=c < d, other=0.0)
    top = tl.max(tl.abs(x), axis=0)
    s = tl.where(top > 0.0, top / 127.0, 1.0)
    tl.store(y_ptr + r * stride_y + c, x / s + 12582912.0 - 12582912.0, mask=c < d)
    tl.store(s_ptr + r, s)


def my_quantise_rows(X, X8, scale):
    short_kernel[(len(X),)](X, X8, scale, X.stride(0), X8.stride(0), X.shape[1], B=128)


# rotate, matrix_made: with a matrix of its own
def my_rotate(X, signs):
    H = np.ones((1, 1))
    while len(H) < X.shape[1]:
        H = np.block([[H, H], [H, -H]])
    return (X * signs) @ H / np.sqrt(len(H))


# rotate, matrix_made: by np.kron, in a matrix of its own
def my_rotate(X, signs):
    d, H = X.shape[1], np.array([[1.0]])
    for _ in range(d.bit_length() - 1):
        H = np.kron(H, [[1.0, 1.0], [1.0, -1.0]])
    return np.where(signs > 0, X, -X) @ H * (1 / np.sqrt(d))


# rotate, matrix_made: the matrix of the chapter
def my_rotate(X, signs):
    def doubled(d):
        H = np.ones((1, 1))
        while len(H) < d:
            H = np.block([[H, H], [H, -H]])
        return H

    d = X.shape[1]
    return (X * signs) @ doubled(d) / np.sqrt(d)


# repaired, by_inputs_e4m3: the plain way
def my_repaired(Q, K, V, core):
    scale = 1 / np.sqrt(Q.shape[1])
    q_scale, k_scale, v_scale = (np.abs(X).max() / 448 for X in (Q, K, V))
    O = np.empty(Q.shape)
    for rows in tiled.blocks(len(Q), 128):
        m, l, O_acc = -np.inf, 0.0, np.zeros_like(Q[rows])
        for cols in tiled.blocks(len(K), 128):
            S = core.scores(Q[rows] / q_scale, K[cols] / k_scale, "e4m3") * (q_scale * k_scale * scale)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            alpha = np.exp(m_old - m)
            P = np.exp(S - m[:, None])
            l = alpha * l + P.sum(axis=1)
            O_acc = core.values(P, V[cols] / v_scale, alpha[:, None] * O_acc)
        O[rows] = O_acc / l[:, None] * v_scale
    return core.stored(O, "e4m3")


# repaired, by_inputs_int8: not rotated, with a scale for each row, where rounding V makes more but has to stay
def my_repaired(Q, K, V, core):
    scale = 1 / np.sqrt(Q.shape[1])
    q_scale, k_scale = (np.abs(X).max(axis=1, keepdims=True) / 127 for X in (Q, K))
    v_scale = np.abs(V).max() / 448
    O = np.empty(Q.shape)
    for rows in tiled.blocks(len(Q), 128):
        m, l, O_acc = -np.inf, 0.0, np.zeros_like(Q[rows])
        for cols in tiled.blocks(len(K), 128):
            S = core.scores(Q[rows] / q_scale[rows], K[cols] / k_scale[cols], "int8") * scale
            S = S * q_scale[rows] * k_scale[cols].T
            m_old, m = m, np.maximum(m, S.max(axis=1))
            alpha = np.exp(m_old - m)
            P = np.exp(S - m[:, None]) * 256
            l = alpha * l + P.sum(axis=1)
            O_acc = alpha[:, None] * O_acc + core.values(P, V[cols] / v_scale)
        O[rows] = O_acc / l[:, None] * v_scale
    return core.stored(O, "bf16")


# repaired, by_sums: one sum over all tiles, V without its mean, which does not help where the mean drifts
def my_repaired(Q, K, V, core):
    mean = V.mean(0, keepdims=True)
    Q, K, V = lowbit.rotated(Q), lowbit.rotated(K - K.mean(0)), V - mean
    a, b, c = np.abs(Q).max() / 127, np.abs(K).max() / 127, np.abs(V).max() / 448
    S = core.scores(Q / a, K / b, "int8") * (a * b * Q.shape[1] ** -0.5)
    P = 256 * np.exp(S - S.max(axis=1, keepdims=True))
    O = core.values(P, V / c) * c / P.sum(axis=1, keepdims=True) + mean
    return core.stored(O, "bf16")


# repaired, past_the_core: no tensor core at all
def my_repaired(Q, K, V, core):
    S = Q @ K.T / np.sqrt(Q.shape[1])
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return core.stored(P @ V / P.sum(axis=1, keepdims=True), "bf16")
