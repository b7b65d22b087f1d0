"""More right answers: promotion by NumPy, lists, loops: see `tests.checks.answers`."""


# window_bounds: a list, and max and min of Python
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    top = i * B_r + N_k - N_q
    bottom = min(i * B_r + B_r, N_q) - 1 + N_k - N_q
    from_key, to_key = max(top - left, 0), min(bottom + right, N_k - 1)
    all_from, all_to = max(bottom - left, 0), min(top + right, N_k - 1)
    if to_key < from_key:
        return [0, 0, 0, 0]
    whole_end = (all_to + 1 + (B_c - 1 if all_to == N_k - 1 else 0)) // B_c
    return [from_key // B_c, to_key // B_c + 1, (all_from + B_c - 1) // B_c, max(whole_end, 0)]


# block_table: lists of lists
def my_block_table(seen, B_r, B_c):
    T_r, T_c = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    lists = [[[], []] for _ in range(T_r)]
    for i in range(T_r):
        for j in range(T_c):
            tile = seen[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c]
            if np.any(tile):
                lists[i][0 if np.all(tile) else 1].append(j)
    padded = [np.array([row[k] + [-1] * (T_c - len(row[k])) for row in lists]).reshape(T_r, T_c) for k in (0, 1)]
    return [len(row[0]) for row in lists], padded[0], [len(row[1]) for row in lists], padded[1]


# work_of: running sums of row blocks
def my_work_of(p, cu_seqlens, B_r):
    starts = np.array(cu_seqlens)
    ends = np.cumsum(-(-np.diff(starts) // B_r))
    if p >= ends[-1]:
        return -1, 0, 0
    b = int(np.searchsorted(ends, p, side="right"))
    first = starts[b] + (p - (ends[b - 1] if b else 0)) * B_r
    return b, first, min(first + B_r, starts[b + 1])
