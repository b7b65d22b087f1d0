"""The questions of this chapter."""

import math

import numpy as np

from flashlib import naive, tiled
from flashlib.checks.engine.prediction import Question
from flashlib.softmax import summarise


def _programs(H, N_q, N_k, B):
    """Return the programs and the readers of a row of K, with a program for each row block; the parts of a row of
    S, with one for each tile."""
    T_r, T_c = len(list(tiled.blocks(N_q, B))), len(list(tiled.blocks(N_k, B)))
    return {"programs": T_r * H, "readers": T_r, "parts": T_c}


def _rows_of_zeros(m, n):
    """Return by how much n keys with score 0 increase m and l of a row."""
    before, after = summarise(np.array([m])), summarise(np.array([m] + [0.0] * n))
    return {"m": float(after.m - before.m), "l": float(after.l - before.l)}


def _final_rows(N_q, N_k, c):
    """Return how many rows of O are the same with the first c keys as with all, under a causal mask."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(N, 4)) for N in (N_q, N_k, N_k))
    whole, cut = (naive.attention(Q, K[:n], V[:n], causal=True).O for n in (N_k, c))
    return int(np.isclose(whole, cut).all(axis=1).sum())


def _kinds(N, B_r, B_c):
    """Return how many tiles of a causal mask are full, cut and skipped, found by checking each score."""
    kinds = {"full": 0, "cut": 0, "skipped": 0}
    for rows in tiled.blocks(N, B_r):
        for cols in tiled.blocks(N, B_c):
            seen = tiled.is_visible(rows, cols, 0)
            kinds["full" if seen.all() else "cut" if seen.any() else "skipped"] += 1
    return kinds


QUESTIONS = [
    Question(
        "flash_programs",
        lambda: _programs(2, 72, 88, 16),
        "5 row blocks in each of 2 heads make 10 programs, and the 5 of a head all read its K. With a program for "
        "each tile, a row's terms would be spread over the 6 tiles beside each other.",
        hint="72 rows make 5 row blocks, the last of them half full. A row of K belongs to one head.",
        wrong={
            ("programs", 5): "there are two heads",
            ("programs", 60): "those are the tiles of both heads; here a program has a row block",
            ("readers", 1): "programs do not communicate: each row block reads all of K for itself",
            ("readers", 10): "a row of K belongs to one head, and only its 5 programs read it",
            ("parts", 30): "those are all tiles of a head; a row lies in those beside each other",
            ("parts", 5): "that is how many row blocks there are; a row goes through all column blocks",
        },
    ),
    Question(
        "flash_zero_rows",
        lambda: _rows_of_zeros(2.0, 8),
        "a score of 0 is below the maximum 2, so m stays; but each of the 8 rows adds e^(0 - 2) = 0.1353 to l.",
        hint="Compare the score of a row of zeros with m. And what is its exp(S - m)?",
        wrong={
            ("l", 8): "each adds e^(0 - m), which is 1 only if m is 0",
            ("m", -2): "the maximum does not fall: 0 is smaller than 2",
            ("l", math.exp(-2)): "that is one of the eight rows",
        },
        tolerance=0.02,
    ),
    Question(
        "flash_final_rows",
        lambda: _final_rows(40, 56, 32),
        "the mask is aligned with the end of K: with N_k = 32 query r sees keys up to r - 8, and with all keys it "
        "sees those up to r + 16.",
        hint="The causal mask is aligned with the end of K. What happens to it when K is cut?",
        wrong={
            16: "so it would be if the queries were cut too, so that N_k - N_q stays",
            32: "that is the number of keys; the mask moves when K is cut",
            40: "under the causal mask most queries have keys among those that are cut off",
        },
    ),
    Question(
        "flash_base_2",
        lambda: {"m_2": math.log2(16), "l": float(summarise(np.log([16.0, 4.0, 4.0])).l)},
        "in base 2 the scores are 4, 2 and 2, so m_2 = 4 and l = 2^0 + 2^-2 + 2^-2.",
        hint="Turn the scores into base 2 first: log 16 becomes log2 16. Then sum the powers 2^(s - m_2).",
        wrong={
            ("m_2", math.log(16)): "that is m, in base e: log2(16) is a whole number",
            ("l", 1.25): "there are two scores of log 4",
            ("l", 24): "that is l e^m; l is measured against the maximum",
        },
        tolerance=1e-3,
        labels={"m_2": "m_2"},
    ),
    Question(
        "flash_registers",
        lambda: {f"with_{warps}": 64 * 128 // (32 * warps) for warps in (4, 8)},
        "4 warps are 128 threads, and 64 x 128 numbers divided among them are 64 for each; twice as many threads "
        "hold half as many each.",
        hint="Count the threads first. A number in fp32 takes one register.",
        wrong={
            ("with_4", 2048): "that is what each warp holds; it has 32 threads",
            ("with_8", 1024): "that is what each warp holds; it has 32 threads",
            ("with_4", 256): "4 bytes are one register of 32 bits",
            ("with_8", 128): "4 bytes are one register of 32 bits; or are there more threads?",
            ("with_8", 64): "8 warps are twice as many threads",
        },
        labels={"with_4": "with 4 warps", "with_8": "with 8 warps"},
    ),
    Question(
        "flash_kinds_square",
        lambda: _kinds(96, 16, 16),
        "the 6 tiles on the diagonal are cut, the 15 below it full, the 15 above it skipped.",
        hint="Draw the grid: tiles on the diagonal, below it and above it.",
        wrong={
            ("full", 21): "the tiles on the diagonal are cut",
            ("skipped", 21): "the tiles on the diagonal are cut, and computed",
            ("full", 18): "the two halves of 36 have the diagonal between them",
            ("skipped", 18): "the two halves of 36 have the diagonal between them",
        },
    ),
    Question(
        "flash_kinds_tall",
        lambda: _kinds(96, 32, 16),
        "each of the 3 row blocks has 2 cut tiles, since the mask moves on by 32 keys within it; before them lie "
        "0, 2 and 4 full ones.",
        hint="Each row block has 32 rows and each column block 16 keys. Through how many tiles of a row block "
        "does the diagonal pass?",
        wrong={
            ("cut", 3): "the edge of the mask goes through two tiles of each row block",
            ("full", 9): "the cut tiles are not full",
        },
    ),
]
