"""Calculations of a few lines, kept as text, and the known mistakes in them: the same with some lines exchanged.

So the text of a mistake says what is wrong: "O = 2 * X". BYTES are the bytes that FlashAttention-2 moves.
"""

from functools import cache, partial, wraps

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
