"""The exercises of chapter 07: sizes come in, a number of bytes or of rows comes out."""

from functools import cache

from flashlib import cost
from flashlib.checks import calculations
from flashlib.checks.calculations import APART, BYTES, DTYPES, FA1, MISTAKES, NOT_SHARED, ROW_BLOCKS
from flashlib.checks.examine import examine
from flashlib.checks.exercise import exercise

# ---- bytes moved, without a mask

SIZES = (
    (1, 1, 1, 1, 2),
    (2, 3, 1, 1, 2),
    (4, 3, 2, 2, 2),
    (5, 3, 2, 2, 4),
    (3, 7, 5, 4, 2),
    (11, 7, 3, 4, 4),
    (64, 200, 16, 48, 2),
    (4096, 4096, 64, 64, 2),
    (1000, 3000, 128, 80, 4),
)


def _fa2(changed, N_q, N_k, d, B_r, itemsize):
    return calculations.run(BYTES, changed, N_q=N_q, N_k=N_k, d=d, B_r=B_r, itemsize=itemsize)


def _fa2_right(N_q, N_k, d, B_r, itemsize):
    return cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=1, dtype=DTYPES[itemsize]).total


@exercise(title="What FlashAttention-2 moves", minutes=10, difficulty="easy")
def fa2_bytes(answer):
    cases = calculations.cases("N_q N_k d B_r itemsize", _fa2_right, SIZES)
    return calculations.examine_whole(
        answer,
        cases,
        calculations.mistakes(_fa2, MISTAKES + APART + ROW_BLOCKS),
    )


# ---- bytes moved, under a causal mask

# ends is where each row block ends; seen are the keys that its last row sees, as many.
CAUSAL = BYTES.replace(
    "keys = T_r * N_k\n",
    """ends = [min((i + 1) * B_r, N_q) for i in range(T_r)]
seen = ends
tiles = [-(-n // B_c) for n in seen]
keys = sum(min(n * B_c, N_k) for n in tiles)
""",
)


def _causal(changed, N, d, B_r, B_c, itemsize):
    return calculations.run(CAUSAL, changed, N_q=N, N_k=N, d=d, B_r=B_r, B_c=B_c, itemsize=itemsize)


def _causal_right(N, d, B_r, B_c, itemsize):
    return cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=DTYPES[itemsize], causal=True).total


@exercise(title="Bytes under a causal mask", minutes=20, difficulty="hard")
def causal_bytes(answer):
    sizes = (
        (1, 1, 1, 1, 2),
        (4, 1, 2, 2, 2),
        (4, 3, 1, 2, 2),
        (6, 2, 2, 3, 4),
        (7, 2, 3, 2, 2),
        (7, 5, 2, 5, 4),
        (5, 3, 8, 2, 2),
        (5, 3, 2, 8, 2),
        (96, 16, 32, 16, 2),
        (100, 16, 16, 48, 4),
        (1000, 64, 128, 48, 2),
    )
    cases = calculations.cases("N d B_r B_c itemsize", _causal_right, sizes)
    return calculations.examine_whole(answer, cases, calculations.mistakes(_causal, UNDER_MASK + MISTAKES + APART))


