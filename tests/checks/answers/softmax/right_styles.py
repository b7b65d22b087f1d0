"""Right answers in further styles: see `tests.checks.answers`."""


# scores_for: relative to the first weight
def my_scores_for(p):
    return np.log(p / p[0])


# scores_for: a list of numbers
def my_scores_for(p):
    return [float(np.log(w)) for w in p]


# overflow_threshold: steps that are halved
def my_overflow_threshold(dtype):
    x = dtype(1)
    while np.isfinite(np.exp(x * dtype(2))):
        x = x * dtype(2)
    step = x
    while step > 0:
        while np.isfinite(np.exp(x + step)) and x + step > x:
            x = x + step
        step = step / dtype(2)
    return x


# overflow_threshold: by halves, in Python floats
def my_overflow_threshold(dtype):
    lo, hi = 0.0, 1000.0
    for _ in range(100):
        mid = (lo + hi) / 2
        with np.errstate(over="ignore"):
            ok = np.isfinite(np.exp(dtype(mid)))
        if ok: lo = mid
        else: hi = mid
    return dtype(lo)


# safe_bound: all in the dtype itself
def my_safe_bound(dtype, n):
    i = np.finfo(dtype)
    return 0.99 * min(np.log(i.max / dtype(n)), -np.log(i.smallest_subnormal))


# safe_bound: the next number below the limit
def my_safe_bound(dtype, n):
    i = np.finfo(dtype)
    return np.nextafter(dtype(min(np.log(float(i.max) / n), -np.log(float(i.smallest_subnormal)))), dtype(0))
