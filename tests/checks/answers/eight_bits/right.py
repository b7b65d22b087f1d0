"""Right answers in other styles: see `tests.checks.answers`."""


# round_e4m3: the nearest of all numbers, by search
def my_round_e4m3(x):
    sizes = [k * 2.0**-9 for k in range(8)] + [2.0**e * (1 + f / 8) for e in range(-6, 9) for f in range(8)]
    sizes = np.array(sizes[:-1])  # the last would be 480
    out = np.zeros(len(x))
    for i, v in enumerate(x):
        distance = np.abs(sizes - min(abs(v), 448))
        best = np.flatnonzero(distance == distance.min())
        k = best[0] if len(best) == 1 or best[0] % 2 == 0 else best[1]
        out[i] = np.sign(v) * sizes[k]
    return out


# round_e4m3: through fp32, whose bits are rounded
def my_round_e4m3(x):
    y = np.abs(x)
    y = np.where(y > 448, 448.0, y)
    e = np.floor(np.log2(np.where(y == 0, 1.0, y)))
    step = np.exp2(np.where(e < -6, -6, e) - 3)
    k = np.floor(y / step)
    rest = y / step - k
    k = k + ((rest > 0.5) | ((rest == 0.5) & (k % 2 == 1)))
    return np.copysign(k * step, x)


# round_e4m3: by adding and subtracting a number that is large enough
def my_round_e4m3(x):
    y = np.minimum(np.maximum(x, -448.0), 448.0)
    _, e = np.frexp(y)
    magic = np.ldexp(1.5, np.maximum(e - 1, -6) - 3 + 52)
    return (y + magic) - magic


