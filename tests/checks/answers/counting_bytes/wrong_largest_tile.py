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
