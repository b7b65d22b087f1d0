"""The questions of this chapter."""

import numpy as np

from flashlib import softmax, tiled
from flashlib.checks.engine.prediction import Question
from flashlib.memory import HBM

X = np.array([1.0, 2.0, 4.0, 3.0])  # the scores and values of section 1
V4 = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
FIRST_L = 1 + float(np.exp(-1))  # l of each of the two blocks there, taken alone
SAME = {"right": "the right output", "nan": "nan", "zeros": "zeros", "mean": "the mean of the values"}


def _random(N, d):
    """Return random Q, K and V, as in the chapter."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(N, d)) for _ in range(3)]


def _stream():
    """Return how many numbers a query keeps, and whether the order of the blocks changes them."""
    Q, K, V = _random(12, 4)
    blocks = list(tiled.blocks(12, 3))
    kept = [sum(np.exp(Q @ K[cols].T) @ V[cols] for cols in order) for order in (blocks, blocks[::-1])]
    return {"numbers": kept[0].shape[1], "order": not np.allclose(*kept)}


def _nan_rows():
    Q, K, V = _random(12, 4)
    with np.errstate(all="ignore"):
        E = np.exp(1e5 * Q @ K.T / np.sqrt(4))
        return int(np.isnan(E @ V / E.sum(axis=1, keepdims=True)).any(axis=1).sum())


def _second_block():
    """Return alpha, l and the first entry of O_acc after the second block of section 1."""
    first, second = (softmax.summarise(X[keys], V4[keys]) for keys in (slice(0, 2), slice(2, 4)))
    both = softmax.merge(first, second)
    return {"alpha": float(np.exp(first.m - both.m)), "l": float(both.l), "O_acc": float(both.O_acc[0])}


def _divisions(N_k=4096, d=64, B_c=64):
    return {"unnormalised": d, "normalised": N_k // B_c * (d + 1)}


def _row_without_keys():
    with np.errstate(invalid="ignore"):
        alpha = np.exp(np.array(-np.inf) - np.array(-np.inf))
    return f"{alpha:g}"


def _rescaled():
    """Return which rows of row block 0 in the player are rescaled last, and which twice."""
    rows = [
        (step.j, r)
        for step in tiled.steps(*_random(8, 4), B_r=4, B_c=2)
        for r in range(4)
        if step.i == 0 and 0 < step.alpha[r] < 1
    ]
    counted = [r for _, r in rows]
    return {"last": max(rows)[1], "twice": next(r for r in counted if counted.count(r) == 2)}


def _first_wrong():
    """Return where a loop that does not rescale O_acc first goes wrong: at the first tile that needs rescaling."""
    for k, step in enumerate(tiled.steps(*_random(8, 4), B_r=4, B_c=2)):
        rescaled = np.flatnonzero((0 < step.alpha) & (step.alpha < 1))
        if len(rescaled):
            return {"step": k + 1, "row": step.rows.start + int(rescaled[0]), "l_wrong": False}
    raise AssertionError("no row is rescaled")


def _passes():
    Q, K, V = _random(64, 8)
    passes = {}
    for B_r in (64, 16, 1):
        (K_hbm,) = HBM.put(K)
        tiled.attention(Q, K_hbm, V, B_r=B_r, B_c=16)
        passes[f"B_r_{B_r}"] = K_hbm.traffic.read // K.nbytes
    return passes


def _from_0(x):
    """Return the output of a row in blocks of two if m starts at 0."""
    m, l, O_acc = 0.0, 0.0, np.zeros(2)
    for cols in tiled.blocks(len(x), 2):
        m_old, m = m, max(m, x[cols].max())
        alpha, p = np.exp(m_old - m), np.exp(x[cols] - m)
        l, O_acc = alpha * l + p.sum(), alpha * O_acc + p @ V4[cols]
    with np.errstate(invalid="ignore"):
        return O_acc / l


def _after_1000():
    O = _from_0(X - 1000)
    known = {
        "right": softmax.safe(X) @ V4,
        "nan": np.full(2, np.nan),
        "zeros": np.zeros(2),
        "mean": V4.mean(axis=0),
    }
    return next(SAME[name] for name, value in known.items() if np.allclose(O, value, equal_nan=True))


QUESTIONS = [
    Question(
        "stream_state",
        _stream,
        "a query keeps its row of A, d = 4 numbers, and adds to it. A block of K and V is used and forgotten, so"
        " no 12 x 12 matrix is held, and a sum is the same in any order.",
        hint="What does a query carry from block to block? And is a sum changed by the order of its terms?",
        wrong={
            12: "the scores of the 12 keys need not be kept: each is used at once",
            3: "a block of 3 keys is used and forgotten",
            5: "nothing is divided, so no sum of the weights is kept",
            6: "neither a maximum nor a sum of the weights is kept: nothing is divided",
            16: "each key adds to the same 4 numbers",
            48: "that is all of A; the question is about one query",
        },
    ),
    Question(
        "two_sums_nan",
        _nan_rows,
        "in a row with a score far above 709, exp becomes inf in fp64, so l is inf, and inf / inf is nan. In a "
        "row whose scores are all far below -745, every exp is 0, and 0 / 0 is nan.",
        hint="Scores become very large. What is exp of them in fp64, and what is then numerator / l?",
        wrong={
            0: "exp of a score above 709 is inf in fp64, and inf / inf is nan; with all far below 0, so is 0 / 0"
        },
    ),
    Question(
        "second_block",
        _second_block,
        "m grows from 2 to 4, so alpha = exp(2 - 4) = 0.1353. It multiplies both old sums: "
        "l = 0.1353 · 1.3679 + 1 + 0.3679 = 1.5530, and "
        "O_acc = 0.1353 (0.3679, 1) + 1 (2, 0) + 0.3679 (0, 2) = (2.0498, 0.8711).",
        hint="The maximum grows from 2 to 4. Multiply both old sums by alpha, then add the new block, its weights "
        "measured against 4.",
        tolerance=0.005,
        wrong={
            ("alpha", 0): "alpha was 0 in the first block, before which nothing was summed",
            ("alpha", 1): "the maximum grows, from 2 to 4, so the old sums shrink",
            ("alpha", 0.5): "alpha depends on the difference of the two maxima, not on their ratio",
            ("alpha", float(np.exp(2))): "that is upside down: alpha = exp(m_old - m), and m is the larger one",
            (
                "alpha",
                float(np.exp(-1)),
            ): "that is the weight of the score 3; alpha compares the old m with the new",
            ("l", 2 * FIRST_L): "the old sum is still measured against 2: it is multiplied by alpha first",
            ("l", FIRST_L): "that is one block alone; l holds both, the first of them times alpha",
            ("l", float(np.exp(-2)) + FIRST_L): "alpha is a factor of the old sum, not a term",
            ("l", float(np.exp(2)) * FIRST_L + FIRST_L): "alpha is upside down: it makes the old sum smaller",
            (
                "O_acc",
                float(np.exp(-1)) + 2,
            ): "the old O_acc is still measured against 2: multiply it by alpha first",
            ("O_acc", 2): "that is the second block alone; the first one is added, times alpha",
            ("O_acc", float(np.exp(-2)) + 2): "alpha is a factor of the old O_acc, not a term",
            ("O_acc", float(np.exp(1)) + 2): "alpha is upside down: it makes the old O_acc smaller",
            ("O_acc", float((softmax.safe(X) @ V4)[0])): "that is O: O_acc is not divided by l",
            ("O_acc", float(np.exp(-2) + 2 * np.exp(-1))): "that is the second entry",
        },
        labels={"O_acc": "first entry of O_acc"},
    ),
    Question(
        "divisions",
        _divisions,
        "unnormalised: d, once; normalised: d + 1 in each of the 64 blocks, d for PV and one for the factor of o.",
        hint="Use the column of divisions: how many blocks are there, and which version divides in each of them?",
        wrong={
            4096: "that is d in each block; O_acc is divided once, at the end, and o takes d + 1 in each block",
            1: "O_acc / l divides each of its d numbers",
            65: "that is one block of the normalised version; there are 64",
            4160 * 64: "the divisions come once a block, not once a key",
        },
    ),
    Question(
        "row_without_keys",
        _row_without_keys,
        "both are exp(-inf - (-inf)), and -inf - (-inf) is nan. Once nan is in l and O_acc it stays there.",
        hint="Put m_old = m = -inf into both lines. What is the exponent?",
        choices=("0", "1", "inf", "nan"),
        wrong={
            "0": "it ought to be 0, but -inf - (-inf) is nan, not -inf",
            "1": "-inf - (-inf) is nan, not 0",
            "inf": "-inf - (-inf) is nan, not inf",
        },
    ),
    Question(
        "rescaled_rows",
        _rescaled,
        "row 3 is rescaled by tiles (0, 1) and (0, 2), row 2 by (0, 3). A tile rescales a row if it is not its "
        "first and holds a score above all before it, so the last rescaling comes with the row's largest score: "
        "among keys 4 and 5 in row 3, among keys 6 and 7 in row 2.",
        hint="A row is rescaled by a tile that is not its first and brings a new largest score. Mark those tiles "
        "in each row.",
        wrong={
            0: "it is rescaled once, by tile (0, 1)",
            1: "it is rescaled once, by tile (0, 1)",
            2: "it is rescaled once, by tile (0, 3)",
            3: "it is rescaled by tiles (0, 1) and (0, 2), and row 2 by tile (0, 3)",
        },
    ),
    Question(
        "first_wrong_step",
        _first_wrong,
        "O_acc goes wrong where a row is first rescaled, by tile (0, 1), the second step; l has its alpha.",
        hint="Forgetting alpha does harm where a row has something in O_acc and gets a larger maximum. Which tile "
        "is the first with such a row?",
        wrong={
            1: "in step 1 alpha is 0 and nothing is lost; in step 2 rows 0, 1 and 3 go wrong, row 0 first",
            3: "in step 2 rows 0, 1 and 3 go wrong already, row 0 first",
        },
    ),
    Question(
        "passes_over_K",
        _passes,
        "each row block reads all of K once, and of V too, and there are 64 / B_r row blocks.",
        hint="Each row block reads all of K once. How many row blocks are there?",
        wrong={
            1: "one pass is enough only for one row block",
            4: "a pass for each row block: count these",
            16: "B_r is the size of a row block, not their number",
            64: "the larger the row blocks, the fewer there are",
        },
        labels={"B_r_64": "B_r = 64", "B_r_16": "B_r = 16", "B_r_1": "B_r = 1"},
    ),
    Question(
        "m_stuck_at_0",
        _after_1000,
        "m stays 0, all weights are exp(-996) or less, which is 0 in fp64, so l = 0, and 0 / 0 is nan. In fp32 "
        "this happens already where all scores are below about -104.",
        hint="What is the largest of the scores and 0? What are the exponentials of scores near -1000 in fp64?",
        choices=tuple(SAME.values()),
        wrong={
            SAME["right"]: "with m = 0 the weights are exp(-996) and less, which is 0 in fp64",
            SAME["zeros"]: "O_acc is 0, but l is 0 too, and 0 / 0 is nan",
            SAME["mean"]: "that is what equal weights give; here every weight is 0",
        },
    ),
]
