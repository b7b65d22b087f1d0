"""Right answers in other styles: see `tests.checks.answers`."""


# fa2_bytes: a loop over row blocks
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    moved, row = 0, 0
    while row < N_q:
        rows = min(B_r, N_q - row)
        moved += rows * d * itemsize  # load Q_i
        moved += sum(d * itemsize for _ in range(2)) * N_k
        moved += rows * d * itemsize + rows * 4
        row += rows
    return moved


# fa2_bytes: numpy's whole numbers
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    import numpy as np

    visits = len(np.arange(0, N_q, B_r))
    return np.int64(4 * N_q) + np.dot([2, 2 * visits], [N_q, N_k]) * d * itemsize


# fa2_bytes: an exact fraction, rounded up
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    from fractions import Fraction
    from math import ceil

    row = Fraction(d * itemsize)
    return 2 * N_q * row + 2 * ceil(Fraction(N_q, B_r)) * N_k * row + 4 * N_q


# fa2_bytes: by flashlib's function
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    return cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=3, dtype={2: "bfloat16", 4: "float32"}[itemsize]).total


# causal_bytes: a mask, of which tiles are asked
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    import numpy as np

    mask = np.tri(N, dtype=bool)
    read = 0
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            tile = mask[i : i + B_r, j : j + B_c]
            if tile.any():
                read += tile.shape[1]
    return np.multiply(2 * N + 2 * read, d * itemsize) + 4 * N


# causal_bytes: the last row of each block, as an array
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    import numpy as np

    last = np.minimum(np.arange(B_r, N + B_r, B_r), N) - 1
    keys = np.minimum((last // B_c + 1) * B_c, N).sum()
    return int(2 * d * itemsize * (N + keys) + 4 * N)


# break_even: solved for T_r
def my_break_even(N, d, itemsize):
    T_r = 1
    while d * (T_r + 1) < d + 2 * N:
        T_r += 1
    return -(-N // T_r)


# break_even: halved until found
def my_break_even(N, d, itemsize):
    low, high = 1, N
    while low < high:
        B_r = (low + high) // 2
        if d * ((N + B_r - 1) // B_r) < d + 2 * N:
            high = B_r
        else:
            low = B_r + 1
    return low


# break_even: numpy's first True
def my_break_even(N, d, itemsize):
    import numpy as np

    sizes = np.arange(1, N + 1)
    moved = (2 * N - 2 * N * (-N // sizes)) * d * itemsize + 4 * N
    return sizes[moved < 4 * (N * d + N * N) * itemsize + 4 * N][0]


# break_even: flashlib's functions, all sizes
def my_break_even(N, d, itemsize):
    dtype = "float16" if itemsize == 2 else "float32"
    limit = cost.standard_traffic(N, N, d, dtype=dtype).total
    return min(B for B in range(1, N + 1) if cost.fa2_traffic(N, N, d, B_r=B, B_c=N, dtype=dtype).total < limit)


# largest_tile: row by row
def my_largest_tile(capacity, B_c, d, itemsize):
    dtype = "float16" if itemsize == 2 else "float32"
    B_r = 0
    while cost.sram_bytes(B_r + 1, B_c, d, dtype) <= capacity:
        B_r += 1
    return B_r


# largest_tile: divmod, and numpy's whole numbers
def my_largest_tile(capacity, B_c, d, itemsize):
    import numpy as np

    rows, _ = divmod(capacity - 2 * B_c * d * itemsize, d * itemsize + 4 * d + 4 * B_c + 8)
    return np.maximum(rows, 0)


# largest_tile: in units of 2 bytes
def my_largest_tile(capacity, B_c, d, itemsize):
    n = itemsize // 2
    left = capacity // 2 - 2 * B_c * d * n
    return left // (d * n + 2 * d + 2 * B_c + 4) if left > 0 else 0
