"""Wrong answers: see `tests.checks.answers`."""


# longest, full_left_out: search that wants room left
def my_longest(capacity, H, itemsize):
    low, high = 0, capacity
    while low < high:
        N = (low + high + 1) // 2
        if H * (N * N + N * N) * itemsize < capacity:
            low = N
        else:
            high = N - 1
    return low


# longest, one_too_large: search that goes one too far
def my_longest(capacity, H, itemsize):
    high = 1
    while 2 * H * itemsize * high * high <= capacity:
        high *= 2
    low = high // 2
    while high - low > 1:
        N = (low + high) // 2
        low, high = (N, high) if 2 * H * itemsize * N * N <= capacity else (low, N)
    return high


# longest, full_left_out: a root by logarithms, which rounds
def my_longest(capacity, H, itemsize):
    import math

    room = capacity // (2 * H * itemsize)
    return int(math.exp(math.log(room) / 2 - 1e-12)) if room else 0


# longest, root_of_part: the root of the bytes, then the bytes of a token
def my_longest(capacity, H, itemsize):
    import math

    return int(math.sqrt(capacity)) // (2 * H * itemsize)


# longest, bytes_fixed: fp32 whatever itemsize says
def my_longest(capacity, H, itemsize):
    return int((capacity / (2 * H * 4)) ** 0.5)


# longest, power_of_two: doubled while it fits
def my_longest(capacity, H, itemsize):
    N = 1
    while 2 * H * itemsize * (2 * N) ** 2 <= capacity:
        N *= 2
    return N if 2 * H * itemsize <= capacity else 0


# longest, none_is_1: a search that begins at 1
def my_longest(capacity, H, itemsize):
    N = 1
    while 2 * H * itemsize * (N + 1) ** 2 <= capacity:
        N += 1
    return N


# window, top_left: two triangles, top left
def my_window(N_q, N_k, w):
    lower = np.tri(N_q, N_k, dtype=bool)
    return lower & ~np.tri(N_q, N_k, k=-w, dtype=bool)


# window, slice_from_below_0: slices from below 0
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=bool)
    for r in range(N_q):
        end = N_k - N_q + r + 1
        mask[r, end - w : end] = True
    return mask


# window, slice_to_below_0: slices that end below 0
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=bool)
    for r in range(N_q):
        end = N_k - N_q + r + 1
        mask[r, max(0, end - w) : end] = True
    return mask


# window, w_plus_1: a loop, one key too many
def my_window(N_q, N_k, w):
    seen = [[0 <= r + N_k - N_q - c <= w for c in range(N_k)] for r in range(N_q)]
    return np.array(seen)


# window, past_not_negative: slices of a row, ends clipped at 1
def my_window(N_q, N_k, w):
    mask = np.zeros((N_q, N_k), dtype=bool)
    past = max(0, N_k - N_q)
    for r in range(N_q):
        last = r + past
        mask[r, max(0, last - w + 1) : last + 1] = True
    return mask


# window, no_lower_end: the sign of w turned round
def my_window(N_q, N_k, w):
    row = np.arange(N_k - N_q, N_k).reshape(-1, 1)
    col = np.arange(N_k).reshape(1, -1)
    return (col <= row) & (col < row + w)


# window, lower_top_left: two triangles, only one of them shifted
def my_window(N_q, N_k, w):
    upper = np.tri(N_q, N_k, k=N_k - N_q, dtype=bool)
    return upper & ~np.tri(N_q, N_k, k=-w, dtype=bool)


# window, w_plus_1: two triangles, shifted by w + 1
def my_window(N_q, N_k, w):
    k = N_k - N_q
    return np.tri(N_q, N_k, k=k, dtype=bool) ^ np.tri(N_q, N_k, k=k - w - 1, dtype=bool)


# window, transposed: keys first
def my_window(N_q, N_k, w):
    c = np.arange(N_k)[:, None]
    p = np.arange(N_q)[None, :] + (N_k - N_q)
    return (c <= p) & (p - c < w)


# window, key_0_hidden: a lower end clipped at 0, and left out
def my_window(N_q, N_k, w):
    rows = []
    for r in range(N_q):
        p = r + N_k - N_q
        low = max(p - w, 0)
        rows.append([low < c <= p for c in range(N_k)])
    return np.array(rows)


# window, numbers: triangles of numbers
def my_window(N_q, N_k, w):
    past = N_k - N_q
    return np.tri(N_q, N_k, past) - np.tri(N_q, N_k, past - w)


# window, no_array: a list of lists
def my_window(N_q, N_k, w):
    return [[r + N_k - N_q - w < c <= r + N_k - N_q for c in range(N_k)] for r in range(N_q)]