UNDER_MASK = (
    ("the mask is not used: tiles in which it hides every score are skipped", "keys = T_r * N_k"),
    (
        "a mask does not halve the bytes: tiles that it cuts are read whole, and Q, O and lse stay",
        "KV = T_r * N_k * d * itemsize",
        "keys = T_r * N_k; total = (Q + KV + O + lse) / 2",
        "keys = T_r * N_k; total = (Q + KV + O + lse) // 2",
    ),
    (
        "row block i is taken to compute i + 1 tiles: that holds for B_r = B_c alone, count the keys it sees",
        "tiles = range(1, T_r + 1)",
        "keys = sum((i + 1) * B_c for i in range(T_r))",
        "keys = N_k * (T_r + 1) / 2",
        "keys = N_k * (T_r + 1) // 2",
    ),
    (
        "the first row of a block is asked: its last row, min((i + 1) * B_r, N) - 1, sees the most keys",
        "seen = [i * B_r + 1 for i in range(T_r)]",
    ),
    (
        "the last row of block i sees min((i + 1) * B_r, N) keys, not i * B_r; or else Q and O are left out",
        "seen = [i * B_r for i in range(T_r)]",
    ),
    ("off by one: row r sees r + 1 keys, its own too", "seen = [end - 1 for end in ends]"),
    (
        "off by one: a tile too many where B_c divides the keys seen, round up with -(-seen // B_c)",
        "tiles = [n // B_c + 1 for n in seen]",
    ),
    (
        "tiles cut by the mask are left out: round the keys seen up to whole tiles, -(-seen // B_c)",
        "tiles = [n // B_c for n in seen]",
        "tiles = [(i * B_r + 1) // B_c for i in range(T_r)]",
    ),
    (
        "cut tiles are read as far as they are seen: they are read whole, round the keys seen up to tiles",
        "keys = sum(seen)",
    ),
    (
        "the last column block is shorter: no row block reads more than N rows of K",
        "keys = B_c * sum(tiles)",
        "keys = B_c * sum(-(-(i + 1) * B_r // B_c) for i in range(T_r))",
    ),
    ("the last, shorter row block is left out: there are ceil(N / B_r)", "seen = ends[: N_q // B_r]"),
    (
        "B_r and B_c are exchanged: blocks of B_r rows of Q read tiles of B_c rows of K and V",
        "keys = sum(min(-(-min((i + 1) * B_c, N_q) // B_r) * B_r, N_k) for i in range(-(-N_q // B_c)))",
    ),
    (
        "the mask is upside down: row r sees keys 0 to r",
        "keys = sum(N_k - i * B_r // B_c * B_c for i in range(T_r))",
    ),
    (
        "the tiles that are skipped are counted: count the others",
        "keys = sum(N_k - min(n * B_c, N_k) for n in tiles)",
    ),
    (NOT_SHARED, "keys = sum(min(-(-(r + 1) // B_c) * B_c, N_k) for r in range(N_q))"),
    (
        "tiles are counted as rows of K: each has B_c rows, or fewer at the edge",
        "keys = sum(tiles)",
    ),
    (
        FA1,
        "total = cost.fa1_traffic(N_q, N_k, d, B_r=B_r, B_c=B_c, dtype=DTYPES[itemsize], causal=True).total",
    ),
)


# ---- where tiling pays

SEARCH = """
moved = moved
standard = cost.standard_traffic(N, N, d, dtype=DTYPES[itemsize])
limit = standard.total
sizes = range(1, N + 1)
pays = [B_r for B_r in sizes if moved(B_r) < limit]
first = min(pays, default=None)
found = first
"""


def _search(changed, N, d, itemsize, *, bytes_changed="itemsize = itemsize"):
    moved = cache(lambda B_r: _fa2(bytes_changed, N, N, d, B_r, itemsize))
    return calculations.run(SEARCH, changed, N=N, d=d, itemsize=itemsize, moved=moved, causal=_causal_right)


def _search_with(bytes_changed, N, d, itemsize):
    return _search("found = first", N, d, itemsize, bytes_changed=bytes_changed)


def _search_right(N, d, itemsize):
    standard = cost.standard_traffic(N, N, d, dtype=DTYPES[itemsize]).total
    return next(B_r for B_r in range(1, N + 1) if _fa2_right(N, N, d, B_r, itemsize) < standard)


@exercise(title="Where tiling pays", minutes=10, difficulty="medium")
def break_even(answer):
    sizes = (
        (1, 1, 2),
        (2, 3, 2),
        (4, 8, 2),
        (8, 2, 4),
        (9, 7, 2),
        (20, 24, 4),
        (30, 100, 2),
        (100, 48, 4),
        (150, 200, 2),
        (250, 75, 2),
    )
    mistakes = calculations.mistakes(_search, BREAK_EVEN) + calculations.mistakes(
        _search_with, ROW_BLOCKS + MISTAKES
    )
    return calculations.examine_whole(answer, calculations.cases("N d itemsize", _search_right, sizes), mistakes)


