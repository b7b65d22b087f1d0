"""Calculations of a few lines, kept as text, and the known mistakes in them: the same with some lines exchanged.

So the text of a mistake says what is wrong: "O = 2 * X". BYTES are the bytes that FlashAttention-2 moves, SPEED is
TFLOP/s by the convention, ROOM how many programs a multiprocessor of the H100 can hold.
"""

from functools import cache, partial, wraps
from itertools import combinations

import numpy as np

from flashlib import cost
from flashlib.checks.examine import Case, Mistake, examine
from flashlib.checks.values import describe
from flashlib.checks.verdict import Verdict

DTYPES = {2: "float16", 4: "float32"}


@cache
def _lines(text):
    """Return {name: compiled formula} of lines `name = formula`, one to a line or with "; " between."""
    pairs = (line.split(" = ", 1) for line in text.strip().replace("; ", "\n").splitlines())
    return {name: compile(formula, f"<{name}>", "eval") for name, formula in pairs}


def run(text, changed, **sizes):
    """Return what the last line of a calculation gives, with the lines in `changed` exchanged."""
    known, lines = sizes | {"cost": cost, "DTYPES": DTYPES}, _lines(text)
    if not _lines(changed).keys() <= lines.keys():
        raise ValueError(f"not all of these are lines of the calculation: {changed}")
    for name, formula in (lines | _lines(changed)).items():
        known[name] = eval(formula, known)
    return known[name]


def mistakes(wrong, known):
    """Return the Mistakes of rows (sentence, lines, lines ...); wrong(lines, *arguments) makes one."""
    return [Mistake(sentence, partial(wrong, lines)) for sentence, *all_lines in known for lines in all_lines]


def pairs(known, lines):
    """Return a row for each two of these lines that are of different names, with the sentences of both."""
    named = {line: sentence for sentence, *all_lines in known for line in all_lines if line in lines}
    two = [two for two in combinations(named, 2) if two[0].split(" = ")[0] != two[1].split(" = ")[0]]
    return tuple((f"{named[one]}; and {named[other]}", f"{one}; {other}") for one, other in two)


def cases(names, right, sizes):
    """Return a Case for each tuple of sizes, whose names are given; right(*sizes) is what is expected."""
    words = [", ".join(f"{name} = {n}" for name, n in zip(names.split(), one, strict=True)) for one in sizes]
    return [Case(text, one, right(*one)) for text, one in zip(words, sizes, strict=True)]


def examine_whole(answer, cases, mistakes):
    """Return the Verdict on an answer that must return whole numbers: a float of the right value is wrong too."""
    floats = []

    @wraps(answer)
    def watched(*sizes):
        result = answer(*sizes)
        if isinstance(result, float | np.floating):
            floats.append((sizes, float(result)))
        return result

    verdict = examine(watched, cases, mistakes)
    if not verdict.right or not floats:
        return verdict
    sizes, result = floats[0]
    sentence = "the value is right, but it is a float: stay with whole numbers, ceil(a / b) is -(-a // b)"
    return Verdict("", "wrong", sentence, (("input", describe(answer, sizes)), ("given", repr(result))))


# X is as large as Q, and as O; keys are the rows of K read, over all row blocks.
BYTES = """
itemsize = itemsize
T_r = -(-N_q // B_r)
keys = T_r * N_k
X = N_q * d * itemsize
Q = X
KV = 2 * keys * d * itemsize
O = X
lse = 4 * N_q
total = Q + KV + O + lse
"""
NOT_SHARED = "each row of Q reads K and V for itself: the rows of a block share what is read, T_r times in all"
FA1 = "that is the order FA1: in FA2 K and V are read again, Q and O are moved once"

