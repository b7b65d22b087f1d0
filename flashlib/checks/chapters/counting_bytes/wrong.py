"""Wrong answers to the exercises of chapter 07."""

from flashlib.checks.mutants import Mutant

WRONG = {
    "fa2_bytes": [
        ("K and V read once", "read once in all", {"T_r * (K + V)": "K + V"}),
        ("V forgotten", "one of K and V is left out", {"(K + V)": "K"}),
        ("only K read again", "one of K and V is left out", {"T_r * (K + V)": "T_r * K + V"}),
        ("T_r rounded down", "is rounded down", {"-(-N_q // B_r)": "N_q // B_r"}),
        ("T_r not rounded", "is not rounded", {"-(-N_q // B_r)": "N_q / B_r"}),
        ("T_r plus one", "a row block too many", {"-(-N_q // B_r)": "N_q // B_r + 1"}),
        ("N_k cut into blocks", "N_k is cut into row blocks", {"-(-N_q // B_r)": "-(-N_k // B_r)"}),
        ("once for each row", "each row of Q reads K and V for itself", {"-(-N_q // B_r)": "N_q"}),
        ("lse forgotten", "lse is left out", {" + lse": ""}),
        ("lse in itemsize", "lse is counted with itemsize", {"4 * N_q": "itemsize * N_q"}),
        ("lse as wide as O", "one number for each row of Q, not d", {"4 * N_q": "4 * N_q * d"}),
        ("m and l stored", "m and l are counted", {"4 * N_q": "8 * N_q"}),
        ("O forgotten", "Q or O is left out", {" + O": ""}),
        ("O read back", "counted twice", {"+ O": "+ 2 * O"}),
        (
            "numbers",
            "numbers are counted, not bytes",
            {"N_q * d * itemsize": "N_q * d", "N_k * d * itemsize": "N_k * d", "4 * N_q": "N_q"},
        ),
        (
            "fp16 taken for granted",
            "itemsize is not used",
            {"N_q * d * itemsize": "N_q * d * 2", "N_k * d * itemsize": "N_k * d * 2"},
        ),
        ("bits", "in bits", {"return Q + T_r * (K + V) + O + lse": "return 8 * (Q + T_r * (K + V) + O + lse)"}),
        ("Q read by each row block", "Q is read again by each row block", {"return Q +": "return T_r * Q +"}),
        ("S written and read", "S or P is counted", {"+ lse": "+ lse + 2 * N_q * N_k * itemsize"}),
        ("K with N_q rows", "K and V have N_k rows", {"K = V = N_k": "K = V = N_q"}),
        ("reads alone", "what is written is left out", {" + O + lse": ""}),
        (
            "two numbers",
            "returned apart",
            {"return Q + T_r * (K + V) + O + lse": "return Q + T_r * (K + V), O + lse"},
        ),
        ("a float", "it is a float", {"return Q +": "return 1.0 * Q +"}),
        (
            "np.ceil",
            "it is a float",
            {},
            """
import numpy as np


def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    visits = np.ceil(N_q / B_r)
    return (2 * N_q * d + visits * 2 * N_k * d) * itemsize + N_q * 4
""",
        ),
        (
            "a loop over whole blocks",
            "the last row block is shorter",
            {},
            """
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    total = 0
    for start in range(0, N_q, B_r):
        total += B_r * d * itemsize  # load Q_i
        total += 2 * N_k * d * itemsize  # stream K and V
        total += B_r * d * itemsize + 4 * B_r  # store O_i and lse_i
    return total
""",
        ),
        (
            "a loop, K and V before it",
            "read once in all",
            {},
            """
def my_fa2_bytes(N_q, N_k, d, B_r, itemsize):
    total = 2 * itemsize * N_k * d
    row = 0
    while row < N_q:
        rows = min(B_r, N_q - row)
        total += rows * (2 * d * itemsize + 4)
        row += B_r
    return total
""",
        ),
    ],
    "causal_bytes": [
        ("no mask", "the mask is not used", {"min(tiles * B_c, N)": "N"}),
        ("half of K and V", "does not halve", {"min(tiles * B_c, N)": "N", "2 * rows_read": "rows_read"}),
        ("first row", "the first row of a block is asked", {"min((i + 1) * B_r, N)": "i * B_r + 1"}),
        ("keys before the block", "not i * B_r", {"min((i + 1) * B_r, N)": "i * B_r"}),
        ("seen one short", "row r sees r + 1 keys", {"min((i + 1) * B_r, N)": "min((i + 1) * B_r, N) - 1"}),
        ("a tile too many", "a tile too many", {"-(-seen // B_c)": "seen // B_c + 1"}),
        ("cut tiles left out", "tiles cut by the mask are left out", {"-(-seen // B_c)": "seen // B_c"}),
        ("cut tiles read in part", "read as far as they are seen", {"min(tiles * B_c, N)": "seen"}),
        ("last column block whole", "the last column block is shorter", {"min(tiles * B_c, N)": "tiles * B_c"}),
        ("last row block left out", "the last, shorter row block is left out", {"-(-N // B_r)": "N // B_r"}),
        ("block numbers", "that holds for B_r = B_c alone", {"-(-seen // B_c)": "i + 1"}),
        ("tiles, not rows", "tiles are counted as rows", {"min(tiles * B_c, N)": "tiles"}),
        ("V forgotten", "one of K and V is left out", {"2 * rows_read": "rows_read"}),
        ("read once", "read once in all", {"2 * rows_read": "2 * N"}),
        ("lse forgotten", "lse is left out", {" + 4 * N": ""}),
        ("lse in itemsize", "lse is counted with itemsize", {"4 * N": "itemsize * N"}),
        ("numbers", "numbers are counted", {" * itemsize": ""}),
        ("Q and O forgotten", "or else Q and O are left out", {"2 * N + ": ""}),
        ("Q and O once more for each block", "Q and O are moved again", {"2 * N +": "2 * N * T_r +"}),
        (
            "half of everything",
            "does not halve",
            {},
            """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    T_r = -(-N // B_r)
    Q = K = V = O = N * d * itemsize
    return (Q + T_r * (K + V) + O + 4 * N) // 2
""",
        ),
        (
            "B_r and B_c exchanged",
            "B_r and B_c are exchanged",
            {},
            """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    visits = 0
    for j in range(0, N, B_c):
        for i in range(0, N, B_r):
            if i <= min(j + B_c, N) - 1:
                visits += min(B_r, N - i)
    return N * (2 * d * itemsize + 4) + visits * 2 * d * itemsize
""",
        ),
        (
            "upside down, tile by tile",
            "the mask is upside down",
            {},
            """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 2 * N
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            if min(j + B_c, N) - 1 >= i:
                rows += 2 * min(B_c, N - j)
    return rows * d * itemsize + 4 * N
""",
        ),
        (
            "tiles wholly seen",
            "tiles cut by the mask are left out",
            {},
            """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    rows = 2 * N
    for i in range(0, N, B_r):
        for j in range(0, N, B_c):
            if j + B_c - 1 <= i:
                rows += 2 * B_c
    return rows * d * itemsize + 4 * N
""",
        ),
        (
            "mean of the triangle",
            "that holds for B_r = B_c alone",
            {},
            """
def my_causal_bytes(N, d, B_r, B_c, itemsize):
    T = -(-N // B_r)
    part = (T + 1) / (2 * T)
    return 2 * N * d * itemsize + 4 * N + part * T * 2 * N * d * itemsize
""",
        ),
    ],
    "break_even": [
        ("<=", "as many bytes are not fewer", {"flash < standard": "flash <= standard"}),
        ("turned round", "the comparison is turned round", {"flash < standard": "flash > standard"}),
        ("ends before N", "the search stops before N", {"range(1, N + 1)": "range(1, N)"}),
        ("starts at 16", "not all sizes are tried", {"range(1, N + 1)": "range(16, N + 1)"}),
        ("powers of two", "not all sizes are tried", {"range(1, N + 1)": "[2**p for p in range(20)]"}),
        ("one less", "one too small", {"return B_r": "return B_r - 1"}),
        ("row blocks", "the number of row blocks is returned", {"return B_r": "return T_r"}),
        ("T_r rounded down", "is rounded down", {"-(-N // B_r)": "N // B_r"}),
        ("T_r not rounded", "is not rounded", {"-(-N // B_r)": "N / B_r"}),
        ("K and V read once", "all of K and V N times", {"2 * T_r": "2"}),
        ("numbers", "numbers are counted", {" * itemsize": ""}),
        ("V forgotten", "one of K and V is left out", {"2 * T_r": "1 + T_r"}),
        ("lse forgotten", "count lse", {" + 4 * N\n": "\n"}),
        ("reads alone", "what standard attention reads", {".total": ".read"}),
        (
            "from N down",
            "the largest B_r is returned",
            {"range(1, N + 1)": "range(N, 0, -1)"},
        ),
        ("a float", "it is a float", {"return B_r": "return float(B_r)"}),
        (
            "d / 2",
            "is an estimate",
            {},
            """
def my_break_even(N, d, itemsize):
    return min(N, d // 2 + 1)
""",
        ),
        (
            "S and P once",
            "S and P are 4 N^2 numbers",
            {},
            """
def my_break_even(N, d, itemsize):
    standard = 4 * N * d * itemsize + 2 * N * N * itemsize + 4 * N
    B_r = 1
    while B_r < N and itemsize * 2 * N * d * (1 - (-N // B_r)) + 4 * N >= standard:
        B_r += 1
    return B_r
""",
        ),
        (
            "the order FA1",
            "the order FA1 is searched",
            {},
            """
def my_break_even(N, d, itemsize):
    dtype = {2: "float16", 4: "float32"}[itemsize]
    standard = cost.standard_traffic(N, N, d, dtype=dtype)
    for B in range(1, N + 1):
        if cost.fa1_traffic(N, N, d, B_r=B, B_c=B, dtype=dtype).total < standard.total:
            return B
    return None
""",
        ),
        (
            "causal",
            "a causal mask is counted",
            {},
            """
def my_break_even(N, d, itemsize):
    dtype = {2: "float16", 4: "float32"}[itemsize]
    limit = cost.standard_traffic(N, N, d, dtype=dtype).total
    return min(
        B for B in range(1, N + 1)
        if cost.fa2_traffic(N, N, d, B_r=B, B_c=B, dtype=dtype, causal=True).total < limit
    )
""",
        ),
    ],
    "largest_tile": [
        ("P counted too", "P_ij is counted beside S_ij", {"d + B_c + 2": "d + 2 * B_c + 2"}),
        (
            "P in fp16 counted too",
            "P_ij is counted beside S_ij",
            {"row = d * itemsize": "row = (d + B_c) * itemsize"},
        ),
        ("m and l forgotten", "m and l are left out", {"d + B_c + 2": "d + B_c"}),
        ("lse in place of m and l", "one of m and l is left out", {"d + B_c + 2": "d + B_c + 1"}),
        (
            "all in itemsize",
            "take 4 bytes a number, whatever",
            {"d * itemsize + 4 * (d + B_c + 2)": "itemsize * (d + d + B_c + 2)"},
        ),
        (
            "O_acc in itemsize",
            "take 4 bytes a number, whatever",
            {"d * itemsize + 4 * (d + B_c + 2)": "2 * d * itemsize + 4 * (B_c + 2)"},
        ),
        ("O_acc forgotten", "O_acc is left out", {"d + B_c + 2": "B_c + 2"}),
        ("S forgotten", "S_ij is left out", {"d + B_c + 2": "d + 2"}),
        ("Q_i forgotten", "Q_i is left out", {"row = d * itemsize + ": "row = "}),
        ("V_j forgotten", "one of K_j and V_j is left out", {"keys = 2 * B_c": "keys = B_c"}),
        ("K_j and V_j forgotten", "K_j and V_j are left out", {"capacity - keys": "capacity"}),
        ("double buffers", "K_j and V_j are counted twice", {"keys = 2 * B_c": "keys = 4 * B_c"}),
        ("negative", "the answer is 0", {"max(0, (capacity - keys) // row)": "(capacity - keys) // row"}),
        ("at least 1", "the answer is 0", {"max(0,": "max(1,"}),
        ("rounded up", "rounded up", {"(capacity - keys) // row": "-((keys - capacity) // row)"}),
        ("not rounded", "not rounded down", {"// row": "/ row"}),
        ("KB", "not in KB", {"(capacity - keys)": "(1024 * capacity - keys)"}),
        (
            "a float",
            "it is a float",
            {"return max(0, (capacity - keys) // row)": "return max(0.0, (capacity - keys) // row)"},
        ),
        (
            "fp16 taken for granted",
            "itemsize is not used",
            {"keys = 2 * B_c * d * itemsize": "keys = 4 * B_c * d", "row = d * itemsize": "row = 2 * d"},
        ),
        (
            "the paper's block size",
            "the paper's rule",
            {},
            """
import math


def my_largest_tile(capacity, B_c, d, itemsize):
    M = capacity // itemsize
    return math.ceil(M / (4 * d))
""",
        ),
        (
            "powers of two",
            "B_r may be any whole number",
            {},
            """
def my_largest_tile(capacity, B_c, d, itemsize):
    def held(B_r):
        return (B_r + 2 * B_c) * d * itemsize + B_r * (d + B_c + 2) * 4

    if held(1) > capacity:
        return 0
    B_r = 1
    while held(2 * B_r) <= capacity:
        B_r *= 2
    return B_r
""",
        ),
        (
            "first that does not fit",
            "the first B_r that does not fit",
            {},
            """
def my_largest_tile(capacity, B_c, d, itemsize):
    dtype = "float16" if itemsize == 2 else "float32"
    B_r = 1
    while cost.sram_bytes(B_r, B_c, d, dtype) <= capacity:
        B_r += 1
    return B_r
""",
        ),
        (
            "strictly smaller",
            "to the byte fits",
            {},
            """
def my_largest_tile(capacity, B_c, d, itemsize):
    B_r = 0
    while True:
        rows = B_r + 1
        held = itemsize * d * (rows + B_c + B_c) + 4 * (rows * d + rows * B_c + rows + rows)
        if not held < capacity:
            return B_r
        B_r = rows
""",
        ),
    ],
    "intensity": [
        ("upside down", "bytes per FLOP", {"4 * N_q * N_k * d / moved": "moved / (4 * N_q * N_k * d)"}),
        ("one product", "one matrix product", {"return 4 *": "return 2 *"}),
        ("d forgotten", "d is left out of the FLOPs", {"N_k * d / moved": "N_k / moved"}),
        ("rounded down", "the result is rounded", {"/ moved": "// moved"}),
        ("K and V read once", "read once in all", {"2 * T_r * N_k": "2 * N_k"}),
        ("V forgotten", "one of K and V is left out", {"2 * T_r * N_k": "T_r * N_k"}),
        ("numbers", "numbers are counted", {" * itemsize": ""}),
        ("T_r rounded down", "is rounded down", {"-(-N_q // B_r)": "N_q // B_r"}),
        ("lse forgotten", "lse is left out", {" + 4 * N_q\n": "\n"}),
        ("lse in itemsize", "lse is counted with itemsize", {"+ 4 * N_q\n": "+ itemsize * N_q\n"}),
        ("Q and O forgotten", "Q and O are left out", {"2 * N_q + 2 * T_r": "2 * T_r"}),
        ("FLOPs alone", "the FLOPs alone are returned", {" / moved": ""}),
        ("square", "N_q and N_k may differ", {"4 * N_q * N_k": "4 * N_q * N_q"}),
        (
            "standard attention",
            "what standard attention moves",
            {},
            """
def my_intensity(N_q, N_k, d, B_r, itemsize):
    traffic = cost.standard_traffic(N_q, N_k, d, dtype=f"float{8 * itemsize}")
    return cost.intensity(cost.flops(N_q, N_k, d), traffic)
""",
        ),
        (
            "the estimate",
            "an estimate for many keys",
            {},
            """
def my_intensity(N_q, N_k, d, B_r, itemsize):
    return 2 * B_r / itemsize
""",
        ),
        (
            "multiply-adds, by flashlib's functions",
            "one matrix product",
            {},
            """
def my_intensity(N_q, N_k, d, B_r, itemsize):
    moved = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=7, dtype={2: "bfloat16"}.get(itemsize, "float32"))
    multiply_adds = cost.flops(N_q, N_k, d) / 2
    return multiply_adds / (moved.read + moved.written)
""",
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