BREAK_EVEN = (
    (
        "as many bytes are not fewer: compare with <, and count lse, 4 N bytes, in both",
        "pays = [B_r for B_r in sizes if moved(B_r) <= limit]",
    ),
    (
        "the comparison is turned round: FA2 must move fewer bytes than standard attention",
        "pays = [B_r for B_r in sizes if moved(B_r) > limit]",
    ),
    ("with B_r = 1, FA2 reads all of K and V N times: count T_r times K and V, in bytes", "found = 1"),
    ("the search stops before N: range(1, N + 1) ends with N", "sizes = range(1, N)"),
    ("the largest B_r is returned: of those with which FA2 moves fewer bytes, take the smallest", "found = N"),
    ("the number of row blocks is returned: return B_r", "found = -(-N // first)"),
    ("one too small: with this B_r FA2 does not yet move fewer bytes", "found = first - 1"),
    ("one too large: the first B_r with which FA2 moves fewer bytes is the answer", "found = first + 1"),
    (
        "that is an estimate for large N: N / B_r is rounded up, so search",
        *(f"found = {d}" for d in ("d // 2", "d / 2", "-(-d // 2)", "d // 2 + 1", "max(1, d // 2)", "d")),
        *(f"found = min(N, {d})" for d in ("max(1, d // 2)", "-(-d // 2)", "d // 2 + 1", "d")),
        *(f"found = {x}" for x in ("max(1, round(N * d / (d + 2 * N)))", "-(-N * d // (d + 2 * N))")),
    ),
    (
        "not all sizes are tried: any whole number from 1 to N may be the answer",
        "sizes = range(2, N + 1)",
        "sizes = range(16, N + 1)",
        "sizes = range(16, N + 1, 16)",
        "sizes = [2**p for p in range(20)]",
        "sizes = [2**p for p in range(20) if 2**p <= N]",
        "sizes = [2**p for p in range(4, 11)]",
        "sizes = [2**p for p in range(4, 11) if 2**p <= N]",
        "sizes = [B_r for B_r in range(1, N + 1) if N % B_r == 0]",
    ),
    (
        "S and P are 4 N^2 numbers in standard attention, both written and then read, and none in FA2",
        *(f"limit = (4 * N * d + {n} * N**2) * itemsize + 4 * N" for n in (1, 2, 3, 5, 6)),
    ),
    (
        "Q, K, V and O are left out of what standard attention moves: 4 N d numbers",
        *(f"limit = (4 * N**2 + {n} * N * d) * itemsize + 4 * N" for n in (0, 2, 3)),
    ),
    ("what standard attention reads is compared alone: take .total, with what it writes", "limit = standard.read"),
    (
        "the order FA1 is searched, for B_c: take FA2 and B_r",
        "moved = lambda B_c: cost.fa1_traffic(N, N, d, B_r=1, B_c=B_c, dtype=DTYPES[itemsize]).total",
    ),
    (
        "a causal mask is counted: take FA2 without one",
        "moved = lambda B: causal(N, d, B, 1, itemsize)",
        "moved = lambda B: causal(N, d, B, B, itemsize)",
    ),
)


# ---- the largest row block that fits

TILE = """
capacity = capacity
itemsize = itemsize
acc = 4
KV = 2 * B_c * d * itemsize
Q = d * itemsize
O_acc = d * acc
S = B_c * acc
P = 0
m_and_l = 2 * acc
row = Q + O_acc + S + P + m_and_l
room = capacity - KV
fit = max(0, room // row)
found = fit
"""


def _tile(changed, capacity, B_c, d, itemsize):
    return calculations.run(TILE, changed, capacity=capacity, B_c=B_c, d=d, itemsize=itemsize)


def _tile_right(capacity, B_c, d, itemsize):
    return cost.largest_B_r(capacity, B_c=B_c, d=d, dtype=DTYPES[itemsize])


@exercise(title="The largest row block that fits", minutes=10, difficulty="medium")
def largest_tile(answer):
    sizes = (
        (cost.sram_bytes(1, 1, 1, "float16"), 1, 1, 2),
        (cost.sram_bytes(1, 1, 1, "float16") - 1, 1, 1, 2),
        (cost.sram_bytes(3, 2, 3, "float16"), 2, 3, 2),
        (cost.sram_bytes(4, 3, 2, "float32") - 1, 3, 2, 4),
        (0, 4, 8, 2),
        (1000, 5, 4, 2),
        (1024, 16, 16, 4),
        (16 * 1024, 64, 64, 2),
        (48 * 1024, 64, 64, 2),
        (99 * 1024, 32, 128, 4),
        (227 * 1024, 16, 16, 2),
    )
    cases = calculations.cases("capacity B_c d itemsize", _tile_right, sizes)
    return calculations.examine_whole(answer, cases, calculations.mistakes(_tile, ON_CHIP))