# Rows of a sentence and of the lines that make the mistake, in one way or another.
MISTAKES = (
    ("K and V are read once in all: each row block reads them again", "keys = N_k"),
    (
        "one of K and V is left out: a row block reads both K_j and V_j",
        "KV = keys * d * itemsize",
        "KV = (keys + N_k) * d * itemsize",
    ),
    ("K and V are left out: each row block reads them", "KV = 0"),
    ("Q or O is left out: Q is read once, and O, as large, is written once", "O = 0"),
    ("Q and O are left out: Q is read once and O written once", "X = 0"),
    ("Q or O is counted twice: Q is read once, O is written once and not read", "O = 2 * X"),
    ("lse is left out: for each row of Q, 4 bytes are written", "lse = 0"),
    ("lse is counted with itemsize: it takes 4 bytes a row in any case", "lse = N_q * itemsize"),
    ("lse is counted as one byte a row: it takes 4", "lse = N_q"),
    ("lse is one number for each row of Q, not d: it takes 4 N_q bytes", "lse = 4 * N_q * d", "lse = X"),
    ("m and l are counted: FA2 stores lse alone, 4 bytes a row", "lse = 8 * N_q", "lse = 12 * N_q"),
    ("lse is written again by each row block: a block writes its own rows", "lse = 4 * N_q * T_r"),
    ("itemsize is not used: a number of Q, K, V and O takes 2 or 4 bytes", "itemsize = 2", "itemsize = 4"),
    (
        "numbers are counted, not bytes: multiply those of Q, K, V and O by itemsize",
        "itemsize = 1",
        "itemsize = 1; lse = N_q",
    ),
    ("the result is in bits: return bytes", "total = 8 * (Q + KV + O + lse)"),
    (
        "the result is in KB or MB: return bytes",
        *(
            f"total = (Q + KV + O + lse) {by}"
            for by in ("/ 1000", "// 1000", "/ 1024", "// 1024", "/ 1e6", "/ 2**20")
        ),
    ),
    (
        "that is what standard attention moves: FA2 keeps S_ij and P_ij on chip, and reads K and V again",
        "total = cost.standard_traffic(N_q, N_k, d, dtype=DTYPES[itemsize]).total",
    ),
    ("what is written is left out: O and lse", "O = 0; lse = 0"),
    ("what is read is left out: Q, and K and V for each row block", "Q = 0; KV = 0"),
    ("Q is read again by each row block: a block reads its own rows alone", "Q = X * T_r"),
    ("Q and O are moved again by each row block: a block moves its own rows alone", "Q = X * T_r; O = X * T_r"),
    (
        "S or P is counted: FA2 keeps S_ij and P_ij on chip",
        *(f"O = X + {n} * N_q * N_k * itemsize" for n in (1, 2, 4)),
    ),
    (
        "Q, O and lse have N_q rows, no more: the last row block is shorter",
        "X = T_r * B_r * d * itemsize",
        "X = T_r * B_r * d * itemsize; lse = 4 * T_r * B_r",
    ),
)
APART = (("read and written are returned apart: add them up", "total = (Q + KV, O + lse)"),)
ROW_BLOCKS = (
    ("N_q // B_r is rounded down: the last, shorter row block reads K and V too", "T_r = N_q // B_r"),
    ("N_q / B_r is not rounded: there are ceil(N_q / B_r) row blocks", "T_r = N_q / B_r"),
    ("a row block too many where B_r divides N_q: ceil(N_q / B_r) is -(-N_q // B_r)", "T_r = N_q // B_r + 1"),
    ("a row block too few: ceil(N_q / B_r) is (N_q + B_r - 1) // B_r", "T_r = (N_q - 1) // B_r"),
    (NOT_SHARED, "keys = N_q * N_k"),
    ("K and V are read B_r times: they are read once for each row block, T_r times", "keys = B_r * N_k"),
    ("N_k is cut into row blocks: Q is, so K and V are read ceil(N_q / B_r) times", "T_r = -(-N_k // B_r)"),
    ("K and V have N_k rows, not N_q", "keys = T_r * N_q"),
    ("Q, O and lse have N_q rows, not N_k", "X = N_k * d * itemsize", "X = N_k * d * itemsize; lse = 4 * N_k"),
    (
        FA1,
        "keys = N_k; Q = 2 * X * -(-N_k // B_r); O = X * -(-N_k // B_r)",
        "total = cost.fa1_traffic(N_q, N_k, d, B_r=B_r, B_c=B_r, dtype=DTYPES[itemsize]).total",
    ),
    (
        "a causal mask is counted: every row block reads all of K and V",
        "total = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=B_r, dtype=DTYPES[itemsize], causal=True).total",
        "total = cost.fa2_traffic(N_q, N_k, d, B_r=B_r, B_c=1, dtype=DTYPES[itemsize], causal=True).total",
    ),
)

