"""Solutions of this chapter."""

# ruff: noqa: I001
from importlib.util import find_spec

import numpy as np

from flashlib import lowbit, tiled

if find_spec("triton"):  # the last solution alone needs it
    import flashlib.kernels  # noqa: F401  before triton
    import triton
    import triton.language as tl


# exercise: round_e4m3
def my_round_e4m3(x):
    y = np.clip(x, -448, 448)
    exponent = np.frexp(y)[1] - 1
    spacing = 2.0 ** (np.maximum(exponent, -6) - 3)
    return np.rint(y / spacing) * spacing


# exercise: block_scale
def my_block_scale(X, block, largest):
    starts = range(0, len(X), block)
    top = np.array([np.abs(X[start : start + block]).max() for start in starts])
    return np.where(top == 0, 1, top / largest)


# exercise: int8_scores
def my_int8_scores(Q8, q_scale, K8, k_scale, scale):
    S = Q8.astype(np.int32) @ K8.astype(np.int32).T
    return S * (q_scale[:, None] * k_scale * scale)


# exercise: e4m3_weights
def my_e4m3_weights(S, m, times):
    shift = np.where(m == -np.inf, 0, m)
    P = np.exp(S - shift[:, None]) * times
    return lowbit.rounded(P, "e4m3"), P.sum(axis=1)


# exercise: rotate
def my_rotate(X, signs):
    N, d = X.shape
    Y = X * signs
    half = 1
    while half < d:
        pairs = Y.reshape(N, -1, 2, half)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        Y = np.stack([a + b, a - b], axis=2).reshape(N, d)
        half = 2 * half
    return Y / np.sqrt(d)


# exercise: add_means
def my_add_means(O_acc, l, m, times, v_scale, v_mean, q_mean):
    seen = l > 0
    divisor = np.where(seen, l, 1)[:, None]
    O = O_acc / divisor * v_scale + v_mean
    lse = m + np.log(np.where(seen, l, 1) / times) + q_mean
    return np.where(seen[:, None], O, 0), np.where(seen, lse, -np.inf)


# exercise: short_sum
def my_short_sum(terms):
    total = 0.0
    for start in range(0, len(terms), 32):
        parts = np.append(terms[start : start + 32], total)
        exponent = np.frexp(np.abs(parts).max())[1] - 1
        unit = 2.0 ** (exponent - 13)
        cut = np.trunc(parts / unit)
        total = cut.sum() * unit
    return total


# exercise: two_levels
def my_two_levels(alphas, P, V, product):
    O_acc = np.zeros((P.shape[1], V.shape[2]))
    for alpha, P_j, V_j in zip(alphas, P, V, strict=True):
        O_acc = alpha[:, None] * O_acc + product(P_j, V_j)
    return O_acc


# exercise: by_cause
def my_by_cause(attend, causes):
    exact = attend(set())
    size = np.sqrt((exact**2).mean())
    errors = [attend({cause}) - exact for cause in causes]
    return np.array([np.sqrt((error**2).mean()) / size for error in errors])


# exercise: repaired
def my_repaired(Q, K, V, core):
    scale, v_mean = 1 / np.sqrt(Q.shape[1]), V.mean(axis=0)
    Q, K, V = lowbit.rotated(Q), lowbit.rotated(K - K.mean(axis=0)), V - v_mean
    q_scale, k_scale, v_scale = np.abs(Q).max() / 127, np.abs(K).max() / 127, np.abs(V).max() / 448
    O = np.empty(Q.shape)
    for rows in tiled.blocks(len(Q), 128):
        m, l, O_acc = -np.inf, 0.0, 0.0
        for cols in tiled.blocks(len(K), 128):
            S = core.scores(Q[rows] / q_scale, K[cols] / k_scale, "int8") * (q_scale * k_scale * scale)
            m_old, m = m, np.maximum(m, S.max(axis=1))
            alpha = np.exp(m_old - m)
            P = np.exp(S - m[:, None]) * 256
            l = alpha * l + P.sum(axis=1)
            O_acc = alpha[:, None] * O_acc + core.values(P, V[cols] / v_scale)
        O[rows] = O_acc / l[:, None] * v_scale + v_mean
    return core.stored(O, "bf16")


# exercise: quantise_rows
@triton.jit
def quantise_kernel(X_ptr, X8_ptr, scale_ptr, stride_x, stride_8, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(X_ptr + row * stride_x + offs, mask=offs < d, other=0.0)
    top = tl.max(tl.abs(x), axis=0)
    scale = tl.where(top == 0.0, 1.0, top / 127)
    whole = x / scale + 12582912.0 - 12582912.0
    tl.store(X8_ptr + row * stride_8 + offs, whole, mask=offs < d)
    tl.store(scale_ptr + row, scale)


def my_quantise_rows(X, X8, scale):
    N, d = X.shape
    quantise_kernel[(N,)](X, X8, scale, X.stride(0), X8.stride(0), d, BLOCK=triton.next_power_of_2(d))