ON_CHIP = (
    ("off by one: a tile that fills capacity to the byte fits", "capacity = capacity - 1"),
    ("off by one: the first B_r that does not fit is returned, take the one before", "found = fit + 1"),
    ("rounded up, a row too many: what is left does not hold a whole row", "fit = max(0, -(-room // row))"),
    ("not rounded down: B_r is a whole number, divide with //", "fit = max(0, room / row)", "fit = room / row"),
    (
        "where not one row fits the answer is 0: max(0, ...)",
        "fit = room // row",
        "fit = max(1, room // row)",
        "fit = room // row if room >= row else None",
        "fit = room // row if room >= row else -1",
    ),
    ("P_ij is counted beside S_ij: it takes the place of S_ij", "P = 4 * B_c", "P = itemsize * B_c"),
    ("m and l are left out: each takes 4 bytes a row", "m_and_l = 0"),
    ("one of m and l is left out: each takes 4 bytes a row", "m_and_l = 4"),
    (
        "O_acc, S_ij, m and l take 4 bytes a number, whatever itemsize is",
        "acc = itemsize",
        "O_acc = d * itemsize",
        "S = B_c * itemsize",
        "m_and_l = 2 * itemsize",
        "O_acc = d * itemsize; S = B_c * itemsize",
    ),
    ("S_ij is left out: each row holds B_c scores of 4 bytes", "S = 0"),
    ("O_acc is left out: each row holds d numbers of 4 bytes", "O_acc = 0"),
    ("Q_i is left out: each row holds d numbers of itemsize bytes", "Q = 0"),
    ("K_j and V_j are left out: they take room whatever B_r is", "KV = 0"),
    ("one of K_j and V_j is left out: both are held", "KV = B_c * d * itemsize"),
    ("K_j and V_j are counted twice: one of each is held", "KV = 4 * B_c * d * itemsize"),
    ("K_j and V_j are counted again for each row of Q: they are held once", "row = Q + KV + O_acc + S + m_and_l"),
    ("K_j and V_j have B_c rows, not B_r", "KV = 0; row = 3 * Q + O_acc + S + m_and_l"),
    ("O_i is counted beside O_acc: O_acc alone is held", "Q = 2 * d * itemsize"),
    ("itemsize is not used: Q_i, K_j and V_j take 2 or 4 bytes a number", *(f"itemsize = {n}" for n in (1, 2, 4))),
    ("capacity is in bytes, not in KB", *(f"capacity = capacity {by}" for by in ("* 1024", "* 1000", "// 1024"))),
    ("numbers are counted, not bytes: multiply by itemsize, or by 4", "itemsize = 1; acc = 1"),
    (
        "B_r may be any whole number, not powers or multiples of two alone",
        "fit = max(0, room // row); found = 1 << fit.bit_length() - 1 if fit else 0",
        *(f"found = fit // {n} * {n}" for n in (2, 4, 8, 16, 32, 64)),
    ),
    (
        "that is the paper's rule, capacity / (4 d): count what the tile holds",
        "found = capacity // (4 * d * itemsize)",
        "found = -(-capacity // (4 * d * itemsize))",
        "found = capacity // (4 * d)",
    ),
    ("the search ends too early: capacity alone limits B_r", *(f"found = min(fit, {2**p})" for p in range(4, 11))),
    ("all of capacity goes to Q_i: K_j, V_j, O_acc, S_ij, m and l are held too", "found = capacity // Q"),
)


# ---- FLOPs per byte

PER_BYTE = BYTES + "flops = 4 * N_q * N_k * d\nfound = flops / total\n"


def _intensity(changed, N_q, N_k, d, B_r, itemsize):
    return calculations.run(PER_BYTE, changed, N_q=N_q, N_k=N_k, d=d, B_r=B_r, itemsize=itemsize)


def _intensity_right(N_q, N_k, d, B_r, itemsize):
    traffic = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=1, dtype=DTYPES[itemsize])
    return cost.intensity(cost.flops(N_q, N_k, d), traffic)


@exercise(title="FLOPs per byte", minutes=5, difficulty="easy")
def intensity(answer):
    cases = calculations.cases("N_q N_k d B_r itemsize", _intensity_right, SIZES)
    return examine(answer, cases, calculations.mistakes(_intensity, INTENSITY + MISTAKES + ROW_BLOCKS))


INTENSITY = (
    ("that is bytes per FLOP: divide the FLOPs by the bytes", "found = total / flops"),
    ("the FLOPs alone are returned: divide them by the bytes moved", "found = flops"),
    ("the bytes alone are returned: divide the FLOPs by them", "found = total"),
    (
        "the result is rounded: divide with / and do not round",
        *(f"found = {x}" for x in ("flops // total", "-(-flops // total)", "round(flops / total)")),
        *(f"found = round(flops / total, {n})" for n in (1, 2, 3)),
    ),
    (
        "one matrix product is counted, or a multiply-add as one FLOP: the FLOPs are 4 N_q N_k d",
        "flops = 2 * N_q * N_k * d",
    ),
    ("multiply-adds of one matrix product are counted: the FLOPs are 4 N_q N_k d", "flops = N_q * N_k * d"),
    ("d is left out of the FLOPs: each score is a sum of d products", "flops = 4 * N_q * N_k"),
    ("the FLOPs are 4 N_q N_k d: N_q and N_k may differ", "flops = 4 * N_q**2 * d", "flops = 4 * N_k**2 * d"),
    (
        "softmax is counted: the FLOPs are those of the two products, 4 N_q N_k d",
        "flops = (4 * d + 5) * N_q * N_k",
    ),
    (
        "B_r is an estimate for many keys in fp16: divide the FLOPs by the bytes",
        "found = B_r",
        "found = 2 * B_r / itemsize",
    ),
)
