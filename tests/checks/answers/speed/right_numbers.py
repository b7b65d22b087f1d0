"""Right answers to the calculations in other styles: see `tests.checks.answers`."""


# tflops: an exact fraction
def my_tflops(B, H, N, d, causal, ms):
    from fractions import Fraction

    return Fraction(4 * B * H * N * N * d, 2 if causal else 1) / Fraction(ms) / 10**9


# tflops: an array without dimensions
def my_tflops(B, H, N, d, causal, ms):
    return np.where(causal, 2.0, 4.0) * np.prod([B, H, N, N, d], dtype=float) / ms * 1e-9


# tflops: causal as a number
def my_tflops(B, H, N, d, causal, ms):
    scores = B * H * N * N / (1, 2)[causal]
    return 2 * (2 * scores * d) * 1000 / ms / 1e12


# tflops: causal as numpy has it
def my_tflops(B, H, N, d, causal, ms):
    hidden = np.bool_(causal)
    seconds = ms * 1e-3
    return 4e-12 * B * H * N**2 * d * (1 - 0.5 * hidden) / seconds


# tflops: causal is True
def my_tflops(B, H, N, d, causal, ms):
    flops = sum(2 * N * N * d for _ in ("S", "O")) * (B * H)
    return flops / (2 if causal is True else 1) / (ms * 1e9)


# programs: tried one by one
def my_programs(registers, shared, num_warps):
    per_warp = math.ceil(registers / 8) * 8 * 32
    n = 0
    while all(((n + 1) * num_warps * per_warp <= 65536, (n + 1) * (shared + 1024) <= 228 * 1024, (n + 1) * num_warps <= 64)):
        n += 1
    return n


# programs: numpy's whole numbers
def my_programs(registers, shared, num_warps):
    of_warp = (registers * 32 + 255) // 256 * 256
    have, need = np.array([65536, 228 * 1024, 64]), np.array([of_warp * num_warps, shared + 1024, num_warps])
    return (have // need).min()


# programs: warps first
def my_programs(registers, shared, num_warps):
    warps = min(64, 65536 // (32 * registers + -32 * registers % 256))
    return sorted([warps // num_warps, int(228 / (shared / 1024 + 1))])[0]


# block_order: divmod twice
def my_block_order(tile, T_r, section):
    n, place = divmod(tile, section * T_r)
    row, column = divmod(place, section)
    return n * section + column, T_r - row - 1


# block_order: the list itself
def my_block_order(tile, T_r, section):
    order = []
    while len(order) <= tile:
        first = len(order) // T_r
        for i in range(T_r - 1, -1, -1):
            order += [(first + h, i) for h in range(section)]
    return order[tile]


# block_order: without the place, since a section has a multiple of `section` tiles
def my_block_order(tile, T_r, section):
    return [tile // (section * T_r) * section + tile % section, T_r - 1 - tile // section % T_r]


# block_order: three nested divisions
def my_block_order(tile, T_r, section):
    rest, h = divmod(tile, section)
    n, i = divmod(rest, T_r)
    return [n * section + h, T_r - i - 1]
