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


# least_time: pairs, arithmetic first
def my_least_time(flops, peak, moved, bandwidth):
    seconds, limit = flops / peak, "arithmetic"
    for name, n_bytes in moved.items():
        if n_bytes / bandwidth[name] > seconds:
            seconds, limit = n_bytes / bandwidth[name], name
    return seconds, limit


# least_time: by ridges
def my_least_time(flops, peak, moved, bandwidth):
    slowest = sorted(moved, key=lambda name: moved[name] / bandwidth[name])[-1]
    intensity, ridge = flops / moved[slowest], peak / bandwidth[slowest]
    rate = min(peak, intensity * bandwidth[slowest])
    return flops / rate, "arithmetic" if intensity > ridge else slowest


# least_time: max of pairs
def my_least_time(flops, peak, moved, bandwidth):
    pairs = [(flops / peak, "arithmetic")] + [(moved[name] / bandwidth[name], name) for name in bandwidth]
    return max(pairs)
