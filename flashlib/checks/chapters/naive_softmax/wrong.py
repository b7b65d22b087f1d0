"""Wrong answers to the exercises of chapter 01."""

from flashlib.checks.mutants import Mutant

LIMITS = "min(np.log(largest / n), -np.log(smallest))"

MUTANTS = [
    Mutant("scores_for", "weights returned", "returned as they are", {"np.log(p)": "p"}),
    Mutant("scores_for", "base 2", "to base 2", {"np.log(p)": "np.log2(p)"}),
    Mutant("scores_for", "exponential", "the exponential is taken", {"np.log(p)": "np.exp(p)"}),
    Mutant("scores_for", "wrong sign", "the sign is turned round", {"np.log(p)": "-np.log(p)"}),
    Mutant("scores_for", "small number added", "a small number is added", {"np.log(p)": "np.log(p + 1e-9)"}),
    Mutant("scores_for", "written over p", "p is changed", {"np.log(p)": "np.log(p, out=p)"}),
    Mutant(
        "scores_for",
        "softmax once more, in a loop",
        "softmax is taken once more",
        text="""
import math


def my_scores_for(p):
    total = sum(math.exp(p_j) for p_j in p)
    return np.array([math.exp(p_j) / total for p_j in p])
""",
    ),
    Mutant(
        "scores_for",
        "inverse of the sigmoid",
        "undoes the sigmoid",
        text="""
def my_scores_for(p):
    x = np.empty(len(p))
    for j, p_j in enumerate(p):
        x[j] = np.log(p_j) - np.log1p(-p_j)
    return x
""",
    ),
    Mutant(
        "overflow_threshold",
        "one too high",
        "step back down",
        {"return x": "return np.nextafter(x, dtype(np.inf))"},
    ),
    Mutant(
        "overflow_threshold",
        "one too low",
        "one number too early",
        {"return x": "return np.nextafter(x, -dtype(1))"},
    ),
    Mutant(
        "overflow_threshold",
        "first that overflows, by bisection",
        "the first number whose exp is inf",
        text="""
def my_overflow_threshold(dtype):
    low, high = dtype(0), dtype(1000)
    while True:
        middle = dtype(low + (high - low) / dtype(2))
        if middle in (low, high):
            return high
        low, high = (middle, high) if np.exp(middle) < np.inf else (low, middle)
""",
    ),
    Mutant(
        "overflow_threshold",
        "whole numbers",
        "by whole numbers",
        text="""
def my_overflow_threshold(dtype):
    x = 0
    while np.isfinite(np.exp(dtype(x + 1))):
        x += 1
    return dtype(x)
""",
    ),
    Mutant(
        "overflow_threshold",
        "logarithm of the largest",
        "is no number of fp16 or fp32",
        text="def my_overflow_threshold(dtype):\n    return np.log(float(np.finfo(dtype).max))",
    ),
    Mutant(
        "overflow_threshold",
        "logarithm of the largest, rounded",
        "rounded to the dtype, may overflow",
        text="def my_overflow_threshold(dtype):\n    return np.log(np.finfo(dtype).max)",
    ),
    Mutant(
        "overflow_threshold",
        "base 2",
        "to base 2",
        text="def my_overflow_threshold(dtype):\n    return dtype(np.log2(float(np.finfo(dtype).max)))",
    ),
    Mutant(
        "overflow_threshold",
        "fp64 for every dtype",
        "the same number for every dtype",
        text="""
def my_overflow_threshold(dtype):
    x, step = 0.0, 512.0
    while x + step > x:
        if np.isfinite(np.exp(x + step)):
            x += step
        step /= 2
    return x
""",
    ),
    Mutant(
        "overflow_threshold",
        "bf16 for fp16",
        "the last x of bfloat16",
        {"    return x": "    return dtype(88.5) if dtype is np.float16 else x"},
    ),
    Mutant(
        "overflow_threshold",
        "steps of 0.01",
        "too low",
        text="""
def my_overflow_threshold(dtype):
    x = 0.0
    while np.isfinite(np.exp(dtype(x + 0.01))):
        x += 0.01
    return dtype(x)
""",
    ),
    Mutant(
        "overflow_threshold",
        "the largest number",
        "it returns the largest number",
        text="def my_overflow_threshold(dtype):\n    return np.finfo(dtype).max",
    ),
    Mutant(
        "overflow_threshold",
        "through all numbers from 0",
        "did not end",
        {"dtype(np.log(float(np.finfo(dtype).max)))": "dtype(0)"},
    ),
    Mutant("safe_bound", "n ignored", "n is ignored", {"largest / n": "largest"}),
    Mutant("safe_bound", "n ignored, overflow alone", "n is ignored", {LIMITS: "np.log(largest)"}),
    Mutant("safe_bound", "only underflow", "only the underflow", {LIMITS: "-np.log(smallest)"}),
    Mutant("safe_bound", "larger of the two", "the larger of two limits", {"min(": "max("}),
    Mutant(
        "safe_bound",
        "base 2",
        "to base 2",
        {"np.log(largest": "np.log2(largest", "np.log(smallest": "np.log2(smallest"},
    ),
    Mutant("safe_bound", "logarithm divided by n", "divided by n", {"np.log(largest / n)": "np.log(largest) / n"}),
    Mutant("safe_bound", "n added", "n has the wrong sign", {"largest / n": "largest * n"}),
    Mutant("safe_bound", "smallest normal", "smallest_normal, or tiny,", {"_subnormal": "_normal"}),
    Mutant("safe_bound", "eps", "finfo.eps", {"smallest_subnormal": "eps"}),
    Mutant("safe_bound", "no logarithm", "take its logarithm", {LIMITS: "largest / n"}),
    Mutant("safe_bound", "no room for rounding", "no room is left", {"0.99 * ": ""}),
    Mutant("safe_bound", "half the bound", "about 50%", {"0.99": "0.5"}),
    Mutant(
        "safe_bound",
        "only single terms tried",
        "n is ignored",
        text="""
def my_safe_bound(dtype, n):
    b = 1.0
    while np.isfinite(np.exp(dtype(1.01 * b))) and np.exp(dtype(-1.01 * b)) > 0:
        b *= 1.01
    return b
""",
    ),
    Mutant(
        "safe_bound",
        "whole numbers tried",
        "whole numbers",
        text="""
def my_safe_bound(dtype, n):
    for b in range(1, 1000):
        if not np.isfinite(np.exp(np.full(n, b + 1, dtype)).sum()):
            return b
""",
    ),
]
