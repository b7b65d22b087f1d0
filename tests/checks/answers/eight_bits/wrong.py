"""Wrong answers to the exercises of chapter 18: see `tests.checks.answers`."""


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


# add_means, times_in_lse: row by row
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    O, lse = np.zeros(O_acc.shape), np.full(len(l), -np.inf)
    for r in range(len(l)):
        if l[r] > 0:
            O[r] = O_acc[r] / l[r] * v_scale + v_mean
            lse[r] = m[r] + np.log(l[r]) + q_mean[r]
    return O, lse


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
