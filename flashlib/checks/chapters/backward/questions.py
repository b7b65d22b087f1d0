"""The questions of this chapter."""

import ast
import inspect

import numpy as np

from flashlib import cost, naive, tiled
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

N, d = 4096, 64


def _of_equal_dp():
    """Return the largest number of ds if all numbers of dp are 3."""
    p = np.exp(np.arange(4.0)) / np.exp(np.arange(4.0)).sum()
    J = np.diag(p) - np.outer(p, p)
    return round(float(np.abs(J @ np.full(4, 3.0)).max()), 9)


def _kept_bytes():
    """Return the bytes of P divided by the bytes of O and lse."""
    itemsize = cost.ITEMSIZE["float32"]
    return round(N * N * itemsize / (N * d * itemsize + N * 4))


def _products():
    """Return the matrix products per tile in the two passes together."""
    loops = (ast.parse(inspect.getsource(loop)) for loop in (tiled.dkv_steps, tiled.dq_steps))
    return sum(isinstance(node, ast.MatMult) for loop in loops for node in ast.walk(loop))


def _bytes_of_a_tile():
    """Return the bytes that a tile moves in one pass, divided by those it moves in two, if no cache helps."""
    Q_and_dO = K_and_V = 2 * cost.ITEMSIZE["float16"]
    added_to_dQ = 2 * cost.ITEMSIZE["float32"]  # read and written
    return (Q_and_dO + added_to_dQ) / (Q_and_dO + K_and_V)


def _largest_d():
    """Return the largest power of two d at which an entry of P is made again in the time of 4 bytes."""
    exponential = GPUS["H200"].fp16 / 3.9e12  # in FLOPs of the tensor cores, as in the chapter
    return max(d for d in (2**k for k in range(12)) if 2 * d + exponential < 4 * GPUS["H200"].ridge)


def _visits():
    """Return how many tiles the first and the last column block visit in the player's initial setting."""
    Q, K, V, dO = np.ones((4, 8, 4))
    forward = naive.attention(Q, K, V, causal=True)
    trace = tiled.backward_steps(Q, K, V, *forward, dO, wrt="kv", B_r=4, B_c=2, causal=True)
    visited = [step.j for step in trace]
    return {"first": visited.count(0), "last": visited.count(3)}


QUESTIONS = [
    Question(
        "backward_flops",
        lambda: cost.backward_flops(N, N, d) / cost.flops(N, N, d),
        "five products, each of 2 N_q N_k d FLOPs, against two, S and O. The five are S = Q K^T once more, dV, "
        "dP, dQ and dK.",
        hint="Count the matrix products of the backward pass, S = Q K^T included, and those of the forward pass.",
        wrong={
            2: "these are dV, dP, dQ and dK; S = Q K^T is computed again, a fifth product",
            5: "that is how many products the backward has; the forward has two",
            3.5: "that is forward and backward together, 7 / 2",
            1: "it has five products where the forward has two",
        },
        tolerance=1e-6,
    ),
    Question(
        "backward_constant",
        _of_equal_dp,
        "each number of dp is multiplied by a column of J, and the columns sum to 0. It has to be 0: the weights "
        "sum to 1, so they cannot all become smaller, whatever happens to the scores.",
        hint="The weights of a row sum to 1. Is there a change of the scores that makes all of them smaller?",
        wrong={
            3: "that would be so if each weight depended on its own score alone",
            -3: "that would be so if each weight depended on its own score alone, and with a different sign",
        },
    ),
    Question(
        "backward_memory",
        _kept_bytes,
        "a row of P has N = 4096 numbers; a row of O has d = 64, and lse is one more: 4096 / 65.",
        hint="A row of P has N numbers. How many numbers do O and lse have in a row?",
        wrong={
            4096: "lse is one number in place of 4096, but O is kept too",
            64: "lse is kept too: a row of O and lse has 65 numbers",
            126: "S is not kept: the backward pass of the softmax needs only P",
            32: "that would be P in 2 bytes a number; all is fp32",
            16: "Q, K and V are kept by both and not counted here: only O and lse are",
        },
        tolerance=0.005,
    ),
    Question(
        "backward_products",
        _products,
        "S and dP are computed in both passes: S, dP, dV, dK are four, and S, dP, dQ three.",
        hint="List the products: S, dP, dV, dK, dQ. Which of them does each of the two passes need?",
        wrong={
            10: "a pass computes only its own gradients: dV and dK, or dQ",
            8: "the pass for dQ has three products: S, dP and dQ",
            6: "both passes need S and dP, one for dV and dK, one for dQ",
            5: "that is one pass: of two, each needs S and dP",
        },
    ),
    Question(
        "backward_costs",
        _bytes_of_a_tile,
        "for each number of a block, the one pass loads 2 bytes of Q_i and 2 of dO_i. Adding to dQ_i reads 4 and "
        "writes 4: 12 in all. Of two passes one loads Q_i and dO_i, the other K_j and V_j: 8.",
        hint="Which two blocks does each tile load in each pass? A number loaded in fp16 is 2 bytes. What does an "
        "addition to dQ_i move?",
        wrong={
            1: "dQ_i is in fp32, and an addition reads it and writes it: 8 bytes a number",
            0.5: "the additions to dQ_i count too",
            2 / 3: "that is the two passes divided by the one",
            2: "the one pass loads K_j and V_j once for a column block, not for each tile",
            5 / 7: "these are the products; the question is about bytes",
        },
        tolerance=1e-2,
    ),
    Question(
        "backward_visits",
        _visits,
        "all rows see key 0, so the first column block visits both row blocks. Only rows 6 and 7 see keys 6 and "
        "7, and they lie in one row block.",
        hint="Which rows see a key of the first column block, and which see keys 6 and 7? In which row blocks are "
        "they?",
        wrong={
            ("first", 1): "that is how many the last has; every row sees key 0",
            ("first", 4): "4 is the number of column blocks; there are two row blocks",
            ("last", 2): "rows 0 to 3 do not see keys 6 and 7",
            ("last", 0): "rows 6 and 7 see their own keys",
            ("last", 4): "tiles of a column are counted, and there are two row blocks",
        },
    ),
    Question(
        "backward_remake",
        _largest_d,
        "the product takes 2 d FLOPs, and the exponential as long as about 254. Together they must be below 824: "
        "512 + 254 is, 1024 + 254 is not.",
        hint="In FLOPs of the tensor cores: how long do 4 bytes take, how long the exponential, and what is "
        "left for 2 d?",
        wrong={
            64: "at twice this d the product and the exponential take less than 824 FLOPs too",
            128: "at twice this d the product and the exponential take less than 824 FLOPs too",
            285: "that is where the two are equal; which power of two is below it?",
            412: "the exponential takes time too; and which power of two is below?",
            512: "2 d alone is 1024 there: the product has a multiplication and an addition for each of d numbers",
        },
    ),
]