# ---- TFLOP/s

SPEED = """
FLOP = 4 * B * H * N * N * d
counted = FLOP / 2 if causal else FLOP
seconds = ms / 1000
total = counted / seconds / 1e12
"""
FOUR = (
    "there are two products, of 2 N^2 d FLOP each: a multiplication and an addition count as two, 4 N^2 d in all"
)
HALF = "a causal mask counts as half: divide the FLOP by 2 if causal"
TERA = "a TFLOP is 10^12 FLOP, and ms are 10^-3 s: FLOP / (ms * 1e-3) / 1e12"

SPEEDS = (
    (FOUR, "FLOP = 2 * B * H * N * N * d", "FLOP = B * H * N * N * d", "FLOP = 8 * B * H * N * N * d"),
    (HALF, "counted = FLOP"),
    (f"{HALF}, and not if it is not", "counted = FLOP / 2", "counted = FLOP if causal else FLOP / 2"),
    ("a causal mask counts as half, not double", "counted = FLOP * 2 if causal else FLOP"),
    (
        "the convention counts a causal mask as exactly half, whatever is hidden: not N (N + 1) / 2 scores",
        "counted = FLOP * (N + 1) / (2 * N) if causal else FLOP",
        "counted = FLOP * (N - 1) / (2 * N) if causal else FLOP",
    ),
    ("ms is taken as seconds: it is a thousandth of them", "seconds = ms"),
    (
        "the result is 1000 times too large: a TFLOP is 10^12 FLOP, and a ms is 10^-3 s",
        "seconds = ms / 1e6",
    ),
    ("ms is multiplied by 1000: a ms is a thousandth of a second", "seconds = ms * 1000"),
    (
        f"10^12 is not in it, or not whole: {TERA}",
        *(f"total = counted / seconds / {by}" for by in ("1", "1e3", "1e6")),
    ),
    (f"a tera is 10^12, not 2^40: {TERA}", "total = counted / seconds / 2**40"),
    ("the result is the number of TFLOP: divide it by the seconds", "total = counted / 1e12"),
    ("the result is seconds for each TFLOP: it is the other way round", "total = seconds / counted * 1e12"),
    ("S has N^2 scores, not N: 4 N^2 d FLOP for a head", "FLOP = 4 * B * H * N * d"),
    ("N comes in twice and d once: 4 N^2 d FLOP for a head", "FLOP = 4 * B * H * N * d * d"),
    ("d is left out: each score, and each weight, takes 2 d FLOP", "FLOP = 4 * B * H * N * N"),
    ("the heads are left out: there are B * H of them", "FLOP = 4 * N * N * d"),
    ("H is left out: there are B sequences of H heads, each of them with d columns", "FLOP = 4 * B * N * N * d"),
    ("B is left out: there are B sequences of H heads", "FLOP = 4 * H * N * N * d"),
    ("H comes in twice: d is that of one head", "FLOP = 4 * B * H * N * N * d * H"),
    (
        "the exponentials are counted: the convention counts the two products alone",
        *(f"FLOP = 4 * B * H * N * N * d + {n} * B * H * N * N" for n in (1, 2, 3, 4, 5)),
    ),
    (
        "the backward pass is counted: this is the forward pass alone",
        *(f"FLOP = {n} * B * H * N * N * d" for n in (10, 14)),
    ),
    (
        "the result is rounded: it need not be a whole number",
        "total = counted // seconds // 1e12",
        *(f"total = round(counted / seconds / 1e12, {n})" for n in (0, 1, 2)),
    ),
    (
        "`a * b if causal else c` is `(a * b) if causal else c`: put the choice in parentheses",
        "total = counted if causal else 1 / seconds / 1e12",
    ),
)
SPEEDS += pairs(SPEEDS, ("FLOP = 2 * B * H * N * N * d", "counted = FLOP", "seconds = ms", "seconds = ms / 1e6"))

