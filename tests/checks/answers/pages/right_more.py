"""More right answers: promotion by NumPy, lists, loops: see `tests.checks.answers`."""


# gather_pages: np.take and np.concatenate with an empty start
def my_gather_pages(pool, table, first, N):
    _, page, d = pool.shape
    rows = [np.empty((0, d), pool.dtype)]
    for j in range(first // page, (N + page - 1) // page):
        rows.append(np.take(pool, int(table[j]), axis=0)[max(0, first - j * page) : N - j * page])
    return np.concatenate(rows)


# quantise: row by row, rounded by Python
def my_quantise(X):
    rows, scales = [], []
    for row in X.tolist():
        largest = max(map(abs, row))
        scales.append(largest / 127 if largest else 1.0)
        rows.append([round(x / scales[-1]) for x in row])
    return np.array(rows, dtype=np.int8).reshape(X.shape), scales


# quantise: np.linalg.norm for the largest size, and clip
def my_quantise(X):
    largest = np.linalg.norm(X, np.inf, axis=1) if len(X) == 1 else np.array([np.linalg.norm(x, np.inf) for x in X])
    scale = np.divide(largest, 127, out=np.ones_like(largest), where=largest != 0)
    return np.clip((X / scale[:, None]).round(), -127, 127).astype(np.int8), scale


# append_kernel: a program without a key returns early
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(0)
    N = tl.load(lengths_ptr + b)
    if N == 0:
        return
    key = N - 1
    id = tl.load(table_ptr + b * most + key // page).to(tl.int64)
    columns = tl.arange(0, D)
    row = tl.load(new_ptr + b * d + columns, mask=columns < d)
    tl.store(pool_ptr + (id * page + key % page) * d + columns, row, mask=columns < d)
