"""Right answers in other styles: see `tests.checks.answers`."""


# intensity: an exact fraction
def my_intensity(N_q, N_k, d, B_r, itemsize):
    from fractions import Fraction

    T_r = -(-N_q // B_r)
    return Fraction(4 * N_q * N_k * d, (2 * N_q + 2 * T_r * N_k) * d * itemsize + 4 * N_q)


# intensity: bytes for each FLOP, turned round
def my_intensity(N_q, N_k, d, B_r, itemsize):
    import numpy as np

    visits = np.ceil(N_q / B_r)
    return 1 / ((N_q + visits * N_k) * itemsize / (2 * N_q * N_k) + 1 / (N_k * d))


# intensity: decimals
def my_intensity(N_q, N_k, d, B_r, itemsize):
    from decimal import Decimal

    dtype = {2: "float16", 4: "float32"}[itemsize]
    return Decimal(cost.flops(N_q, N_k, d)) / cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=5, dtype=dtype).total


# intensity: a Fraction
def my_intensity(N_q, N_k, d, B_r, itemsize):
    from fractions import Fraction
    T = -(-N_q // B_r)
    return Fraction(4 * N_q * N_k * d, (2 * N_q + 2 * T * N_k) * d * itemsize + 4 * N_q)