# ---- programs on a multiprocessor

ROOM = """
of_warp = -(-registers * 32 // 256) * 256
of_program = of_warp * num_warps
by_registers = 65536 // of_program
taken = shared + 1024
by_shared = 228 * 1024 // taken
by_warps = 64 // num_warps
total = min(by_registers, by_shared, by_warps)
"""
UNITS = "round registers * 32 up to a multiple of 256"
SYSTEM = "228 KB hold 228 * 1024 // (shared + 1024) programs"

ROOMS = (
    (
        "registers limit it more: each thread has as many, a warp 32 threads, and a program num_warps warps",
        "of_warp = -(-registers // 256) * 256",
        "of_warp = registers",
        "by_registers = 65536 // registers",
        "by_registers = 64",
    ),
    ("registers are counted for one warp: a program has num_warps of them", "of_program = of_warp"),
    (f"registers are not handed out one by one: {UNITS}", "of_warp = registers * 32"),
    (f"the registers of a warp are rounded down: {UNITS}", "of_warp = registers * 32 // 256 * 256"),
    (
        "the registers of a thread are rounded up to 256: round those of a warp, registers * 32",
        "of_warp = -(-registers // 256) * 256 * 32",
    ),
    ("64K registers are 65536, not 64000", "by_registers = 64000 // of_program"),
    ("a quarter of the registers is counted: a multiprocessor has 65536", "by_registers = 16384 // of_program"),
    (f"the system's 1 KB is left out: {SYSTEM}", "taken = shared if shared else 1"),
    (
        f"the system's 1 KB is taken once, and not for each program: {SYSTEM}",
        "by_shared = 227 * 1024 // shared if shared else 64",
    ),
    (f"1 KB is taken off twice: {SYSTEM}", "by_shared = 227 * 1024 // taken"),
    (
        "a KB of shared memory is 1024 bytes",
        "by_shared = 228000 // taken",
        "by_shared = 228000 // (shared + 1000)",
    ),
    (
        "it is always 0: 64 counts warps, not threads, and 228 KB are 228 * 1024 bytes",
        "by_warps = 64 // (num_warps * 32)",
        "by_shared = 228 // taken",
    ),
    ("shared memory is left out: the least of the three limits counts", "by_shared = 64"),
    ("warps are left out: a multiprocessor has room for 64, and so for 64 // num_warps programs", "by_warps = 64"),
    (
        "the largest of the three limits is taken: the least counts",
        "total = max(by_registers, by_shared, by_warps)",
    ),
    ("the three limits are returned: return the least", "total = (by_registers, by_shared, by_warps)"),
    (
        "at least one program is taken for granted: 0 if not even one fits",
        "total = max(1, min(by_registers, by_shared, by_warps))",
    ),
    ("warps are returned, not programs", "total = min(by_registers, by_shared, by_warps) * num_warps"),
    (
        "a program that fits in part is counted: round down",
        "by_registers = -(-65536 // of_program); by_shared = -(-228 * 1024 // taken)",
    ),
    (
        "a program that fits in part is counted: round down",
        "by_registers = 65536 / of_program; by_shared = 228 * 1024 / taken",
    ),
    (
        "a program that fits in part is counted: round down",
        "by_registers = 65536 / of_program; by_shared = 228 * 1024 / taken; "
        "total = int(min(by_registers, by_shared, by_warps) + 0.5)",
        "by_registers = 65536 / of_program; by_shared = 228 * 1024 / taken; "
        "total = round(min(by_registers, by_shared, by_warps))",
    ),
    (
        "a unit of registers too many where 256 divides them: round up with -(-n // 256) * 256",
        "of_warp = (registers * 32 // 256 + 1) * 256",
    ),
    (
        "shared is that of a program already: it is not multiplied by num_warps",
        "by_shared = 228 * 1024 // (taken * num_warps)",
        "by_shared = 228 * 1024 // (shared * num_warps + 1024)",
    ),
)
ROOMS += pairs(
    ROOMS,
    (
        "of_warp = registers * 32",
        "taken = shared if shared else 1",
        "by_shared = 227 * 1024 // shared if shared else 64",
    ),
)
