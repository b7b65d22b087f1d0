"""The questions of this chapter."""

import itertools

import numpy as np

from flashlib import cost
from flashlib.checks.engine.prediction import Question


def _registers(B_c, d, num_warps):
    """Return the registers per thread for dK_j and dV_j in fp32, of four bytes like a register."""
    return 2 * B_c * d // (32 * num_warps)


def _weight_past_end(lse):
    """Return e^(S - lse), in fp32, of a key that is loaded as 0."""
    with np.errstate(over="ignore"):
        return np.exp(np.float32(0 - lse))


def _additions(N, B):
    """Return how often each number of dQ is added to: without a mask, and in the first and last row blocks."""
    each, causal = (cost.tiles_per_row_block(N, N, B_r=B, B_c=B, causal=causal) for causal in (False, True))
    return {"no_mask": int(each[-1]), "first": int(causal[0]), "last": int(causal[-1])}


def _parts_that_can_differ():
    """Return the smallest number of parts whose sum in fp32, begun at 0, can depend on their order."""
    rng = np.random.default_rng(0)
    for n in itertools.count(1):
        parts = rng.normal(size=(n, 100)).astype(np.float32)
        sums = [sum(parts[list(order)], np.zeros(100, np.float32)) for order in itertools.permutations(range(n))]
        if any((one != sums[0]).any() for one in sums):
            return n


def _gradients_of_lse():
    """Return which gradients of the sum of lse over all rows are not 0."""
    Q, K, V = np.random.default_rng(0).normal(size=(3, 4, 2))
    P = np.exp(Q @ K.T)
    P /= P.sum(axis=1, keepdims=True)
    dO = np.zeros_like(V)
    dS = P * (dO @ V.T - (0 - 1))
    return {name: bool(X.any()) for name, X in (("dQ", dS @ K), ("dK", dS.T @ Q), ("dV", P.T @ dO))}


QUESTIONS = [
    Question(
        "grads_registers",
        lambda: _registers(128, 128, 8),
        "dK_j and dV_j have 2 * 128 * 128 numbers of one register each, and 8 warps have 256 threads. A thread "
        "may have 255, and S^T, dP^T and addresses come on top.",
        hint="Count the numbers of dK_j and dV_j and divide by the threads. A warp has 32 threads.",
        wrong={
            64: "that is only dK_j, or both in 16 bits: there are two sums, in fp32",
            256: "that is with 4 warps: 8 warps have 256 threads",
            512: "a register holds the 4 bytes of a number in fp32",
            4096: "a warp has 32 threads",
            32768: "that is for the whole program, which has 256 threads",
        },
    ),
    Question(
        "grads_writes",
        lambda: _additions(4096, 128),
        "each of the 4096 / 128 = 32 column blocks adds its part. Under a causal mask the first rows see "
        "only the first column block, and the last rows see all of them.",
        hint="Each column block that sees a row block adds to it once. How many column blocks are there, and "
        "which see the first rows?",
        wrong={
            ("no_mask", 1): "that is how often dK and dV are written: each column block adds its part of dQ",
            ("no_mask", 128): "128 keys are summed in one tile, before the addition",
            ("no_mask", 4096): "128 keys are summed in one tile, before the addition",
            ("no_mask", 1024): "that counts the tiles of all row blocks: a row block has 32",
            ("first", 32): "the first rows see only the first column block",
            ("first", 0): "the first rows see their own keys, which are in the first column block",
            ("last", 1): "the last rows see all keys",
            ("last", 16): "that is the average: the last rows see all keys",
        },
    ),
    Question(
        "grads_order",
        _parts_that_can_differ,
        "with two, 0 + a + b and 0 + b + a are the same number, since floating-point addition is commutative. "
        "With three, (a + b) + c and (a + c) + b can differ: it is not associative.",
        hint="Write down the sums that can occur with one block, with two and with three. Which law makes two of "
        "them equal?",
        wrong={
            1: "one block adds once, to 0",
            2: "a + b and b + a are the same number: addition is commutative, but not associative",
            4: "three parts can be added in different orders already",
        },
    ),
    Question(
        "grads_past_end",
        lambda: str(_weight_past_end(-100)),
        "k is 0 there, so S is 0 and P = e^(0 + 100), about 10^43. The largest number of fp32 is about 10^38.",
        hint="What is the score of a key that is loaded as 0? And what is 0 - (-100)?",
        choices=("0", "1", "inf", "nan"),
        wrong={
            "0": "its score is not far below 0, as those of the keys are: it is the product of q and zeros",
            "1": "that is e^(0 - 0), as for a row past the end: here lse is not 0",
            "nan": "an exponential is only nan of nan, and neither S nor lse is that: it can come later",
        },
    ),
    Question(  # as recorded in h200_backward.json: tests/checks/test_recorded_answers.py compares
        "grads_faster",
        lambda: "two passes",
        "five products in place of seven do not make up for the additions, and for the registers and the shared "
        "memory that the one pass takes: only one of its programs fits on a multiprocessor.",
        hint="The one pass has fewer products. What must its programs hold, and how many of them fit on a "
        "multiprocessor then?",
        choices=("one pass", "two passes"),
        wrong={
            "one pass": "its products are fewer, but so are its programs on a multiprocessor, and it spills",
        },
    ),
    Question(
        "grads_of_lse",
        _gradients_of_lse,
        "dS is P * (0 - (0 - 1)) = P, so dQ and dK, which are products with dS, are not 0. dV is P^T dO, and "
        "lse does not depend on V.",
        hint="Put the three numbers into dS = P * (dP - (delta - dlse)). Which gradients are products with dS?",
        wrong={
            ("dQ", False): "dS is P here, and dQ is scale * dS K",
            ("dK", False): "dS is P here, and dK is scale * dS^T Q",
            ("dV", True): "lse is made of scores, and V is in none of them: dV is P^T dO",
        },
        labels={name: name for name in ("dQ", "dK", "dV")},
    ),
    Question(  # as the notebook prints them: the same test compares
        "grads_same_losses",
        lambda: True,
        "both compute the same gradients in fp32, up to the order of their sums. A difference in the seventh "
        "digit has not grown to the third after 8 steps.",
        hint="In which digit do two sums in fp32 differ if only their order does?",
        wrong={False: "two sums in fp32 differ in about the seventh digit, and 8 steps are few"},
    ),
]
