"""Wrong answers: see `tests.checks.answers`."""


# largest_tile, paper: the paper's block size
def my_largest_tile(capacity, B_c, d, itemsize):
    M = capacity // itemsize
    return -(-M // (4 * d))


# largest_tile, powers: doubled
def my_largest_tile(capacity, B_c, d, itemsize):
    def held(B_r):
        return (B_r + 2 * B_c) * d * itemsize + B_r * (d + B_c + 2) * 4

    if held(1) > capacity:
        return 0
    B_r = 1
    while held(2 * B_r) <= capacity:
        B_r *= 2
    return B_r


# largest_tile, powers: doubled once too often
def my_largest_tile(capacity, B_c, d, itemsize):
    if cost.sram_bytes(1, B_c, d, "float16" if itemsize == 2 else "float32") > capacity:
        return 0
    B_r = 1
    while cost.sram_bytes(B_r, B_c, d, "float16" if itemsize == 2 else "float32") <= capacity:
        B_r = B_r * 2
    return B_r


# largest_tile, strict: < for <=
def my_largest_tile(capacity, B_c, d, itemsize):
    B_r = 0
    while True:
        rows = B_r + 1
        held = itemsize * d * (rows + B_c + B_c) + 4 * (rows * d + rows * B_c + rows + rows)
        if not held < capacity:
            return B_r
        B_r = rows


# largest_tile, rounded_up: the first that fills it
def my_largest_tile(capacity, B_c, d, itemsize):
    B_r = 0
    while 2 * B_c * d * itemsize + B_r * (d * itemsize + 4 * (d + B_c + 2)) < capacity:
        B_r += 1
    return B_r


# largest_tile, ends_early: 4096 at most
def my_largest_tile(capacity, B_c, d, itemsize):
    left, row = capacity - 2 * B_c * d * itemsize, (itemsize + 4) * d + 4 * B_c + 8
    return max((B_r for B_r in range(1, 4097) if B_r * row <= left), default=0)


# largest_tile, m_and_l and one_of_K_V: two slips
def my_largest_tile(capacity, B_c, d, itemsize):
    left = capacity - B_c * d * itemsize
    return max(left // (d * itemsize + 4 * d + 4 * B_c), 0)


# largest_tile, acc and S: two slips
def my_largest_tile(capacity, B_c, d, itemsize):
    return max(0, (capacity // itemsize - 2 * B_c * d) // (2 * d + 2))


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
