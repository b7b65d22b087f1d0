"""Right answers in other styles: see `tests.checks.answers`."""


# window_bounds: a helper, an array of four
def clipped(a, b, T_c):
    return np.clip([a, b], 0, T_c)


def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    past, T_c = N_k - N_q, (N_k + B_c - 1) // B_c
    top, bottom = i * B_r + past, min((i + 1) * B_r, N_q) - 1 + past
    whole_end = T_c if top + right + 1 >= N_k else (top + right + 1) // B_c
    computed = clipped((top - left) // B_c, (bottom + right) // B_c + 1, T_c)
    return np.concatenate([computed, clipped((bottom - left + B_c - 1) // B_c, whole_end, T_c)])


# window_bounds: keys first, NumPy integers, an empty range as it comes
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    r = np.arange(i * B_r, min((i + 1) * B_r, N_q)) + (N_k - N_q)
    a, b = np.clip(r - left, 0, None), np.clip(r + right, -1, N_k - 1) + 1
    first, end = a.min() // B_c, np.ceil(b.max() / B_c).astype(int)
    whole_end = (N_k + B_c - 1) // B_c if b.min() == N_k else b.min() // B_c
    return first, end, (a.max() + B_c - 1) // B_c, whole_end


# block_table: counts of whole and seen scores by reshaping, lists filled up
def my_block_table(seen, B_r, B_c):
    T_r, T_c = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    result = []
    for kind in ("whole", "cut"):
        rows = []
        for i in range(T_r):
            tiles = [seen[i * B_r : i * B_r + B_r, j * B_c : j * B_c + B_c] for j in range(T_c)]
            wholes = [j for j, t in enumerate(tiles) if t.all()]
            cuts = [j for j, t in enumerate(tiles) if t.any() and not t.all()]
            rows.append(wholes if kind == "whole" else cuts)
        result.append(np.array([len(row) for row in rows], dtype=np.int32))
        result.append(np.array([row + [-1] * (T_c - len(row)) for row in rows]).reshape(T_r, T_c))
    return tuple(result)


# block_table: sums of tiles
def my_block_table(seen, B_r, B_c):
    at = np.arange(0, seen.shape[0], B_r), np.arange(0, seen.shape[1], B_c)
    if not at[1].size:
        zero = np.zeros(at[0].size, int)
        return zero, zero[:, None][:, :0], zero, zero[:, None][:, :0]
    count = np.add.reduceat(np.add.reduceat(seen.astype(int), at[0], axis=0), at[1], axis=1)
    size = np.diff(np.append(at[0], seen.shape[0]))[:, None] * np.diff(np.append(at[1], seen.shape[1]))
    whole, found = count == size, []
    for chosen in (whole, (count > 0) & ~whole):
        j = np.where(chosen, np.arange(at[1].size), at[1].size)
        j.sort(axis=1)
        found += [chosen.sum(axis=1), np.where(j < at[1].size, j, -1)]
    return found


# work_of: all work listed
def my_work_of(p, cu_seqlens, B_r):
    work = []
    for b, (start, stop) in enumerate(zip(cu_seqlens, cu_seqlens[1:])):
        work += [(b, first, min(first + B_r, stop)) for first in range(start, stop, B_r)]
    return work[p] if p < len(work) else (-1, 0, 0)


# work_of: a search in running sums
def my_work_of(p, cu_seqlens, B_r):
    cu = np.array(cu_seqlens)
    sums = np.cumsum((np.diff(cu) + B_r - 1) // B_r)
    b = int(np.searchsorted(sums, p, side="right"))
    if b == len(sums):
        return -1, 0, 0
    first = cu[b] + (p - (sums[b - 1] if b else 0)) * B_r
    return b, int(first), int(np.minimum(first + B_r, cu[b + 1]))


# work_of: an array
def my_work_of(p, cu_seqlens, B_r):
    for b, (start, stop) in enumerate(zip(cu_seqlens, cu_seqlens[1:])):
        first = start + p * B_r
        if first < stop:
            return np.array([b, first, min(first + B_r, stop)])
        p -= (stop - start + B_r - 1) // B_r
    return np.array([-1, 0, 0])
