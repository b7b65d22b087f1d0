"""Wrong answers: see `tests.checks.answers`."""


# window_bounds, top_left: tiles looked at one by one, aligned top left
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    rows, found = range(i * B_r, min(i * B_r + B_r, N_q)), [[], []]
    for j, cols in enumerate(blocks(N_k, B_c)):
        seen = [r - left <= c <= r + right for r in rows for c in range(cols.start, cols.stop)]
        for test, numbers in zip((any, all), found):
            if test(seen):
                numbers.append(j)
    return tuple(n for found in found for n in ((found[0], found[-1] + 1) if found else (0, 0)))


# window_bounds, not_closed: tiles looked at one by one
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    rows = range(i * B_r, min(i * B_r + B_r, N_q))
    computed, whole = [], []
    for j, cols in enumerate(blocks(N_k, B_c)):
        seen = [r - left <= c - N_k + N_q <= r + right for r in rows for c in range(cols.start, cols.stop)]
        computed += [j] if any(seen) else []
        whole += [j] if all(seen) else []
    ends = [(found[0], found[-1] + 1) if found else (5, 5) for found in (computed, whole)]
    return [*ends[0], *ends[1]]


# window_bounds, not_closed: a row of tiles at once
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    past, j = N_k - N_q, np.arange(-(-N_k // B_c))
    top, bottom = i * B_r + past, min((i + 1) * B_r, N_q) - 1 + past
    start, stop = j * B_c, np.minimum((j + 1) * B_c, N_k)
    computed = j[(stop > top - left) & (start <= bottom + right)]
    whole = j[(start >= bottom - left) & (stop <= top + right + 1)]
    ends = [(found[0], found[-1] + 1) if len(found) else (0, 0) for found in (computed, whole)]
    return *ends[0], *ends[1]


# window_bounds, not_closed: the first and the last tile looked for
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    past, T_c = N_k - N_q, -(-N_k // B_c)
    top, bottom = i * B_r + past, min((i + 1) * B_r, N_q) - 1 + past
    end = whole_end = 0
    while end < T_c and end * B_c <= bottom + right:
        end += 1
    while whole_end < T_c and min((whole_end + 1) * B_c, N_k) - 1 <= top + right:
        whole_end += 1
    return max(0, top - left) // B_c, end, -(-max(0, bottom - left) // B_c), whole_end


# window_bounds, float: rounded by NumPy
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    top, bottom = i * B_r + N_k - N_q, min((i + 1) * B_r, N_q) - 1 + N_k - N_q
    end, T_c = np.floor((bottom + right) / B_c) + 1, np.ceil(N_k / B_c)
    whole_end = T_c if top + right >= N_k - 1 else np.floor((top + right + 1) / B_c)
    return max(0, top - left) // B_c, max(0, min(T_c, end)), np.ceil(max(0, bottom - left) / B_c), max(0, whole_end)


# window_bounds, no_left: a causal loop that ends at the right bound
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    past, T_c = N_k - N_q, (N_k + B_c - 1) // B_c
    top, bottom = i * B_r + past, min(i * B_r + B_r, N_q) - 1 + past
    end = min(T_c, max(0, bottom + right + B_c) // B_c)
    whole_end = T_c if top + right + 1 >= N_k else max(top + right + 1, 0) // B_c
    return 0, end, (max(0, bottom - left) + B_c - 1) // B_c, whole_end


# window_bounds, narrow_left: a window of `left` keys, the query's own among them
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    r = np.arange(i * B_r, min((i + 1) * B_r, N_q)) + N_k - N_q
    a, b = np.clip(r - left + 1, 0, None), np.clip(r + right + 1, 0, N_k)
    whole_end = -(-N_k // B_c) if b.min() == N_k else b.min() // B_c
    return a.min() // B_c, -(-b.max() // B_c), -(-a.max() // B_c), whole_end


# window_bounds, value: no whole tiles, and causal
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    return 0, min(-(-N_k // B_c), (min((i + 1) * B_r, N_q) - 1 + N_k - N_q) // B_c + 1), 0, 0


# window_bounds, raises: a mask without keys
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    whole = [j for j in range(-(-N_k // B_c)) if j * B_c >= i * B_r]
    return whole[0], whole[-1], whole[1], whole[-1] + 1


# block_table, whole_as_cut: as if all that is computed needed the mask
def my_block_table(seen, B_r, B_c):
    T_r, T_c = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    n, table = np.zeros(T_r, int), np.full((T_r, T_c), -1)
    for i, rows in enumerate(blocks(len(seen), B_r)):
        found = [j for j, cols in enumerate(blocks(seen.shape[1], B_c)) if seen[rows, cols].any()]
        n[i], table[i, : len(found)] = len(found), found
    return 0 * n, 0 * table - 1, n, table


# block_table, computed: the second list holds whole tiles too, and counts them
def my_block_table(seen, B_r, B_c):
    T_r, T_c = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    n_whole, whole, n_cut, cut = np.zeros(T_r, int), np.full((T_r, T_c), -1), np.zeros(T_r, int), np.full((T_r, T_c), -1)
    for i in range(T_r):
        at = 0
        for j in range(T_c):
            tile = seen[i * B_r : (i + 1) * B_r, j * B_c : (j + 1) * B_c]
            if tile.all():
                whole[i, n_whole[i]] = j
                n_whole[i] += 1
                n_cut[i] += 1
            elif tile.any():
                cut[i, at] = j
                at += 1
                n_cut[i] += 1
    return n_whole, whole, n_cut, cut


# block_table, not_in_order: tiles sorted by their kind
def my_block_table(seen, B_r, B_c):
    rows, cols = list(blocks(seen.shape[0], B_r)), list(blocks(seen.shape[1], B_c))
    all_, any_ = (
        np.array([[test(seen[r, c]) for c in cols] for r in rows], bool).reshape(len(rows), len(cols))
        for test in (np.all, np.any)
    )
    found = []
    for chosen in (all_, any_ & ~all_):
        n = chosen.sum(axis=1)
        found += [n, np.where(np.arange(len(cols)) < n[:, None], np.argsort(~chosen, axis=1), -1)]
    return found


# block_table, float: arrays as np.zeros makes them
def my_block_table(seen, B_r, B_c):
    rows, cols = list(blocks(seen.shape[0], B_r)), list(blocks(seen.shape[1], B_c))
    n, table = np.zeros((2, len(rows))), np.zeros((2, len(rows), len(cols))) - 1
    for i, r in enumerate(rows):
        for kind in range(2):
            found = [j for j, c in enumerate(cols) if (seen[r, c].all(), seen[r, c].any())[kind] and seen[r, c].all() != kind]
            n[kind, i], table[kind, i, : len(found)] = len(found), found
    return n[0], table[0], n[1], table[1]


# work_of, argument_changed: the list used up
def my_work_of(p, cu_seqlens, B_r):
    b, start = 0, cu_seqlens.pop(0)
    while cu_seqlens:
        stop = cu_seqlens.pop(0)
        first = start + p * B_r
        if first < stop:
            return b, first, min(first + B_r, stop)
        b, p, start = b + 1, p - -(-(stop - start) // B_r), stop
    return -1, 0, 0


# work_of, documents_ignored: the pack as one sequence, with the document of the first row
def my_work_of(p, cu_seqlens, B_r):
    b = int(np.searchsorted(cu_seqlens, p * B_r, side="right")) - 1
    if p * B_r >= cu_seqlens[-1]:
        return -1, 0, 0
    return b, p * B_r, min((p + 1) * B_r, cu_seqlens[-1])


# work_of, gaps: places of documents in closed form
def my_work_of(p, cu_seqlens, B_r):
    starts = [n // B_r + b for b, n in enumerate(cu_seqlens[:-1])]
    b = int(np.searchsorted(starts, p, side="right")) - 1
    first = cu_seqlens[b] + (p - starts[b]) * B_r
    return (b, first, min(first + B_r, cu_seqlens[b + 1])) if first < cu_seqlens[b + 1] else (-1, 0, 0)


# work_of, raises: programs without work
def my_work_of(p, cu_seqlens, B_r):
    work = [
        (b, first, min(first + B_r, cu_seqlens[b + 1]))
        for b in range(len(cu_seqlens) - 1)
        for first in range(cu_seqlens[b], cu_seqlens[b + 1], B_r)
    ]
    return work[p]
