"""Right answers in other styles: see `tests.checks.answers`."""


# scores_for: a list of logarithms, the largest score 0
import math


def my_scores_for(p):
    largest = max(p)
    return [math.log(p_j / largest) for p_j in p.tolist()]


# scores_for: in base 2, translated, and far from 0
def my_scores_for(p):
    return 100.0 + np.log2(p) / np.log2(np.e)


# scores_for: against the last weight
def my_scores_for(p):
    x = np.empty_like(p)
    for j in range(len(p)):
        x[j] = np.log(p[j]) - np.log(p[-1])
    return x


# overflow_threshold: an interval halved in the dtype
def my_overflow_threshold(dtype):
    low, high = dtype(0), dtype(1000)
    while np.nextafter(low, high) < high:
        middle = low + (high - low) / dtype(2)
        if np.exp(middle) < np.inf:
            low = middle
        else:
            high = middle
    return low


# overflow_threshold: by bits, as a Python float
def my_overflow_threshold(dtype):
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    low, high = 0, int(np.array([np.inf], dtype).view(unsigned)[0])
    while high - low > 1:
        middle = (low + high) // 2
        with np.errstate(all="ignore"):
            fits = np.isfinite(np.exp(np.array([middle], unsigned).view(dtype)))[0]
        low, high = (middle, high) if fits else (low, middle)
    return float(np.array([low], unsigned).view(dtype)[0])


# overflow_threshold: from above, with np.spacing
def my_overflow_threshold(dtype):
    start = dtype(np.log(np.finfo(dtype).max))
    x = start + 4 * np.spacing(start)
    while np.exp(x) == np.inf:
        x = x - np.spacing(x)
    return x


# safe_bound: 95% of the best, and the logarithms apart
import math


def my_safe_bound(dtype, n):
    return 0.95 * (math.log(np.finfo(dtype).max) - math.log(n))


# safe_bound: tried, in steps of 1%
def my_safe_bound(dtype, n):
    b = dtype(0.5)
    while True:
        more = dtype(float(b) * 1.01)
        with np.errstate(all="ignore"):
            if not np.isfinite(np.exp(np.full(n, more)).sum()):
                return dtype(0.99 * float(b))
        b = more


# safe_bound: powers of 2
def my_safe_bound(dtype, n):
    return (np.finfo(dtype).maxexp - np.log2(n)) * np.log(2) * 0.98
