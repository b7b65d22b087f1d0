"""The questions of this chapter."""

from functools import reduce

import numpy as np

from flashlib.checks.engine.prediction import Question
from flashlib.memory import HBM
from flashlib.softmax import IDENTITY, State, logsumexp, merge, summarise

FOUR = np.log([1.0, 2.0, 1.0, 4.0])
RISING = np.arange(8.0)


def _without_rescale():
    """Return l of the scores 0 .. 7 without rescaling, and the resulting sum of the weights."""
    l_wrong = float(np.exp(RISING - np.maximum.accumulate(RISING)).sum())
    return {"l": l_wrong, "weights": float(summarise(RISING).l / l_wrong)}


def _reads():
    """Return how often a metered loop reads each score for only m and l, and for the softmax."""
    (x,) = HBM.put(FOUR.copy())
    for _ in x:
        pass
    once = x.traffic.read // x.nbytes
    return {"m_and_l": once, "softmax": once + 1}


def _reads_of_two():
    """Return how often the loops of the naive and of the safe softmax read each score."""

    def of_naive(x):
        l = np.exp(x[:]).sum()
        return np.exp(x[:]) / l

    def of_safe(x):
        m = x[:].max()
        l = np.exp(x[:] - m).sum()
        return np.exp(x[:] - m) / l

    found = {}
    for name, passes in (("naive", of_naive), ("safe", of_safe)):
        (x,) = HBM.put(FOUR.copy())
        passes(x)
        found[name] = x.traffic.read // x.nbytes
    return found


def _changed(change):
    """Return whether a change in how eight scores are merged changes the State of all."""
    x, V = np.arange(8.0)[::-1].copy(), np.eye(8)[:, :2]
    parts = [summarise(x[a:b], V[a:b]) for a, b in ((0, 2), (2, 3), (3, 6), (6, 8))]
    whole = reduce(merge, parts)
    other = {
        "order": lambda: reduce(merge, parts[::-1]),
        "cuts": lambda: reduce(merge, [summarise(x[a : a + 1], V[a : a + 1]) for a in range(8)]),
        "identity": lambda: reduce(merge, [parts[0], IDENTITY, *parts[1:]]),
    }[change]()
    return not all(np.allclose(a, b) for a, b in zip(whole, other, strict=True))


def _mean_depends_on_order():
    outputs = [1.0, 2.0, 6.0]
    return ((outputs[0] + outputs[1]) / 2 + outputs[2]) / 2 != (outputs[0] + (outputs[1] + outputs[2]) / 2) / 2


def _levels(n):
    """Return the numbers of merges and levels in a tree over n states."""
    states, merges, levels = [State(0.0, 1.0)] * n, 0, 0
    while len(states) > 1:
        states = [merge(a, b) for a, b in zip(states[::2], states[1::2], strict=True)]
        merges, levels = merges + len(states), levels + 1
    return {"merges": merges, "levels": levels}


QUESTIONS = [
    Question(
        "third_score",
        lambda: float(summarise(np.log([1.0, 2.0, 4.0])).l),
        "the two old terms were measured against log 2. Against the new maximum log 4 each of them is half as "
        "large, so the old sum 1.5 becomes 0.75. The new term is exp(0) = 1, and together that is 1.75. The old "
        "scores were not needed.",
        hint="Both old terms were measured against log 2. By what factor does each of them change when the "
        "maximum becomes log 4? And what does the new score add?",
        wrong={
            2.5: "that adds the new term 1 to the old sum, which is still measured against log 2",
            0.75: "that is the old sum, rescaled: the new term exp(0) = 1 is added to it",
            1.5: "that is the old sum: its terms change when the maximum grows, and a new term is added",
            3.5: "that measures the new score against the old maximum: its term is exp(x - m) with the new m",
            7: "that is the sum of the exponentials themselves: l is the sum of exp(x - m)",
        },
        tolerance=1e-3,
    ),
    Question(
        "without_rescale",
        _without_rescale,
        "each score is the largest when it arrives, so each adds e^0 = 1 and l is 8; the true l is 1.5814, and "
        "1.5814 / 8 = 0.1977.",
        hint="Each score is the largest when it arrives: what does it add to l? Then compare that l with the true "
        "one.",
        wrong={1: "the weights are divided by an l that is too large, so they add up to less"},
        tolerance=0.03,
    ),
    Question(
        "passes",
        _reads_of_two,
        "the first weight needs the complete sum, so naive reads x for l and again for p. In the safe softmax the "
        "first term of the sum needs the complete maximum, so it reads x for m, for l and for p.",
        hint="Which numbers of the whole row must be known before the first weight can be computed? Each takes a "
        "pass; then comes the output.",
        wrong={
            2: "that leaves out one of the maximum, the sum and the output",
            3: "the naive softmax has no maximum to look for",
            1: "the first weight can be written only when the sum is complete",
            4: "the write of p is not a read of x",
        },
    ),
    Question(
        "reads_online",
        _reads,
        "maximum and sum come out of one pass. The weights need m and l of the whole row, so x is read again. "
        "So the online softmax is as safe as the safe one, and reads as little as the naive one.",
        hint="Maximum and sum are updated together. Can the weights be written before the row has ended?",
        wrong={
            3: "that is safe softmax: online softmax finds maximum and sum in one pass",
            ("m_and_l", 2): "when the maximum grows, the sum is rescaled, so it does not need its own pass",
            ("softmax", 1): "the first weight needs m and l of the whole row",
        },
    ),
    Question(
        "tree_size",
        lambda: _levels(1024),
        "each merge leaves one state less, so 1024 states take 1023 merges in any order, as many as a scan. Each "
        "level halves the number of states, and 1024 is 2 to the power of 10. A scan has to wait 1023 times, the "
        "tree 10 times.",
        hint="Each merge makes one state out of two. And each level halves the number of states.",
        wrong={
            1024: "the last merge leaves one state, so there is one less",
            512: "those are the merges of the first level",
        },
    ),
    Question(
        "what_changes",
        lambda: (
            {name: _changed(name) for name in ("order", "cuts", "identity")}
            | {"plain_mean": _mean_depends_on_order()}
        ),
        "merge is associative and commutative and has an identity, so the State of the whole is the same but for "
        "the last digits. In a plain mean of means each mean counts one half, so the parts merged last get "
        "more weight than those merged first.",
        hint="Does a State remember its parts, or their order? For the plain mean, take the outputs 1, 2 and 6, "
        "and join the first two first, then the last two.",
    ),
    Question(
        "large_logsumexp",
        lambda: round(float(logsumexp(np.full(4, 1000.0))) - 1000, 4),
        "m is 1000 and l is 4, so lse = 1000 + log(4), and log(4) is 1.3863.",
        hint="lse = m + log(l). What are m and l for four equal scores?",
        wrong={
            0: "that is only m: log(l) is added to it, and l is 4",
            4: "l is 4, and its logarithm is added",
            3000: "exponentials are added, not scores",
            2: "that is log2(4): the logarithm is the natural one",
        },
        tolerance=0.005,
    ),
    Question(
        "empty_logsumexp",
        lambda: f"{logsumexp(np.full(3, -np.inf)):g}",
        "every term is exp(-inf) = 0, so the sum is 0, and log(0) is -inf. This is a value, not an error. In a "
        "merge such a row has the weight 0.",
        hint="What is each term of the sum, and what is the logarithm of that sum?",
        choices=("-inf", "0", "nan"),
        wrong={
            "0": "that would be a row of one score 0, which weighs exp(0) = 1",
            "nan": "-inf - (-inf) would be nan, but log(0) has a limit",
        },
    ),
]
