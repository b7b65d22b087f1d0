"""Right answers in further styles: see `tests.checks.answers`."""


# causal_bytes: tile by tile
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 0
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            if j <= min(i + B_r, N) - 1: rows += min(B_c, N - j)
    return (2 * N + 2 * rows) * d * itemsize + 4 * N


# break_even: by halves
def my_break_even(N, d, itemsize):
    std = cost.standard_traffic(N, N, d, dtype=f"float{8*itemsize}").total
    lo, hi = 1, N
    while lo < hi:
        mid = (lo + hi) // 2
        if (2 + 2 * -(-N // mid)) * N * d * itemsize + 4 * N < std: hi = mid
        else: lo = mid + 1
    return lo


# break_even: in closed form
def my_break_even(N, d, itemsize):
    return -(-N // (-(-(2 * N + d) // d) - 1))
