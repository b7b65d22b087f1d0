"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# safe_bound, sum_overflows: n times
def my_safe_bound(dtype, n):
    return float(np.log(float(np.finfo(dtype).max) * n))


# safe_bound, below_0: subtract n / 2
def my_safe_bound(dtype, n):
    return float(np.log(float(np.finfo(dtype).max))) - n / 2
