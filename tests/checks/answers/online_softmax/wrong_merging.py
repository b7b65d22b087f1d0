"""Wrong answers: see `tests.checks.answers`."""


# merge, plain_mean: plain mean of outputs
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    s = np.where(np.isinf(m), 0.0, m)
    l = np.exp(a.m - s) * a.l + np.exp(b.m - s) * b.l

    def output(part):
        return part.O_acc / np.where(part.l == 0, 1.0, part.l)[..., None]

    return State(m, l, 0.5 * (output(a) + output(b)))


# merge, part_changed: O_acc of a changed
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(np.isneginf(m), 0, m)
    alpha_a, alpha_b = np.exp(a.m - shift), np.exp(b.m - shift)
    O_acc = a.O_acc
    O_acc *= alpha_a[..., None]
    O_acc += alpha_b[..., None] * b.O_acc
    return State(m, alpha_a * a.l + alpha_b * b.l, O_acc)


# merge, shift_0_if_equal: the difference of equal maxima avoided
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    safe = np.where(a.m == b.m, 0.0, m)
    w_a, w_b = np.exp(a.m - safe), np.exp(b.m - safe)
    return State(m, w_a * a.l + w_b * b.l, w_a[..., None] * a.O_acc + w_b[..., None] * b.O_acc)


# merge, guard_if_all: a return for the case that all is empty
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    if np.all(m == -np.inf):
        return a
    f, g = np.exp(a.m - m), np.exp(b.m - m)
    return State(m, f * a.l + g * b.l, f[..., None] * a.O_acc + g[..., None] * b.O_acc)


# merge, guard_if_any: a shift of 0 for all
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = 0.0 if np.isneginf(m).any() else m
    f, g = np.exp(a.m - shift), np.exp(b.m - shift)
    return State(m, f * a.l + g * b.l, f[..., None] * a.O_acc + g[..., None] * b.O_acc)


# merge, factors_exchanged: a takes that of b
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(np.isinf(m), 0, m)
    f, g = np.exp(b.m - shift), np.exp(a.m - shift)
    l = a.l * f + b.l * g
    O = a.O_acc * np.expand_dims(f, -1) + b.O_acc * np.expand_dims(g, -1)
    return State(m=m, l=l, O_acc=O)


# merge, arrays_as_one: an if on arrays
def my_merge(a, b):
    if a.m == -np.inf:
        return b
    if b.m == -np.inf:
        return a
    m = max(a.m, b.m)
    f, g = np.exp(a.m - m), np.exp(b.m - m)
    return State(m, f * a.l + g * b.l, f * a.O_acc + g * b.O_acc)


# merge, both_nan: -inf in both, with nan counted as 0 in l alone
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    f, g = np.exp(a.m - m), np.exp(b.m - m)
    l = np.nan_to_num(f * a.l + g * b.l)
    return State(m, l, f[..., None] * a.O_acc + g[..., None] * b.O_acc)


# merge, l_not_rescaled: l is added
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    f, g = (np.where(s.m == -np.inf, 0.0, np.exp(s.m - m)) for s in (a, b))
    return State(m, a.l + b.l, a.O_acc * f[..., None] + b.O_acc * g[..., None])


# merge_outputs, overflow: overflow
def my_merge_outputs(O, lse):
    w = np.exp(lse)
    O_all = (w[:, None] * O).sum(axis=0) / w.sum()
    return O_all, np.log(w.sum())


# merge_outputs, both_means: plain means of both
def my_merge_outputs(O, lse):
    n = len(lse)
    return sum(O) / n, sum(lse) / n


# merge_outputs, not_the_largest: the first lse
def my_merge_outputs(O, lse):
    w = np.exp(lse - lse[0])
    return (O * w[:, None]).sum(0) / w.sum(), lse[0] + np.log(w.sum())


# merge_outputs, not_the_largest: the median lse
def my_merge_outputs(O, lse):
    middle = sorted(lse)[len(lse) // 2]
    if np.all(lse == -np.inf):
        return np.zeros(O.shape[1]), -np.inf
    w = [np.exp(s - middle) for s in lse]
    return np.dot(w, O) / sum(w), middle + np.log(sum(w))


# merge_outputs, guard_if_any: zeros once one is masked
def my_merge_outputs(O, lse):
    if np.isneginf(lse).any():
        return np.zeros_like(O[0]), -np.inf
    m = lse.max()
    total = np.exp(lse - m).sum()
    return np.exp(lse - m) / total @ O, m + np.log(total)


# merge_outputs, m_from_number: the largest sought from 0 on
def my_merge_outputs(O, lse):
    m = 0.0
    for value in lse:
        m = max(m, value)
    w = np.exp(lse - m)
    return w @ O / w.sum(), m + np.log(w.sum())


# merge_outputs, exchanged: lse first
def my_merge_outputs(O, lse):
    m = lse.max()
    if m == -np.inf:
        return m, np.zeros(O.shape[1])
    w = np.exp(lse - m)
    return m + np.log(w.sum()), w @ O / w.sum()


# merge_outputs, all_nan: one after another, without a guard
def my_merge_outputs(O, lse):
    out, total = O[0], lse[0]
    for O_j, lse_j in zip(O[1:], lse[1:]):
        new = np.logaddexp(total, lse_j)
        out = out * np.exp(total - new) + O_j * np.exp(lse_j - new)
        total = new
    return out, total


# merge_outputs, inexact: a small number against a division by 0
def my_merge_outputs(O, lse):
    m = lse.max()
    w = np.exp(lse - (m if m > -np.inf else 0))
    return w @ O / (w.sum() + 1e-9), m + np.log(w.sum())


# merge, raises_for_own: a number is made of m where it asks m for its dimensions
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(m == -np.inf, 0, m)
    f, g = np.exp(a.m - shift), np.exp(b.m - shift)
    O_acc = f[..., None] * a.O_acc + g[..., None] * b.O_acc
    return State(m if a.m.ndim else float(m), f * a.l + g * b.l, O_acc)
