"""Wrong answers: see `tests.checks.answers`."""


# fa2_bytes, rows_padded: a loop over whole blocks
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    total = 0
    for start in range(0, N_q, B_r):
        total += B_r * d * itemsize  # load Q_i
        total += 2 * N_k * d * itemsize  # stream K and V
        total += B_r * d * itemsize + 4 * B_r  # store O_i and lse_i
    return total


# fa2_bytes, read_once: a loop, K and V before it
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    total = 2 * itemsize * N_k * d
    row = 0
    while row < N_q:
        rows = min(B_r, N_q - row)
        total += rows * (2 * d * itemsize + 4)
        row += B_r
    return total


# fa2_bytes, float: np.ceil
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    import numpy as np

    visits = np.ceil(N_q / B_r)
    return (2 * N_q * d + visits * 2 * N_k * d) * itemsize + N_q * 4


# fa2_bytes, float: an array of one float
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    import numpy as np

    moved = np.array([N_q, -(-N_q // B_r) * N_k, -(-N_q // B_r) * N_k, N_q]) * d * itemsize
    return np.asarray(moved.sum() + 4.0 * N_q)


# fa2_bytes, fixed_itemsize: fp16 by name
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    import numpy as np

    size = np.dtype("float16").itemsize
    blocks = (N_q + B_r - 1) // B_r
    return int((2 * N_q + 2 * blocks * N_k) * d * size + 4 * N_q)


# fa2_bytes, fixed_B_r: blocks of 64 rows
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize, block=64):
    moved = 4 * N_q
    for start in range(0, N_q, block):
        rows = min(block, N_q - start)
        moved += (2 * rows + 2 * N_k) * d * itemsize
    return moved


# fa2_bytes, fixed_d: heads of 64 columns
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    row = 64 * itemsize
    return 2 * N_q * row + 2 * N_k * row * (1 + (N_q - 1) // B_r) + 4 * N_q


# fa2_bytes, not_rounded: the last block pays its share alone
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    moved = 4 * N_q
    for start in range(0, N_q, B_r):
        rows = min(B_r, N_q - start)
        moved += 2 * rows * d * itemsize + 2 * N_k * d * itemsize * rows / B_r
    return moved


# fa2_bytes, lse_missing and rounded_down: two slips
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    return (2 * N_q + 2 * N_k * (N_q // B_r)) * d * itemsize


# fa2_bytes, one_of_K_V and lse_itemsize: two slips, V and the bytes of lse
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    numbers = 0
    for start in range(0, N_q, B_r):
        numbers += 2 * min(B_r, N_q - start) * d + N_k * d
    return (numbers + N_q) * itemsize


# causal_bytes, halved: half of everything
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    T_r = -(-N // B_r)
    Q = K = V = O = N * d * itemsize
    return (Q + T_r * (K + V) + O + 4 * N) // 2


# causal_bytes, exchanged: the loops turned round
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    visits = 0
    for j in range(0, N, B_c):
        for i in range(0, N, B_r):
            if i <= min(j + B_c, N) - 1:
                visits += min(B_r, N - i)
    return N * (2 * d * itemsize + 4) + visits * 2 * d * itemsize


# causal_bytes, upside_down: tile by tile
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 2 * N
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            if min(j + B_c, N) - 1 >= i:
                rows += 2 * min(B_c, N - j)
    return rows * d * itemsize + 4 * N


# causal_bytes, cut_tiles: tiles wholly seen
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 2 * N
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            if j + B_c - 1 <= i:
                rows += 2 * B_c
    return rows * d * itemsize + 4 * N


# causal_bytes, square_blocks: mean of the triangle
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    T = -(-N // B_r)
    part = (T + 1) / (2 * T)
    return 2 * N * d * itemsize + 4 * N + part * T * 2 * N * d * itemsize


# causal_bytes, square_blocks: block numbers compared
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    moved = 2 * N * d * itemsize + 4 * N
    for i in range(-(-N // B_r)):
        for j in range(-(-N // B_c)):
            if j <= i:
                moved += 2 * min(B_c, N - j * B_c) * d * itemsize
    return moved


# causal_bytes, tile_too_many: <= for <
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    moved = 2 * N * d * itemsize + 4 * N
    for i in range(0, N, B_r):
        end = min(i + B_r, N)
        moved += sum(2 * d * itemsize * min(B_c, N - j) for j in range(0, N, B_c) if j <= end)
    return moved


# causal_bytes, not_shared: a triangle of rows
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    return (2 * N + sum(2 * (r + 1) for r in range(N))) * d * itemsize + 4 * N


# causal_bytes, fixed_B_c: tiles of 64 keys
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    keys = 0
    for i in range(0, N, B_r):
        seen = min(i + B_r, N)
        keys += min((seen + 63) // 64 * 64, N)
    return 2 * (N + keys) * d * itemsize + 4 * N


# causal_bytes, cols_padded and lse_missing: two slips
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 2 * N
    for i in range(-(-N // B_r)):
        rows += 2 * B_c * -(-min((i + 1) * B_r, N) // B_c)
    return rows * d * itemsize


# break_even, estimate: d / 2
def my_break_even(N, d, itemsize):
    return min(N, d // 2 + 1)


# break_even, S_and_P: S and P once
def my_break_even(N, d, itemsize):
    standard = 4 * N * d * itemsize + 2 * N * N * itemsize + 4 * N
    B_r = 1
    while B_r < N and itemsize * 2 * N * d * (1 - (-N // B_r)) + 4 * N >= standard:
        B_r += 1
    return B_r


# break_even, fa1_searched: by flashlib's function
def my_break_even(N, d, itemsize):
    dtype = {2: "float16", 4: "float32"}[itemsize]
    standard = cost.standard_traffic(N, N, d, dtype=dtype)
    for B in range(1, N + 1):
        if cost.fa1_traffic(N, N, d, B_r=B, B_c=B, dtype=dtype).total < standard.total:
            return B
    return None


# break_even, causal_searched: by flashlib's function
def my_break_even(N, d, itemsize):
    dtype = {2: "float16", 4: "float32"}[itemsize]
    limit = cost.standard_traffic(N, N, d, dtype=dtype).total
    return min(
        B for B in range(1, N + 1)
        if cost.fa2_traffic(N, N, d, B_r=B, B_c=B, dtype=dtype, causal=True).total < limit
    )


# break_even, not_all: doubled until it pays
def my_break_even(N, d, itemsize):
    def moved(B_r):
        return (2 + 2 * -(-N // B_r)) * N * d * itemsize

    B_r = 1
    while moved(B_r) >= 4 * N * (N + d) * itemsize:
        B_r *= 2
    return B_r


# break_even, ends_early: 256 at most
def my_break_even(N, d, itemsize):
    def moved(B_r):
        return (2 + 2 * -(-N // B_r)) * N * d * itemsize

    for B_r in range(1, 257):
        if moved(B_r) < 4 * N * (N + d) * itemsize:
            return B_r
    return 256


# break_even, ends_early: 1024 at most
def my_break_even(N, d, itemsize):
    standard = cost.standard_traffic(N, N, d, dtype="float16").total
    moved = {B_r: 4 * N * d * (1 + -(-N // B_r)) + 4 * N for B_r in range(1, 1000)}
    return min((B_r for B_r in moved if moved[B_r] < standard), default=N)


# break_even, too_small: the index of the first
def my_break_even(N, d, itemsize):
    import numpy as np

    B_r = np.arange(1, N + 1)
    moved = (2 + 2 * np.ceil(N / B_r)) * N * d * itemsize
    return np.argmax(moved < 4 * N * (N + d) * itemsize)


# break_even, standard_dtype: fp16 always
def my_break_even(N, d, itemsize):
    standard = cost.standard_traffic(N, N, d, dtype="float16").total
    B_r = 1
    while (2 * N + 2 * N * -(-N // B_r)) * d * itemsize + 4 * N >= standard:
        B_r += 1
        if B_r > N:
            return None
    return B_r
