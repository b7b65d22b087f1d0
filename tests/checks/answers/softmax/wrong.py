"""Wrong answers: see `tests.checks.answers`."""


# scores_for, softmax_again: in a loop
import math


def my_scores_for(p):
    total = sum(math.exp(p_j) for p_j in p)
    return np.array([math.exp(p_j) / total for p_j in p])


# scores_for, logit: inverse of the sigmoid
def my_scores_for(p):
    x = np.empty(len(p))
    for j, p_j in enumerate(p):
        x[j] = np.log(p_j) - np.log1p(-p_j)
    return x


# overflow_threshold, one_too_high: first that overflows, by bisection
def my_overflow_threshold(dtype):
    low, high = dtype(0), dtype(1000)
    while True:
        middle = dtype(low + (high - low) / dtype(2))
        if middle in (low, high):
            return high
        low, high = (middle, high) if np.exp(middle) < np.inf else (low, middle)


# overflow_threshold, whole: whole numbers
def my_overflow_threshold(dtype):
    x = 0
    while np.isfinite(np.exp(dtype(x + 1))):
        x += 1
    return dtype(x)


# overflow_threshold, same_for_all: fp64 for every dtype
def my_overflow_threshold(dtype):
    x, step = 0.0, 512.0
    while x + step > x:
        if np.isfinite(np.exp(x + step)):
            x += step
        step /= 2
    return x


# overflow_threshold, too_low: steps of 0.01
def my_overflow_threshold(dtype):
    x = 0.0
    while np.isfinite(np.exp(dtype(x + 0.01))):
        x += 0.01
    return dtype(x)


# safe_bound, n_ignored: only single terms tried
def my_safe_bound(dtype, n):
    b = 1.0
    while np.isfinite(np.exp(dtype(1.01 * b))) and np.exp(dtype(-1.01 * b)) > 0:
        b *= 1.01
    return b


# safe_bound, whole: whole numbers tried
def my_safe_bound(dtype, n):
    for b in range(1, 1000):
        if not np.isfinite(np.exp(np.full(n, b + 1, dtype)).sum()):
            return b


# scores_for, raises: a function for single numbers
import math


def my_scores_for(p):
    return math.log(p)


# scores_for, small_number: each weight at least the step of fp64
def my_scores_for(p):
    eps = np.finfo(p.dtype).eps
    return np.log(np.where(p < eps, eps, p))


# scores_for, entropy: the term of each weight
def my_scores_for(p):
    return np.array([p_j * np.log(p_j) for p_j in p])


# scores_for, scaled: the largest logarithm brought to 1
def my_scores_for(p):
    x = np.log(p)
    return x / x.max() if x.max() < 0 else x


# scores_for, rounded: made in fp32
def my_scores_for(p):
    x = np.zeros(len(p), dtype=np.float32)
    for j in range(len(p)):
        x[j] = np.log(p[j])
    return x


# scores_for, weights: differences to the largest weight
def my_scores_for(p):
    return p - np.max(p)


# scores_for, first_only: the first 16 only
def my_scores_for(p):
    x = np.zeros(len(p))
    x[:16] = np.log(p[:16])
    return x


# overflow_threshold, log_rounded: down only where exp overflows by a warning
def my_overflow_threshold(dtype):
    x = dtype(np.finfo(dtype).maxexp * np.log(2))
    while np.isfinite(np.exp(np.nextafter(x, dtype(np.inf)))):
        x = np.nextafter(x, dtype(np.inf))
    return x


# overflow_threshold, too_low: halved 12 times
def my_overflow_threshold(dtype):
    low, high = 0.0, 1000.0
    for _ in range(12):
        middle = (low + high) / 2
        if np.isfinite(np.exp(dtype(middle))):
            low = middle
        else:
            high = middle
    return dtype(low)


# overflow_threshold, not_of_dtype: halved in fp64, not made a number of the dtype
def my_overflow_threshold(dtype):
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.isfinite(np.exp(dtype(middle))) else (low, middle)
    return low


# safe_bound, n_ignored: the sum of few terms tried
def my_safe_bound(dtype, n):
    b = np.log(float(np.finfo(dtype).max))
    while not np.isfinite(np.exp(np.full(min(n, 1), b, dtype)).sum()):
        b -= 0.001
    return 0.99 * b


# safe_bound, small: by heart, for the sizes that come to mind
def my_safe_bound(dtype, n):
    exact = {1: 1, 3: 3, 100: 100, 1000: 1000, 16384: 16384}
    return 0.99 * np.log(float(np.finfo(dtype).max) / exact.get(n, 16384))
