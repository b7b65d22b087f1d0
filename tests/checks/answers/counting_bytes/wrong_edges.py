"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# fa2_bytes, value: + 0.999
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    T = int(N_q / B_r + 0.999)
    return (2 * N_q + 2 * T * N_k) * d * itemsize + 4 * N_q


# causal_bytes, value: + 0.999
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 0
    for i in range(int(N / B_r + 0.999)):
        seen = min((i + 1) * B_r, N)
        rows += min(int(seen / B_c + 0.999) * B_c, N)
    return (2 * N + 2 * rows) * d * itemsize + 4 * N