# block_scale: with padding
def my_block_scale(X, block, largest):
    N, d = X.shape
    T = -(-N // block)
    padded = np.zeros((T * block, d))
    padded[:N] = np.abs(X)
    top = padded.reshape(T, block * d).max(axis=1)
    scale = top / largest
    scale[top == 0] = 1
    return scale


# block_scale: reduceat
def my_block_scale(X, block, largest):
    top = np.maximum.reduceat(np.maximum(X, -X).max(axis=1), np.arange(0, len(X), block))
    return np.array([t / largest if t > 0 else 1.0 for t in top])


# int8_scores: in floating point
def my_int8_scores(Q8, q_scale, K8, k_scale, scale):
    q = Q8.astype(np.float64) * q_scale.reshape(-1, 1)
    k = K8.astype(np.float64) * k_scale.reshape(-1, 1)
    return scale * q @ k.T


# int8_scores: einsum
def my_int8_scores(Q8, q_scale, K8, k_scale, scale):
    S = np.einsum("rd,cd->rc", Q8.astype(np.int64), K8.astype(np.int64))
    return np.diag(q_scale * scale) @ S @ np.diag(k_scale)


# e4m3_weights: row by row
def my_e4m3_weights(S, m, times):
    P = np.zeros(S.shape)
    for r in range(len(S)):
        if m[r] > -np.inf:
            P[r] = times * np.exp(S[r] - m[r])
    return lowbit.rounded(P, "e4m3"), np.array([row.sum() for row in P])


# e4m3_weights: the factor in the exponent
def my_e4m3_weights(S, m, times):
    with np.errstate(invalid="ignore"):
        P = np.nan_to_num(np.exp(S - m[:, None] + np.log(times)), nan=0.0)
    if times == 1:
        P = np.minimum(P, 1.0)
    return lowbit.rounded(np.minimum(P, 448), "e4m3"), np.sum(P, axis=-1)


# rotate: from halves to neighbours
def my_rotate(X, signs):
    Y, d = X * signs, X.shape[1]
    half = d // 2
    while half:
        out = np.empty_like(Y)
        for start in range(0, d, 2 * half):
            a, b = Y[:, start : start + half], Y[:, start + half : start + 2 * half]
            out[:, start : start + half] = a + b
            out[:, start + half : start + 2 * half] = a - b
        Y = out
        half //= 2
    return Y * d**-0.5


# rotate: each step divided by the root of 2, recursively
def my_rotate(X, signs):
    def turned(Y):
        d = Y.shape[1]
        if d == 1:
            return Y
        a, b = turned(Y[:, : d // 2]), turned(Y[:, d // 2 :])
        return np.concatenate([a + b, a - b], axis=1) / 2**0.5

    return turned(np.asarray(X) * signs[None, :])


# add_means: row by row
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    O, lse = np.zeros(O_acc.shape), np.full(len(l), -np.inf)
    for r in range(len(l)):
        if l[r]:
            O[r] = v_scale * O_acc[r] / l[r] + v_mean
            lse[r] = m[r] + np.log(l[r]) - np.log(times) + q_mean[r]
    return O, lse


# add_means: warnings are silenced
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    with np.errstate(all="ignore"):
        O = (O_acc * v_scale + l[:, None] * v_mean) / l[:, None]
        lse = m + q_mean + np.log(l / times)
    return np.where(l[:, None] == 0, 0.0, O), np.where(l == 0, -np.inf, lse)


# short_sum: with whole numbers
def my_short_sum(terms):
    total = 0.0
    for at in range(0, len(terms), 32):
        numbers = [total] + [float(t) for t in terms[at : at + 32]]
        largest = max(abs(n) for n in numbers)
        if largest == 0:
            continue
        e = int(np.floor(np.log2(largest)))
        e += (2.0 ** (e + 1) <= largest) - (2.0**e > largest)
        total = sum(int(n * 2.0 ** (13 - e)) for n in numbers) * 2.0 ** (e - 13)
    return total


# short_sum: remainders are subtracted
def my_short_sum(terms):
    total, rest = 0.0, np.asarray(terms, dtype=float)
    while len(rest):
        step, rest = rest[:32], rest[32:]
        e = np.frexp(max(np.abs(step).max(), abs(total)))[1]
        unit = np.ldexp(1.0, e - 14)
        total = (step - np.fmod(step, unit)).sum() + (total - np.fmod(total, unit))
    return total


# two_levels: the factors are multiplied at the end
def my_two_levels(alphas, P, V, product):
    T = len(P)
    O = 0
    for j in range(T):
        later = np.ones(P.shape[1])
        for i in range(j + 1, T):
            later = later * alphas[i]
        O = O + later[:, None] * product(P[j], V[j])
    return O


# two_levels: start is 0
def my_two_levels(alphas, P, V, product):
    O = product(P[0], V[0], np.zeros((P.shape[1], V.shape[2])))
    for j in range(1, len(P)):
        O = O * alphas[j].reshape(-1, 1)
        O += product(P[j], V[j], np.zeros(O.shape))
    return O


# by_cause: with norms
def my_by_cause(attend, causes):
    exact = attend(set())
    return [np.linalg.norm(attend({c}) - exact) / np.linalg.norm(exact) for c in causes]


# by_cause: sums of squares
def my_by_cause(attend, causes):
    exact, out = attend(set()), []
    for cause in causes:
        O = attend(set([cause]))
        out.append(float(((O - exact) ** 2).sum() / (exact**2).sum()) ** 0.5)
    return np.array(out)


# quantise_rows: floor, with ties seen to
@triton.jit
def rows_kernel(x_ptr, y_ptr, s_ptr, stride_x, stride_y, d, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * stride_x + c, mask=c < d, other=0.0)
    top = tl.max(tl.where(x < 0.0, -x, x), axis=0)
    s = top / 127.0
    s = tl.where(s > 0.0, s, 1.0)
    y = x / s
    low = tl.floor(y)
    rest = y - low
    odd = low - 2.0 * tl.floor(low / 2.0)
    up = (rest > 0.5) | ((rest == 0.5) & (odd == 1.0))
    tl.store(y_ptr + r * stride_y + c, tl.where(up, low + 1.0, low), mask=c < d)
    tl.store(s_ptr + r, s)


def my_quantise_rows(X, X8, scale):
    n, d = X.shape
    rows_kernel[(n,)](X, X8, scale, X.stride(0), X8.stride(0), d, B=triton.next_power_of_2(d))


# repaired: a scale for each row, two levels, V as it is
def my_repaired(Q, K, V, core):
    d = Q.shape[1]
    Q, K = lowbit.rotated(Q, seed=7), lowbit.rotated(K - K.mean(axis=0), seed=7)
    q_scale, k_scale = (np.abs(X).max(axis=1, keepdims=True) / 127 for X in (Q, K))
    v_scale = np.abs(V).max(axis=0) / 448
    O = np.empty((len(Q), V.shape[1]))
    for rows in tiled.blocks(len(Q), 64):
        m = np.full(len(Q[rows]), -np.inf)
        l = np.zeros_like(m)
        O_acc = np.zeros((len(m), V.shape[1]))
        for cols in tiled.blocks(len(K), 96):
            S = core.scores(Q[rows] / q_scale[rows], K[cols] / k_scale[cols], "int8")
            S = S * q_scale[rows] * k_scale[cols].T / np.sqrt(d)
            m_new = np.maximum(m, S.max(axis=1))
            P = np.exp(S - m_new[:, None])
            alpha = np.exp(m - m_new)
            l, m = alpha * l + P.sum(axis=1), m_new
            O_acc = O_acc * alpha[:, None] + core.values(256 * P, V[cols] / v_scale) / 256
        O[rows] = O_acc / l[:, None] * v_scale
    return core.stored(O, "bf16")


# repaired: the whole row at once, and short sums over a few keys
def my_repaired(Q, K, V, core):
    mean = V.mean(0, keepdims=True)
    Q, K, V = lowbit.rotated(Q), lowbit.rotated(K - K.mean(0)), V - mean
    a, b, c = np.abs(Q).max() / 127, np.abs(K).max() / 127, np.abs(V).max() / 448
    S = core.scores(Q / a, K / b, "int8") * (a * b * Q.shape[1] ** -0.5)
    P = 256 * np.exp(S - S.max(axis=1, keepdims=True))
    O_acc = sum(core.values(P[:, at : at + 200], V[at : at + 200] / c) for at in range(0, len(K), 200))
    return core.stored(O_acc * c / P.sum(axis=1, keepdims=True) + mean, "bf16")
