"""Wrong answers: see `tests.checks.answers`."""


# intensity, inexact: + 0.999
def my_intensity(N_q, N_k, d, B_r, itemsize):
    T = int(N_q / B_r + 0.999)
    return 4 * N_q * N_k * d / ((2 * N_q + 2 * T * N_k) * d * itemsize + 4 * N_q)


# intensity, standard: what standard attention moves
def my_intensity(N_q, N_k, d, B_r, itemsize):
    traffic = cost.standard_traffic(N_q, N_k, d, dtype=f"float{8 * itemsize}")
    return cost.intensity(cost.flops(N_q, N_k, d), traffic)


# intensity, estimate: for many keys
def my_intensity(N_q, N_k, d, B_r, itemsize):
    return 2 * B_r / itemsize


# intensity, one_product: multiply-adds, by flashlib's functions
def my_intensity(N_q, N_k, d, B_r, itemsize):
    moved = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=7, dtype={2: "bfloat16"}.get(itemsize, "float32"))
    multiply_adds = cost.flops(N_q, N_k, d) / 2
    return multiply_adds / (moved.read + moved.written)


# intensity, rounded: to four digits
def my_intensity(N_q, N_k, d, B_r, itemsize):
    moved = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=16, dtype="float16" if itemsize == 2 else "float32").total
    return round(cost.flops(N_q, N_k, d) / moved, 4)


# intensity, fixed_itemsize: in fp16 always
def my_intensity(N_q, N_k, d, B_r, itemsize):
    return cost.intensity(cost.flops(N_q, N_k, d), cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=1, dtype="float16"))


# intensity, one_product and lse_missing: two slips
def my_intensity(N_q, N_k, d, B_r, itemsize):
    return N_q * N_k / ((N_q + -(-N_q // B_r) * N_k) * itemsize)


# least_time, added: one after the other
def my_least_time(flops, peak, moved, bandwidth):
    seconds, longest, limit = flops / peak, flops / peak, "arithmetic"
    for name in moved:
        took = moved[name] / bandwidth[name]
        seconds += took
        if took > longest:
            longest, limit = took, name
    return seconds, limit


# least_time, limit_by_ridge: below the ridge, arithmetic
def my_least_time(flops, peak, moved, bandwidth):
    slowest = max(moved, key=lambda name: moved[name] / bandwidth[name])
    limit = "arithmetic" if flops / moved[slowest] < peak / bandwidth[slowest] else slowest
    return max(flops / peak, moved[slowest] / bandwidth[slowest]), limit


# least_time, one_memory: the first
def my_least_time(flops, peak, moved, bandwidth):
    (name, n_bytes), *_ = moved.items()
    memory, arithmetic = n_bytes / bandwidth[name], flops / peak
    return (memory, name) if memory > arithmetic else (arithmetic, "arithmetic")


# least_time, thousand: in milliseconds
def my_least_time(flops, peak, moved, bandwidth):
    times = {name: 1000 * moved[name] / bandwidth[name] for name in moved} | {"arithmetic": 1000 * flops / peak}
    limit = max(times, key=times.get)
    return times[limit], limit


# least_time, all_bytes: through the slowest memory
def my_least_time(flops, peak, moved, bandwidth):
    memory, arithmetic = sum(moved.values()) / min(bandwidth.values()), flops / peak
    slowest = min(bandwidth, key=bandwidth.get)
    return (memory, slowest) if memory > arithmetic else (arithmetic, "arithmetic")


# least_time, other_word: pairs, and "compute"
def my_least_time(flops, peak, moved, bandwidth):
    return max([(moved[name] / bandwidth[name], name) for name in moved] + [(flops / peak, "compute")])


# least_time, by_name: max of a dict
def my_least_time(flops, peak, moved, bandwidth):
    times = {"arithmetic": flops / peak} | {name: n_bytes / bandwidth[name] for name, n_bytes in moved.items()}
    return times[max(times)], max(times)
