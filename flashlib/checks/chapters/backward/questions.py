"""The questions of this chapter."""

import ast
import inspect

import numpy as np

from flashlib import cost, naive, tiled
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import GPUS

N, d = 4096, 64


def _example():
    """Return S, P, lse and dS of a small head."""
    rng = np.random.default_rng(0)
    Q, K, V, dO = rng.normal(size=(4, 7, 4))
    O, lse = naive.attention(Q, K, V)
    S = Q @ K.T * 0.5
    P = np.exp(S - lse[:, None])
    return S, P, lse, P * (dO @ V.T - (dO * O).sum(axis=1, keepdims=True))


def _row_sum():
    *_, dS = _example()
    return round(float(abs(dS.sum(axis=1)).max()), 9)


def _kept():
    """Return how many numbers a row keeps besides Q, K, V and O: those that `attention` returns besides O."""
    Q, K, V = np.ones((3, 5, 2))
    return naive.attention(Q, K, V).lse.size // len(Q)


def _factor():
    """Return the factor by which P is too large if m is used instead of lse."""
    S, P, lse, _ = _example()
    m = S.max(axis=1)
    named = {"l": np.exp(lse - m), "exp(m)": np.exp(m), "exp(lse)": np.exp(lse)}
    factor = (np.exp(S - m[:, None]) / P)[:, 0]
    return next(name for name, value in named.items() if np.allclose(value, factor))


def _kept_bytes():
    """Return the bytes of P divided by the bytes of O and lse."""
    itemsize = cost.ITEMSIZE["float32"]
    return round(N * N * itemsize / (N * d * itemsize + N * 4))


def _stays():
    """Return the gradients that the loop with the column block outside accumulates."""
    Q, K, V, dO = np.ones((4, 2, 2))
    step = next(tiled.backward_steps(Q, K, V, *naive.attention(Q, K, V), dO, wrt="kv"))
    sums = tuple(name for name in ("dQ_i", "dK_j", "dV_j") if getattr(step, name) is not None)
    return {("dQ_i",): "dQ", ("dK_j", "dV_j"): "dK and dV", ("dQ_i", "dK_j", "dV_j"): "all three"}[sums]


def _products():
    """Return the matrix products per tile in the two passes: those with different results, and all."""
    made = []
    for loop in (tiled.dkv_steps, tiled.dq_steps):
        for node in ast.walk(ast.parse(inspect.getsource(loop))):
            if isinstance(node, ast.Assign) and any(isinstance(x, ast.MatMult) for x in ast.walk(node.value)):
                made.append(node.targets[0].id)
    return {"one_pass": len(set(made)), "two_passes": len(made)}


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
        "backward_rowsum",
        _row_sum,
        "each number of dp is multiplied by a column of J, and the columns sum to 0, as the rows do. It has to be "
        "0: a number added to all scores of a row changes nothing.",
        hint="J is symmetric, so its columns sum to what its rows sum to. How much does each number of dp add?",
        wrong={1: "a row of P sums to 1, so what one weight gains the others lose: their changes sum to 0"},
    ),
    Question(
        "backward_kept",
        _kept,
        "only lse = m + log(l), since exp(S - m) / l = exp(S - m - log(l)) = exp(S - lse).",
        hint="Write exp(S - m) / l as one exponential. What is subtracted from S?",
        wrong={
            2: "m and l would do, but P needs them only together, as m + log(l)",
            0: "without the sum over all keys a tile cannot know what its weights are divided by",
            3: "m and l would do, and lse holds both",
        },
    ),
    Question(
        "backward_m",
        _factor,
        "exp(S - m) is l times exp(S - lse), as lse = m + log(l). Nothing overflows, so the mistake does not "
        "show.",
        hint="S - m and S - lse are two exponents. By how much do they differ? Take exp of that.",
        choices=("l", "exp(m)", "exp(lse)"),
        wrong={
            "exp(m)": "the shift by m is included; the division by l is missing",
            "exp(lse)": "the exponents differ by lse - m = log(l), not by lse",
        },
    ),
    Question(
        "backward_memory",
        _kept_bytes,
        "a row of P has N = 4096 numbers; a row of O has d = 64, and lse is one more: 4096 / 65.",
        hint="A row of P has N numbers. How many numbers do O and lse have in a row?",
        wrong={
            4096: "lse is one number in place of 4096, but O is kept too",
            126: "S is not kept: the backward pass of the softmax needs only P",
            32: "that would be P in 2 bytes a number; all is fp32",
            16: "Q, K and V are kept by both and not counted here: only O and lse are",
        },
        tolerance=0.016,
    ),
    Question(
        "backward_stays",
        _stays,
        "dK_j and dV_j belong to column block j, and every tile adds to them. dQ_i changes with i: each tile "
        "adds to another row block's.",
        hint="Which of the sums have the index j, the one that the program keeps?",
        choices=("dQ", "dK and dV", "all three"),
        wrong={
            "dQ": "that is so if a row block stays; here Q_i passes by, and dQ_i with it",
            "all three": "the parts of dQ_i belong to another row block in each tile",
        },
    ),
    Question(
        "backward_products",
        _products,
        "S, dP, dV, dK and dQ are five. Two passes compute S and dP in both: S, dP, dV, dK and S, dP, dQ are "
        "seven.",
        hint="List the products: S, dP, dV, dK, dQ. Which of them does each of the two passes need?",
        wrong={
            ("one_pass", 4): "P is not kept, so S = Q K^T is computed again too",
            ("one_pass", 3): "S = Q K^T and dP = dO V^T come before dV, dK and dQ",
            ("two_passes", 10): "a pass computes only its own gradients: dV and dK, or dQ",
            ("two_passes", 8): "the pass for dQ has three products: S, dP and dQ",
            ("two_passes", 6): "both passes need S and dP, one for dV and dK, one for dQ",
            ("two_passes", 5): "S and dP are computed in both passes",
        },
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
        lambda: 4 * GPUS["H200"].ridge,
        "989.4 / 4.8 is 206 FLOPs in the time of a byte, and four bytes are moved. To compute the number again "
        "takes 2 d, 128 at d = 64, and an exponential, which lasts as long as about 250.",
        hint="Divide the FLOP/s by the bytes per second. That is for one byte.",
        wrong={
            206: "that is for one byte; the number takes 2 bytes and is moved twice",
            412: "that is for 2 bytes; the number is written and read",
            1650: "in fp16 a number takes 2 bytes, not 4; written and read it is 4",
        },
        tolerance=0.0121,
        unit="FLOP",
    ),
]
