"""Right answers on labels across a cut, in other styles: see `tests.checks.answers`."""


# cut_labels: piece by piece
def my_cut_labels(tokens, firsts, N, r):
    pieces = len(firsts)
    size = [(i + 1) * N // pieces - i * N // pieces for i in range(pieces)]
    lo, hi = tokens[: size[r]], tokens[size[r] :]
    after = [*firsts, -100]
    return np.concatenate([lo[1:], [after[r + 1]], hi[1:], [after[pieces - r]]])


# cut_labels: from the positions
def my_cut_labels(tokens, firsts, N, r):
    P = len(firsts) // 2
    begins = [i * N // (2 * P) for i in range(2 * P + 1)]
    own = [*range(begins[r], begins[r + 1]), *range(begins[-2 - r], begins[-1 - r])]
    known = dict(zip(begins, firsts)) | dict(zip(own, tokens))
    return np.array([known.get(place + 1, -100) for place in own])


# cut_labels: a list
def my_cut_labels(tokens, firsts, N, r):
    n = len(firsts)
    end = N * (r + 1) // n - N * r // n
    labels = [int(t) for t in tokens[1:]] + [-100 if r == 0 else int(firsts[n - r])]
    labels[end - 1] = int(firsts[r + 1])
    return labels
