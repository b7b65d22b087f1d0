"""Wrong answers to the exercises of chapter 03."""

from flashlib.checks.mutants import Mutant

MUTANTS = [
    Mutant("online_step", "l not rescaled", "l is not rescaled", {"l * np.exp(m_old - m)": "l"}),
    Mutant("online_step", "alpha upside down", "alpha is upside down", {"np.exp(m_old - m)": "np.exp(m - m_old)"}),
    Mutant("online_step", "old maximum", "against the old maximum", {"np.exp(x_j - m)": "np.exp(x_j - m_old)"}),
    Mutant("online_step", "no maximum", "not subtracted from the new score", {"np.exp(x_j - m)": "np.exp(x_j)"}),
    Mutant("online_step", "m is the score", "m is the new score alone", {"max(m, x_j)": "x_j"}),
    Mutant("online_step", "old sum lost", "the old sum is lost", {"l * np.exp(m_old - m) + ": ""}),
    Mutant("online_step", "no guard", "nan where nothing", {"x_j == -np.inf": "False"}),
    Mutant("online_step", "returns l alone", "expected the 2 values m, l", {"return m, l *": "return l *"}),
    Mutant(
        "online_step",
        "new term rescaled too",
        "the new term is rescaled too",
        text="""
def my_online_step(m, l, x_j):
    if np.isinf(x_j):
        return m, l
    new = np.maximum(m, x_j)
    total = l + np.exp(x_j - new)
    return new, total * np.exp(m - new)
""",
    ),
    Mutant(
        "online_step",
        "branches, without the rescale",
        "l is not rescaled",
        text="""
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return m, l
    if x_j > m:
        return x_j, l + 1
    return m, l + np.exp(x_j - m)
""",
    ),
    Mutant(
        "merge",
        "O_acc not rescaled",
        "O_acc is not rescaled",
        {"alpha_a[..., None] * a.O_acc + alpha_b[..., None] * b.O_acc": "a.O_acc + b.O_acc"},
    ),
    Mutant("merge", "l not rescaled", "l is not rescaled", {"alpha_a * a.l + alpha_b * b.l": "a.l + b.l"}),
    Mutant(
        "merge",
        "nothing rescaled",
        "nothing is rescaled",
        {"np.exp(a.m - shift), np.exp(b.m - shift)": "np.ones_like(m), np.ones_like(m)"},
    ),
    Mutant("merge", "only a rescaled", "only a is rescaled", {"np.exp(b.m - shift)": "np.ones_like(m)"}),
    Mutant(
        "merge",
        "factors upside down",
        "upside down",
        {"np.exp(a.m - shift), np.exp(b.m - shift)": "np.exp(shift - a.m), np.exp(shift - b.m)"},
    ),
    Mutant("merge", "m of a kept", "m is that of a", {"np.maximum(a.m, b.m)": "np.asarray(a.m)"}),
    Mutant("merge", "maxima added", "the maxima are added", {"np.maximum(a.m, b.m)": "np.add(a.m, b.m)"}),
    Mutant("merge", "no guard", "both parts are empty", {"np.where(m == -np.inf, 0, m)": "m"}),
    Mutant(
        "merge",
        "normalised",
        "O_acc is divided by l",
        {"State(m, l, O_acc)": "State(m, l, O_acc / np.where(l == 0, 1, l)[..., None])"},
    ),
    Mutant(
        "merge",
        "no axis for d",
        "raises ValueError",
        {"alpha_a[..., None] * a": "alpha_a * a", "alpha_b[..., None] * b": "alpha_b * b"},
    ),
    Mutant(
        "merge",
        "plain mean of outputs",
        "plain mean of the outputs",
        text="""
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    s = np.where(np.isinf(m), 0.0, m)
    l = np.exp(a.m - s) * a.l + np.exp(b.m - s) * b.l

    def output(part):
        return part.O_acc / np.where(part.l == 0, 1.0, part.l)[..., None]

    return State(m, l, 0.5 * (output(a) + output(b)))
""",
    ),
    Mutant("stream_lse", "l not rescaled", "l is not rescaled", {"l * np.exp(m_old - m)": "l"}),
    Mutant("stream_lse", "m missing", "m is missing", {"m + np.log(l)": "np.log(l)"}),
    Mutant("stream_lse", "0 for none", "0 is returned where no score came", {"else -np.inf": "else 0.0"}),
    Mutant("stream_lse", "masked scores not passed over", "nan for masked scores", {"x_j == -np.inf": "False"}),
    Mutant("stream_lse", "m starts at 0", "m starts at 0", {"m, l = -np.inf, 0.0": "m, l = 0.0, 0.0"}),
    Mutant("stream_lse", "returns the maximum", "the maximum is returned", {"m + np.log(l) if l": "m if l"}),
    Mutant(
        "stream_lse", "scores kept", "keep only single numbers", {"for x_j in stream": "for x_j in list(stream)"}
    ),
    Mutant(
        "stream_lse",
        "no maximum",
        "the maximum is not subtracted",
        text="""
def my_stream_lse(stream):
    total = 0.0
    for x in stream:
        total += np.exp(x)
    return np.log(total)
""",
    ),
    Mutant(
        "stream_lse",
        "taken twice",
        "gone through twice",
        text="""
def my_stream_lse(stream):
    m = max(stream)
    l = sum(np.exp(x_j - m) for x_j in stream)
    return m + np.log(l)
""",
    ),
    Mutant(
        "merge_outputs",
        "plain mean",
        "the plain mean of the outputs is taken: weight",
        {"weights @ O / l": "O.mean(axis=0)"},
    ),
    Mutant("merge_outputs", "weights not normalised", "do not add up to 1", {"weights @ O / l": "weights @ O"}),
    Mutant("merge_outputs", "lse as weights", "weighted by their lse", {"weights @ O / l": "lse @ O / lse.sum()"}),
    Mutant("merge_outputs", "lse is the largest", "the largest of the parts", {"m + np.log(l)": "m"}),
    Mutant("merge_outputs", "lse is the sum", "the sum of those", {"m + np.log(l)": "lse.sum()"}),
    Mutant("merge_outputs", "lse is the mean", "the mean of those", {"m + np.log(l)": "lse.mean()"}),
    Mutant("merge_outputs", "no guard", "nan where all parts", {"m == -np.inf": "False"}),
    Mutant(
        "merge_outputs",
        "only the largest",
        "only the part with the largest",
        {"weights @ O / l": "O[np.argmax(lse)]"},
    ),
    Mutant(
        "merge_outputs",
        "overflow",
        "exp of an lse overflows",
        text="""
def my_merge_outputs(O, lse):
    w = np.exp(lse)
    O_all = (w[:, None] * O).sum(axis=0) / w.sum()
    return O_all, np.log(w.sum())
""",
    ),
    Mutant(
        "merge_outputs",
        "plain means of both",
        "and of the lse too",
        text="""
def my_merge_outputs(O, lse):
    n = len(lse)
    return sum(O) / n, sum(lse) / n
""",
    ),
    Mutant("weighted_mean", "sum not rescaled", "the weighted sum is not rescaled", {"alpha * acc": "acc"}),
    Mutant("weighted_mean", "l not rescaled", "l is not rescaled", {"alpha * l": "l"}),
    Mutant("weighted_mean", "nothing rescaled", "nothing is rescaled", {"alpha * l": "l", "alpha * acc": "acc"}),
    Mutant("weighted_mean", "no division", "the final division", {"acc / l": "acc"}),
    Mutant("weighted_mean", "m starts at 0", "m starts at 0", {"m, l, acc = -np.inf": "m, l, acc = 0.0"}),
    Mutant(
        "weighted_mean",
        "divided at every score",
        "divided by l at every score",
        {"acc = alpha * acc + p * v_j": "acc = (alpha * acc + p * v_j) / l", "return acc / l": "return acc"},
    ),
    Mutant(
        "weighted_mean",
        "read again for the maximum",
        "x is read 2.0 times",
        text="""
def my_weighted_mean(x, v):
    m = max(x_j for x_j in x)
    top = bottom = 0.0
    for j in range(len(x)):
        p = np.exp(x[j] - m)
        top, bottom = top + p * v[j], bottom + p
    return top / bottom
""",
    ),
    Mutant(
        "weighted_mean",
        "a row of weights",
        "loaded at once",
        text="""
def my_weighted_mean(x, v):
    x, v = x[:], v[:]
    p = np.exp(x - x.max())
    return p @ v / p.sum()
""",
    ),
    Mutant(
        "weighted_mean",
        "no maximum",
        "the maximum is not subtracted",
        text="""
def my_weighted_mean(x, v):
    num, den = 0.0, 0.0
    for a, b in zip(x, v):
        num += np.exp(a) * b
        den += np.exp(a)
    return num / den
""",
    ),
    Mutant(
        "online_step",
        "score not counted",
        "come back as they were",
        {"m, l * np.exp(m_old - m) + np.exp(x_j - m)": "m_old, l"},
    ),
    Mutant(
        "online_step",
        "exchanged",
        "l and m are exchanged",
        text="""
def my_online_step(m, l, x_j):
    if x_j == -np.inf:
        return l, m
    new = max(m, x_j)
    return np.exp(m - new) * l + np.exp(x_j - new), new
""",
    ),
    Mutant(
        "online_step",
        "term before the rescale",
        "infinite at the first score",
        {"l * np.exp(m_old - m) + np.exp(x_j - m)": "(l + np.exp(x_j - m_old)) * np.exp(m_old - m)"},
    ),
    Mutant("merge", "only b rescaled", "only b is rescaled", {"np.exp(a.m - shift)": "np.ones_like(m)"}),
    Mutant("merge", "smaller maximum", "m is the smaller", {"np.maximum": "np.minimum"}),
    Mutant("merge", "a plain tuple", "returns a plain tuple", {"State(m, l, O_acc)": "(m, l, O_acc)"}),
    Mutant(
        "merge",
        "O_acc of a changed",
        "O_acc of a is changed",
        text="""
def my_merge(a, b):
    m = np.maximum(a.m, b.m)
    shift = np.where(np.isneginf(m), 0, m)
    alpha_a, alpha_b = np.exp(a.m - shift), np.exp(b.m - shift)
    O_acc = a.O_acc
    O_acc *= alpha_a[..., None]
    O_acc += alpha_b[..., None] * b.O_acc
    return State(m, alpha_a * a.l + alpha_b * b.l, O_acc)
""",
    ),
    Mutant("stream_lse", "stops at a masked score", "stops at the first masked", {"continue": "break"}),
    Mutant("merge_outputs", "m missing", "the largest lse is missing", {"m + np.log(l)": "np.log(l)"}),
    Mutant(
        "weighted_mean",
        "past the meter",
        "read past the meter",
        text="""
def my_weighted_mean(x, v):
    x, v = np.asarray(x), np.asarray(v)
    p = np.exp(x - x.max())
    return (p * v).sum() / p.sum()
""",
    ),
    Mutant(
        "weighted_mean",
        "lists",
        "keep m, l and one sum",
        text="""
def my_weighted_mean(x, v):
    scores, values = list(x), list(v)
    m = max(scores)
    weights = [np.exp(s - m) for s in scores]
    return sum(w * u for w, u in zip(weights, values)) / sum(weights)
""",
    ),
]
