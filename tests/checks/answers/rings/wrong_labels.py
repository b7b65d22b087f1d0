"""Wrong answers on labels across a cut: see `tests.checks.answers`."""


# cut_labels, shifted_only: the loss of one GPU, on each rank
def my_cut_labels(tokens, firsts, N, r):
    return np.concatenate([tokens[1:], [-100]])


# cut_labels, shifted_only: np.roll
def my_cut_labels(tokens, firsts, N, r):
    return np.roll(tokens, -1)


# cut_labels, argument_changed: in place
def my_cut_labels(tokens, firsts, N, r):
    P = len(firsts) // 2
    n_lo = (r + 1) * N // (2 * P) - r * N // (2 * P)
    tokens[:-1] = tokens[1:]
    tokens[n_lo - 1] = firsts[r + 1]
    tokens[-1] = firsts[2 * P - r] if r else -100
    return tokens


# cut_labels, cuts_ignored: nothing crosses a cut
def my_cut_labels(tokens, firsts, N, r):
    n = len(firsts)
    size = (r + 1) * N // n - r * N // n
    return np.array([*tokens[1:size], -100, *tokens[size + 1 :], -100])


# cut_labels, equal_pieces: halves
def my_cut_labels(tokens, firsts, N, r):
    half = len(tokens) // 2
    after = [*firsts, -100]
    return np.concatenate([tokens[1:half], [after[r + 1]], tokens[half + 1 :], [after[len(firsts) - r]]])


# cut_labels, end_not_ignored: round the ring
def my_cut_labels(tokens, firsts, N, r):
    n = len(firsts)
    size = (r + 1) * N // n - r * N // n
    return np.concatenate([tokens[1:size], [firsts[r + 1]], tokens[size + 1 :], [firsts[(n - r) % n]]])


# cut_labels, nothing_returned: no return
def my_cut_labels(tokens, firsts, N, r):
    np.append(tokens[1:], -100)


# cut_labels, raises: one piece too far
def my_cut_labels(tokens, firsts, N, r):
    labels = np.append(tokens[1:], 0)
    labels[-1] = firsts[len(firsts) - r]
    return labels
