"""Solutions of this chapter."""

from flashlib import cost


# exercise: fa2_bytes
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    T_r = -(-N_q // B_r)
    Q = O = N_q * d * itemsize
    K = V = N_k * d * itemsize
    lse = 4 * N_q
    return Q + T_r * (K + V) + O + lse


# exercise: causal_bytes
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    T_r = -(-N // B_r)
    rows_read = 0  # of K, and as many of V
    for i in range(T_r):
        seen = min((i + 1) * B_r, N)  # keys, by the last row of the block
        tiles = -(-seen // B_c)
        rows_read += min(tiles * B_c, N)
    return (2 * N + 2 * rows_read) * d * itemsize + 4 * N


# exercise: break_even
def my_break_even(N, d, itemsize):
    dtype = "float16" if itemsize == 2 else "float32"
    standard = cost.standard_traffic(N, N, d, dtype=dtype).total
    for B_r in range(1, N + 1):
        T_r = -(-N // B_r)
        flash = (2 + 2 * T_r) * N * d * itemsize + 4 * N
        if flash < standard:
            return B_r


# exercise: largest_tile
def my_largest_tile(capacity, B_c, d, itemsize):
    keys = 2 * B_c * d * itemsize  # K_j and V_j, whatever B_r is
    row = d * itemsize + 4 * (d + B_c + 2)  # of Q_i; of O_acc, S_ij, m and l
    return max(0, (capacity - keys) // row)
