"""Wrong answers to the calculations: see `tests.checks.answers`."""


# tflops, products: multiplications alone
def my_tflops(B, H, N, d, causal, ms):
    share = 0.5 if causal else 1.0
    products = B * H * (N * N * d + N * N * d)
    return products * share / ms / 1e9


# tflops, softmax: five FLOPs a score more
def my_tflops(B, H, N, d, causal, ms):
    matmul = 2 * N * N * d * 2
    softmax = 5 * N * N
    total = (matmul + softmax) * B * H * (1 - causal / 2)
    return total * 1e-9 / ms


# tflops, products and times_1000: two slips
def my_tflops(B, H, N, d, causal, ms):
    flop = 2 * B * H * N**2 * d
    if causal:
        flop //= 2
    return flop * 1e-6 / ms


# tflops, not_halved and ms_as_s: two slips
def my_tflops(B, H, N, d, causal, ms):
    return 4e-12 * B * H * N**2 * d / ms


# tflops, quartered: half of the queries, half of the keys
def my_tflops(B, H, N, d, causal, ms):
    n = N / 2 if causal else N
    return 4 * B * H * n * n * d / (ms * 1e9)


# tflops, seen_scores: as many as a triangle has
def my_tflops(B, H, N, d, causal, ms):
    import math

    scores = math.comb(N + 1, 2) if causal else N * N
    return B * H * scores * 2 * (d + d) / ms * 1e3 / 1e12


# tflops, rounded: to three digits
def my_tflops(B, H, N, d, causal, ms):
    flop = 4 * B * H * N * N * d * (0.5 if causal else 1)
    return round(flop / ms / 1e9, 3)


# tflops, time_multiplied: the time on the wrong side
def my_tflops(B, H, N, d, causal, ms):
    flop = 4 * B * H * N * N * d
    if causal:
        flop = flop / 2
    return flop / 1e12 * ms / 1e3


# programs, no_unit: tried one by one
def my_programs(registers, shared, num_warps):
    threads = num_warps * 32
    for n in range(64, 0, -1):
        if n * threads * registers <= 2**16 and n * (shared + 1024) <= 228 * 2**10 and n * num_warps <= 64:
            return n
    return 0


# programs, no_warps: tried one by one, warps left out
def my_programs(registers, shared, num_warps):
    per_warp = math.ceil(registers / 8) * 256
    n = 0
    while (n + 1) * num_warps * per_warp <= 65536 and (n + 1) * (shared + 1024) <= 228 * 1024:
        n += 1
    return n


# programs, unit_of_program: rounded up for all warps together
def my_programs(registers, shared, num_warps):
    per_program = math.ceil(registers * 32 * num_warps / 256) * 256
    return min(64 // num_warps, 65536 // per_program, 228 * 1024 // (shared + 1024))


# programs, whole_KB: shared memory in KB
def my_programs(registers, shared, num_warps):
    per_warp = 256 * math.ceil(registers * 32 / 256)
    kilobytes = math.ceil(shared / 1024) + 1
    return min(65536 // (per_warp * num_warps), 228 // kilobytes, 64 // num_warps)


# programs, float: np.floor
def my_programs(registers, shared, num_warps):
    per_warp = np.ceil(registers * 32 / 256) * 256
    limits = [65536 / (per_warp * num_warps), 228 * 1024 / (shared + 1024), 64 / num_warps]
    return np.floor(min(limits))


# programs, no_unit and no_system: two slips
def my_programs(registers, shared, num_warps):
    fits = [65536 // (registers * 32 * num_warps), 64 // num_warps]
    if shared:
        fits.append(228 * 1024 // shared)
    return min(fits)


# programs, fixed_warps: four warps
def my_programs(registers, shared, num_warps):
    per_warp = -(-registers // 8) * 256
    return min(65536 // (4 * per_warp), 228 * 1024 // (1024 + shared), 16)


# programs, at_least_1: from 1 on
def my_programs(registers, shared, num_warps):
    per_warp = -(-registers // 8) * 256
    n = 1
    while all(((n + 1) * num_warps * per_warp <= 65536, (n + 1) * (shared + 1024) <= 233472, (n + 1) * num_warps <= 64)):
        n += 1
    return n


# block_order, head_by_head: heads outside, row blocks inside
def my_block_order(tile, T_r, section):
    order = []
    while len(order) <= tile:
        first = len(order) // T_r
        order += [(first + h, i) for h in range(section) for i in reversed(range(T_r))]
    return order[tile]


# block_order, shortest_first: range from 0
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    row, column = divmod(place, section)
    return n * section + column, row


# block_order, no_sections: the first section again and again
def my_block_order(tile, T_r, section):
    order = [(h, T_r - 1 - i) for i in range(T_r) for h in range(section)]
    return order[tile % len(order)]


# block_order, not_reduced: the section counted in the row block
def my_block_order(tile, T_r, section):
    row, column = divmod(tile, section)
    return row // T_r * section + column, T_r - 1 - row


# block_order, section_number: n for n * section
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    return n + place % section, T_r - 1 - place // section


# block_order, unsorted: as without a mask
def my_block_order(tile, T_r, section):
    return divmod(tile, T_r)


# block_order, one_more: from T_r down to 1
def my_block_order(tile, T_r, section):
    row = tile % (section * T_r) // section
    return tile // section // T_r * section + tile % section, [*range(T_r, 0, -1)][row]


# block_order, head_by_head: T_r for section
def my_block_order(tile, T_r, section):
    s, p = divmod(tile, T_r * section)
    return s * section + p // T_r, T_r - 1 - p % T_r
